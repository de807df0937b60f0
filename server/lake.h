/* SPDX-License-Identifier: MIT */
/*
 * The lake: everything the server stores and computes, behind one interface that is independent of
 * the network. RPC and HTTP handlers call this; nothing else accesses the store.
 *
 * Thread-safe throughout ("internally locked"). Calls may block on disk: call them from a worker
 * thread, never from an event loop, except where a comment says otherwise. Verifying, ranges,
 * look-ups, statistics and tiles return TL_CANCELLED soon after the calling thread's work was
 * cancelled (base/cancel.h).
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
    const char *dir;           /* data folder, created if absent; used if `store` is NULL */
    const char *store;         /* URL of another store: rados/rados.h; NULL: none */
    uint64_t shard_insns;      /* instructions per shard, 0: 2^20 */
    uint64_t min_free_bytes;   /* reject ingest if less disk space than this is free, 0: 256 MiB */
    unsigned decode_threads;   /* 0: one per processor */
    uint64_t decode_memory;    /* bytes that all decoding may use, half of it for one trace; 0: half
                                  of the memory that the process may use */
    uint64_t sql_memory;       /* bytes for large questions (lake_sql.h); 0: an eighth of that */
    uint64_t checkpoint_bytes; /* raw bytes between two checkpoints, 0: 64 MiB */
    uint64_t segment_bytes;    /* raw bytes per object, 0: 64 MiB */
    /*
     * New traces get the label shards=virtual: for data decoded while a trace has it, only index,
     * tiles and statistics are stored; instructions are regenerated from the raw bytes when they
     * are read.
     */
    bool virtual_shards;
    /* New traces get the label index=behind, or index=auto: raw bytes are followed first, and
     * indexed behind that (decoding/outline_job.h). */
    bool index_behind, index_auto;
    /* Raw bytes that the index must be behind for that, 0: 256 KiB, and if it is made behind only
     * where it lags, 0: 16 MiB. */
    uint64_t outline_bytes, lag_bytes;
    /* Minimum distance in raw bytes of the marks from which virtual shards are regenerated, 0: 4
     * KiB. */
    uint64_t mark_bytes;
    size_t summary_buckets; /* kept in memory per stream for its tiles; 0: 32768, 10 MiB */
    bool rebuild_catalog;   /* set the catalog aside and rebuild it from the stored objects */
};

/*
 * Tune malloc() for a lake; call once per process, before it creates threads. Limits glibc to two
 * arenas: a lake's threads pass buffers to each other, memory freed in one arena is not reused by
 * another, and with eight arenas per processor the heap would grow for hours. Also keeps the memory
 * of a few shards mapped: returning it at the end of each shard and requesting it again costs 2 %
 * of the time of storing.
 */
void tl_lake_share_heaps(void);
/* Have a crash of this process (SIGSEGV, SIGABRT and the like) noted in the store of the lake that
 * is opened next, before these signals do what they do otherwise: a trace that crashes the server
 * is not decoded again and again. For the program that serves; call once, before opening the lake.
 */
void tl_lake_watch_crashes(void);

TL_MUST_USE int tl_lake_open(struct tl_lake **out, const struct tl_lake_options *options,
                             struct tl_fail *fail);
/* Change `min_free_bytes` (0: the default) from now on. Any thread. */
void tl_lake_set_min_free(struct tl_lake *lake, uint64_t bytes);
/* Stop decoding at a safe point, flush, free. Ingest sessions must be closed first. */
void tl_lake_close(struct tl_lake *lake);

/* ---- catalog ---------------------------------------------------------------------------- */

/*
 * Relation of a stream's time to the server's clock, derived from the arrival of its bytes:
 * unix_ns(t) = unix_ns + (t - at) * rate. The result is later than the real time by the shortest
 * delay between the trace source and the server, which is unknown. Meaningful for a capture that
 * was pushed while it was recorded. A capture pushed later has no relation if its clock rate is
 * known, otherwise the relation only reflects how it was sent.
 */
struct tl_stream_clock {
    uint64_t pairs;   /* samples of (time, arrival) it is based on; 0: no relation */
    uint64_t at;      /* a time in the middle of the trace, in its unit */
    uint64_t unix_ns; /* the server's clock at that time */
    double rate; /* ns of the server's clock per unit of the trace's time: near 1 if that is ns */
    double rate_error;  /* error bound of `rate`, ± */
    uint64_t spread_ns; /* additional delay within which 95 % of the samples arrived */
};

