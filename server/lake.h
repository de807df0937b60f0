/* SPDX-License-Identifier: MIT */
/*
 * The lake: everything the server keeps and can do, behind one interface that knows no network.
 * RPC and HTTP handlers call this; nothing else reaches the store.
 *
 * Thread-safe throughout ("internally locked"). Calls may block on disk: call them from a
 * worker thread, never from an event loop, except where a comment says otherwise.
 * Verifying, ranges, look-ups, statistics and tiles end with TL_CANCELLED soon after the calling
 * thread's work is not wanted any more (base/cancel.h).
 */
#ifndef TL_LAKE_H
#define TL_LAKE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "lake_ingest.h"
#include "lake_rows.h"
#include "setup/setup.h"

struct tl_lake;

struct tl_lake_options {
    const char *dir;           /* data folder, made if absent; unless … */
    const char *store;         /* … URL of another store: rados/rados.h; NULL: none */
    uint64_t shard_insns;      /* instructions per shard, 0: 2^20 */
    uint64_t min_free_bytes;   /* refuse ingest below this much free disk, 0: 256 MiB */
    unsigned decode_threads;   /* 0: one per processor */
    uint64_t checkpoint_bytes; /* raw bytes between two checkpoints, 0: 64 MiB */
    uint64_t segment_bytes;    /* of raw bytes in an object, 0: 64 MiB */
    /*
     * New traces get the label shards=virtual: of what is decoded while a trace has it index, tiles
     * and statistics are stored alone, its instructions made from the raw bytes when they are read.
     */
    bool virtual_shards;
    /* Raw bytes, at least, between two places to make such shards from, 0: 4 KiB. */
    uint64_t mark_bytes;
    size_t summary_buckets; /* that a stream keeps in memory for its tiles, 0: 32768, 10 MiB */
    bool rebuild_catalog;   /* set the catalog aside and make a new one out of the stored objects */
};

/*
 * For the whole process, before it has threads: malloc() keeps two heaps, not eight a processor. A
 * lake's threads hand buffers on to each other, and what is free in one heap is none in the others:
 * it would grow for hours. And they keep what a few shards take: giving that back at the end of
 * each shard, and asking for it again, takes a fiftieth of the time that storing does.
 */
void tl_lake_share_heaps(void);

TL_MUST_USE int tl_lake_open(struct tl_lake **out, const struct tl_lake_options *options,
                             struct tl_fail *fail);
/* Another `min_free_bytes` (0: the default) from now on. Any thread. */
void tl_lake_set_min_free(struct tl_lake *lake, uint64_t bytes);
/* Stop decoding at a safe point, flush, free. Ingest sessions must be closed before. */
void tl_lake_close(struct tl_lake *lake);

/* ---- catalog ---------------------------------------------------------------------------- */

/*
 * How a stream's times relate to the server's clock, as far as what arrived when tells:
 * unix_ns(t) = unix_ns + (t - at) * rate. That is later than it was by the shortest time that trace
 * took from the source to the server, which nobody knows. Of a capture that was pushed while it was
 * made; one of a known clock that was not has no relation, of another one it tells how it was sent.
 */
struct tl_stream_clock {
    uint64_t pairs;   /* of time and arrival that it rests upon; 0: there is none */
    uint64_t at;      /* a time in the middle of the trace, in its unit */
    uint64_t unix_ns; /* when that was */
    double rate; /* ns of the server's clock for one of the trace's unit: near 1 if that is ns */
    double rate_error;  /* it lies within ± this */
    uint64_t spread_ns; /* by how much later 95 of 100 arrived */
};

struct tl_stream_row {
    char name[32];
    char protocol[16];
    char core[40];         /* that the setup names, "" if none … */
    char device[40];       /* … and what the board's description calls its source */
    uint64_t insns;        /* decoded so far (live edge included) */
    uint64_t sealed_insns; /* of which in sealed shards */
    uint64_t shards;
    uint64_t time_first; /* ns since the trace's epoch, or ticks: see time_unit_ns */
    uint64_t time_last;
    uint64_t events; /* exceptions, hardware events, software trace */
    uint64_t gaps;
    uint64_t lost_bytes;
    uint64_t stored_bytes; /* of its shards */
    bool has_time;
    bool time_unit_ns; /* else ticks of the source's clock */
    struct tl_stream_clock clock;
};

