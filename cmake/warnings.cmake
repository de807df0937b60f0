# What every build of the sources is compiled with.
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
                    -Wno-unused-parameter -Wno-missing-field-initializers -fno-strict-aliasing)
