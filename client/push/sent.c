/* SPDX-License-Identifier: MIT */
/*
 * Waits for the decode of a sent capture and reports what came of it. A capture with a wrong setup
 * is stored as readily as any other, so what yields nothing is reported while the rig can still be
 * changed.
 */
#include "push/sent.h"

#include "decode/ops.h"
#include "flow/item.h"
#include "out/rows_out.h"
#include "terminal/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_trace(const struct tracelake_trace *trace)
{
    printf("%s: %" PRIu64 " bytes, %s\n", trace->id, trace->raw_bytes,
           tracelake_state_name(trace->state));
    for (size_t i = 0; i < trace->n_streams; i++) {
        const struct tracelake_stream *s = &trace->streams[i];
        printf("  %s/%s %s: %" PRIu64 " %s%s, %" PRIu64 " event%s, %" PRIu64 " gap%s\n", trace->id,
               s->name, s->protocol, s->insns, tl_counts_insns(s) ? "instruction" : "record",
               plural(s->insns), s->events, plural(s->events), s->gaps, plural(s->gaps));
    }
}

static bool has_stream(const struct tracelake_trace *trace, const char *name)
{
    for (size_t i = 0; i < trace->n_streams; i++)
        if (!strcmp(trace->streams[i].name, name))
            return true;
    return false;
}

/* Sources of formatter frames from which nothing came: a core that was off, or a wrong ID. */
static void print_silent(const struct tracelake_trace *trace, const struct tl_setup *setup)
{
    for (size_t i = 0; setup->container == TL_CONTAINER_TPIU && i < setup->n_sources; i++) {
        const struct tl_source *const s = &setup->sources[i];
        if (s->protocol != TL_PROTO_NONE && !has_stream(trace, s->name))
            printf("  %s/%s %s: no trace came%s%s\n", trace->id, s->name,
                   tl_format_of(s->protocol)->name, s->device[0] ? " from " : "", s->device);
    }
}

static bool decoded_nothing(const struct tracelake_trace *trace)
{
    for (size_t i = 0; i < trace->n_streams; i++)
        if (trace->streams[i].insns > 0 || trace->streams[i].events > 0)
            return false;
    return true;
}

static bool ends_in(const char *text, const char *tail)
{
    const size_t n = strlen(text), of = strlen(tail);
    return n > of && strcmp(text + n - of, tail) == 0;
}

/* Does a trace's message report nothing that is wrong with the capture? While it is being decoded,
 * that is not known yet; decoding may just wait for a disk. */
static bool is_note(const struct tracelake_trace *trace)
{
    const bool no_fault =
        ends_in(trace->message, TL_LOSS_TIME_RESTART) || ends_in(trace->message, TL_LOSS_CUT_OFF);
    return trace->state != TRACELAKE_FAILED && (no_fault || trace->state != TRACELAKE_SEALED);
}

int tl_sent_report(struct tracelake *lake, const char *trace, const char *input,
                   const struct tl_setup *setup, bool wait, enum tl_sent_form form)
{
    struct tracelake_trace *row;
    struct tracelake_error error;
    const int result = tl_remote_decoded(lake, trace, wait, &row, &error);
    if (result == TRACELAKE_CANCELLED)
        return TL_CLI_DONE; /* the bytes are stored; waiting was not requested */
    if (result == TRACELAKE_DENIED) {
        if (form == TL_SENT_JSON)
            tl_row_json_id(trace);
        else if (form == TL_SENT_TEXT)
            printf("%s: stored\n", trace);
        return TL_CLI_DONE; /* the token permits pushing but not reading */
    }
    if (result < 0)
        return tl_remote_fail(trace, &error);
    int status = TL_CLI_DONE;
    if (form == TL_SENT_JSON)
        tl_row_json(row);
    else if (form == TL_SENT_TEXT)
        print_trace(row);
    if (form == TL_SENT_TEXT && wait && row->n_streams > 0)
        print_silent(row, setup);
    if (row->state == TRACELAKE_FAILED || row->message[0]) {
        tl_cli_warn(input, "%s",
                    row->message[0] ? row->message : "it could not be decoded; the bytes are kept");
        status = is_note(row) ? TL_CLI_DONE : TL_CLI_BAD;
    } else if (wait && row->raw_bytes > 0 && decoded_nothing(row)) {
        tl_cli_warn(input,
                    "offset 0x0: nothing in %" PRIu64 " bytes could be decoded as %.80s; they are "
                    "stored: 'tracelake redecode --config FILE %s' decodes them otherwise",
                    row->raw_bytes, row->format, trace);
        status = row->n_streams == 0 ? TL_CLI_BAD : TL_CLI_DONE;
    }
    tracelake_trace_free(row);
    return status;
}