#define TL_CONTENT_BYTES 72 /* "sha256:<64 hex>" and its NUL */

/* Whoever reads may name a trace by its `content`, too. */
struct tl_trace_row {
    char id[64]; /* [A-Za-z0-9._-]+, unique */
    char rig[64];
    uint8_t state; /* enum tl_trace_state */
    char format[64];
    int64_t created_ns; /* Unix time */
    int64_t updated_ns;
    uint64_t raw_bytes;             /* durable */
    uint64_t decoded_bytes;         /* of which decoded */
    uint64_t generation;            /* changes when it is decoded anew (`gen` of tile URLs) */
    uint64_t revision;              /* grows with every visible change */
    char message[256];              /* last trouble, "" if none */
    bool raw_removed;               /* by retention: it cannot be decoded anew */
    bool decoded_removed;           /* by retention: decoding anew brings it back */
    char content[TL_CONTENT_BYTES]; /* hash of the raw bytes, soon after the capture is complete */
    char *labels;                   /* "key=value\n"…, owned */
    uint64_t notes;                 /* grows with every change of its notes; 0: there are none */
    struct tl_stream_row *streams;
    size_t n_streams;
};

struct tl_trace_list {
    struct tl_trace_row *rows;
    size_t n;
    uint64_t revision; /* of the catalog as a whole */
};

/* Can it take and give bytes: is the store there? TL_IO, with the reason. */
TL_MUST_USE int tl_lake_usable(struct tl_lake *lake, struct tl_fail *fail);
/*
 * All of them, newest first; it may take long. Free with tl_trace_list_free(), also after an error.
 */
TL_MUST_USE int tl_lake_traces(struct tl_lake *lake, struct tl_trace_list *out);
/* Append up to `most` of them behind a place (NULL: from the newest on). Returns 1: there may be
 * more, even where there were fewer; TL_OK: that was all. While the store does not answer: all that
 * are in memory. `revision` is not set. */
TL_MUST_USE int tl_lake_page(struct tl_lake *lake, const struct tl_trace_place *behind, size_t most,
                             struct tl_trace_list *list);
/* The place of a row: what comes behind it is the next page. */
struct tl_trace_place tl_trace_place_of(const struct tl_trace_row *row);
/* Those that are in memory, in no order: all that are live or being decoded here, and others. */
TL_MUST_USE int tl_lake_at_hand(struct tl_lake *lake, struct tl_trace_list *out);
/* Grows with every visible change of a trace. */
uint64_t tl_lake_revision(struct tl_lake *lake);
/* One row in a list of one. TL_NOTFOUND; TL_UNREACHABLE, TL_AGAIN: the store does not tell now. */
TL_MUST_USE int tl_lake_trace(struct tl_lake *lake, const char *trace, struct tl_trace_list *out);
/* Is there a trace of this very name, and is it served in this generation? Takes no longer than a
 * look at the table. */
bool tl_lake_serves(struct tl_lake *lake, const char *trace, uint64_t generation);
void tl_trace_list_free(struct tl_trace_list *list);

#define TL_LABELS_MOST       1100   /* labels of a trace: 1000 regions and others … */
#define TL_LABELS_BYTES      131072 /* … and the bytes of their keys and values together */
#define TL_LABEL_KEY_BYTES   128
#define TL_LABEL_VALUE_BYTES 4096

/*
 * Merge "key=value\n"… into the labels; an empty value removes the key, and may do so whatever
 * the key. TL_NOTFOUND; TL_USAGE, and nothing is changed: beyond the limits above, or control
 * characters.
 */
TL_MUST_USE int tl_lake_set_labels(struct tl_lake *lake, const char *trace, const char *labels,
                                   struct tl_fail *fail);
#define TL_NOTES_MOST 1000 /* of a trace */

/* Notes by id; free `*notes` with free(). TL_NOTFOUND. */
TL_MUST_USE int tl_lake_notes(struct tl_lake *lake, const char *trace, struct tl_note **notes,
                              size_t *n, struct tl_fail *fail);
