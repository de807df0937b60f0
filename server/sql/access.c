/* SPDX-License-Identifier: MIT */
/*
 * The table of accesses to memory: what `find --data` finds, of all variables. A block may tell
 * several, and a note is one of the instruction in front of it, which may be of the chunk before.
 */
#include "query/accesses.h"
#include "query/query.h"
#include "sql/flow.h"

#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

struct accesses {
    struct tl_flow_rows flow; /* first: what the functions below share */
    struct tl_told_access told;
    uint64_t position;
    /* Of a block of pushed STF: */
    struct tl_walk_step insn;
    struct tl_stf_group group; /* records of the instruction that are to be read */
    size_t byte;               /* where the next instruction begins */
    uint32_t left;             /* instructions behind this one; the group's, if `reads` */
    bool reads;
    uint64_t last; /* if `has_last`: the last instruction of the chunks before this one … */
    size_t at;     /* … of this stream */
    bool has_last;
    char text[TL_TOLD_NAME]; /* of the row, if `named` */
    char *value;             /* in it; NULL: none */
    bool named;
};

enum {
    ACCESS_TRACE,
    ACCESS_STREAM,
    ACCESS_POSITION,
    ACCESS_TIME,
    ACCESS_KIND,
    ACCESS_PC,
    ACCESS_FUNCTION,
    ACCESS_ADDRESS,
    ACCESS_SIZE,
    ACCESS_VALUE,
    ACCESS_VARIABLE,
    ACCESS_TEXT
};
static const struct tl_table_column access_columns[] = {
    [ACCESS_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [ACCESS_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [ACCESS_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [ACCESS_TIME] = {"time", "INT", TL_COLUMN_TIME},
    [ACCESS_KIND] = {"kind", "TEXT", TL_COLUMN_PLAIN},
    [ACCESS_PC] = {"pc", "INT", TL_COLUMN_PLAIN},
    [ACCESS_FUNCTION] = {"function", "TEXT", TL_COLUMN_PLAIN},
    [ACCESS_ADDRESS] = {"address", "INT", TL_COLUMN_PLAIN},
    [ACCESS_SIZE] = {"size", "INT", TL_COLUMN_PLAIN},
    [ACCESS_VALUE] = {"value", "INT", TL_COLUMN_PLAIN},
    [ACCESS_VARIABLE] = {"variable", "TEXT", TL_COLUMN_PLAIN},
    [ACCESS_TEXT] = {"text", "TEXT", TL_COLUMN_PLAIN},
};

/* ---- records --------------------------------------------------------------------------------- */

/* The next access of the block: 1; TL_OK: there is none; TL_BAD. */
static int next_record(struct accesses *s)
{
    const struct tl_walk *const walk = &s->flow.walk.walk;
    struct tl_stf_access record;
    for (;;) {
        if (s->reads && tl_stf_group_access(&s->group, &record) == TL_OK) {
            s->told = tl_told_record(&record, s->insn.pc);
            return 1;
        }
        s->position += s->reads;
        s->reads = false;
        if (s->left == 0)
            return TL_OK;
        s->left--;
        const int r = tl_walk_insn(walk, s->flow.item->block, &s->byte, s->insn.next, &s->insn);
        if (r < 0)
            return r;
        s->group = (struct tl_stf_group){.rest = s->insn.group, .layout = walk->groups.layout};
        s->reads = true;
    }
}

static void begin_records(struct accesses *s)
{
    const struct tl_item *const item = s->flow.item;
    const bool has = s->flow.walk.walk.whole && s->flow.cut.lane->protocol == TL_PROTO_STF;
    s->byte = 0;
    s->left = has ? item->n : 0;
    s->insn.next = item->block->pc;
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* The chunk's last instruction, before the next chunk is read. */
static int leave_chunk(struct accesses *s)
{
    const struct tl_walk *const walk = &s->flow.walk.walk;
    if (!s->flow.walking || s->flow.next < walk->n || walk->n == 0)
        return TL_OK;
    const int r = tl_told_last(walk, walk->n, &s->last);
    if (r != TL_OK || s->at != s->flow.stream) /* otherwise the last one is still that */
        s->has_last = r > 0;
    s->at = s->flow.stream;
    return r == TL_NOTFOUND ? TL_OK : r;
}

static int take_note(struct accesses *s)
{
    const struct tl_flow_rows *const f = &s->flow;
    const struct tl_walk *const walk = &f->walk.walk;
    const struct tl_item *const next = f->next < walk->n ? &walk->items[f->next] : NULL;
    if (!tl_told_note(f->item->text, next && next->kind == TL_ITEM_NOTE ? next->text : "",
                      &s->told))
        return TL_OK;
    if (s->told.kind == TL_TOLD_LATE)
        return 1;
    const int r = tl_told_last(walk, f->next - 1, &s->told.pc);
    s->told.has_pc = r > 0;
    if (r == TL_OK && s->has_last && s->at == f->stream) {
        s->told.has_pc = true;
        s->told.pc = s->last;
    } else if (r == TL_OK && f->position > 0 && f->position == f->from) {
        return TL_OK; /* its instruction is in front of what is asked for */
    }
    s->position -= s->told.has_pc; /* that of the instruction */
    return r == TL_BAD ? r : 1;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The next access that an item tells, from the present one on: 1; TL_OK: none. */
static int next_told(struct tl_cursor *c, struct accesses *s)
{
    int r = next_record(s);
    while (r == TL_OK) {
        r = leave_chunk(s);
        if (r >= 0)
            r = tl_flow_rows_next(c, &s->flow, false);
        if (r <= 0)
            return r;
        s->position = s->flow.position;
        switch (s->flow.item->kind) {
        case TL_ITEM_BLOCK:
            begin_records(s);
            r = next_record(s);
            break;
        case TL_ITEM_NOTE:
            r = take_note(s);
            break;
        case TL_ITEM_HARDWARE:
            r = tl_told_event(s->flow.item, &s->told);
            break;
        default:
            r = TL_OK;
        }
    }
    return r;
}

static int next_access(struct tl_cursor *c)
{
    struct accesses *const s = c->state;
    const int r = next_told(c, s);
    s->named = false;
    c->end = r <= 0;
    return r == TL_BAD ? tl_fail_set(c->asking->fail, r, "a shard is damaged") : r < 0 ? r : TL_OK;
}

static bool has_note(const struct tl_chunk *chunk)
{
    return chunk->kinds & 1u << TL_ITEM_NOTE;
}

static bool may_begin_with_note(const struct tl_chunk *chunk)
{
    return has_note(chunk) || chunk->n == 0; /* then it is what comes behind it */
}

/* May what comes behind the chunk begin with a note, whose instruction may be the chunk's last one?
 */
static bool note_follows(const struct tl_flow_rows *f, const struct tl_chunk *chunk)
{
    const struct tl_shard_index *const index = &f->walk.view->index;
    struct tl_view *next;
    if (chunk + 1 < index->chunks + index->n_chunks)
        return may_begin_with_note(chunk + 1);
    if (f->walk.shard + 1 == f->cut.n_rows)
        return false;
    if (tl_cut_view(&f->cut, f->walk.shard + 1, &next, NULL) < 0)
        return true;
    const bool follows = next->index.n_chunks == 0 || may_begin_with_note(next->index.chunks);
    tl_view_put(next);
    return follows;
}

static bool wants_chunk(const struct tl_flow_rows *f, const struct tl_chunk *chunk)
{
    return f->cut.lane->protocol == TL_PROTO_STF || has_note(chunk) ||
           chunk->kinds & 1u << TL_ITEM_HARDWARE || note_follows(f, chunk);
}

static int first_access(struct tl_cursor *c)
{
    struct accesses *const s = c->state;
    s->flow.detail = TL_WALK_FLOW;
    s->flow.behind = true;
    s->flow.wants_chunk = wants_chunk;
    const int r = tl_flow_rows_open(c, &s->flow);
    return r < 0 ? r : next_access(c);
}

static void close_access(struct tl_cursor *c)
{
    struct accesses *const s = c->state;
    tl_flow_rows_close(&s->flow);
}

/* Divide what was accessed from its value. */
static void find_name(struct accesses *s)
{
    if (s->named)
        return;
    if (!tl_told_name(&s->told, tl_flow_rows_image(&s->flow), s->text))
        *s->text = '\0';
    char *const at = strstr(s->text, TL_VARIABLE_VALUE);
    s->value = at ? at + strlen(TL_VARIABLE_VALUE) : NULL;
    if (at)
        *at = '\0';
    s->named = true;
}

static void tell_number(sqlite3_context *context, bool known, uint64_t value)
{
    if (known)
        tl_column_u64(context, value);
}

static const char *kind_of(const struct tl_told_access *told)
{
    static const char *const names[] = {[TL_TOLD_ACCESS] = "access",
                                        [TL_TOLD_READ] = "read",
                                        [TL_TOLD_WRITE] = "write",
                                        [TL_TOLD_LATE] = "late",
                                        [TL_TOLD_NOT_TRACED] = "not-traced"};
    return names[told->kind];
}

static void access_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    struct accesses *const s = c->state;
    const struct tl_told_access *const told = &s->told;
    switch (column) {
    case ACCESS_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case ACCESS_STREAM:
        tl_column_text(context, tl_flow_rows_stream(&s->flow));
        break;
    case ACCESS_POSITION:
        tl_column_u64(context, s->position);
        break;
    case ACCESS_TIME:
        tl_flow_rows_time(c, &s->flow, context, s->position);
        break;
    case ACCESS_KIND:
        tl_column_text(context, kind_of(told));
        break;
    case ACCESS_PC:
        tell_number(context, told->has_pc, told->pc);
        break;
    case ACCESS_FUNCTION:
        if (told->has_pc)
            tl_column_text(context, tl_function_name(
                                        tl_flow_rows_image(&s->flow),
                                        tl_flow_now_function(
                                            &s->flow.now, tl_flow_rows_image(&s->flow), told->pc)));
        break;
    case ACCESS_ADDRESS:
        tell_number(context, told->has_address, told->address);
        break;
    case ACCESS_SIZE:
        tell_number(context, told->bytes > 0, told->bytes);
        break;
    case ACCESS_VALUE:
        tell_number(context, told->has_value, told->value);
        break;
    case ACCESS_VARIABLE:
        find_name(s);
        tl_column_text(context, s->text);
        break;
    default:
        find_name(s);
        tl_column_text(context, s->value);
    }
}

const struct tl_table tl_access_table = {.name = "access",
                                         .columns = access_columns,
                                         .n_columns = COUNT(access_columns),
                                         .state_bytes = sizeof(struct accesses),
                                         .rows = 1e6,
                                         .ordered = true,
                                         .first = first_access,
                                         .next = next_access,
                                         .column = access_column,
                                         .close = close_access};