struct tl_stream_row {
    char name[32];
    char protocol[16];
    char core[40];         /* as named by the setup, "" if it names none */
    char device[40];       /* name of the source in the board's description, "" if none */
    uint64_t insns;        /* decoded so far (including the live edge) */
    uint64_t sealed_insns; /* how many of them are in sealed shards */
    uint64_t shards;
    uint64_t time_first; /* ns since the trace's epoch, or ticks: see time_unit_ns */
    uint64_t time_last;
    uint64_t events; /* exceptions, hardware events, software trace */
    uint64_t gaps;
    uint64_t lost_bytes;
    uint64_t stored_bytes; /* size of its shards */
    bool has_time;
    bool time_unit_ns; /* false: ticks of the source's clock */
    /* What is decoded ahead of the index (label index=behind): the end of its positions, and its
     * last timestamp, in the unit of time_last. It can be found and read, but is not counted in
     * anything else. 0: nothing is. */
    uint64_t outlined_insns, outlined_time;
    struct tl_stream_clock clock;
};

#define TL_CONTENT_BYTES 72 /* "sha256:<64 hex>" and its NUL */

/* A trace. Readers may also name it by its `content`. */
struct tl_trace_row {
    char id[64]; /* [A-Za-z0-9._-]+, unique */
    char rig[64];
    uint8_t state; /* enum tl_trace_state */
    char format[64];
    int64_t created_ns; /* Unix time */
    int64_t updated_ns;
    uint64_t raw_bytes;     /* durable bytes */
    uint64_t decoded_bytes; /* how many of them are decoded */
    uint64_t generation;    /* changes when the trace is decoded again (`gen` of tile URLs) */
    uint64_t revision;      /* increases with every visible change */
    char message[256];      /* last problem, "" if none */
    bool raw_removed;       /* by retention: the trace cannot be decoded again */
    bool decoded_removed;   /* by retention: decoding again restores it */
    char content[TL_CONTENT_BYTES]; /* hash of the raw bytes, set soon after the capture is complete
                                     */
    char *labels;                   /* "key=value\n"…, owned */
    uint64_t notes; /* increases with every change of its notes; 0: there are none */
    struct tl_stream_row *streams;
    size_t n_streams;
};

struct tl_trace_list {
    struct tl_trace_row *rows;
    size_t n;
    uint64_t revision; /* of the catalog as a whole */
};

/* Check that the store responds. TL_IO, with the reason. */
TL_MUST_USE int tl_lake_usable(struct tl_lake *lake, struct tl_fail *fail);
/* Check that it takes changes. TL_NOSPACE, TL_IO, TL_DENIED (its lease was lost), with the reason.
 */
TL_MUST_USE int tl_lake_writable(struct tl_lake *lake, struct tl_fail *fail);
/*
 * List all traces, newest first; may take long. Free with tl_trace_list_free(), also after an
 * error.
 */
TL_MUST_USE int tl_lake_traces(struct tl_lake *lake, struct tl_trace_list *out);
/* Append up to `most` traces after a place (NULL: from the newest). Returns 1: there may be more,
 * even if fewer were appended; TL_OK: end of the list. While the store does not respond: all that
 * are in memory. `revision` is not set. */
TL_MUST_USE int tl_lake_page(struct tl_lake *lake, const struct tl_trace_place *after, size_t most,
                             struct tl_trace_list *list);
/* The place of a row, after which the next page begins. */
struct tl_trace_place tl_trace_place_of(const struct tl_trace_row *row);
/*
 * List the traces that are in memory, in no order: all that are live or being decoded here, and
 * some others.
 */
TL_MUST_USE int tl_lake_at_hand(struct tl_lake *lake, struct tl_trace_list *out);
/* Revision number that increases with every visible change of a trace. */
uint64_t tl_lake_revision(struct tl_lake *lake);
/* One row in a list of one. TL_NOTFOUND; TL_UNREACHABLE, TL_AGAIN: the store cannot answer now. */
TL_MUST_USE int tl_lake_trace(struct tl_lake *lake, const char *trace, struct tl_trace_list *out);
/* Does a trace of exactly this name exist, serving this generation? Only looks at the table in
 * memory. */
bool tl_lake_serves(struct tl_lake *lake, const char *trace, uint64_t generation);
void tl_trace_list_free(struct tl_trace_list *list);

#define TL_LABELS_MAX        1100   /* labels per trace: 1000 regions and others */
#define TL_LABELS_BYTES      131072 /* total bytes of a trace's label keys and values */
#define TL_LABEL_KEY_BYTES   128
#define TL_LABEL_VALUE_BYTES 4096

/*
 * Merge "key=value\n"… into the labels; an empty value removes the key, which need not be a valid
 * one. TL_NOTFOUND; TL_USAGE, with nothing changed: a limit above is exceeded, or there are control
 * characters.
 */
TL_MUST_USE int tl_lake_set_labels(struct tl_lake *lake, const char *trace, const char *labels,
                                   struct tl_fail *fail);
#define TL_NOTES_MAX 1000 /* per trace */

