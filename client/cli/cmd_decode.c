/* SPDX-License-Identifier: MIT */
/*
 * `tracelake decode`: decodes a capture to flow text, packet listing or STF files, without a
 * server.
 */
#include "base/crew.h"
#include "base/processors.h"
#include "base/spelling.h"
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/faults.h"
#include "decode/ops.h"
#include "osd/osdsw.h"
#include "out/codetext.h"
#include "out/decode_out.h"
#include "out/interleave.h"
#include "out/itemjson.h"
#include "out/pt_like.h"
#include "out/sources.h"
#include "push/captures.h"
#include "stf/close.h"
#include "terminal/args.h"
#include "terminal/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = TL_DECODE_PUSH, MAX_THREADS = 4 };

struct options {
    const char *format;
    const char *config;
    const char *snapshot;
    const char *buffer;
    const char *like;
    const char *cpu;
    const char *out_dir;
    const char *input;
    struct tl_arg_list images, streams, symbols;
    struct tl_buf *there; /* names of the streams of all captures, each with its NUL */
    struct tl_code_places places;
    char **rest; /* [n_rest] options of the tool named by --like */
    int n_rest;
    bool text, disasm, source, mangled;
    bool packets, raw_bytes;
    bool json;
    uint64_t chunk;   /* bytes per push: must not affect results; varied by tests */
    uint64_t threads; /* decoding threads */
};

/* Result of a decode, for the exit status. */
struct run {
    const char *name;     /* of the input, for messages */
    struct tl_buf *there; /* as in struct options */
    struct tl_decode_out *out;
    struct tl_interleave *interleave; /* packet listing with flow text or bytes; NULL: none */
    const struct tl_decode_out_place *place;
    uint64_t items;    /* items of execution or software trace, over all streams */
    unsigned restarts; /* of timestamps */
    uint64_t cut;      /* bytes of packets, of all streams, within which the capture ends */
    uint64_t cut_at;   /* offset of the first one */
    struct tl_faults faults;
};

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct run *const r = context;
    const int rc = tl_buf_add(r->there, stream->name, strlen(stream->name) + 1);
    return rc < 0 ? rc : tl_decode_out_stream(r->out, stream);
}

static uint64_t count(const struct tl_item *items, size_t n)
{
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += items[i].kind != TL_ITEM_GAP;
    return found;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct run *const r = context;
    r->items += count(items, n);
    if (!r->interleave)
        return tl_decode_out_items(r->out, stream, items, n);
    return tl_decode_out_wants(r->place, stream->name)
               ? tl_interleave_items(r->interleave, stream, items, n)
               : TL_OK;
}

static int count_items(void *context, const struct tl_decode_stream *stream,
                       const struct tl_item *items, size_t n)
{
    struct run *const r = context;
    r->items += count(items, n);
    return TL_OK;
}

#define COUNT sizeof(uint64_t)

/* Number of items with content, followed by their text. */
static int on_digest(void *context, const struct tl_decode_stream *stream, struct tl_buf *out,
                     const struct tl_item *items, size_t n)
{
    static const uint8_t none[COUNT];
    const struct run *const r = context;
    if (out->n == 0 && tl_buf_add(out, none, sizeof none) < 0)
        return TL_NOMEM;
    tl_put_le64(out->p, tl_le64(out->p) + count(items, n));
    return tl_decode_out_form(r->place, out, items, n);
}

static int on_digested(void *context, const struct tl_decode_stream *stream, struct tl_bytes digest)
{
    struct run *const r = context;
    r->items += tl_le64(digest.p);
    return tl_decode_out_text(r->out, stream,
                              (struct tl_bytes){digest.p + COUNT, digest.n - COUNT});
}

