/* SPDX-License-Identifier: MIT */
/* The shard that is being built: its index, its closed chunks and the open one. For build.c. */
#ifndef TL_STORE_PART_H
#define TL_STORE_PART_H

#include "base/state.h"
#include "flow/callstack.h"
#include "store/codeset.h"
#include "store/itemlog.h"
#include "store/tally.h"
#include "store/view.h"

#define TL_PART_OFFSETS 10 /* a raw byte offset is noted every 2^10 positions */

/*
 * Instructions of one bucket that are not in it yet: by function and by page, each in the slot
 * that its low bits name. It stays theirs from one bucket to the next, with a count of 0; a slot
 * that nobody had yet has one that belongs elsewhere.
 */
#define TL_PART_SLOTS      512
#define TL_PART_PAGE_SLOTS 64

struct tl_part_run {
    uint64_t position; /* behind all that was counted, here and in buckets */
    uint64_t n;        /* of all */
    uint64_t taken;    /* branches */
    uint64_t privilege[4];
    uint32_t depth_min, depth_max;
    uint64_t used[TL_PART_SLOTS / 64]; /* a bit for each of `functions` that has any */
    uint64_t used_pages;
    struct tl_part_slot {
        uint32_t function;
        uint64_t counts; /* instructions, and in the upper half calls: added to together */
    } functions[TL_PART_SLOTS];
    struct {
        uint64_t page; /* pc >> 12 */
        uint64_t n;
    } pages[TL_PART_PAGE_SLOTS];
    /* Of the same functions, in buckets that have ended, and not yet told of. */
    struct {
        uint64_t n, calls;
    } ended[TL_PART_SLOTS];
};

/* Instructions up to the end of the run's bucket. */
static inline uint64_t tl_part_run_room(const struct tl_part_run *run)
{
    const uint64_t width = UINT64_C(1) << 2 * TL_LEVEL_STORED;
    return run->n > 0 && run->position % width == 0 ? 0 : width - run->position % width;
}

static inline void tl_part_run_add(struct tl_part_run *run, uint32_t function, uint64_t page,
                                   uint32_t n, bool called)
{
    const size_t f = function % TL_PART_SLOTS, p = page % TL_PART_PAGE_SLOTS;
    run->used[f / 64] |= UINT64_C(1) << f % 64;
    run->functions[f].counts += n | (uint64_t)called << 32;
    run->used_pages |= UINT64_C(1) << p;
    run->pages[p].n += n;
}

/* Are the slots of this function and page theirs? */
static inline bool tl_part_run_has(const struct tl_part_run *run, uint32_t function, uint64_t page)
{
    return run->functions[function % TL_PART_SLOTS].function == function &&
           run->pages[page % TL_PART_PAGE_SLOTS].page == page;
}

struct tl_part {
    struct tl_view *view; /* closed chunks and frames */
    struct tl_chunk open; /* code and items not filled in before it is closed */
    struct tl_itemlog log;
    struct tl_code_set code; /* what the open chunk has executed */
    uint32_t stamp;          /* of the open chunk, in blocks whose code it has */
    bool ghost;              /* nothing is packed or kept: the shard is in the store already */
    bool any;                /* there is an item or an instruction */
    size_t log_begin;        /* bytes of the log that say how the chunk begins */
    uint64_t log_bytes;      /* of all closed chunks, plain, without these */
    uint64_t offset_noted;   /* position >> TL_PART_OFFSETS of the last note of an offset */
    uint64_t last_position;  /* of the last marker, if row.markers > 0 */
    struct tl_part_run run;  /* not yet in its bucket */
    struct tl_tallying tallying;
    bool counted; /* by a census, whose tally the index has: `tallying` does not matter */
};

/* Begin a shard. NULL: no memory. */
struct tl_part *tl_part_new(uint64_t number, uint64_t position, const struct tl_flow_now *now);
/* Log how the open chunk begins, and with which call stack; before anything else of it. */
TL_MUST_USE int tl_part_begin(struct tl_part *part, const struct tl_callstack *calls);
void tl_part_free(struct tl_part *part); /* NULL is fine */
bool tl_part_is_empty(const struct tl_part *part);

