/* SPDX-License-Identifier: MIT */
/*
 * The block cache: each basic block of the image is decoded once.
 *
 * A block runs from its entry to the first instruction that can change the flow (a waypoint),
 * to the end of the mapped region, or to TL_BLOCK_MAX instructions.
 *
 *     tl_block_cache_new(&cache, image, &options);
 *     struct tl_block *block = tl_block_get(cache, space, isa, pc);
 *     // block->n == 0: nothing is mapped there; else it ran, and block->target or the trace tells
 *     // where the flow goes on
 *     tl_block_cache_free(cache);
 *
 * A cache and all of its blocks belong to one thread; blocks live until the cache is freed or
 * reset. Who gets blocks in flow items (item.h) only reads them, and only while the items are
 * delivered; what it wants to remember of a block goes beside it, by the block's number.
 */
#ifndef TL_FLOW_BLOCK_H
#define TL_FLOW_BLOCK_H

#include "base/buf.h"
#include "image/image.h"
#include "isa/isa.h"

#define TL_BLOCK_MAX   4096 /* instructions */
#define TL_BLOCK_SLACK 64   /* bytes: a plain block's code may be read in pieces of this … */
#define TL_BLOCK_TAIL  32   /* … and so many bytes behind its end */
#define TL_BLOCK_CODE  64   /* bytes of an instruction in it, at most */
#define TL_NO_FUNCTION UINT32_MAX

struct tl_block;

/* How blocks are shown of a trace that says more of an instruction than that it ran. Common to all
 * blocks of that trace. */
struct tl_block_told {
    /* Append a line of flow text for each instruction, and what was told of it behind it. */
    int (*text)(const struct tl_block *block, uint32_t n, struct tl_buf *out);
};

/*
 * What sinks make of an instruction again and again, made once, when its block is decoded: writes
 * at most TL_BLOCK_CODE bytes for `size` bytes of code, whose value is `encoding` (of 2 and 4
 * bytes), and returns how many.
 */
typedef uint32_t tl_block_code(uint8_t *out, uint64_t pc, const uint8_t *code, uint32_t size,
                               uint32_t encoding, enum tl_isa isa);

enum tl_block_end {
    TL_BLOCK_WAYPOINT, /* `last` can change the flow */
    TL_BLOCK_UNMAPPED, /* the image ends behind the last instruction */
    TL_BLOCK_FULL      /* TL_BLOCK_MAX: goes on in the next block */
};

/*
 * How the flow goes on behind a block whose last instruction is reported as taken or not, in one
 * look: one of these, and TL_STEP_TAKEN if that changes the flow.
 */
enum tl_block_turn {
    TL_TURN_STRAIGHT = 0 << 1, /* for the next instruction */
    TL_TURN_BRANCH = 1 << 1,   /* along a direct branch within the instruction set, no call */
    TL_TURN_CALL = 2 << 1,     /* along a direct call within the instruction set */
    TL_TURN_OTHER = 3 << 1,    /* none of these: see the other members */
    TL_TURN_RETURN = 4 << 1,   /* by a return from a call */
    TL_TURN_INDIRECT = 5 << 1  /* by another indirect branch, no call */
};

/* What must be told to go on behind a block, if the trace tells no more than it must. */
enum tl_block_waits {
    TL_WAITS_OTHER,    /* for an address behind a trap or the like, or it cannot be gone on */
    TL_WAITS_ADDRESS,  /* of an indirect branch that is no return */
    TL_WAITS_NOTHING,  /* a direct branch or call without condition, or no branch at all */
    TL_WAITS_STRAIGHT, /* the same, for TL_BLOCK_FULL */
    TL_WAITS_OUTCOME,  /* was its branch taken? */
    TL_WAITS_RETURN    /* an address, or that the return stack has it */
};

/* In the low bit of a path's step, above which is its block's address: the block's last instruction
 * changed the flow. */
#define TL_STEP_TAKEN 1u

/* How an instruction was left, for whoever follows calls. */
enum tl_leave {
    TL_LEAVE_STRAIGHT, /* for the next instruction, or it is a branch that was not taken */
    TL_LEAVE_JUMP,     /* a direct branch */
    TL_LEAVE_INDIRECT, /* an indirect branch that is neither call nor return */
    TL_LEAVE_CALL,
    TL_LEAVE_RETURN,
    TL_LEAVE_EXCEPTION,
    TL_LEAVE_EXCEPTION_RETURN,
    TL_LEAVE_LOST /* not known */
};

