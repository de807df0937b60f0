/* SPDX-License-Identifier: MIT */
/*
 * Encodes items with short forms for the few kinds that make up most of a log. Items close to the
 * previous one take a difference and no other field, as with cycle counts nearly every packet
 * yields one.
 */
#include "shard/itemlog.h"

#include "shard/varint.h"

#include <assert.h>

enum {
    HAS_POSITION = 0x20,
    HAS_FLAGS = 0x40,
    HAS_OFFSET = 0x80,
    UNMAPPED_MAX = 2 + 3 * TL_VARINT_MAX, /* maximum size of an encoded UNMAPPED */
    TURNED = 64                           /* in a GAP's sub: see itemlog.h */
};
static_assert((int)TL_GAP_KINDS <= (int)TURNED, "both fit");

/* Fields of each kind of item besides flags and `sub`. */
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
    [TL_ITEM_HARDWARE] = F_PC | F_VALUE | F_TEXT,
    [TL_ITEM_STACK] = F_DATA,
    [TL_ITEM_CHUNK] = F_DATA,
    [TL_ITEM_LOST] = F_VALUE,
};

/* Kinds whose pc is meaningless, and not stored, unless the flag is set. */
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
    log->base = (struct tl_itemlog_base){.offset = offset, .time = time, .lost = UINT64_MAX};
    log->n = 0;
}

static inline size_t put_signed(uint8_t *p, uint64_t *base, uint64_t value)
{
    const size_t n = tl_varint_put(p, tl_zigzag((int64_t)(value - *base)));
    *base = value;
    return n;
}

static inline size_t put_address(uint8_t *p, uint64_t *base, uint64_t value)
{
    const size_t n = tl_varint_put_any(p, tl_zigzag((int64_t)(value - *base)));
    *base = value;
    return n;
}

static inline __attribute__((always_inline)) size_t put_head(struct tl_itemlog_base *base,
                                                             uint8_t *out, uint64_t position,
                                                             uint8_t kind, uint8_t flags,
                                                             uint64_t offset)
{
    size_t n = 1;
    unsigned head = kind;
    if (position != base->position) {
        head |= HAS_POSITION;
        n += tl_varint_put(out + n, position - base->position);
        base->position = position;
    }
    if (flags) {
        head |= HAS_FLAGS;
        out[n++] = flags;
    }
    if (offset != base->offset) {
        head |= HAS_OFFSET;
        n += put_signed(out + n, &base->offset, offset);
    }
    out[0] = (uint8_t)head;
    return n;
}

/* Size of a text with its NUL; 0: none. */
static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Write the size, then the bytes. */
static size_t put_bytes(uint8_t *p, const void *bytes, size_t n)
{
    const size_t head = tl_varint_put(p, n);
    if (n > 0)
        memcpy(p + head, bytes, n);
    return head + n;
}

static inline bool is(const struct tl_item *item, uint8_t kind, uint8_t flags, uint16_t sub)
{
    return tl_item_head(item) == tl_item_head(&(struct tl_item){kind, flags, sub});
}

/* Is it an AWAY? */
static inline bool is_away(const struct tl_item *item)
{
    return is(item, TL_ITEM_BRANCH, TL_ITEM_HAS_VALUE, 0);
}

/* Is it a COUNT? */
static inline bool is_count(const struct tl_item *item)
{
    return is(item, TL_ITEM_CYCLES, TL_ITEM_HAS_VALUE, 0);
}

/* Is it an UNMAPPED? */
static inline bool is_unmapped(const struct tl_item *item)
{
    return is(item, TL_ITEM_GAP, TL_ITEM_HAS_PC, TL_GAP_NO_IMAGE) && item->value == 0;
}

static inline bool may_report_turn(uint8_t kind)
{
    const uint32_t kinds = 1u << TL_ITEM_BRANCH | 1u << TL_ITEM_GAP | 1u << TL_ITEM_TRACE_ON |
                           1u << TL_ITEM_EXCEPTION | 1u << TL_ITEM_UNKNOWN | 1u << TL_ITEM_OFFSET;
    return kinds >> kind & 1;
}

/* For a new entry: the flag for a change of flow by the preceding instruction. */
static inline uint8_t take_turn(struct tl_itemlog *log, uint64_t position)
{
    const bool first = log->base.lost != position;
    log->base.lost = position;
    return log->turned && first ? TL_ITEM_TAKEN : 0;
}

