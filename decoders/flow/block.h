/* SPDX-License-Identifier: MIT */
/*
 * The block cache: decodes each basic block of the image once.
 *
 * A block runs from its entry to the first instruction that can change the flow (a waypoint), to
 * the end of the mapped region, or to TL_BLOCK_MAX instructions, or a few less: an IT block and a
 * RISC-V pair of LUI or AUIPC and a jump are never divided.
 *
 *     tl_block_cache_new(&cache, image, &options);
 *     struct tl_block *block = tl_block_get(cache, space, isa, pc);
 *     // block->n == 0: nothing is mapped there; otherwise block->target or the trace gives the
 *     // address of the next block
 *     tl_block_cache_free(cache);
 *
 * A cache and its blocks belong to one thread; blocks live until the cache is freed or reset. A
 * sink that receives blocks in flow items (item.h) must only read them, and only during the
 * delivery. To remember something about a block it keeps its own table, indexed by the block's
 * number.
 */
#ifndef TL_FLOW_BLOCK_H
#define TL_FLOW_BLOCK_H

#include "base/buf.h"
#include "image/image.h"
#include "isa/isa.h"

#define TL_BLOCK_MAX 4096 /* instructions */
/* Bytes. A plain block's `coded` may be read in chunks of TL_BLOCK_SLACK, and up to TL_BLOCK_TAIL
 * past its end. */
#define TL_BLOCK_SLACK 64
#define TL_BLOCK_TAIL  32
#define TL_BLOCK_CODE  64 /* bytes that a tl_block_code writes per instruction, at most */
#define TL_NO_FUNCTION UINT32_MAX

struct tl_block;

/* How to print the blocks of a trace that records more about an instruction than its execution
 * (operands, data). Shared by all blocks of that trace. */
struct tl_block_reported {
    /* Append a line of flow text per instruction, each followed by what was recorded about it. */
    int (*text)(const struct tl_block *block, uint32_t n, struct tl_buf *out);
};

/*
 * Encode an instruction in the form a sink needs repeatedly. Called once per instruction, when its
 * block is decoded. `code` has `size` bytes; `encoding` is their value (instructions of 2 and 4
 * bytes only). Writes at most TL_BLOCK_CODE bytes to `out` and returns how many.
 */
typedef uint32_t tl_block_code(uint8_t *out, uint64_t pc, const uint8_t *code, uint32_t size,
                               uint32_t encoding, enum tl_isa isa);

enum tl_block_end {
    TL_BLOCK_WAYPOINT, /* the last instruction can change the flow */
    TL_BLOCK_UNMAPPED, /* the image ends after the last instruction */
    TL_BLOCK_FULL      /* TL_BLOCK_MAX reached; the next block continues */
};

/*
 * Where execution continues after a block, given that its last instruction was reported taken or
 * not taken. Combined with the step's bits, so that one table lookup gives both: TL_STEP_TAKEN if
 * that outcome changes the flow, TL_STEP_OUT.
 */
enum tl_block_turn {
    TL_TURN_STRAIGHT = 0 << 2, /* at the next instruction */
    /* at the target of a direct branch in the same instruction set, not a call */
    TL_TURN_BRANCH = 1 << 2,
    TL_TURN_CALL = 2 << 2,    /* at the target of a direct call in the same instruction set */
    TL_TURN_OTHER = 3 << 2,   /* none of these: examine the block's other members */
    TL_TURN_RETURN = 4 << 2,  /* at a return address */
    TL_TURN_INDIRECT = 5 << 2 /* at the target of any other indirect branch, not a call */
};

/* What the trace must supply to continue after a block, if it supplies only what it has to. */
enum tl_block_waits {
    TL_WAITS_OTHER,    /* an address (after a trap or similar), or the flow cannot be followed */
    TL_WAITS_ADDRESS,  /* the target address of an indirect branch that is not a return */
    TL_WAITS_NOTHING,  /* nothing: an unconditional direct branch or call, or no branch */
    TL_WAITS_STRAIGHT, /* nothing: the block ended as TL_BLOCK_FULL */
    TL_WAITS_OUTCOME,  /* the outcome of a conditional branch */
    TL_WAITS_RETURN    /* an address, or an outcome that says to use the return stack */
};