/* List notes by id; free `*notes` with free(). TL_NOTFOUND. */
TL_MUST_USE int tl_lake_notes(struct tl_lake *lake, const char *trace, struct tl_note **notes,
                              size_t *n, struct tl_fail *fail);
/*
 * Write a note: id 0 creates one and sets its id; another id replaces the note that has it. Stream,
 * at, to and text are used, the rest is filled in. Invalid UTF-8 in the text becomes '?'.
 * TL_NOTFOUND: no such trace, stream or note; TL_USAGE: control characters, to < at; TL_LIMIT: too
 * many.
 */
TL_MUST_USE int tl_lake_put_note(struct tl_lake *lake, const char *trace, struct tl_note *note,
                                 struct tl_fail *fail);
TL_MUST_USE int tl_lake_remove_note(struct tl_lake *lake, const char *trace, uint64_t id,
                                    struct tl_fail *fail);

/* Remove a trace and free its space: at once, or if it is being read, when the last reader closes.
 * TL_NOTFOUND, TL_DENIED while a rig is pushing it. */
TL_MUST_USE int tl_lake_delete(struct tl_lake *lake, const char *trace, struct tl_fail *fail);
/* Remove `n` traces with a single commit. For each failure, `refused` is called with errors as for
 * tl_lake_delete(). Returns how many were removed. */
size_t tl_lake_delete_all(struct tl_lake *lake, const char *const *traces, size_t n,
                          void (*refused)(void *context, size_t i, int code,
                                          const struct tl_fail *fail),
                          void *context);
/* Decode the raw bytes again (new image, new setup text, or NULL to keep it). The old shards serve
 * until the new ones replace them in one step. TL_NOTFOUND; TL_DENIED if the raw bytes were
 * removed. */
TL_MUST_USE int tl_lake_redecode(struct tl_lake *lake, const char *trace, const char *setup,
                                 struct tl_fail *fail);
/* Decode again with the setup before the present one. TL_USAGE: there was none. */
TL_MUST_USE int tl_lake_redecode_back(struct tl_lake *lake, const char *trace,
                                      struct tl_fail *fail);
/*
 * Check every stored byte of a trace ("": of all traces, and the catalog): raw bytes, shards with
 * their indexes and tiles, images, and the catalog's entries for them. Appends a line per finding
 * ("object: offset 0x…: what"); returns the number of findings. `repair` rebuilds whatever can be
 * derived from intact data, and reports what is lost of everything else. TL_NOTFOUND.
 */
TL_MUST_USE int tl_lake_verify(struct tl_lake *lake, const char *trace, bool repair,
                               struct tl_buf *report, struct tl_fail *fail);

/* ---- retention --------------------------------------------------------------------------- */

/*
 * A rule has a scope: "" (all traces), "label KEY=VALUE" or "trace ID"; the most specific one
 * applies to a trace. The scope "images" is of images that no trace refers to: `raw_age_s` since
 * that is so, `raw_bytes` of all of them, the longest unused are removed first. Age is measured
 * from the last change of the trace; a size is the total of all traces of the rule, of which the
 * oldest are removed first. Incomplete captures, traces being decoded, and traces with a label
 * "keep" (unless keep=no) are exempt. A trace with neither raw nor decoded data left is removed.
 */
struct tl_retention_row {
    char scope[160];
    struct tl_retention rule;
};
/* Set a rule, or (NULL) remove it. TL_USAGE: invalid scope. */
TL_MUST_USE int tl_lake_set_retention(struct tl_lake *lake, const char *scope,
                                      const struct tl_retention *rule, struct tl_fail *fail);
/* All rules; free `*rows` with free(). */
TL_MUST_USE int tl_lake_retention(struct tl_lake *lake, struct tl_retention_row **rows, size_t *n);
/*
 * Convert stored shards of idle traces to virtual ones after this time without changes (0: never):
 * the trace gets the label shards=virtual and is decoded again. Excludes traces with a label `keep`
 * and those without raw bytes. Any thread.
 */
void tl_lake_set_retain_stf(struct tl_lake *lake, uint64_t seconds);
/* Apply the rules as of `now_ns` (a time of the lake's clock, lake/age.h). Returns the number of
 * removals: because of age at most a quarter of all traces, or eight, in a day. */
TL_MUST_USE int tl_lake_retain(struct tl_lake *lake, int64_t now_ns, struct tl_fail *fail);
/* The same now, which happens once a minute; only because of size while the clock is not settled.
 */
