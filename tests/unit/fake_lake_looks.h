/* SPDX-License-Identifier: MIT */
/* The look-ups of the fake lake: a part of fake_lake.c, which includes it at its end. */
#ifndef TL_TESTS_FAKE_LAKE_LOOKS_H
#define TL_TESTS_FAKE_LAKE_LOOKS_H

#include "lake.h"
#include "lake_analysis.h"
#include "lake_find.h"
#include "lake_insns.h"
#include "lake_lanes.h"
#include "lake_ranges.h"
#include "lake_rows.h"
#include "lake_sql.h"
#include "lake_stats.h"
#include "lake_tiles.h"
#include "lake_traces.h"

static int check(struct tl_lake *lake, const char *trace, const char *stream, struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    const int rc = check_stream(find_locked(lake, trace), stream, fail);
    pthread_mutex_unlock(&lake->lock);
    return rc;
}

int tl_lake_locate(struct tl_lake *lake, const char *trace, const char *stream,
                   enum tl_range_unit unit, uint64_t at, struct tl_position *out,
                   struct tl_fail *fail)
{
    slow();
    const uint64_t insn = unit == TL_UNIT_INSN ? at : unit == TL_UNIT_BYTE ? at / 4 : at / 10;
    *out =
        (struct tl_position){.insn = insn, .time = insn * 10, .byte = insn * 4, .has_time = true};
    return check(lake, trace, stream, fail);
}

int tl_lake_find(struct tl_lake *lake, const struct tl_find_request *request, struct tl_found *out,
                 struct tl_fail *fail)
{
    *out = (struct tl_found){.total = UINT64_MAX, .before = request->at, .kind = request->kind};
    int rc = check(lake, request->trace,
                   request->stream && *request->stream ? request->stream : STREAM, fail);
    if (rc == TL_OK)
        rc = work();
    if (rc < 0)
        return rc;
    const uint64_t limit = request->limit ? request->limit : 100;
    out->hits = calloc(limit + 1, sizeof *out->hits);
    out->n = limit < 3 || atomic_load(&fake.chatty) ? limit : 3;
    out->more = out->n < 3;
    for (size_t i = 0; i < out->n; i++) {
        struct tl_hit *const hit = &out->hits[i];
        hit->at.insn = request->from + i;
        hit->pc = request->kind == TL_FIND_PC ? request->pc_from : UINT64_MAX;
        snprintf(hit->stream, sizeof hit->stream, "%s", request->near ? request->near : "");
        snprintf(hit->text, sizeof hit->text, "%s%s", request->text ? request->text : "pc",
                 atomic_load(&fake.chatty) ? " which is told at some length, to no purpose" : "");
    }
    return TL_OK;
}

void tl_found_fini(struct tl_found *found)
{
    free(found->hits);
    *found = (struct tl_found){0};
}

/* A name with non-ASCII characters, and one that is not valid UTF-8. */
#define NAME     "größe"
#define BAD_NAME "gr\xf6\xdf"

int tl_lake_stats(struct tl_lake *lake, const char *trace, const char *stream, uint64_t from,
                  uint64_t to, struct tl_stats *out, struct tl_fail *fail)
{
    *out = (struct tl_stats){.from = from, .to = to, .insns = 1, .taken = UINT64_MAX};
    const int rc = check(lake, trace, stream ? stream : "cs.10", fail);
    if (rc < 0)
        return rc;
    out->functions = calloc(out->n_functions = 2, sizeof *out->functions);
    out->n_run = 312;
    out->functions[0] = (struct tl_stats_function){NAME, UINT64_MAX, from, from + 1};
    out->functions[1] = (struct tl_stats_function){BAD_NAME, 0, 1, 0};
    out->counts = calloc(out->n_counts = 1, sizeof *out->counts);
    out->counts[0] = (struct tl_stats_count){TL_STATS_MIX, "plain", from};
    return TL_OK;
}

void tl_stats_fini(struct tl_stats *stats)
{
    free(stats->functions);
    free(stats->counts);
}

