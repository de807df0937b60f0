#!/bin/sh
# SPDX-License-Identifier: MIT
# The functions of shared libraries that objects use, as the list that late.c includes.
# usage: names.sh NM READELF LIBRARY… -- OBJECT…
set -eu
nm=$1 readelf=$2
shift 2
libraries=
while [ "$1" != -- ]; do
  libraries="$libraries $1"
  shift
done
shift
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
"$nm" -P -u "$@" | awk 'NF > 1 {print $1}' >"$wanted"
for library in $libraries; do
  "$readelf" -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/LIBRARY("\1")/p'
  "$nm" -P -D --defined-only "$library" | awk -v wanted="$wanted" '
    BEGIN { while ((getline name < wanted) > 0) is_wanted[name] = 1 }
    { sub(/@.*/, "", $1) }
    $2 ~ /[TWi]/ && $1 in is_wanted && !($1 in told) { told[$1] = 1; print "NAME(" $1 ")" }'
done
