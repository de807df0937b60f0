/* SPDX-License-Identifier: MIT */
/* Whose time it was, in the fake lake: a part of fake_lake_looks.h. */
#ifndef TL_TESTS_FAKE_LAKE_TIMING_H
#define TL_TESTS_FAKE_LAKE_TIMING_H

#include "flow/item.h"
#include "lake_ranges.h"
#include "lake_timing.h"

static struct tl_timing_about fake_about(const struct tl_timing_range *range)
{
    return (struct tl_timing_about){.from = range->from,
                                    .to = range->to,
                                    .has_time = true,
                                    .time_unit_ns = range->unit == TL_UNIT_NS,
                                    .time_from = 1,
                                    .time_to = UINT64_MAX,
                                    .time = 10,
                                    .ran = 4,
                                    .lost = 3,
                                    .off = 2,
                                    .switched_out = 1,
                                    .time_step = 6};
}

static const struct tl_lengths fake_lengths = {
    .total = 9, .min = 1, .max = 5, .p50 = 2, .p90 = 3, .p99 = 4, .p999 = UINT64_MAX, .longest = 7};

int tl_lake_function_table(struct tl_lake *lake, const struct tl_function_table_request *request,
                           struct tl_function_table *out, struct tl_fail *fail)
{
    *out = (struct tl_function_table){.about = fake_about(&request->range), .all = request->limit};
    const int rc = check(lake, request->range.trace, request->range.stream, fail);
    if (rc < 0)
        return rc;
    out->p = calloc(out->n = 2, sizeof *out->p);
    out->p[0] = (struct tl_function_times){.name = BAD_NAME,
                                           .pc = UINT64_MAX,
                                           .calls = request->weight,
                                           .self = 5,
                                           .total = 6,
                                           .self_time = {2, 1, UINT64_MAX},
                                           .total_time = 3};
    out->p[1] = (struct tl_function_times){.name = NAME,
                                           .ended = 1,
                                           .self_time = {2, 1, 3},
                                           .insns = fake_lengths,
                                           .time = fake_lengths};
    return TL_OK;
}

void tl_function_table_fini(struct tl_function_table *table)
{
    free(table->p);
    *table = (struct tl_function_table){0};
}

int tl_lake_calls_of(struct tl_lake *lake, const struct tl_calls_request *request,
                     struct tl_calls *out, struct tl_fail *fail)
{
    *out = (struct tl_calls){.about = fake_about(&request->range), .all = request->skip};
    const int rc = check(lake, request->range.trace, request->range.stream, fail);
    if (rc < 0)
        return rc;
    snprintf(out->what, sizeof out->what, "calls of %s", request->function);
    out->p = calloc(out->n = 1, sizeof *out->p);
    out->p[0] = (struct tl_call_row){.name = BAD_NAME,
                                     .caller = "",
                                     .from = request->least,
                                     .to = request->most,
                                     .self = request->limit,
                                     .time = {.most = UINT64_MAX},
                                     .depth = request->order,
                                     .cut = request->weight == TL_WEIGHT_TIME,
                                     .open = request->lengths_in_ns};
    return TL_OK;
}

void tl_calls_fini(struct tl_calls *calls)
{
    free(calls->p);
    *calls = (struct tl_calls){0};
}

int tl_lake_exception_table(struct tl_lake *lake, const struct tl_timing_range *range,
                            struct tl_exception_table *out, struct tl_fail *fail)
{
    *out = (struct tl_exception_table){.about = fake_about(range)};
    const int rc = check(lake, range->trace, range->stream, fail);
    if (rc < 0)
        return rc;
    out->p = calloc(out->n = 2, sizeof *out->p);
    out->p[0] = (struct tl_exception_row){
        .number = -1, .handler = NAME, .ended = 1, .insns = fake_lengths, .time = fake_lengths};
    out->p[1] = (struct tl_exception_row){
        .number = 5, .interrupt = true, .name = "irq", .handler = "", .period = 2.5, .jitter = 0.5};
    return TL_OK;
}

void tl_exception_table_fini(struct tl_exception_table *table)
{
    free(table->p);
    *table = (struct tl_exception_table){0};
}

int tl_lake_gap_table(struct tl_lake *lake, const struct tl_timing_range *range, uint32_t limit,
                      struct tl_gap_table *out, struct tl_fail *fail)
{
    *out = (struct tl_gap_table){.about = fake_about(range), .all = limit};
    const int rc = check(lake, range->trace, range->stream, fail);
    if (rc < 0)
        return rc;
    out->p = calloc(out->n = 1, sizeof *out->p);
    out->p[0] = (struct tl_gap_row){.position = 1,
                                    .time_from = 2,
                                    .time_to = 3,
                                    .gaps = 2,
                                    .reasons = 1u << TL_GAP_OVERFLOW | 1u << TL_GAP_SYNC};
    return TL_OK;
}

void tl_gap_table_fini(struct tl_gap_table *table)
{
    free(table->p);
    *table = (struct tl_gap_table){0};
}

int tl_lake_extremes(struct tl_lake *lake, const char *trace, uint64_t most,
                     struct tl_extremes *out, struct tl_fail *fail)
{
    *out = (struct tl_extremes){.n = 1, .left_out = most};
    out->p[0] = (struct tl_extreme){.kind = TL_EXTREME_GAP,
                                    .stream = STREAM,
                                    .name = strdup(BAD_NAME),
                                    .reasons = 1u << TL_GAP_OVERFLOW,
                                    .length = 4};
    return check(lake, trace, STREAM, fail);
}

void tl_extremes_fini(struct tl_extremes *extremes)
{
    for (size_t i = 0; i < extremes->n; i++)
        free(extremes->p[i].name);
    *extremes = (struct tl_extremes){0};
}

#endif
