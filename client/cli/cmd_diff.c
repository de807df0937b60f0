/* SPDX-License-Identifier: MIT */
/*
 * `tracelake diff`: shows where two runs diverge, and their differences by function. The server
 * compares them; each side may be any range of any trace.
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
#include <string.h>

/* One of the two runs: "T/S[@A:B]". */
struct side {
    struct tl_remote_name name;
    struct tl_span span;
};

/* Numbers without a unit are instructions. */
static int parse_range(const char *text, struct tl_span *out)
{
    struct tl_time_range time;
    if (tl_time_range_parse(text, &time) < 0)
        return TL_USAGE;
    if (!time.ns)
        return tl_arg_range_parse(text, 1000, &out->insn);
    out->time = time;
    return TL_OK;
}

static int parse_side(const char *text, struct side *out)
{
    char copy[256];
    if (strlen(text) >= sizeof copy)
        return tl_cli_usage("diff", "%.40s…: the name is too long", text);
    strcpy(copy, text);
    char *const at = strchr(copy, '@');
    out->span = (struct tl_span){0};
    if (at) {
        *at = 0;
        if (parse_range(at + 1, &out->span) < 0)
            return tl_cli_usage("diff", "%s: a range is A:B, in instructions or times with units",
                                at + 1);
    }
    return tl_remote_name("diff", copy, &out->name);
}

static void print_stack(const char *letter, const cJSON *stack)
{
    const cJSON *frame;
    const char *before = " in ";
    printf("  %s", letter);
    cJSON_ArrayForEach(frame, stack)
    {
        fputs(before, stdout);
        tl_print_plain(stdout, tl_json_function(frame, "name"), 0);
        before = " > ";
    }
    putchar('\n');
}

static void print_functions(const cJSON *tree, int most)
{
    const cJSON *f;
    const cJSON *const unit = cJSON_GetObjectItem(tree, "time_unit_ns");
    if (unit)
        printf("# own time, in %s\n", cJSON_IsTrue(unit) ? "ns" : "ticks");
    else if (cJSON_GetObjectItem(tree, "weight"))
        puts("# own cycles");
    printf("#%13s %14s %10s %10s  function\n", "self in A", "in B", "calls in A", "in B");
    cJSON_ArrayForEach(f, cJSON_GetObjectItem(tree, "functions"))
    {
        if (most-- == 0)
            break;
        printf("%14.0f %14.0f %10.0f %10.0f  ", tl_json_number(f, "self_a"),
               tl_json_number(f, "self_b"), tl_json_number(f, "calls_a"),
               tl_json_number(f, "calls_b"));
        tl_print_plain(stdout, tl_json_function(f, "name"), 0);
        putchar('\n');
    }
}

static void print_compare(const cJSON *tree)
{
    const cJSON *hunk, *const hunks = cJSON_GetObjectItem(tree, "hunks");
    const cJSON *const first = cJSON_GetArrayItem(hunks, 0);
    if (!first) {
        puts("identical");
    } else {
        printf("they diverge at A %.0f, B %.0f\n", tl_json_number(first, "a_from"),
               tl_json_number(first, "b_from"));
        print_stack("A", cJSON_GetObjectItem(tree, "stack_a"));
        print_stack("B", cJSON_GetObjectItem(tree, "stack_b"));
        const double total = tl_json_number(tree, "total");
        printf("%.0f %s; %.0f instructions are only in A, %.0f only in B\n", total,
               total == 1 ? "difference" : "differences", tl_json_number(tree, "only_a"),
               tl_json_number(tree, "only_b"));
        puts("# instructions of A    corresponding instructions of B");
        cJSON_ArrayForEach(hunk, hunks) printf(
            "%.0f:%.0f %.0f:%.0f\n", tl_json_number(hunk, "a_from"), tl_json_number(hunk, "a_to"),
            tl_json_number(hunk, "b_from"), tl_json_number(hunk, "b_to"));
        if (total > cJSON_GetArraySize(hunks))
            puts("# … there are more: raise --limit");
        if (cJSON_IsTrue(cJSON_GetObjectItem(tree, "lost")))
            puts("# after the last one they are too different to be aligned");
    }
    print_functions(tree, 20);
}

/* How far both sides were compared. */
static void tell_behind(const cJSON *tree, const char *a, const char *b)
{
    tl_cli_behind(a, tl_json_u64(cJSON_GetObjectItem(tree, "a"), "to"));
    tl_cli_behind(b, tl_json_u64(cJSON_GetObjectItem(tree, "b"), "to"));
}

struct options {
    bool calls, json, exit_code;
    uint64_t limit;
    const char *weight;
    enum tracelake_weight by;
};

static int run(struct tracelake *lake, struct side *a, struct side *b, const struct options *o)
{
    struct tracelake_error error;
    char *json = NULL;
    int status = tl_remote_one_stream(lake, &a->name);
    if (status == TL_ARGS_GO)
        status = tl_remote_one_stream(lake, &b->name);
    if (status != TL_ARGS_GO)
        return status;
    struct tracelake_range x = {a->name.trace, a->name.stream, TRACELAKE_INSN, 0, TRACELAKE_END};
    struct tracelake_range y = {b->name.trace, b->name.stream, TRACELAKE_INSN, 0, TRACELAKE_END};
    status = tl_span_insns(&a->span, lake, &a->name, &x.from, &x.to);
    if (status == TL_ARGS_GO)
        status = tl_span_insns(&b->span, lake, &b->name, &y.from, &y.to);
    if (status != TL_ARGS_GO)
        return status;
    const uint32_t limit = o->limit < UINT32_MAX ? (uint32_t)o->limit : UINT32_MAX;
    tl_progress_wait(x.trace);
    const int result = tracelake_compare_by(lake, &x, &y, o->calls, o->by, limit, &json, &error);
    tl_progress_end();
    if (result < 0)
        return tl_remote_fail_query(a->name.trace, &error);
    cJSON *const tree = cJSON_Parse(json);
    if (o->json || !tree)
        puts(json);
    else
        print_compare(tree);
    if (!o->json && cJSON_IsTrue(cJSON_GetObjectItem(tree, "behind")))
        tell_behind(tree, x.trace, y.trace);
    const bool differ = tl_json_number(tree, "total") > 0;
    cJSON_Delete(tree);
    free(json);
    return differ && o->exit_code ? TL_CLI_BAD : TL_CLI_DONE;
}

int tl_cmd_diff(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct options o = {0};
    const struct tl_option args[] = {
        {"calls", 0, TL_ARG_FLAG, &o.calls, NULL,
         "compare the functions called, not every instruction"},
        {"limit", 0, TL_ARG_COUNT, &o.limit, "N",
         "maximum number of differences printed (default 100)"},
        {"exit-code", 0, TL_ARG_FLAG, &o.exit_code, NULL, "exit status 1 if they differ"},
        TL_CYCLES_ARG(o.weight, "insns"),
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "as JSON"},
        TL_NAMES_ARG(remote),
        TL_REMOTE_ARGS(remote),
        {0},
    };
    int first;
    struct side a, b;
    struct tracelake *lake;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 2)
        status = tl_cli_usage("diff", "give two of TRACE/STREAM[@A:B]");
    if (status == TL_ARGS_GO)
        status = tl_weight_of("diff", o.weight, true, &o.by);
    if (status == TL_ARGS_GO)
        status = parse_side(argv[first], &a);
    if (status == TL_ARGS_GO)
        status = parse_side(argv[first + 1], &b);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = run(lake, &a, &b, &o);
    tracelake_close(lake);
    return status;
}
