/* SPDX-License-Identifier: MIT */
/*
 * `tracelake get`: copies a range of a stream to a file or prints it. The server delivers STF, text
 * and columns; all other formats are made here of these, piece by piece.
 */
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/csvof.h"
#include "cli/filter.h"
#include "cli/tracksof.h"
#include "cli/where.h"
#include "out/annotate.h"
#include "out/export.h"
#include "out/lines.h"
#include "out/ndjson.h"
#include "out/outfile.h"
#include "terminal/progress.h"
#include "terminal/remote.h"
#include "terminal/span.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    struct tl_remote remote;
    struct tl_arg_range insn, byte;
    struct tl_time_range time;
    const char *out;
    bool text, json, lines, ndjson;
    struct tl_annotate_args annotate;
    enum tracelake_format format;
    enum tracelake_unit unit;
    struct tl_arg_range range;
    const char *region;    /* a name given by 'simpoints --save' */
    struct tl_where where; /* places that delimit the range */
    struct tracelake_filter filter;
    bool all;         /* of all streams, one after the other */
    const char *form; /* another format than STF or text: out/export.h */
    enum tl_export export;
    /* … made of the server's tables: tracks, or rows */
    bool drawn, csv;
    enum tl_tracks_form tracks;
    const char *table; /* csv */
    uint64_t interval;
};

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Formats that have an option of their own can also be selected with --format. */
static void take_form(struct options *o)
{
    bool *const own = !o->form                        ? NULL
                      : strcmp(o->form, "text") == 0  ? &o->text
                      : strcmp(o->form, "lines") == 0 ? &o->lines
                      : strcmp(o->form, "json") == 0  ? &o->json
                                                      : NULL;
    o->ndjson = o->form && strcmp(o->form, "ndjson") == 0;
    if (own)
        *own = true;
    if (o->ndjson)
        o->json = true;
    if (own || o->ndjson)
        o->form = NULL;
}

/* No library of Debian writes these files, but Python's pyarrow does. */
static int say_elsewhere(const char *form)
{
    const bool parquet = strcmp(form, "parquet") == 0;
    return tl_cli_usage(
        "get",
        "--format %s: Python writes it, with pyarrow: python3 -c \"import tracelake, "
        "pyarrow.%s as f; f.write_%s(tracelake.connect('URL').to_arrow('TRACE', "
        "'STREAM'), 'FILE')\"; without it there is --format csv",
        form, parquet ? "parquet" : "feather", parquet ? "table" : "feather");
}

