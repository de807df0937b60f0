/* SPDX-License-Identifier: MIT */
/*
 * libtracelake: push hardware traces to a tracelake server and fetch ranges of decoded
 * instructions from it. This header is all that a program needs:
 *
 *     cc prog.c $(pkg-config --cflags --libs tracelake)
 *
 * In short:
 *
 *     struct tracelake *lake;
 *     struct tracelake_error error;
 *     if (tracelake_connect(&lake, "http://127.0.0.1:7070", NULL, &error) < 0)
 *         … error.text says what is wrong and what to do …
 *
 *     struct tracelake_range range = {"board-7", "cs.10", TRACELAKE_INSN, 1000, 2000};
 *     struct tracelake_insns *it;
 *     struct tracelake_insn insn;
 *     tracelake_insns_open(&it, lake, &range, &error);
 *     while ((result = tracelake_insns_next(it, &insn, &error)) == TRACELAKE_OK)
 *         printf("%" PRIx64 "\n", insn.pc);
 *     tracelake_insns_close(it);
 *     tracelake_close(lake);
 *
 * Results: functions return int, TRACELAKE_OK or a negative enum tracelake_result. The error
 * argument may always be NULL. Strings and structs given to a function are borrowed for the call
 * only, unless a comment says otherwise; what a function hands out is freed with the function
 * named beside it, and freeing NULL is fine.
 *
 * Threads: all calls block. A connection and what was opened on it belong to one thread at a
 * time; different connections are independent. tracelake_interrupt() alone may be called from
 * anywhere. Writing to a closed connection raises no signal.
 *
 * Wire: gRPC over HTTP/2, one TCP connection for all calls. A connection that broke is made
 * again by the next call that needs it.
 */
#ifndef TRACELAKE_H
#define TRACELAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define TRACELAKE_API      __attribute__((visibility("default")))
#define TRACELAKE_MUST_USE __attribute__((warn_unused_result))
#else
#define TRACELAKE_API
#define TRACELAKE_MUST_USE
#endif

enum tracelake_result {
    TRACELAKE_OK = 0,
    TRACELAKE_BAD = -1,          /* the data is malformed */
    TRACELAKE_NOMEM = -2,        /* out of memory */
    TRACELAKE_IO = -3,           /* the system or the server failed */
    TRACELAKE_EOF = -4,          /* orderly end: no more of them */
    TRACELAKE_AGAIN = -5,        /* nothing yet */
    TRACELAKE_NOTFOUND = -6,     /* the server has no such trace, stream or image */
    TRACELAKE_EXISTS = -7,       /* there already, or held by another rig */
    TRACELAKE_UNSUPPORTED = -8,  /* the server does not know this call or format */
    TRACELAKE_LIMIT = -9,        /* larger than a limit */
    TRACELAKE_USAGE = -10,       /* arguments that make no sense */
    TRACELAKE_NOSPACE = -11,     /* the server's disk is full */
    TRACELAKE_DENIED = -12,      /* not allowed: token, certificate, or state of the trace */
    TRACELAKE_CANCELLED = -13,   /* tracelake_interrupt() */
    TRACELAKE_UNREACHABLE = -14, /* the server cannot be reached, or went away */
    TRACELAKE_TIMEOUT = -15      /* no answer within the time limit */
};

/* What went wrong. Filled where a function returns a negative result other than TRACELAKE_EOF. */
struct tracelake_error {
    int code;        /* enum tracelake_result */
    int grpc_status; /* what the server answered, 0 if the error arose on this side */
    char text[512];  /* one line: what is wrong; what to do */
};

/* Short lower-case name of a result, e.g. "unreachable". Static storage. */
TRACELAKE_API const char *tracelake_result_name(int result);
/* Version of the library, "0.1.0". Static storage. */
TRACELAKE_API const char *tracelake_version(void);

#define TRACELAKE_END UINT64_MAX /* as the end of a range: to the end of the stream */

/* ---- connection --------------------------------------------------------------------------- */

struct tracelake;

