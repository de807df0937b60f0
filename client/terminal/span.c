/* SPDX-License-Identifier: MIT */
/*
 * Ranges on the command line. Commands whose question is one of instructions also take times: the
 * server says which instructions these are, so that every command means the same ones.
 */
#include "terminal/span.h"

#include <string.h>

int tl_span_check(const char *command, const struct tl_span *span)
{
    return span->insn.given && span->time.given ? tl_cli_usage(command, "say one of --insn, --time")
                                                : TL_ARGS_GO;
}

int tl_weight_of(const char *command, const char *text, enum tracelake_weight *weight)
{
    if (text && strcmp(text, "time") != 0 && strcmp(text, "insns") != 0)
        return tl_cli_usage(command, "--weight %.20s: it is time or insns", text);
    if (text)
        *weight = *text == 't' ? TRACELAKE_BY_TIME : TRACELAKE_BY_INSNS;
    return TL_ARGS_GO;
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
    if (range.unit == TRACELAKE_INSN)
        return TL_ARGS_GO;
    int status = locate(lake, name, span->time.ns, range.from, from);
    if (status == TL_ARGS_GO && range.to != TRACELAKE_END)
        status = locate(lake, name, span->time.ns, range.to, to);
    return status;
}

int tl_span_insn_at(const struct tl_time_arg *time, struct tracelake *lake,
                    const struct tl_remote_name *name, uint64_t *insn)
{
    return locate(lake, name, time->ns, time->value, insn);
}
