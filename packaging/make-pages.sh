#!/bin/sh
# Manual pages of the executable, of each command and of the library, and scripts for shells: all made
# of what the executable and the headers say themselves.
# usage: make-pages.sh TRACELAKE VERSION FOLDER HEADER…
set -eu
tracelake=$1 version=$2 out=$3
shift 3
here=$(dirname "$0")
rm -rf "$out"
mkdir -p "$out/man1" "$out/man3" "$out/completion"
"$tracelake" help --man >"$out/man1/tracelake.1"
for name in $("$tracelake" complete '' | cut -f 1); do
  [ "$name" = help ] || "$tracelake" help --man "$name" >"$out/man1/tracelake-$name.1"
done
awk -v name=libtracelake -v header=tracelake.h -v pc=tracelake -v version="$version" \
  -v summary='push hardware traces to a tracelake server, fetch decoded ranges from it' \
  -f "$here/header-man.awk" "$@" >"$out/man3/libtracelake.3"
for shell in bash zsh fish; do
  "$tracelake" completion $shell >"$out/completion/$shell"
done
