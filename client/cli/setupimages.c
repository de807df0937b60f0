/* SPDX-License-Identifier: MIT */
#include "cli/setupimages.h"

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
