/* SPDX-License-Identifier: MIT */
/*
 * `tracelake profile`: writes execution counts and call stacks in the forms of compilers and
 * profile viewers. The answers of several traces are added up by concatenation, which all these
 * forms allow.
 */
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/codeof.h"
#include "out/outfile.h"
#include "out/profile_branches.h"
#include "out/rows_out.h"
#include "setup/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACKS 20000

struct options {
    struct tl_remote remote;
    struct tl_codeof_options of;
    const char *as, *out, *build_id, *weight;
    enum tracelake_weight by;
    uint64_t bias, size;
    enum tl_profile_form form;
    bool demangle; /* pprof: names beside those of the files */
};

static int out_of_memory(void)
{
    tl_cli_warn("profile", "out of memory");
    return TL_CLI_BAD;
}

static int written(const struct options *o, bool ok)
{
    if (!ok)
        tl_cli_warn(o->out ? o->out : "profile", "cannot write: %s", strerror(errno));
    return ok ? TL_CLI_DONE : TL_CLI_BAD;
}

/* The program selected by the options. */
static struct tl_profile_binary binary_of(const struct options *o)
{
    return (struct tl_profile_binary){
        .bias = o->bias,
        .end = o->size && o->size < UINT64_MAX - o->bias ? o->bias + o->size : UINT64_MAX,
        .build_id = o->build_id};
}

static int write_code(const struct options *o, struct tracelake *lake, const struct tl_codeof *of,
                      FILE *file)
{
    const struct tl_profile_binary binary = binary_of(o);
    struct tracelake_error error;
    struct tracelake_code *code;
    const char *const name = of->names[0].trace;
    if (tracelake_code(lake, &of->request, &code, &error) < 0)
        return tl_codeof_fail(of, "profile", &error);
    if (code->truncated)
        tl_cli_warn(name, "there are more places than are counted; the profile is not whole");
    if (code->behind)
        tl_cli_behind(name, UINT64_MAX);
    const int status = written(o, tl_profile_write_code(o->form, code, &binary, file));
    tracelake_code_free(code);
    return status;
}

/* Write a trace's answer after its name, which needs no escaping. */
static bool write_answer(const struct tracelake_range *range, const char *json, FILE *file)
{
    const bool all = !range->stream || !range->stream[0];
    return fprintf(file, "{\"trace\":\"%s\",%s%s%s%s", range->trace, all ? "" : "\"stream\":\"",
                   all ? "" : range->stream, all ? "" : "\",", json + 1) > 0;
}

/* The same for several traces: one object each. */
static int write_json(const struct options *o, struct tracelake *lake, const struct tl_codeof *of,
                      FILE *file)
{
    int status = TL_CLI_DONE;
    for (size_t i = 0; i <= of->request.n_also && status == TL_CLI_DONE; i++) {
        struct tracelake_error error;
        char *json = NULL;
        const struct tracelake_range range = tl_span_range(&o->of.span, &of->names[i]);
        if (tracelake_profile_by(lake, &range, o->by, false, STACKS, &json, &error) < 0)
            return tl_remote_fail_query(range.trace, &error);
        status = written(o, write_answer(&range, json, file));
        free(json);
    }
    return status;
}

/* Append the nodes of `one`, whose names are borrowed. False: out of memory. */
static bool append_nodes(struct tracelake_profile_tree *all, size_t *cap,
                         const struct tracelake_profile_tree *one)
{
    if (tl_grow(&all->nodes, cap, all->n_nodes + one->n_nodes + 1, sizeof *all->nodes) < 0)
        return false;
    memcpy(all->nodes + all->n_nodes, one->nodes, one->n_nodes * sizeof *one->nodes);
    all->n_nodes += one->n_nodes;
    return true;
}

