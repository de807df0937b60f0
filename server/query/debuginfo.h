/* SPDX-License-Identifier: MIT */
/*
 * Debug information of stored images, loaded on first use and cached within a size limit; and which
 * of a trace's images an address belongs to. Thread-safe, except for struct tl_places.
 */
#ifndef TL_QUERY_DEBUGINFO_H
#define TL_QUERY_DEBUGINFO_H

#include "dwarf/dwarf.h"
#include "lake/lakeint.h"

/* Debug information of one image; reference-counted. */
struct tl_debuginfo {
    struct tl_dwarf *dwarf; /* NULL: none */
    char lacks[200];        /* what is missing, and why; "" if nothing is */
    /* Private to debuginfo.c: */
    struct tl_debuginfo *next;
    unsigned refs;
    char hash[72];
};

/* Free the cache when the lake closes, and none is in use. */
void tl_debuginfo_drop(struct tl_lake *lake);

/*
 * Source locations of a generation's instructions: for one thread and request. Zero-initialised:
 * empty.
 */
struct tl_places {
    struct tl_gen *gen;          /* borrowed */
    struct tl_debuginfo **infos; /* of the setup's images, as far as requested */
    bool *tried;
    struct tl_dwarf_place place; /* result of the last look-up */
    const char *lacks;           /* why it was not found; "" */
    const char *image;           /* hash of the image that contains it; "" */
};

TL_MUST_USE int tl_places_init(struct tl_places *places, struct tl_gen *gen);
void tl_places_fini(struct tl_places *places);
/* Find which of the setup's images covers `pc`, as its index in the setup, and the address within
 * that image. TL_NOTFOUND, TL_CANCELLED, TL_NOMEM. */
TL_MUST_USE int tl_places_own(struct tl_places *places, const struct tl_flow_now *now, uint64_t pc,
                              size_t *image, uint64_t *address);
/* Fill `place`, empty if nothing is known. TL_CANCELLED, TL_NOMEM. */
TL_MUST_USE int tl_places_at(struct tl_places *places, const struct tl_flow_now *now, uint64_t pc);

#endif
