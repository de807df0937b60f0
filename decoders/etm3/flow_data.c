/* SPDX-License-Identifier: MIT */
/*
 * Data trace of ETMv3 as annotations of the instruction in front of them. Accesses that are known
 * completely have the lines of STF's records of accesses, which the STF writer turns into these
 * records; the others say what is known. An access is of the load or store traced last, which need
 * not be the last instruction: what was held behind it is reported behind its accesses.
 *
 * Source: Arm IHI0014Q 7.7.
 */
#include "etm3/flow.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { LINE = 96 };

TL_PRINTF(3, 4)
static void note(struct tl_etm3_flow *f, uint64_t offset, const char *format, ...)
{
    char *const text = tl_item_batch_store(f->out, LINE);
    struct tl_item *const item = tl_item_batch_add(f->out, TL_ITEM_NOTE, offset);
    va_list args;
    va_start(args, format);
    vsnprintf(text, LINE, format, args);
    va_end(args);
    item->text = text;
}

/* ---- of which instruction -------------------------------------------------------------------- */

static struct tl_access access_at(const struct tl_block *b, uint32_t i)
{
    const uint32_t at = tl_block_bytes(b, i);
    const uint32_t end = i + 1 < b->n ? tl_block_bytes(b, i + 1) : b->size;
    return tl_access_of((enum tl_isa)b->isa, b->code + at, end - at);
}

uint32_t tl_etm3_note_access(struct tl_etm3_flow *f, const struct tl_block *b, uint32_t n)
{
    for (uint32_t i = n < b->n ? n : b->n; i > 0; i--) {
        const struct tl_access access = access_at(b, i - 1);
        if (access.kind == TL_NO_ACCESS)
            continue;
        f->access = access;
        f->apart = i < n;
        return i;
    }
    f->apart = true;
    return 0;
}

/* Tell the accesses that wait; the rest waits on. */
static void tell_waiting(struct tl_etm3_flow *f)
{
    unsigned kept = 0;
    const unsigned n = f->n_behind;
    for (unsigned i = 0; i < n; i++) {
        if (f->behind[i].type == TL_ETM3_DATA)
            tl_etm3_tell_data(f, &f->behind[i]);
        else
            f->behind[kept++] = f->behind[i];
    }
    f->n_behind = (uint8_t)kept;
}

struct tl_block *tl_etm3_place_data(struct tl_etm3_flow *f, struct tl_block *b, uint64_t offset)
{
    bool waits = false;
    for (unsigned i = 0; i < f->n_behind; i++)
        waits |= f->behind[i].type == TL_ETM3_DATA;
    const uint32_t up_to = tl_etm3_note_access(f, b, f->held);
    if (!waits || up_to == 0 || up_to >= f->held || up_to >= b->n)
        return b;
    (void)tl_walker_execute_part(&f->walker, b, tl_block_bytes(b, up_to), f->held_offset);
    f->held -= up_to;
    f->apart = false;
    tell_waiting(f);
    f->apart = true;
    return tl_walker_here(&f->walker, offset);
}

/* Transfers of one instruction are of words side by side, of which only the first has its address
 * sent. */
static void find_transfer(struct tl_etm3_flow *f, const struct tl_etm3_packet *p,
                          struct tl_etm3_aside *a)
{
    a->has_address = p->first ? p->has_address : f->has_next;
    if (a->has_address)
        a->address = p->first ? p->address : f->next_address;
    f->has_next = a->has_address;
    f->next_address = a->has_address ? a->address + 4 : 0;
}

void tl_etm3_find_address(struct tl_etm3_flow *f, const struct tl_etm3_packet *p,
                          struct tl_etm3_aside *a)
{
    const unsigned known = f->is_pending >> p->tag & 1;
    switch ((enum tl_etm3_data)p->data) {
    case TL_ETM3_NORMAL:
    case TL_ETM3_PENDING:
    case TL_ETM3_NOT_TRACED:
        if (f->config.data_addresses)
            find_transfer(f, p, a);
        break;
    case TL_ETM3_LATE:
        a->has_address = known;
        a->address = f->pending[p->tag];
        break;
    default:
        return;
    }
    if (p->tag == 0)
        return;
    const bool pends = p->data == TL_ETM3_PENDING && a->has_address;
    f->is_pending = (uint8_t)((f->is_pending & ~(1u << p->tag)) | (unsigned)pends << p->tag);
    f->pending[p->tag] = pends ? a->address : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* "read", "write", or "access" where the instruction does not tell. */
static const char *verb(const struct tl_etm3_flow *f)
{
    static const char *const verbs[] = {"access", "read", "write"};
    return verbs[f->access.kind];
}

/* Zero bytes at the top of a value are not sent. */
static void tell_whole(struct tl_etm3_flow *f, const struct tl_etm3_aside *a)
{
    const unsigned size = a->size > f->access.size ? a->size : f->access.size;
    note(f, a->offset, "INST_MEM_ACCESS addr=0x%" PRIx32 " size=%u attr=0x0 access=%u", a->address,
         size, f->access.kind);
    note(f, a->offset, "INST_MEM_CONTENT data=0x%" PRIx64, a->value);
}

static void tell_normal(struct tl_etm3_flow *f, const struct tl_etm3_aside *a)
{
    if (a->has_address && a->has_value && f->access.kind != TL_NO_ACCESS && !f->apart)
        tell_whole(f, a);
    else if (a->has_address && a->has_value)
        note(f, a->offset, "data %s addr=0x%" PRIx32 " value=0x%" PRIx64, verb(f), a->address,
             a->value);
    else if (a->has_address)
        note(f, a->offset, "data %s addr=0x%" PRIx32, verb(f), a->address);
    else if (a->has_value)
        note(f, a->offset, "data %s value=0x%" PRIx64, verb(f), a->value);
    else
        note(f, a->offset, "data %s", verb(f));
}

static void tell_pending(struct tl_etm3_flow *f, const struct tl_etm3_aside *a)
{
    if (a->has_address)
        note(f, a->offset, "data %s addr=0x%" PRIx32 " pending=%u", verb(f), a->address, a->tag);
    else
        note(f, a->offset, "data %s pending=%u", verb(f), a->tag);
}

/* Its instruction is one before, however long ago. */
static void tell_late(struct tl_etm3_flow *f, const struct tl_etm3_aside *a)
{
    if (a->has_address)
        note(f, a->offset, "data late addr=0x%" PRIx32 " value=0x%" PRIx64 " pending=%u",
             a->address, a->value, a->tag);
    else
        note(f, a->offset, "data late value=0x%" PRIx64 " pending=%u", a->value, a->tag);
    f->is_pending &= (uint8_t) ~(1u << a->tag);
    f->pending[a->tag] = 0;
}

void tl_etm3_tell_data(struct tl_etm3_flow *f, const struct tl_etm3_aside *a)
{
    switch ((enum tl_etm3_data)a->data) {
    case TL_ETM3_NORMAL:
        tell_normal(f, a);
        break;
    case TL_ETM3_PENDING:
        tell_pending(f, a);
        break;
    case TL_ETM3_LATE:
        tell_late(f, a);
        break;
    case TL_ETM3_STORE_FAILED:
        note(f, a->offset, "data store-failed");
        break;
    case TL_ETM3_SUPPRESSED:
        note(f, a->offset, "data suppressed");
        break;
    case TL_ETM3_NOT_TRACED:
        if (a->has_address)
            note(f, a->offset, "data not-traced addr=0x%" PRIx32, a->address);
        else
            note(f, a->offset, "data not-traced");
        break;
    }
}