TL_MUST_USE int tl_lake_retain_now(struct tl_lake *lake, struct tl_fail *fail);
/* What retention removes. Borrowed for the call. */
struct tl_retention_victim {
    const char *trace; /* or the hash of an image */
    const char *what;  /* "raw", "decoded", "image", "shards": these become virtual */
    const char *scope; /* of the rule */
    bool by_age;       /* otherwise by size */
    uint64_t age_s;
    uint64_t limit; /* s or bytes */
    uint64_t bytes;
};
/* Call `each` with what the rules would remove now, if it were not limited per day; `tried` (may be
 * NULL) instead of the rule of its scope. `*paused`: the clock is not settled. Returns the number.
 */
TL_MUST_USE int tl_lake_plan_retention(struct tl_lake *lake, const struct tl_retention_row *tried,
                                       int (*each)(void *context,
                                                   const struct tl_retention_victim *victim),
                                       void *context, bool *paused, struct tl_fail *fail);

/*
 * Register for change notifications: `notify(context)` is called from any thread, must not block
 * and must not call back into the lake. Used to wake live followers. Returns a handle for
 * tl_lake_unwatch(), after which notify is not called any more.
 */
TL_MUST_USE int tl_lake_watch(struct tl_lake *lake, void (*notify)(void *context), void *context);
void tl_lake_unwatch(struct tl_lake *lake, int handle);

/* ---- the rig's bytes -------------------------------------------------------------------- */

/*
 * Sequential reader for a range of a trace's raw bytes. Not thread-safe; the trace may grow
 * meanwhile.
 */
struct tl_raw_range;

/*
 * Open [from, to) of the bytes that are durable now; a larger `to` is clipped. TL_NOTFOUND;
 * TL_USAGE: `from` is after the end; TL_DENIED: retention has removed the bytes; TL_NOMEM.
 */
TL_MUST_USE int tl_raw_open(struct tl_lake *lake, const char *trace, uint64_t from, uint64_t to,
                            struct tl_raw_range **out, struct tl_fail *fail);
/*
 * Append the next piece, at most 1 MiB, to `out`; `*offset` is that of its first byte. TL_EOF after
 * the last; TL_IO, with the offset, if bytes are damaged or missing; TL_NOMEM.
 */
TL_MUST_USE int tl_raw_next(struct tl_raw_range *range, uint64_t *offset, struct tl_buf *out,
                            struct tl_fail *fail);
void tl_raw_close(struct tl_raw_range *range); /* accepts NULL */

/* Get a trace's setup as the rig sent it, NUL-terminated INI text, into `text`. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_setup(struct tl_lake *lake, const char *trace, struct tl_buf *text,
                              struct tl_fail *fail);

/* ---- images ----------------------------------------------------------------------------- */

struct tl_image_row {
    char hash[72]; /* "sha256:<64 hex>" */
    char name[128];
    char build_id[64]; /* from the ELF file, hex, "" if none */
    uint64_t size;
};

/* Is content with this hash stored? */
bool tl_lake_has_image(struct tl_lake *lake, const char *hash);
/* The same, intact, and known to the traces that need it: to put it again would change nothing.
 * Reads all of it. */
bool tl_lake_keeps_image(struct tl_lake *lake, const char *hash);
/*
 * Store content; `row` receives its hash. Storing it again is allowed. Content whose name begins
 * with TL_SOURCE_PREFIX is a source file: the prefix is followed by the first TL_SOURCE_IMAGE
 * digits of the hash of the image that was built from it and a colon, or by nothing if it applies
 * to all, then by the path or the end of it. The same with the whole path is the content's first
 * line. TL_NOSPACE, TL_IO.
 */
#define TL_SOURCE_PREFIX "source:"
#define TL_SOURCE_IMAGE  12
TL_MUST_USE int tl_lake_put_image(struct tl_lake *lake, const char *name, struct tl_bytes content,
                                  struct tl_image_row *row, struct tl_fail *fail);
/* Get an image, named by its hash or as "build-id:<hex>": content into `out`, description into
 * `row`. TL_BAD: it is damaged; TL_NOTFOUND. */
TL_MUST_USE int tl_lake_get_image(struct tl_lake *lake, const char *name, struct tl_image_row *row,
                                  struct tl_buf *out, struct tl_fail *fail);
/*
 * Remove an image, named by its hash or the beginning of it, as "build-id:<hex>", or by its name;
 * `row` receives it. TL_DENIED: a trace refers to it, in its present setup or the one before; with
 * `force` it is removed all the same: what is decoded stays, virtual shards cannot be read, and
 * decoding again has gaps, until it is uploaded again. TL_NOTFOUND; TL_USAGE: several are named so.
 */
TL_MUST_USE int tl_lake_remove_image(struct tl_lake *lake, const char *name, bool force,
                                     struct tl_image_row *row, struct tl_fail *fail);
/* Somebody is about to refer to the image with this hash: retention lets it be. */
void tl_lake_want_image(struct tl_lake *lake, const char *hash);
/* List all images. Free `*rows` with free(). */
TL_MUST_USE int tl_lake_images(struct tl_lake *lake, struct tl_image_row **rows, size_t *n);