/* Zero-initialise, then set what is wanted; NULL strings and 0 mean the default. */
struct tracelake_options {
    const char *token;       /* sent as `authorization: Bearer TOKEN` */
    const char *cafile;      /* https: PEM file of trusted certificates; default: the system's */
    const char *fingerprint; /* https: SHA-256 of the server's certificate, 64 hex digits, colons
                                and an optional "sha256:" allowed; of several servers' certificates,
                                with commas between. Replaces all other checks */
    bool insecure;           /* https: accept any certificate. Tests only */
    int connect_ms;          /* time limit to connect, 0: 10,000 */
    int timeout_ms;          /* time limit without any progress, for each call, 0: 60,000;
                                -1: none */
    const char *certfile; /* https: PEM file of the certificate by which the server knows us … */
    const char *keyfile;  /* … and of its key; NULL: in the same file */
};

/*
 * Connect to `url`: http://HOST[:PORT] (HTTP/2 without TLS, default port 7070) or
 * https://HOST[:PORT] (default port 7443). IPv6 addresses stand in brackets. The options are
 * copied. Errors: UNREACHABLE, DENIED (certificate), TIMEOUT, USAGE (URL), NOMEM.
 *
 * Several URLs with commas between them are servers of one lake; so are the addresses of a name
 * that has several. The first that answers is used. Where it goes away, says that it cannot serve
 * now (UNAVAILABLE) or does not answer, the next one is: calls are made again there, for up to 10 s,
 * unless they change what must not be changed twice and may have done so (delete, redecode, bind,
 * notes); a fetch, raw bytes and followed streams go on where they were, nothing twice and nothing
 * missed; a push goes on behind the durable bytes.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_connect(struct tracelake **out, const char *url,
                                                       const struct tracelake_options *options,
                                                       struct tracelake_error *error);

/* Close and free. All that was opened on it must be closed before. */
TRACELAKE_API void tracelake_close(struct tracelake *lake);

/*
 * Make the call that blocks now, and all later ones, return TRACELAKE_CANCELLED. May be called
 * from any thread and from a signal handler.
 */
TRACELAKE_API void tracelake_interrupt(struct tracelake *lake);
/* Undo tracelake_interrupt(), so that e.g. a push can still be finished. */
TRACELAKE_API void tracelake_resume(struct tracelake *lake);

/*
 * The connection's socket, for a program's own poll(): readable, or where `*writing` says so
 * (NULL: not asked) writable, it is time to call what waits there: tracelake_push_serve() with 0
 * ms, tracelake_insns_next() of a followed stream. -1: no connection is up, call at once. It is
 * another one whenever a connection was made again: ask before each poll().
 */
TRACELAKE_API int tracelake_descriptor(const struct tracelake *lake, bool *writing);

/* ---- push --------------------------------------------------------------------------------- */

struct tracelake_push;

/* Zero-initialise, then set what is wanted. */
struct tracelake_push_options {
    const char *rig;     /* who sends, [A-Za-z0-9._-]+; required */
    const char *trace;   /* wanted id, same letters; NULL: the server makes one */
    const char *setup;   /* what a decoder must know, INI text; equal on resume; required */
    bool resume;         /* the trace may exist already: go on behind its durable offset */
    size_t window_bytes; /* unacknowledged bytes kept for a reconnect, 0: 16 MiB */
    size_t chunk_bytes;  /* most bytes per message, 0: 256 KiB, at most 4 MiB - 64 KiB */
    int retry_ms;        /* how long to try to reconnect after a failure, 0: 30,000; -1: for ever,
                            -2: not at all */
    void (*notice)(void *context, const char *text); /* told of a loss of connection and of its
                                                        return; may be NULL */
    void *context;
    const char *shards; /* of a new trace, "stored" or "virtual"; NULL: as the server does */
};

