/* SPDX-License-Identifier: MIT */
/*
 * `tracelake stats`: prints statistics of a range. Counts are printed by the names that the answer
 * gives them, so that the command needs no list of kinds and events.
 */
#include "cli/cli.h"
#include "out/jsonread.h"
#include "terminal/plain.h"
#include "terminal/progress.h"
#include "terminal/span.h"

#include <cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS = 30 };

static double share(double n, double all)
{
    return all > 0 ? 100 * n / all : 0;
}

/* Print an object of counts: one per line, with its share of `all` (0: without). */
static void print_counts(const char *title, const cJSON *counts, double all)
{
    const cJSON *count;
    if (!cJSON_GetArraySize(counts))
        return;
    printf("\n%s\n", title);
    cJSON_ArrayForEach(count, counts)
    {
        const double n = tl_json_value(count);
        printf("%16.0f ", n);
        if (all > 0)
            printf("%5.1f %% ", share(n, all));
        tl_print_plain(stdout, count->string, 0);
        putchar('\n');
    }
}

static void print_functions(const cJSON *stats, double all)
{
    const cJSON *const functions = cJSON_GetObjectItem(stats, "functions");
    const cJSON *function;
    int n = 0;
    if (!cJSON_GetArraySize(functions))
        return;
    printf("\n%16s %7s %12s  function\n", "instructions", "", "calls");
    cJSON_ArrayForEach(function, functions)
    {
        if (n++ == FUNCTIONS)
            break;
        printf("%16.0f %5.1f %% %12.0f  ", tl_json_number(function, "insns"),
               share(tl_json_number(function, "insns"), all), tl_json_number(function, "calls"));
        tl_print_plain(stdout, tl_json_function(function, "name"), 0);
        putchar('\n');
    }
    if (cJSON_GetArraySize(functions) > FUNCTIONS)
        printf("# %d more; --json has them\n", cJSON_GetArraySize(functions) - FUNCTIONS);
}

static void print_stats(const char *trace, const char *json, bool raw)
{
    cJSON *const stats = raw ? NULL : cJSON_Parse(json);
    if (!stats) {
        puts(json);
        return;
    }
    const double all = tl_json_number(stats, "insns");
    printf("%16.0f instructions, %.0f to %.0f\n", all, tl_json_number(stats, "from"),
           tl_json_number(stats, "to"));
    printf("%16.0f changes of flow, %.1f %%\n", tl_json_number(stats, "taken"),
           share(tl_json_number(stats, "taken"), all));
    print_counts("instructions by kind", cJSON_GetObjectItem(stats, "mix"), all);
    print_counts("instructions by mode", cJSON_GetObjectItem(stats, "modes"), all);
    print_counts("events", cJSON_GetObjectItem(stats, "items"), 0);
    print_counts("gaps", cJSON_GetObjectItem(stats, "gaps"), 0);
    print_functions(stats, all);
    if (cJSON_IsTrue(cJSON_GetObjectItem(stats, "behind")))
        tl_cli_behind(trace, tl_json_u64(stats, "to"));
    cJSON_Delete(stats);
}

/* Print a path: instructions including callees, own instructions, calls, function. */
static void print_node(const struct tracelake_profile_node *node)
{
    printf("%14" PRIu64 " %14" PRIu64 " %10" PRIu64 "  %*s", node->total, node->self, node->calls,
           (int)(2 * node->depth), "");
    tl_print_plain(stdout, *node->name ? node->name : "(no symbol)", 0);
    putchar('\n');
}

static void print_tree(const struct tracelake_profile_tree *tree)
{
    const char *const what = tree->by_time ? "time" : tree->by_cycles ? "cycles" : "instructions";
    printf("#%13s %14s %10s  function\n", what, "its own", "calls");
    for (size_t i = 0; i < tree->n_nodes; i++)
        print_node(&tree->nodes[i]);
    if (tree->truncated)
        puts("# smaller paths are left out");
}

/* What is asked for. */
struct options {
    struct tl_remote remote;
    struct tl_span span;
    const char *weight;
    bool raw, tree, callers;
};

static int ask_tree(struct tracelake *lake, const struct options *o,
                    const struct tracelake_range *range, struct tracelake_error *error)
{
    enum tracelake_weight weight = TRACELAKE_BY_INSNS;
    struct tracelake_profile_tree *tree;
    char *json;
    (void)tl_weight_of("stats", o->weight, true, &weight);
    tl_progress_wait(range->trace);
    const int r = o->raw ? tracelake_profile_by(lake, range, weight, o->callers, 0, &json, error)
                         : tracelake_get_profile(lake, range, weight, o->callers, 0, &tree, error);
    tl_progress_end();
    if (r < 0)
        return r;
    if (o->raw) {
        puts(json);
        free(json);
    } else {
        print_tree(tree);
        if (tree->behind)
            tl_cli_behind(range->trace, UINT64_MAX);
        tracelake_profile_tree_free(tree);
    }
    return TRACELAKE_OK;
}

static int ask_stats(struct tracelake *lake, const struct options *o,
                     const struct tracelake_range *range, struct tracelake_error *error)
{
    char *json;
    tl_progress_wait(range->trace);
    const int r =
        tracelake_stats(lake, range->trace, range->stream, range->from, range->to, &json, error);
    tl_progress_end();
    if (r < 0)
        return r;
    print_stats(range->trace, json, o->raw);
    free(json);
    return TRACELAKE_OK;
}

static int run(struct tracelake *lake, const struct options *o, struct tl_remote_name *name)
{
    struct tracelake_error error;
    const bool tree = o->tree || o->callers;
    int status = tl_remote_one_stream(lake, name);
    struct tracelake_range range = tl_span_range(&o->span, name);
    if (status == TL_ARGS_GO && tree)
        status = tl_span_there(&o->span, lake, name);
    else if (status == TL_ARGS_GO)
        status = tl_span_insns(&o->span, lake, name, &range.from, &range.to);
    if (status != TL_ARGS_GO)
        return status;
    return (tree ? ask_tree : ask_stats)(lake, o, &range, &error) < 0
               ? tl_remote_fail_query(name->trace, &error)
               : TL_CLI_DONE;
}

int tl_cmd_stats(int argc, char **argv)
{
    struct options o = {0};
    const struct tl_option args[] = {
        {"tree", 0, TL_ARG_FLAG, &o.tree, NULL, "instead: the call tree, with instruction counts"},
        {"callers", 0, TL_ARG_FLAG, &o.callers, NULL,
         "the same bottom-up: under each function its callers"},
        TL_SPAN_ARGS(o.span),
        TL_CYCLES_ARG(o.weight, "insns; others for call trees: 'functions' has functions' times"),
        {"json", 0, TL_ARG_FLAG, &o.raw, NULL, "as JSON"},
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    struct tracelake *lake;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("stats", "give one TRACE/STREAM");
    if (status == TL_ARGS_GO)
        status = tl_span_check("stats", &o.span);
    enum tracelake_weight weight = TRACELAKE_BY_INSNS;
    if (status == TL_ARGS_GO)
        status = tl_weight_of("stats", o.weight, true, &weight);
    if (status == TL_ARGS_GO && weight != TRACELAKE_BY_INSNS && !o.tree && !o.callers)
        status = tl_cli_usage("stats",
                              "--weight %s is of --tree and --callers; 'tracelake functions' has "
                              "the times of functions",
                              o.weight);
    if (status == TL_ARGS_GO)
        status = tl_remote_name("stats", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &o.remote);
    if (status != TL_ARGS_GO)
        return status;
    status = run(lake, &o, &name);
    tracelake_close(lake);
    return status;
}
