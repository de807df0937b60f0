/* SPDX-License-Identifier: MIT */
/*
 * Flow items: what a trace reports, in order, in one form for all trace formats.
 *
 * Decoders deliver items in batches; text, STF, index and statistics are derived from them.
 * Pointers in an item are borrowed and valid only during the call that delivers it.
 */
#ifndef TL_FLOW_ITEM_H
#define TL_FLOW_ITEM_H

#include "base/buf.h"
#include "base/portform.h"
#include "flow/block.h"

enum tl_item_kind {
    TL_ITEM_BLOCK,     /* `n` instructions of `block` executed, from its start */
    TL_ITEM_UNKNOWN,   /* one instruction at pc executed, encoding unknown */
    TL_ITEM_BRANCH,    /* taken change of flow from pc (if TL_ITEM_HAS_PC) to `value` */
    TL_ITEM_EXCEPTION, /* `sub` = number, pc = preferred return (if HAS_PC), text = its name. On
                          RISC-V with TL_EXCEPTION_INTERRUPT; TL_EXCEPTION_UNKNOWN: no number */
    TL_ITEM_ERET,      /* exception return */
    TL_ITEM_MODE,      /* `value` = tl_mode now in force */
    TL_ITEM_CONTEXT,   /* pc = context id (if HAS_PC), value = VMID (if HAS_VALUE) */
    TL_ITEM_TIME,      /* `value` = timestamp in the source's ticks; `sub` = tl_time */
    TL_ITEM_CYCLES,    /* `value` = cycles since the previous count */
    TL_ITEM_EVENT,     /* `value` = hardware event bits */
    TL_ITEM_SOFTWARE,  /* name = source, pc = channel (if HAS_PC; STM: master << 32 | channel),
                          data[n] = payload: up to 8 bytes as one little-endian value;
                          `sub` = tl_port_form, what the channel is for */
    TL_ITEM_GAP, /* `sub` = tl_gap, value = amount lost (if HAS_VALUE), pc (if HAS_PC) = target of a
                    taken change of flow that cannot be followed */
    TL_ITEM_TRACE_ON, /* tracing starts or restarts */
    TL_ITEM_NOTE,     /* text = annotation, single line */
    /*
     * PATH: `n` consecutive blocks, path[0..n), each executed completely; `value` instructions in
     * all, in one instruction set. Each block's successor follows from its step: the next
     * instruction, a branch target, a return, or wherever an indirect branch went. May cover
     * several packets; the offset is the first one's. Sent only to sinks that ask for it.
     */
    TL_ITEM_PATH,
    TL_ITEM_TARGET,   /* the preceding instruction, at pc, branched to `value`; flags as BRANCH */
    TL_ITEM_HARDWARE, /* what hardware reports beside the program: flow/hardware.h */
    TL_ITEM_KINDS
};

#define TL_EXCEPTION_UNKNOWN   0x7fff
#define TL_EXCEPTION_INTERRUPT 0x8000 /* a flag */

/* The number of an exception, given its item's `sub`; -1: unknown. */
static inline int tl_exception_number(uint16_t sub)
{
    const int number = sub & TL_EXCEPTION_UNKNOWN;
    return number == TL_EXCEPTION_UNKNOWN ? -1 : number;
}

enum tl_item_flag {
    TL_ITEM_TAKEN = 1,     /* BLOCK: its last executed instruction changed the flow */
    TL_ITEM_HAS_PC = 2,    /* pc is known */
    TL_ITEM_HAS_VALUE = 4, /* value is known */
    TL_ITEM_AT_LEAST = 8,  /* GAP: the count saturated. TIME: timestamps before it may be lost */
    TL_ITEM_CALL = 16,     /* BRANCH, TARGET: the source reports a call */
    TL_ITEM_RETURN = 32,   /* BRANCH, TARGET: the source reports a return */
    TL_ITEM_DELAYED = 64,  /* TIME: what it is for was then at the latest, … */
    TL_ITEM_OVERDUE = 128  /* … and may even have been before the TIME in front of it */
};

/* The flags of a TIME that say how exact it is. */
#define TL_ITEM_INEXACT (TL_ITEM_AT_LEAST | TL_ITEM_DELAYED | TL_ITEM_OVERDUE)

/* A timestamp that goes back by more than this begins a new time segment: the counter began again.
 * Less is a difference between where timestamps are taken. */
#define TL_TIME_WOBBLE 1024

/* Does a timestamp begin a new time segment? `last`: the one before, 0: none. */
static inline bool tl_time_restarts(uint64_t last, uint64_t ticks)
{
    return ticks < last && last - ticks > TL_TIME_WOBBLE;
}

/* Clock of a TIME item's ticks. */
enum tl_time {
    TL_TIME_TRACE, /* the trace unit's timestamp; flow text "T" */
    TL_TIME_SOURCE /* a software trace source's own counter; flow text "A time" */
};

enum tl_gap {
    TL_GAP_OVERFLOW,     /* the trace unit lost data */
    TL_GAP_SYNC,         /* not synchronised yet */
    TL_GAP_BAD_PACKET,   /* malformed trace bytes */
    TL_GAP_NO_IMAGE,     /* flow cannot be followed: address not mapped */
    TL_GAP_NO_PATH,      /* instructions executed, path unknown */
    TL_GAP_DISCARD,      /* the trace unit discarded speculative data */
    TL_GAP_OFF,          /* tracing was switched off */
    TL_GAP_TRANSPORT,    /* bytes lost between trace unit and decoder */
    TL_GAP_SWITCHED_OUT, /* of a thread's stream: it did not run, as context switches tell */
    TL_GAP_KINDS
};