/*
 * Begin or resume a capture. A capture is a sequence of bytes numbered from 0; the server says
 * from which offset on it wants them (tracelake_push_offset()): 0 for a new one, else what it has
 * stored durably. Errors: EXISTS (it exists and `resume` is not set, or another rig holds it),
 * BAD (setup), DENIED, NOSPACE, UNREACHABLE.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_open(struct tracelake_push **out,
                                                         struct tracelake *lake,
                                                         const struct tracelake_push_options *opt,
                                                         struct tracelake_error *error);

/* The trace's id. Valid until tracelake_push_close(). */
TRACELAKE_API const char *tracelake_push_trace(const struct tracelake_push *push);
/* Offset of the next byte to be written: after opening, where to go on. */
TRACELAKE_API uint64_t tracelake_push_offset(const struct tracelake_push *push);
/* Everything before this offset is durable on the server: it would survive a power cut. */
TRACELAKE_API uint64_t tracelake_push_acked(const struct tracelake_push *push);
/*
 * The trace has another setup by now (tracelake_redecode()): a push that has to connect again says
 * that it knows. Copied. NOMEM: the push is as it was.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_push_setup(struct tracelake_push *push, const char *setup, struct tracelake_error *error);

/*
 * Append bytes to the capture. They are copied into the window and sent as soon as the
 * connection takes them; blocks while the window is full. Where the connection breaks, it is made
 * again and the unacknowledged bytes are sent again from the server's durable offset on: nothing
 * is lost, nothing is doubled. Errors: as for open, and IO where the server has lost bytes that it
 * had acknowledged; CANCELLED: not all was taken, tracelake_push_offset() tells. After any other
 * error the session can only be closed (and the trace resumed).
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_write(struct tracelake_push *push,
                                                          const void *data, size_t n,
                                                          struct tracelake_error *error);
/* Serve the connection for up to `ms` (e.g. between bursts of a live rig): send what waits, take
 * acknowledgements. Returns early when all is acknowledged, and late where the connection had to
 * be made again. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_serve(struct tracelake_push *push, int ms,
                                                          struct tracelake_error *error);
/* Wait until every byte written is durable. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_flush(struct tracelake_push *push,
                                                          struct tracelake_error *error);
/* The capture is complete: wait until all is durable and tell the server so. Close it then. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_finish(struct tracelake_push *push,
                                                           struct tracelake_error *error);
/* Free. Not finished before: the trace stays open on the server and can be resumed. */
TRACELAKE_API void tracelake_push_close(struct tracelake_push *push);

/* Durable offset of a trace, and whether its capture is complete. `complete` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_offset(struct tracelake *lake, const char *trace,
                                                      uint64_t *durable, bool *complete,
                                                      struct tracelake_error *error);

/* ---- program images ----------------------------------------------------------------------- */

struct tracelake_image {
    char sha256[72]; /* "sha256:" and 64 hex digits: how setups and bindings name it */
    char name[128];
    char build_id[64];
    uint64_t size;
};

/* Store content (once; what the server has already is not sent). `image` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_image(struct tracelake *lake, const char *name,
                                                         const void *data, size_t n,
                                                         struct tracelake_image *image,
                                                         struct tracelake_error *error);
/*
 * Store a source file, so that lines of code are shown with their text. `path` is matched with the
 * paths of debug information from its end on. `image`: the "sha256:…" of the image that was built
 * of it; NULL: it is for all that have no such file of their own.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_source(struct tracelake *lake, const char *image,
                                                          const char *path, const void *text,
                                                          size_t n, struct tracelake_error *error);
/* The same from a file. Errors also: IO with the system's words. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_image_file(struct tracelake *lake,
                                                              const char *path,
                                                              struct tracelake_image *image,
                                                              struct tracelake_error *error);
/* The content of an image named by its hash ("sha256:…") or as "build-id:<hex>"; free `*data` with
 * free(). `image` may be NULL. NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_image(struct tracelake *lake, const char *name,
                                                         void **data, size_t *n,
                                                         struct tracelake_image *image,
                                                         struct tracelake_error *error);
/* All images; free `*images` with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_list_images(struct tracelake *lake,
                                                           struct tracelake_image **images,
                                                           size_t *n,
                                                           struct tracelake_error *error);

struct tracelake_binding {
    const char *sha256;
    uint64_t address;  /* where it lies; for an ELF file a bias that is added */
    uint64_t offset;   /* of the first mapped byte in the image */
    uint64_t length;   /* 0: to the end */
    const char *space; /* NULL: any; else el1n, el3, … */
    /* The image is there only while these identifiers are in force; false: whatever they are. */
    bool has_context_id, has_vmid;
    uint32_t vmid;
    uint64_t context_id;
    /* It is there at times from <= t < until, in ticks of the timestamps; until 0: to the end. */
    uint64_t from, until;
};

/* Add an image to a trace's setup; the server decodes the trace again. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_bind_image(struct tracelake *lake, const char *trace,
                                                          const struct tracelake_binding *binding,
                                                          struct tracelake_error *error);

/* ---- catalog ------------------------------------------------------------------------------ */