/*
 * Write a note: id 0 is a new one, which gets its id; another replaces what has its id. Stream, at,
 * to and text count, the rest is filled in. What is no UTF-8 in the text becomes '?'. TL_NOTFOUND:
 * no such trace, stream or note; TL_USAGE: control characters, to < at; TL_LIMIT: too many.
 */
TL_MUST_USE int tl_lake_put_note(struct tl_lake *lake, const char *trace, struct tl_note *note,
                                 struct tl_fail *fail);
TL_MUST_USE int tl_lake_remove_note(struct tl_lake *lake, const char *trace, uint64_t id,
                                    struct tl_fail *fail);

/* Remove a trace and free its space, at once unless it is being read: then when the last reader
 * closes. TL_NOTFOUND, TL_DENIED while a rig is pushing it. */
TL_MUST_USE int tl_lake_delete(struct tl_lake *lake, const char *trace, struct tl_fail *fail);
/* The same of `n` at once, which takes one commit for all. What is wrong with one is told to
 * `refused`, with errors as above. Returns how many were removed. */
size_t tl_lake_delete_all(struct tl_lake *lake, const char *const *traces, size_t n,
                          void (*refused)(void *context, size_t i, int code,
                                          const struct tl_fail *fail),
                          void *context);
/* Decode the raw bytes again (new image, new setup text, or NULL to keep it). The old shards
 * serve until the new ones replace them in one step. TL_NOTFOUND; TL_DENIED where the raw bytes
 * were removed. */
TL_MUST_USE int tl_lake_redecode(struct tl_lake *lake, const char *trace, const char *setup,
                                 struct tl_fail *fail);
/* The same with the setup before the present one. TL_USAGE: there was none. */
TL_MUST_USE int tl_lake_redecode_back(struct tl_lake *lake, const char *trace,
                                      struct tl_fail *fail);
/*
 * Check every stored byte of a trace ("": of all traces, and the catalog): raw bytes, shards with
 * their indexes and tiles, images, and what the catalog says of them. Appends a line per finding
 * ("object: offset 0x…: what"); returns the number of findings. `repair` rebuilds what follows from
 * something intact, and says for everything else what is lost. TL_NOTFOUND.
 */
TL_MUST_USE int tl_lake_verify(struct tl_lake *lake, const char *trace, bool repair,
                               struct tl_buf *report, struct tl_fail *fail);

/* ---- retention --------------------------------------------------------------------------- */

/*
 * Rules have a scope: "" (all traces), "label KEY=VALUE" or "trace ID"; the most special one counts
 * for a trace. Age is measured since the trace last changed; a size is that of all traces of the
 * rule together, of which the oldest go first. Captures that are not complete, traces that are
 * being decoded, and those with a label "keep" (unless keep=no) are left alone. A trace of which
 * neither raw nor decoded data is left is removed.
 */
struct tl_retention_row {
    char scope[160];
    struct tl_retention rule;
};
/* Set a rule, or (NULL) remove it. TL_USAGE: no such scope. */
TL_MUST_USE int tl_lake_set_retention(struct tl_lake *lake, const char *scope,
                                      const struct tl_retention *rule, struct tl_fail *fail);
/* All rules; free `*rows` with free(). */
TL_MUST_USE int tl_lake_retention(struct tl_lake *lake, struct tl_retention_row **rows, size_t *n);
/*
 * Stored shards of traces at rest that have not changed for so long become virtual ones (0: none
 * do): the trace gets the label shards=virtual and is decoded anew. Not those with a label `keep`,
 * nor without raw bytes. Any thread.
 */
void tl_lake_set_retain_stf(struct tl_lake *lake, uint64_t seconds);
/* Carry the rules out as of `now_ns` (Unix time), which otherwise happens once a minute. Returns
 * how many removals there were. */
TL_MUST_USE int tl_lake_retain(struct tl_lake *lake, int64_t now_ns, struct tl_fail *fail);

/*
 * Be told that something changed: `notify(context)` is called from any thread, must not block
 * and must not call back into the lake. Used to wake live followers. Returns a handle for
 * tl_lake_unwatch(), after which notify is not called any more.
 */
TL_MUST_USE int tl_lake_watch(struct tl_lake *lake, void (*notify)(void *context), void *context);
void tl_lake_unwatch(struct tl_lake *lake, int handle);