static int check_arguments(struct options *o)
{
    take_form(o);
    if (o->form && (strcmp(o->form, "parquet") == 0 || strcmp(o->form, "arrow") == 0))
        return say_elsewhere(o->form);
    o->csv = o->form && strcmp(o->form, "csv") == 0;
    o->drawn = o->csv || (o->form && tl_tracks_parse(o->form, &o->tracks) >= 0);
    if (o->table && !(o->csv && tl_csv_knows(o->table)))
        return tl_cli_usage(
            "get", "--table %s: with --format csv, it is insn, call, event, gap or log", o->table);
    if (o->form && !o->drawn && tl_export_parse(o->form, &o->export) < 0)
        return tl_cli_usage("get",
                            "--format %s: it is text, lines, json, ndjson, csv, perfetto, "
                            "chrome, calls, champsim, bb, pc or disasm",
                            o->form);
    if (o->drawn && (o->byte.given || o->region))
        return tl_cli_usage("get", "--format %s goes with --insn and --time", o->form);
    if ((o->annotate.options.disasm || o->annotate.symbols.n || o->annotate.names) && !o->text &&
        !(o->form && !o->drawn && o->export == TL_EXPORT_DISASM))
        return tl_cli_usage("get", "--disasm, --functions and --symbols go with --text");
    if (o->interval == 0 || o->interval > UINT32_MAX)
        return tl_cli_usage("get", "--interval is 1 to %u instructions", UINT32_MAX);
    if (o->form ? o->text || o->json || o->lines
                : o->text + o->json + o->lines + (o->out != NULL) != 1)
        return tl_cli_usage("get", "say one of -o FILE, --text, --lines, --json, --format FORM");
    if (tracelake_filters(&o->filter) && (o->drawn || o->region))
        return tl_cli_usage("get", "--mode, --process and --thread do not go with %s%s",
                            o->region ? "--region" : "--format ", o->region ? "" : o->form);
    if (o->region && (o->insn.given || o->time.given || o->byte.given || tl_where_given(&o->where)))
        return tl_cli_usage("get", "--region is a range of its own");
    if (o->insn.given + o->time.given + o->byte.given > 1)
        return tl_cli_usage("get", "say one of --insn, --time, --byte");
    o->format = o->text && tl_annotate_remote(&o->annotate) ? TRACELAKE_NAMED
                : o->text || o->lines                       ? TRACELAKE_TEXT
                : o->json                                   ? TRACELAKE_JSON
                                                            : TRACELAKE_STF;
    /* A listing has the server's names, and is made of its text, unless there are symbols here. */
    o->annotate.options.listing =
        o->form && !o->drawn && o->export == TL_EXPORT_DISASM && !o->annotate.symbols.n;
    if (o->form)
        o->format = o->annotate.options.listing ? TRACELAKE_NAMED : TRACELAKE_STF;
    else if (o->out && ends_with(o->out, ".zstf"))
        o->format = TRACELAKE_ZSTF;
    else if (o->out && !ends_with(o->out, ".stf") && strcmp(o->out, "-") != 0)
        return tl_cli_usage("get", "-o %s: its name must end in .zstf or .stf", o->out);
    o->range = (struct tl_arg_range){0, UINT64_MAX, false};
    if (o->insn.given)
        o->range = o->insn;
    else if (o->time.given)
        o->range = (struct tl_arg_range){o->time.from, o->time.to, true};
    else if (o->byte.given)
        o->range = o->byte;
    if (o->range.given && o->range.from == o->range.to)
        return tl_cli_empty_range("get", o->range.from);
    o->unit = o->byte.given    ? TRACELAKE_BYTE
              : !o->time.given ? TRACELAKE_INSN
              : o->time.ns     ? TRACELAKE_NS
                               : TRACELAKE_TIME;
    return TL_ARGS_GO;
}

/* Destination of the pieces. */
struct sink {
    FILE *file;
    /* Conversion; all NULL: none. */
    struct tl_exporter *exporter;
    struct tl_lines *lines;
    struct tl_annotate *annotate;
    struct tl_ndjson *ndjson;
    bool text, disasm;
    struct tracelake *lake;
    const struct tl_remote_name *name;
};

static int put_made(const struct sink *sink, struct tl_bytes piece)
{
    if (sink->lines)
        return tl_lines_push(sink->lines, piece);
    if (sink->annotate)
        return tl_annotate_push(sink->annotate, piece);
    if (sink->ndjson)
        return tl_ndjson_push(sink->ndjson, piece);
    return tl_write_all(sink->file, piece.p, piece.n) ? TL_OK : TL_IO;
}

static int put(const struct sink *sink, const char *where, const void *p, size_t n)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    if (sink->exporter) {
        const struct tl_bytes bytes = {p, n};
        return tl_exporter_push(sink->exporter, bytes, &fail) < 0 ? tl_cli_fail(where, &fail)
                                                                  : TL_CLI_DONE;
    }
    const int r = put_made(sink, (struct tl_bytes){p, n});
    if (r >= 0)
        return TL_CLI_DONE;
    tl_cli_warn(where, "cannot write: %s", r == TL_NOMEM ? "out of memory" : strerror(errno));
    return TL_CLI_BAD;
}

/* The text gives the mode only where it changes: ask for the mode at its begin. */
static void ask_mode(const struct sink *sink, const struct tracelake_fetch *fetch)
{
    char mode[TL_REMOTE_MODE];
    uint64_t first, count;
    tracelake_fetch_extent(fetch, &first, &count);
    if (count > 0 && tl_remote_mode(sink->lake, sink->name, first, mode))
        tl_annotate_mode(sink->annotate, mode);
}

