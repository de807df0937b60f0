/* SPDX-License-Identifier: MIT */
#include "store/itemlog.h"

#include "store/varint.h"

enum {
    HAS_POSITION = 0x20,
    HAS_FLAGS = 0x40,
    HAS_OFFSET = 0x80,
    HOLE_MAX = 1 + 3 * TL_VARINT_MAX /* bytes of one */
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
    log->away = UINT64_MAX;
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

/* Is it an AWAY? */
static inline bool is_away(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BRANCH && item->flags == TL_ITEM_HAS_VALUE && item->sub == 0;
}

/* Is it a gap as behind an AWAY at raw byte `offset`? */
static inline bool is_lost(const struct tl_item *item, uint64_t offset)
{
    return item->kind == TL_ITEM_GAP && item->sub == TL_GAP_NO_IMAGE && item->flags == 0 &&
           item->value == 0 && item->offset == offset;
}

static inline size_t put_away(struct tl_itemlog_base *base, uint8_t *p, uint64_t position,
                              uint8_t kind, const struct tl_item *item)
{
    const size_t n = put_head(base, p, position, kind, 0, item->offset);
    return n + put_address(p + n, &base->pc, item->value);
}

static int add_away(struct tl_itemlog *log, uint64_t position, const struct tl_item *item)
{
    const int r = tl_buf_reserve(&log->bytes, TL_ITEMLOG_ENTRY);
    if (r < 0)
        return r;
    log->away = log->bytes.n;
    log->bytes.n += put_away(&log->base, log->bytes.p + log->bytes.n, position, TL_ITEM_AWAY, item);
    log->n++;
    return TL_OK;
}

int tl_itemlog_add_holes(struct tl_itemlog *log, uint64_t position, const struct tl_item *items,
                         size_t *n, size_t most)
{
    struct tl_itemlog_base base = log->base;
    const size_t end = *n, begin = log->bytes.n, pairs = end / 2;
    size_t i = 0;
    const int r = tl_buf_reserve(&log->bytes, pairs * HOLE_MAX + TL_ITEMLOG_ENTRY);
    *n = 0;
    if (r < 0 || begin + TL_ITEMLOG_ENTRY >= most)
        return r;
    uint8_t *p = log->bytes.p + begin;
    const size_t room = most - TL_ITEMLOG_ENTRY;
    for (; end - i >= 2 && (size_t)(p - log->bytes.p) < room; i += 2) {
        const struct tl_item *const item = &items[i];
        const uint64_t away = item->offset - base.offset;
        if (!is_away(item) || !is_lost(item + 1, item->offset))
            break;
        if (away - 1 < 63 && position == base.position) { /* nearly always */
            p[0] = TL_ITEM_HOLE | HAS_OFFSET;
            p[1] = (uint8_t)(away << 1);
            p += 2;
            base.offset = item->offset;
        } else {
            p += put_head(&base, p, position, TL_ITEM_HOLE, 0, item->offset);
        }
        p += put_address(p, &base.pc, item->value);
    }
    log->bytes.n = (size_t)(p - log->bytes.p);
    log->base = base;
    log->n += i;
    if (i > 0)
        log->away = UINT64_MAX;
    *n = i;
    return TL_OK;
}

/* All of it but data and texts. */
static inline size_t put_item(struct tl_itemlog_base *base, uint8_t *p, uint64_t position,
                              const struct tl_item *item)
{
    const uint8_t f = fields[item->kind];
    size_t n = put_head(base, p, position, item->kind, item->flags, item->offset);
    n += tl_varint_put(p + n, item->sub);
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
    size_t n = put_item(&log->base, p, position, item);
    if (f & F_DATA) {
        n += put_bytes(p + n, item->data, data);
        n += put_bytes(p + n, item->name, name);
    }
    if (f & F_TEXT)
        n += put_bytes(p + n, item->text, text);
    log->bytes.n += n;
    return TL_OK;
}

int tl_itemlog_add(struct tl_itemlog *log, uint64_t position, const struct tl_item *item)
{
    if (is_away(item))
        return add_away(log, position, item);
    const bool hole = log->away != UINT64_MAX && position == log->base.position &&
                      is_lost(item, log->base.offset);
    const size_t away = log->away;
    log->away = UINT64_MAX;
    log->n++;
    if (hole) {
        log->bytes.p[away] += TL_ITEM_HOLE - TL_ITEM_AWAY;
        return TL_OK;
    }
    if (fields[item->kind] & (F_DATA | F_TEXT))
        return add_long(log, position, item);
    const int r = tl_buf_reserve(&log->bytes, TL_ITEMLOG_ENTRY);
    if (r >= 0)
        log->bytes.n += put_item(&log->base, log->bytes.p + log->bytes.n, position, item);
    return r;
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
    const int r = tl_buf_reserve(&log->bytes, TL_ITEMLOG_ENTRY);
    if (r < 0)
        return r;
    uint8_t *const p = log->bytes.p + log->bytes.n;
    log->away = UINT64_MAX;
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
    reader->gap = false;
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
    if (item->kind == TL_ITEM_AWAY || item->kind == TL_ITEM_HOLE) {
        item->kind = TL_ITEM_BRANCH;
        item->flags = TL_ITEM_HAS_VALUE;
        item->value = base->pc += (uint64_t)tl_varint_get_signed(r);
        return;
    }
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
    if (reader->gap) {
        reader->gap = false;
        *item = (struct tl_item){
            .kind = TL_ITEM_GAP, .sub = TL_GAP_NO_IMAGE, .offset = reader->base.offset};
        *position = reader->base.position;
        return TL_OK;
    }
    if (reader->p == reader->end)
        return TL_EOF;
    struct tl_varint_reader r = {reader->p, reader->end, false};
    const uint8_t head = *r.p++;
    *item = (struct tl_item){.kind = head & 31};
    if (item->kind == TL_ITEM_BLOCK || (item->kind >= TL_ITEM_KINDS && item->kind < TL_ITEM_HOLE))
        return TL_BAD;
    const bool hole = item->kind == TL_ITEM_HOLE;
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
    reader->gap = hole;
    return TL_OK;
}