/* ---- the rig's bytes -------------------------------------------------------------------- */

/* A range of a trace's raw bytes, read in order. Not thread-safe; the trace may grow meanwhile. */
struct tl_raw_range;

/*
 * Open [from, to) of what is durable now; a larger `to` ends there. TL_NOTFOUND; TL_USAGE: `from`
 * lies behind it; TL_DENIED: retention has removed the bytes; TL_NOMEM.
 */
TL_MUST_USE int tl_raw_open(struct tl_lake *lake, const char *trace, uint64_t from, uint64_t to,
                            struct tl_raw_range **out, struct tl_fail *fail);
/*
 * Append the next piece, at most 1 MiB, to `out`; `*offset` is that of its first byte. TL_EOF
 * behind the last; TL_IO, with the offset, where bytes are damaged or missing; TL_NOMEM.
 */
TL_MUST_USE int tl_raw_next(struct tl_raw_range *range, uint64_t *offset, struct tl_buf *out,
                            struct tl_fail *fail);
void tl_raw_close(struct tl_raw_range *range); /* NULL is fine */

/* What the rig said of its trace, INI text with a NUL behind it, into `text`. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_setup(struct tl_lake *lake, const char *trace, struct tl_buf *text,
                              struct tl_fail *fail);

/* ---- images ----------------------------------------------------------------------------- */

struct tl_image_row {
    char hash[72]; /* "sha256:<64 hex>" */
    char name[128];
    char build_id[64]; /* of ELF, hex, "" if none */
    uint64_t size;
};

/* Is content with this hash stored? */
bool tl_lake_has_image(struct tl_lake *lake, const char *hash);
/*
 * Store content; `row` gets its hash. Storing it again is fine. Content whose name begins with
 * TL_SOURCE_PREFIX is a source file: behind that come the first TL_SOURCE_IMAGE digits of the hash
 * of the image that was built of it and a colon, or nothing if it is for all, then the path or the
 * end of it. The same with the whole path is the content's first line. TL_NOSPACE, TL_IO.
 */
#define TL_SOURCE_PREFIX "source:"
#define TL_SOURCE_IMAGE  12
TL_MUST_USE int tl_lake_put_image(struct tl_lake *lake, const char *name, struct tl_bytes content,
                                  struct tl_image_row *row, struct tl_fail *fail);
/* The content of an image named by its hash or as "build-id:<hex>", into `out`, and what it is.
 * TL_BAD: it is damaged; TL_NOTFOUND. */
TL_MUST_USE int tl_lake_get_image(struct tl_lake *lake, const char *name, struct tl_image_row *row,
                                  struct tl_buf *out, struct tl_fail *fail);
/* Free `*rows` with free(). */
TL_MUST_USE int tl_lake_images(struct tl_lake *lake, struct tl_image_row **rows, size_t *n);

/* What the setup of a trace says of its images and contexts, and which of them are there. */
struct tl_trace_images {
    struct tl_setup setup;
    bool *there; /* [setup.n_images] */
};
/* Free with tl_trace_images_fini(), also after an error. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_trace_images(struct tl_lake *lake, const char *trace,
                                     struct tl_trace_images *out, struct tl_fail *fail);
void tl_trace_images_fini(struct tl_trace_images *images);

struct tl_lake_binding {
    const char *hash;
    uint64_t address, offset;        /* as in struct tl_setup_image */
    uint64_t length;                 /* 0: to the end */
    const char *space;               /* NULL, "": any */
    struct tl_image_context context; /* where it is there in one process or machine only */
    struct tl_image_span span;       /* when it is there */
};

/* Add an image to a trace's setup and decode it again. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_bind_image(struct tl_lake *lake, const char *trace,
                                   const struct tl_lake_binding *binding, struct tl_fail *fail);

/* ---- ranges ----------------------------------------------------------------------------- */

enum tl_range_unit { TL_UNIT_INSN, TL_UNIT_TIME, TL_UNIT_BYTE };
enum tl_range_format {
    TL_FORMAT_ZSTF,
    TL_FORMAT_STF,
    TL_FORMAT_TEXT,
    TL_FORMAT_LINES /* lines of flow text with their positions: tl_range_lines() */
};

