/* SPDX-License-Identifier: MIT */
/*
 * Instructions in columns. The walk gives blocks as they are stored, from where the parts of each
 * instruction are appended to arrays, between those that no image has. Times are interpolated for
 * many instructions at once, since they come in order.
 */
#include "base/bytes.h"
#include "base/cancel.h"
#include "lake/locate.h"
#include "lake_sql.h"
#include "shard/walk.h"
#include "sql/times.h"
#include "stf/close.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

#define BATCH 16384 /* rows: of larger messages, clients' memory is paged in each time */

static const struct {
    const char *name;
    enum tl_sql_kind kind;
} known[TL_INSN_COLUMNS] = {[TL_INSN_POSITION] = {"position", TL_SQL_U64},
                            [TL_INSN_TIME] = {"time", TL_SQL_U64},
                            [TL_INSN_PC] = {"pc", TL_SQL_U64},
                            [TL_INSN_OPCODE] = {"opcode", TL_SQL_U32},
                            [TL_INSN_SIZE] = {"size", TL_SQL_U8}};

enum tl_insn_column tl_insn_column_named(const char *name)
{
    for (unsigned i = 0; i < TL_INSN_COLUMNS; i++)
        if (strcmp(known[i].name, name) == 0)
            return (enum tl_insn_column)i;
    return TL_INSN_COLUMNS;
}

/* Instructions in order. */
struct insns {
    uint64_t *pc;
    uint32_t *opcode;
    uint8_t *size;
    size_t n, cap;
};

