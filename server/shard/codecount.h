/* SPDX-License-Identifier: MIT */
/*
 * Execution counts of code: runs of consecutive instructions, each ending at an instruction where a
 * trace unit can report a change of flow, or where a shard ends; and taken branches between them.
 * Several programs may have code at the same address, so counts are per program. A run ends when
 * another program continues; a branch counts for the program that it leaves.
 *
 * Stored as the object "t/TRACE/GENERATION/STREAM/NUMBER.count":
 *
 *     u32 CRC32C of everything after it │ zstd frame of varints: version, instructions,
 *         n programs; for each the identifiers it has (1: context, 2: VMID), these, time,
 *             instructions
 *         n runs, n branches, sorted by program and addresses; of all of them, one after another,
 *             the difference of the program to the previous one's, then the difference of the first
 *             address to the previous one's, then the last address less the first, then the count
 *
 * Not thread-safe.
 */
#ifndef TL_SHARD_CODECOUNT_H
#define TL_SHARD_CODECOUNT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/numbers.h"
#include "flow/item.h"
#include "image/image.h"
#include "shard/pack.h"
#include "shard/shard.h"

#include <stdbool.h>

#define TL_CODECOUNT_MAX      (UINT32_C(1) << 22) /* maximum distinct runs, and distinct branches */
#define TL_CODECOUNT_PROGRAMS (UINT32_C(1) << 16) /* maximum programs */

/* A program: the memory contents for these identifiers, as long as the image does not change. */
struct tl_code_program {
    struct tl_image_context context;
    uint64_t time; /* a time at which it is mapped, in ticks as in the image */
    uint64_t view; /* of the image; two programs differ in it or in `context` */
    uint64_t insns;
};

struct tl_codecount {
    struct tl_numbers addresses; /* numbering of all addresses below */
    struct tl_numbers runs;      /* from the first address to the last: tl_code_pair() */
    struct tl_numbers branches;  /* from source to destination */
    uint64_t *run_counts, *branch_counts;
    size_t cap_runs, cap_branches;
    struct tl_code_program *programs;
    size_t n_programs, cap_programs;
    struct tl_numbers program_keys; /* index in `programs` by a hash of the program */
    uint64_t insns;
    bool truncated; /* some entries were dropped */
    bool behind;    /* part of the range is still being indexed, and not counted */
};

void tl_codecount_fini(struct tl_codecount *c);

/* Does an item of this kind end a run, because it is unknown how the flow continues? `is_point`:
 * tl_item_is_point(). */
static inline bool tl_codecount_stops(unsigned kind, bool is_point)
{
    return is_point || kind == TL_ITEM_GAP || kind == TL_ITEM_EXCEPTION || kind == TL_ITEM_TRACE_ON;
}

/* Can another program be current after an item of this kind, with `now` the state after it? The
 * previous program lasts until time `until`. */
static inline bool tl_codecount_switches(unsigned kind, const struct tl_flow_now *now,
                                         uint64_t until)
{
    return kind == TL_ITEM_CONTEXT || (kind == TL_ITEM_TIME && now->has_time && now->time >= until);
}

/* Decoded key of `runs` and `branches`. */
struct tl_code_pair {
    uint32_t program; /* index into `programs` */
    uint64_t from, to;
};
static inline struct tl_code_pair tl_code_pair(const struct tl_codecount *c, uint64_t key)
{
    const uint32_t from = key & 0xffffff, to = (from + (key >> 24)) & 0xffffff;
    return (struct tl_code_pair){(uint32_t)(key >> 48), c->addresses.keys[from],
                                 c->addresses.keys[to]};
}
/* The key, from the numbers of two addresses. Those of neighbouring runs differ little. */
static inline uint64_t tl_code_pair_key(uint32_t program, uint32_t from, uint32_t to)
{
    return (uint64_t)program << 48 | (uint64_t)((to - from) & 0xffffff) << 24 | from;
}

/* The program current in state `now`; valid until time `*until` if no identifier changes. */
struct tl_code_program tl_code_program_of(const struct tl_image *image,
                                          const struct tl_flow_now *now, uint64_t *until);
/* Index of a program in `programs`. TL_NO_NUMBER: too many. TL_NOMEM. */
TL_MUST_USE int tl_codecount_program(struct tl_codecount *c, const struct tl_code_program *program,
                                     uint32_t *number);
/* Number of a run; a new one has no count yet. TL_NO_NUMBER: too many. TL_NOMEM. */
TL_MUST_USE int tl_codecount_number(struct tl_codecount *c, uint32_t program, uint64_t first,
                                    uint64_t last, uint32_t *number);
/* Add `n` to the count of a run, from its first to its last instruction, or of a branch. TL_NOMEM.
 */
typedef int tl_codecount_add_pair(struct tl_codecount *c, uint32_t program, uint64_t from,
                                  uint64_t to, uint64_t n);
TL_MUST_USE tl_codecount_add_pair tl_codecount_run, tl_codecount_branch;

#define TL_CODECOUNT_KIND "count" /* kind of the object: tl_shard_object_key() */
/* Append the object; runs and branches without a count are omitted. TL_NOMEM. */
TL_MUST_USE int tl_codecount_encode(const struct tl_codecount *c, struct tl_packer *packer,
                                    struct tl_buf *out);
/* Add an object's contents, for a trace with this image (NULL: none). TL_NOTFOUND: it is damaged;
 * TL_UNSUPPORTED: another version; TL_NOMEM. */
TL_MUST_USE int tl_codecount_decode(struct tl_codecount *c, const struct tl_image *image,
                                    struct tl_bytes object);

#endif