/* Low bits of a path step; the others are the block's address. TAKEN: the block's last instruction
 * changed the flow. OUT: frames of a call stack may change behind the step: it calls, returns,
 * branches indirectly, or leads to code of another function, or the code does not say where to. */
#define TL_STEP_TAKEN 1u
#define TL_STEP_OUT   2u
#define TL_STEP_BITS  (TL_STEP_TAKEN | TL_STEP_OUT)

/* How execution left an instruction, for call stacks. */
enum tl_leave {
    TL_LEAVE_STRAIGHT, /* to the next instruction, including a branch not taken */
    TL_LEAVE_JUMP,     /* by a direct branch */
    TL_LEAVE_INDIRECT, /* by an indirect branch that is neither call nor return */
    TL_LEAVE_CALL,
    TL_LEAVE_RETURN,
    TL_LEAVE_EXCEPTION,
    TL_LEAVE_EXCEPTION_RETURN,
    TL_LEAVE_LOST, /* unknown */
    TL_LEAVE_OFF   /* the operating system took over, which is not traced */
};

/* Members read at every step come first and share a cache line. */
struct tl_block {
    uint64_t pc;
    union {
        struct tl_block *go[2]; /* successor last time; [1]: after a taken branch */
        const struct tl_block_reported *reported; /* if `whole` */
    };
    /*
     * Output of the tl_block_code for all instructions, concatenated and ready to be copied; NULL
     * if there is none. If `whole`: everything the source trace recorded about them, in the form
     * that `reported` reads.
     */
    const uint8_t *coded;
    uint32_t coded_size;
    uint32_t last_coded; /* bytes of the last instruction in `coded` */
    uint32_t n;          /* instructions; 0: nothing is mapped at pc */
    uint32_t size;       /* bytes */
    uint32_t function;   /* index of its symbol in the image, or TL_NO_FUNCTION */
    /* Process-unique, so that sinks can index their own tables by it; wraps at 2^32. 0 for blocks
     * built for a single delivery. */
    uint32_t number;
    uint8_t turn[2]; /* enum tl_block_turn; [0]: last instruction not taken, [1]: taken */
    uint8_t isa;     /* enum tl_isa */
    uint8_t leave;   /* enum tl_leave of the last instruction, if taken */
    bool traps : 1;  /* contains a trap or an undefined instruction */
    bool entry : 1;  /* begins at its function's entry */
    bool binds : 1;  /* contains an instruction with tl_insn.binds */
    bool odd;        /* the last instruction is not 2 or 4 bytes long */
    uint8_t plain;   /* `isa` if TL_BLOCK_SLACK and TL_BLOCK_TAIL hold for `coded`, the block is x86
                        or not `odd`, and does not end with an exception return; else TL_ISA_NONE */
    uint8_t waits;   /* enum tl_block_waits */
    uint8_t end;     /* enum tl_block_end */
    uint8_t last_kind;  /* enum tl_insn_kind of the last instruction */
    uint8_t last_size;  /* bytes of the last instruction */
    uint8_t target_isa; /* enum tl_isa at target */
    bool conditional;   /* the last instruction is a conditional branch */
    bool link;          /* the last instruction is a call */
    bool is_return;     /* the last instruction returns from a call */
    bool always; /* the last instruction is an unconditional direct branch, not a call; IT blocks
                    are disregarded */
    bool whole;  /* `coded` holds everything recorded about the instructions */
    uint64_t target;     /* of the last instruction if it is a direct branch */
    const uint8_t *code; /* the instructions' bytes in memory order; borrowed from the image */
};

/*
 * Does the last instruction change the flow whenever it is executed? Where it may be in an IT block
 * (T32) of which the block does not have the beginning, it may not.
 */
