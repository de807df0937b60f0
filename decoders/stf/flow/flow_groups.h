/* SPDX-License-Identifier: MIT */
/*
 * Whole groups: the records of each instruction of a trace from another producer, kept byte for
 * byte.
 *
 * Such a trace is converted to flow items like any other, for indexing and display; in addition its
 * blocks carry each instruction's original records (tl_block.whole), and when STF is written from
 * them those are copied, under the original header. Private to the project; not thread-safe.
 */
#ifndef TL_STF_FLOW_GROUPS_H
#define TL_STF_FLOW_GROUPS_H

#include "base/state.h"
#include "flow/block.h"
#include "stf/reader.h"

/* The trace that the groups belong to. All zero: empty. */
struct tl_stf_groups {
    struct tl_block_reported reported; /* referenced by its blocks */
    struct tl_stf_header header;
    struct tl_stf_layout layout; /* layout of its groups */
    struct tl_buf head;          /* the header's original records */
    bool ours;                   /* generated from flow items by us: it has no foreign groups */
};

void tl_stf_groups_fini(struct tl_stf_groups *groups);

/*
 * Add a header record; `header` shows when it is complete. Returns TL_BAD: not a trace; TL_NOMEM.
 */
TL_MUST_USE int tl_stf_groups_add(struct tl_stf_groups *groups, const struct tl_stf_record *record);

/*
 * Replace the header by the complete one at the start of `stf`. Returns its size in bytes; TL_BAD,
 * TL_NOMEM.
 */
TL_MUST_USE int tl_stf_groups_read(struct tl_stf_groups *groups, struct tl_bytes stf);

/* The groups of a block with `whole`. */
static inline const struct tl_stf_groups *tl_stf_groups_of(const struct tl_block *block)
{
    return (const struct tl_stf_groups *)block->reported;
}

/*
 * Position in the group at the start of `stf` at which to insert an EVENT with the current mode.
 * SIZE_MAX: none, because the group itself reports it, or STF cannot express the mode.
 */
size_t tl_stf_groups_mode(const struct tl_stf_groups *groups, struct tl_bytes stf, uint64_t mode);

/*
 * Text of a COMMENT before records that repeat the registers and address translation reported so
 * far; the number is their size in bytes.
 */
#define TL_STF_KNOWN_COMMENT "state so far, in %u bytes"

/* Position of these records in the group at the start of `stf`, with their `*size` including the
 * COMMENT; `*records` excludes it. SIZE_MAX: none. */
size_t tl_stf_groups_known(const struct tl_stf_groups *groups, struct tl_bytes stf, size_t *size,
                           struct tl_bytes *records);

/*
 * Position in the group at the start of `stf` of the inserted mode EVENT, and its `*size`;
 * SIZE_MAX: none. `mode`: the current mode, to recognise EVENTs without our extra fields, as older
 * versions wrote; NULL: the fields are present.
 */
size_t tl_stf_groups_mode_reported(const struct tl_stf_groups *groups, struct tl_bytes stf,
                                   const uint64_t *mode, uint32_t *size);

/* Save or restore. */
void tl_stf_groups_state(struct tl_stf_groups *groups, struct tl_state *state);
/* Layout of the records of groups. */
struct tl_stf_shape {
    uint32_t markers;
    size_t group;  /* offset of the last group */
    size_t record; /* offset of the last record that is subject to group order */
    uint8_t type;  /* its type; 0: none */
    uint32_t size; /* its size */
    bool ends;     /* the records end with a marker */
};
/* Returns false if these are not complete records. */
bool tl_stf_groups_look(const struct tl_stf_groups *groups, struct tl_bytes stf,
                        struct tl_stf_shape *out);

/* Is a record of this type allowed in a group? */
bool tl_stf_groups_has(uint8_t type);
/* Can current readers of instructions read this record of a group? They fail on reserved values,
 * and on records without a predecessor to refer to: `last` is the type of the record before it, of
 * those that are subject to group order. */
bool tl_stf_groups_readable(const struct tl_stf_record *record, uint8_t last);

/*
 * Size in bytes of the first `n` groups at `stf`, which must be complete. Updates `pc` along them.
 */
size_t tl_stf_groups_pass(const struct tl_stf_groups *groups, const uint8_t *stf, uint32_t n,
                          struct tl_stf_pc *pc);

#endif