int tl_lake_insns(struct tl_lake *lake, const char *trace, const char *stream, uint64_t from,
                  uint32_t count, tl_insn_sink *sink, void *context, struct tl_fail *fail)
{
    static const struct tl_insn_inlined inlined[] = {{BAD_NAME, "f.h", 7}, {NAME, "", 0}};
    int rc = check(lake, trace, stream, fail);
    for (uint32_t i = 0; i < count && rc == TL_OK; i++) {
        const struct tl_insn_row row = {.insn = from + i,
                                        .pc = 4 * (from + i),
                                        .time = 10 * (from + i),
                                        .has_time = i > 0,
                                        .function = NAME,
                                        .mode = "",
                                        .encoding = i ? "d503201f" : "",
                                        .text = "nop\t; " BAD_NAME,
                                        .events = i ? "" : "O\nA switch 1 1 " NAME "\n",
                                        .file = i ? NAME : "",
                                        .line = i,
                                        .inlined = inlined,
                                        .n_inlined = i ? 2 : 0,
                                        .image = "",
                                        .lacks = ""};
        rc = sink(context, &row);
    }
    return rc;
}

int tl_lake_source(struct tl_lake *lake, const char *trace, const char *stream, uint64_t insn,
                   uint32_t frame, struct tl_source_file *out, struct tl_fail *fail)
{
    *out = (struct tl_source_file){.line = frame, .has_text = insn > 0, .why = BAD_NAME};
    int rc = check(lake, trace, stream, fail);
    if (rc == TL_OK)
        rc = tl_buf_add(&out->text, BAD_NAME, strlen(BAD_NAME));
    out->file = rc == TL_OK ? strdup(NAME) : NULL;
    return rc < 0 || out->file ? rc : TL_NOMEM;
}

void tl_source_file_fini(struct tl_source_file *source)
{
    free(source->file);
    tl_buf_fini(&source->text);
    *source = (struct tl_source_file){0};
}

int tl_lake_log(struct tl_lake *lake, const struct tl_soft_request *request,
                struct tl_soft_log *out, struct tl_fail *fail)
{
    *out = (struct tl_soft_log){.more = request->last};
    const int rc = check(lake, request->trace, request->stream, fail);
    if (rc < 0)
        return rc;
    out->entries = calloc(out->n = 2, sizeof *out->entries);
    out->entries[0] = (struct tl_soft_entry){.at = request->from,
                                             .last = request->to,
                                             .is_text = true,
                                             .records = request->limit,
                                             .source = "uart",
                                             .text = strdup(BAD_NAME)};
    out->entries[1] = (struct tl_soft_entry){.has_time = true,
                                             .time = UINT64_MAX,
                                             .has_channel = true,
                                             .channel = 0x100000002,
                                             .source = "stm",
                                             .size = 2,
                                             .text = strdup("0x12")};
    return TL_OK;
}

void tl_soft_log_fini(struct tl_soft_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->entries[i].text);
    free(log->entries);
    *log = (struct tl_soft_log){0};
}

int tl_lake_states(struct tl_lake *lake, const struct tl_lane_request *request,
                   struct tl_states *out, struct tl_fail *fail)
{
    *out = (struct tl_states){.sampled = request->columns > 0};
    const int rc = check(lake, request->trace, request->stream, fail);
    if (rc < 0)
        return rc;
    out->runs = calloc(out->n = 1, sizeof *out->runs);
    out->runs[0] = (struct tl_state_run){.from = request->from,
                                         .to = request->to,
                                         .context = UINT64_MAX,
                                         .has_context = true,
                                         .mode_text = BAD_NAME,
                                         .has_mode = true,
                                         .mixed = request->axis == TL_UNIT_TIME};
    return TL_OK;
}

void tl_states_fini(struct tl_states *states)
{
    free(states->runs);
    *states = (struct tl_states){0};
}