/* Encode an entry near the previous one: see itemlog.h. Bytes after it may be overwritten. */
static inline size_t put_near(uint8_t *p, uint8_t kind, uint64_t after, uint64_t away)
{
    away = tl_zigzag((int64_t)away);
    const unsigned more = (63 - (unsigned)__builtin_clzll(away | 1)) / 8;
    p[0] = (uint8_t)(kind | more << 5);
    p[1] = (uint8_t)after;
    tl_put_le64(p + 2, away);
    return 3 + more;
}

static __attribute__((noinline)) size_t put_far(struct tl_itemlog_base *base, uint8_t *p,
                                                uint64_t position, uint8_t turned,
                                                const struct tl_item *item)
{
    const uint8_t kind = item->kind == TL_ITEM_GAP ? TL_ITEM_UNMAPPED : TL_ITEM_AWAY;
    const size_t n = put_head(base, p, position, kind, turned, item->offset);
    return n + put_address(p + n, &base->pc, tl_item_address(item));
}

/* Encode an AWAY or UNMAPPED. */
static inline size_t put_away(struct tl_itemlog_base *base, uint8_t *p, uint64_t position,
                              uint8_t turned, const struct tl_item *item)
{
    const uint64_t after = item->offset - base->offset, address = tl_item_address(item),
                   away = address - base->pc;
    if (after > UINT8_MAX || position != base->position || turned)
        return put_far(base, p, position, turned, item);
    base->offset = item->offset;
    base->pc = address;
    return put_near(p, item->kind == TL_ITEM_GAP ? TL_ITEM_NEAR_UNMAPPED : TL_ITEM_NEAR_AWAY, after,
                    away);
}

int tl_itemlog_add_unmapped(struct tl_itemlog *log, uint64_t position, const struct tl_item *items,
                            size_t *n, size_t most)
{
    const size_t end = *n, begin = log->bytes.n;
    const int r = tl_buf_reserve(&log->bytes, end * UNMAPPED_MAX + TL_ITEMLOG_ENTRY);
    size_t i = 0;
    *n = 0;
    if (r < 0 || begin + TL_ITEMLOG_ENTRY >= most)
        return r;
    uint8_t *p = log->bytes.p + begin;
    const size_t room = most - TL_ITEMLOG_ENTRY;
    for (; i < end && is_unmapped(&items[i]) && (size_t)(p - log->bytes.p) < room; i++)
        p += put_away(&log->base, p, position, i == 0 ? take_turn(log, position) : 0, &items[i]);
    log->bytes.n = (size_t)(p - log->bytes.p);
    log->n += i;
    *n = i;
    return TL_OK;
}

/* Encode an item without data and texts. */
static inline size_t put_item(struct tl_itemlog *log, uint8_t *p, uint64_t position,
                              const struct tl_item *item)
{
    struct tl_itemlog_base *const base = &log->base;
    const uint8_t f = fields[item->kind];
    const uint8_t turned = may_report_turn(item->kind) ? take_turn(log, position) : 0;
    const bool gap = item->kind == TL_ITEM_GAP;
    const uint8_t flags = item->flags | (gap ? 0 : turned);
    size_t n = put_head(base, p, position, item->kind, flags, item->offset);
    n += tl_varint_put(p + n, item->sub | (gap && turned ? TURNED : 0u));
    if (f & F_PC && keeps_pc(item))
        n += put_address(p + n, &base->pc, item->pc);
    if (f & F_VALUE)
        n += tl_varint_put(p + n, item->value);
    if (f & F_TIME)
        n += put_signed(p + n, &base->time, item->value);
    return n;
}

static __attribute__((noinline)) int add_long(struct tl_itemlog *log, uint64_t position,
                                              const struct tl_item *item)
{
    const uint8_t f = fields[item->kind];
    const size_t data = f & F_DATA ? item->n : 0, name = f & F_DATA ? text_size(item->name) : 0,
                 text = f & F_TEXT ? text_size(item->text) : 0;
    const int r = tl_buf_reserve(&log->bytes, TL_ITEMLOG_ENTRY + data + name + text);
    if (r < 0)
        return r;
    uint8_t *const p = log->bytes.p + log->bytes.n;
    size_t n = put_item(log, p, position, item);
    if (f & F_DATA) {
        n += put_bytes(p + n, item->data, data);
        n += put_bytes(p + n, item->name, name);
    }
    if (f & F_TEXT)
        n += put_bytes(p + n, item->text, text);
    log->bytes.n += n;
    return TL_OK;
}

