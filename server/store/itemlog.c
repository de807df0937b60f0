/* SPDX-License-Identifier: MIT */
#include "store/itemlog.h"

#include "store/varint.h"

enum {
    HAS_POSITION = 0x20,
    HAS_FLAGS = 0x40,
    HAS_OFFSET = 0x80,
    HEAD_MAX = 80 /* everything of an item but its data and texts */
};

/* What an item of each kind holds beside its flags and `sub`. */
enum field { F_PC = 1, F_VALUE = 2, F_TIME = 4, F_TEXT = 8, F_DATA = 16 };
static const uint8_t fields[32] = {
    [TL_ITEM_UNKNOWN] = F_PC,
    [TL_ITEM_BRANCH] = F_PC | F_VALUE,
    [TL_ITEM_TARGET] = F_PC | F_VALUE,
    [TL_ITEM_EXCEPTION] = F_PC | F_VALUE | F_TEXT,
    [TL_ITEM_ERET] = F_PC,
    [TL_ITEM_MODE] = F_VALUE,
    [TL_ITEM_CONTEXT] = F_PC | F_VALUE,
    [TL_ITEM_TIME] = F_TIME,
    [TL_ITEM_CYCLES] = F_VALUE,
    [TL_ITEM_EVENT] = F_VALUE,
    [TL_ITEM_SOFTWARE] = F_PC | F_VALUE | F_DATA,
    [TL_ITEM_GAP] = F_PC | F_VALUE,
    [TL_ITEM_TRACE_ON] = F_PC,
    [TL_ITEM_NOTE] = F_PC | F_VALUE | F_TEXT,
    [TL_ITEM_STACK] = F_DATA,
    [TL_ITEM_CHUNK] = F_DATA,
};

/* Kinds whose pc says nothing unless the flag is set, and need not be kept then. */
static bool keeps_pc(const struct tl_item *item)
{
    if (!(fields[item->kind] & F_PC))
        return false;
    return item->kind == TL_ITEM_UNKNOWN || item->flags & TL_ITEM_HAS_PC;
}

void tl_itemlog_fini(struct tl_itemlog *log)
{
    tl_buf_fini(&log->bytes);
}

void tl_itemlog_reset(struct tl_itemlog *log, uint64_t offset, uint64_t time)
{
    tl_buf_reset(&log->bytes);
    log->base = (struct tl_itemlog_base){.offset = offset, .time = time};
    log->n = 0;
}

static size_t put_signed(uint8_t *p, uint64_t *base, uint64_t value)
{
    const size_t n = tl_varint_put(p, tl_zigzag((int64_t)(value - *base)));
    *base = value;
    return n;
}

static inline size_t put_head(struct tl_itemlog_base *base, uint8_t *out, uint64_t position,
                              uint8_t kind, uint8_t flags, uint64_t offset)
{
    size_t n = 1;
    out[0] = kind;
    if (position != base->position) {
        out[0] |= HAS_POSITION;
        n += tl_varint_put(out + n, position - base->position);
        base->position = position;
    }
    if (flags) {
        out[0] |= HAS_FLAGS;
        out[n++] = flags;
    }
    if (offset != base->offset) {
        out[0] |= HAS_OFFSET;
        n += put_signed(out + n, &base->offset, offset);
    }
    return n;
}

/* Bytes of a text with its NUL; 0: there is none. */
static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* How many, and they themselves. */
static size_t put_bytes(uint8_t *p, const void *bytes, size_t n)
{
    const size_t head = tl_varint_put(p, n);
    if (n > 0)
        memcpy(p + head, bytes, n);
    return head + n;
}

int tl_itemlog_add(struct tl_itemlog *log, uint64_t position, const struct tl_item *item)
{
    struct tl_itemlog_base *const base = &log->base;
    const uint8_t f = fields[item->kind];
    const size_t data = f & F_DATA ? item->n : 0, name = f & F_DATA ? text_size(item->name) : 0,
                 text = f & F_TEXT ? text_size(item->text) : 0;
    const int r = tl_buf_reserve(&log->bytes, HEAD_MAX + data + name + text);
    if (r < 0)
        return r;
    uint8_t *const p = log->bytes.p + log->bytes.n;
    size_t n = put_head(base, p, position, item->kind, item->flags, item->offset);
    n += tl_varint_put(p + n, item->sub);
    if (keeps_pc(item))
        n += put_signed(p + n, &base->pc, item->pc);
    if (f & F_VALUE)
        n += tl_varint_put(p + n, item->value);
    if (f & F_TIME)
        n += put_signed(p + n, &base->time, item->value);
    if (f & F_DATA) {
        n += put_bytes(p + n, item->data, data);
        n += put_bytes(p + n, item->name, name);
    }
    if (f & F_TEXT)
        n += put_bytes(p + n, item->text, text);
    log->bytes.n += n;
    log->n++;
    return TL_OK;
}