static inline bool tl_block_turns_always(const struct tl_block *b)
{
    enum { IT_MAX = 4 };
    return b->end == TL_BLOCK_WAYPOINT && !b->conditional &&
           (b->last_kind == TL_INSN_BRANCH || b->last_kind == TL_INSN_INDIRECT ||
            b->last_kind == TL_INSN_RETURN_EX) &&
           (b->isa != TL_ISA_T32 || b->n > IT_MAX);
}

/* Initialise an empty block at `pc` to add instructions to: TL_BLOCK_FULL, without a function. */
static inline void tl_block_init(struct tl_block *block, uint64_t pc, enum tl_isa isa)
{
    *block = (struct tl_block){.pc = pc,
                               .isa = (uint8_t)isa,
                               .target_isa = (uint8_t)isa,
                               .end = TL_BLOCK_FULL,
                               .function = TL_NO_FUNCTION};
}

/* Set all members that describe the block's last instruction, `last`, except sizes. */
void tl_block_set_last(struct tl_block *block, const struct tl_insn *last);

struct tl_block_cache;

/* Create a cache. `image` is borrowed and must be frozen; `options` is copied. Returns TL_NOMEM. */
TL_MUST_USE int tl_block_cache_new(struct tl_block_cache **out, const struct tl_image *image,
                                   const struct tl_isa_options *options);
void tl_block_cache_free(struct tl_block_cache *cache);

/* Set the encoder for `coded` of blocks decoded from now on. A new cache has none. */
void tl_block_cache_code(struct tl_block_cache *cache, tl_block_code *code);

/* The begin of each cache. */
struct tl_block_cache_size {
    size_t bytes;
};

/*
 * Memory in use in bytes, and how to release it. Each entry point into mapped code creates a block,
 * so damaged trace can create very many: the owner checks the size between items and resets the
 * cache, which frees all its blocks, when it exceeds the owner's limit.
 */
static inline size_t tl_block_cache_bytes(const struct tl_block_cache *cache)
{
    return ((const struct tl_block_cache_size *)cache)->bytes;
}
void tl_block_cache_reset(struct tl_block_cache *cache);

/*
 * Set the view of the image (tl_image_view()) that blocks are taken from. Blocks of other views are
 * kept, but must not be linked to blocks of this one. A new cache uses view 0.
 */
void tl_block_cache_view(struct tl_block_cache *cache, uint64_t view);

/*
 * Return the block that begins at `pc`, decoding it on first use. `space` is one tl_space bit or
 * TL_SPACE_ANY. A block with n == 0 means that nothing is mapped there. NULL: out of memory.
 */
struct tl_block *tl_block_get(struct tl_block_cache *cache, unsigned space, enum tl_isa isa,
                              uint64_t pc);

/* The first `n` instructions of a block of the cache, `bytes` long, were executed: the block that
 * begins behind them is probably requested next, and is made of this one. */
void tl_block_cache_begun(struct tl_block_cache *cache, const struct tl_block *block, uint32_t n,
                          uint32_t bytes);

/* An unmapped address range. */
struct tl_unmapped_range {
    uint64_t first, last;
    uint64_t view;
    unsigned space; /* 0: no range */
};

/*
 * Return the unmapped range in the current view that contains `pc`, if a block was requested there
 * and the cache still remembers it; else NULL. Valid until the next block is requested.
 */
const struct tl_unmapped_range *tl_block_unmapped_at(const struct tl_block_cache *cache,
                                                     unsigned space, uint64_t pc);

/*
 * Decode the instruction at byte `at` of a block. For text, tools and statistics; too slow for the
 * hot path. If the block has a single instruction, its size is the block's, whatever the encoding
 * implies.
 */
void tl_block_insn(const struct tl_block *block, uint32_t at, struct tl_insn *out);

/* Size in bytes of the block's first `n` instructions. */
uint32_t tl_block_bytes(const struct tl_block *block, uint32_t n);
/* Number of instructions from the block's start up to `pc`, or -1 if `pc` is not an instruction
 * boundary of it. */
int64_t tl_block_count_to(const struct tl_block *block, uint64_t pc);

#endif
