/* SPDX-License-Identifier: MIT */
/*
 * `tracelake sql`: a question in SQL. Rows are printed as they come: aligned by the batch that they
 * are in, or as CSV, or as a JSON object in each line.
 */
#include "cli/cli.h"
#include "out/tablecsv.h"
#include "terminal/plain.h"
#include "terminal/progress.h"
#include "terminal/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDE 60 /* columns are not aligned beyond */

struct options {
    struct tl_remote remote;
    uint64_t limit, seconds;
    bool csv, json;
};

struct output {
    const struct options *options;
    bool begun, truncated;
};

/* ---- aligned --------------------------------------------------------------------------------- */

static int width_of(const struct tracelake_column *c, size_t rows)
{
    char number[TL_CELL];
    size_t width = strlen(c->name);
    for (size_t i = 0; i < rows; i++) {
        const size_t n = strlen(tl_table_text(c, i, number));
        width = n > width ? n : width;
    }
    return width > WIDE ? WIDE : (int)width;
}

static void print_aligned(const struct tracelake_table *t, bool head)
{
    char number[TL_CELL];
    int *const widths = calloc(t->n_columns + 1, sizeof *widths);
    if (!widths)
        return;
    for (size_t i = 0; i < t->n_columns; i++)
        widths[i] = width_of(&t->columns[i], t->n_rows);
    for (size_t i = 0; head && i < t->n_columns; i++)
        printf("%s%*s", i ? "  " : "# ",
               t->columns[i].kind == TRACELAKE_TEXTS ? -widths[i] : widths[i], t->columns[i].name);
    if (head)
        putchar('\n');
    for (size_t row = 0; row < t->n_rows; row++) {
        for (size_t i = 0; i < t->n_columns; i++) {
            const struct tracelake_column *const c = &t->columns[i];
            fputs("  ", stdout);
            if (c->kind == TRACELAKE_TEXTS)
                tl_print_plain(stdout, tl_table_text(c, row, number),
                               i + 1 < t->n_columns ? widths[i] : 0);
            else
                printf("%*s", widths[i], tl_table_text(c, row, number));
        }
        putchar('\n');
    }
    free(widths);
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static int print_csv(const struct tracelake_table *t, bool head)
{
    struct tl_buf out = {0};
    int r = head ? tl_table_csv_head(&out, t) : TL_OK;
    for (size_t row = 0; row < t->n_rows && r >= 0; row++)
        r = tl_table_csv_row(&out, t, row);
    if (r >= 0 && out.n > 0)
        fwrite(out.p, 1, out.n, stdout);
    tl_buf_fini(&out);
    return r < 0 ? TRACELAKE_NOMEM : TRACELAKE_OK;
}

static void print_json(const struct tracelake_table *t)
{
    char number[TL_CELL];
    for (size_t row = 0; row < t->n_rows; row++) {
        for (size_t i = 0; i < t->n_columns; i++) {
            const struct tracelake_column *const c = &t->columns[i];
            fputs(i ? "," : "{", stdout);
            tl_print_json_text(c->name);
            putchar(':');
            if (c->nulls[row])
                fputs("null", stdout);
            else if (c->kind == TRACELAKE_TEXTS)
                tl_print_json_text(c->texts[row]);
            else
                fputs(tl_table_text(c, row, number), stdout);
        }
        puts("}");
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int print_table(void *context, const struct tracelake_table *t)
{
    struct output *const out = context;
    const bool head = !out->begun;
    if (head)
        tl_progress_end();
    out->begun = true;
    int r = TRACELAKE_OK;
    if (out->options->csv)
        r = print_csv(t, head);
    else if (out->options->json)
        print_json(t);
    else
        print_aligned(t, head);
    out->truncated = t->truncated;
    return ferror(stdout) ? TRACELAKE_IO : r;
}

static int ask(const struct options *o, const char *trace, const char *text)
{
    const struct tracelake_question question = {
        .trace = trace, .text = text, .rows = o->limit, .seconds = (uint32_t)o->seconds};
    struct output out = {.options = o};
    struct tracelake_error error;
    struct tracelake *lake;
    const int status = tl_remote_connect(&lake, &o->remote);
    if (status != TL_ARGS_GO)
        return status;
    tl_progress_wait(trace);
    const int r = tracelake_sql(lake, &question, print_table, &out, &error);
    tl_progress_end();
    tracelake_close(lake);
    if (r < 0)
        return tl_remote_fail_query(trace, &error);
    if (out.truncated)
        fputs("tracelake: there are more rows: --limit N gives more\n", stderr);
    return TL_CLI_DONE;
}

int tl_cmd_sql(int argc, char **argv)
{
    struct options o = {0};
    const struct tl_option args[] = {
        {"limit", 0, TL_ARG_COUNT, &o.limit, "N", "rows, at most 10M (default 100,000)"},
        {"seconds", 0, TL_ARG_COUNT, &o.seconds, "N", "give up after so many (at most 30)"},
        {"csv", 0, TL_ARG_FLAG, &o.csv, NULL, "as CSV, with a header"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "as JSON, an object in each line"},
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 2)
        status = tl_cli_usage("sql", "give a TRACE and a question: 'SELECT …'");
    if (status == TL_ARGS_GO && o.csv && o.json)
        status = tl_cli_usage("sql", "give --csv or --json, not both");
    return status == TL_ARGS_GO ? ask(&o, argv[first], argv[first + 1]) : status;
}
