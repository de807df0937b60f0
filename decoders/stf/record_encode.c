/* SPDX-License-Identifier: MIT */
/*
 * Encodes records. It is the inverse of record.c, with which a test compares it for every kind of
 * record.
 */
#include "stf/record.h"

#include "stf/record_hot.h"

/* A record in parts. */
struct encoding {
    uint8_t head[22]; /* type and fields in front of an array; PAGE_TABLE_WALK has most of them */
    size_t n;         /* bytes of `head` */
    struct tl_bytes tail, tail2; /* the array; a transaction has two */
};

static void put8(struct encoding *e, uint8_t v)
{
    e->head[e->n++] = v;
}

static void put16(struct encoding *e, uint16_t v)
{
    tl_put_le16(e->head + e->n, v);
    e->n += 2;
}

static void put32(struct encoding *e, uint32_t v)
{
    tl_put_le32(e->head + e->n, v);
    e->n += 4;
}

static void put64(struct encoding *e, uint64_t v)
{
    tl_put_le64(e->head + e->n, v);
    e->n += 8;
}

static int encode_event(const struct tl_stf_layout *layout, const struct tl_stf_record *record,
                        struct encoding *e)
{
    const uint64_t number = record->event.number;
    if (layout->event64) {
        put64(e, number);
    } else {
        if (number & ~(UINT64_C(3) << 62) & ~UINT64_C(0x3fffffff))
            return TL_USAGE;
        put32(e, (uint32_t)(number & 0x3fffffff) | (uint32_t)(number >> 62) << 30);
    }
    if (record->event.fields.n % 8 || record->event.fields.n > 8 * 255)
        return TL_USAGE;
    put8(e, (uint8_t)(record->event.fields.n / 8));
    e->tail = record->event.fields;
    return TL_OK;
}

static int encode_reg(const struct tl_stf_layout *layout, const struct tl_stf_record *record,
                      struct encoding *e)
{
    uint32_t words = 1;
    if ((record->reg.meta & 15) == TL_STF_REG_VECTOR && layout->vlen)
        words = layout->vlen / 64 + (layout->vlen % 64 != 0);
    if (record->reg.value.n != 8 * (size_t)words)
        return TL_USAGE;
    put16(e, record->reg.number);
    put8(e, record->reg.meta);
    e->tail = record->reg.value;
    return TL_OK;
}

static int encode_walk(const struct tl_stf_record *record, struct encoding *e)
{
    if (record->walk.entries.n % 16 || record->walk.entries.n > 16 * 255)
        return TL_USAGE;
    put64(e, record->walk.va);
    put64(e, record->walk.first_access);
    put32(e, record->walk.page_size);
    put8(e, (uint8_t)(record->walk.entries.n / 16));
    e->tail = record->walk.entries;
    return TL_OK;
}

static int encode_text32(struct tl_bytes text, struct encoding *e)
{
    if (text.n > TL_STF_RECORD_MAX - TL_STF_COMMENT_HEAD)
        return TL_USAGE;
    put32(e, (uint32_t)text.n);
    e->tail = text;
    return TL_OK;
}

static int encode_text16(struct tl_bytes text, struct encoding *e)
{
    if (text.n > UINT16_MAX)
        return TL_USAGE;
    put16(e, (uint16_t)text.n);
    e->tail = text;
    return TL_OK;
}

static int encode_transaction(const struct tl_stf_record *record, struct encoding *e)
{
    put64(e, record->transaction.id);
    put64(e, record->transaction.delta);
    put8(e, record->transaction.clock);
    if (record->type == TL_STF_TRANSACTION) {
        put16(e, record->transaction.n_metadata);
        e->tail = record->transaction.metadata;
        e->tail2 = record->transaction.data;
    }
    return TL_OK;
}

