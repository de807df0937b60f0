/* SPDX-License-Identifier: MIT */
/*
 * `tracelake tail`: follows a live stream. After a broken connection it goes on where it was,
 * without a line twice.
 */
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/filter.h"
#include "out/annotate.h"
#include "out/lines.h"
#include "out/parts.h"
#include "terminal/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 200, OTHERS_LOOKS = 25, UNKNOWN_TRIES = 30 };

struct options {
    struct tl_remote remote;
    uint64_t from;
    bool json, lines;
    struct tl_annotate_args annotate;
    struct tracelake_filter filter;
};

static const struct tracelake_stream *find_stream(const struct tracelake_trace *trace,
                                                  const char *name)
{
    for (size_t i = 0; i < trace->n_streams; i++)
        if (!name[0] || strcmp(trace->streams[i].name, name) == 0)
            return &trace->streams[i];
    return NULL;
}

static int say_streams(const struct tracelake_trace *trace, const char *name)
{
    tl_cli_warn(trace->id, "it has no stream %s", name);
    for (size_t i = 0; i < trace->n_streams; i++)
        tl_cli_warn(trace->id, "it has stream %s", trace->streams[i].name);
    return TL_CLI_REFUSED;
}

/*
 * Wait until the stream exists, since the rig may have only just started; only briefly if there are
 * other streams. `*at` receives its current length.
 */