/* Images and contexts in a trace's setup, and which of the images are stored. */
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
    uint64_t length;                 /* 0: to the end of the image */
    const char *space;               /* NULL, "": any address space */
    struct tl_image_context context; /* the process or machine it is mapped in, if only one */
    struct tl_image_span span;       /* the time during which it is mapped */
};

/* Add an image to a trace's setup and decode the trace again. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_bind_image(struct tl_lake *lake, const char *trace,
                                   const struct tl_lake_binding *binding, struct tl_fail *fail);

/* ---- ranges ----------------------------------------------------------------------------- */

enum tl_range_unit {
    TL_UNIT_INSN,
    TL_UNIT_TIME, /* the stream's unit: ns, or ticks where its clock rate is not known */
    TL_UNIT_BYTE,
    TL_UNIT_NS, /* ns; TL_USAGE for a stream whose clock rate is not known */
    TL_UNITS
};
/* What counts in an analysis. */
enum tl_weight { TL_WEIGHT_INSNS, TL_WEIGHT_TIME, TL_WEIGHT_CYCLES, TL_WEIGHTS };

enum tl_range_format {
    TL_FORMAT_ZSTF,
    TL_FORMAT_STF,
    TL_FORMAT_TEXT,
    TL_FORMAT_LINES, /* lines of flow text with their positions: tl_range_lines() */
    TL_FORMAT_NAMED, /* text, with the function of each instruction */
    TL_FORMATS
};

struct tl_range_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit unit;
    uint64_t from; /* first position, in units */
    uint64_t to;   /* end, exclusive; UINT64_MAX: to the end of the stream */
    enum tl_range_format format;
};

struct tl_range;

/*
 * Open a range. Errors: TL_NOTFOUND (trace or stream), TL_USAGE (from > to; range of time on a
 * stream without time).
 */
TL_MUST_USE int tl_range_open(struct tl_lake *lake, const struct tl_range_request *request,
                              struct tl_range **out, struct tl_fail *fail);
/* First instruction index and instruction count of the range, as resolved at open. */
void tl_range_extent(const struct tl_range *range, uint64_t *first, uint64_t *count);
/* Append the next piece (about 64 KiB to 1 MiB) to `out`. TL_EOF after the last. The concatenated
 * pieces are one complete file of the format. */
TL_MUST_USE int tl_range_next(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail);
/* Stored bytes of a range, in a file mapped to memory. */
struct tl_range_stored {
    struct tl_buf before;  /* bytes of the range before them; owned by the caller */
    struct tl_bytes bytes; /* for system calls only, which fail with EFAULT if the file was cut
                            * short, or the disk fails; the process would be killed */
    /* To be called with `owner` when the bytes are no longer needed; any thread. */
    void (*let_go)(void *owner);
    void *owner;
};
/* Instead of tl_range_next(): if what comes next is stored as it is, and known to be undamaged, get
 * it without reading it. TL_AGAIN: call tl_range_next(). */
TL_MUST_USE int tl_range_next_stored(struct tl_range *range, struct tl_range_stored *out,
                                     struct tl_fail *fail);
/* Receives a line of flow text without its line end, and its position, from a range of
 * TL_FORMAT_LINES. A result < 0 ends tl_range_lines(), which returns it. */
typedef int tl_line_sink(void *context, uint64_t at, struct tl_bytes line);
/* Pass the lines of the next item to `sink`. TL_EOF after the last. */
TL_MUST_USE int tl_range_lines(struct tl_range *range, tl_line_sink *sink, void *context,
                               struct tl_fail *fail);
void tl_range_close(struct tl_range *range);

/* A position in all units. */
struct tl_position {
    uint64_t insn;
    uint64_t time;
    /* Set by tl_lake_locate(): bounds of the real time, the last timestamp before the position and
     * the next one, UINT64_MAX if there is none. `time` is interpolated between them by instruction
     * count. */
    uint64_t time_from, time_to;
    uint64_t byte;
    bool has_time;
};
TL_MUST_USE int tl_lake_locate(struct tl_lake *lake, const char *trace, const char *stream,
                               enum tl_range_unit unit, uint64_t at, struct tl_position *out,
                               struct tl_fail *fail);

