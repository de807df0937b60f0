/* SPDX-License-Identifier: MIT */
/*
 * Debug information of stored images, read when it is first asked for and kept as long as there is
 * room; and which of a trace's images an address belongs to. Thread-safe, but for struct tl_places.
 */
#ifndef TL_LAKE_DEBUGINFO_H
#define TL_LAKE_DEBUGINFO_H

#include "dwarf/dwarf.h"
#include "lake/lakeint.h"

/* Debug information of one image; kept by a reference count. */
struct tl_debuginfo {
    struct tl_dwarf *dwarf; /* NULL: there is none */
    char lacks[200];        /* what it does not tell, and why; "" */
    /* Of debuginfo.c: */
    struct tl_debuginfo *next;
    unsigned refs;
    char hash[72];
};

/* That of an image, with a reference. Content that is no ELF file has none, and says so.
 * TL_NOTFOUND: it is not stored; TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_debuginfo_get(struct tl_debuginfo **out, struct tl_lake *lake, const char *file,
                                 struct tl_fail *fail);
void tl_debuginfo_put(struct tl_lake *lake, struct tl_debuginfo *info); /* NULL is fine */
/* When the lake closes, and none is in use. */
void tl_debuginfo_drop(struct tl_lake *lake);

/* Where instructions of a generation come from: for one thread and request. Zeroed it is empty. */
struct tl_places {
    struct tl_gen *gen;          /* borrowed */
    struct tl_debuginfo **infos; /* of the setup's images, as far as they were asked for */
    bool *tried;
    struct tl_dwarf_place place; /* the result */
    const char *lacks;           /* what kept it from being found; "" */
    const char *image;           /* hash of the image it is in; "" */
};

TL_MUST_USE int tl_places_init(struct tl_places *places, struct tl_gen *gen);
void tl_places_fini(struct tl_places *places);
/* Which of the setup's images has what is at `pc`, by its place there, and its own address of it.
 * TL_NOTFOUND, TL_CANCELLED, TL_NOMEM. */
TL_MUST_USE int tl_places_own(struct tl_places *places, const struct tl_flow_now *now, uint64_t pc,
                              size_t *image, uint64_t *address);
/* Fill `place`, empty where nothing is known. TL_CANCELLED, TL_NOMEM. */
TL_MUST_USE int tl_places_at(struct tl_places *places, const struct tl_flow_now *now, uint64_t pc);

#endif