struct tl_range_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit unit;
    uint64_t from; /* first, in units */
    uint64_t to;   /* behind the last; UINT64_MAX: to the end */
    enum tl_range_format format;
};

struct tl_range;

/* Errors: TL_NOTFOUND (trace or stream), TL_USAGE (from > to; time asked of a stream without). */
TL_MUST_USE int tl_range_open(struct tl_lake *lake, const struct tl_range_request *request,
                              struct tl_range **out, struct tl_fail *fail);
/* First instruction and count that the range covers as resolved at open. */
void tl_range_extent(const struct tl_range *range, uint64_t *first, uint64_t *count);
/* Append the next piece (some 64 KiB to 1 MiB) to `out`. TL_EOF behind the last. The pieces,
 * one behind another, are one complete file of the format. */
TL_MUST_USE int tl_range_next(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail);
/* Of a range of TL_FORMAT_LINES: a line of flow text without its end, and the position it is told
 * at. A result < 0 ends tl_range_lines(), which returns it. */
typedef int tl_line_sink(void *context, uint64_t at, struct tl_bytes line);
/* Pass the lines of the next item to `sink`. TL_EOF behind the last. */
TL_MUST_USE int tl_range_lines(struct tl_range *range, tl_line_sink *sink, void *context,
                               struct tl_fail *fail);
void tl_range_close(struct tl_range *range);

/* A position in all units. */
struct tl_position {
    uint64_t insn;
    uint64_t time;
    /* Of tl_lake_locate(): it was no sooner than the last timestamp before it, and no later than
     * the next one, UINT64_MAX if there is none. `time` lies between them, by count of
     * instructions. */
    uint64_t time_from, time_to;
    uint64_t byte;
    bool has_time;
};
TL_MUST_USE int tl_lake_locate(struct tl_lake *lake, const char *trace, const char *stream,
                               enum tl_range_unit unit, uint64_t at, struct tl_position *out,
                               struct tl_fail *fail);

enum tl_find_kind {
    TL_FIND_PC,       /* executions of addresses [pc_from, pc_to) */
    TL_FIND_SYMBOL,   /* where the flow enters the function of this name */
    TL_FIND_EVENT,    /* exception, gap, event, software …, or one reason of gaps: overflow … */
    TL_FIND_CALL,     /* calls of the function of this name, else of all whose names contain it,
                         whatever the letters' case, or fit it if it has * or ? */
    TL_FIND_MNEMONIC, /* instructions with this mnemonic (* and ? as above), or, if the text has a
                         space, whose assembly text contains it */
    TL_FIND_OPCODE, /* … whose encoding, as in flow text, is this: hex digits, x for any digit */
    TL_FIND_TEXT    /* any of these, as docs/http.md says of `q` */
};
struct tl_find_request {
    const char *trace;
    const char *stream; /* NULL, "": all of the trace, in one order */
    enum tl_find_kind kind;
    uint64_t pc_from, pc_to; /* PC: [from, to) */
    const char *text;        /* of the other kinds */
    uint64_t from, to;       /* instruction range to search; of one stream alone */
    const char *near; /* only hits behind instruction `at` of this stream; with `backward` those
                         in front of it. NULL: all */
    uint64_t at;
    uint64_t skip;  /* > 0: those at `at`, too, but for so many that come first in this direction */
    bool backward;  /* the last ones instead of the first ones */
    bool count;     /* count them all, too: `near` does not matter to that */
    uint64_t limit; /* at most so many hits, 0: 100; those at one position stay together as long as
                       there are not more than TL_FIND_TOGETHER above it */
};
#define TL_FIND_TOGETHER 256

struct tl_hit {
    struct tl_position at;
    uint64_t pc;
    char stream[32];
    char text[96]; /* what it is, e.g. "exception irq 14" */
    /* Which of those at its position it is, from 1, in the direction of the search: `skip` of the
     * request that goes on behind it, with its stream and position as `near` and `at`. */
    uint64_t nth;
};
struct tl_found {
    struct tl_hit *hits; /* in order; with `backward` the nearest first */
    size_t n;
    bool more;       /* the limit cut the list; of several streams: or may have */
    uint64_t total;  /* of all, where they were counted, … */
    uint64_t before; /* … and of those in front of hits[0] */
    enum tl_find_kind kind;
    char what[128]; /* what was looked for: "calls of main" */
};
/*
 * Hits in order. Of all streams: by time, those of streams without times behind them, stream by
 * stream. Free with tl_found_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_find(struct tl_lake *lake, const struct tl_find_request *request,
                             struct tl_found *out, struct tl_fail *fail);
void tl_found_fini(struct tl_found *found);

/* ---- what a range consists of ------------------------------------------------------------- */

