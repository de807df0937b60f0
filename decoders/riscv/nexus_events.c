/* SPDX-License-Identifier: MIT */
/*
 * Messages of SiFive's encoders that tell events, not the program's way: they are items at once,
 * since nothing has to be followed for them. Their times are those of the messages.
 */
#include "riscv/nexus_events.h"

enum circuit {
    CIRCUIT_TRIGGER = 8,
    CIRCUIT_CALL,
    CIRCUIT_EXCEPTION,
    CIRCUIT_INTERRUPT,
    CIRCUIT_CONTEXT = 13,
    CIRCUIT_WATCHPOINT
};

/* What software wrote to its channels. */
void tl_nexus_on_data(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    static const uint8_t sizes[] = {4, 4, 2, 1};
    const uint64_t tag = m->field[TL_NEXUS_IDTAG];
    tl_item_batch_software(&f->soft.out, "itm", tag / 4, m->field[TL_NEXUS_DQDATA], sizes[tag % 4],
                           m->offset);
}

/* SiFive's in-circuit trace: events with their places, without the way in between. */
void tl_nexus_on_circuit(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    const unsigned source = (unsigned)m->field[TL_NEXUS_CKSRC];
    const bool full = m->tcode == TL_NEXUS_CIRCUIT_SYNC;
    const bool two = tl_nexus_has(m, TL_NEXUS_CKDATA1);
    const uint64_t data[] = {m->field[TL_NEXUS_CKDATA0], m->field[TL_NEXUS_CKDATA1]};
    struct tl_item_batch *const out = &f->soft.out;
    if (source == 0 && !two) {
        tl_soft_note(&f->soft, m->offset, "in-circuit control %llu", (unsigned long long)data[0]);
        return;
    }
    const uint64_t reported = tl_nexus_address(f, data[0], 0);
    const uint64_t pc = full ? reported : f->base ^ reported;
    f->base = pc;
    if (f->synced && (source == CIRCUIT_TRIGGER || source == CIRCUIT_WATCHPOINT)) {
        tl_soft_note(&f->soft, m->offset, "in-circuit event %u at 0x%" PRIx64, source, pc);
        return;
    }
    struct tl_item *item;
    switch (source) {
    case CIRCUIT_CALL:
        item = tl_item_batch_add(out, TL_ITEM_BRANCH, m->offset);
        item->flags = TL_ITEM_HAS_VALUE | (two ? TL_ITEM_HAS_PC : 0);
        item->pc = two ? pc : 0;
        item->value = two ? pc ^ tl_nexus_address(f, data[1], 0) : pc;
        break;
    case CIRCUIT_EXCEPTION:
    case CIRCUIT_INTERRUPT:
        item = tl_item_batch_add(out, TL_ITEM_EXCEPTION, m->offset);
        item->text = source == CIRCUIT_EXCEPTION ? "exception" : "interrupt";
        item->sub = (uint16_t)(two ? data[1] & TL_EXCEPTION_UNKNOWN : TL_EXCEPTION_UNKNOWN);
        item->sub |= source == CIRCUIT_INTERRUPT ? TL_EXCEPTION_INTERRUPT : 0;
        item->flags = TL_ITEM_HAS_PC;
        item->pc = pc;
        break;
    case CIRCUIT_CONTEXT:
        tl_nexus_take_process(f, two ? data[1] : 0, m->offset);
        break;
    default:
        tl_soft_note(&f->soft, m->offset, "in-circuit event %u at 0x%" PRIx64, source, pc);
        break;
    }
}
