#!/usr/bin/env bash
# The decoders on AArch64, emulated: their unit tests, and the same digests as on this machine.
# Usage: run.sh NATIVE_DIGEST BUILD_FOLDER VERSION
set -euo pipefail
native=$1 build=$2 version=$3
cd "$(dirname "$0")/../.."
# What links without foreign libraries and ends soon under emulation.
tests=(base block cpu deal etm4_flow etm4_packetizer etm4_unrolled isa item itm stf_blocks
       stf_record stm tpiu)

for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
[ -e /usr/aarch64-linux-gnu/lib/libc.a ] || { echo "skipped: no C library for aarch64"; exit 77; }

mkdir -p "$build"
list=$(IFS=';'; echo "${tests[*]}")
cmake -S tests/cross/target -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" \
  "-DTL_CROSS_TESTS=$list" "-DTL_VERSION=$version" >"$build/configure.log" 2>&1 ||
  { cat "$build/configure.log"; exit 1; }
ninja -C "$build" >"$build/build.log" 2>&1 || { grep -E 'error|FAILED' "$build/build.log" | head -30; exit 1; }

# Digests: of every level that either machine has; all must be those of portable C here.
data=${TL_DATA:-$PWD/../shared/data}/coresight/snapshots
TRACELAKE_CPU=scalar "$native" "$data" >"$build/native.txt"
same() { # NAME, output on stdin
  cmp -s - "$build/native.txt" && echo "digests, $1: the same" || { echo "digests, $1: others"; exit 1; }
}
for level in sse42 avx2 avx512; do
  TRACELAKE_CPU=$level "$native" "$data" | same "here, $level or what there is"
done
for level in scalar neon; do
  TRACELAKE_CPU=$level qemu-aarch64 "$build/digest" "$data" | same "aarch64, $level"
done
echo "$(wc -l <"$build/native.txt") inputs"

failed=0
for name in "${tests[@]}"; do
  if ! qemu-aarch64 "$build/test_$name" >"$build/$name.log" 2>&1; then
    echo "aarch64: test_$name failed:"
    tail -5 "$build/$name.log"
    failed=1
  fi
done
[ $failed = 0 ] && echo "aarch64: ${#tests[@]} unit tests passed"
exit $failed
