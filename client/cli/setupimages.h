/* SPDX-License-Identifier: MIT */
/* The stored images that a trace's setup names. */
#ifndef TL_CLI_SETUPIMAGES_H
#define TL_CLI_SETUPIMAGES_H

#include "base/err.h"

#include <stddef.h>

#define TL_IMAGE_NAME 72 /* "sha256:<64 hex>" and its NUL */

/* The next "sha256:…" or "build-id:…" of a setup's text, and where it ends. NULL: there is no more.
 */
const char *tl_setup_next_image(const char *setup, char out[static TL_IMAGE_NAME]);

/* All of them, each once; a process that maps a file names it again. Zeroed: none. */
struct tl_setup_images {
    char (*names)[TL_IMAGE_NAME];
    size_t n, cap;
};

/* Free with tl_setup_images_fini(), also after an error. TL_NOMEM. */
TL_MUST_USE int tl_setup_images_init(struct tl_setup_images *images, const char *setup);
void tl_setup_images_fini(struct tl_setup_images *images);
/* Its number; `n`: it is none of them. */
size_t tl_setup_images_find(const struct tl_setup_images *images, const char *name);

#endif
