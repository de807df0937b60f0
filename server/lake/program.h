/* SPDX-License-Identifier: MIT */
/*
 * Loaded memory contents of a trace, as described by its setup: traces of the same program share
 * one, and programs with the same code at other places, or with other code beside it, share its
 * bytes (image/pool.h). Thread-safe.
 */
#ifndef TL_LAKE_PROGRAM_H
#define TL_LAKE_PROGRAM_H

#include "base/buf.h"
#include "image/image.h"
#include "image/pool.h"
#include "setup/setup.h"
#include "store/hash.h"

struct tl_lake;

/* Immutable; reference-counted. */
struct tl_program {
    struct tl_image *image; /* frozen */
    struct tl_buf images;   /* text: the hashes of its images, "-" for a missing one */
    char message[256];      /* what is missing, "" if nothing is */
    size_t lacks;           /* images of the setup that were not in the store */
    uint64_t bytes;         /* of memory that only it has */
    /* Private to program.c: */
    struct tl_program *next;
    unsigned refs;
    char key[TL_HASH_TEXT]; /* hash of the requested sources; "": not shared */
};

/*
 * Get the program of a setup, with a reference. Images are loaded individually: a missing one
 * leaves gaps in the flow, and the message gives the reason. TL_BAD: one is damaged in the store,
 * and a decoding without it would replace a better one. TL_IO: the store cannot tell now whether
 * they exist. TL_LIMIT: they need more memory than a trace may have (lake->decode_limit). TL_NOMEM.
 */
TL_MUST_USE int tl_program_get(struct tl_program **out, struct tl_lake *lake,
                               const struct tl_setup *setup, struct tl_fail *fail);
/* Does the store now have an image of the setup that was missing when the program was loaded? */
bool tl_program_is_outdated(const struct tl_program *program, struct tl_lake *lake,
                            const struct tl_setup *setup);
/* Memory of a program in bytes, including what it shares with others. */
uint64_t tl_program_size(const struct tl_program *program);
/* Memory of all loaded programs: what several have counts once. */
uint64_t tl_programs_bytes(struct tl_lake *lake);
/* Another reference. */
struct tl_program *tl_program_share(struct tl_lake *lake, struct tl_program *program);
/* Accepts NULL. */
void tl_program_put(struct tl_lake *lake, struct tl_program *program);

#endif
