/* SPDX-License-Identifier: MIT */
/*
 * Resolves "from the n-th call of X, for N instructions" to positions by asking the server for
 * hits. The server skips chunks without a hit, so that only positions travel instead of the trace.
 */
#include "cli/where.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool tl_where_given(const struct tl_where *where)
{
    return where->from_symbol || where->from_pc || where->from_event || where->from_opcode ||
           where->to_symbol || where->to_pc || where->to_event || where->to_opcode ||
           where->count || where->warm_up;
}

/* Parse one of the ways to name a place; `*given`: there is one. USAGE is reported. */
static int name_place(const char *symbol, const char *pc, const char *event, const char *opcode,
                      struct tracelake_query *query, bool *given)
{
    *given = symbol || pc || event || opcode;
    if ((symbol != NULL) + (pc != NULL) + (event != NULL) + (opcode != NULL) > 1)
        return tl_cli_usage(
            "get", "a place is a symbol, an address, an event or an encoding, one of them");
    query->kind = symbol   ? TRACELAKE_FIND_CALL
                  : pc     ? TRACELAKE_FIND_PC
                  : opcode ? TRACELAKE_FIND_OPCODE
                           : TRACELAKE_FIND_EVENT;
    query->text = symbol ? symbol : opcode ? opcode : event;
    if (pc && tl_pc_parse(pc, strlen(pc), &query->pc_from) < 0)
        return tl_cli_usage("get", "%.40s is no address: give it in hexadecimal", pc);
    query->pc_to = query->pc_from + 1;
    return TL_ARGS_GO;
}

/* Report that there are too few hits. */
static int say_too_few(const char *trace, const struct tracelake_found *found, uint64_t n,
                       uint64_t from)
{
    if (n == 0)
        tl_cli_warn(trace, "no %s from instruction %" PRIu64 " on", found->what, from);
    else
        tl_cli_warn(trace, "%s: only %" PRIu64 " from instruction %" PRIu64 " on", found->what, n,
                    from);
    return TL_CLI_BAD;
}

/* The instruction of the n-th hit from `range->from` on; the server returns the hits in parts. */
static int find_nth(struct tracelake *lake, const struct tracelake_range *range,
                    struct tracelake_query *query, uint64_t n, uint64_t *insn)
{
    struct tracelake_error error;
    struct tracelake_found *found;
    query->trace = range->trace;
    query->stream = range->stream;
    query->from = range->from;
    query->to = range->to;
    for (uint64_t before = 0;;) {
        query->limit = n - before;
        if (tracelake_search(lake, query, &found, &error) < 0)
            return tl_remote_fail_query(range->trace, &error);
        before += found->n;
        int status = TL_CLI_DONE; /* continues */
        if (before >= n) {
            *insn = found->hits[query->limit - 1].at.insn;
            status = TL_ARGS_GO;
        } else if (found->more && found->n > 0) {
            query->near = range->stream;
            query->at = found->hits[found->n - 1].at.insn;
            query->skip = found->skip;
        } else {
            status = say_too_few(range->trace, found, before, range->from);
        }
        tracelake_found_free(found);
        if (status != TL_CLI_DONE)
            return status;
    }
}

int tl_where_find(const struct tl_where *where, struct tracelake *lake,
                  struct tracelake_range *range)
{
    struct tracelake_query from = {0}, to = {0};
    bool has_from, has_to;
    int status = name_place(where->from_symbol, where->from_pc, where->from_event,
                            where->from_opcode, &from, &has_from);
    if (status == TL_ARGS_GO)
        status = name_place(where->to_symbol, where->to_pc, where->to_event, where->to_opcode, &to,
                            &has_to);
    if (status != TL_ARGS_GO)
        return status;
    if (range->unit != TRACELAKE_INSN)
        return tl_cli_usage("get", "places are looked for in ranges of instructions");
    if (where->occurrence == 0)
        return tl_cli_usage("get", "--occurrence counts from 1");
    if (has_to && where->count)
        return tl_cli_usage("get", "say either how many instructions or up to where");
    if (has_from)
        status = find_nth(lake, range, &from, where->occurrence, &range->from);
    const uint64_t begin = range->from;
    if (status == TL_ARGS_GO && has_to) {
        range->from = begin + 1;
        status = find_nth(lake, range, &to, 1, &range->to);
    }
    if (where->count && where->count < range->to - begin)
        range->to = begin + where->count;
    range->from = begin - (where->warm_up < begin ? where->warm_up : begin);
    return status;
}