static int print_json(const char *buffer, const struct tl_decode_stream *stream, const char *line)
{
    struct tl_buf out = {0};
    int rc = tl_itemjson_packet(buffer, stream ? stream->name : NULL, line, &out);
    if (rc == TL_OK && !tl_write_all(stdout, out.p, out.n))
        rc = TL_IO;
    tl_buf_fini(&out);
    return rc;
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    struct run *const r = context;
    r->items++;
    /* The container itself (frames, datagrams) has no stream. */
    if (stream ? !tl_decode_out_wants(r->place, stream->name) : r->place->n_streams > 0)
        return TL_OK;
    if (r->interleave)
        return tl_interleave_packet(r->interleave, stream, line);
    if (r->place->json)
        return print_json(r->place->buffer, stream, line);
    return puts(line) < 0 ? TL_IO : TL_OK;
}

static int on_bytes(void *context, const struct tl_decode_stream *stream, const struct tl_run *run)
{
    struct run *const r = context;
    return !stream || tl_decode_out_wants(r->place, stream->name)
               ? tl_interleave_bytes(r->interleave, stream, run)
               : TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct run *const r = context;
    if (strcmp(loss->reason, TL_LOSS_TIME_RESTART) == 0 && loss->stream) {
        if (r->restarts++ > 0)
            return TL_OK;
        tl_cli_warn(r->name, "offset 0x%llx: %s: %s", (unsigned long long)loss->offset,
                    loss->stream->name, loss->reason);
        return TL_OK;
    }
    if (strcmp(loss->reason, TL_LOSS_CUT_OFF) == 0) {
        r->cut_at = r->cut && r->cut_at < loss->offset ? r->cut_at : loss->offset;
        r->cut += loss->bytes;
        return TL_OK;
    }
    if (!loss->fault && loss->stream)
        return TL_OK; /* the text contains it in place */
    if (!loss->fault) {
        if (strcmp(loss->reason, TL_LOSS_NO_ID))
            tl_cli_warn(r->name, "%s: %llu bytes not decoded", loss->reason,
                        (unsigned long long)loss->bytes);
        return TL_OK;
    }
    tl_faults_add(&r->faults, loss);
    return TL_OK;
}

/* Destination of a file's bytes: a decoder, or the log of another tool. */
typedef int push_bytes(void *to, const uint8_t *p, size_t n);

static int push_decode(void *to, const uint8_t *p, size_t n)
{
    const int rc = tl_decode_push(to, p, n);
    return rc < 0 ? rc : tl_decode_flush(to);
}