/* Add a trace's stacks to `all`; its answer is kept in `*out`. */
static int add_stacks(const struct options *o, struct tracelake *lake,
                      const struct tl_remote_name *name, struct tracelake_profile_tree *all,
                      size_t *cap, struct tracelake_profile_tree **out)
{
    const struct tracelake_range range = tl_span_range(&o->of.span, name);
    struct tracelake_error error;
    if (tracelake_get_profile(lake, &range, o->by, false, STACKS, out, &error) < 0)
        return tl_remote_fail_query(range.trace, &error);
    if ((*out)->sampled)
        tl_cli_warn(range.trace, "the counts are samples of the program counter: a statistic");
    if ((*out)->truncated)
        tl_cli_warn(range.trace, "smaller call stacks are left out");
    if ((*out)->behind)
        tl_cli_behind(range.trace, UINT64_MAX);
    return append_nodes(all, cap, *out) ? TL_CLI_DONE : out_of_memory();
}

/* Call stacks of several traces, concatenated: readers add them up. */
static int write_stacks(const struct options *o, struct tracelake *lake, const struct tl_codeof *of,
                        FILE *file)
{
    struct tracelake_profile_tree all = {.by_time = o->by == TRACELAKE_BY_TIME,
                                         .by_cycles = o->by == TRACELAKE_BY_CYCLES};
    const size_t n = of->request.n_also + 1;
    struct tracelake_profile_tree **const trees =
        calloc(n, sizeof(struct tracelake_profile_tree *));
    size_t cap = 0;
    int status = trees ? TL_CLI_DONE : out_of_memory();
    for (size_t i = 0; i < n && status == TL_CLI_DONE; i++)
        status = add_stacks(o, lake, &of->names[i], &all, &cap, &trees[i]);
    if (status == TL_CLI_DONE)
        status =
            written(o, o->form == TL_PROFILE_PPROF ? tl_profile_write_pprof(&all, o->demangle, file)
                                                   : tl_profile_write_stacks(o->form, &all, file));
    for (size_t i = 0; trees && i < n; i++)
        tracelake_profile_tree_free(trees[i]);
    free(trees);
    free(all.nodes);
    return status;
}

/* Size of an instruction from its encoding in flow text: two digits per byte. */
static unsigned size_of(const struct tracelake_item *item)
{
    const char *const encoding = strchr(item->text, ' ');
    return encoding ? (unsigned)strspn(encoding + 1, "0123456789abcdef") / 2 : 0;
}

/* Write the branches of one stream. */
static int write_stream(const struct options *o, struct tracelake *lake,
                        const struct tl_remote_name *name, FILE *file)
{
    const struct tl_profile_binary binary = binary_of(o);
    const struct tracelake_range range = tl_span_range(&o->of.span, name);
    struct tracelake_error error;
    struct tracelake_flow *flow;
    struct tracelake_item item;
    struct tl_branch_stack stack;
    int r = tracelake_flow_open(&flow, lake, &range, &error);
    if (r < 0)
        return tl_remote_fail_query(name->trace, &error);
    tl_branch_stack_init(&stack, &binary, file);
    while ((r = tracelake_flow_next(flow, &item, &error)) == TRACELAKE_OK) {
        if (item.kind == 'I')
            tl_branch_stack_insn(&stack, item.pc, size_of(&item));
        else if (strchr("NBXGO", item.kind))
            tl_branch_stack_break(&stack);
    }
    tl_branch_stack_break(&stack);
    tracelake_flow_close(flow);
    return r == TRACELAKE_EOF ? written(o, !ferror(file))
                              : tl_remote_fail_query(name->trace, &error);
}