static __attribute__((noinline)) int add_any(struct tl_itemlog *log, uint64_t position,
                                             const struct tl_item *item)
{
    log->n++;
    if (fields[item->kind] & (F_DATA | F_TEXT))
        return add_long(log, position, item);
    const int r = tl_buf_reserve(&log->bytes, TL_ITEMLOG_ENTRY);
    if (r < 0)
        return r;
    uint8_t *const p = log->bytes.p + log->bytes.n;
    if (is_away(item) || is_unmapped(item)) {
        log->bytes.n += put_away(&log->base, p, position, take_turn(log, position), item);
    } else if (is_count(item)) {
        const size_t n = put_head(&log->base, p, position, TL_ITEM_COUNT, 0, item->offset);
        log->bytes.n += n + tl_varint_put(p + n, item->value);
    } else {
        log->bytes.n += put_item(log, p, position, item);
    }
    return TL_OK;
}

/* What put_head() writes, and one more byte: all of them small. */
static inline __attribute__((always_inline)) int
put_small(struct tl_itemlog *log, unsigned kind, uint64_t after, uint64_t away, uint64_t last)
{
    tl_put_le32(log->bytes.p + log->bytes.n, (uint32_t)(kind | HAS_POSITION | HAS_OFFSET |
                                                        after << 8 | away << 17 | last << 24));
    log->bytes.n += 4;
    log->base.position += after;
    log->base.offset += away;
    log->n++;
    return TL_OK;
}

/* With cycle counts nearly every packet yields one, and without an image every few packets yield a
 * gap; nearly all of them are near the previous item. */
int tl_itemlog_add(struct tl_itemlog *log, uint64_t position, const struct tl_item *item)
{
    const uint64_t after = position - log->base.position, away = item->offset - log->base.offset;
    if (after - 1 >= 127 || away - 1 >= 63 || log->bytes.cap - log->bytes.n < 5)
        return add_any(log, position, item);
    if (is_count(item) && item->value < 128)
        return put_small(log, TL_ITEM_COUNT, after, away, item->value);
    if (!is(item, TL_ITEM_GAP, 0, item->sub & (TURNED - 1)) || item->value != 0)
        return add_any(log, position, item);
    log->bytes.p[log->bytes.n + 4] = 0; /* its value */
    const unsigned sub = item->sub | (take_turn(log, position) ? TURNED : 0);
    const int r = put_small(log, TL_ITEM_GAP, after, away, sub);
    log->bytes.n++;
    return r;
}

int tl_itemlog_add_isa(struct tl_itemlog *log, uint64_t position, enum tl_isa isa)
{
    const struct tl_item item = {
        .kind = TL_ITEM_ISA, .sub = (uint16_t)isa, .offset = log->base.offset};
    return tl_itemlog_add(log, position, &item);
}

/* Half of all log entries: only the fields they have are written. */
static inline int add_offset(struct tl_itemlog *log, uint64_t position, uint64_t offset,
                             uint8_t flags)
{
    const int r = tl_buf_reserve(&log->bytes, TL_ITEMLOG_ENTRY);
    if (r < 0)
        return r;
    uint8_t *const p = log->bytes.p + log->bytes.n;
    size_t n = put_head(&log->base, p, position, TL_ITEM_OFFSET, flags, offset);
    p[n++] = 0; /* sub */
    log->bytes.n += n;
    log->n++;
    return TL_OK;
}

int tl_itemlog_add_offset(struct tl_itemlog *log, uint64_t position, uint64_t offset)
{
    return add_offset(log, position, offset, 0);
}