struct tl_gen;

enum tl_stats_group { TL_STATS_MIX, TL_STATS_MODE, TL_STATS_ITEM, TL_STATS_GAP, TL_STATS_RECORD };

struct tl_stats_count {
    enum tl_stats_group group;
    char name[32]; /* "conditional branch", "el1.ns.a64", "exception", "overflow", "INST_REG" */
    uint64_t n;
};

struct tl_stats_function {
    const char *name; /* NULL: instructions that belong to no symbol */
    uint64_t pc;
    uint64_t insns, calls;
};

/*
 * Trace that is missing for one reason: in how many stretches between two timestamps, how long they
 * are together, and the longest. What is missing lies within them. In units of the stream's time.
 */
struct tl_stats_lost {
    char name[32]; /* "overflow" */
    uint64_t n, total, longest;
};
#define TL_STATS_REASONS 8

struct tl_stats {
    uint64_t from, to; /* the range, as far as it is there */
    uint64_t insns, taken;
    uint64_t reads, writes;              /* memory accesses that the trace tells of */
    struct tl_stats_function *functions; /* at most 1000, those with most instructions first */
    size_t n_functions;
    size_t n_run;                  /* how many functions there are */
    struct tl_stats_count *counts; /* group by group, those that are not 0 */
    size_t n_counts, cap_counts;
    struct tl_stats_lost lost[TL_STATS_REASONS];
    size_t n_lost;      /* reasons that cost time */
    struct tl_gen *gen; /* has the names */
};
/* Exact statistics of a range, or of all streams, wholly (`stream` NULL). Free with
 * tl_stats_fini(), also after an error. */
TL_MUST_USE int tl_lake_stats(struct tl_lake *lake, const char *trace, const char *stream,
                              uint64_t from, uint64_t to, struct tl_stats *out,
                              struct tl_fail *fail);
void tl_stats_fini(struct tl_stats *stats);

/* A function whose body stands where it was called, and where that is. */
struct tl_insn_inlined {
    const char *function, *file;
    uint32_t line;
};

/* A row of the disassembly list. Texts are "" where they are not known, and last for the call. */
struct tl_insn_row {
    uint64_t insn, pc;
    uint64_t time; /* if has_time */
    bool has_time;
    const char *function; /* "main+0x10" */
    const char *mode;     /* as in flow text */
    const char *encoding; /* as in flow text */
    const char *text;     /* the instruction, or what is at the position */
    const char *events;   /* what is in front of it: lines of flow text, each with its end */
    /* Of debug information: */
    const char *file;                      /* of the source */
    uint32_t line, column;                 /* from 1; 0: not told */
    const struct tl_insn_inlined *inlined; /* outermost first */
    size_t n_inlined;
    const char *image; /* hash of the image whose debug information it is */
    const char *lacks; /* what is not told of the source, and why */
};
typedef int tl_insn_sink(void *context, const struct tl_insn_row *row);
/* Pass rows of `count` (<= 4096) instructions from `from` on to `sink`; its result < 0 ends it and
 * is returned. */
TL_MUST_USE int tl_lake_insns(struct tl_lake *lake, const char *trace, const char *stream,
                              uint64_t from, uint32_t count, tl_insn_sink *sink, void *context,
                              struct tl_fail *fail);