/* If no stream is named, write those of all streams with instructions, one after another. */
static int write_branches_of(const struct options *o, struct tracelake *lake,
                             struct tl_remote_name *name, FILE *file)
{
    struct tracelake_error error;
    struct tracelake_trace *trace;
    int status = TL_CLI_DONE;
    if (name->stream[0])
        return write_stream(o, lake, name, file);
    if (o->of.span.insn.given)
        return tl_cli_usage("profile", "a range of several streams is one of time: --time A:B");
    if (tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
        return tl_remote_fail(name->trace, &error);
    for (size_t i = 0; i < trace->n_streams && status == TL_CLI_DONE; i++) {
        const struct tracelake_stream *const stream = &trace->streams[i];
        if (!tl_counts_insns(stream) || tl_stream_is_derived(stream->name))
            continue;
        snprintf(name->stream, sizeof name->stream, "%s", stream->name);
        status = write_stream(o, lake, name, file);
    }
    tracelake_trace_free(trace);
    return status;
}

static int write_branches(const struct options *o, struct tracelake *lake, struct tl_codeof *of,
                          FILE *file)
{
    int status = TL_CLI_DONE;
    for (size_t i = 0; i <= of->request.n_also && status == TL_CLI_DONE; i++)
        status = write_branches_of(o, lake, &of->names[i], file);
    return status;
}

static int run(const void *context, struct tracelake *lake, struct tl_codeof *of, FILE *file)
{
    const struct options *const o = context;
    if (o->form == TL_PROFILE_BRANCHES)
        return write_branches(o, lake, of, file);
    if (o->form == TL_PROFILE_JSON)
        return write_json(o, lake, of, file);
    return tl_profile_of_code(o->form) ? write_code(o, lake, of, file)
                                       : write_stacks(o, lake, of, file);
}

int tl_cmd_profile(int argc, char **argv)
{
    struct options o = {0};
    bool json = false;
    const struct tl_option args[] = {
        {"as", 0, TL_ARG_TEXT, &o.as,
         "autofdo|llvm-profgen|bolt|perf-branches|folded|speedscope|pprof|json",
         "autofdo, llvm-profgen, bolt: execution counts; perf-branches: taken branches in order, "
         "for llvm-profgen; folded (default), speedscope, pprof, json: call stacks"},
        TL_SPAN_ARGS(o.of.span),
        TL_CYCLES_ARG(o.weight, "insns; others: of folded, speedscope, pprof, json"),

        {"image", 0, TL_ARG_TEXT, &o.of.image, "FILE",
         "only the code of this program or library, at its own addresses (autofdo, llvm-profgen, "
         "bolt): a local file, or sha256:…, build-id:…, a name"},
        {"context", 0, TL_ARG_TEXT, &o.of.contexts, "N[,N…]",
         "only code run with these context IDs (the same formats)"},
        {"bias", 0, TL_ARG_U64, &o.bias, "ADDR", "instead of --image: subtracted from addresses"},
        {"size", 0, TL_ARG_U64, &o.size, "BYTES",
         "size of the program in memory: other code is left out"},
        {"build-id", 0, TL_ARG_TEXT, &o.build_id, "HEX", "build ID of the program, for autofdo"},
        TL_OUTPUT_ARGS(o.out, "FILE", "write to this file instead of standard output"),
        {"json", 0, TL_ARG_FLAG, &json, NULL,
         "call stacks as the server stores them, one object per trace"},
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    const int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (json && o.as && strcmp(o.as, "json") != 0)
        return tl_cli_usage("profile", "--json is a form of its own, beside --as %s", o.as);
    if (!o.as)
        o.as = json ? "json" : "folded";
    o.form = tl_profile_parse(o.as);
    if (o.form == TL_PROFILE_FORMS)
        return tl_cli_usage("profile",
                            "--as %s: it is autofdo, llvm-profgen, bolt, perf-branches, folded, "
                            "speedscope, pprof or json",
                            o.as);
    if (o.form == TL_PROFILE_PPROF) { /* it has both names */
        o.demangle = !o.remote.mangled;
        o.remote.mangled = true;
    }
    if (tl_weight_of("profile", o.weight, true, &o.by) != TL_ARGS_GO)
        return TL_CLI_USAGE;
    if (o.by != TRACELAKE_BY_INSNS && (tl_profile_of_code(o.form) || o.form == TL_PROFILE_BRANCHES))
        return tl_cli_usage("profile", "--weight %s is for folded, speedscope, pprof, json",
                            o.weight);
    if ((o.of.contexts || o.of.image) && !tl_profile_of_code(o.form))
        return tl_cli_usage("profile", "--context and --image are for autofdo, llvm-profgen, bolt");
    return tl_codeof_run("profile", &o.of, &o.remote, o.out, argv + first, argc - first, run, &o);
}
