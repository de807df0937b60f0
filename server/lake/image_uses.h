/* SPDX-License-Identifier: MIT */
/*
 * Which images traces refer to, in their present setup or the one before it, by hash or build ID;
 * and since when no trace has referred to one. A source file belongs to the image that its name
 * begins with; one for all images counts as in use.
 */
#ifndef TL_LAKE_IMAGE_USES_H
#define TL_LAKE_IMAGE_USES_H

#include "lake_images.h"

struct tl_lake;

struct tl_image_use {
    struct tl_image_row row;
    size_t traces;     /* how many refer to it */
    char trace[64];    /* one of them, "" if it is none */
    int64_t unused_ns; /* since when (the lake's clock), if there are none */
    size_t seen;       /* private: the last trace counted */
};

struct tl_image_uses {
    struct tl_image_use *v; /* by hash */
    size_t n;
};

/* Read all setups. Free with free(out->v), also after an error. */
TL_MUST_USE int tl_image_uses_read(struct tl_image_uses *out, struct tl_lake *lake,
                                   struct tl_fail *fail);

/* Since when images have been unused; guarded by lake->images_lock. It is stored (`k/unused`, with
 * a checksum; without it, or damaged, all begin anew), so that it outlives the server. */
struct tl_image_unused {
    struct tl_unused_image {
        char hash[72];
        int64_t since_ns;
    } * v; /* by hash */
    size_t n;
    bool loaded, changed; /* changed: not stored yet */
};

/* Set `unused_ns` in `uses`, from now on for those unused for the first time, and remember it. */
TL_MUST_USE int tl_image_unused_update(struct tl_lake *lake, struct tl_image_uses *uses,
                                       int64_t now_ns, struct tl_fail *fail);
/* Remove an image that nobody has asked for since that update. Returns 1, 0: somebody has. */
TL_MUST_USE int tl_image_unused_remove(struct tl_lake *lake, const char *hash,
                                       struct tl_fail *fail);
void tl_image_unused_fini(struct tl_image_unused *unused);

#endif