static int encode_header(const struct tl_stf_record *record, struct encoding *e)
{
    switch (record->type) {
    case TL_STF_IDENTIFIER:
        put8(e, 'S');
        put8(e, 'T');
        put8(e, 'F');
        return TL_OK;
    case TL_STF_VERSION:
        put32(e, record->version.major);
        put32(e, record->version.minor);
        return TL_OK;
    case TL_STF_COMMENT:
    case TL_STF_ISA_EXTENDED:
        return encode_text32(record->text, e);
    case TL_STF_ISA:
        put16(e, record->isa);
        return TL_OK;
    case TL_STF_INST_IEM:
        put16(e, record->iem);
        return TL_OK;
    case TL_STF_TRACE_INFO:
        put8(e, record->info.generator);
        put8(e, record->info.major);
        put8(e, record->info.minor);
        put8(e, record->info.patch);
        return encode_text16(record->info.text, e);
    case TL_STF_TRACE_INFO_FEATURE:
        put64(e, record->features);
        return TL_OK;
    case TL_STF_PROCESS_ID_EXT:
        put32(e, record->process.tgid);
        put32(e, record->process.tid);
        put32(e, record->process.asid);
        return TL_OK;
    case TL_STF_VLEN_CONFIG:
        put32(e, record->vlen);
        return record->vlen < TL_STF_VLEN_MIN ? TL_USAGE : TL_OK;
    case TL_STF_PROTOCOL_ID:
        put8(e, record->protocol);
        return TL_OK;
    case TL_STF_CLOCK_ID:
        put8(e, record->clock.id);
        return encode_text16(record->clock.name, e);
    default:
        return TL_USAGE;
    }
}

static int encode(const struct tl_stf_layout *layout, const struct tl_stf_record *record,
                  struct encoding *e)
{
    switch (record->type) {
    case TL_STF_END_HEADER:
    case TL_STF_RESERVE_END:
        return TL_OK;
    case TL_STF_FORCE_PC:
        put64(e, record->pc);
        return TL_OK;
    case TL_STF_INST_PC_TARGET:
    case TL_STF_EVENT_PC_TARGET:
        put64(e, record->target);
        return TL_OK;
    case TL_STF_INST_REG:
        return encode_reg(layout, record, e);
    case TL_STF_INST_READY_REG:
        put16(e, record->ready_reg);
        return TL_OK;
    case TL_STF_PAGE_TABLE_WALK:
        return encode_walk(record, e);
    case TL_STF_INST_MEM_ACCESS:
        put64(e, record->access.address);
        put16(e, record->access.size);
        put16(e, record->access.attr);
        put8(e, record->access.type);
        return TL_OK;
    case TL_STF_INST_MEM_CONTENT:
    case TL_STF_BUS_MASTER_CONTENT:
        put64(e, record->data);
        return TL_OK;
    case TL_STF_BUS_MASTER_ACCESS:
        put64(e, record->bus.address);
        put16(e, record->bus.size);
        put8(e, record->bus.master);
        put8(e, record->bus.index);
        put32(e, record->bus.attr);
        put8(e, record->bus.type);
        return TL_OK;
    case TL_STF_EVENT:
        return encode_event(layout, record, e);
    case TL_STF_INST_MICROOP:
        put8(e, record->microop.size);
        put32(e, record->microop.op);
        return TL_OK;
    case TL_STF_INST_32:
        put32(e, record->opcode);
        return TL_OK;
    case TL_STF_INST_16:
        put16(e, (uint16_t)record->opcode);
        return record->opcode > UINT16_MAX ? TL_USAGE : TL_OK;
    case TL_STF_TRANSACTION:
    case TL_STF_TRANSACTION_DEPENDENCY:
        return encode_transaction(record, e);
    default:
        return encode_header(record, e);
    }
}

int tl_stf_record_encode(const struct tl_stf_layout *layout, const struct tl_stf_record *record,
                         struct tl_buf *out)
{
    if (out->cap - out->n < TL_STF_HOT_ROOM) {
        const int result = tl_buf_reserve(out, TL_STF_HOT_ROOM);
        if (result < 0)
            return result;
    }
    const int hot = tl_stf_encode_hot(record, out->p + out->n);
    if (hot) {
        out->n += hot < 0 ? 0 : (size_t)hot;
        return hot < 0 ? hot : TL_OK;
    }
    struct encoding e = {.head = {record->type}, .n = 1};
    int result = encode(layout, record, &e);
    if (result < 0)
        return result;
    const size_t n = e.n + e.tail.n + e.tail2.n;
    if (n > TL_STF_RECORD_MAX)
        return TL_USAGE;
    result = tl_buf_reserve(out, n);
    if (result < 0)
        return result;
    uint8_t *p = out->p + out->n;
    memcpy(p, e.head, e.n);
    if (e.tail.n)
        memcpy(p + e.n, e.tail.p, e.tail.n);
    if (e.tail2.n)
        memcpy(p + e.n + e.tail.n, e.tail2.p, e.tail2.n);
    /* A transaction's arrays contain lengths of their own: if they were wrong, the rest of the file
     * would be unreadable. */
    if (record->type == TL_STF_TRANSACTION &&
        tl_stf_record_size(layout, (struct tl_bytes){p, n}) != (int)n)
        return TL_USAGE;
    out->n += n;
    return TL_OK;
}