int tl_itemlog_end(struct tl_itemlog *log, uint64_t position, uint64_t offset)
{
    const uint8_t turned = take_turn(log, position);
    return turned || offset != log->base.offset ? add_offset(log, position, offset, turned) : TL_OK;
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

int tl_itemlog_add_lost(struct tl_itemlog *log, uint64_t position, uint64_t n)
{
    const struct tl_item item = {.kind = TL_ITEM_LOST, .value = n, .offset = log->base.offset};
    return tl_itemlog_add(log, position, &item);
}

/* ---- reading ------------------------------------------------------------------------------- */

void tl_itemlog_read(struct tl_itemlog_reader *reader, struct tl_bytes bytes, uint64_t offset,
                     uint64_t time)
{
    reader->p = bytes.p;
    reader->end = bytes.p + bytes.n;
    reader->base = (struct tl_itemlog_base){.offset = offset, .time = time};
    reader->turned = false;
}

static const char *get_text(struct tl_varint_reader *r)
{
    const uint64_t n = tl_varint_get(r);
    const uint8_t *text = n > 0 ? tl_varint_bytes(r, n) : NULL;
    if (text && text[n - 1] != '\0')
        r->bad = true;
    return (const char *)text;
}

/* Decode the difference of an entry near the previous item; it has `n` bytes. */
static uint64_t get_near(struct tl_varint_reader *r, struct tl_itemlog_base *base, size_t n)
{
    const uint8_t *const bytes = tl_varint_bytes(r, 1 + n);
    uint64_t away = 0;
    if (!bytes)
        return 0;
    for (size_t i = 0; i < n; i++)
        away |= (uint64_t)bytes[1 + i] << 8 * i;
    base->offset += bytes[0];
    return (uint64_t)tl_unzigzag(away);
}

/* Decode what precedes the fields. */
static void get_head(struct tl_varint_reader *r, struct tl_itemlog_base *base, uint8_t head,
                     struct tl_item *item)
{
    if (head & HAS_POSITION)
        base->position += tl_varint_get(r);
    if (head & HAS_FLAGS && r->p < r->end)
        item->flags = *r->p++;
    if (head & HAS_OFFSET)
        base->offset += (uint64_t)tl_varint_get_signed(r);
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

/* Extract the change-of-flow bit, which is not part of the item. */
static bool reports_turn(struct tl_item *item)
{
    const uint16_t turned = item->kind == TL_ITEM_GAP ? TURNED : 0;
    const bool reported = item->sub & turned || item->flags & TL_ITEM_TAKEN;
    item->sub &= (uint16_t)~turned;
    item->flags &= (uint8_t)~TL_ITEM_TAKEN;
    return reported;
}

int tl_itemlog_next(struct tl_itemlog_reader *reader, struct tl_item *item, uint64_t *position)
{
    if (reader->p == reader->end)
        return TL_EOF;
    struct tl_itemlog_base *const base = &reader->base;
    struct tl_varint_reader r = {reader->p, reader->end, false};
    const uint8_t head = *r.p++, kind = head & 31;
    const bool near = kind == TL_ITEM_NEAR_AWAY || kind == TL_ITEM_NEAR_UNMAPPED;
    *item = (struct tl_item){.kind = kind};
    if (!near)
        get_head(&r, base, head, item);
    if (near || kind == TL_ITEM_AWAY || kind == TL_ITEM_UNMAPPED)
        base->pc += near ? get_near(&r, base, 1 + (head >> 5)) : (uint64_t)tl_varint_get_signed(&r);
    if (kind == TL_ITEM_UNMAPPED || kind == TL_ITEM_NEAR_UNMAPPED) {
        item->kind = TL_ITEM_GAP;
        item->flags |= TL_ITEM_HAS_PC;
        item->sub = TL_GAP_NO_IMAGE;
        item->pc = base->pc;
    } else if (kind == TL_ITEM_AWAY || kind == TL_ITEM_NEAR_AWAY) {
        item->kind = TL_ITEM_BRANCH;
        item->flags |= TL_ITEM_HAS_VALUE;
        item->value = base->pc;
    } else if (kind == TL_ITEM_COUNT) {
        item->kind = TL_ITEM_CYCLES;
        item->flags = TL_ITEM_HAS_VALUE;
        item->value = tl_varint_get(&r);
    } else if (kind != TL_ITEM_BLOCK &&
               (kind < TL_ITEM_KINDS || kind >= TL_ITEM_CHUNK || kind == TL_ITEM_LOST)) {
        get_fields(&r, base, item);
    } else {
        return TL_BAD;
    }
    if (r.bad)
        return TL_BAD;
    reader->turned = may_report_turn(item->kind) && reports_turn(item);
    item->offset = base->offset;
    *position = base->position;
    reader->p = r.p;
    return TL_OK;
}
