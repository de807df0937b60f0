/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint: where the decoding of a generation stood between two slices of its raw bytes, so
 * that a restart goes on from there. It is never needed: whatever is wrong with one, decoding
 * begins further in front. Objects "c/<trace>/<generation>/<raw offset, 16 hex digits>":
 *
 *     "TLCHEC11", u32 crc32c of all that follows
 *     the state below by base/state.h, begun by a number that tells the machine's byte order and
 *     the text of whom it is for
 *
 * Pure functions.
 */
#ifndef TL_STORE_CHECKPOINT_H
#define TL_STORE_CHECKPOINT_H

#include "base/buf.h"
#include "base/bytes.h"

struct tl_checkpoint_lane {
    char name[32];
    uint64_t lost_bytes;
    struct tl_buf build; /* tl_build_state() and tl_clockfit_state(), packed */
};

struct tl_checkpoint {
    uint64_t offset; /* raw bytes decoded */
    uint64_t lost_bytes;
    char message[256];
    struct tl_checkpoint_lane *lanes;
    size_t n_lanes, cap_lanes;
    struct tl_buf decode; /* tl_decode_save() */
};

void tl_checkpoint_fini(struct tl_checkpoint *checkpoint);

/* Append it. `whose` names what it is good for: program, setup, images. TL_NOMEM. */
TL_MUST_USE int tl_checkpoint_encode(struct tl_checkpoint *checkpoint, const char *whose,
                                     struct tl_buf *out);
/* Is it undamaged, whoever's it is? */
bool tl_checkpoint_sound(struct tl_bytes bytes);
/* Its raw offset, of what may be damaged; UINT64_MAX: it has none. */
uint64_t tl_checkpoint_offset(struct tl_bytes bytes);
/* Read it into `out`, to be freed in any case. TL_BAD: damaged, or another's. TL_NOMEM. */
TL_MUST_USE int tl_checkpoint_decode(struct tl_checkpoint *out, const char *whose,
                                     struct tl_bytes bytes);

/* "c/<trace>/<generation>" and, with an offset, the object's name behind it; returns `out`. */
char *tl_checkpoint_key(char out[static 192], const char *trace, uint64_t generation,
                        const uint64_t *offset);

#endif
