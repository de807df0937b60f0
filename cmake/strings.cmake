# Small structures are cleared and copied by moves: a string instruction, which is GCC's choice on
# x86, takes longer to begin than all of that.
include(CheckCCompilerFlag)
set(small_by_moves -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign
                   -mmemcpy-strategy=unrolled_loop:128:noalign,libcall:-1:noalign)
string(REPLACE ";" " " flags "${small_by_moves}")
check_c_compiler_flag("${flags}" TL_HAS_STRING_STRATEGIES)
if(TL_HAS_STRING_STRATEGIES)
  add_compile_options(${small_by_moves})
endif()