int tl_lake_counters(struct tl_lake *lake, const struct tl_lane_request *request,
                     struct tl_counters *out, struct tl_fail *fail)
{
    *out = (struct tl_counters){.from = request->from, .to = request->to, .has_cycles = true};
    const int rc = check(lake, request->trace, request->stream, fail);
    if (rc < 0)
        return rc;
    out->p = calloc(out->n = 2, sizeof *out->p);
    out->p[0] = (struct tl_counter){.insns = request->columns, .cycles = UINT64_MAX};
    out->p[1] = (struct tl_counter){.cycle_insns = 7};
    return TL_OK;
}

void tl_counters_fini(struct tl_counters *counters)
{
    free(counters->p);
    *counters = (struct tl_counters){0};
}

int tl_lake_notes(struct tl_lake *lake, const char *trace, struct tl_note **notes, size_t *n,
                  struct tl_fail *fail)
{
    const int rc = check(lake, trace, STREAM, fail);
    *notes = rc < 0 ? NULL : calloc(1, sizeof **notes);
    *n = rc < 0 ? 0 : 1;
    if (*notes)
        **notes = (struct tl_note){.id = 3, .stream = STREAM, .to = UINT64_MAX, .text = NAME};
    return rc;
}

int tl_lake_put_note(struct tl_lake *lake, const char *trace, struct tl_note *note,
                     struct tl_fail *fail)
{
    note->has_time = true;
    note->time = note->at * 10;
    return check(lake, trace, *note->stream ? note->stream : STREAM, fail);
}

int tl_lake_remove_note(struct tl_lake *lake, const char *trace, uint64_t id, struct tl_fail *fail)
{
    return check(lake, trace, STREAM, fail);
}

/*
 * One slice; the resolution is the number of columns, and `truncated` is set if the axis is time.
 */
int tl_lake_hit_columns(struct tl_lake *lake, const struct tl_lane_request *request,
                        const char *text, struct tl_hit_columns *out, struct tl_fail *fail)
{
    *out = (struct tl_hit_columns){.n = request->columns,
                                   .from = request->from,
                                   .to = request->to,
                                   .total = strlen(text),
                                   .hits = calloc(request->columns + 1u, sizeof *out->hits)};
    for (size_t i = 0; i < out->n; i++)
        out->hits[i] = UINT64_MAX - i;
    return check(lake, request->trace, request->stream, fail);
}

void tl_hit_columns_fini(struct tl_hit_columns *columns)
{
    free(columns->hits);
    *columns = (struct tl_hit_columns){0};
}

int tl_lake_slices(struct tl_lake *lake, const struct tl_slices_request *request,
                   struct tl_slices *out, struct tl_fail *fail)
{
    *out = (struct tl_slices){.resolution = request->columns,
                              .truncated = request->axis == TL_UNIT_TIME};
    const int rc = check(lake, request->trace, request->stream, fail);
    if (rc < 0)
        return rc;
    out->p = calloc(out->n = 1, sizeof *out->p);
    /* by time an exception with a number, by instruction an interrupt without one */
    const bool numbered = request->axis == TL_UNIT_TIME;
    out->p[0] = (struct tl_stack_slice){.from = request->from,
                                        .to = request->to,
                                        .is_exception = true,
                                        .interrupt = !numbered,
                                        .exception = numbered ? 5 : -1,
                                        .exact = true,
                                        .name = NAME};
    return TL_OK;
}

void tl_slices_fini(struct tl_slices *slices)
{
    free(slices->p);
}

int tl_lake_functions(struct tl_lake *lake, const char *trace, struct tl_functions *out,
                      struct tl_fail *fail)
{
    *out = (struct tl_functions){0};
    const int rc = check(lake, trace, STREAM, fail);
    if (rc < 0)
        return rc;
    out->p = calloc(out->n = 2, sizeof *out->p);
    out->p[0] = (struct tl_function){NAME, 16};
    out->p[1] = (struct tl_function){BAD_NAME, UINT64_MAX};
    return TL_OK;
}

void tl_functions_fini(struct tl_functions *functions)
{
    free(functions->p);
}

