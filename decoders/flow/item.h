/* SPDX-License-Identifier: MIT */
/*
 * Flow items: what every decoder says happened, in order, whatever the trace format.
 *
 * Decoders deliver them in batches; text, STF, index and statistics are made from them.
 * Pointers in an item are borrowed and valid only during the call that delivers it.
 */
#ifndef TL_FLOW_ITEM_H
#define TL_FLOW_ITEM_H

#include "base/buf.h"
#include "flow/block.h"

enum tl_item_kind {
    TL_ITEM_BLOCK,     /* `n` instructions of `block` executed, from its start */
    TL_ITEM_UNKNOWN,   /* one instruction at pc executed, encoding not known */
    TL_ITEM_BRANCH,    /* taken change of flow from pc (if TL_ITEM_HAS_PC) to `value` */
    TL_ITEM_EXCEPTION, /* `sub` = number, pc = preferred return (if HAS_PC), text = its name */
    TL_ITEM_ERET,      /* exception return */
    TL_ITEM_MODE,      /* `value` = tl_mode now in force */
    TL_ITEM_CONTEXT,   /* pc = context id (if HAS_PC), value = VMID (if HAS_VALUE) */
    TL_ITEM_TIME,      /* `value` = timestamp in the source's ticks; `sub` = tl_time */
    TL_ITEM_CYCLES,    /* `value` = cycles since the last count */
    TL_ITEM_EVENT,     /* `value` = hardware event bits */
    TL_ITEM_SOFTWARE,  /* name = source, pc = channel (if HAS_PC; STM: master << 32 | channel),
                          data[n] = payload: up to 8 bytes as one little-endian value */
    TL_ITEM_GAP,       /* `sub` = tl_gap, value = how many were lost (if HAS_VALUE), pc (if HAS_PC)
                          = where a taken change of flow led that cannot be followed */
    TL_ITEM_TRACE_ON,  /* tracing begins, or begins again */
    TL_ITEM_NOTE,      /* text = annotation, without line ends */
    TL_ITEM_PATH,      /* `n` blocks executed whole, one behind another: path[0..n), `value`
                          instructions in all, of one instruction set. Each leads to the next
                          by itself: straight on, to its target, as a return, or wherever an
                          indirect branch went. Several packets may have told them: the offset is
                          the first's. Only to sinks that ask for it */
    TL_ITEM_TARGET,    /* the instruction in front of it, at pc, led to `value`; flags as BRANCH */
    TL_ITEM_KINDS
};

enum tl_item_flag {
    TL_ITEM_TAKEN = 1,     /* BLOCK: its last executed instruction changed the flow */
    TL_ITEM_HAS_PC = 2,    /* pc is known */
    TL_ITEM_HAS_VALUE = 4, /* value is known */
    TL_ITEM_AT_LEAST = 8,  /* GAP: the count saturated */
    TL_ITEM_CALL = 16,     /* BRANCH, TARGET: the source says it is a call */
    TL_ITEM_RETURN = 32    /* BRANCH, TARGET: the source says it is a return */
};

/* What a TIME item's ticks are. */
enum tl_time {
    TL_TIME_TRACE, /* the trace unit's timestamp: flow text T */
    TL_TIME_SOURCE /* a software trace source's own counter: flow text A time */
};

enum tl_gap {
    TL_GAP_OVERFLOW,   /* the trace unit lost data */
    TL_GAP_SYNC,       /* not synchronised yet */
    TL_GAP_BAD_PACKET, /* malformed trace bytes */
    TL_GAP_NO_IMAGE,   /* flow cannot be followed: nothing mapped there */
    TL_GAP_NO_PATH,    /* instructions executed, path not known */
    TL_GAP_DISCARD,    /* the trace unit dropped what it had not committed */
    TL_GAP_OFF,        /* tracing was switched off */
    TL_GAP_TRANSPORT,  /* bytes were lost before they reached us */
    TL_GAP_KINDS
};

struct tl_item {
    uint8_t kind;  /* enum tl_item_kind */
    uint8_t flags; /* enum tl_item_flag */
    uint16_t sub;
    uint32_t n;
    uint64_t pc;
    uint64_t value;
    uint64_t offset; /* raw byte offset of the packet that said so */
    union {
        const struct tl_block *block;
        const uintptr_t *path; /* see tl_path_block() */
        const uint8_t *data;
        const char *text;
    };
    const char *name; /* SOFTWARE: source ("itm", "stm", "osd-stm", "uart", "ite") */
};

/* Did the flow go to an address that the item names, a BRANCH's, or one that is not mapped? */
static inline bool tl_item_is_branch(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BRANCH ||
           (item->kind == TL_ITEM_GAP && item->flags & TL_ITEM_HAS_PC);
}