struct tl_item {
    uint8_t kind;  /* enum tl_item_kind */
    uint8_t flags; /* enum tl_item_flag */
    uint16_t sub;
    uint32_t n;
    uint64_t pc;
    uint64_t value;
    uint64_t offset; /* byte offset of the reporting packet in the raw trace */
    union {
        const struct tl_block *block;
        const uintptr_t *path; /* see tl_path_block() */
        const uint8_t *data;
        const char *text;
    };
    const char *name; /* SOFTWARE: source ("itm", "stm", "osd-stm", "uart", "ite") */
};

/* The payload of a SOFTWARE item of up to 8 bytes as a number. */
static inline uint64_t tl_item_payload(const struct tl_item *item)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < item->n && i < sizeof value; i++)
        value |= (uint64_t)item->data[i] << 8 * i;
    return value;
}

/* Has an item of this kind a text, one line? */
static inline bool tl_item_has_text(unsigned kind)
{
    return kind == TL_ITEM_EXCEPTION || kind == TL_ITEM_NOTE || kind == TL_ITEM_HARDWARE;
}

/* Did the flow branch to an address the item carries: that of a BRANCH, or an unmapped one in a
 * GAP? */
static inline bool tl_item_is_branch(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BRANCH ||
           (item->kind == TL_ITEM_GAP && item->flags & TL_ITEM_HAS_PC);
}

/* Target address of a BRANCH; pc of other items. */
static inline uint64_t tl_item_address(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BRANCH ? item->value : item->pc;
}

/* Does it say that code at tl_item_address() ran? Otherwise `pc`, if any, is something else. */
static inline bool tl_item_is_code(const struct tl_item *item)
{
    return item->kind == TL_ITEM_HARDWARE ? (item->flags & TL_ITEM_HAS_PC) != 0
                                          : item->kind != TL_ITEM_SOFTWARE;
}

/* Kind, flags and `sub` in one word. */
static inline uint32_t tl_item_head(const struct tl_item *item)
{
    return item->kind | (uint32_t)item->flags << 8 | (uint32_t)item->sub << 16;
}

/* Bit mask of kinds to count the item as: a GAP with an address also counts as a BRANCH. */
static inline uint32_t tl_item_kinds(const struct tl_item *item)
{
    return 1u << item->kind | (uint32_t)tl_item_is_branch(item) << TL_ITEM_BRANCH;
}

/* Build a path step: a block's address, a multiple of 4, with TL_STEP_BITS. */
static inline uintptr_t tl_path_step(const struct tl_block *block, bool taken)
{
    return (uintptr_t)block | (block->turn[taken] & TL_STEP_OUT) | taken;
}

static inline const struct tl_block *tl_path_block(uintptr_t step)
{
    return (const struct tl_block *)(step & ~(uintptr_t)TL_STEP_BITS);
}

/* Did the block's last instruction change the flow? */
static inline bool tl_path_taken(uintptr_t step)
{
    return step & TL_STEP_TAKEN;
}

/* Return block `i` of a PATH item as a BLOCK item. */
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

/* Receive a batch of one stream's items, in order. A result < 0 stops the decoder, which returns
 * it. */
typedef int tl_item_sink(void *context, const struct tl_item *items, size_t n);

/* ---- mode words ------------------------------------------------------------------------ */

enum tl_security { TL_SEC_NS, TL_SEC_S, TL_SEC_REALM, TL_SEC_ROOT, TL_SEC_NONE };
enum tl_arch { TL_ARCH_ARM, TL_ARCH_RISCV, TL_ARCH_X86, TL_ARCH_OR1K };

/* Pack a mode word. privilege: Arm exception level 0..3, RISC-V 0 U 1 S 2 H 3 M 4 VU 5 VS 6 debug,
 * x86 ring 0..3; 15: unknown. */
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

/* Address space that the mode can access: a tl_space bit on Arm, all spaces elsewhere. */
unsigned tl_mode_space(uint64_t mode);

/* Write "el1.ns.a64", "u.rv64", "ring3.x64", … to `out` and return it. */
char *tl_mode_text(uint64_t mode, char out[static 32]);

/* Is nothing missing in such a gap? */
static inline bool tl_gap_is_off(unsigned gap)
{
    return gap == TL_GAP_OFF || gap == TL_GAP_SWITCHED_OUT;
}

/* Name of a gap: "overflow", "sync", … Static storage. */
const char *tl_gap_name(enum tl_gap gap);

/* The NOTE before the first timestamp of a new time segment: "time-restart LAST FIRST". */
#define TL_NOTE_TIME_RESTART "time-restart "

/* The NOTE before the gap of a lost connection: "connection-lost WHEN DURATION s", or
 * "connection-lost -". */
#define TL_NOTE_CONNECTION_LOST "connection-lost "

/* Does a new time segment begin with this item? */
bool tl_item_restarts_time(const struct tl_item *item);

/* The reason given to `loss` sinks for it; nothing is lost. */
#define TL_LOSS_TIME_RESTART "timestamps begin again"

/* ---- flow text -------------------------------------------------------------------------- */

/*
 * Append the flow text of a batch, one element per line (format: docs/flow-text.md). Returns
 * TL_NOMEM.
 */
TL_MUST_USE int tl_item_text(struct tl_buf *out, const struct tl_item *items, size_t n);

/* A tl_block_code (tl_decode_set_code()) that writes an instruction's line of flow text. With it in
 * the blocks, tl_item_text_coded() appends the same text as tl_item_text(), many times faster. */
#define TL_ITEM_INSN_TEXT 20 /* bytes of such a line, plus two per byte of code */
uint32_t tl_item_text_insn(uint8_t *out, uint64_t pc, const uint8_t *code, uint32_t size,
                           uint32_t encoding, enum tl_isa isa);
TL_MUST_USE int tl_item_text_coded(struct tl_buf *out, const struct tl_item *items, size_t n);

#endif
