/* SPDX-License-Identifier: MIT */
/*
 * Events that hardware reports beside a program: HARDWARE items. Their text is made here, from one
 * table: a row for each kind of event, which flow text, STF, JSON and searches follow.
 *
 * In an item `sub` is the kind in the low TL_HARDWARE_KIND_BITS, and the action above; `value` is
 * the number of an exception (HAS_VALUE), `pc` the address of the instruction that the event tells
 * (HAS_PC), `text` everything, as behind "H " in flow text.
 *
 * Pure functions.
 */
#ifndef TL_FLOW_HARDWARE_H
#define TL_FLOW_HARDWARE_H

#include "flow/item.h"
#include "flow/line.h"

enum tl_hardware_kind {
    TL_HARDWARE_EXCEPTION,  /* action: enum tl_exception_action; number, name */
    TL_HARDWARE_PC,         /* a sample of the program counter */
    TL_HARDWARE_SLEEP,      /* a sample: the processor sleeps */
    TL_HARDWARE_PROHIBITED, /* a sample: of code that may not be sampled */
    TL_HARDWARE_COUNTER,    /* value: bit set of the counters that wrapped */
    TL_HARDWARE_PMU,        /* the same, of the performance monitoring unit */
    TL_HARDWARE_MATCH,      /* a comparator matched; name */
    TL_HARDWARE_DATA,       /* access to memory: action: enum tl_access; all that is known */
    TL_HARDWARE_OTHER,      /* a source of no known meaning: number, value */
    /* A sampled operation that was executed, or that was only tried: pc, target, back, name. */
    TL_HARDWARE_SAMPLE,
    TL_HARDWARE_SPECULATIVE,
    TL_HARDWARE_KINDS
};

enum tl_exception_action { TL_ACTION_ENTER = 1, TL_ACTION_EXIT, TL_ACTION_RETURN };
enum tl_access { TL_ACCESS_UNKNOWN, TL_ACCESS_READ, TL_ACCESS_WRITE };

#define TL_HARDWARE_KIND_BITS 8
#define TL_HARDWARE_TEXT      256 /* bytes of a text, with its NUL */

struct tl_hardware {
    uint8_t kind;       /* enum tl_hardware_kind */
    uint8_t action;     /* by kind */
    uint8_t comparator; /* 0 to 3 */
    uint8_t size;       /* of the value in bytes; 0: unknown */
    uint8_t known;      /* bytes of the address that are known, the lowest: 0, 1, 2, 4 */
    bool has_pc;
    uint16_t number;  /* of an exception */
    uint32_t address; /* of an access */
    uint32_t value;   /* of an access, or bits */
    uint64_t pc;      /* of the instruction */
    /* Of a sample; 0: unknown. If it is a taken branch, where to; and the target of the last taken
     * branch before it. */
    uint64_t target, back;
    const char *name; /* borrowed; NULL: none */
};

/* Write the text of an event; `out` is truncated if a name does not fit. Returns `out`. */
char *tl_hardware_text(const struct tl_hardware *event, char out[static TL_HARDWARE_TEXT]);

/* Set what an item has besides its text. */
void tl_hardware_item(const struct tl_hardware *event, struct tl_item *item);

/* Make the item again from its text, which becomes item->text. False: it is no such text. */
bool tl_hardware_parse(const char *text, struct tl_item *item);

/* Read addresses from the text of a SAMPLE, 0: unknown. False: it is none. */
bool tl_hardware_sample(const char *text, uint64_t *pc, uint64_t *target, uint64_t *back);

/* The fields of a text: see tl_line_fields(). */
size_t tl_hardware_fields(struct tl_bytes text, struct tl_line_field out[static TL_LINE_FIELDS]);

/* Is it an event of this kind? */
static inline bool tl_is_hardware(const struct tl_item *item, enum tl_hardware_kind kind)
{
    return item->kind == TL_ITEM_HARDWARE &&
           (item->sub & ((1u << TL_HARDWARE_KIND_BITS) - 1)) == kind;
}

static inline unsigned tl_hardware_action(const struct tl_item *item)
{
    return item->sub >> TL_HARDWARE_KIND_BITS;
}

#endif