/* Read until there are `n` bytes, the end, or an error. */
static ssize_t read_full(struct tl_bundle_input *in, uint8_t *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t got = tl_bundle_next(in, p + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int push_capture(push_bytes *push, void *to, const struct tl_bundle_capture *capture,
                        size_t chunk, bool show, uint64_t *total, struct tl_fail *fail)
{
    struct tl_bundle_input in;
    if (tl_bundle_open(&in, capture) < 0)
        return tl_fail_set(fail, TL_IO, "%s", strerror(errno));
    const uint64_t all = tl_cli_capture_bytes(capture);
    uint8_t *const bytes = malloc(CHUNK);
    if (show)
        tl_progress_begin(tl_bundle_path(&in), "B");
    int rc = bytes ? TL_OK : tl_fail_set(fail, TL_NOMEM, "out of memory");
    while (rc == TL_OK) {
        const ssize_t got = read_full(&in, bytes, CHUNK);
        if (got < 0)
            rc = tl_fail_at(fail, TL_IO, *total, "cannot read: %s", strerror(errno));
        if (got <= 0)
            break;
        for (size_t at = 0; rc == TL_OK && at < (size_t)got; at += chunk) {
            const size_t n = (size_t)got - at < chunk ? (size_t)got - at : chunk;
            rc = push(to, bytes + at, n);
        }
        if (rc < 0)
            tl_fail_at(fail, (enum tl_err)rc, *total, "%s", tl_err_name(rc));
        *total += (uint64_t)got;
        tl_progress_step(*total, all, NULL);
    }
    tl_progress_end();
    free(bytes);
    tl_bundle_close(&in);
    return rc;
}

/* One per usable processor, as long as that is worthwhile. */
static unsigned default_threads(void)
{
    const unsigned n = tl_processors();
    return n < MAX_THREADS ? n : MAX_THREADS;
}

/*
 * Source lines from the files of --symbols, otherwise from the images that are complete ELF files.
 */
static int open_sources(const struct options *o, const struct tl_setup *setup,
                        struct tl_sources **out, struct tl_fail *fail)
{
    int r = o->source ? tl_sources_new(out, o->symbols.v, o->symbols.n, fail) : TL_OK;
    for (size_t i = 0; o->source && !o->symbols.n && i < setup->n_images && r >= 0; i++) {
        const struct tl_setup_image *const image = &setup->images[i];
        if (image->offset == 0 && image->length == UINT64_MAX)
            r = tl_sources_add(*out, image->file, image->address, fail);
        if (r == TL_BAD) /* a memory dump */
            r = TL_OK;
    }
    return r;
}

/* What messages name: the file; of a buffer in several files the snapshot, since offsets count
 * through all of them. */
static const char *name_of(const struct tl_bundle_capture *capture, const struct options *o)
{
    if (o->input || (o->snapshot && capture->n_pieces == 1))
        return capture->pieces[0].path;
    return o->snapshot ? o->snapshot : o->config;
}

/* `alone`: it is the only one. */
static int decode_capture(const struct tl_bundle_capture *capture, bool alone,
                          const struct options *o)
{
    const bool digests = o->text && !o->packets && !o->json;
    struct tl_decode_out_place place = {.dir = o->out_dir,
                                        .buffer = alone ? NULL : capture->name,
                                        .input = o->input,
                                        .streams = o->streams.v,
                                        .n_streams = o->streams.n,
                                        .json = o->json};
    const struct tl_setup *const setup = &capture->setup;
    const char *const path = name_of(capture, o);
    struct tl_fail fail = {0};
    struct run run = {.name = path, .place = &place, .there = o->there};
    if (setup->container == TL_CONTAINER_STF && o->packets && (o->text || o->raw_bytes))
        return tl_cli_usage("decode", "STF has records: use --packets or --text without "
                                      "--raw-bytes");
    if (setup->container == TL_CONTAINER_STF && o->packets && o->json)
        return tl_cli_usage("decode", "'dump --json' prints STF records as JSON");
    struct tl_image *image = NULL, *symbols = NULL;
    struct tl_decode *decode = NULL;
    const char *where = path;
    uint64_t total = 0;
    struct tl_crew *crew = NULL;
    int rc = tl_crew_new(&crew, (unsigned)o->threads);
    if (rc == TL_OK)
        rc = tl_image_new(&image);
    if (rc == TL_OK) {
        where = NULL;
        rc = tl_setup_load_images(setup, image, NULL, NULL, &fail);
    }
    if (rc == TL_OK)
        rc = tl_image_freeze(image);
    if (rc == TL_OK)
        rc = tl_codetext_symbols(o->symbols.v, o->symbols.n, &symbols, &fail);
    /* Symbols of separate files take precedence; without any, those of the images are used. */
    place.disasm = symbols ? symbols : o->disasm || o->source ? image : NULL;
    place.coded = setup->container != TL_CONTAINER_STF; /* its blocks have their records */
    if (!place.disasm)
        place.first = o->streams.n == 1                         ? o->streams.v[0]
                      : setup->container == TL_CONTAINER_SINGLE ? ""
                      : capture->first[0]                       ? capture->first
                                                                : NULL;
    if (rc == TL_OK)
        rc = open_sources(o, setup, &place.sources, &fail);
    if (rc == TL_OK)
        rc = tl_decode_out_new(&run.out,
                               o->text && !o->packets ? TL_OUT_TEXT
                               : o->out_dir           ? TL_OUT_STF
                                                      : TL_OUT_NONE,
                               &place, crew, &fail);
    if (rc == TL_OK && o->packets && (o->text || o->raw_bytes))
        rc = tl_interleave_new(&run.interleave);
    const struct tl_decode_sink sink = {
        .context = &run,
        .stream = on_stream,
        .items = o->packets && !o->text ? count_items : on_items,
        .packet = o->packets ? on_packet : NULL,
        .bytes = o->raw_bytes ? on_bytes : NULL,
        .loss = on_loss,
        .digest = digests ? on_digest : NULL,
        .digested = digests ? on_digested : NULL,
    };
    if (rc == TL_OK)
        rc = tl_decode_new(&decode, setup, image, &sink, &fail);
    if (rc == TL_OK && !o->packets && (digests || o->out_dir)) {
        tl_decode_allow_paths(decode);
        tl_decode_set_code(decode, o->out_dir ? tl_stf_block_code : tl_item_text_insn);
    }
    if (rc == TL_OK)
        rc = tl_decode_set_crew(decode, crew);
    if (rc == TL_OK) {
        where = path;
        rc = push_capture(push_decode, decode, capture, o->chunk,
                          o->out_dir || !isatty(STDOUT_FILENO), &total, &fail);
    }
    if (rc == TL_OK)
        rc = tl_decode_finish(decode);
    if (run.interleave && rc == TL_OK && (rc = tl_interleave_print(run.interleave)) < 0) {
        where = NULL;
        tl_fail_set(&fail, (enum tl_err)rc, "cannot write: %s", strerror(errno));
    }
    if (run.out) {
        struct tl_fail written = {.offset = TL_NO_OFFSET};
        if (tl_decode_out_finish(run.out, &written) < 0) {
            where = NULL;
            fail = written;
            rc = written.code;
        }
    }
    if (rc < 0 && ferror(stdout)) { /* packets are printed there immediately */
        where = NULL;
        tl_fail_set(&fail, TL_IO, "standard output: cannot write all of it");
    }
    if (run.cut > 0)
        tl_cli_warn(run.name, "offset 0x%llx: %s, %llu byte%s not decoded",
                    (unsigned long long)run.cut_at, TL_LOSS_CUT_OFF, (unsigned long long)run.cut,
                    run.cut > 1 ? "s" : "");
    tl_faults_show(&run.faults, run.name);
    int status = rc < 0 ? tl_cli_fail(where, &fail) : TL_CLI_DONE;
    if (run.restarts > 1)
        tl_cli_warn(path, "%s %u times in all", TL_LOSS_TIME_RESTART, run.restarts);
    if (rc == TL_OK && run.faults.n) {
        tl_cli_warn(path, "%u fault%s in the input, %llu bytes not decoded; %s", run.faults.n,
                    run.faults.n > 1 ? "s" : "", (unsigned long long)run.faults.lost,
                    run.items ? "everything else is decoded" : "nothing was decoded");
        status = TL_CLI_BAD;
    } else if (rc == TL_OK && !run.items) {
        tl_cli_warn(path,
                    total
                        ? "offset 0x0: nothing in %llu bytes could be decoded; is --format right, "
                          "does --config name the sources, does the trace synchronise?"
                        : "the file is empty (%llu bytes)",
                    (unsigned long long)total);
        status = TL_CLI_BAD;
    }
    tl_decode_free(decode);
    tl_decode_out_free(run.out);
    tl_interleave_free(run.interleave);
    tl_crew_free(crew);
    tl_image_free(image);
    tl_image_free(symbols);
    tl_sources_free(place.sources);
    return status;
}

static int push_osdsw(void *to, const uint8_t *p, size_t n)
{
    struct tl_osdsw *const log = to;
    const int rc = tl_osdsw_push(log, p, n);
    if (rc < 0)
        return rc;
    const bool ok = tl_write_all(stdout, log->out.p, log->out.n);
    tl_buf_reset(&log->out);
    return ok ? TL_OK : TL_IO;
}

/* A DI capture in the format of osd-sw's loggers, Intel PT in that of libipt's tools. */
static int decode_like(const struct tl_bundle_capture *capture, const struct options *o)
{
    const struct tl_setup *const setup = &capture->setup;
    struct tl_osdsw log;
    struct tl_fail fail = {0};
    uint64_t total = 0;
    const int which = tl_osdsw_log_of(o->like);
    const bool is_pt = setup->n_sources && setup->sources[0].protocol == TL_PROTO_PT;
    if (tl_cli_is_pt_tool(o->like) && is_pt) {
        const struct tl_cli_pt_like like = {.tool = o->like,
                                            .input = o->input,
                                            .cpu = o->cpu,
                                            .setup = setup,
                                            .options = o->rest,
                                            .n_options = o->n_rest};
        return tl_cli_pt_like(&like);
    }
    if (which < 0 || setup->container != TL_CONTAINER_DI)
        return tl_cli_usage("decode",
                            "--like %s: there are osd-sw-ctm, osd-sw-stm and osd-sw-print for "
                            "--format di, ptdump and ptxed for --format pt",
                            o->like);
    int rc = tl_osdsw_init(&log, (enum tl_osdsw_log)which, setup);
    if (rc == TL_OK)
        rc = push_capture(push_osdsw, &log, capture, o->chunk, false, &total, &fail);
    if (rc == TL_OK)
        rc = tl_osdsw_finish(&log);
    if (rc == TL_OK && !tl_write_all(stdout, log.out.p, log.out.n))
        rc = tl_fail_set(&fail, TL_IO, "cannot write: %s", strerror(errno));
    tl_osdsw_fini(&log);
    return rc < 0 ? tl_cli_fail(o->input, &fail) : TL_CLI_DONE;
}

static int decode_one(void *context, struct tl_bundle_capture *capture, bool alone)
{
    const struct options *const o = context;
    if (o->like)
        return decode_like(capture, o);
    if (!o->buffer && !alone && !o->json && (o->text || o->packets)) {
        printf("# buffer %s\n", capture->name);
        fflush(stdout);
    }
    return decode_capture(capture, alone, o);
}

static bool is_there(const struct tl_buf *names, const char *stream)
{
    for (size_t at = 0; at < names->n;) {
        const char *const name = (const char *)names->p + at;
        if (!strcmp(name, stream))
            return true;
        at += strlen(name) + 1;
    }
    return false;
}

static void warn_of_stream(const struct options *o, const char *stream)
{
    struct tl_buf list = {0};
    for (size_t at = 0; at < o->there->n;) {
        const char *const name = (const char *)o->there->p + at;
        (void)!tl_buf_printf(&list, "%s%s", at ? ", " : "", name);
        at += strlen(name) + 1;
    }
    tl_cli_warn(o->snapshot ? o->snapshot
                : o->input  ? o->input
                            : o->config,
                "there is no stream '%s'; there are: %.*s", stream, (int)list.n,
                list.p ? (char *)list.p : "");
    tl_buf_fini(&list);
}

static int decode(const struct options *o)
{
    const struct tl_cli_captures what = {.command = "decode",
                                         .request = {.snapshot = o->snapshot,
                                                     .input = o->input,
                                                     .format = o->format,
                                                     .config = o->config,
                                                     .images = o->images.v,
                                                     .n_images = o->images.n,
                                                     .places = o->places},
                                         .buffer = o->buffer,
                                         .stop = TL_CLI_REFUSED};
    int status = tl_cli_captures(&what, decode_one, (void *)(uintptr_t)o);
    for (size_t i = 0; status <= TL_CLI_BAD && !o->like && i < o->streams.n; i++)
        if (!is_there(o->there, o->streams.v[i])) {
            warn_of_stream(o, o->streams.v[i]);
            status = TL_CLI_BAD;
        }
    return status;
}

/* TL_ARGS_GO, or the exit status. */
static int parse_options(int argc, char **argv, struct options *o)
{
    const struct tl_option args[] = {
        TL_CAPTURE_ARGS(o->format, o->config, o->images, o->places),
        {"snapshot", 0, TL_ARG_TEXT, &o->snapshot, "DIR",
         "decode each buffer of an Arm trace snapshot"},
        {"buffer", 0, TL_ARG_TEXT, &o->buffer, "NAME", "only this buffer of a snapshot"},
        {"stream", 0, TL_ARG_LIST, &o->streams, "NAME",
         "only this stream (cs.10, di.0.1, pt.0, …); may be given more than once"},
        {.help = "output:"},
        {"text", 0, TL_ARG_FLAG, &o->text, NULL,
         "flow text: executed instructions and events, one per line"},
        {"disasm", 0, TL_ARG_FLAG, &o->disasm, NULL,
         "… each instruction with its assembly text and function"},
        {"symbols", 0, TL_ARG_LIST, &o->symbols, "ELF[@BIAS]",
         "… functions by this file's symbols (default: by the images')"},
        {"source", 0, TL_ARG_FLAG, &o->source, NULL,
         "… and its source line, by the debug information of the same files"},
        {"mangled", 0, TL_ARG_FLAG, &o->mangled, NULL,
         "name C++ and Rust functions as in their files, not demangled"},
        {"packets", 0, TL_ARG_FLAG, &o->packets, NULL,
         "trace packets, one per line; with --text each is followed by its elements as '  STREAM "
         "ELEMENT', all streams in the order of the capture"},
        {"raw-bytes", 0, TL_ARG_FLAG, &o->raw_bytes, NULL,
         "packets: … each followed by its bytes, at most 32"},
        {"out", 0, TL_ARG_TEXT, &o->out_dir, "DIR",
         "a .zstf per stream, DIR/STREAM.zstf; for a snapshot with several buffers "
         "DIR/BUFFER.STREAM.zstf"},
        {"json", 0, TL_ARG_FLAG, &o->json, NULL,
         "elements, packets or the files of --out as JSON, one object per line"},
        {"like", 0, TL_ARG_TEXT, &o->like, "osd-sw-ctm|osd-sw-stm|osd-sw-print|ptdump|ptxed",
         "print like this tool; for ptdump and ptxed, OPTIONS are theirs"},
        {"cpu", 0, TL_ARG_TEXT, &o->cpu, "CPU",
         "the traced processor, FAMILY/MODEL[/STEPPING], with --like ptdump|ptxed"},
        {.help = "speed:"},
        {"threads", 0, TL_ARG_U64, &o->threads, "N",
         "decoding threads (default: one per processor, up to 4)"},
        {"chunk", 0, TL_ARG_SIZE, &o->chunk, "BYTES",
         "passed to the decoder at a time (default 4194304); does not change the output"},
        {0},
    };
    int first;
    const int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    tl_spelling_set_mangled(o->mangled);
    if (o->chunk == 0)
        return tl_cli_usage("decode", "--chunk 0: give a number of bytes");
    if (o->threads == 0 || o->threads > TL_CREW_MAX)
        return tl_cli_usage("decode", "--threads: give a number from 1 to %u", TL_CREW_MAX);
    o->input = first < argc ? argv[first++] : NULL;
    o->rest = argv + first;
    o->n_rest = argc - first;
    o->text = o->text || (o->json && !o->packets && !o->out_dir && !o->like);
    const bool pt_tool = o->like && tl_cli_is_pt_tool(o->like);
    if (first < argc && !pt_tool)
        return tl_cli_one_input("decode", argv[first]);
    if ((o->text || o->packets) + (o->out_dir != NULL) + (o->like != NULL) != 1)
        return tl_cli_usage("decode",
                            "say one of --text, --packets (or both), --out DIR, --like TOOL");
    if ((o->disasm || o->symbols.n || o->source) && (!o->text || o->packets))
        return tl_cli_usage("decode", "--disasm, --symbols and --source go with --text alone");
    if (o->json && (o->like || o->disasm || o->symbols.n || o->source || o->raw_bytes ||
                    (o->text && o->packets)))
        return tl_cli_usage("decode", "--json goes with --text, --packets or --out, and no more");
    if (o->raw_bytes && !o->packets)
        return tl_cli_usage("decode", "--raw-bytes goes with --packets");
    if (o->like && o->snapshot)
        return tl_cli_usage("decode", "--like goes with an INPUT");
    return tl_cli_captures_check("decode", o->snapshot, o->buffer, o->config, o->input);
}

int tl_cmd_decode(int argc, char **argv)
{
    struct tl_buf there = {0};
    struct options o = {.chunk = CHUNK, .threads = default_threads(), .there = &there};
    int status = parse_options(argc, argv, &o);
    if (status == TL_ARGS_GO)
        status = decode(&o);
    tl_buf_fini(&there);
    return status;
}
