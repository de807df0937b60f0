/* SPDX-License-Identifier: MIT */
/* `tracelake log`: what programs print by software trace, and hardware reports, line by line. It is
 * put together from flow text, so that a log of any length is printed as it comes; of a stream of
 * instructions only what is printed among them is asked for, page by page. */
#include "cli/cli.h"
#include "cli/streams.h"
#include "out/lines.h"
#include "out/outfile.h"
#include "terminal/span.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 10000 }; /* entries that are asked for at once, at most */

struct options {
    struct tl_remote remote;
    struct tl_span span;
    const char *port, *out;
    bool csv, json;
    struct tl_lines_options lines;
};

static int check_arguments(struct options *o)
{
    uint64_t port = 0;
    const int status = tl_span_check("log", &o->span);
    if (status != TL_ARGS_GO)
        return status;
    if (o->port && (tl_number_parse(o->port, &port) < 0 || port > UINT32_MAX))
        return tl_cli_usage("log", "--port %s: it is a number", o->port);
    if (o->csv && o->json)
        return tl_cli_usage("log", "say one of --csv, --json");
    o->lines.form = o->csv ? TL_LINES_CSV : o->json ? TL_LINES_JSON : TL_LINES_PLAIN;
    o->lines.one_channel = o->port != NULL;
    o->lines.channel = (uint32_t)port;
    return TL_ARGS_GO;
}

static int fail_write(const char *where, int error)
{
    tl_cli_warn(where, "cannot write: %s", error == TL_NOMEM ? "out of memory" : strerror(errno));
    return TL_CLI_BAD;
}

static int copy(struct tracelake_fetch *fetch, struct tl_lines *lines, const char *where)
{
    for (;;) {
        struct tracelake_error error;
        const void *p;
        size_t n;
        const int result = tracelake_fetch_next(fetch, &p, &n, &error);
        if (result == TRACELAKE_EOF)
            return TL_CLI_DONE;
        if (result < 0)
            return tl_remote_fail_query(where, &error);
        const int pushed = tl_lines_push(lines, (struct tl_bytes){p, n});
        if (pushed < 0)
            return fail_write(where, pushed);
    }
}

/* ---- streams of software trace --------------------------------------------------------------- */

static int copy_text(const struct options *o, struct tracelake *lake,
                     const struct tl_remote_name *name, struct tl_lines *lines)
{
    char where[256];
    struct tracelake_error error;
    struct tracelake_fetch *fetch;
    const struct tracelake_range range = tl_span_range(&o->span, name);
    snprintf(where, sizeof where, "%s/%s", name->trace, name->stream);
    if (tracelake_fetch_open(&fetch, lake, &range, TRACELAKE_TEXT, &error) < 0)
        return tl_remote_fail_query(where, &error);
    const int status = copy(fetch, lines, where);
    tl_lines_flush(lines);
    tracelake_fetch_close(fetch);
    return status;
}

/* ---- streams of instructions ----------------------------------------------------------------- */

/* How many of the entries are whole: if there are others, those at the last position come with
 * them. */
static size_t whole_of(const struct tracelake_log_lines *page)
{
    size_t n = page->n;
    while (page->more && n > 0 && page->p[n - 1].at == page->p[page->n - 1].at)
        n--;
    return n ? n : page->n;
}

static int print_entries(const struct tracelake_log_lines *page, size_t n, struct tl_lines *lines)
{
    int r = 0;
    for (size_t i = 0; i < n && r >= 0; i++) {
        const struct tracelake_log_entry *const e = &page->p[i];
        char time[24] = "-";
        if (e->has_time)
            snprintf(time, sizeof time, "%" PRIu64, e->time);
        r = tl_lines_entry(lines, time, e->source, e->channel, e->form, e->text);
    }
    return r;
}

static int copy_pages(const struct options *o, struct tracelake *lake,
                      const struct tl_remote_name *name, struct tl_lines *lines)
{
    struct tracelake_range range = {name->trace, name->stream, TRACELAKE_INSN, 0, TRACELAKE_END};
    struct tracelake_error error;
    struct tracelake_log_lines *page;
    int status = tl_span_insns(&o->span, lake, name, &range.from, &range.to);
    for (bool more = true; more && status == TL_ARGS_GO;) {
        if (tracelake_get_log(lake, &range, PAGE, false, &page, &error) < 0)
            return tl_remote_fail_query(name->trace, &error);
        const size_t n = whole_of(page);
        more = page->more && n > 0;
        if (more)
            range.from = n < page->n ? page->p[n].at : page->p[n - 1].at + 1;
        const int printed = print_entries(page, n, lines);
        tracelake_log_lines_free(page);
        if (printed < 0)
            return fail_write(name->trace, printed);
    }
    return status == TL_ARGS_GO ? TL_CLI_DONE : status;
}

