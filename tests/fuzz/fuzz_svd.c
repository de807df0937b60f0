/* SPDX-License-Identifier: MIT */
/* Descriptions of chips from arbitrary bytes: names in them are single words, whatever they say. */
#include "image/svd.h"
#include "image/variables.h"
#include "image/vectors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_image *image;
    struct tl_fail fail = {0};
    char name[200];
    if (size > 1 << 18)
        return 0;
    require(tl_image_new(&image) == TL_OK);
    (void)tl_svd_is((struct tl_bytes){data, size});
    if (tl_image_add_svd(image, (struct tl_bytes){data, size}, "chip", &fail) < 0)
        require(fail.text[0] != '\0');
    require(tl_image_freeze(image) == TL_OK);
    for (unsigned n = 0; n < 600; n++)
        if (tl_image_interrupt_name(image, n, name, sizeof name))
            require(n >= 16 && name[0] != '\0' && !strpbrk(name, " \n"));
    for (uint64_t at = 0x40011000; at < 0x40011020; at++)
        if (tl_image_variable_text(image, &(struct tl_image_access){.address = at}, name,
                                   sizeof name))
            require(strchr(name, '.') && !strpbrk(name, " \n"));
    tl_image_free(image);
    return 0;
}
