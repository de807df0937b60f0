/* SPDX-License-Identifier: MIT */
/* `tracelake profile`: how often code was run, for compilers and viewers of profiles. */
#include "cli/outfile.h"
#include "cli/profile_out.h"
#include "cli/remote.h"

#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACKS 20000

struct options {
    struct tl_remote remote;
    struct tl_arg_range insn, time;
    const char *as, *out, *build_id;
    uint64_t bias, size;
    enum tl_profile_form form;
};

static int by_place(const void *a, const void *b)
{
    const struct tracelake_code_count *const x = a, *const y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Add counts to those of the traces before. */
static bool join(struct tracelake_code_count **p, size_t *n,
                 const struct tracelake_code_count *more, size_t m)
{
    struct tracelake_code_count *const all = realloc(*p, (*n + m + 1) * sizeof *all);
    if (!all)
        return false;
    *p = all;
    if (m)
        memcpy(all + *n, more, m * sizeof *all);
    size_t kept = 0;
    if (*n + m)
        qsort(all, *n + m, sizeof *all, by_place);
    for (size_t i = 0; i < *n + m; i++)
        if (kept && by_place(&all[kept - 1], &all[i]) == 0)
            all[kept - 1].count += all[i].count;
        else
            all[kept++] = all[i];
    *n = kept;
    return true;
}

static struct tracelake_range range_of(const struct options *o, const struct tl_remote_name *name)
{
    const struct tl_arg_range *const range = o->time.given ? &o->time : &o->insn;
    return (struct tracelake_range){
        name->trace, name->stream, o->time.given ? TRACELAKE_TIME : TRACELAKE_INSN,
        range->given ? range->from : 0, range->given ? range->to : TRACELAKE_END};
}

static int out_of_memory(void)
{
    tl_cli_warn("profile", "out of memory");
    return TL_CLI_BAD;
}

/* Counts of all that is named, together. */
static int count(const struct options *o, struct tracelake *lake, char **names, int n,
                 struct tracelake_code *all)
{
    for (int i = 0; i < n; i++) {
        struct tracelake_error error;
        struct tracelake_code *code;
        struct tl_remote_name name;
        const int status = tl_remote_name("profile", names[i], &name);
        if (status != TL_ARGS_GO)
            return status;
        const struct tracelake_range range = range_of(o, &name);
        if (tracelake_code(lake, &range, &code, &error) < 0)
            return tl_remote_fail_query(names[i], &error);
        if (code->truncated)
            tl_cli_warn(names[i],
                        "there are more places than are counted; the profile is not whole");
        all->insns += code->insns;
        const bool joined =
            join(&all->runs, &all->n_runs, code->runs, code->n_runs) &&
            join(&all->branches, &all->n_branches, code->branches, code->n_branches);
        tracelake_code_free(code);
        if (!joined)
            return out_of_memory();
    }
    return TL_CLI_DONE;
}

static int written(const struct options *o, bool ok)
{
    if (!ok)
        tl_cli_warn(o->out ? o->out : "profile", "cannot write: %s", strerror(errno));
    return ok ? TL_CLI_DONE : TL_CLI_BAD;
}

static int write_code(const struct options *o, struct tracelake *lake, char **names, int n,
                      FILE *file)
{
    const struct tl_profile_binary binary = {
        .bias = o->bias,
        .end = o->size && o->size < UINT64_MAX - o->bias ? o->bias + o->size : UINT64_MAX,
        .build_id = o->build_id};
    struct tracelake_code all = {0};
    int status = count(o, lake, names, n, &all);
    if (status == TL_CLI_DONE)
        status = written(o, tl_profile_write_code(o->form, &all, &binary, file));
    free(all.runs);
    free(all.branches);
    return status;
}

/* Call stacks of several traces one behind another: who reads them adds them up. */
static int write_stacks(const struct options *o, struct tracelake *lake, char **names, int n,
                        FILE *file)
{
    cJSON *const nodes = cJSON_CreateArray();
    int status = nodes ? TL_CLI_DONE : out_of_memory();
    for (int i = 0; i < n && status == TL_CLI_DONE; i++) {
        struct tracelake_error error;
        struct tl_remote_name name;
        char *json = NULL;
        status = tl_remote_name("profile", names[i], &name);
        if (status != TL_ARGS_GO)
            break;
        status = TL_CLI_DONE;
        const struct tracelake_range range = range_of(o, &name);
        if (tracelake_profile(lake, &range, false, STACKS, &json, &error) < 0) {
            status = tl_remote_fail_query(names[i], &error);
            break;
        }
        cJSON *const tree = cJSON_Parse(json);
        cJSON *const some = cJSON_DetachItemFromObject(tree, "nodes");
        for (cJSON *node; some && (node = cJSON_DetachItemFromArray(some, 0));)
            cJSON_AddItemToArray(nodes, node);
        if (cJSON_IsTrue(cJSON_GetObjectItem(tree, "truncated")))
            tl_cli_warn(names[i], "smaller call stacks are left out");
        cJSON_Delete(some);
        cJSON_Delete(tree);
        free(json);
    }
    if (status == TL_CLI_DONE)
        status = written(o, tl_profile_write_stacks(o->form, nodes, file));
    cJSON_Delete(nodes);
    return status;
}

static int run(const struct options *o, struct tracelake *lake, char **names, int n, FILE *file)
{
    return tl_profile_of_code(o->form) ? write_code(o, lake, names, n, file)
                                       : write_stacks(o, lake, names, n, file);
}

static int run_to(const struct options *o, struct tracelake *lake, char **names, int n)
{
    struct tl_outfile out;
    if (!o->out)
        return run(o, lake, names, n, stdout);
    const int status = tl_outfile_open(&out, o->out);
    return status == TL_ARGS_GO ? tl_outfile_close(&out, run(o, lake, names, n, out.file)) : status;
}

int tl_cmd_profile(int argc, char **argv)
{
    struct options o = {.as = "folded"};
    const struct tl_arg args[] = {{"as", 0, TL_ARG_TEXT, &o.as},
                                  {"insn", 0, TL_ARG_RANGE, &o.insn},
                                  {"time", 0, TL_ARG_RANGE, &o.time},
                                  {"bias", 0, TL_ARG_U64, &o.bias},
                                  {"size", 0, TL_ARG_U64, &o.size},
                                  {"build-id", 0, TL_ARG_TEXT, &o.build_id},
                                  {"output", 'o', TL_ARG_TEXT, &o.out},
                                  TL_REMOTE_ARGS(o.remote),
                                  {0}};
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    o.form = tl_profile_parse(o.as);
    if (argc == first)
        return tl_cli_usage("profile", "say of which TRACE[/STREAM]");
    if (o.form == TL_PROFILE_FORMS)
        return tl_cli_usage("profile",
                            "--as %s: it is autofdo, llvm-profgen, bolt, folded, "
                            "speedscope or pprof",
                            o.as);
    if (o.insn.given && o.time.given)
        return tl_cli_usage("profile", "say one of --insn, --time");
    status = tl_remote_connect(&lake, &o.remote);
    if (status != TL_ARGS_GO)
        return status;
    status = run_to(&o, lake, argv + first, argc - first);
    tracelake_close(lake);
    return status;
}
