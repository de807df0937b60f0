/* SPDX-License-Identifier: MIT */
/*
 * Bytes that several images have, stored once: of one program at different addresses or with other
 * libraries beside it. They are compared by content, whatever the files are called. Thread-safe.
 */
#ifndef TL_IMAGE_POOL_H
#define TL_IMAGE_POOL_H

#include "base/err.h"

#include <stddef.h>

struct tl_image;
struct tl_image_pool;

TL_MUST_USE int tl_image_pool_new(struct tl_image_pool **out);
/* Accepts NULL. After all images that use it. */
void tl_image_pool_free(struct tl_image_pool *pool);
/* Bytes in it, each counted once. */
size_t tl_image_pool_bytes(struct tl_image_pool *pool);

/* Let a new image have its bytes from the pool, which it must not outlive. */
void tl_image_use_pool(struct tl_image *image, struct tl_image_pool *pool);
/* Memory of an image: its own, and in `*shared` (may be NULL) that in the pool. */
size_t tl_image_bytes(const struct tl_image *image, size_t *shared);

#endif
