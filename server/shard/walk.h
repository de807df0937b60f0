/* SPDX-License-Identifier: MIT */
/*
 * Reads shards back into flow items: the inverse of build.h, chunk by chunk. Not thread-safe.
 *
 * Instructions are returned as TL_ITEM_BLOCK items of consecutive addresses, with temporary blocks
 * (pc, n, size, isa, code, stf and the properties of the last instruction), `whole` if the trace
 * was imported as STF; everything else as it was passed to the builder. An item's offset is that of
 * its packet, a BLOCK's that of the nearest preceding aside.
 */
#ifndef TL_SHARD_WALK_H
#define TL_SHARD_WALK_H

#include "setup/setup.h"
#include "shard/view.h"
#include "stf/close.h"
#include "stf/flow/flow_groups.h"

/* An instruction as passed to a walk's `each`. */
struct tl_walk_insn {
    uint64_t pc;
    uint32_t opcode;
    uint8_t size;
    uint8_t isa;                        /* enum tl_isa */
    const uint8_t *code;                /* encoding in memory order */
    struct tl_bytes group;              /* all its records, if the STF was imported */
    const struct tl_stf_layout *layout; /* layout of the records */
};

/* Required detail of instructions: less is faster. */
enum tl_walk_detail {
    TL_WALK_ALL,   /* complete blocks */
    TL_WALK_FLOW,  /* without code; STF is read by tl_walk_insn(), whose last `next` of a block may
                      be another time's */
    TL_WALK_SPANS, /* also without the last instruction's properties */
    TL_WALK_ITEMS  /* no blocks */
};

#define TL_WALK_LASTS 256 /* cache size */

/* Decoded last instruction of a block. */
struct tl_walk_last {
    uint64_t pc;
    uint32_t opcode;
    uint8_t size; /* 2 or 4; 0: free entry */
    uint8_t isa;
    struct tl_insn insn;
};

struct tl_stf_known;
struct tl_walk_kept;

struct tl_walk {
    /*
     * For scanning very many instructions: receives each one, and blocks only contain their begin,
     * length and whether their end was taken. NULL: see `detail`.
     */
    void (*each)(void *context, const struct tl_walk_insn *insn);
    void *context;
    enum tl_walk_detail detail;
    /* Blocks have the function that covers their first instruction at that time; NULL: none. */
    const struct tl_image *image;
    /* TL_WALK_SPANS: blocks outside of addresses [pc_from, pc_to) may be omitted. pc_to == 0: none
     * is. */
    uint64_t pc_from, pc_to;
    /* Result, valid until the next call: */
    struct tl_item *items;
    uint64_t *positions; /* of each item; a BLOCK's is that of its first instruction */
    size_t n;
    struct tl_bytes stack;  /* call stack at the chunk's begin (savedstack.h); n == 0: none */
    struct tl_flow_now now; /* state before the first item */
    /* Private: */
    size_t cap_items, cap_positions;
    struct tl_block *blocks;
    size_t n_blocks, cap_blocks;
    size_t last_block;       /* index of the last block's item */
    struct tl_buf code, stf; /* of all blocks */
    struct tl_buf log, frame;
    struct tl_stf_groups groups; /* parsed header of `headed` */
    struct tl_view *headed;      /* referenced; NULL: no view whose header matters */
    size_t head;                 /* size of that header */
    bool whole;                  /* blocks consist of whole groups */
    struct tl_view *view;        /* view that `frame` belongs to; referenced */
    size_t frame_number;
    size_t at;       /* byte in the frame of the next marker's group */
    uint64_t marker; /* number of that marker in the shard */
    uint64_t pc;     /* its address */
    struct tl_walk_last lasts[TL_WALK_LASTS];
    struct tl_walk_kept *kept; /* walk_kept.h; NULL: nothing needs it */
};

/* Free. A zero-initialised walk is ready for use. */
void tl_walk_fini(struct tl_walk *walk);
/* Before keeping a result for longer: free memory that only the next chunk of the same frame would
 * reuse, about as much as everything else. Not with TL_WALK_SPANS or `each`. */
void tl_walk_slim(struct tl_walk *walk);

/* The part of a chunk to read. */
struct tl_walk_range {
    uint64_t from, to; /* positions [from, to) */
    bool tail;         /* also items after the last position */
    enum tl_protocol protocol;
};

/*
 * Read the items of chunk `chunk` of `view` at the requested positions. TL_BAD: the shard is
 * damaged; TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_walk_chunk(struct tl_walk *walk, struct tl_view *view, size_t chunk,
                              const struct tl_walk_range *range, struct tl_fail *fail);

/*
 * Parse the header of the view's shard into walk->groups: whether groups are whole, and their
 * layout. TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_walk_head(struct tl_walk *walk, struct tl_view *view, struct tl_fail *fail);

/*
 * Collect the registers and page walks recorded before instruction `markers` of the view's shard,
 * as far as the shard has them, into `known`, which is empty. Reads the shard up to there, if it
 * has any. TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_walk_known(struct tl_walk *walk, struct tl_view *view, uint64_t markers,
                              struct tl_stf_known *known, struct tl_fail *fail);

/* ---- instruction by instruction ----------------------------------------------------------- */

/* An instruction extracted from its group of records. */
struct tl_walk_step {
    uint64_t pc;
    uint64_t next; /* address of the next instruction */
    uint32_t opcode;
    uint8_t size;                  /* length of the instruction in bytes */
    uint8_t code[TL_STF_INSN_MAX]; /* if size is not 2 or 4; otherwise see tl_walk_code() */
    bool taken;                    /* the branch target is recorded, or it leaves: */
    bool leaves;                   /* it changed the flow, but is no branch */
    bool faulted;                  /* an exception prevented its execution, or it caused one */
    struct tl_bytes group;         /* all its records */
};

/*
 * Extract the instruction whose group begins at `in`, for a walk that is at `pc`; `whole`: the
 * group was imported. Returns the group's size in bytes, or TL_BAD.
 */
TL_MUST_USE int tl_walk_step(const struct tl_stf_layout *layout, uint8_t isa, bool whole,
                             struct tl_bytes in, uint64_t pc, struct tl_walk_step *out);
/* Get the next instruction of a block with TL_WALK_FLOW or TL_WALK_SPANS, before the next chunk is
 * walked. `*at` is its place, initially 0, and is advanced. TL_BAD: there is none. */
TL_MUST_USE int tl_walk_insn(const struct tl_walk *walk, const struct tl_block *block, size_t *at,
                             uint64_t pc, struct tl_walk_step *out);
/* Fill in the bytes of a 2- or 4-byte instruction from its encoding. */
void tl_walk_code(struct tl_walk_step *insn, uint8_t isa);

#endif
