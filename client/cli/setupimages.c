/* SPDX-License-Identifier: MIT */
/*
 * Scans the text of a setup for image names instead of parsing the setup. So `cp` and `raw` can
 * copy the images of every format, also of one whose keys they do not know.
 */
#include "cli/setupimages.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

const char *tl_setup_next_image(const char *setup, char out[static TL_IMAGE_NAME])
{
    static const char *const kinds[] = {"sha256:", "build-id:"};
    for (const char *p = setup; *p; p++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            const size_t n = strlen(kinds[i]);
            const size_t digits =
                strncmp(p, kinds[i], n) == 0 ? strspn(p + n, "0123456789abcdef") : 0;
            if (digits == 0 || n + digits >= TL_IMAGE_NAME)
                continue;
            memcpy(out, p, n + digits);
            out[n + digits] = 0;
            return p + n + digits;
        }
    return NULL;
}

size_t tl_setup_images_find(const struct tl_setup_images *images, const char *name)
{
    size_t i = 0;
    while (i < images->n && strcmp(images->names[i], name) != 0)
        i++;
    return i;
}

int tl_setup_images_init(struct tl_setup_images *images, const char *setup)
{
    char name[TL_IMAGE_NAME];
    *images = (struct tl_setup_images){0};
    while ((setup = tl_setup_next_image(setup, name))) {
        if (tl_setup_images_find(images, name) < images->n)
            continue;
        if (tl_grow(&images->names, &images->cap, images->n + 1, sizeof *images->names) < 0)
            return TL_NOMEM;
        memcpy(images->names[images->n++], name, sizeof name);
    }
    return TL_OK;
}

void tl_setup_images_fini(struct tl_setup_images *images)
{
    free(images->names);
    *images = (struct tl_setup_images){0};
}