static bool has_trait(const struct tracelake_stream *stream, unsigned trait)
{
    const int protocol = tl_protocol_named(stream->protocol);
    return protocol >= 0 && tl_protocol_has((unsigned)protocol, trait);
}

/* Has a stream of instructions anything in the range that is printed? */
static bool has_entries(const struct options *o, struct tracelake *lake,
                        const struct tl_remote_name *name)
{
    const struct tracelake_range range = tl_span_range(&o->span, name);
    struct tracelake_log_lines *page;
    if (tracelake_get_log(lake, &range, 1, false, &page, NULL) < 0)
        return false;
    const bool any = page->n > 0;
    tracelake_log_lines_free(page);
    return any;
}

/* ---- all of a trace -------------------------------------------------------------------------- */

/* Is a stream meant that was not named? */
static bool is_meant(const struct options *o, struct tracelake *lake,
                     const struct tl_remote_name *name, const struct tracelake_stream *stream)
{
    return has_trait(stream, TL_TRAIT_SOFTWARE) ||
           (has_trait(stream, TL_TRAIT_WRITES) && has_entries(o, lake, name));
}

static int log_streams(const struct options *o, struct tracelake *lake,
                       const struct tl_remote_name *name, struct tl_lines *lines)
{
    struct tracelake_error error;
    struct tracelake_trace *trace;
    struct tl_setup setup;
    size_t n = 0;
    if (tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
        return tl_remote_fail_query(name->trace, &error);
    tl_streams_setup(lake, name->trace, &setup); /* for clocks */
    int status = TL_CLI_DONE;
    for (size_t i = 0; i < trace->n_streams && status == TL_CLI_DONE; i++) {
        const struct tracelake_stream *const stream = &trace->streams[i];
        struct tl_remote_name one = *name;
        snprintf(one.stream, sizeof one.stream, "%s", stream->name);
        if (*name->stream ? strcmp(name->stream, stream->name) != 0
                          : !is_meant(o, lake, &one, stream))
            continue;
        n++;
        tl_lines_stream(lines, stream->name, tl_setup_clock(&setup, stream->name));
        status =
            (has_trait(stream, TL_TRAIT_WRITES) ? copy_pages : copy_text)(o, lake, &one, lines);
    }
    if (n == 0) {
        tl_cli_warn(name->trace,
                    *name->stream ? "it has no stream %s" : "it has no stream of software trace%s",
                    name->stream);
        status = *name->stream ? TL_CLI_REFUSED : TL_CLI_BAD;
    }
    tl_setup_fini(&setup);
    tracelake_trace_free(trace);
    return status;
}

static int print_log(const struct options *o, struct tracelake *lake,
                     const struct tl_remote_name *name, FILE *file)
{
    struct tl_lines *lines;
    if (tl_lines_new(&lines, &o->lines, file) < 0) {
        tl_cli_warn(name->trace, "out of memory");
        return TL_CLI_BAD;
    }
    const int status = log_streams(o, lake, name, lines);
    tl_lines_free(lines);
    return status;
}

static int run(const struct options *o, struct tracelake *lake, const struct tl_remote_name *name)
{
    struct tl_outfile out;
    if (!o->out)
        return print_log(o, lake, name, stdout);
    int status = tl_outfile_open(&out, o->out);
    if (status != TL_ARGS_GO)
        return status;
    status = print_log(o, lake, name, out.file);
    return tl_outfile_close(&out, status);
}

int tl_cmd_log(int argc, char **argv)
{
    struct options o = {0};
    const struct tl_option args[] = {
        TL_SPAN_ARGS(o.span),
        {"port", 0, TL_ARG_TEXT, &o.port, "N", "only this stimulus port, or channel"},
        {"csv", 0, TL_ARG_FLAG, &o.csv, NULL,
         "columns: stream, time, seconds, source, channel, form, text"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "an object per line"},
        {"output", 'o', TL_ARG_TEXT, &o.out, "FILE", "output file"},
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    struct tracelake *lake = NULL;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("log", "give one TRACE or TRACE/STREAM");
    if (status == TL_ARGS_GO)
        status = tl_remote_name("log", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = check_arguments(&o);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &o.remote);
    if (status == TL_ARGS_GO)
        status = tl_span_there(&o.span, lake, &name);
    if (status == TL_ARGS_GO)
        status = run(&o, lake, &name);
    tracelake_close(lake);
    return status;
}