/* Where an instruction comes from. */
struct tl_source_file {
    char *file;    /* as debug information names it; "" if that tells nothing */
    uint32_t line; /* from 1, 0: of no line */
    bool has_text;
    struct tl_buf text; /* of all of the file, any bytes */
    char why[256];      /* why there is no text, or no file; "" */
};
/*
 * The source of an instruction. `frame` 0: of the instruction itself, 1: where the innermost
 * function that is inlined there was called, 2: the one around it … TL_NOTFOUND: no such trace,
 * stream, instruction or frame. Free with tl_source_file_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_source(struct tl_lake *lake, const char *trace, const char *stream,
                               uint64_t insn, uint32_t frame, struct tl_source_file *out,
                               struct tl_fail *fail);
void tl_source_file_fini(struct tl_source_file *source);

struct tl_soft_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit unit;
    uint64_t from, to; /* that entries begin in */
    uint32_t limit;    /* entries at most; 0: 200, no more than 10000 */
    bool last;         /* the last ones of the range instead of the first ones */
};
/* A line that a program printed, or a record of something else than characters. */
struct tl_soft_entry {
    uint64_t at, last; /* positions of its first and last record */
    uint64_t time;     /* of the first, if has_time */
    bool has_time;
    bool is_text; /* else `text` is the payload, "0x12ab" */
    bool has_channel;
    uint64_t channel; /* port of an ITM, ID of an OSD STM; of an STM the master << 32 | channel */
    uint32_t records;
    uint32_t size;   /* bytes of the payload, unless is_text */
    char source[16]; /* as in flow text: "itm", "stm", "osd-stm", "uart" … */
    char *text;      /* UTF-8, without the line's end */
};
struct tl_soft_log {
    struct tl_soft_entry *entries; /* in order */
    size_t n;
    bool more; /* there were more of them in the range */
};
/*
 * What software trace says in a range: characters make lines, by source and channel. Only chunks
 * with software trace are read. Free with tl_soft_log_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_log(struct tl_lake *lake, const struct tl_soft_request *request,
                            struct tl_soft_log *out, struct tl_fail *fail);
void tl_soft_log_fini(struct tl_soft_log *log);

/* What lanes show beside tiles, of a range in columns. */
struct tl_lane_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit axis; /* insn or time, of the range and the answer */
    uint64_t from, to;
    uint32_t columns; /* of the picture, at most 2048; 0: 512 */
};

/* A process, virtual machine and mode while they are in force. */
struct tl_state_run {
    uint64_t from, to; /* on the axis */
    uint64_t context, vmid, mode;
    bool has_context, has_vmid, has_mode;
    char mode_text[32]; /* "el0.ns.a64"; "" if it is not known */
    char name[32];      /* what the setup calls the context, or else the VMID; "": nothing */
    bool
        mixed; /* others were in force, too, for less than a column each: this one is the longest */
};
struct tl_states {
    struct tl_state_run *runs; /* in order, without holes */
    size_t n;
    bool sampled; /* of a long range: as it was at some place of each column */
};
/* Which state is in force when. Ranges of up to 4 M instructions are looked at in full. TL_USAGE:
 * no such axis. Free with tl_states_fini(), also after an error. */
TL_MUST_USE int tl_lake_states(struct tl_lake *lake, const struct tl_lane_request *request,
                               struct tl_states *out, struct tl_fail *fail);
void tl_states_fini(struct tl_states *states);

