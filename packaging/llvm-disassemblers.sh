#!/bin/sh
# LLVM's disassemblers of the processors that we know, as a libLLVM of 13 MB in place of 107, without
# the libraries of 60 MB that the whole one needs. For images; packages use the system's.
# usage: llvm-disassemblers.sh FOLDER [LIBRARIES]     of llvm-14-dev; needs g++, libtinfo-dev, zlib1g-dev
set -eu
out=$1/libLLVM-14.so.1
libraries=${2:-/usr/lib/llvm-14/lib}
map=$(mktemp)
trap 'rm -f "$map"' EXIT
calls="LLVMCreateDisasmCPUFeatures LLVMSetDisasmOptions LLVMDisasmInstruction LLVMDisasmDispose"
for target in AArch64 ARM RISCV X86; do
  calls="$calls LLVMInitialize${target}TargetInfo LLVMInitialize${target}TargetMC LLVMInitialize${target}Disassembler"
done
{ echo '{ global:'; for c in $calls; do echo "$c;"; done; echo 'local: *; };'; } >"$map"
wanted=$(for c in $calls; do printf -- '-Wl,-u,%s ' "$c"; done)
# What is wanted decides which of the libraries' parts are taken. The list is words on purpose.
# shellcheck disable=SC2086
g++ -shared -o "$out" -Wl,-soname,libLLVM-14.so.1 -Wl,--version-script="$map" -Wl,--gc-sections -Wl,-s $wanted \
  -Wl,--start-group "$libraries"/libLLVM*.a -Wl,--end-group -lz -ltinfo -lpthread -ldl -static-libstdc++ -static-libgcc