/* Where the flow went by a BRANCH, else pc. */
static inline uint64_t tl_item_address(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BRANCH ? item->value : item->pc;
}

/* Kind, flags and `sub` in one word. */
static inline uint32_t tl_item_head(const struct tl_item *item)
{
    return item->kind | (uint32_t)item->flags << 8 | (uint32_t)item->sub << 16;
}

/* The kinds that an item is counted as, a bit each: a GAP with an address is a BRANCH, too. */
static inline uint32_t tl_item_kinds(const struct tl_item *item)
{
    return 1u << item->kind | (uint32_t)tl_item_is_branch(item) << TL_ITEM_BRANCH;
}

/* A step of a path: a block's address, which is even, and TL_STEP_TAKEN. */
static inline uintptr_t tl_path_step(const struct tl_block *block, bool taken)
{
    return (uintptr_t)block | taken;
}

static inline const struct tl_block *tl_path_block(uintptr_t step)
{
    return (const struct tl_block *)(step & ~(uintptr_t)TL_STEP_TAKEN);
}

/* Did the block's last instruction change the flow? */
static inline bool tl_path_taken(uintptr_t step)
{
    return step & TL_STEP_TAKEN;
}

/* Block `i` of a PATH item as an item of its own. */
static inline struct tl_item tl_path_item(const struct tl_item *item, size_t i)
{
    const struct tl_block *const b = tl_path_block(item->path[i]);
    return (struct tl_item){
        .kind = TL_ITEM_BLOCK,
        .flags = (uint8_t)(TL_ITEM_HAS_PC | (tl_path_taken(item->path[i]) ? TL_ITEM_TAKEN : 0)),
        .n = b->n,
        .pc = b->pc,
        .offset = item->offset,
        .block = b};
}

/* A batch of one stream's items, in order. A result < 0 stops the decoder, which returns it. */
typedef int tl_item_sink(void *context, const struct tl_item *items, size_t n);

/* ---- mode words ------------------------------------------------------------------------ */

enum tl_security { TL_SEC_NS, TL_SEC_S, TL_SEC_REALM, TL_SEC_ROOT, TL_SEC_NONE };
enum tl_arch { TL_ARCH_ARM, TL_ARCH_RISCV, TL_ARCH_X86, TL_ARCH_OR1K };

/* privilege: Arm exception level 0..3, RISC-V 0 U 1 S 2 H 3 M, x86 ring 0..3; 15 not known */
static inline uint64_t tl_mode(enum tl_arch arch, unsigned privilege, enum tl_security security,
                               enum tl_isa isa)
{
    return (uint64_t)isa | (uint64_t)(privilege & 15) << 8 | (uint64_t)security << 12 |
           (uint64_t)arch << 16;
}

static inline enum tl_isa tl_mode_isa(uint64_t mode)
{
    return (enum tl_isa)(mode & 255);
}

static inline unsigned tl_mode_privilege(uint64_t mode)
{
    return (unsigned)(mode >> 8 & 15);
}

static inline enum tl_security tl_mode_security(uint64_t mode)
{
    return (enum tl_security)(mode >> 12 & 15);
}

static inline enum tl_arch tl_mode_arch(uint64_t mode)
{
    return (enum tl_arch)(mode >> 16 & 15);
}

/* The memory that is seen: a tl_space bit on Arm, all of it elsewhere. */
unsigned tl_mode_space(uint64_t mode);

/* "el1.ns.a64", "u.rv64", "ring3.x64" into `out`; returns it. */
char *tl_mode_text(uint64_t mode, char out[static 32]);

/* "overflow", "sync", … static storage. */
const char *tl_gap_name(enum tl_gap gap);

/* ---- flow text -------------------------------------------------------------------------- */

/*
 * Append the flow text of a batch, one element per line (the contract of docs/flow-text.md).
 * TL_NOMEM.
 */
TL_MUST_USE int tl_item_text(struct tl_buf *out, const struct tl_item *items, size_t n);

/* A tl_block_code (tl_decode_code()): an instruction's line of flow text. What has it in its blocks
 * is appended by tl_item_text_coded(): the same text, many times faster. */
#define TL_ITEM_INSN_TEXT 20 /* bytes of such a line, beside two for each byte of code */
uint32_t tl_item_text_insn(uint8_t *out, uint64_t pc, const uint8_t *code, uint32_t size,
                           uint32_t encoding, enum tl_isa isa);
TL_MUST_USE int tl_item_text_coded(struct tl_buf *out, const struct tl_item *items, size_t n);

#endif