int tl_lake_tile(struct tl_lake *lake, const char *trace, enum tl_range_unit axis, unsigned level,
                 uint64_t index, unsigned lane_from, unsigned lane_to, uint64_t gen,
                 struct tl_tile *out, struct tl_fail *fail)
{
    *out = (struct tl_tile){.axis = axis, .level = level, .index = index, .generation = gen};
    pthread_mutex_lock(&lake->lock);
    const struct trace *const t = find_locked(lake, trace);
    const bool there = t && t->row.generation == gen;
    if (there) {
        out->sealed = t->row.state == TL_TRACE_SEALED;
        out->revision = t->row.revision;
    }
    pthread_mutex_unlock(&lake->lock);
    if (!there)
        return TL_NOTFOUND;
    out->lanes[0] = calloc(out->n_lanes = 1, sizeof *out->lanes[0]);
    out->lanes[0]->page[1] = UINT64_MAX;
    out->lanes[0]->privilege[4 * TL_TILE_BUCKETS - 1] = 255;
    return TL_OK;
}

void tl_tile_fini(struct tl_tile *tile)
{
    for (size_t i = 0; i < tile->n_lanes; i++)
        free(tile->lanes[i]);
}

int tl_lake_metrics(struct tl_lake *lake, struct tl_buf *out)
{
    return tl_buf_printf(out,
                         "# TYPE tracelake_appended_bytes counter\n"
                         "tracelake_appended_bytes %llu\n",
                         (unsigned long long)atomic_load(&fake.appended));
}

int tl_lake_call(struct tl_lake *lake, const char *trace, const char *stream, uint64_t insn,
                 uint32_t depth, struct tl_call_info *out, struct tl_fail *fail)
{
    *out = (struct tl_call_info){.name = NAME,
                                 .kind = TL_CALL_EXCEPTION,
                                 .exception = 7,
                                 .depth = depth == TL_CALL_INNERMOST ? 1 : depth,
                                 .deepest = 9,
                                 .caller = BAD_NAME,
                                 .from = insn,
                                 .to = UINT64_MAX,
                                 .number = 3,
                                 .calls = 4,
                                 .finished = 2,
                                 .has_next = true,
                                 .next = insn + 5};
    return check(lake, trace, stream, fail);
}

void tl_call_info_fini(struct tl_call_info *call)
{
    *call = (struct tl_call_info){0};
}

int tl_lake_profile(struct tl_lake *lake, const struct tl_profile_request *request,
                    struct tl_profile *out, struct tl_fail *fail)
{
    *out = (struct tl_profile){.insns = request->to, .truncated = request->callers};
    const int rc = check(lake, request->trace,
                         request->stream && *request->stream ? request->stream : STREAM, fail);
    if (rc < 0)
        return rc;
    out->nodes = calloc(out->n_nodes = 1, sizeof *out->nodes);
    out->nodes[0] = (struct tl_profile_node){.name = NAME, .total = request->nodes};
    out->functions = calloc(out->n_functions = 1, sizeof *out->functions);
    out->functions[0] = (struct tl_profile_function){.name = BAD_NAME, .self = request->from};
    return TL_OK;
}

void tl_profile_fini(struct tl_profile *profile)
{
    free(profile->nodes);
    free(profile->functions);
    *profile = (struct tl_profile){0};
}

int tl_lake_compare(struct tl_lake *lake, const struct tl_compare_request *request,
                    struct tl_compare *out, struct tl_fail *fail)
{
    *out = (struct tl_compare){.a_to = request->a.to, .total_hunks = UINT64_MAX};
    int rc = check(lake, request->a.trace, request->a.stream, fail);
    if (rc == TL_OK)
        rc = check(lake, request->b.trace, request->b.stream, fail);
    if (rc < 0)
        return rc;
    out->hunks = calloc(out->n_hunks = 1, sizeof *out->hunks);
    out->hunks[0] = (struct tl_compare_hunk){1, 2, request->b.from, UINT64_MAX};
    out->stack_a = calloc(out->n_stack_a = 1, sizeof *out->stack_a);
    out->stack_a[0] = BAD_NAME;
    out->functions = calloc(out->n_functions = 1, sizeof *out->functions);
    out->functions[0] = (struct tl_compare_function){.name = NAME, .calls_b = request->calls};
    return TL_OK;
}

