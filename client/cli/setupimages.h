/* SPDX-License-Identifier: MIT */
/* The stored images named in a trace's setup. */
#ifndef TL_CLI_SETUPIMAGES_H
#define TL_CLI_SETUPIMAGES_H

#include "base/err.h"

#include <stddef.h>

#define TL_IMAGE_NAME 72 /* "sha256:<64 hex>" and its NUL */

/* Find the next "sha256:…" or "build-id:…" in a setup's text. Returns where it ends; NULL: no
 * more. */
const char *tl_setup_next_image(const char *setup, char out[static TL_IMAGE_NAME]);

/* All image names, each once (every process that maps a file names it). Zero-initialised: none. */
struct tl_setup_images {
    char (*names)[TL_IMAGE_NAME];
    size_t n, cap;
};

/* Collect the names. Free with tl_setup_images_fini(), also after an error. TL_NOMEM. */
TL_MUST_USE int tl_setup_images_init(struct tl_setup_images *images, const char *setup);
void tl_setup_images_fini(struct tl_setup_images *images);
/* Index of a name; `n`: not found. */
size_t tl_setup_images_find(const struct tl_setup_images *images, const char *name);

#endif