int tl_itemlog_add_isa(struct tl_itemlog *log, uint64_t position, enum tl_isa isa)
{
    const struct tl_item item = {
        .kind = TL_ITEM_ISA, .sub = (uint16_t)isa, .offset = log->base.offset};
    return tl_itemlog_add(log, position, &item);
}

/* Half of all that is logged: nothing that they do not have is asked for. */
int tl_itemlog_add_offset(struct tl_itemlog *log, uint64_t position, uint64_t offset)
{
    const int r = tl_buf_reserve(&log->bytes, HEAD_MAX);
    if (r < 0)
        return r;
    uint8_t *const p = log->bytes.p + log->bytes.n;
    size_t n = put_head(&log->base, p, position, TL_ITEM_OFFSET, 0, offset);
    p[n++] = 0; /* sub */
    log->bytes.n += n;
    log->n++;
    return TL_OK;
}

static int add_data(struct tl_itemlog *log, uint8_t kind, struct tl_bytes data)
{
    const struct tl_item item = {
        .kind = kind, .n = (uint32_t)data.n, .data = data.p, .offset = log->base.offset};
    return tl_itemlog_add(log, log->base.position, &item);
}

int tl_itemlog_add_stack(struct tl_itemlog *log, struct tl_bytes stack)
{
    return add_data(log, TL_ITEM_STACK, stack);
}

int tl_itemlog_add_chunk(struct tl_itemlog *log, struct tl_bytes head)
{
    return add_data(log, TL_ITEM_CHUNK, head);
}

/* ---- reading ------------------------------------------------------------------------------- */

void tl_itemlog_read(struct tl_itemlog_reader *reader, struct tl_bytes bytes, uint64_t offset,
                     uint64_t time)
{
    reader->p = bytes.p;
    reader->end = bytes.p + bytes.n;
    reader->base = (struct tl_itemlog_base){.offset = offset, .time = time};
}

static const char *get_text(struct tl_varint_reader *r)
{
    const uint64_t n = tl_varint_get(r);
    const uint8_t *text = n > 0 ? tl_varint_bytes(r, n) : NULL;
    if (text && text[n - 1] != '\0')
        r->bad = true;
    return (const char *)text;
}

static void get_fields(struct tl_varint_reader *r, struct tl_itemlog_base *base,
                       struct tl_item *item)
{
    const uint8_t f = fields[item->kind];
    item->sub = (uint16_t)tl_varint_get(r);
    if (keeps_pc(item))
        item->pc = base->pc += (uint64_t)tl_varint_get_signed(r);
    if (f & F_VALUE)
        item->value = tl_varint_get(r);
    if (f & F_TIME)
        item->value = base->time += (uint64_t)tl_varint_get_signed(r);
    if (f & F_DATA) {
        item->n = (uint32_t)tl_varint_get(r);
        item->data = tl_varint_bytes(r, item->n);
        item->name = get_text(r);
    }
    if (f & F_TEXT)
        item->text = get_text(r);
}

int tl_itemlog_next(struct tl_itemlog_reader *reader, struct tl_item *item, uint64_t *position)
{
    if (reader->p == reader->end)
        return TL_EOF;
    struct tl_varint_reader r = {reader->p, reader->end, false};
    const uint8_t head = *r.p++;
    *item = (struct tl_item){.kind = head & 31};
    if (item->kind == TL_ITEM_BLOCK || (item->kind >= TL_ITEM_KINDS && item->kind < TL_ITEM_CHUNK))
        return TL_BAD;
    if (head & HAS_POSITION)
        reader->base.position += tl_varint_get(&r);
    if (head & HAS_FLAGS && r.p < r.end)
        item->flags = *r.p++;
    if (head & HAS_OFFSET)
        reader->base.offset += (uint64_t)tl_varint_get_signed(&r);
    item->offset = reader->base.offset;
    get_fields(&r, &reader->base, item);
    if (r.bad)
        return TL_BAD;
    *position = reader->base.position;
    reader->p = r.p;
    return TL_OK;
}
