# What every build of the sources is compiled with. An argument of another type, or a function that nothing declares,
# is no matter of taste: it ends the build everywhere.
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
                    -Wno-unused-parameter -Wno-missing-field-initializers -fno-strict-aliasing)
foreach(fault incompatible-pointer-types int-conversion implicit-function-declaration)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-Werror=${fault}>)
endforeach()
