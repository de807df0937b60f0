/* SPDX-License-Identifier: MIT */
/*
 * `tracelake simpoints`: chooses representative regions of an execution, and writes them as files
 * for simulators. For a trace at a server the vectors are made there, and only the regions are
 * transferred.
 */
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/slice.h"
#include "out/jsonread.h"
#include "out/regionset.h"
#include "out/vectors_of.h"
#include "regions/simpoints.h"
#include "stf/file.h"
#include "terminal/progress.h"
#include "terminal/span.h"

#include <cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
    struct tl_remote remote;
    struct tl_span span;
    uint64_t interval, most, warm_up;
    const char *out, *save;
    bool json;
};

/* ---- from a file ----------------------------------------------------------------------------- */

struct both {
    struct tl_simpoints points;
    struct tl_regionset *set; /* receives the vectors, if they are kept */
    struct tl_buf line;
};

static int to_both(void *context, const struct tl_vector *vector)
{
    struct both *const both = context;
    tl_buf_reset(&both->line);
    int r = tl_simpoints_add(&both->points, vector);
    if (r >= 0)
        r = tl_vector_text(&both->line, vector);
    return r < 0 ? r : tl_regionset_vectors(both->set, both->line.p, both->line.n);
}

static int choose_in_file(const struct options *o, struct tl_stf_file *file,
                          struct tl_regionset *set, struct tl_fail *fail)
{
    struct both both = {.set = set};
    struct tl_simpoint *chosen = NULL;
    struct tl_vectors *vectors;
    size_t n = 0;
    const struct tl_stf_source source = tl_stf_file_source(file);
    tl_simpoints_init(&both.points);
    int r = tl_vectors_new(&vectors, o->interval, to_both, &both);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "%s", tl_err_name(r));
    r = tl_vectors_of_source(&source, o->span.insn.from, o->span.insn.to, vectors, fail);
    tl_vectors_free(vectors);
    tl_buf_fini(&both.line);
    if (r >= 0)
        r = tl_simpoints_choose(&both.points, (uint32_t)o->most, NULL, &chosen, &n);
    for (size_t i = 0; i < n && r >= 0; i++)
        r = tl_regionset_add(set, o->span.insn.from + chosen[i].first, chosen[i].insns,
                             chosen[i].interval, chosen[i].intervals, chosen[i].weight);
    set->from = o->span.insn.from;
    set->to = o->span.insn.from + both.points.total;
    set->intervals = both.points.n;
    free(chosen);
    tl_simpoints_fini(&both.points);
    return r;
}

static int slice_file(void *context, const struct tl_region *region, const char *out)
{
    const char *const path = context;
    const struct tl_arg_range range = {region->from - region->warm_up, region->to, true};
    const struct tl_stf_out_options options = {.format = tl_stf_format_of(out), .unchecked = true};
    return tl_cli_slice(path, out, &range, &options, NULL);
}

static int run_file(const struct options *o, const char *path, struct tl_regionset *set)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_stf_file *file;
    if (o->save)
        return tl_cli_usage("simpoints", "--save keeps regions at a server: give TRACE/STREAM");
    if (tl_stf_file_open(&file, path, &fail) < 0)
        return tl_cli_fail(path, &fail);
    tl_progress_wait(path);
    const int r = choose_in_file(o, file, set, &fail);
    tl_progress_end();
    tl_stf_file_close(file);
    if (r < 0)
        return tl_cli_fail(path, &fail);
    return tl_regionset_write(set, slice_file, (void *)(uintptr_t)path);
}

/* ---- of a stream at a server ----------------------------------------------------------------- */

static int take_answer(struct tl_regionset *set, const char *json)
{
    cJSON *const tree = cJSON_Parse(json);
    const cJSON *row;
    int r = tree ? TL_OK : TL_NOMEM;
    set->from = tl_json_u64(tree, "from");
    set->to = tl_json_u64(tree, "to");
    set->intervals = tl_json_u64(tree, "intervals");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(tree, "regions"))
    {
        const uint64_t from = tl_json_u64(row, "from");
        if (r >= 0)
            r = tl_regionset_add(set, from, tl_json_u64(row, "to") - from,
                                 tl_json_u64(row, "interval"), tl_json_u64(row, "intervals"),
                                 tl_json_number(row, "weight"));
    }
    cJSON_Delete(tree);
    return r;
}

static int take_vectors(void *context, const void *lines, size_t n)
{
    return tl_regionset_vectors(context, lines, n) < 0 ? TRACELAKE_IO : TRACELAKE_OK;
}

/* Source of the slices. */
struct stream {
    struct tracelake *lake;
    const struct tl_remote_name *name;
};

