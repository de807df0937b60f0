#!/usr/bin/env bash
# Build the image of Dockerfile and see that it serves: a token, a start, a capture pushed over TLS, read
# back and looked at. By docker or podman where one runs, else by buildah, which needs no daemon.
# usage: image.sh [NAME]
#
# Where the registry of images cannot be reached, the base is made of Debian's packages by debootstrap,
# and packages come from where this machine gets them: its apt settings and certificates are mounted
# while the image is built, and npm's.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-tracelake}
work=$(mktemp -d)
cleanup() { [ -z "${server:-}" ] || end_server; rm -rf "$work"; }
trap cleanup EXIT

say() { printf '== %s\n' "$*"; }
fail() { printf 'image: %s\n' "$*" >&2; exit 1; }

runs() { command -v "$1" >/dev/null && "$1" info >/dev/null 2>&1; }
if runs docker; then engine=docker; elif runs podman; then engine=podman; else engine=buildah; fi

# ---- building ---------------------------------------------------------------------------------

# A minimal Debian as debian:12-slim, in the store of images.
make_base() {
  local url at=$work/base c m
  url=$(apt-get indextargets --format '$(REPO_URI)' 'Release: bookworm' | head -1)
  say "no registry of images: debian:12-slim is made from ${url:-the default mirror}"
  debootstrap --variant=minbase bookworm "$at" ${url:+"$url"} >"$work/debootstrap.log" || { tail -5 "$work/debootstrap.log" >&2; exit 1; }
  rm -rf "$at"/usr/share/{doc,man,info,locale}/* "$at"/var/cache/apt/* "$at"/var/lib/apt/lists/* "$at"/var/log/*
  : >"$at/etc/apt/sources.list"
  echo force-unsafe-io >"$at/etc/dpkg/dpkg.cfg.d/image" # as the images of the registry have it
  c=$(buildah from scratch)
  m=$(buildah mount "$c")
  cp -a "$at/." "$m/"
  buildah umount "$c" >/dev/null
  buildah commit -q --rm "$c" docker.io/library/debian:12-slim >/dev/null
  rm -rf "$at"
}

# This machine's way to packages, for the time of the build alone.
mounts() {
  local f
  for f in /etc/hosts /etc/resolv.conf /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d \
    /etc/apt/auth.conf.d /etc/npmrc "$HOME/.npmrc" /usr/local/share/ca-certificates; do
    [ ! -e "$f" ] || printf -- '-v\n%s:%s:ro\n' "$(realpath "$f")" "$f"
  done
}

build_image() {
  local args=()
  if [ $engine != buildah ]; then
    $engine build -q -t "$name" . >/dev/null
    return
  fi
  command -v buildah >/dev/null || fail "neither docker nor podman runs here; install buildah (and debootstrap)"
  export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
  if ! buildah inspect --type image docker.io/library/debian:12-slim >/dev/null 2>&1 &&
    ! timeout 60 buildah pull -q docker.io/library/debian:12-slim >/dev/null 2>&1; then
    command -v debootstrap >/dev/null || fail "the registry of images cannot be reached; install debootstrap"
    make_base
  fi
  mapfile -t args < <(mounts)
  buildah bud --layers --format docker --pull-never --network host "${args[@]}" -t "$name" . >"$work/build.log" 2>&1 ||
    { tail -40 "$work/build.log" >&2; exit 1; }
}

# ---- running ----------------------------------------------------------------------------------

# What `docker run` would run: the image's own entry point, as its own user, on folders of this machine.
# Not where the image has volumes: those are buildah's own.
folders=(-v "$work/etc:/mnt/etc" -v "$work/data:/mnt/data")
in_image() { # [-d] ARGUMENTS
  local detach=
  [ "$1" != -d ] || { detach=-d; shift; }
  if [ $engine = buildah ]; then
    buildah run --network host "${folders[@]}" "$container" -- tracelake "$@"
  else
    $engine run --rm $detach --network host "${folders[@]}" "$name" "$@"
  fi
}

end_server() {
  if [ $engine = buildah ]; then
    kill -TERM -- "-$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    buildah rm "$container" >/dev/null 2>&1 || true
  else
    $engine stop "$server" >/dev/null 2>&1 || true
  fi
  server=
}

say "building $name by $engine"
build_image
if [ $engine = buildah ]; then
  size=$(buildah images --format '{{.Size}}' "$name" | head -1)
else
  size=$($engine image inspect --format '{{.Size}}' "$name" | awk '{ printf "%.0f MB", $1 / 1e6 }')
fi
say "built: $size"

mkdir "$work/etc" "$work/data"
chown -R 10001:10001 "$work/etc" "$work/data" 2>/dev/null || chmod 0777 "$work/etc" "$work/data"
chmod 0755 "$work"
[ $engine != buildah ] || container=$(buildah from --pull-never "$name")
in_image token add --tokens /mnt/etc/tokens --role admin --name me >"$work/me.token"
[ -s "$work/me.token" ] || fail "no token"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
serve=(serve --data /mnt/data --listen 127.0.0.1:0 --listen-tls "0.0.0.0:$port" --tokens /mnt/etc/tokens)
if [ $engine = buildah ]; then
  set -m # a process group of its own, to be ended as one
  in_image "${serve[@]}" >"$work/log" 2>&1 &
  server=$!
  set +m
  log() { cat "$work/log"; }
  alive() { kill -0 "$server" 2>/dev/null; }
else
  server=$(in_image -d "${serve[@]}")
  log() { $engine logs "$server" 2>&1; }
  alive() { [ "$($engine inspect --format '{{.State.Running}}' "$server" 2>/dev/null)" = true ]; }
fi
for i in $(seq 600); do
  ! log | grep -q '^ready' || break
  alive && [ "$i" -lt 600 ] || { log >&2; fail "the server does not start"; }
  sleep 0.1
done
pin=$(log | sed -n 's/^certificate SHA-256 //p')
client=(--server "https://127.0.0.1:$port" --fingerprint "$pin")
# Software trace of an ITM: synchronisation, and 2000 bytes on port 1.
python3 -c 'import sys; sys.stdout.buffer.write(b"\0\0\0\0\0\x80" + bytes(b for i in range(2000) for b in (0x09, i & 255)))' >"$work/itm"
tool=build/tracelake
[ -x $tool ] || fail "build first: ./dev build tracelake"
$tool push --format itm,id=0 --rig image --trace image --quiet --token "$work/me.token" "${client[@]}" "$work/itm"
$tool raw image --token "$work/me.token" "${client[@]}" -o "$work/back"
cmp "$work/itm" "$work/back" || fail "what was pushed is not what comes back"
lines=$($tool get image --text --token "$work/me.token" "${client[@]}" | grep -c '^S itm 1 ')
[ "$lines" = 2000 ] || fail "$lines lines of software trace, not 2000"
! $tool ls "${client[@]}" >/dev/null 2>&1 || fail "it lists traces without a token"
end_server
say "it serves: a capture over TLS, with a token, is what was pushed"
