/* SPDX-License-Identifier: MIT */
/*
 * Writes functions into flow text. A name is that of the symbol which is mapped at the place in the
 * flow's process and at its time, so that each reader of the flow names the same code alike.
 */
#include "lake/function_text.h"

#include "image/demangle.h"
#include "image/names.h"

#include <stdio.h>
#include <string.h>

char *tl_function_text(const struct tl_image *image, const struct tl_flow_now *now, uint64_t pc,
                       char *out, size_t size)
{
    size_t n = 0;
    char offset[20] = "";
    const int64_t i = tl_flow_now_symbol(now, image, pc);
    const struct tl_symbol *const symbol = i < 0 ? NULL : tl_image_symbols(image, &n) + i;
    out[0] = '\0';
    if (!symbol)
        return out;
    if (symbol->address != pc)
        snprintf(offset, sizeof offset, "+0x%llx", (unsigned long long)(pc - symbol->address));
    tl_name_fit(tl_image_symbol_told(image, (size_t)i), out, size - strlen(offset));
    return strcat(out, offset);
}