static int fetch_slice(void *context, const struct tl_region *region, const char *path)
{
    const struct stream *const s = context;
    const struct tracelake_range range = {s->name->trace, s->name->stream, TRACELAKE_INSN,
                                          region->from - region->warm_up, region->to};
    struct tracelake_error error;
    struct tracelake_fetch *fetch;
    struct tl_outfile out;
    int status = tl_outfile_open(&out, path);
    if (status != TL_ARGS_GO)
        return status;
    if (tracelake_fetch_open(&fetch, s->lake, &range, TRACELAKE_ZSTF, &error) < 0) {
        tl_outfile_drop(&out);
        return tl_remote_fail_query(s->name->trace, &error);
    }
    const void *p;
    size_t n;
    int r;
    status = TL_CLI_DONE;
    while (status == TL_CLI_DONE && (r = tracelake_fetch_next(fetch, &p, &n, &error)) == TL_OK)
        if (!tl_write_all(out.file, p, n)) {
            tl_cli_warn(path, "cannot write: %s", strerror(errno));
            status = TL_CLI_BAD;
        }
    if (status == TL_CLI_DONE && r != TRACELAKE_EOF)
        status = tl_remote_fail_query(s->name->trace, &error);
    tracelake_fetch_close(fetch);
    return tl_outfile_close(&out, status);
}

struct region_label {
    char key[128], value[160];
};

/* Is it the label of a region from an earlier selection with this name that is not in this one? */
static bool is_former(const struct options *o, const struct tl_regionset *set, const char *label)
{
    char key[128];
    const char *const dot = strrchr(label, '.');
    const size_t n = dot ? (size_t)strtoul(dot + 1, NULL, 10) : 0;
    snprintf(key, sizeof key, "region.%s.%zu", o->save, n);
    return n > set->n && strcmp(key, label) == 0;
}

/* Save region names as labels of the trace: "region.NAME.1=cs.10 FROM TO WARM-UP WEIGHT". */
static int save(const struct options *o, const struct stream *s, const struct tl_regionset *set)
{
    struct tracelake_error error = {.code = TRACELAKE_NOMEM};
    struct tracelake_trace *trace;
    size_t n = set->n;
    int r = tracelake_get_trace(s->lake, s->name->trace, &trace, &error);
    if (r < 0)
        return tl_remote_fail_query(s->name->trace, &error);
    struct region_label *const texts = calloc(n, sizeof *texts);
    struct tracelake_label *const labels = calloc(n + trace->n_labels, sizeof *labels);
    r = texts && labels ? TRACELAKE_OK : TRACELAKE_NOMEM;
    for (size_t i = 0; i < set->n && r == TRACELAKE_OK; i++) {
        const struct tl_region *const region = &set->regions[i];
        snprintf(texts[i].key, sizeof texts[i].key, "region.%s.%zu", o->save, i + 1);
        snprintf(texts[i].value, sizeof texts[i].value,
                 "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %.6f", s->name->stream, region->from,
                 region->to, region->warm_up, region->weight);
        labels[i] = (struct tracelake_label){texts[i].key, texts[i].value};
    }
    for (size_t i = 0; i < trace->n_labels && r == TRACELAKE_OK; i++)
        if (is_former(o, set, trace->labels[i].key))
            labels[n++] = (struct tracelake_label){trace->labels[i].key, ""};
    if (r == TRACELAKE_OK)
        r = tracelake_set_labels(s->lake, s->name->trace, labels, n, NULL, &error);
    free(labels);
    free(texts);
    tracelake_trace_free(trace);
    return r < 0 ? tl_remote_fail_query(s->name->trace, &error) : TL_CLI_DONE;
}

