/* SPDX-License-Identifier: MIT */
/*
 * What a trace's setup says was in memory, loaded: traces of the same program share one.
 * Thread-safe.
 */
#ifndef TL_LAKE_PROGRAM_H
#define TL_LAKE_PROGRAM_H

#include "base/buf.h"
#include "image/image.h"
#include "setup/setup.h"
#include "store/hash.h"

struct tl_lake;

/* Never changes; kept by a reference count. */
struct tl_program {
    struct tl_image *image; /* frozen */
    struct tl_buf images;   /* what it was made of: hashes, "-" where there is none */
    char message[256];      /* what is missing, "" if nothing is */
    size_t lacks;           /* images of the setup that the store did not have */
    /* Of program.c: */
    struct tl_program *next;
    unsigned refs;
    char key[TL_HASH_TEXT]; /* of what it was to be made of; "": it is not shared */
};

/*
 * The program of a setup, with a reference. What can be had of its images, each for itself: without
 * one of them the flow has gaps in it, and the message says why. TL_IO: the store does not tell now
 * whether they are there. TL_NOMEM.
 */
TL_MUST_USE int tl_program_get(struct tl_program **out, struct tl_lake *lake,
                               const struct tl_setup *setup);
/* Does the store have an image of the setup now that it did not have when the program was loaded?
 */
bool tl_program_is_behind(const struct tl_program *program, struct tl_lake *lake,
                          const struct tl_setup *setup);
/* NULL is fine. */
void tl_program_put(struct tl_lake *lake, struct tl_program *program);

#endif