enum tl_find_kind {
    TL_FIND_PC,     /* executions of addresses [pc_from, pc_to) */
    TL_FIND_SYMBOL, /* entries of the flow into the function of this name */
    TL_FIND_EVENT, /* exception, gap, event, software …, or a single reason for gaps: overflow … */
    TL_FIND_CALL, /* calls of the function of this name; if there is none, of all functions whose
                     names contain it, ignoring case, or match it if it has * or ? */
    TL_FIND_MNEMONIC, /* instructions with this mnemonic (* and ? as above), or, if the text has a
                         space, whose assembly text contains it */
    TL_FIND_OPCODE, /* instructions with this encoding, as in flow text: hex digits, x for any digit
                     */
    TL_FIND_TEXT,   /* any of these kinds, as described for `q` in docs/http.md */
    TL_FIND_LINE    /* lines and values of software trace, and hardware events, whose text contains
                       this, ignoring case; * and ? as above */
};
struct tl_find_request {
    const char *trace;
    const char *stream; /* NULL, "": all streams of the trace, merged */
    enum tl_find_kind kind;
    uint64_t pc_from, pc_to; /* PC: [from, to) */
    const char *text;        /* for the other kinds */
    uint64_t from, to;       /* instruction range to search; only with a single stream */
    const char *near;        /* only hits after instruction `at` of this stream, or before it if
                                `backward`. NULL: all */
    uint64_t at;
    uint64_t skip;  /* > 0: also hits at `at`, without this many of them, the first ones in this
                       direction */
    bool backward;  /* return the last hits instead of the first */
    bool count;     /* also count all hits, regardless of `near` */
    uint64_t limit; /* maximum number of hits, 0: 100; hits at one position stay together, as long
                       as the list exceeds the limit by at most TL_FIND_TOGETHER */
};
#define TL_FIND_TOGETHER 256

#define TL_HIT_TEXT 160
struct tl_hit {
    struct tl_position at;
    uint64_t pc;
    char stream[32];
    char text[TL_HIT_TEXT]; /* description, e.g. "exception irq 14" */
    /* Number of the hit among those at its position, from 1, in search direction: `skip` of a
     * request that continues after it, with its stream and position as `near` and `at`. */
    uint64_t nth;
};
struct tl_found {
    struct tl_hit *hits; /* in order; with `backward` nearest first */
    size_t n;
    bool more;       /* the limit cut the list; with several streams: it may have */
    uint64_t total;  /* number of all hits, if `count` was set */
    uint64_t before; /* number of hits before hits[0], if `count` was set */
    enum tl_find_kind kind;
    char what[128];     /* description of the query: "calls of main" */
    uint64_t functions; /* SYMBOL, CALL: number of functions that the text names */
    bool behind;        /* of this stream, what is from here on is still being indexed */
    uint64_t behind_from;
    char behind_stream[32];
};
/*
 * Find hits, in order. With all streams: by time, followed by those of streams without time, stream
 * by stream. Free with tl_found_fini(), also after an error.
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
    const char *name; /* NULL: instructions without a symbol */
    uint64_t pc;
    uint64_t insns, calls;
};

/*
 * Trace lost for one reason: number of intervals between two timestamps, their total length, and
 * the longest, with the time at which it begins. The loss lies within them. In units of the
 * stream's time.
 */
struct tl_stats_lost {
    char name[32]; /* "overflow" */
    uint64_t n, total, longest, longest_at;
};
#define TL_STATS_REASONS 16

/* A source of formatter frames in the setup. */
struct tl_stats_source {
    const char *name;   /* of its stream */
    const char *device; /* as the setup names it, else its protocol */
};

struct tl_stats {
    uint64_t from, to; /* the range, clipped to the available trace */
    bool behind; /* also to what is indexed so far: what is behind `to` is still being indexed */
    uint64_t insns, taken;
    uint64_t reads, writes;              /* memory accesses recorded in the trace */
    struct tl_stats_function *functions; /* at most 1000, most instructions first */
    size_t n_functions;
    size_t n_run;                  /* total number of functions executed */
    struct tl_stats_count *counts; /* grouped; only those that are not 0 */
    size_t n_counts, cap_counts;
    struct tl_stats_lost lost[TL_STATS_REASONS];
    size_t n_lost;                  /* reasons that cover time */
    struct tl_stats_source *silent; /* from which no trace came; of all streams only */
    size_t n_silent;
    struct tl_gen *gen; /* owns the names */
};
/* Exact statistics of a range, or of all streams in full (`stream` NULL). Free with
 * tl_stats_fini(), also after an error. */
TL_MUST_USE int tl_lake_stats(struct tl_lake *lake, const char *trace, const char *stream,
                              uint64_t from, uint64_t to, struct tl_stats *out,
                              struct tl_fail *fail);
void tl_stats_fini(struct tl_stats *stats);

/* An inlined function, and its call site. */
struct tl_insn_inlined {
    const char *function, *file;
    uint32_t line;
};

