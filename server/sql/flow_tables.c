/* SPDX-License-Identifier: MIT */
/*
 * The tables of instructions, events and gaps. Columns are made when they are asked for: counting
 * instructions reads no symbol, and only the disassembly column disassembles.
 */
#include "disasm/disasm.h"
#include "query/query.h"
#include "sql/flow.h"

#include <stdlib.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

#define NAMED 1024 /* addresses whose function is remembered */

/* ---- instructions ---------------------------------------------------------------------------- */

struct insns {
    struct tl_flow_rows flow; /* first: what the functions below share */
    uint64_t position;
    struct tl_walk_step insn;
    size_t byte;   /* of the block, where the next one begins */
    uint32_t left; /* instructions of the block behind this one */
    uint64_t pc;
    bool known; /* its encoding is */
    /* Functions of addresses, found since the program may last have changed. */
    struct {
        uint64_t pc;
        uint32_t function, stamp;
    } named[NAMED];
    uint32_t stamp;
    struct tl_disasm *disasm[TL_ISA_COUNT];
    bool tried[TL_ISA_COUNT];
};

enum {
    INSN_TRACE,
    INSN_STREAM,
    INSN_POSITION,
    INSN_TIME,
    INSN_PC,
    INSN_SIZE,
    INSN_OPCODE,
    INSN_FUNCTION,
    INSN_TAKEN,
    INSN_TEXT
};
static const struct tl_table_column insn_columns[] = {
    [INSN_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [INSN_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [INSN_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [INSN_TIME] = {"time", "INT", TL_COLUMN_TIME},
    [INSN_PC] = {"pc", "INT", TL_COLUMN_PLAIN},
    [INSN_SIZE] = {"size", "INT", TL_COLUMN_PLAIN},
    [INSN_OPCODE] = {"opcode", "INT", TL_COLUMN_PLAIN},
    [INSN_FUNCTION] = {"function", "TEXT", TL_COLUMN_PLAIN},
    [INSN_TAKEN] = {"taken", "INT", TL_COLUMN_PLAIN},
    [INSN_TEXT] = {"text", "TEXT", TL_COLUMN_PLAIN},
};

static int step_insn(struct tl_cursor *c, struct insns *s)
{
    s->left--;
    s->position++;
    const int r =
        tl_walk_insn(&s->flow.walk.walk, s->flow.item->block, &s->byte, s->insn.next, &s->insn);
    s->pc = s->insn.pc;
    return r < 0 ? tl_fail_set(c->asking->fail, r, "a shard is damaged") : TL_OK;
}

static int next_insn(struct tl_cursor *c)
{
    struct insns *const s = c->state;
    if (s->left > 0)
        return step_insn(c, s);
    int r;
    while ((r = tl_flow_rows_next(c, &s->flow, false)) > 0) {
        const struct tl_item *const item = s->flow.item;
        s->position = s->flow.position;
        s->known = item->kind == TL_ITEM_BLOCK;
        s->stamp += !s->known;
        if (s->known) {
            s->byte = 0;
            s->insn.next = item->block->pc;
            s->left = item->n;
            s->position--;
            return step_insn(c, s);
        }
        s->pc = item->pc;
        if (item->kind == TL_ITEM_UNKNOWN)
            return TL_OK;
    }
    c->end = true;
    return r;
}

static int first_insn(struct tl_cursor *c)
{
    struct insns *const s = c->state;
    s->flow.detail = TL_WALK_FLOW;
    s->stamp = 1;
    const int r = tl_flow_rows_open(c, &s->flow);
    return r < 0 ? r : next_insn(c);
}

static void close_insn(struct tl_cursor *c)
{
    struct insns *const s = c->state;
    for (size_t i = 0; i < TL_ISA_COUNT; i++)
        tl_disasm_free(s->disasm[i]);
    tl_flow_rows_close(&s->flow);
}

static void tell_text(struct insns *s, sqlite3_context *context)
{
    const enum tl_isa isa = (enum tl_isa)s->flow.item->block->isa;
    char text[480];
    if (isa >= TL_ISA_COUNT)
        return;
    if (!s->tried[isa] && tl_disasm_new(&s->disasm[isa], isa, NULL) < 0)
        s->disasm[isa] = NULL;
    s->tried[isa] = true;
    tl_walk_code(&s->insn, (uint8_t)isa);
    const struct tl_bytes code = {s->insn.code, s->insn.size};
    if (s->disasm[isa] && tl_disasm_text(s->disasm[isa], s->pc, code, text, sizeof text) >= 0)
        tl_column_text(context, text);
}

/* A block may go on from one function into the next. */
static uint32_t function_at(struct insns *s)
{
    const size_t i = s->pc / 2 % NAMED;
    if (s->named[i].pc != s->pc || s->named[i].stamp != s->stamp) {
        s->named[i].pc = s->pc;
        s->named[i].stamp = s->stamp;
        s->named[i].function =
            tl_flow_now_function(&s->flow.now, tl_flow_rows_image(&s->flow), s->pc);
    }
    return s->named[i].function;
}

static void insn_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    struct insns *const s = c->state;
    switch (column) {
    case INSN_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case INSN_STREAM:
        tl_column_text(context, tl_flow_rows_stream(&s->flow));
        break;
    case INSN_POSITION:
        tl_column_u64(context, s->position);
        break;
    case INSN_TIME:
        tl_flow_rows_time(c, &s->flow, context, s->position);
        break;
    case INSN_PC:
        tl_column_u64(context, s->pc);
        break;
    case INSN_FUNCTION:
        tl_column_text(context, tl_function_name(tl_flow_rows_image(&s->flow), function_at(s)));
        break;
    default:
        if (!s->known)
            break;
        if (column == INSN_SIZE)
            sqlite3_result_int(context, s->insn.size);
        else if (column == INSN_OPCODE)
            sqlite3_result_int64(context, s->insn.opcode);
        else if (column == INSN_TAKEN)
            sqlite3_result_int(context, s->insn.taken || s->insn.leaves);
        else
            tell_text(s, context);
    }
}

const struct tl_table tl_insn_table = {.name = "insn",
                                       .columns = insn_columns,
                                       .n_columns = COUNT(insn_columns),
                                       .state_bytes = sizeof(struct insns),
                                       .rows = 1e9,
                                       .ordered = true,
                                       .first = first_insn,
                                       .next = next_insn,
                                       .column = insn_column,
                                       .close = close_insn};

/* ---- events and gaps ------------------------------------------------------------------------- */

struct events {
    struct tl_flow_rows flow;
    uint32_t kinds; /* bit set of the item kinds that are rows */
    struct tl_buf line;
};

enum {
    EVENT_TRACE,
    EVENT_STREAM,
    EVENT_POSITION,
    EVENT_TIME,
    EVENT_KIND,
    EVENT_NUMBER,
    EVENT_PC,
    EVENT_FUNCTION,
    EVENT_TEXT
};
static const struct tl_table_column event_columns[] = {
    [EVENT_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [EVENT_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [EVENT_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [EVENT_TIME] = {"time", "INT", TL_COLUMN_TIME},
    [EVENT_KIND] = {"kind", "TEXT", TL_COLUMN_PLAIN},
    [EVENT_NUMBER] = {"number", "INT", TL_COLUMN_PLAIN},
    [EVENT_PC] = {"pc", "INT", TL_COLUMN_PLAIN},
    [EVENT_FUNCTION] = {"function", "TEXT", TL_COLUMN_PLAIN},
    [EVENT_TEXT] = {"text", "TEXT", TL_COLUMN_PLAIN},
};

static int next_event(struct tl_cursor *c)
{
    struct events *const s = c->state;
    int r;
    while ((r = tl_flow_rows_next(c, &s->flow, false)) > 0)
        if (s->kinds >> s->flow.item->kind & 1)
            return TL_OK;
    c->end = true;
    return r;
}

static int first_of(struct tl_cursor *c, uint32_t kinds)
{
    struct events *const s = c->state;
    s->kinds = kinds;
    s->flow.detail = TL_WALK_ITEMS;
    const int r = tl_flow_rows_open(c, &s->flow);
    return r < 0 ? r : next_event(c);
}

static int first_event(struct tl_cursor *c)
{
    return first_of(c, TL_EVENT_KINDS);
}

static int first_gap(struct tl_cursor *c)
{
    return first_of(c, 1u << TL_ITEM_GAP);
}

static void close_event(struct tl_cursor *c)
{
    struct events *const s = c->state;
    tl_buf_fini(&s->line);
    tl_flow_rows_close(&s->flow);
}

static void event_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    struct events *const s = c->state;
    switch (column) {
    case EVENT_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case EVENT_STREAM:
        tl_column_text(context, tl_flow_rows_stream(&s->flow));
        break;
    case EVENT_POSITION:
        tl_column_u64(context, s->flow.position);
        break;
    case EVENT_TIME:
        tl_flow_rows_time(c, &s->flow, context, s->flow.position);
        break;
    case EVENT_KIND:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_KIND, &s->line, context);
        break;
    case EVENT_NUMBER:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_NUMBER, &s->line, context);
        break;
    case EVENT_PC:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_PC, &s->line, context);
        break;
    case EVENT_FUNCTION:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_FUNCTION, &s->line, context);
        break;
    default:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_TEXT, &s->line, context);
    }
}

const struct tl_table tl_event_table = {.name = "event",
                                        .columns = event_columns,
                                        .n_columns = COUNT(event_columns),
                                        .state_bytes = sizeof(struct events),
                                        .rows = 1e6,
                                        .ordered = true,
                                        .first = first_event,
                                        .next = next_event,
                                        .column = event_column,
                                        .close = close_event};

const struct tl_table tl_gap_table = {.name = "gap",
                                      .columns = event_columns,
                                      .n_columns = COUNT(event_columns),
                                      .state_bytes = sizeof(struct events),
                                      .rows = 1e4,
                                      .ordered = true,
                                      .first = first_gap,
                                      .next = next_event,
                                      .column = event_column,
                                      .close = close_event};
