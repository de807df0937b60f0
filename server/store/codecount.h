/* SPDX-License-Identifier: MIT */
/*
 * How often code was run: runs of instructions one behind another, each of which ends at an
 * instruction at which a trace unit may say where the flow goes, or where a shard does; and taken
 * branches between them. At one address there may be code of several programs, so each counts for
 * the program that ran. Where another one goes on a run ends; a branch counts for the one that it
 * leaves.
 *
 * Their form in the store is the object "t/TRACE/GENERATION/STREAM/NUMBER.count":
 *
 *     u32 CRC32C of all behind it │ zstd frame of varints: version, instructions,
 *         n programs; of each which identifiers it has (1: context, 2: VMID), these, time,
 *             instructions
 *         n runs, n branches; of each its program less that of the one in front, its first address
 *             less that of the one in front, its last one less its first, and how often
 *
 * Not thread-safe.
 */
#ifndef TL_STORE_CODECOUNT_H
#define TL_STORE_CODECOUNT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/numbers.h"
#include "flow/item.h"
#include "image/image.h"
#include "store/pack.h"
#include "store/shard.h"

#include <stdbool.h>

#define TL_CODECOUNT_MOST     (UINT32_C(1) << 22) /* different runs, and different branches */
#define TL_CODECOUNT_PROGRAMS (UINT32_C(1) << 16)

/* A program: what is in memory for these identifiers, as long as the image does not change. */
struct tl_code_program {
    struct tl_image_context context;
    uint64_t time; /* at which it is there, in ticks as the image has them */
    uint64_t view; /* of the image; two programs differ in it or in `context` */
    uint64_t insns;
};

struct tl_codecount {
    struct tl_numbers addresses; /* numbers of all that is named below */
    struct tl_numbers runs;      /* from the first address to the last: tl_code_pair() */
    struct tl_numbers branches;  /* from the source to the destination */
    uint64_t *run_counts, *branch_counts;
    size_t cap_runs, cap_branches;
    struct tl_code_program *programs;
    size_t n_programs, cap_programs;
    uint64_t insns;
    bool truncated; /* there were more */
};

void tl_codecount_fini(struct tl_codecount *c);

/* Does an item of this kind end a run, so that it is not known how the flow goes on behind it?
 * `is_point`: tl_item_is_point(). */
static inline bool tl_codecount_stops(unsigned kind, bool is_point)
{
    return is_point || kind == TL_ITEM_GAP || kind == TL_ITEM_EXCEPTION || kind == TL_ITEM_TRACE_ON;
}

/* May another program run behind an item of this kind, behind which `now` holds? The one in front
 * runs up to `until`. */
static inline bool tl_codecount_switches(unsigned kind, const struct tl_flow_now *now,
                                         uint64_t until)
{
    return kind == TL_ITEM_CONTEXT || (kind == TL_ITEM_TIME && now->has_time && now->time >= until);
}

/* What a key of `runs` and `branches` stands for. */
struct tl_code_pair {
    uint32_t program; /* its place in `programs` */
    uint64_t from, to;
};
static inline struct tl_code_pair tl_code_pair(const struct tl_codecount *c, uint64_t key)
{
    return (struct tl_code_pair){key & 0xffff, c->addresses.keys[key >> 40],
                                 c->addresses.keys[key >> 16 & 0xffffff]};
}

/* Whose code runs where `now` holds; up to time `*until` it stays so if no identifier changes. */
struct tl_code_program tl_code_program_of(const struct tl_image *image,
                                          const struct tl_flow_now *now, uint64_t *until);
/* The place of a program in `programs`. TL_NO_NUMBER: there are too many. TL_NOMEM. */
TL_MUST_USE int tl_codecount_program(struct tl_codecount *c, const struct tl_code_program *program,
                                     uint32_t *number);
/* The number of a run, which has no count yet if it is new. TL_NO_NUMBER: there are too many.
 * TL_NOMEM. */
TL_MUST_USE int tl_codecount_number(struct tl_codecount *c, uint32_t program, uint64_t first,
                                    uint64_t last, uint32_t *number);
/* `n` more of a run, and of a branch, of a program. TL_NOMEM. */
typedef int tl_codecount_add_pair(struct tl_codecount *c, uint32_t program, uint64_t from,
                                  uint64_t to, uint64_t n);
TL_MUST_USE tl_codecount_add_pair tl_codecount_run, tl_codecount_branch;

#define TL_CODECOUNT_KIND "count" /* of the object: tl_shard_object_key() */
/* Append the object; runs and branches without a count stay out. TL_NOMEM. */
TL_MUST_USE int tl_codecount_encode(const struct tl_codecount *c, struct tl_packer *packer,
                                    struct tl_buf *out);
/* Add what an object says of a trace with this image (NULL: none). TL_NOTFOUND: it is damaged;
 * TL_UNSUPPORTED: it is of another version; TL_NOMEM. */
TL_MUST_USE int tl_codecount_decode(struct tl_codecount *c, const struct tl_image *image,
                                    struct tl_bytes object);

#endif
