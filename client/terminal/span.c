/* SPDX-License-Identifier: MIT */
/*
 * Ranges on the command line. Commands whose question is one of instructions also take times: the
 * server says which instructions these are, so that every command means the same ones.
 */
#include "terminal/span.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int tl_span_check(const char *command, const struct tl_span *span)
{
    if (span->insn.given && span->time.given)
        return tl_cli_usage(command, "say one of --insn, --time");
    return span->insn.given && span->insn.from == span->insn.to
               ? tl_cli_empty_range(command, span->insn.from)
               : TL_ARGS_GO;
}

int tl_weight_of(const char *command, const char *text, bool cycles, enum tracelake_weight *weight)
{
    static const char *const names[] = {[TRACELAKE_BY_INSNS] = "insns",
                                        [TRACELAKE_BY_TIME] = "time",
                                        [TRACELAKE_BY_CYCLES] = "cycles"};
    const unsigned n = cycles ? TRACELAKE_BY_CYCLES + 1 : TRACELAKE_BY_CYCLES;
    for (unsigned i = 0; text && i < n; i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        *weight = (enum tracelake_weight)i;
        return TL_ARGS_GO;
    }
    return !text ? TL_ARGS_GO
                 : tl_cli_usage(command, "--weight %.20s: it is %s", text,
                                cycles ? "insns, time or cycles" : "time or insns");
}

struct tracelake_range tl_span_range(const struct tl_span *span, const struct tl_remote_name *name)
{
    struct tracelake_range range = {name->trace, name->stream, TRACELAKE_INSN, 0, TRACELAKE_END};
    if (span->insn.given) {
        range.from = span->insn.from;
        range.to = span->insn.to;
    } else if (span->time.given) {
        range.unit = span->time.ns ? TRACELAKE_NS : TRACELAKE_TIME;
        range.from = span->time.from;
        range.to = span->time.to;
    }
    return range;
}

/* Does the range begin behind the stream's end? Not if its unit is not the stream's, or nothing is
 * known yet. */
static bool is_behind(const struct tracelake_range *range, const struct tracelake_stream *stream)
{
    if (range->unit == TRACELAKE_INSN)
        return stream->insns > 0 && range->from >= stream->insns;
    return stream->has_time && stream->time_unit_ns == (range->unit == TRACELAKE_NS) &&
           range->from > stream->time_last;
}

static void say_behind(const struct tracelake_range *range, const struct tracelake_stream *stream)
{
    char where[256];
    const char *const unit = range->unit == TRACELAKE_NS ? " ns" : "";
    snprintf(where, sizeof where, "%s/%s", range->trace, stream->name);
    if (range->unit == TRACELAKE_INSN)
        tl_cli_warn(where, "nothing is there from instruction %" PRIu64 " on; it ends at %" PRIu64,
                    range->from, stream->insns);
    else
        tl_cli_warn(where, "nothing is there from time %" PRIu64 "%s on; it ends at %" PRIu64 "%s",
                    range->from, unit, stream->time_last, unit);
}

/* Count the streams that the range names of whose end it is behind, or not. */
static size_t count(const struct tracelake_range *range, const struct tracelake_trace *trace,
                    bool behind, bool report)
{
    size_t n = 0;
    for (size_t i = 0; i < trace->n_streams; i++) {
        const struct tracelake_stream *const stream = &trace->streams[i];
        if ((*range->stream && strcmp(range->stream, stream->name) != 0) ||
            is_behind(range, stream) != behind)
            continue;
        n++;
        if (report)
            say_behind(range, stream);
    }
    return n;
}

int tl_span_there(const struct tl_span *span, struct tracelake *lake,
                  const struct tl_remote_name *name)
{
    const struct tracelake_range range = tl_span_range(span, name);
    struct tracelake_trace *trace;
    struct tracelake_error error;
    if (range.from == 0)
        return TL_ARGS_GO;
    if (tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
        return tl_remote_fail_query(name->trace, &error);
    const bool none =
        count(&range, trace, false, false) == 0 && count(&range, trace, true, true) > 0;
    tracelake_trace_free(trace);
    return none ? TL_CLI_BAD : TL_ARGS_GO;
}

static int locate(struct tracelake *lake, const struct tl_remote_name *name, bool ns, uint64_t time,
                  uint64_t *insn)
{
    struct tracelake_position at;
    struct tracelake_error error;
    if (tracelake_locate(lake, name->trace, name->stream, ns ? TRACELAKE_NS : TRACELAKE_TIME, time,
                         &at, &error) < 0)
        return tl_remote_fail_query(name->trace, &error);
    *insn = at.insn;
    return TL_ARGS_GO;
}

int tl_span_insns(const struct tl_span *span, struct tracelake *lake,
                  const struct tl_remote_name *name, uint64_t *from, uint64_t *to)
{
    const struct tracelake_range range = tl_span_range(span, name);
    *from = range.from;
    *to = range.to;
    int status = tl_span_there(span, lake, name);
    if (status != TL_ARGS_GO || range.unit == TRACELAKE_INSN)
        return status;
    status = locate(lake, name, span->time.ns, range.from, from);
    if (status == TL_ARGS_GO && range.to != TRACELAKE_END)
        status = locate(lake, name, span->time.ns, range.to, to);
    return status;
}

int tl_span_insn_at(const struct tl_time_arg *time, struct tracelake *lake,
                    const struct tl_remote_name *name, uint64_t *insn)
{
    return locate(lake, name, time->ns, time->value, insn);
}
