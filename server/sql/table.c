/* SPDX-License-Identifier: MIT */
/*
 * The part of SQLite's interface for virtual tables that all of them share: conditions on trace,
 * stream, function, position and time become bounds. A plan is a text of two letters for each
 * argument: what is bounded, and how.
 */
#include "sql/table.h"

#include "lake/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_MAX 32 /* conditions handed to a table; SQLite tests all others */

struct module {
    sqlite3_vtab base;
    const struct tl_table *table;
    struct tl_asking *asking;
};

/* What a module is registered with. */
struct offer {
    const struct tl_table *table;
    struct tl_asking *asking;
};

static const char role_letters[TL_COLUMN_ROLES + 1] = "-tsfpi";
#define LIMIT_LETTER 'l' /* as many rows are wanted, and: */
#define SKIP_LETTER  'o' /* as many before these */

/* ---- plans ----------------------------------------------------------------------------------- */

static char operator_of(int op, enum tl_column_role role)
{
    const bool number = role == TL_COLUMN_POSITION || role == TL_COLUMN_TIME;
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return number ? '>' : 0;
    case SQLITE_INDEX_CONSTRAINT_GE:
        return number ? ']' : 0;
    case SQLITE_INDEX_CONSTRAINT_LT:
        return number ? '<' : 0;
    case SQLITE_INDEX_CONSTRAINT_LE:
        return number ? '[' : 0;
    default:
        return 0;
    }
}

static enum tl_column_role role_of(const struct tl_table *table, int column)
{
    return column >= 0 && column < table->n_columns ? table->columns[column].role : TL_COLUMN_PLAIN;
}

/* A share of the rows that is left by a condition. */
static double share_of(char role, char op)
{
    return op != '=' ? 0.1 : role == 'p' || role == 'i' ? 1e-6 : 0.3;
}