enum tracelake_state {
    TRACELAKE_STATE_UNKNOWN,
    TRACELAKE_LIVE,     /* a rig is pushing it, or may resume */
    TRACELAKE_DECODING, /* the capture is complete, its decoding is not */
    TRACELAKE_SEALED,   /* all is done */
    TRACELAKE_FAILED    /* decoding stopped, `message` says why; the raw bytes are kept */
};

/*
 * How a stream's times relate to the server's clock, by when its bytes arrived there:
 * unix_ns(t) = unix_ns + (t - at) * rate. That is later than it was by the shortest time that trace
 * took from the source to the server.
 */
struct tracelake_stream_clock {
    uint64_t pairs;     /* of time and arrival that it rests upon; 0: it is not known */
    uint64_t at;        /* a time in the middle of the trace */
    uint64_t unix_ns;   /* when that was */
    double rate;        /* ns of the server's clock for one of the trace's unit of time … */
    double rate_error;  /* … which lies within ± this */
    uint64_t spread_ns; /* by how much later 95 of 100 arrived */
};

struct tracelake_stream {
    char *name;     /* "cs.10", "di.0.1", "pt.0" */
    char *protocol; /* "etm4", … */
    char *core;     /* that the setup names; "" if none … */
    char *device;   /* … and what the board's description calls its source */
    uint64_t insns;
    uint64_t sealed_insns;
    uint64_t shards;
    uint64_t time_first;
    uint64_t time_last;
    uint64_t events;
    uint64_t gaps;
    uint64_t lost_bytes;
    uint64_t stored_bytes;
    bool has_time;
    bool time_unit_ns; /* else ticks of the source's clock */
    struct tracelake_stream_clock clock;
};

struct tracelake_label {
    char *key;
    char *value;
};

struct tracelake_trace {
    char *id;
    char *rig;
    enum tracelake_state state;
    char *format;
    int64_t created_ns; /* Unix time */
    int64_t updated_ns;
    uint64_t raw_bytes;     /* durable */
    uint64_t decoded_bytes; /* of which decoded */
    uint64_t generation;
    uint64_t revision;
    char *message; /* last trouble, "" if none */
    struct tracelake_label *labels;
    size_t n_labels;
    struct tracelake_stream *streams;
    size_t n_streams;
    bool raw_removed;     /* by retention: it cannot be decoded anew */
    bool decoded_removed; /* by retention: decoding anew brings it back */
    char *content; /* "sha256:…" of the raw bytes, "" until the capture is complete; names the
                      trace wherever it is read */
};

struct tracelake_list {
    struct tracelake_trace *traces; /* newest first */
    size_t n;
    uint64_t revision; /* of the catalog */
};

/* "live", "decoding", "sealed", "failed", "unknown". Static storage. */
TRACELAKE_API const char *tracelake_state_name(enum tracelake_state state);

