#!/usr/bin/env bash
# The decoders on an emulated machine: their unit tests, and the same digests as on this machine.
# Usage: run.sh aarch64|avx512 NATIVE_DIGEST BUILD_FOLDER VERSION
set -euo pipefail
machine=$1 native=$2 build=$3 version=$4
cd "$(dirname "$0")/../.."
skip() { echo "skipped: $1"; exit 77; }

case $machine in
aarch64)
  for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || skip "no $tool"
  done
  [ -e /usr/aarch64-linux-gnu/lib/libc.a ] || skip "no C library for aarch64"
  toolchain=aarch64 levels=(scalar neon) emulator=(qemu-aarch64)
  # What links without foreign libraries and ends soon under emulation.
  tests=(base block cpu etm4_flow etm4_packetizer etm4_tape etm4_unrolled isa item
         itm stf_blocks stf_record stm tpiu)
  ;;
avx512)
  [ -e /usr/include/simde/x86/avx512.h ] || skip "no SIMDe (libsimde-dev)"
  [ "$(uname -m)" = x86_64 ] && grep -qw avx2 /proc/cpuinfo || skip "no AVX2 here"
  toolchain=avx512-emulated levels=(avx2 avx512) emulator=()
  tests=(cpu etm4_flow etm4_packetizer etm4_tape etm4_unrolled pt_packets stf_blocks tpiu)
  ;;
*)
  echo "run.sh: no machine $machine" >&2
  exit 2
  ;;
esac

mkdir -p "$build"
list=$(IFS=';'; echo "${tests[*]}")
cmake -S tests/cross/target -B "$build" -G Ninja \
  -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/$toolchain.cmake" "-DTL_CROSS_TESTS=$list" \
  "-DTL_VERSION=$version" >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
ninja -C "$build" >"$build/build.log" 2>&1 ||
  { grep -E 'error|FAILED' "$build/build.log" | head -30; exit 1; }

# Digests: of every level that either machine has; all must be those of portable C here.
data=${TL_DATA:-$PWD/../shared/data}/coresight/snapshots
TRACELAKE_CPU=scalar "$native" "$data" >"$build/native.txt"
same() { # NAME, output on stdin
  cmp -s - "$build/native.txt" && echo "digests, $1: the same" || { echo "digests, $1: others"; exit 1; }
}
for level in sse42 avx2 avx512; do
  TRACELAKE_CPU=$level "$native" "$data" | same "here, $level or what there is"
done
for level in "${levels[@]}"; do
  TRACELAKE_CPU=$level "${emulator[@]}" "$build/digest" "$data" | same "$machine, $level"
done
echo "$(wc -l <"$build/native.txt") inputs"

failed=0
for name in "${tests[@]}"; do
  if ! "${emulator[@]}" "$build/test_$name" >"$build/$name.log" 2>&1; then
    echo "$machine: test_$name failed:"
    tail -5 "$build/$name.log"
    failed=1
  fi
done
[ $failed = 0 ] && echo "$machine: ${#tests[@]} unit tests passed"
exit $failed
