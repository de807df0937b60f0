#!/usr/bin/env bash
# The decoders on an emulated machine: their unit tests, and the same digests as on this machine.
# Usage: run.sh BUILD_FOLDER VERSION
set -euo pipefail
build=$1 version=$2
cd "$(dirname "$0")/../.."
skip() { echo "skipped: $1"; exit 77; }

for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$tool" >/dev/null || skip "no $tool"
done
[ -e /usr/aarch64-linux-gnu/lib/libc.a ] || skip "no C library for aarch64"
# What has code of its own for this machine, and what depends on how it stores numbers; the digests are of everything.
tests=(base cpu etm4_packetizer etm4_tape etm4_unrolled)
out=$build/aarch64
program() { echo "$out/emulated_$1"; }

mkdir -p "$out"
list=$(IFS=';'; echo "${tests[*]}")
cmake -S tests/cross/target -B "$out" -G Ninja \
  -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" "-DTL_CROSS_TESTS=$list" \
  "-DTL_VERSION=$version" >"$out/configure.log" 2>&1 || { cat "$out/configure.log"; exit 1; }
ninja -C "$out" >"$out/build.log" 2>&1 ||
  { grep -E 'error|FAILED' "$out/build.log" | head -30; exit 1; }

# Digests at every level of either machine; all must equal those of portable C on this one.
data=${TL_DATA:-$PWD/../shared/data}/coresight/snapshots
TRACELAKE_CPU=scalar "$build/digest" "$data" >"$out/native.txt"
same() { # NAME, output on stdin
  cmp -s - "$out/native.txt" && echo "digests, $1: the same" || { echo "digests, $1: others"; exit 1; }
}
for level in sse42 avx2; do
  TRACELAKE_CPU=$level "$build/digest" "$data" | same "here, $level or what there is"
done
for level in scalar neon; do
  TRACELAKE_CPU=$level qemu-aarch64 "$(program digest)" "$data" | same "aarch64, $level"
done
echo "$(wc -l <"$out/native.txt") inputs"

failed=0
export TL_ROUNDS=25 # percent of the random inputs; the tests of this machine use all of them
for name in "${tests[@]}"; do
  if ! qemu-aarch64 "$(program "$name")" >"$out/$name.log" 2>&1; then
    echo "aarch64: test_$name failed:"
    tail -5 "$out/$name.log"
    failed=1
  fi
  sed -n "s/^skipped: /test_$name: &/p" "$out/$name.log"
done
[ $failed = 0 ] && echo "aarch64: ${#tests[@]} unit tests passed"
exit $failed