/* All traces. Free with tracelake_list_free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_list_traces(struct tracelake *lake,
                                                           struct tracelake_list **out,
                                                           struct tracelake_error *error);
TRACELAKE_API void tracelake_list_free(struct tracelake_list *list);

/* One trace. Free with tracelake_trace_free(). NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_trace(struct tracelake *lake, const char *trace,
                                                         struct tracelake_trace **out,
                                                         struct tracelake_error *error);
TRACELAKE_API void tracelake_trace_free(struct tracelake_trace *trace);

/* Wait until a complete capture is decoded too: SEALED or FAILED (or until it is LIVE again).
 * `out` as tracelake_get_trace(). A server that is away is waited for like a push does. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_wait_sealed(struct tracelake *lake,
                                                           const char *trace,
                                                           struct tracelake_trace **out,
                                                           struct tracelake_error *error);

/*
 * End a capture whose rig is gone: it is complete with the bytes that are there. `out` may be NULL.
 * NOTFOUND, DENIED while a rig is pushing it. Does nothing with a complete one.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_seal(struct tracelake *lake, const char *trace,
                                                    struct tracelake_trace **out,
                                                    struct tracelake_error *error);
/* Remove a trace. NOTFOUND, DENIED while a rig is pushing it. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_delete(struct tracelake *lake, const char *trace,
                                                      struct tracelake_error *error);
/*
 * Remove `n` traces with one question. What is wrong with traces[i] is told in errors[i], whose
 * code is TRACELAKE_OK where it is removed. TRACELAKE_OK: all are removed; else the result of the
 * first that is not, or of the question.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_delete_all(struct tracelake *lake,
                                                          const char *const *traces, size_t n,
                                                          struct tracelake_error *errors);

/* Merge labels into a trace's; an empty value removes the key. `out` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_set_labels(struct tracelake *lake, const char *trace,
                                                          const struct tracelake_label *labels,
                                                          size_t n, struct tracelake_trace **out,
                                                          struct tracelake_error *error);
/* Decode the raw bytes again, with another setup or (NULL) as it is. `out` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_redecode(struct tracelake *lake, const char *trace,
                                                        const char *setup,
                                                        struct tracelake_trace **out,
                                                        struct tracelake_error *error);
/* The same with the setup that it had before the present one. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_redecode_back(struct tracelake *lake,
                                                             const char *trace,
                                                             struct tracelake_trace **out,
                                                             struct tracelake_error *error);
/* Check every stored byte of a trace, or ("") of all, with the catalog. `*report` gets a line per
 * finding; free() it. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_verify(struct tracelake *lake, const char *trace,
                                                      bool repair, uint32_t *findings,
                                                      char **report, struct tracelake_error *error);

/* How long data of the traces of a scope are kept; 0: no limit. */
struct tracelake_retention {
    char scope[160]; /* "": all traces; "label KEY=VALUE"; "trace ID" */
    uint64_t raw_age_s;
    uint64_t raw_bytes; /* of all traces of the rule together */
    uint64_t decoded_age_s;
    uint64_t decoded_bytes;
};
/* All rules; free `*rules` with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_list_retention(struct tracelake *lake,
                                                              struct tracelake_retention **rules,
                                                              size_t *n,
                                                              struct tracelake_error *error);
/* Set a scope's rule, or remove it. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_set_retention(struct tracelake *lake,
                                                             const struct tracelake_retention *rule,
                                                             bool remove,
                                                             struct tracelake_error *error);

/* ---- ranges ------------------------------------------------------------------------------- */

enum tracelake_unit {
    TRACELAKE_INSN, /* instruction index within the stream, from 0 */
    TRACELAKE_TIME, /* ns since the trace's epoch, or ticks: see tracelake_stream */
    TRACELAKE_BYTE  /* raw byte offset */
};

enum tracelake_format { TRACELAKE_ZSTF, TRACELAKE_STF, TRACELAKE_TEXT, TRACELAKE_JSON };

struct tracelake_range {
    const char *trace;
    const char *stream;
    enum tracelake_unit unit;
    uint64_t from; /* first, in units */
    uint64_t to;   /* behind the last, or TRACELAKE_END */
};

/* Instructions, one after another. */

struct tracelake_insns;

enum tracelake_insn_kind {
    TRACELAKE_EXECUTED, /* an instruction */
    TRACELAKE_UNKNOWN,  /* one whose encoding is not known: there was no image */
    TRACELAKE_BRANCH    /* a taken branch, in streams that hold nothing else (Open SoC Debug CTM) */
};

struct tracelake_insn {
    uint64_t index;  /* within the stream, from 0 */
    uint64_t pc;     /* BRANCH: where it came from, 0 if not known */
    uint64_t target; /* BRANCH: where it went, else 0 */
    uint32_t opcode; /* the value of a 2- or 4-byte encoding (T32: first halfword first), else 0 */
    uint8_t kind;    /* enum tracelake_insn_kind */
    uint8_t size;    /* bytes of the encoding, 0: not known */
    uint8_t bytes[18]; /* the encoding in memory order */
};

/* Errors: NOTFOUND, USAGE. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_insns_open(struct tracelake_insns **out,
                                                          struct tracelake *lake,
                                                          const struct tracelake_range *range,
                                                          struct tracelake_error *error);
/* The next instruction, or TRACELAKE_EOF (streams of software trace have none). BAD: the server
 * sent what is not STF, or less than it had promised. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_insns_next(struct tracelake_insns *insns,
                                                          struct tracelake_insn *out,
                                                          struct tracelake_error *error);
/* Index of the first instruction of the range and how many there are, as the server found them. */
TRACELAKE_API void tracelake_insns_extent(const struct tracelake_insns *insns, uint64_t *first,
                                          uint64_t *count);
TRACELAKE_API void tracelake_insns_close(struct tracelake_insns *insns);

/* ---- flow --------------------------------------------------------------------------------- */