/* What is read at every step comes first, and lies in one cache line. */
struct tl_block {
    uint64_t pc;
    union {
        struct tl_block *go[2]; /* where the flow went last time; [1]: behind what was taken */
        const struct tl_block_told *told; /* if `whole` */
    };
    /*
     * What a tl_block_code made of the instructions, one behind another, ready to be copied; NULL:
     * there is none. If `whole`: all that was told of them in the trace that this one was made
     * from, which `told` reads.
     */
    const uint8_t *coded;
    uint32_t coded_size;
    uint32_t last_coded; /* bytes of the last instruction's */
    uint32_t n;          /* instructions, 0 if nothing is mapped at pc */
    uint32_t size;       /* bytes */
    uint32_t function;   /* index of its symbol in the image, or TL_NO_FUNCTION */
    /* Process-unique, so that sinks can keep what they know of the block beside it; wraps at 2^32,
     * and is 0 of blocks that are made for one delivery. */
    uint32_t number;
    uint8_t turn[2];     /* enum tl_block_turn; [1]: if the last instruction was taken */
    uint8_t isa;         /* enum tl_isa */
    uint8_t leave;       /* enum tl_leave of the last instruction, if it was taken */
    bool traps : 1;      /* one of its instructions is a trap, or undefined */
    bool entry : 1;      /* it begins where its function does */
    bool odd;            /* the last instruction has neither 2 nor 4 bytes */
    uint8_t plain;       /* `isa`, if TL_BLOCK_SLACK and TL_BLOCK_TAIL hold for `coded`, and it is
                            not `odd`, or x86 */
    uint8_t waits;       /* enum tl_block_waits */
    uint8_t end;         /* enum tl_block_end */
    uint8_t last_kind;   /* enum tl_insn_kind of the last instruction */
    uint8_t last_size;   /* bytes of the last instruction */
    uint8_t target_isa;  /* enum tl_isa at target */
    bool conditional;    /* the last instruction may not take its branch */
    bool link;           /* the last instruction is a call */
    bool is_return;      /* the last instruction returns from a call */
    bool always;         /* the last instruction is a direct branch without condition that is no
                            call; that it is in an IT block does not matter */
    bool whole;          /* `coded` holds all that was told of its instructions */
    uint64_t target;     /* of the last instruction, if it is a direct branch */
    const uint8_t *code; /* the instructions' bytes in memory order; borrowed from the image */
};

/* An empty block at `pc`, to which instructions are to be added: TL_BLOCK_FULL, of no function. */
static inline void tl_block_init(struct tl_block *block, uint64_t pc, enum tl_isa isa)
{
    *block = (struct tl_block){.pc = pc,
                               .isa = (uint8_t)isa,
                               .target_isa = (uint8_t)isa,
                               .end = TL_BLOCK_FULL,
                               .function = TL_NO_FUNCTION};
}

/* `last` is the block's last instruction: set what is told of it, but for sizes. */
void tl_block_set_last(struct tl_block *block, const struct tl_insn *last);

struct tl_block_cache;

/* `image` is borrowed and must be frozen. `options` is copied. */
TL_MUST_USE int tl_block_cache_new(struct tl_block_cache **out, const struct tl_image *image,
                                   const struct tl_isa_options *options);
void tl_block_cache_free(struct tl_block_cache *cache);

/* Blocks that are decoded from now on have this; none in a new cache. */
void tl_block_cache_code(struct tl_block_cache *cache, tl_block_code *code);

/*
 * Memory in use, in bytes, and how to give it back. Each entry point into mapped code makes a
 * block, so damaged trace can make very many: the owner looks at the size between items, and
 * resets the cache (all its blocks are gone then) where it is more than it likes.
 */
size_t tl_block_cache_bytes(const struct tl_block_cache *cache);
void tl_block_cache_reset(struct tl_block_cache *cache);

/*
 * The image's view that blocks are taken from, from now on: see tl_image_view(). Blocks of another
 * view stay, but must not be linked with those of this one. 0 in a new cache.
 */
void tl_block_cache_view(struct tl_block_cache *cache, uint64_t view);

/*
 * The block that begins at `pc`, decoded on first use. `space` is one tl_space bit or
 * TL_SPACE_ANY. A block with n == 0 says that nothing is mapped. NULL: out of memory.
 */
struct tl_block *tl_block_get(struct tl_block_cache *cache, unsigned space, enum tl_isa isa,
                              uint64_t pc);

/* Addresses at which nothing is mapped. */
struct tl_unmapped_range {
    uint64_t first, last;
    uint64_t view;
    unsigned space; /* 0: there is none */
};

/*
 * The unmapped range that `pc` is in, in the view in force, if a block was asked for there and is
 * still remembered; else NULL. Valid until a block is asked for.
 */
const struct tl_unmapped_range *tl_block_unmapped_at(const struct tl_block_cache *cache,
                                                     unsigned space, uint64_t pc);

/*
 * Walk a block's instructions: decode the one at byte `at` of the block. For text, tools and
 * statistics; not for the hot path. A block's only instruction has the block's size, whatever its
 * encoding looks like.
 */
void tl_block_insn(const struct tl_block *block, uint32_t at, struct tl_insn *out);

/* Bytes of the block's first `n` instructions. */
uint32_t tl_block_bytes(const struct tl_block *block, uint32_t n);
/* Instructions from the block's start up to `pc`, or -1 if none begins or ends there. */
int64_t tl_block_count_to(const struct tl_block *block, uint64_t pc);

#endif
