/* SPDX-License-Identifier: MIT */
/*
 * Reads shards back into flow items: the inverse of build.h, chunk by chunk. Not thread-safe.
 *
 * Instructions come as TL_ITEM_BLOCK items of consecutive addresses, with a block made for the
 * purpose (pc, n, size, isa, code, stf and what is known of its last instruction), whole where
 * the trace came as STF; everything else as it was delivered when the shard was built. An item's
 * offset is that of its packet, of a BLOCK that of the nearest mark before it.
 */
#ifndef TL_STORE_WALK_H
#define TL_STORE_WALK_H

#include "setup/setup.h"
#include "stf/close.h"
#include "stf/flow_groups.h"
#include "store/view.h"

/* An instruction as it is told to a walk's `each`. */
struct tl_walk_insn {
    uint64_t pc;
    uint32_t opcode;
    uint8_t size;
    uint8_t isa;                        /* enum tl_isa */
    const uint8_t *code;                /* its bytes in memory order */
    struct tl_bytes group;              /* all its records, where others wrote the trace */
    const struct tl_stf_layout *layout; /* theirs */
};

/* What is wanted of instructions: the less, the faster. */
enum tl_walk_detail {
    TL_WALK_ALL,   /* blocks say all … */
    TL_WALK_FLOW,  /* … but their code, and their STF is where it was read: tl_walk_insn() … */
    TL_WALK_SPANS, /* … nor what their last instruction is */
    TL_WALK_ITEMS  /* there are no blocks */
};

#define TL_WALK_LASTS 256 /* remembered */

/* What an instruction is that a block ended with. */
struct tl_walk_last {
    uint64_t pc;
    uint32_t opcode;
    uint8_t size; /* 2 or 4; 0: there is none */
    uint8_t isa;
    struct tl_insn insn;
};

struct tl_stf_known;

struct tl_walk {
    /*
     * For who looks at very many instructions: each one is told to it, and blocks only say where
     * they begin, how long they are and whether their end was taken. NULL: see `detail`.
     */
    void (*each)(void *context, const struct tl_walk_insn *insn);
    void *context;
    enum tl_walk_detail detail;
    /* TL_WALK_SPANS: blocks that do not reach into addresses [pc_from, pc_to) may be left out.
     * pc_to == 0: none is. */
    uint64_t pc_from, pc_to;
    /* The result, until the next call: */
    struct tl_item *items;
    uint64_t *positions; /* of each item; a BLOCK's is that of its first instruction */
    size_t n;
    struct tl_bytes stack;  /* call stack where the chunk begins (stackmark.h); n == 0: none */
    struct tl_flow_now now; /* what is in force in front of the first item */
    /* Its own: */
    size_t cap_items, cap_positions;
    struct tl_block *blocks;
    size_t n_blocks, cap_blocks;
    size_t last_block;       /* the last one's item */
    struct tl_buf code, stf; /* of all blocks */
    struct tl_buf log, frame;
    struct tl_stf_groups groups; /* the header of `headed`, … */
    struct tl_view *headed;      /* referenced; NULL: no view whose header matters … */
    size_t head;                 /* … and its size */
    bool whole;                  /* blocks have whole groups */
    struct tl_view *view;        /* whose frame it is; referenced */
    size_t frame_number;
    size_t at;       /* byte in the frame of the next marker's group … */
    uint64_t marker; /* … its number in the shard … */
    uint64_t pc;     /* … and address */
    struct tl_walk_last lasts[TL_WALK_LASTS];
};

/* A zeroed walk is ready. */
void tl_walk_fini(struct tl_walk *walk);
/* For who takes a while over the result: give back what only the next chunk of the same frame would
 * use again, and takes as much memory as all else. Not if blocks are spans or told one by one. */
void tl_walk_slim(struct tl_walk *walk);

/* What to read of a chunk. */
struct tl_walk_range {
    uint64_t from, to; /* positions [from, to) */
    bool tail;         /* items behind the last position too */
    enum tl_protocol protocol;
};

/*
 * Items of chunk `chunk` of `view` at the positions asked for. TL_BAD: the shard is damaged;
 * TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_walk_chunk(struct tl_walk *walk, struct tl_view *view, size_t chunk,
                              const struct tl_walk_range *range, struct tl_fail *fail);

/*
 * Know the header of the view's shard, into walk->groups: whether its groups are whole, and how
 * they are laid out. TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_walk_head(struct tl_walk *walk, struct tl_view *view, struct tl_fail *fail);

/*
 * What the trace told of registers and page walks in front of instruction `markers` of the view's
 * shard, as far as the shard knows, into `known`, which is empty. Reads the shard up to there, if
 * that tells of any. TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_walk_known(struct tl_walk *walk, struct tl_view *view, uint64_t markers,
                              struct tl_stf_known *known, struct tl_fail *fail);

/* ---- instruction by instruction ----------------------------------------------------------- */

/* An instruction, out of its group of records. */
struct tl_walk_step {
    uint64_t pc;
    uint64_t next; /* where the flow goes */
    uint32_t opcode;
    uint8_t size;                  /* bytes of the instruction */
    uint8_t code[TL_STF_INSN_MAX]; /* if size is not 2 or 4; else see tl_walk_code() */
    bool taken;                    /* it says where it leads to */
    struct tl_bytes group;         /* all its records */
};

/*
 * The instruction whose group begins at `in`, as a walk reads it that stands at `pc`; `whole`:
 * others wrote the group. Returns its size in bytes, or TL_BAD.
 */
TL_MUST_USE int tl_walk_step(const struct tl_stf_layout *layout, uint8_t isa, bool whole,
                             struct tl_bytes in, uint64_t pc, struct tl_walk_step *out);
/* The next instruction of a block of TL_WALK_FLOW or TL_WALK_SPANS, until the next chunk is walked:
 * `*at` is its place, 0 of the first, and moves on. TL_BAD: there is none. */
TL_MUST_USE int tl_walk_insn(const struct tl_walk *walk, const struct tl_block *block, size_t *at,
                             uint64_t pc, struct tl_walk_step *out);
/* Fill in the bytes of an instruction of usual size: they are those of its encoding. */
void tl_walk_code(struct tl_walk_step *insn, uint8_t isa);

/* Name each block's function: the image's symbol that covers its first instruction then. */
void tl_walk_functions(struct tl_walk *walk, const struct tl_image *image);

#endif
