/* SPDX-License-Identifier: MIT */
/*
 * The table of instructions. Columns are made when they are asked for: counting instructions reads
 * no symbol, and only the disassembly column disassembles. Blocks without an instruction of the
 * function that is asked for are passed as a whole.
 */
#include "disasm/disasm.h"
#include "query/query.h"
#include "sql/insn_groups.h"

#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

#define NAMED 1024 /* addresses whose function is remembered */

/* Where instructions or blocks are remembered by address, as long as the program is the same. */
struct seen {
    uint64_t pc;
    uint32_t sight;
};

struct insns {
    struct tl_flow_rows flow; /* first: what the functions below share */
    uint64_t position;
    struct tl_walk_step insn;
    size_t byte;   /* of the block, where the next one begins */
    uint64_t left; /* instructions of the block behind this one; rows of the group */
    uint64_t pc;
    bool known; /* its encoding is */
    uint8_t isa;
    struct {
        struct seen at;
        const char *name;
    } named[NAMED];
    struct {
        struct seen at;
        uint32_t n;
        bool wanted;
    } blocks[NAMED];
    const char *matched; /* the name last found to be that of the function asked for */
    uint32_t sight;
    size_t stream;    /* number of the one that this is of */
    bool moved;       /* items since the last block may have changed the sight */
    uint64_t changed; /* when the program did */
    struct tl_insn_groups groups;
    size_t group; /* the next one */
    struct tl_disasm *disasm[TL_ISA_COUNT];
    bool tried[TL_ISA_COUNT];
    char text[480]; /* of the group's instruction */
    bool told;      /* it is made */
};

#define BOTH(name) 1u << TL_COLUMN_INSN_##name
#define SORTED                                                                                     \
    (BOTH(TRACE) | BOTH(STREAM) | BOTH(PC) | BOTH(SIZE) | BOTH(OPCODE) | BOTH(FUNCTION) |          \
     BOTH(TAKEN))

