# Toolchain: this machine, its AVX-512 instructions as functions of SIMDe. For programs that only
# test the kernels: each instruction takes some hundred.
set(folder ${CMAKE_CURRENT_LIST_DIR}/../tests/cross/avx512)
set(CMAKE_C_FLAGS_INIT
    "-isystem ${folder} -DTL_EMULATED_AVX512 -mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -Wno-psabi")