static int run_stream(const struct options *o, struct tl_remote_name *name,
                      struct tl_regionset *set)
{
    struct tracelake_error error;
    struct tracelake *lake;
    char *json = NULL;
    int status = tl_remote_connect(&lake, &o->remote);
    if (status != TL_ARGS_GO)
        return status;
    status = tl_remote_one_stream(lake, name);
    struct stream stream = {lake, name};
    struct tracelake_range range = {name->trace, name->stream, TRACELAKE_INSN, 0, TRACELAKE_END};
    if (status == TL_ARGS_GO)
        status = tl_span_insns(&o->span, lake, name, &range.from, &range.to);
    if (status == TL_ARGS_GO) {
        tl_progress_wait(name->trace);
        const int r = tracelake_simpoints(lake, &range, o->interval, (uint32_t)o->most,
                                          o->out ? take_vectors : NULL, set, &json, &error);
        tl_progress_end();
        if (r < 0)
            status = tl_remote_fail_query(name->trace, &error);
        else if (take_answer(set, json) < 0)
            status = tl_cli_fail(name->trace, &(struct tl_fail){.code = TL_NOMEM,
                                                                .offset = TL_NO_OFFSET,
                                                                .text = "out of memory"});
        else
            status = tl_regionset_write(set, fetch_slice, &stream);
    }
    if (status == TL_CLI_DONE && o->save)
        status = save(o, &stream, set);
    free(json);
    tracelake_close(lake);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print(const struct options *o, const struct tl_regionset *set)
{
    if (o->json) {
        printf("{\"from\":%" PRIu64 ",\"to\":%" PRIu64 ",\"interval\":%" PRIu64
               ",\"intervals\":%" PRIu64 ",\"regions\":[",
               set->from, set->to, set->interval, set->intervals);
        for (size_t i = 0; i < set->n; i++)
            printf("%s{\"from\":%" PRIu64 ",\"to\":%" PRIu64 ",\"warm_up\":%" PRIu64
                   ",\"interval\":%" PRIu64 ",\"intervals\":%" PRIu64 ",\"weight\":%.17g}",
                   i ? "," : "", set->regions[i].from, set->regions[i].to, set->regions[i].warm_up,
                   set->regions[i].interval, set->regions[i].intervals, set->regions[i].weight);
        puts("]}");
        return;
    }
    printf("# %" PRIu64 " intervals of %" PRIu64 " instructions\n", set->intervals, set->interval);
    printf("# %-3s %8s %10s %16s %16s %12s\n", "", "weight", "intervals", "from", "to", "warm-up");
    for (size_t i = 0; i < set->n; i++)
        printf("  %-3zu %8.4f %10" PRIu64 " %16" PRIu64 " %16" PRIu64 " %12" PRIu64 "\n", i + 1,
               set->regions[i].weight, set->regions[i].intervals, set->regions[i].from,
               set->regions[i].to, set->regions[i].warm_up);
}

static int check_arguments(const struct options *o)
{
    if (o->interval == 0 || o->interval > UINT32_MAX)
        return tl_cli_usage("simpoints", "--interval is 1 to %u instructions", UINT32_MAX);
    if (o->most == 0 || o->most > 1000)
        return tl_cli_usage("simpoints", "--max is 1 to 1000 regions");
    if (o->save &&
        strspn(o->save, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
            strlen(o->save))
        return tl_cli_usage("simpoints", "--save %s: a name has letters, digits, _ and -", o->save);
    return TL_ARGS_GO;
}

int tl_cmd_simpoints(int argc, char **argv)
{
    struct options o = {.interval = 10000000, .most = 30, .span = {.insn = {0, UINT64_MAX, false}}};
    const struct tl_option args[] = {
        {"interval", 0, TL_ARG_COUNT, &o.interval, "N", "instructions per region (default 10M)"},
        {"max", 0, TL_ARG_COUNT, &o.most, "N", "maximum number of regions (default 30)"},
        {"warm-up", 0, TL_ARG_COUNT, &o.warm_up, "N",
         "instructions before each region to include in its file"},
        TL_SPAN_ARGS(o.span),
        TL_OUTPUT_ARGS(o.out, "DIR",
                       "write each region as .zstf, the basic-block vectors, weights and "
                       "regions.yaml, which describes them"),
        {"save", 0, TL_ARG_TEXT, &o.save, "NAME",
         "store the regions on the server as NAME.1, NAME.2 … for 'tracelake get TRACE --region "
         "NAME.1'"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "print them as JSON"},
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    struct tl_remote_name name;
    struct tl_regionset set;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("simpoints", "give one TRACE/STREAM, or a file");
    if (status == TL_ARGS_GO)
        status = tl_span_check("simpoints", &o.span);
    if (status == TL_ARGS_GO)
        status = check_arguments(&o);
    if (status != TL_ARGS_GO)
        return status;
    const char *const what = argv[first];
    const bool file = access(what, F_OK) == 0;
    if (file && o.span.time.given)
        return tl_cli_usage("simpoints", "%.80s: a file has no times; give --insn A:B", what);
    status = tl_regionset_begin(&set, o.out, what, o.interval, o.warm_up);
    if (status == TL_ARGS_GO && file)
        status = run_file(&o, what, &set);
    else if (status == TL_ARGS_GO &&
             (status = tl_remote_name("simpoints", what, &name)) == TL_ARGS_GO)
        status = run_stream(&o, &name, &set);
    if (status == TL_CLI_DONE)
        print(&o, &set);
    tl_regionset_fini(&set);
    return status;
}