struct columns {
    const struct tl_insn_columns_request *request;
    struct tl_cut cut;
    struct tl_sql_times times;
    struct insns rows; /* to be sent */
    uint64_t first;    /* position of the first row */
    struct tl_buf made[TL_INSN_COLUMNS];
    tl_sql_sink *sink;
    void *context;
    struct tl_fail *fail;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Arrays of one capacity. */
static int make_room(struct insns *s, size_t need)
{
    size_t caps[3] = {s->cap, s->cap, s->cap};
    if (need <= s->cap)
        return TL_OK;
    if (tl_grow(&s->pc, &caps[0], need, sizeof *s->pc) < 0 ||
        tl_grow(&s->opcode, &caps[1], need, sizeof *s->opcode) < 0 ||
        tl_grow(&s->size, &caps[2], need, sizeof *s->size) < 0)
        return TL_NOMEM;
    s->cap = caps[0] < caps[1] ? caps[0] : caps[1];
    s->cap = caps[2] < s->cap ? caps[2] : s->cap;
    return TL_OK;
}

static void insns_fini(struct insns *s)
{
    free(s->pc);
    free(s->opcode);
    free(s->size);
}

static void add(struct insns *s, uint64_t pc, uint32_t opcode, uint8_t size)
{
    s->pc[s->n] = pc;
    s->opcode[s->n] = opcode;
    s->size[s->n++] = size;
}

/* Append the instructions of a block. Nearly all have no record but the one that closes them. */
static int add_block(struct columns *c, const struct tl_walk *walk, const struct tl_block *block,
                     uint32_t n)
{
    struct tl_walk_step step = {.next = block->pc};
    size_t at = 0;
    int r = make_room(&c->rows, c->rows.n + n);
    for (uint32_t i = 0; i < n && r >= 0; i++) {
        const uint8_t *const p = block->coded + at;
        const size_t left = block->coded_size - at;
        if (left >= TL_STF_CLOSING_BYTES && *p == TL_STF_INST_32) {
            add(&c->rows, step.next, tl_le32(p + 1), 4);
            at += TL_STF_CLOSING_BYTES;
            step.next += 4;
        } else if (left >= TL_STF_CLOSING_16_BYTES && *p == TL_STF_INST_16) {
            add(&c->rows, step.next, tl_le16(p + 1), 2);
            at += TL_STF_CLOSING_16_BYTES;
            step.next += 2;
        } else if ((r = tl_walk_insn(walk, block, &at, step.next, &step)) >= 0) {
            add(&c->rows, step.pc, tl_stf_is_odd(step.size) ? 0 : step.opcode, step.size);
        }
    }
    return r;
}

static int add_unknown(struct columns *c, uint64_t pc)
{
    const int r = make_room(&c->rows, c->rows.n + 1);
    if (r >= 0)
        add(&c->rows, pc, 0, 0);
    return r;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* The next place for `n` values of a column's kind. NULL: no memory. */
static uint8_t *column_of(struct columns *c, enum tl_insn_column column, size_t n)
{
    struct tl_buf *const made = &c->made[column];
    tl_buf_reset(made);
    return tl_buf_reserve(made, n * tl_sql_width(known[column].kind) + 1) < 0 ? NULL : made->p;
}

static int put_times(struct columns *c, uint8_t *out, size_t n)
{
    uint64_t times[256];
    size_t some;
    for (size_t i = 0; i < n; i += some) {
        const uint64_t position = c->first + i;
        const size_t left = TL_SQL_TIMES_WIDTH - position % TL_SQL_TIMES_WIDTH;
        const struct tl_scale *scale;
        const int r = tl_sql_times_at(&c->times, &c->cut, position, &scale, c->fail);
        if (r < 0)
            return r;
        some = n - i < COUNT(times) ? n - i : COUNT(times);
        some = some < left ? some : left;
        tl_scale_values(scale, position, some, times);
        for (size_t k = 0; k < some; k++)
            tl_put_le64(out + 8 * (i + k), times[k]);
    }
    return TL_OK;
}

static int make_column(struct columns *c, enum tl_insn_column column, size_t at, size_t n)
{
    uint8_t *const out = column_of(c, column, n);
    const struct insns *const rows = &c->rows;
    if (!out)
        return TL_NOMEM;
    switch (column) {
    case TL_INSN_POSITION:
        for (size_t i = 0; i < n; i++)
            tl_put_le64(out + 8 * i, c->first + i);
        break;
    case TL_INSN_TIME:
        return put_times(c, out, n);
    case TL_INSN_PC:
        for (size_t i = 0; i < n; i++)
            tl_put_le64(out + 8 * i, rows->pc[at + i]);
        break;
    case TL_INSN_OPCODE:
        for (size_t i = 0; i < n; i++)
            tl_put_le32(out + 4 * i, rows->opcode[at + i]);
        break;
    default:
        memcpy(out, rows->size + at, n);
    }
    return TL_OK;
}

/* Send `n` rows from `at` on. */
static int send(struct columns *c, size_t at, size_t n, bool last)
{
    struct tl_sql_column columns[TL_INSN_COLUMNS];
    int r = TL_OK;
    for (size_t i = 0; i < c->request->n_columns && r >= 0; i++) {
        const enum tl_insn_column column = c->request->columns[i];
        r = make_column(c, column, at, n);
        columns[i] = (struct tl_sql_column){
            .name = known[column].name, .kind = known[column].kind, .values = c->made[column].p};
    }
    c->first += n;
    return r < 0 ? r
                 : c->sink(c->context, &(struct tl_sql_batch){.columns = columns,
                                                              .n_columns = c->request->n_columns,
                                                              .n_rows = n,
                                                              .last = last});
}

/* Send the rows in batches. */
static int send_all(struct columns *c)
{
    int r = TL_OK;
    for (size_t at = 0, n; at < c->rows.n && r >= 0; at += n) {
        n = c->rows.n - at < BATCH ? c->rows.n - at : BATCH;
        r = send(c, at, n, false);
    }
    c->rows.n = 0;
    return r;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Rows are of positions without a hole, since a batch tells only the first. */
static int go_to(struct columns *c, uint64_t position)
{
    if (position == c->first + c->rows.n)
        return TL_OK;
    const int r = send_all(c);
    c->first = position;
    return r;
}

/* Make rows of the chunk's instructions. */
static int take_chunk(struct columns *c, const struct tl_walk *walk)
{
    int r = TL_OK;
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        const struct tl_item *const item = &walk->items[i];
        if (item->kind != TL_ITEM_BLOCK && item->kind != TL_ITEM_UNKNOWN)
            continue;
        r = go_to(c, walk->positions[i]);
        if (r >= 0)
            r = item->kind == TL_ITEM_BLOCK ? add_block(c, walk, item->block, item->n)
                                            : add_unknown(c, item->pc);
    }
    return r;
}

/* ---- the range ------------------------------------------------------------------------------- */

static int walk(struct columns *c, uint64_t from, uint64_t to, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    int r;
    tl_cut_walk_begin(&walk, &c->cut, from, to);
    walk.walk.detail = TL_WALK_SPANS;
    c->first = from;
    while ((r = tl_cut_walk_next(&walk, fail)) >= 0) {
        r = take_chunk(c, &walk.walk);
        if (r >= 0)
            r = send_all(c);
        if (r >= 0)
            r = tl_cancel_rest();
        if (r < 0)
            break;
    }
    tl_cut_walk_end(&walk);
    return r == TL_EOF ? send(c, 0, 0, true) : r;
}

static int columns_of(struct columns *c, struct tl_fail *fail)
{
    enum tl_range_unit unit = c->request->unit;
    uint64_t from = 0, to = 0;
    int r = tl_cut_unit(&c->cut, &unit, fail);
    if (r >= 0)
        r = tl_cut_resolve(&c->cut, unit, c->request->from, c->request->to, &from, &to, fail);
    return r < 0 ? r : walk(c, from, to, fail);
}

int tl_lake_insn_columns(struct tl_lake *lake, const struct tl_insn_columns_request *request,
                         tl_sql_sink *sink, void *context, struct tl_fail *fail)
{
    struct columns c = {.request = request, .sink = sink, .context = context, .fail = fail};
    int r = tl_cut_open_outlined(&c.cut, lake, request->trace, request->stream, fail);
    if (r < 0)
        return r;
    r = columns_of(&c, fail);
    tl_sql_times_fini(&c.times);
    for (size_t i = 0; i < TL_INSN_COLUMNS; i++)
        tl_buf_fini(&c.made[i]);
    insns_fini(&c.rows);
    tl_cut_close(&c.cut);
    return r;
}