/* Can a table apply a condition alone? Texts are compared by their bytes, and one at a time. */
static char applied(sqlite3_index_info *info, int i, enum tl_column_role role)
{
    const struct sqlite3_index_constraint *const c = &info->aConstraint[i];
    const char op = c->usable && role != TL_COLUMN_PLAIN ? operator_of(c->op, role) : 0;
    const bool number = role == TL_COLUMN_POSITION || role == TL_COLUMN_TIME;
    if (op && !number && strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
        return 0;
    return role == TL_COLUMN_FUNCTION && op && sqlite3_vtab_in(info, i, -1) ? 0 : op;
}

/* The columns that tell positions. */
static uint32_t positions_of(const struct tl_table *table)
{
    uint32_t columns = 0;
    for (int i = 0; i < table->n_columns; i++)
        columns |= (uint32_t)(table->columns[i].role == TL_COLUMN_POSITION) << i;
    return columns;
}

/* How rows may be put together. */
static uint32_t groups_of(const struct module *module, sqlite3_index_info *info)
{
    const struct tl_table *const table = module->table;
    const int distinct = sqlite3_vtab_distinct(info);
    uint32_t groups = distinct > 1 ? TL_GROUP_ONCE : 0;
    const uint64_t other = info->colUsed & ~(uint64_t)table->grouped;
    const bool positions = other && !(other & ~positions_of(table));
    if (distinct == 0 || info->nOrderBy < 1 || info->nOrderBy > TL_GROUP_COLUMNS ||
        (other && !positions) || !table->grouped)
        return 0;
    for (int i = 0; i < info->nOrderBy; i++) {
        const int column = info->aOrderBy[i].iColumn;
        if (column < 0 || !(table->sorted >> column & 1))
            return 0;
        groups |= ((uint32_t)column + 1 + 16 * info->aOrderBy[i].desc) << 5 * i;
    }
    /* Rows of another table name the traces: that one comes first. */
    for (int i = 0; i < info->nConstraint; i++)
        if (!info->aConstraint[i].usable &&
            role_of(table, info->aConstraint[i].iColumn) == TL_COLUMN_TRACE)
            return 0;
    module->asking->counts_on_it |= positions;
    return positions && !module->asking->bounds_only
               ? (groups & ~TL_GROUP_ONCE) | TL_GROUP_POSITIONS
               : groups;
}

/* Do rows come in the order that is wanted? */
static bool comes_in_order(const struct tl_table *table, const sqlite3_index_info *info,
                           const char *plan)
{
    return table->ordered && info->nOrderBy == 1 && !info->aOrderBy[0].desc &&
           role_of(table, info->aOrderBy[0].iColumn) == TL_COLUMN_POSITION && strstr(plan, "s=");
}

static bool is_limit(const sqlite3_index_info *info, int i)
{
    const unsigned char op = info->aConstraint[i].op;
    return op == SQLITE_INDEX_CONSTRAINT_LIMIT || op == SQLITE_INDEX_CONSTRAINT_OFFSET;
}

/* Are the rows that a question wants the first ones by the column by which the table finds them?
 * Then the plan has all of its conditions, exactly; bounds in time are none. */
static bool wants_largest(const struct tl_table *table, const sqlite3_index_info *info)
{
    const int by = info->nOrderBy == 1 ? info->aOrderBy[0].iColumn : -1;
    if (table->largest == 0 || by != table->largest || !info->aOrderBy[0].desc)
        return false;
    for (int i = 0; i < info->nConstraint; i++)
        if (is_limit(info, i) ? !info->aConstraint[i].usable
                              : !info->aConstraintUsage[i].argvIndex ||
                                    role_of(table, info->aConstraint[i].iColumn) == TL_COLUMN_TIME)
            return false;
    return true;
}

/* Add how many rows are wanted to a plan of `n` conditions. */
static void add_limits(sqlite3_index_info *info, char *plan, int n)
{
    for (int i = 0; i < info->nConstraint; i++) {
        if (!is_limit(info, i))
            continue;
        plan[2 * n] =
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_LIMIT ? LIMIT_LETTER : SKIP_LETTER;
        plan[2 * n + 1] = '=';
        info->aConstraintUsage[i].argvIndex = ++n;
        plan[2 * n] = 0;
    }
}

static int choose_plan(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct module *const module = (struct module *)base;
    const struct tl_table *const table = module->table;
    const uint32_t groups = groups_of(module, info);
    char plan[2 * PLAN_MAX + 1] = "";
    double rows = table->rows, read = rows; /* a function's rows are found by reading all */
    int n = 0;
    for (int i = 0; i < info->nConstraint && n < PLAN_MAX; i++) {
        const enum tl_column_role role = role_of(table, info->aConstraint[i].iColumn);
        const char op = applied(info, i, role);
        if (!op)
            continue;
        plan[2 * n] = role_letters[role];
        plan[2 * n + 1] = op;
        info->aConstraintUsage[i].argvIndex = ++n;
        /* In groups there is no position to be tested again; elsewhere all rows are of the function
         * that is asked for. */
        info->aConstraintUsage[i].omit =
            groups ? role == TL_COLUMN_POSITION : role == TL_COLUMN_FUNCTION;
        rows *= share_of(role_letters[role], op);
        read *= role == TL_COLUMN_FUNCTION ? 1 : share_of(role_letters[role], op);
    }
    plan[2 * n] = 0;
    if (n + 2 <= PLAN_MAX && wants_largest(table, info))
        add_limits(info, plan, n);
    info->idxNum = (int)groups;
    info->idxStr = sqlite3_mprintf("%s", plan);
    info->needToFreeIdxStr = 1;
    info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
    /* Rows are numbered as they are read, so that several reads cannot be united: each costs nearly
     * as much as one of all rows, and two of them more. */
    info->estimatedCost = module->asking->reads_once ? table->rows * (n > 0 ? 0.9 : 1) : read + 10;
    info->orderByConsumed = info->idxNum || comes_in_order(table, info, plan);
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void free_bounds(struct tl_table_bounds *b)
{
    free(b->trace);
    free(b->stream);
    free(b->function);
    *b = (struct tl_table_bounds){.last_position = UINT64_MAX, .last_time = UINT64_MAX};
}

/* Two different texts for one column leave no rows, nor does what is no name. */
static int bound_text(struct tl_table_bounds *b, char **text, sqlite3_value *value)
{
    const bool blob = sqlite3_value_type(value) == SQLITE_BLOB;
    const char *const wanted = blob ? NULL : (const char *)sqlite3_value_text(value);
    if (!wanted || !*wanted || strlen(wanted) != (size_t)sqlite3_value_bytes(value) ||
        (*text && strcmp(*text, wanted) != 0))
        b->nothing = true;
    else if (!*text && !(*text = strdup(wanted)))
        return TL_NOMEM;
    return TL_OK;
}

/* Take the whole numbers that a condition with a fraction means; false: it is none of them, or is
 * met by all. */
static bool take_real(struct tl_table_bounds *b, char *op, double number, uint64_t *v)
{
    const bool below = *op == '<' || *op == '[';
    if (!(number >= 0 && number < 9e18)) {
        b->nothing = b->nothing || below == (number < 0) || *op == '=';
        return false;
    }
    *v = (uint64_t)number;
    if ((double)*v != number) {
        b->nothing = b->nothing || *op == '=';
        *op = *op == '<' ? '[' : *op == ']' ? '>' : *op;
    }
    return true;
}

/* A condition on a number: exactly what SQLite makes of it. Each text is more than any number. */
static void bound_number(struct tl_table_bounds *b, uint64_t *low, uint64_t *high, char op,
                         sqlite3_value *value)
{
    const int type = sqlite3_value_numeric_type(value);
    const bool below = op == '<' || op == '[';
    uint64_t v = 0;
    if (type == SQLITE_INTEGER) {
        const sqlite3_int64 number = sqlite3_value_int64(value);
        if (number < 0) {
            b->nothing = b->nothing || op == '=' || below;
            return;
        }
        v = (uint64_t)number;
    } else if (type == SQLITE_FLOAT) {
        if (!take_real(b, &op, sqlite3_value_double(value), &v))
            return;
    } else {
        b->nothing = b->nothing || type == SQLITE_NULL || !below;
        return;
    }
    if (op == '<' && v == 0)
        b->nothing = true;
    const uint64_t least = op == '>' ? v + 1 : v, most = op == '<' ? v - 1 : v;
    if ((op == '=' || op == '>' || op == ']') && least > *low)
        *low = least;
    if ((op == '=' || op == '<' || op == '[') && most < *high)
        *high = most;
    b->nothing = b->nothing || *low > *high;
}

/* How many rows a question wants, with those that it leaves out first. */
static void take_limits(struct tl_cursor *c, const char *plan, sqlite3_value **values)
{
    uint64_t most = 0, skipped = 0;
    for (size_t i = 0; plan[2 * i]; i++) {
        const bool limit = plan[2 * i] == LIMIT_LETTER;
        if (!limit && plan[2 * i] != SKIP_LETTER)
            continue;
        const sqlite3_int64 number = sqlite3_value_int64(values[i]);
        if (number > 0)
            *(limit ? &most : &skipped) = (uint64_t)number;
    }
    c->most = most > 0 ? most + skipped : 0;
}

static int take_bounds(struct tl_table_bounds *b, const char *plan, sqlite3_value **values)
{
    int r = TL_OK;
    for (size_t i = 0; plan[2 * i] && r >= 0; i++) {
        sqlite3_value *const value = values[i];
        const char op = plan[2 * i + 1];
        switch (plan[2 * i]) {
        case 't':
            r = bound_text(b, &b->trace, value);
            break;
        case 's':
            r = bound_text(b, &b->stream, value);
            break;
        case 'f':
            r = bound_text(b, &b->function, value);
            break;
        case 'p':
            bound_number(b, &b->position, &b->last_position, op, value);
            break;
        case 'i':
            bound_number(b, &b->time, &b->last_time, op, value);
            break;
        default: /* no condition */
            break;
        }
    }
    return r;
}

int tl_cursor_trace(struct tl_cursor *c, struct tl_trace_list *out)
{
    int r = tl_lake_trace(c->asking->lake, c->bounds.trace, out);
    if (r >= 0 && !tl_asking_sees(c->asking, out->rows))
        r = TL_NOTFOUND;
    return r == TL_NOTFOUND ? tl_fail_set(c->asking->fail, r, "no trace %.80s", c->bounds.trace)
           : r < 0
               ? tl_fail_set(c->asking->fail, r, "trace %.80s: %s", c->bounds.trace, tl_err_name(r))
               : TL_OK;
}

/* ---- SQLite's functions ---------------------------------------------------------------------- */

/* Report why there are no rows, to be told instead of SQLite's own text. */
static int done(struct tl_cursor *c, int r)
{
    if (r >= 0)
        return SQLITE_OK;
    c->asking->error = r;
    return r == TL_NOMEM ? SQLITE_NOMEM : r == TL_CANCELLED ? SQLITE_INTERRUPT : SQLITE_ERROR;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **why)
{
    const struct offer *const offer = aux;
    const struct tl_table *const table = offer->table;
    char schema[1024] = "CREATE TABLE x(";
    (void)argc;
    (void)argv;
    (void)why;
    for (int i = 0; i < table->n_columns; i++) {
        const size_t n = strlen(schema);
        snprintf(schema + n, sizeof schema - n, "%s\"%s\" %s", i ? ", " : "",
                 table->columns[i].name, table->columns[i].type);
    }
    strcat(schema, ")");
    const int r = sqlite3_declare_vtab(db, schema);
    struct module *const module = r == SQLITE_OK ? sqlite3_malloc(sizeof *module) : NULL;
    if (!module)
        return r == SQLITE_OK ? SQLITE_NOMEM : r;
    *module = (struct module){.table = table, .asking = offer->asking};
    *out = &module->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    const struct module *const module = (const struct module *)base;
    struct tl_cursor *const c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->table = module->table;
    c->asking = module->asking;
    free_bounds(&c->bounds);
    *out = &c->base;
    return SQLITE_OK;
}

static void leave_rows(struct tl_cursor *c)
{
    if (c->state)
        c->table->close(c);
    free(c->state);
    c->state = NULL;
    free_bounds(&c->bounds);
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct tl_cursor *const c = (struct tl_cursor *)base;
    leave_rows(c);
    free(c);
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
                  sqlite3_value **argv)
{
    struct tl_cursor *const c = (struct tl_cursor *)base;
    (void)argc;
    leave_rows(c);
    c->groups = (uint32_t)number;
    c->end = false;
    c->row = 0;
    take_limits(c, plan, argv);
    int r = take_bounds(&c->bounds, plan, argv);
    const char *const trace = c->asking->request->trace;
    if (r >= 0 && !c->bounds.trace && !(c->bounds.trace = strdup(trace ? trace : "")))
        r = TL_NOMEM;
    if (r < 0 || c->bounds.nothing) {
        c->end = true;
        return done(c, r);
    }
    c->state = calloc(1, c->table->state_bytes);
    return done(c, c->state ? c->table->first(c) : TL_NOMEM);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    struct tl_cursor *const c = (struct tl_cursor *)base;
    c->row++;
    return done(c, c->table->next(c));
}

static int is_end(sqlite3_vtab_cursor *base)
{
    return ((struct tl_cursor *)base)->end;
}

static int get_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    struct tl_cursor *const c = (struct tl_cursor *)base;
    c->table->column(c, context, column);
    return SQLITE_OK;
}

static int get_row(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((struct tl_cursor *)base)->row;
    return SQLITE_OK;
}

/* Without xCreate there is exactly one table of each, which needs no CREATE. */
static const sqlite3_module functions = {
    .xConnect = connect_table,
    .xBestIndex = choose_plan,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next_row,
    .xEof = is_end,
    .xColumn = get_column,
    .xRowid = get_row,
};

const struct tl_table *const tl_tables[TL_TABLES] = {
    &tl_trace_table, &tl_stream_table, &tl_function_table, &tl_note_table,
    &tl_insn_table,  &tl_event_table,  &tl_gap_table,      &tl_access_table,
    &tl_log_table,   &tl_call_table,   &tl_timeline_table};

int tl_tables_add(sqlite3 *db, struct tl_asking *asking)
{
    for (size_t i = 0; i < TL_TABLES; i++) {
        struct offer *const offer = malloc(sizeof *offer);
        if (!offer)
            return TL_NOMEM;
        *offer = (struct offer){tl_tables[i], asking};
        /* It frees the offer, also if it fails. */
        if (sqlite3_create_module_v2(db, tl_tables[i]->name, &functions, offer, free) != SQLITE_OK)
            return TL_NOMEM;
    }
    return TL_OK;
}

void tl_column_u64(sqlite3_context *context, uint64_t value)
{
    sqlite3_result_int64(context, (sqlite3_int64)value);
}

void tl_column_name(sqlite3_context *context, const char *text, bool lasts)
{
    if (text && *text)
        sqlite3_result_text(context, text, -1, lasts ? SQLITE_STATIC : SQLITE_TRANSIENT);
}

void tl_column_text(sqlite3_context *context, const char *text)
{
    tl_column_name(context, text, false);
}

/* ---- what a question keeps ------------------------------------------------------------------- */

bool tl_asking_keeps(struct tl_asking *asking, struct tl_gen *gen)
{
    for (size_t i = 0; i < TL_ASKING_KEPT; i++) {
        if (!asking->kept[i])
            asking->kept[i] = tl_gen_get(gen);
        if (asking->kept[i] == gen)
            return true;
    }
    return false;
}

void tl_asking_fini(struct tl_asking *asking)
{
    for (size_t i = 0; i < TL_ASKING_KEPT; i++)
        tl_gen_put(asking->kept[i]);
}