/* Copy the pieces. */
static int copy(struct tracelake_fetch *fetch, const char *where, const struct sink *sink)
{
    FILE *const file = sink->file;
    const bool text = sink->text;
    static const char head[] = "# stream ";
    struct tracelake_error error;
    uint64_t total = 0;
    for (;;) {
        const void *p;
        size_t n;
        const int result = tracelake_fetch_next(fetch, &p, &n, &error);
        const bool begins = total == 0 && text;
        if (begins &&
            (result < 0 || n < sizeof head - 1 || memcmp(p, head, sizeof head - 1) != 0) &&
            (result >= 0 || result == TRACELAKE_EOF))
            fprintf(file, "%s%s\n", head, sink->name->stream);
        if (result == TRACELAKE_EOF)
            return TL_CLI_DONE;
        if (result < 0) {
            const int status = tl_remote_fail_query(where, &error);
            if (total && file == stdout)
                tl_cli_warn(where, "the first %" PRIu64 " bytes of the result are kept", total);
            return status;
        }
        if (total == 0 && sink->disasm)
            ask_mode(sink, fetch);
        const int status = put(sink, where, p, n);
        if (status != TL_CLI_DONE)
            return status;
        total += n;
        tl_progress_step(total, 0, NULL);
    }
}

/* Returned instead of an exit status: the range is after the stream's end. */
enum { NOTHING = -2 };

