/* SPDX-License-Identifier: MIT */
/*
 * Whole groups: what a trace that others wrote tells of each instruction, kept byte for byte.
 *
 * Such a trace comes as flow items like any other, so that it can be indexed and drawn; beside that
 * its blocks carry each instruction's records as they were (tl_block.whole), and whoever writes STF
 * from them copies those, under the header of that trace. Private to the project; not thread-safe.
 */
#ifndef TL_STF_FLOW_GROUPS_H
#define TL_STF_FLOW_GROUPS_H

#include "base/state.h"
#include "flow/block.h"
#include "stf/reader.h"

/* The trace whose groups they are. A zeroed one is ready. */
struct tl_stf_groups {
    struct tl_block_told told; /* what its blocks point to */
    struct tl_stf_header header;
    struct tl_stf_layout layout; /* of its groups */
    struct tl_buf head;          /* the header's records as they were */
    bool ours;                   /* made from flow items: its groups are no others' */
};

void tl_stf_groups_fini(struct tl_stf_groups *groups);

/* Take a header record; `header` says when it is complete. TL_BAD: no trace; TL_NOMEM. */
TL_MUST_USE int tl_stf_groups_add(struct tl_stf_groups *groups, const struct tl_stf_record *record);

/*
 * Take the header that begins at `stf`, which holds all of it, in place of the one before. Returns
 * its size in bytes; TL_BAD, TL_NOMEM.
 */
TL_MUST_USE int tl_stf_groups_read(struct tl_stf_groups *groups, struct tl_bytes stf);

/* Those of a block with `whole`. */
static inline const struct tl_stf_groups *tl_stf_groups_of(const struct tl_block *block)
{
    return (const struct tl_stf_groups *)block->told;
}

/*
 * Where in the group that begins at `stf` an EVENT is to be put that tells the mode in force.
 * SIZE_MAX: nowhere, the group says so itself, or STF has no word for the mode.
 */
size_t tl_stf_groups_mode(const struct tl_stf_groups *groups, struct tl_bytes stf, uint64_t mode);

/*
 * A COMMENT with such a text stands in front of records that tell again what the trace told before
 * of registers and address translation: so many bytes of them.
 */
#define TL_STF_KNOWN_COMMENT "state so far, in %u bytes"

/* Where in the group that begins at `stf` these records stand, and their `*size` with the COMMENT;
 * `*records`: without it. SIZE_MAX: nowhere. */
size_t tl_stf_groups_known(const struct tl_stf_groups *groups, struct tl_bytes stf, size_t *size,
                           struct tl_bytes *records);

/*
 * Where in the group that begins at `stf` that EVENT stands, and its `*size`; SIZE_MAX: nowhere.
 * `mode`: the one in force, where it was told without fields of ours, as older versions did; NULL:
 * it has them.
 */
size_t tl_stf_groups_mode_told(const struct tl_stf_groups *groups, struct tl_bytes stf,
                               const uint64_t *mode, uint32_t *size);

/* Into bytes, or from them. */
void tl_stf_groups_state(struct tl_stf_groups *groups, struct tl_state *state);
/* What records of groups look like. */
struct tl_stf_shape {
    uint32_t markers;
    size_t group;  /* where the last group begins */
    size_t record; /* where the last record begins that does not stand anywhere, … */
    uint8_t type;  /* … its type, 0: there is none, … */
    uint32_t size; /* … and its size */
    bool ends;     /* they end with a marker */
};
/* False: they are no whole records. */
bool tl_stf_groups_look(const struct tl_stf_groups *groups, struct tl_bytes stf,
                        struct tl_stf_shape *out);

/* Bytes of `n` groups at `stf`, which must be whole. `pc` follows their addresses. */
size_t tl_stf_groups_pass(const struct tl_stf_groups *groups, const uint8_t *stf, uint32_t n,
                          struct tl_stf_pc *pc);

#endif