void tl_compare_fini(struct tl_compare *out)
{
    free(out->hunks);
    free(out->stack_a);
    free(out->functions);
    *out = (struct tl_compare){0};
}

int tl_lake_code(struct tl_lake *lake, const struct tl_code_request *request, struct tl_code *out,
                 struct tl_fail *fail)
{
    *out = (struct tl_code){0};
    return check(lake, request->of.trace, request->of.stream, fail);
}

void tl_code_fini(struct tl_code *code)
{
    *code = (struct tl_code){0};
}

int tl_lake_coverage(struct tl_lake *lake, const struct tl_code_request *request,
                     struct tl_coverage *out, struct tl_fail *fail)
{
    *out = (struct tl_coverage){0};
    return check(lake, request->of.trace, request->of.stream, fail);
}

void tl_coverage_fini(struct tl_coverage *coverage)
{
    *coverage = (struct tl_coverage){0};
}

int tl_lake_simpoints(struct tl_lake *lake, const struct tl_simpoints_request *request,
                      struct tl_simpoints_found *out, struct tl_fail *fail)
{
    static const char line[] = "T:1:10 \n";
    *out = (struct tl_simpoints_found){.to = request->to, .intervals = 1};
    int rc = check(lake, request->trace, request->stream, fail);
    if (rc == TL_OK && request->vector)
        rc = request->vector(request->context, (struct tl_bytes){(const uint8_t *)line, 8});
    if (rc < 0)
        return rc;
    out->p = calloc(out->n = 1, sizeof *out->p);
    out->p[0] = (struct tl_simpoint){request->from, request->interval, 0, 1.0, 1};
    return TL_OK;
}

enum tl_insn_column tl_insn_column_named(const char *name)
{
    return strcmp(name, "pc") == 0 ? TL_INSN_PC : TL_INSN_COLUMNS;
}

int tl_lake_insn_columns(struct tl_lake *lake, const struct tl_insn_columns_request *request,
                         tl_sql_sink *sink, void *context, struct tl_fail *fail)
{
    static const uint8_t pc[8] = {16};
    const struct tl_sql_column column = {.name = "pc", .kind = TL_SQL_U64, .values = pc};
    const int rc = check(lake, request->trace, request->stream, fail);
    return rc < 0 ? rc : sink(context, &(struct tl_sql_batch){&column, 1, 1, true, false});
}

int tl_lake_sql(struct tl_lake *lake, const struct tl_sql_request *request, tl_sql_sink *sink,
                void *context, struct tl_fail *fail)
{
    static const uint8_t ints[16] = {1, [14] = 0x20, [15] = 0};             /* 1, 2^53 */
    static const uint8_t reals[16] = {[6] = 0xe0, 0x3f, [14] = 0xf0, 0xff}; /* 0.5, -infinity */
    static const uint8_t indexes[8] = {1}, second = 2;
    static const char *const texts[] = {"gr\xf6\xdf", "a\"\n"};
    const struct tl_sql_column columns[] = {
        {.name = "i", .kind = TL_SQL_INTEGER, .values = ints},
        {.name = "r", .kind = TL_SQL_REAL, .values = reals},
        {.name = "t", .kind = TL_SQL_TEXT, .values = indexes, .texts = texts, .n_texts = 2},
        {.name = "n", .kind = TL_SQL_INTEGER, .values = ints, .nulls = &second}};
    const struct tl_sql_batch batch = {columns, 4, 2, true, request->rows == 2};
    if (strcmp(request->text, "SELECT 1"))
        return tl_fail_set(fail, TL_USAGE, "near \"%.20s\"", request->text);
    const int rc = check(lake, request->trace, STREAM, fail);
    return rc < 0 ? rc : sink(context, &batch);
}

void tl_simpoints_found_fini(struct tl_simpoints_found *found)
{
    free(found->p);
    *found = (struct tl_simpoints_found){0};
}

#endif