/* A row of the disassembly list. Texts are "" if unknown, and valid only during the callback. */
struct tl_insn_row {
    uint64_t insn, pc;
    uint64_t time; /* if has_time */
    bool has_time;
    const char *function; /* "main+0x10" */
    const char *mode;     /* as in flow text */
    const char *encoding; /* as in flow text */
    const char *text;     /* the instruction, or the item at the position */
    const char *events;   /* items before it: lines of flow text, each with its line end */
    /* From debug information: */
    const char *file;                      /* source file */
    uint32_t line, column;                 /* from 1; 0: not known */
    const struct tl_insn_inlined *inlined; /* outermost first */
    size_t n_inlined;
    const char *image; /* hash of the image with the debug information */
    const char *lacks; /* which source information is missing, and why */
};
typedef int tl_insn_sink(void *context, const struct tl_insn_row *row);
/* Pass rows for `count` (<= 4096) instructions beginning at `from` to `sink`; a result < 0 of it
 * ends the call and is returned. */
TL_MUST_USE int tl_lake_insns(struct tl_lake *lake, const char *trace, const char *stream,
                              uint64_t from, uint32_t count, tl_insn_sink *sink, void *context,
                              struct tl_fail *fail);

/* Source location of an instruction. */
struct tl_source_file {
    char *file;    /* as named by debug information; "" if it names none */
    uint32_t line; /* from 1, 0: no line */
    bool has_text;
    struct tl_buf text; /* the complete file, arbitrary bytes */
    char why[256];      /* why there is no text, or no file; "" if there is */
};
/*
 * Find the source of an instruction. `frame` 0: of the instruction itself, 1: the call site of the
 * innermost function inlined there, 2: of the next outer one … TL_NOTFOUND: no such trace, stream,
 * instruction or frame. Free with tl_source_file_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_source(struct tl_lake *lake, const char *trace, const char *stream,
                               uint64_t insn, uint32_t frame, struct tl_source_file *out,
                               struct tl_fail *fail);
void tl_source_file_fini(struct tl_source_file *source);

/* Data of a range of a stream in columns. */
struct tl_lane_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit axis; /* insn or time, for the range and the result */
    uint64_t from, to;
    uint32_t columns; /* width of the picture, at most 4096; 0: 512 */
};

/* An interval with one process, virtual machine and mode. */
struct tl_state_run {
    uint64_t from, to; /* on the axis */
    uint64_t context, vmid, mode;
    bool has_context, has_vmid, has_mode;
    char mode_text[32]; /* "el0.ns.a64"; "" if not known */
    char name[32];      /* name of the context in the setup, otherwise of the VMID; "": none */
    bool mixed; /* other states were current too, each for less than a column: this one lasted
                   longest */
};
struct tl_states {
    struct tl_state_run *runs; /* in order, contiguous */
    size_t n;
    bool sampled; /* long range: the state sampled once per column */
};
/* States over a range. Ranges of up to 4 M instructions are evaluated in full. TL_USAGE: invalid
 * axis. Free with tl_states_fini(), also after an error. */
TL_MUST_USE int tl_lake_states(struct tl_lake *lake, const struct tl_lane_request *request,
                               struct tl_states *out, struct tl_fail *fail);
void tl_states_fini(struct tl_states *states);

/* A column of counters. */
struct tl_counter {
    uint64_t insns;
    uint64_t time;                /* duration; 0: not known */
    uint64_t cycles, cycle_insns; /* counted cycles, and the number of instructions they cover */
};
struct tl_counters {
    struct tl_counter *p; /* columns of equal width */
    size_t n;
    uint64_t from, to; /* their extent on the axis, clipped to the available trace */
    bool has_time, has_cycles;
    bool sampled; /* long range: cycles cover only parts of it */
};
/* Execution speed over a range. Errors as tl_lake_states(). Free with tl_counters_fini(), also
 * after an error. */
TL_MUST_USE int tl_lake_counters(struct tl_lake *lake, const struct tl_lane_request *request,
                                 struct tl_counters *out, struct tl_fail *fail);
void tl_counters_fini(struct tl_counters *counters);

/* How many hits of a search are in each column, of equal width. */
struct tl_hit_columns {
    uint64_t *hits;
    size_t n;
    uint64_t from, to; /* their extent on the axis, clipped to the available trace */
    uint64_t total;    /* in all of them */
};
/* Search for `text`, of any kind as TL_FIND_TEXT. Errors as tl_lake_states() and tl_lake_find().
 * Free with tl_hit_columns_fini(), also after an error. */
TL_MUST_USE int tl_lake_hit_columns(struct tl_lake *lake, const struct tl_lane_request *request,
                                    const char *text, struct tl_hit_columns *out,
                                    struct tl_fail *fail);
void tl_hit_columns_fini(struct tl_hit_columns *columns);

