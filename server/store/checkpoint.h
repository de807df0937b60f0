/* SPDX-License-Identifier: MIT */
/*
 * A checkpoint: the decoder's state between two slices of a generation's raw bytes, so that
 * decoding continues from there after a restart. It is optional: if one is unusable, decoding
 * starts at an earlier one. Objects "c/<trace>/<generation>/<raw offset, 16 hex digits>":
 *
 *     "TLCHEC12", u32 crc32c of everything after it
 *     a number that identifies the machine's byte order
 *     the text that identifies who can use it
 *     the state below, by base/state.h
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
    uint64_t offset; /* number of raw bytes decoded */
    uint64_t lost_bytes;
    char message[256];
    struct tl_checkpoint_lane *lanes;
    size_t n_lanes, cap_lanes;
    struct tl_buf decode; /* tl_decode_save() */
};

void tl_checkpoint_fini(struct tl_checkpoint *checkpoint);

/*
 * Append a checkpoint. `whose` identifies what it is valid for: program, setup, images. TL_NOMEM.
 */
TL_MUST_USE int tl_checkpoint_encode(struct tl_checkpoint *checkpoint, const char *whose,
                                     struct tl_buf *out);
/* Is it undamaged, regardless of whom it is for? */
bool tl_checkpoint_sound(struct tl_bytes bytes);
/* Raw offset of a possibly damaged checkpoint; UINT64_MAX: none. */
uint64_t tl_checkpoint_offset(struct tl_bytes bytes);
/*
 * Read a checkpoint into `out`, which must be freed in any case. TL_BAD: damaged, or for another
 * `whose`. TL_NOMEM.
 */
TL_MUST_USE int tl_checkpoint_decode(struct tl_checkpoint *out, const char *whose,
                                     struct tl_bytes bytes);

/*
 * Format "c/<trace>/<generation>" and, with an offset, the object's name after it; returns `out`.
 */
char *tl_checkpoint_key(char out[static 192], const char *trace, uint64_t generation,
                        const uint64_t *offset);

#endif
