# cmake -DIN=file -DOUT=file.c -DNAME=symbol -P embed.cmake: a file's bytes as a C array.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],){16})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include <stddef.h>
extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_n;
const unsigned char ${NAME}[] = {\n${bytes}\n};
const size_t ${NAME}_n = sizeof ${NAME};
")