static const struct tl_table_column insn_columns[] = {
    [TL_COLUMN_INSN_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [TL_COLUMN_INSN_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [TL_COLUMN_INSN_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [TL_COLUMN_INSN_TIME] = {"time", "INT", TL_COLUMN_TIME},
    [TL_COLUMN_INSN_PC] = {"pc", "INT", TL_COLUMN_PLAIN},
    [TL_COLUMN_INSN_SIZE] = {"size", "INT", TL_COLUMN_PLAIN},
    [TL_COLUMN_INSN_OPCODE] = {"opcode", "INT", TL_COLUMN_PLAIN},
    [TL_COLUMN_INSN_FUNCTION] = {"function", "TEXT", TL_COLUMN_FUNCTION},
    [TL_COLUMN_INSN_TAKEN] = {"taken", "INT", TL_COLUMN_PLAIN},
    [TL_COLUMN_INSN_TEXT] = {"text", "TEXT", TL_COLUMN_PLAIN},
};

/* ---- functions ------------------------------------------------------------------------------- */

/* What was remembered holds until mode, context or memory change (as shard/walk_kept.c). */
static void look_again(struct insns *s)
{
    const struct tl_image *const image = tl_flow_rows_image(&s->flow);
    const uint64_t changed = image ? tl_image_last_change(image, s->flow.now.time) : 0;
    s->sight += changed != s->changed || s->stream != s->flow.stream;
    s->changed = changed;
    s->stream = s->flow.stream;
    s->matched = NULL;
    s->moved = false;
}

static bool is_seen(const struct insns *s, const struct seen *at, uint64_t pc)
{
    return at->pc == pc && at->sight == s->sight;
}

static const char *name_of(const struct insns *s, uint64_t pc)
{
    const struct tl_image *const image = tl_flow_rows_image(&s->flow);
    return tl_function_name(image, tl_flow_now_function(&s->flow.now, image, pc));
}

/* A block may go on from one function into the next. */
static const char *function_at(struct insns *s)
{
    const size_t i = s->pc / 2 % NAMED;
    if (!is_seen(s, &s->named[i].at, s->pc)) {
        s->named[i].at = (struct seen){s->pc, s->sight};
        s->named[i].name = name_of(s, s->pc);
    }
    return s->named[i].name;
}

/* Is an instruction of the block of the function that is asked for? */
static bool look_into(const struct tl_cursor *c, const struct insns *s, const struct tl_item *item)
{
    struct tl_walk_step step = {.next = item->block->pc};
    size_t at = 0;
    for (uint32_t i = 0; i < item->n; i++) {
        if (tl_walk_insn(&s->flow.walk.walk, item->block, &at, step.next, &step) < 0)
            return true; /* to be reported */
        if (strcmp(name_of(s, step.pc), c->bounds.function) == 0)
            return true;
    }
    return false;
}

static bool wants_block(const struct tl_cursor *c, struct insns *s, const struct tl_item *item)
{
    if (!c->bounds.function)
        return true;
    const uint64_t pc = item->block->pc;
    const size_t i = (pc >> 1 ^ pc >> 11) % NAMED;
    if (!is_seen(s, &s->blocks[i].at, pc) || s->blocks[i].n != item->n) {
        s->blocks[i].at = (struct seen){pc, s->sight};
        s->blocks[i].n = item->n;
        s->blocks[i].wanted = look_into(c, s, item);
    }
    return s->blocks[i].wanted;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool wants_row(const struct tl_cursor *c, struct insns *s)
{
    const char *const name = c->bounds.function ? function_at(s) : NULL;
    if (name == s->matched)
        return true;
    if (strcmp(name, c->bounds.function) != 0)
        return false;
    s->matched = name;
    return true;
}

/* Go to the block's next wanted instruction: 1; TL_OK: there is none. */
static int step_insn(struct tl_cursor *c, struct insns *s)
{
    while (s->left > 0) {
        s->left--;
        s->position++;
        const int r =
            tl_walk_insn(&s->flow.walk.walk, s->flow.item->block, &s->byte, s->insn.next, &s->insn);
        if (r < 0)
            return tl_fail_set(c->asking->fail, r, "a shard is damaged");
        s->pc = s->insn.pc;
        if (wants_row(c, s))
            return 1;
    }
    return TL_OK;
}

static int next_group(struct tl_cursor *c, struct insns *s)
{
    if (s->group == s->groups.n) {
        c->end = true;
        return TL_OK;
    }
    const struct tl_insn_group *const next = &s->groups.p[s->group++];
    s->left = next->count - 1;
    s->pc = next->pc;
    s->known = next->size > 0;
    s->isa = next->isa;
    s->insn.size = next->size;
    s->insn.opcode = next->opcode;
    s->insn.taken = next->taken;
    memcpy(s->insn.code, next->code, sizeof s->insn.code);
    s->told = false;
    return TL_OK;
}

static int next_insn(struct tl_cursor *c)
{
    struct insns *const s = c->state;
    if (c->groups)
        return s->left > 0 ? (s->left--, TL_OK) : next_group(c, s);
    int r = step_insn(c, s);
    if (r != TL_OK)
        return r;
    while ((r = tl_flow_rows_next(c, &s->flow, false)) > 0) {
        const struct tl_item *const item = s->flow.item;
        s->position = s->flow.position;
        s->known = item->kind == TL_ITEM_BLOCK;
        if (!s->known && item->kind != TL_ITEM_UNKNOWN) {
            s->sight += item->kind == TL_ITEM_MODE || item->kind == TL_ITEM_CONTEXT;
            s->moved = true;
            continue;
        }
        if (s->moved || s->stream != s->flow.stream)
            look_again(s);
        if (s->known && wants_block(c, s, item)) {
            s->byte = 0;
            s->insn.next = item->block->pc;
            s->isa = item->block->isa;
            s->left = item->n;
            s->position--;
            r = step_insn(c, s);
            if (r != TL_OK)
                return r;
        }
        s->pc = item->pc;
        if (!s->known && wants_row(c, s))
            return TL_OK;
    }
    c->end = true;
    return r;
}

static int first_insn(struct tl_cursor *c)
{
    struct insns *const s = c->state;
    s->flow.detail = TL_WALK_FLOW;
    s->sight = 1;
    s->moved = true;
    int r = tl_flow_rows_open(c, &s->flow);
    if (r >= 0 && c->groups)
        r = tl_insn_groups_count(&s->groups, c, &s->flow, c->groups);
    return r < 0 ? r : next_insn(c);
}

static void close_insn(struct tl_cursor *c)
{
    struct insns *const s = c->state;
    for (size_t i = 0; i < TL_ISA_COUNT; i++)
        tl_disasm_free(s->disasm[i]);
    tl_insn_groups_fini(&s->groups);
    tl_flow_rows_close(&s->flow);
}

/* ---- columns --------------------------------------------------------------------------------- */

static bool disassemble(struct insns *s)
{
    const enum tl_isa isa = (enum tl_isa)s->isa;
    if (isa >= TL_ISA_COUNT)
        return false;
    if (!s->tried[isa] && tl_disasm_new(&s->disasm[isa], isa, NULL) < 0)
        s->disasm[isa] = NULL;
    s->tried[isa] = true;
    tl_walk_code(&s->insn, (uint8_t)isa);
    const struct tl_bytes code = {s->insn.code, s->insn.size};
    return s->disasm[isa] &&
           tl_disasm_text(s->disasm[isa], s->pc, code, s->text, sizeof s->text) >= 0;
}

static void tell_text(const struct tl_cursor *c, struct insns *s, sqlite3_context *context)
{
    if ((!c->groups || !s->told) && !disassemble(s))
        s->text[0] = 0;
    s->told = true;
    tl_column_text(context, s->text);
}

static void tell_names(const struct tl_cursor *c, struct insns *s, sqlite3_context *context,
                       bool stream)
{
    const struct tl_insn_group *const group = c->groups ? &s->groups.p[s->group - 1] : NULL;
    const bool lasts = group ? s->groups.names_last : s->flow.names_last;
    if (stream)
        tl_column_name(context, group ? group->stream : tl_flow_rows_stream(&s->flow), lasts);
    else
        tl_column_name(context, group ? group->function : function_at(s), lasts);
}

/* Of an instruction whose code is known. */
static void tell_code(const struct tl_cursor *c, struct insns *s, sqlite3_context *context,
                      int column)
{
    if (column == TL_COLUMN_INSN_SIZE)
        sqlite3_result_int(context, s->insn.size);
    else if (column == TL_COLUMN_INSN_OPCODE)
        sqlite3_result_int64(context, s->insn.opcode);
    else if (column == TL_COLUMN_INSN_TAKEN)
        sqlite3_result_int(context, s->insn.taken || s->insn.leaves);
    else
        tell_text(c, s, context);
}

/* Of the present row of a group. */
static uint64_t group_position(const struct insns *s)
{
    const struct tl_insn_group *const group = &s->groups.p[s->group - 1];
    return tl_insn_group_position(&s->groups, group, group->count - 1 - s->left);
}

static void insn_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    struct insns *const s = c->state;
    switch (column) {
    case TL_COLUMN_INSN_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case TL_COLUMN_INSN_STREAM:
    case TL_COLUMN_INSN_FUNCTION:
        tell_names(c, s, context, column == TL_COLUMN_INSN_STREAM);
        break;
    case TL_COLUMN_INSN_POSITION:
        tl_column_u64(context, c->groups ? group_position(s) : s->position);
        break;
    case TL_COLUMN_INSN_TIME:
        tl_flow_rows_time(c, &s->flow, context, s->position);
        break;
    case TL_COLUMN_INSN_PC:
        tl_column_u64(context, s->pc);
        break;
    default:
        if (s->known)
            tell_code(c, s, context, column);
    }
}

const struct tl_table tl_insn_table = {.name = "insn",
                                       .columns = insn_columns,
                                       .n_columns = COUNT(insn_columns),
                                       .state_bytes = sizeof(struct insns),
                                       .rows = 1e9,
                                       .ordered = true,
                                       .grouped = SORTED | BOTH(TEXT),
                                       .sorted = SORTED,
                                       .first = first_insn,
                                       .next = next_insn,
                                       .column = insn_column,
                                       .close = close_insn};