/* Bytes of items in the open chunk's log: the same of a ghost. */
static inline size_t tl_part_logged(const struct tl_part *part)
{
    return part->log.bytes.n - part->log_begin;
}

/*
 * What decides where its chunks and the shard end, into bytes or, of a new part, from them: that is
 * a ghost then.
 */
void tl_part_state(struct tl_part *part, struct tl_state *state);
/* Append the log of closed chunk `i`, or of the open one behind these, packed. TL_NOMEM. */
TL_MUST_USE int tl_part_items(const struct tl_part *part, size_t i, struct tl_packer *packer,
                              struct tl_buf *out);

/* Make the slots of this function and page theirs; what was in them goes to the bucket that holds
 * `position`, which is the run's. */
TL_MUST_USE int tl_part_slots(struct tl_part *part, uint32_t function, uint64_t page,
                              uint64_t position);
/* Give the run to its bucket, where that ends or the chunk does. */
TL_MUST_USE int tl_part_settle(struct tl_part *part);
/* Count in the run, and in those that follow it. `privilege` > 3: not known. */
TL_MUST_USE int tl_part_count(struct tl_part *part, uint64_t n, uint32_t function, uint64_t page,
                              unsigned privilege, uint32_t depth);

/* Count `n` instructions as read from `pc` on, `size` bytes. */
TL_MUST_USE int tl_part_insns(struct tl_part *part, const struct tl_flow_now *now, uint64_t n,
                              uint64_t pc, uint64_t size, uint32_t function);
/* Keep an item; a `point` takes a position of its own, at `pc`. */
TL_MUST_USE int tl_part_item(struct tl_part *part, const struct tl_flow_now *now,
                             const struct tl_item *item, bool point, uint64_t pc,
                             uint32_t function);
/* Note that the instructions that follow are of this instruction set. */
TL_MUST_USE int tl_part_isa(struct tl_part *part, enum tl_isa isa);
/* Instructions of the packet at raw byte `offset` follow, here or from `position` on: noted now and
 * then. */
TL_MUST_USE int tl_part_offset(struct tl_part *part, uint64_t offset);
TL_MUST_USE int tl_part_offset_at(struct tl_part *part, uint64_t position, uint64_t offset);
/* The last instructions counted begin where their function does. */
void tl_part_called(struct tl_part *part, uint32_t function);
/* All is counted: into the index with it. */
void tl_part_tell(struct tl_part *part);
/* The last instruction changed the flow. */
void tl_part_taken(struct tl_part *part);

/*
 * End the open chunk and begin the next, whose markers lie in frame `stf`. `*log` is the ended
 * chunk's item log, borrowed, for whoever packs it; NULL: there is none.
 */
TL_MUST_USE int tl_part_next_chunk(struct tl_part *part, uint32_t stf,
                                   const struct tl_flow_now *now, struct tl_blob **log);
/* Add a frame of `plain` bytes of STF records (the blob is taken; of a ghost there is none), with
 * `marker` markers in front of it. */
TL_MUST_USE int tl_part_frame(struct tl_part *part, struct tl_blob *stf, size_t plain,
                              uint64_t marker, uint64_t pc);
/* End the last chunk and give the view away: it is complete. The part is then only freed. `*log`
 * as above. */
TL_MUST_USE int tl_part_complete(struct tl_part *part, struct tl_view **out, struct tl_blob **log);
/*
 * A copy as a view of its own. `stf`: the records of the open frame so far (n == 0: leave it
 * out), `positions`: how many of the shard's can be read.
 */
TL_MUST_USE int tl_part_snapshot(const struct tl_part *part, struct tl_bytes stf, uint64_t marker,
                                 uint64_t pc, uint64_t positions, struct tl_view **out);

#endif
