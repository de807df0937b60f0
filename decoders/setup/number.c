/* SPDX-License-Identifier: MIT */
#include "setup/ini_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

int tl_ini_number(const char *value, uint64_t *out)
{
    if (!isdigit((unsigned char)value[0]))
        return TL_BAD;
    char *end;
    errno = 0;
    const bool hex = value[0] == '0' && (value[1] == 'x' || value[1] == 'X');
    *out = strtoull(value, &end, hex ? 16 : 10);
    return errno || *end || end == value ? TL_BAD : TL_OK;
}