/*
 * All that the trace tells of a range, element by element, with what is in force there: time, mode,
 * context. Also of a live stream as it grows.
 */
struct tracelake_flow;

/* One element of flow text (docs/flow-text.md). Texts are valid until the next one. */
struct tracelake_item {
    uint64_t at;      /* position in the stream */
    uint64_t pc;      /* I, N: of the instruction; X: the preferred return address; else 0 */
    uint64_t time;    /* the last timestamp up to here, if has_time: ns, or ticks */
    const char *mode; /* "el1.ns.a64"; "" before the trace has said it */
    const char *context, *vmid; /* as flow text has them; "" before */
    const char *text;           /* the words behind its letter */
    char kind;                  /* its letter: I N B X R M C T Y V S G O A */
    bool has_time;
};

/* Errors: NOTFOUND, USAGE. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_flow_open(struct tracelake_flow **out,
                                                         struct tracelake *lake,
                                                         const struct tracelake_range *range,
                                                         struct tracelake_error *error);
/*
 * The same of a live stream from position `from` on, until the trace is sealed. Where the
 * connection breaks it is made again, for up to ten minutes, and nothing comes twice.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_flow_follow(struct tracelake_flow **out, struct tracelake *lake, const char *trace,
                      const char *stream, uint64_t from, struct tracelake_error *error);
/* The next element, or TRACELAKE_EOF. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_flow_next(struct tracelake_flow *flow,
                                                         struct tracelake_item *out,
                                                         struct tracelake_error *error);
TRACELAKE_API void tracelake_flow_close(struct tracelake_flow *flow);

/* A range as a file: the pieces, one behind another, are one complete file of the format. */

struct tracelake_fetch;

TRACELAKE_MUST_USE TRACELAKE_API int tracelake_fetch_open(struct tracelake_fetch **out,
                                                          struct tracelake *lake,
                                                          const struct tracelake_range *range,
                                                          enum tracelake_format format,
                                                          struct tracelake_error *error);
/* A region of a trace that was given a name ("NAME.1": tracelake simpoints --save NAME), with the
 * instructions in front of it that warm a simulator up. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_fetch_region(struct tracelake_fetch **out,
                                                            struct tracelake *lake,
                                                            const char *trace, const char *region,
                                                            enum tracelake_format format,
                                                            struct tracelake_error *error);
/*
 * What a live stream holds from instruction `from` on, then more as it comes, until the trace is
 * sealed. `format`: TRACELAKE_TEXT or TRACELAKE_JSON. Has no time limit.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_follow_open(struct tracelake_fetch **out, struct tracelake *lake, const char *trace,
                      const char *stream, uint64_t from, enum tracelake_format format,
                      struct tracelake_error *error);
/* The next piece, valid until the next call, or TRACELAKE_EOF. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_fetch_next(struct tracelake_fetch *fetch,
                                                          const void **data, size_t *n,
                                                          struct tracelake_error *error);
/* As for instructions; known behind the first piece. Of a live stream: of the part that the last
 * piece belongs to; parts follow each other. */
TRACELAKE_API void tracelake_fetch_extent(const struct tracelake_fetch *fetch, uint64_t *first,
                                          uint64_t *count);
/* Free; what was not yet fetched is cancelled. */
TRACELAKE_API void tracelake_fetch_close(struct tracelake_fetch *fetch);

/* What the rig sent, byte for byte. */

struct tracelake_raw;

/* Bytes `from` to `to` (TRACELAKE_END: all that is durable now). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_raw_open(struct tracelake_raw **out,
                                                        struct tracelake *lake, const char *trace,
                                                        uint64_t from, uint64_t to,
                                                        struct tracelake_error *error);
/* The next piece, valid until the next call, or TRACELAKE_EOF. TRACELAKE_IO, with the offset in the
 * text, where stored bytes are damaged or missing. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_raw_next(struct tracelake_raw *raw,
                                                        const void **data, size_t *n,
                                                        struct tracelake_error *error);
TRACELAKE_API void tracelake_raw_close(struct tracelake_raw *raw); /* NULL is fine */
/* What a decoder must know of the trace, INI text as it was pushed; free `*setup` with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_setup(struct tracelake *lake, const char *trace,
                                                         char **setup,
                                                         struct tracelake_error *error);

#ifdef __cplusplus
}
#endif

#include "tracelake_lookups.h"

#endif
