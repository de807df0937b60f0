/* SPDX-License-Identifier: MIT */
/*
 * Prints the page's address of a place, for editors, tickets and messages. The place is looked for
 * by the server, and named in the address by its instruction, which stays the same.
 */
#include "cli/showlink.h"
#include "cli/viewplace.h"
#include "terminal/span.h"

#include <stdio.h>
#include <string.h>

static int places(const struct tl_showlink *link)
{
    return (link->insn != TRACELAKE_END) + (link->time.value != TRACELAKE_END) +
           (link->where.from_symbol || link->where.from_pc || link->where.from_event);
}

int tl_showlink_check(const struct tl_showlink *link)
{
    if (places(link) > 0 && !link->given)
        return tl_cli_usage("show", "a place goes with --link");
    if (places(link) > 1)
        return tl_cli_usage("show", "say one place: --insn, --time, --symbol, --pc or --event");
    return TL_ARGS_GO;
}

/* The instruction of the place; TRACELAKE_END: none is given. */
static int find(const struct tl_showlink *link, struct tracelake *lake,
                const struct tl_remote_name *name, uint64_t *at)
{
    *at = link->insn;
    if (link->time.value != TRACELAKE_END)
        return tl_span_insn_at(&link->time, lake, name, at);
    if (!tl_where_given(&link->where))
        return TL_ARGS_GO;
    struct tracelake_range range = {name->trace, name->stream, TRACELAKE_INSN, 0, TRACELAKE_END};
    const int status = tl_where_find(&link->where, lake, &range);
    *at = range.from;
    return status;
}

/* Is it an instruction of the stream? Otherwise the address would show something else. */
static int check_there(const struct tracelake_trace *trace, const struct tl_remote_name *name,
                       uint64_t at)
{
    const struct tracelake_stream *stream = NULL;
    for (size_t i = 0; i < trace->n_streams; i++)
        if (strcmp(trace->streams[i].name, name->stream) == 0)
            stream = &trace->streams[i];
    if (!stream)
        return tl_cli_warn(trace->id, "it has no stream %s", name->stream), TL_CLI_REFUSED;
    if (at != TRACELAKE_END && at >= stream->insns)
        return tl_cli_warn(name->stream, "it ends at instruction %llu",
                           (unsigned long long)stream->insns),
               TL_CLI_BAD;
    return TL_ARGS_GO;
}

/* Only the first of several servers. */
static void first_server(char out[static 256], const char *url)
{
    size_t n = strcspn(url, ", ");
    n -= n > 0 && url[n - 1] == '/';
    snprintf(out, 256, "%.*s", (int)(n < 255 ? n : 255), url);
}

int tl_showlink(const struct tl_showlink *link, struct tracelake *lake, const char *url,
                const char *text)
{
    struct tl_remote_name name;
    struct tl_view_place place;
    struct tracelake_trace *trace;
    struct tracelake_error error;
    char base[256];
    uint64_t at = TRACELAKE_END;
    int status = tl_remote_name("show", text, &name);
    if (status == TL_ARGS_GO && places(link) > 0)
        status = tl_remote_one_stream(lake, &name);
    if (status == TL_ARGS_GO)
        status = find(link, lake, &name, &at);
    if (status != TL_ARGS_GO)
        return status;
    if (tracelake_get_trace(lake, name.trace, &trace, &error) < 0)
        return tl_remote_fail(name.trace, &error);
    status = *name.stream ? check_there(trace, &name, at) : TL_ARGS_GO;
    tracelake_trace_free(trace);
    if (status != TL_ARGS_GO)
        return status;
    first_server(base, url);
    if (*name.stream)
        tl_view_place_at(&place, base, name.trace, name.stream, at);
    else
        tl_view_place_whole(&place, base, name.trace);
    puts(place.address);
    return TL_CLI_DONE;
}