struct tl_slices_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit axis; /* insn or time, for the range and the result */
    uint64_t from, to;
    uint32_t columns; /* width of the picture, at most 4096; 0: 1024 */
};
struct tl_stack_slice {
    uint64_t from, to; /* on the axis; `to` is clipped to the range */
    uint64_t pc;       /* first address */
    uint32_t depth;
    bool is_exception; /* the handling of an exception, else a function */
    bool interrupt;    /* the exception is an interrupt */
    int32_t exception; /* its number; -1: unknown */
    bool exact;        /* false: `to` is late, by at most the resolution */
    const char *name;  /* name of the function, "" without a symbol */
};
struct tl_slices {
    struct tl_stack_slice *p; /* sorted by depth and begin */
    size_t n;
    uint64_t resolution; /* all slices with more of the range, on the axis, are included */
    bool truncated;      /* shorter slices are omitted */
    struct tl_gen *gen;  /* owns the names */
};
/*
 * Call-stack slices that overlap a range, the 4096 widest on the axis asked. The cost does not
 * depend on the range's length: at most the call stacks of some columns and some hundred chunks are
 * read. Free with tl_slices_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_slices(struct tl_lake *lake, const struct tl_slices_request *request,
                               struct tl_slices *out, struct tl_fail *fail);
void tl_slices_fini(struct tl_slices *slices);

/* The functions of a trace; tiles refer to them by index + 1. */
struct tl_functions {
    struct tl_function {
        const char *name;
        uint64_t pc;
    } * p;
    size_t n;
    struct tl_gen *gen; /* owns the names */
};
/* Free with tl_functions_fini(), also after an error. */
TL_MUST_USE int tl_lake_functions(struct tl_lake *lake, const char *trace, struct tl_functions *out,
                                  struct tl_fail *fail);
void tl_functions_fini(struct tl_functions *functions);

/* ---- tiles ------------------------------------------------------------------------------- */

#define TL_TILE_BUCKETS 512

/* Trace is missing before a position, between two times (both 0: not known). */
struct tl_tile_break {
    uint64_t position, from, to;
    uint8_t flags; /* as in a bucket; TL_FLAG_OFF or SWITCHED_OUT alone: nothing was lost */
};

#define TL_TILE_BREAKS 64 /* maximum number; the first ones are kept */

/* A stream's buckets, one array per property; `tracelake.v1.Lane` describes them. */
struct tl_tile_lane {
    uint32_t lane; /* index of the stream */
    uint64_t insns[TL_TILE_BUCKETS], page[TL_TILE_BUCKETS];
    uint32_t function[TL_TILE_BUCKETS], function2[TL_TILE_BUCKETS], event_mask[TL_TILE_BUCKETS],
        event_count[TL_TILE_BUCKETS];
    uint8_t coverage[TL_TILE_BUCKETS], share[TL_TILE_BUCKETS], share2[TL_TILE_BUCKETS],
        distinct[TL_TILE_BUCKETS], privilege[4 * TL_TILE_BUCKETS], branches[TL_TILE_BUCKETS],
        flags[TL_TILE_BUCKETS], depth_min[TL_TILE_BUCKETS], depth_max[TL_TILE_BUCKETS],
        lost[TL_TILE_BUCKETS], switched_out[TL_TILE_BUCKETS];
    struct tl_tile_break breaks[TL_TILE_BREAKS];
    size_t n_breaks;
    bool behind; /* what is in the tile from here on, on its axis, is still being indexed */
    uint64_t behind_from;
};

#define TL_TILE_LANES 64 /* maximum lanes per tile */

struct tl_tile {
    enum tl_range_unit axis;
    unsigned level;
    uint64_t index;
    uint64_t bucket, first; /* bucket width and begin of the first bucket, on the axis */
    uint64_t generation;
    bool sealed;       /* will not change within this generation */
    uint64_t revision; /* for the ETag of an unsealed tile */
    struct tl_tile_lane *lanes[TL_TILE_LANES];
    size_t n_lanes;
};

/*
 * A tile: 512 buckets of lanes [lane_from, lane_to] at a level. A bucket is 2^base * 4^level units
 * wide, with base from the trace's JSON. Free with tl_tile_fini(), also after an error.
 * TL_NOTFOUND: no such trace, or gen is not its generation; TL_USAGE: no such tile, or more than
 * TL_TILE_LANES.
 */
TL_MUST_USE int tl_lake_tile(struct tl_lake *lake, const char *trace, enum tl_range_unit axis,
                             unsigned level, uint64_t index, unsigned lane_from, unsigned lane_to,
                             uint64_t gen, struct tl_tile *out, struct tl_fail *fail);
void tl_tile_fini(struct tl_tile *tile);

/* ---- counters ----------------------------------------------------------------------------- */

/* Append all of the lake's metrics as Prometheus text. */
TL_MUST_USE int tl_lake_metrics(struct tl_lake *lake, struct tl_buf *out);

#include "lake_analysis.h"
#include "lake_sql.h"
#include "lake_timing.h"
#endif