/* A column of counters. */
struct tl_counter {
    uint64_t insns;
    uint64_t time;                /* that they took; 0: not known */
    uint64_t cycles, cycle_insns; /* counted cycles, and how many instructions they were for */
};
struct tl_counters {
    struct tl_counter *p; /* columns of the same width */
    size_t n;
    uint64_t from, to; /* what they are of, on the axis, as far as it is there */
    bool has_time, has_cycles;
    bool sampled; /* of a long range: cycles are of some parts of it */
};
/* How fast it ran. Errors as tl_lake_states(). Free with tl_counters_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_counters(struct tl_lake *lake, const struct tl_lane_request *request,
                                 struct tl_counters *out, struct tl_fail *fail);
void tl_counters_fini(struct tl_counters *counters);

struct tl_slices_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit axis; /* insn or time, of the range and the answer */
    uint64_t from, to;
    uint32_t columns; /* of the picture, at most 4096; 0: 1024 */
};
struct tl_stack_slice {
    uint64_t from, to; /* on the axis; `to` ends at the range's end */
    uint64_t pc;       /* where it begins */
    uint32_t depth;
    int32_t exception; /* number of the exception that it handles, -1: it is a function */
    bool exact;        /* else `to` is late, by no more than the resolution */
    const char *name;  /* of the function, "" if there is no symbol */
};
struct tl_slices {
    struct tl_stack_slice *p; /* by depth and begin */
    size_t n;
    uint64_t resolution; /* all slices with more instructions of the range are there */
    bool truncated;      /* shorter ones are left out */
    struct tl_gen *gen;  /* has the names */
};
/*
 * Call-stack slices that overlap a range, the widest 4096. A range's length does not matter to
 * what it costs: no more than some columns' call stacks and 128 chunks are read. Free with
 * tl_slices_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_slices(struct tl_lake *lake, const struct tl_slices_request *request,
                               struct tl_slices *out, struct tl_fail *fail);
void tl_slices_fini(struct tl_slices *slices);

/* The functions of a trace: tiles refer to them by their place here, + 1. */
struct tl_functions {
    struct tl_function {
        const char *name;
        uint64_t pc;
    } * p;
    size_t n;
    struct tl_gen *gen; /* has the names */
};
/* Free with tl_functions_fini(), also after an error. */
TL_MUST_USE int tl_lake_functions(struct tl_lake *lake, const char *trace, struct tl_functions *out,
                                  struct tl_fail *fail);
void tl_functions_fini(struct tl_functions *functions);

/* ---- tiles ------------------------------------------------------------------------------- */

#define TL_TILE_BUCKETS 512

/* Trace is missing in front of a position, between two times (both 0: not known). */
struct tl_tile_break {
    uint64_t position, from, to;
    uint8_t flags; /* as of a bucket; TL_FLAG_OFF alone: nothing was lost */
};

#define TL_TILE_BREAKS 64 /* at most, the first ones */

/* Columns of a stream's buckets; `tracelake.v1.Lane` says what they are. */
struct tl_tile_lane {
    uint32_t lane; /* index of the stream */
    uint64_t insns[TL_TILE_BUCKETS], page[TL_TILE_BUCKETS];
    uint32_t function[TL_TILE_BUCKETS], function2[TL_TILE_BUCKETS], event_mask[TL_TILE_BUCKETS],
        event_count[TL_TILE_BUCKETS];
    uint8_t coverage[TL_TILE_BUCKETS], share[TL_TILE_BUCKETS], share2[TL_TILE_BUCKETS],
        distinct[TL_TILE_BUCKETS], privilege[4 * TL_TILE_BUCKETS], branches[TL_TILE_BUCKETS],
        flags[TL_TILE_BUCKETS], depth_min[TL_TILE_BUCKETS], depth_max[TL_TILE_BUCKETS],
        lost[TL_TILE_BUCKETS];
    struct tl_tile_break breaks[TL_TILE_BREAKS];
    size_t n_breaks;
};

#define TL_TILE_LANES 64 /* at most */

struct tl_tile {
    enum tl_range_unit axis;
    unsigned level;
    uint64_t index;
    uint64_t bucket, first; /* width of a bucket, and where the first begins, on the axis */
    uint64_t generation;
    bool sealed;       /* will never change within this generation */
    uint64_t revision; /* for the ETag of an open tile */
    struct tl_tile_lane *lanes[TL_TILE_LANES];
    size_t n_lanes;
};

/*
 * A stripe: 512 buckets of lanes [lane_from, lane_to] at a level. A bucket is 2^base * 4^level
 * units wide, base as told by the trace's JSON. Free with tl_tile_fini(), also after an error.
 * TL_NOTFOUND: no such trace, or gen is not its generation; TL_USAGE: no such tile, or more than
 * TL_TILE_LANES.
 */
TL_MUST_USE int tl_lake_tile(struct tl_lake *lake, const char *trace, enum tl_range_unit axis,
                             unsigned level, uint64_t index, unsigned lane_from, unsigned lane_to,
                             uint64_t gen, struct tl_tile *out, struct tl_fail *fail);
void tl_tile_fini(struct tl_tile *tile);

/* ---- counters ----------------------------------------------------------------------------- */

/* Prometheus text of everything the lake counts. */
TL_MUST_USE int tl_lake_metrics(struct tl_lake *lake, struct tl_buf *out);

#include "lake_analysis.h"

#endif