static int wait_for_stream(struct tracelake *lake, struct tl_remote_name *name, uint64_t *at)
{
    unsigned tries = 0, others = 0;
    for (;;) {
        struct tracelake_trace *trace;
        struct tracelake_error error;
        const int result = tracelake_get_trace(lake, name->trace, &trace, &error);
        if (tl_remote_again(result, &tries, TL_REMOTE_TRIES))
            continue;
        if (result < 0)
            return tl_remote_fail_query(name->trace, &error);
        const struct tracelake_stream *stream = find_stream(trace, name->stream);
        const bool more_may_come =
            trace->state == TRACELAKE_LIVE || trace->state == TRACELAKE_DECODING;
        others += trace->n_streams > 0;
        int status = TL_ARGS_GO;
        if (stream)
            *at = stream->insns > stream->outlined_insns ? stream->insns : stream->outlined_insns;
        else if (!more_may_come || others > OTHERS_LOOKS)
            status = say_streams(trace, name->stream);
        tracelake_trace_free(trace);
        if (stream)
            return tl_remote_one_stream(lake, name);
        if (status != TL_ARGS_GO)
            return status;
        if (tl_remote_signalled())
            return TL_CLI_DONE;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

/* What has been printed, so that printing can continue after a broken connection. */
struct printed {
    struct tl_parts parts; /* without the heading that names the stream */
    bool begun, json;
    bool went_on;                 /* a later call continued the text */
    struct tl_lines *lines;       /* NULL: text is printed unchanged */
    struct tl_annotate *annotate; /* NULL: no assembly and functions */
    bool asks_mode;               /* the current mode is not known yet */
};

static int put(struct printed *p, struct tl_bytes text)
{
    if (p->annotate)
        return tl_annotate_push(p->annotate, text) < 0 || fflush(stdout) != 0 ? -1 : 0;
    if (p->lines)
        return tl_lines_push(p->lines, text) < 0 || fflush(stdout) != 0 ? -1 : 0;
    return !tl_write_all(stdout, text.p, text.n) || fflush(stdout) != 0 ? -1 : 0;
}

/* Process a piece; `head`: the first one of a call, which names the stream. */
static int take(struct printed *p, struct tracelake_fetch *fetch, struct tl_bytes text, bool head)
{
    const uint8_t *const end = head ? memchr(text.p, '\n', text.n) : NULL;
    uint64_t first, count;
    if (end && text.n > 9 && memcmp(text.p, "# stream ", 9) == 0) {
        const struct tl_bytes heading = {text.p, (size_t)(end + 1 - text.p)};
        text.n -= heading.n;
        text.p += heading.n;
        if (!p->begun && put(p, heading) < 0)
            return -1;
    }
    tracelake_fetch_extent(fetch, &first, &count);
    const struct tl_bytes fresh = tl_parts_take(&p->parts, first, text);
    p->begun = true;
    p->went_on |= fresh.n > 0;
    return put(p, fresh);
}

/* The text gives the mode only where it changes: ask for the mode at its begin. */
static void ask_mode(struct printed *p, struct tracelake *lake, const struct tl_remote_name *name,
                     const struct tracelake_fetch *fetch)
{
    char mode[TL_REMOTE_MODE];
    uint64_t first, count;
    tracelake_fetch_extent(fetch, &first, &count);
    if (count == 0)
        return;
    p->asks_mode = false;
    if (tl_remote_mode(lake, name, first, mode))
        tl_annotate_mode(p->annotate, mode);
}

/*
 * One call, to the end of the trace or of the connection. AGAIN: writing to standard output failed.
 */
static int follow_once(const struct options *o, struct tracelake *lake,
                       const struct tl_remote_name *name, struct printed *p,
                       struct tracelake_error *error)
{
    struct tracelake_fetch *fetch;
    const enum tracelake_format format = o->json                            ? TRACELAKE_JSON
                                         : tl_annotate_remote(&o->annotate) ? TRACELAKE_NAMED
                                                                            : TRACELAKE_TEXT;
    p->went_on = false;
    int result = tracelake_follow_filtered(&fetch, lake, name->trace, name->stream, p->parts.part,
                                           &o->filter, format, error);
    if (result < 0)
        return result;
    bool head = true;
    const void *data;
    size_t n;
    tl_parts_again(&p->parts);
    while ((result = tracelake_fetch_next(fetch, &data, &n, error)) == TRACELAKE_OK) {
        if (p->asks_mode)
            ask_mode(p, lake, name, fetch);
        if (take(p, fetch, (struct tl_bytes){data, n}, head) < 0) {
            result = TRACELAKE_AGAIN;
            break;
        }
        head = false;
    }
    tracelake_fetch_close(fetch);
    return result;
}

static int follow(const struct options *o, struct tracelake *lake,
                  const struct tl_remote_name *name, uint64_t from)
{
    const struct tl_annotate_options *const annotate = &o->annotate.options;
    struct printed p = {.parts.part = from, .json = o->json, .asks_mode = annotate->disasm};
    struct tracelake_error error;
    char where[256];
    unsigned tries = 0;
    bool unknown;
    int result = TRACELAKE_EOF;
    snprintf(where, sizeof where, "%s/%s", name->trace, name->stream);
    if ((o->lines && tl_lines_new(&p.lines, NULL, stdout) < 0) ||
        ((annotate->disasm || annotate->image) &&
         tl_annotate_new(&p.annotate, annotate, stdout) < 0))
        return tl_cli_warn(NULL, "out of memory"), TL_CLI_BAD;
    do {
        if (tries > 0 && p.json && p.begun)
            break; /* a truncated document cannot be continued */
        result = follow_once(o, lake, name, &p, &error);
        if (p.went_on)
            tries = 0;
        /* A server that takes over the trace knows its streams once it has decoded some of them. */
        unknown = result == TRACELAKE_NOTFOUND && tries > 0;
    } while (tl_remote_again(unknown ? TRACELAKE_UNREACHABLE : result, &tries,
                             unknown ? UNKNOWN_TRIES : TL_REMOTE_TRIES));
    tl_lines_free(p.lines);
    tl_annotate_free(p.annotate);
    if (result == TRACELAKE_AGAIN) {
        tl_cli_warn(NULL, "standard output: %s", strerror(errno));
        return TL_CLI_BAD;
    }
    /* Ending by the user and by the end of the trace are both successful. */
    return result == TRACELAKE_EOF || result == TRACELAKE_CANCELLED
               ? TL_CLI_DONE
               : tl_remote_fail_query(where, &error);
}

int tl_cmd_tail(int argc, char **argv)
{
    struct options o = {.from = UINT64_MAX};
    const struct tl_option args[] = {
        {"from", 0, TL_ARG_COUNT, &o.from, "N",
         "start at instruction N (default: at the current end)"},
        TL_ANNOTATE_REMOTE_ARGS(o.annotate),
        TL_NAMES_ARG(o.remote),
        {"lines", 0, TL_ARG_FLAG, &o.lines, NULL,
         "output of programs by software trace, line by line: TIME SOURCE CHANNEL TEXT"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "JSON documents instead of flow text"},
        TL_FILTER_ARGS(o.filter),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    struct tracelake *lake = NULL;
    uint64_t at = 0;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("tail", "give one TRACE/STREAM");
    if (status == TL_ARGS_GO && o.json && o.lines)
        status = tl_cli_usage("tail", "say one of --json, --lines");
    if (status == TL_ARGS_GO &&
        (o.annotate.options.disasm || o.annotate.symbols.n || o.annotate.names) &&
        (o.json || o.lines))
        status = tl_cli_usage("tail", "--disasm, --functions and --symbols go with flow text");
    if (status == TL_ARGS_GO)
        status = tl_remote_name("tail", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = tl_annotate_open(&o.annotate, "tail");
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &o.remote);
    if (status == TL_ARGS_GO) {
        tl_remote_on_signal(lake);
        status = wait_for_stream(lake, &name, &at);
        if (status == TL_ARGS_GO)
            status = follow(&o, lake, &name, o.from == UINT64_MAX ? at : o.from);
        tl_remote_on_default();
    }
    tracelake_close(lake);
    tl_annotate_close(&o.annotate);
    return status;
}