/* Is there no trace, as opposed to trace without instructions? */
static bool is_behind(const struct options *o, struct tracelake *lake,
                      const struct tl_remote_name *name)
{
    struct tracelake_trace *trace;
    struct tracelake_error error;
    bool after = o->unit == TRACELAKE_INSN;
    if (after || tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
        return after;
    if (o->unit == TRACELAKE_BYTE)
        after = o->range.from >= trace->raw_bytes;
    for (size_t i = 0; i < trace->n_streams && o->time.given; i++)
        if (strcmp(trace->streams[i].name, name->stream) == 0)
            after = !trace->streams[i].has_time || o->range.from > trace->streams[i].time_last;
    tracelake_trace_free(trace);
    return after;
}

/* Report a range that is only partly available; NOTHING: none of it is. */
static int say_extent(const struct options *o, struct tracelake *lake,
                      const struct tl_remote_name *name, const struct tracelake_fetch *fetch,
                      const char *where)
{
    uint64_t first, count;
    char to[24] = ""; /* the end, if there is one */
    tracelake_fetch_extent(fetch, &first, &count);
    if (!o->range.given)
        return TL_CLI_DONE;
    if (o->range.to != UINT64_MAX)
        snprintf(to, sizeof to, "%" PRIu64, o->range.to);
    if (count == 0 && o->unit != TRACELAKE_INSN)
        tl_cli_warn(where,
                    "no instruction has its trace in %s %" PRIu64 ":%s; %" PRIu64
                    " instructions precede it",
                    o->unit == TRACELAKE_BYTE ? "bytes" : "time", o->range.from, to, first);
    else if (count == 0)
        tl_cli_warn(where,
                    "nothing is there from %" PRIu64 " on; the stream ends at instruction "
                    "%" PRIu64,
                    o->range.from, first);
    else if (o->unit == TRACELAKE_INSN && o->range.to != UINT64_MAX && first + count < o->range.to)
        tl_cli_warn(where, "the stream ends at instruction %" PRIu64, first + count);
    return count == 0 && is_behind(o, lake, name) ? NOTHING : TL_CLI_DONE;
}

static int sink_init(struct sink *sink, const struct options *o)
{
    const struct tl_annotate_options *const annotate = &o->annotate.options;
    const struct tl_export_options export = {.format = o->export,
                                             .interval = o->interval,
                                             .image = annotate->image,
                                             .sources = annotate->sources};
    if (o->form && !annotate->listing)
        return tl_exporter_new(&sink->exporter, &export, sink->file);
    if (o->lines)
        return tl_lines_new(&sink->lines, NULL, sink->file);
    return annotate->disasm || annotate->listing || annotate->image
               ? tl_annotate_new(&sink->annotate, annotate, sink->file)
               : TL_OK;
}

static int copy_all(const struct options *o, struct tracelake *lake, struct tracelake_fetch *fetch,
                    const char *where, const struct tl_remote_name *name, FILE *file)
{
    struct tl_ndjson ndjson = {.file = file, .stream = name->stream};
    struct sink sink = {.file = file,
                        .ndjson = o->ndjson ? &ndjson : NULL,
                        .text = o->text,
                        .lake = lake,
                        .name = name};
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    const int r = sink_init(&sink, o);
    if (r < 0) {
        tl_fail_set(&fail, (enum tl_err)r, "%s", tl_err_name(r));
        return tl_cli_fail(where, &fail);
    }
    sink.disasm = sink.annotate && (o->annotate.options.disasm || o->annotate.options.listing);
    int status = copy(fetch, where, &sink);
    tl_lines_free(sink.lines);
    tl_annotate_free(sink.annotate);
    tl_linewise_fini(&ndjson.lines);
    if (status == TL_CLI_DONE && sink.exporter && tl_exporter_finish(sink.exporter, &fail) < 0)
        status = tl_cli_fail(where, &fail);
    tl_exporter_free(sink.exporter);
    return status;
}

/* Returns the exit status, or NOTHING. */
static int get_stream(const struct options *o, struct tracelake *lake,
                      const struct tl_remote_name *name, FILE *file)
{
    char where[256];
    struct tracelake_fetch *fetch;
    struct tracelake_error error;
    struct tracelake_range range = {name->trace, name->stream, o->unit, o->range.from, o->range.to};
    snprintf(where, sizeof where, "%s/%s", name->trace, name->stream);
    if (tl_where_given(&o->where)) {
        const int found = tl_where_find(&o->where, lake, &range);
        if (found != TL_ARGS_GO)
            return found;
    }
    const int opened =
        o->region ? tracelake_fetch_region(&fetch, lake, name->trace, o->region, o->format, &error)
                  : tracelake_fetch_filtered(&fetch, lake, &range, &o->filter, o->format, &error);
    if (opened < 0)
        return tl_remote_fail_query(where, &error);
    int status = copy_all(o, lake, fetch, where, name, file);
    if (status == TL_CLI_DONE)
        status = say_extent(o, lake, name, fetch, where);
    if (status == TL_CLI_DONE && tracelake_filters(&o->filter) && tracelake_fetch_kept(fetch) == 0)
        status = o->all ? NOTHING : tl_filter_nothing(where, &o->filter);
    tracelake_fetch_close(fetch);
    return status;
}

static int get_all(struct options *o, struct tracelake *lake, struct tl_remote_name *name)
{
    struct tracelake_trace *trace;
    struct tracelake_error error;
    if (tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
        return tl_remote_fail_query(name->trace, &error);
    int status = TL_CLI_DONE;
    size_t without = 0; /* streams that end before the range, or have nothing that fits */
    o->all = true;
    for (size_t i = 0; i < trace->n_streams && status == TL_CLI_DONE; i++) {
        snprintf(name->stream, sizeof name->stream, "%s", trace->streams[i].name);
        status = get_stream(o, lake, name, stdout);
        without += status == NOTHING;
        if (status == NOTHING)
            status = TL_CLI_DONE;
    }
    if (status == TL_CLI_DONE && without > 0 && without == trace->n_streams)
        status =
            tracelake_filters(&o->filter) ? tl_filter_nothing(name->trace, &o->filter) : TL_CLI_BAD;
    tracelake_trace_free(trace);
    return status;
}

static int get_file(const struct options *o, struct tracelake *lake, struct tl_remote_name *name)
{
    int status = o->region ? TL_ARGS_GO : tl_remote_one_stream(lake, name);
    if (status != TL_ARGS_GO)
        return status;
    struct tl_outfile out;
    status = tl_outfile_open(&out, o->out);
    if (status != TL_ARGS_GO)
        return status;
    tl_progress_begin(o->out, "B");
    status = get_stream(o, lake, name, out.file);
    tl_progress_end();
    return tl_outfile_close(&out, status == NOTHING ? TL_CLI_BAD : status);
}

/* The instructions that are drawn. */
static int drawn_range(const void *context, struct tracelake *lake,
                       const struct tl_remote_name *name, uint64_t *from, uint64_t *to)
{
    const struct options *const o = context;
    const struct tl_span span = {.insn = o->insn, .time = o->time};
    int status = tl_span_insns(&span, lake, name, from, to);
    if (status != TL_ARGS_GO || !tl_where_given(&o->where))
        return status;
    struct tracelake_range range = {name->trace, name->stream, TRACELAKE_INSN, *from, *to};
    status = tl_where_find(&o->where, lake, &range);
    *from = range.from;
    *to = range.to;
    return status;
}

static int draw(const struct options *o, struct tracelake *lake, const struct tl_remote_name *name)
{
    struct tl_outfile out;
    int status = tl_outfile_open(&out, o->out);
    if (status != TL_ARGS_GO)
        return status;
    status = o->csv ? tl_csv_of(lake, name, o->table ? o->table : "insn", drawn_range, o, out.file)
                    : tl_tracks_of(lake, name, o->tracks, drawn_range, o, out.file);
    return tl_outfile_close(&out, status);
}

static int get(struct options *o, struct tracelake *lake, struct tl_remote_name *name)
{
    if (o->drawn)
        return draw(o, lake, name);
    if (o->out)
        return get_file(o, lake, name);
    /* The other simulators' formats cannot distinguish streams. */
    int status = o->form && !o->region ? tl_remote_one_stream(lake, name) : TL_ARGS_GO;
    if (status != TL_ARGS_GO)
        return status;
    if (!name->stream[0] && !o->region)
        return get_all(o, lake, name);
    status = get_stream(o, lake, name, stdout);
    return status == NOTHING ? TL_CLI_BAD : status;
}

int tl_cmd_get(int argc, char **argv)
{
    struct options o = {.interval = 10000000, .where = {.occurrence = 1}};
    const struct tl_option args[] = {
        {"insn", 0, TL_ARG_RANGE, &o.insn, "A:B",
         "instructions A to B-1 (A: to the end, :B from the start)"},
        {"time", 0, TL_ARG_TIMES, &o.time, "A:B",
         "the same by time: 1.5ms:2ms, 59.7ms:+200us (us, ns, s), or without units in the stream's "
         "(ns, or ticks where the clock is not known)"},
        {"byte", 0, TL_ARG_BYTES, &o.byte, "A:B", "the same by raw byte offset"},
        TL_OUTPUT_ARGS(o.out, "FILE",
                       "write STF, compressed if the name ends in .zstf; - is stdout"),
        {"format", 0, TL_ARG_TEXT, &o.form,
         "text|lines|json|ndjson|csv|perfetto|chrome|calls|champsim|bb|pc|disasm",
         "text: flow text; lines: output of programs by software trace, TIME SOURCE CHANNEL TEXT; "
         "json: a document for each stream; ndjson: an object per line; csv: rows of a table; "
         "perfetto, chrome: calls, "
         "messages and values for these viewers; calls: a line for each call, indented; champsim: "
         "64 bytes per "
         "instruction; bb: basic-block vectors; pc: one address per line; disasm: number, address, "
         "encoding, assembly, function"},
        {"table", 0, TL_ARG_TEXT, &o.table, "insn|call|event|gap|log",
         "with --format csv: of what (default: instructions)"},
        {"interval", 0, TL_ARG_COUNT, &o.interval, "N",
         "with --format bb: instructions of a vector"},
        {"text", 0, TL_ARG_FLAG, &o.text, NULL, "the same as --format text"},
        {"lines", 0, TL_ARG_FLAG, &o.lines, NULL, "the same as --format lines"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "the same as --format json"},
        TL_ANNOTATE_REMOTE_ARGS(o.annotate),
        TL_NAMES_ARG(o.remote),
        {.help = "a range by its contents, within --insn:"},
        TL_WHERE_ARGS(o.where),
        TL_FILTER_ARGS(o.filter),
        {"region", 0, TL_ARG_TEXT, &o.region, "NAME", "a region named by 'simpoints --save'"},
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("get", "give one TRACE/STREAM");
    if (status == TL_ARGS_GO)
        status = tl_remote_name("get", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = check_arguments(&o);
    struct tracelake *lake = NULL;
    if (status == TL_ARGS_GO)
        status = tl_annotate_open(&o.annotate, "get");
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &o.remote);
    if (status == TL_ARGS_GO)
        status = get(&o, lake, &name);
    tracelake_close(lake);
    tl_annotate_close(&o.annotate);
    return status;
}
