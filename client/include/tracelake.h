/* SPDX-License-Identifier: MIT */
/*
 * libtracelake: push hardware traces to a tracelake server and fetch ranges of decoded instructions
 * from it. This is the only header that a program needs:
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
 * argument may always be NULL. Strings and structs passed to a function are borrowed for the call
 * only, unless a comment says otherwise; what a function hands out is freed with the function named
 * next to it, and freeing NULL is allowed.
 *
 * Threads: all calls block. A connection and everything opened on it belong to one thread at a
 * time; different connections are independent. Only tracelake_interrupt() may be called from any
 * thread. Writing to a closed connection raises no signal.
 *
 * Wire: gRPC over HTTP/2, one TCP connection for all calls. A broken connection is re-established
 * by the next call that needs it.
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
    TRACELAKE_EOF = -4,          /* orderly end: no more elements */
    TRACELAKE_AGAIN = -5,        /* nothing available yet */
    TRACELAKE_NOTFOUND = -6,     /* no such trace, stream or image on the server */
    TRACELAKE_EXISTS = -7,       /* already exists, or is held by another rig */
    TRACELAKE_UNSUPPORTED = -8,  /* the server does not know this call or format */
    TRACELAKE_LIMIT = -9,        /* exceeds a limit */
    TRACELAKE_USAGE = -10,       /* invalid arguments */
    TRACELAKE_NOSPACE = -11,     /* the server's disk is full */
    TRACELAKE_DENIED = -12,      /* not permitted: token, certificate, or state of the trace */
    TRACELAKE_CANCELLED = -13,   /* interrupted by tracelake_interrupt() */
    TRACELAKE_UNREACHABLE = -14, /* the server cannot be reached, or the connection was lost */
    TRACELAKE_TIMEOUT = -15      /* no answer within the time limit */
};

/*
 * Description of a failure. Filled when a function returns a negative result other than
 * TRACELAKE_EOF.
 */
struct tracelake_error {
    int code;        /* enum tracelake_result */
    int grpc_status; /* status returned by the server; UNAVAILABLE (14), too, if it ended a new
                        connection without a word; 0 if the error arose locally */
    char text[512];  /* one line: what is wrong; what to do */
};

/* Short lower-case name of a result, e.g. "unreachable". Static storage. */
TRACELAKE_API const char *tracelake_result_name(int result);

/* Version of this header, for `#if TRACELAKE_VERSION_NUMBER >= TRACELAKE_VERSION_OF(0, 2, 0)`. */
#define TRACELAKE_VERSION_MAJOR                   0
#define TRACELAKE_VERSION_MINOR                   1
#define TRACELAKE_VERSION_PATCH                   0
#define TRACELAKE_VERSION_OF(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define TRACELAKE_VERSION_NUMBER                                                                   \
    TRACELAKE_VERSION_OF(TRACELAKE_VERSION_MAJOR, TRACELAKE_VERSION_MINOR, TRACELAKE_VERSION_PATCH)
#define TRACELAKE_VERSION "0.1.0"
/* Version of the library that is used, "0.1.0". Static storage. */
TRACELAKE_API const char *tracelake_version(void);

#define TRACELAKE_END UINT64_MAX /* end of a range: the end of the stream */

/* ---- connection --------------------------------------------------------------------------- */

struct tracelake;

/* Zero-initialise, then set the members you need; NULL strings and 0 select the default. */
struct tracelake_options {
    const char *token;       /* sent as `authorization: Bearer TOKEN` */
    const char *cafile;      /* https: PEM file of trusted certificates; default: the system's */
    const char *fingerprint; /* https: SHA-256 of the server's certificate, 64 hex digits, colons
                                and a "sha256:" prefix allowed; several, separated by commas, if the
                                servers have different certificates. Replaces all other checks */
    bool insecure;           /* https: accept any certificate. For tests only */
    int connect_ms;          /* time limit to connect, 0: 10,000 */
    int timeout_ms;          /* time limit of each call without any progress, 0: 60,000; -1: none */
    const char *certfile;    /* https: PEM file of the client certificate; NULL: none */
    const char *keyfile; /* PEM file of the client certificate's key; NULL: it is in `certfile` */
    bool mangled;        /* C++ and Rust functions are named as in their files, not demangled */
};

/*
 * Connect to `url`: http://HOST[:PORT] (HTTP/2 without TLS, default port 7070) or
 * https://HOST[:PORT] (default port 7443). IPv6 addresses are written in brackets. The options are
 * copied. Errors: UNREACHABLE, DENIED (certificate), TIMEOUT, USAGE (URL), NOMEM.
 *
 * `url` may list several URLs, separated by commas, which are servers of one lake; a host name with
 * several addresses counts the same way. The first server that answers is used. When it goes away,
 * reports that it cannot serve now (UNAVAILABLE) or stops answering, the library fails over to the
 * next one. Calls are repeated there for up to 10 s, except calls that would change something a
 * second time if the first attempt took effect (delete, redecode, bind, notes). A fetch, raw bytes
 * and followed streams continue where they were, without duplicates or omissions; a push continues
 * after the durable bytes.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_connect(struct tracelake **out, const char *url,
                                                       const struct tracelake_options *options,
                                                       struct tracelake_error *error);

/* Close and free. Everything opened on the connection must be closed before. */
TRACELAKE_API void tracelake_close(struct tracelake *lake);

/*
 * Make the currently blocking call and all later ones return TRACELAKE_CANCELLED. May be called
 * from any thread and from a signal handler.
 */
TRACELAKE_API void tracelake_interrupt(struct tracelake *lake);
/* Undo tracelake_interrupt(), for example to finish a push. */
TRACELAKE_API void tracelake_resume(struct tracelake *lake);

/*
 * The connection's socket, for the program's own poll(). When it becomes readable, or writable if
 * `*writing` is set (`writing` may be NULL), call the pending function: tracelake_push_serve() with
 * 0 ms, or tracelake_insns_next() of a followed stream. Returns -1 if there is no connection: call
 * at once. The descriptor changes whenever the connection is re-established: ask before each
 * poll().
 */
TRACELAKE_API int tracelake_descriptor(const struct tracelake *lake, bool *writing);

/* ---- push --------------------------------------------------------------------------------- */

struct tracelake_push;

/* Zero-initialise, then set the members you need. */
struct tracelake_push_options {
    const char *rig;     /* name of the sender, [A-Za-z0-9._-]+; required */
    const char *trace;   /* wanted trace id, same characters; NULL: the server chooses one */
    const char *setup;   /* decoder setup, INI text; must be the same on resume; required */
    bool resume;         /* the trace may already exist: continue at its durable offset */
    size_t window_bytes; /* unacknowledged bytes kept for a reconnect, 0: 16 MiB */
    size_t chunk_bytes;  /* maximum bytes per message, 0: 256 KiB, at most 4 MiB - 64 KiB */
    int retry_ms;        /* how long to keep trying to reconnect, 0: 30,000; -1: forever, -2: do not
                            reconnect */
    /* Called when the connection is lost and when it is back; may be NULL. */
    void (*notice)(void *context, const char *text);
    void *context;
    const char *shards; /* for a new trace, "stored" or "virtual"; NULL: the server's default */
    const char *index;  /* for a new trace, "now", "behind" or "auto"; NULL: the same */
};

/*
 * Begin or resume a capture. A capture is a sequence of bytes numbered from 0. The server decides
 * at which offset the client continues (tracelake_push_offset()): 0 for a new trace, otherwise
 * after the bytes it has stored durably, which tracelake_push_compare() compares with those of the
 * capture. Errors: EXISTS (the trace exists and `resume` is not set, another rig holds it, or it
 * has another setup), BAD (setup), DENIED, NOSPACE, UNREACHABLE.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_open(struct tracelake_push **out,
                                                         struct tracelake *lake,
                                                         const struct tracelake_push_options *opt,
                                                         struct tracelake_error *error);

/* The trace's id. Valid until tracelake_push_close(). */
TRACELAKE_API const char *tracelake_push_trace(const struct tracelake_push *push);
/* Offset of the next byte to write; right after opening, where to continue. */
TRACELAKE_API uint64_t tracelake_push_offset(const struct tracelake_push *push);
/* Everything before this offset is durable on the server: it survives a power cut. */
TRACELAKE_API uint64_t tracelake_push_acked(const struct tracelake_push *push);
/*
 * Report that the trace's setup has changed since the push began (tracelake_redecode()), so that a
 * reconnect presents the new one. `setup` is copied. On NOMEM the push is unchanged.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_push_setup(struct tracelake_push *push, const char *setup, struct tracelake_error *error);

/*
 * Append bytes to the capture. They are copied into the window and sent as soon as the connection
 * accepts them; blocks while the window is full. If the connection breaks, it is re-established and
 * the unacknowledged bytes are sent again from the server's durable offset: nothing is lost or
 * duplicated. Errors: as for open; EXISTS if the trace has bytes of another push; IO if the server
 * has lost bytes that it had acknowledged; CANCELLED: not everything was accepted, see
 * tracelake_push_offset(). After any other error the session can only be closed (and the trace
 * resumed).
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_write(struct tracelake_push *push,
                                                          const void *data, size_t n,
                                                          struct tracelake_error *error);
/* Serve the connection for up to `ms` milliseconds (for example between bursts of a live rig): send
 * pending bytes, receive acknowledgements. Returns early when everything is acknowledged, and late
 * if the connection had to be re-established. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_serve(struct tracelake_push *push, int ms,
                                                          struct tracelake_error *error);
/* Wait until every byte written is durable. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_flush(struct tracelake_push *push,
                                                          struct tracelake_error *error);
/*
 * Mark the capture as complete: wait until all bytes are durable and report the end to the server,
 * which compares their checksum (EXISTS: it has other bytes).
 * Call tracelake_push_close() afterwards.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_finish(struct tracelake_push *push,
                                                           struct tracelake_error *error);
/* Free. A capture that was not finished stays open on the server and can be resumed. */
TRACELAKE_API void tracelake_push_close(struct tracelake_push *push);

/*
 * What a server has of a capture. A name and a length do not identify it: compare its bytes before
 * continuing it, or before taking a complete trace for the capture at hand.
 */
struct tracelake_stored {
    uint64_t durable; /* bytes */
    bool complete;    /* nothing can be appended */
    char content[72]; /* hash of these bytes: "sha256:<64 hex>" or, while that is not known,
                         "crc32c:<8 hex>"; "": there are none, or the server cannot tell */
};
/* What a trace had when its push was opened or reconnected. */
TRACELAKE_API void tracelake_push_stored(const struct tracelake_push *push,
                                         struct tracelake_stored *out);
/*
 * Compare the capture with what the server had when the push was opened: pass its bytes before
 * tracelake_push_offset(), in order, in any number of pieces, before the first write. The last
 * piece gives the result: EXISTS: they are others, so this is another capture; close the push.
 * UNSUPPORTED: the server cannot tell.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_push_compare(struct tracelake_push *push,
                                                            const void *data, size_t n,
                                                            struct tracelake_error *error);
/* The same without a push: what a trace has now. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_stored(struct tracelake *lake, const char *trace,
                                                          struct tracelake_stored *out,
                                                          struct tracelake_error *error);
/* Compares bytes with a hash; free with tracelake_content_free(), which accepts NULL. `hash`: one
 * of the kind that they will be compared with. */
struct tracelake_content;
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_content_new(struct tracelake_content **out,
                                                           const char *hash,
                                                           struct tracelake_error *error);
TRACELAKE_API void tracelake_content_add(struct tracelake_content *content, const void *data,
                                         size_t n);
/* Do the bytes added so far have this hash? OK, EXISTS, UNSUPPORTED, as above; more may be added.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_content_same(const struct tracelake_content *content,
                                                            const char *hash,
                                                            struct tracelake_error *error);
TRACELAKE_API void tracelake_content_free(struct tracelake_content *content);

/* Durable offset of a trace, and whether its capture is complete. `complete` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_offset(struct tracelake *lake, const char *trace,
                                                      uint64_t *durable, bool *complete,
                                                      struct tracelake_error *error);

/* ---- program images ----------------------------------------------------------------------- */

struct tracelake_image {
    char sha256[72]; /* "sha256:" and 64 hex digits: its name in setups and bindings */
    char name[128];
    char build_id[64];
    uint64_t size;
};

/* Store an image. Content that the server already has is not sent again. `image` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_image(struct tracelake *lake, const char *name,
                                                         const void *data, size_t n,
                                                         struct tracelake_image *image,
                                                         struct tracelake_error *error);
/*
 * Store a source file, so that source lines are shown with their text. `path` is compared with the
 * paths in the debug information, from their ends. `image`: the "sha256:…" of the image that was
 * built from the file; NULL: for all images that have no such file of their own.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_source(struct tracelake *lake, const char *image,
                                                          const char *path, const void *text,
                                                          size_t n, struct tracelake_error *error);
/* Store an image read from a file. Additional error: IO, with the system's message. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_image_file(struct tracelake *lake,
                                                              const char *path,
                                                              struct tracelake_image *image,
                                                              struct tracelake_error *error);
/* Content of an image, named by its hash ("sha256:…") or as "build-id:<hex>"; free `*data` with
 * free(). `image` may be NULL. Errors: NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_image(struct tracelake *lake, const char *name,
                                                         void **data, size_t *n,
                                                         struct tracelake_image *image,
                                                         struct tracelake_error *error);
/*
 * Remove an image, named by its hash, or the beginning of it, as "build-id:<hex>" or by its name.
 * `image` (may be NULL) receives it. Errors: NOTFOUND; DENIED: traces refer to it, and not `force`;
 * USAGE: several have that name.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_remove_image(struct tracelake *lake,
                                                            const char *name, bool force,
                                                            struct tracelake_image *image,
                                                            struct tracelake_error *error);
/* All images; free `*images` with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_list_images(struct tracelake *lake,
                                                           struct tracelake_image **images,
                                                           size_t *n,
                                                           struct tracelake_error *error);

struct tracelake_binding {
    const char *sha256;
    uint64_t address;  /* load address; for an ELF file a bias that is added to its addresses */
    uint64_t offset;   /* offset in the image of the first mapped byte */
    uint64_t length;   /* 0: to the end of the image */
    const char *space; /* NULL: any; otherwise el1n, el3, … */
    /* The image is mapped only while these identifiers are current; false: regardless of them. */
    bool has_context_id, has_vmid;
    uint32_t vmid;
    uint64_t context_id;
    /* The image is mapped at times from <= t < until, in timestamp ticks; until 0: to the end. */
    uint64_t from, until;
};

/* Add an image to a trace's setup; the server then decodes the trace again. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_bind_image(struct tracelake *lake, const char *trace,
                                                          const struct tracelake_binding *binding,
                                                          struct tracelake_error *error);

/* ---- catalog ------------------------------------------------------------------------------ */

enum tracelake_state {
    TRACELAKE_STATE_UNKNOWN,
    TRACELAKE_LIVE,     /* a rig is pushing it, or may resume */
    TRACELAKE_DECODING, /* the capture is complete, decoding is not */
    TRACELAKE_SEALED,   /* capture and decoding are complete */
    TRACELAKE_FAILED    /* decoding stopped for the reason in `message`; the raw bytes are kept */
};

/*
 * Relation of a stream's time to the server's clock, derived from the arrival of its bytes:
 * unix_ns(t) = unix_ns + (t - at) * rate. The result is later than the real time by the shortest
 * delay between the trace source and the server.
 */
struct tracelake_stream_clock {
    uint64_t pairs;    /* samples of (time, arrival) it is based on; 0: the relation is not known */
    uint64_t at;       /* a time in the middle of the trace */
    uint64_t unix_ns;  /* the server's clock at that time */
    double rate;       /* ns of the server's clock per unit of the trace's time */
    double rate_error; /* error bound of `rate`, ± */
    uint64_t spread_ns; /* additional delay within which 95 % of the samples arrived */
};

struct tracelake_stream {
    char *name;     /* "cs.10", "di.0.1", "pt.0" */
    char *protocol; /* "etm4", … */
    char *core;     /* as named by the setup; "" if it names none */
    char *device;   /* name of the source in the board's description; "" if none */
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
    bool time_unit_ns; /* false: ticks of the source's clock */
    struct tracelake_stream_clock clock;
    /* What is decoded ahead of the index (tracelake_push_options.index): the end of its positions,
     * and its last timestamp. 0: nothing is. */
    uint64_t outlined_insns;
    uint64_t outlined_time;
    /* Between two timestamps, on average; 0: there are not two. Durations without bounds that are
     * shorter are estimates. */
    uint64_t time_step;
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
    uint64_t raw_bytes;     /* durable bytes */
    uint64_t decoded_bytes; /* how many of them are decoded */
    uint64_t generation;
    uint64_t revision;
    char *message; /* last problem, "" if none */
    struct tracelake_label *labels;
    size_t n_labels;
    struct tracelake_stream *streams;
    size_t n_streams;
    bool raw_removed;     /* by retention: the trace cannot be decoded again */
    bool decoded_removed; /* by retention: decoding again restores it */
    char *content; /* "sha256:…" of the raw bytes, "" until the capture is complete; accepted as the
                      trace's name wherever it is read */
};

struct tracelake_list {
    struct tracelake_trace *traces; /* newest first */
    size_t n;
    uint64_t revision; /* revision of the catalog */
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

/* Wait until a complete capture is also decoded: SEALED or FAILED (or until it is LIVE again).
 * `out` as for tracelake_get_trace(). If the server is away, waits for it as a push does. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_wait_sealed(struct tracelake *lake,
                                                           const char *trace,
                                                           struct tracelake_trace **out,
                                                           struct tracelake_error *error);

/*
 * End a capture whose rig is gone: it becomes complete with the bytes that the server has. `out`
 * may be NULL. Errors: NOTFOUND, DENIED while a rig is pushing it. Does nothing if it is already
 * complete.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_seal(struct tracelake *lake, const char *trace,
                                                    struct tracelake_trace **out,
                                                    struct tracelake_error *error);
/* Remove a trace. Errors: NOTFOUND, DENIED while a rig is pushing it. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_delete(struct tracelake *lake, const char *trace,
                                                      struct tracelake_error *error);
/*
 * Remove `n` traces in one request. errors[i] receives the result for traces[i], with code
 * TRACELAKE_OK if it was removed. Returns TRACELAKE_OK if all were removed, otherwise the result of
 * the first that was not, or of the request itself.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_delete_all(struct tracelake *lake,
                                                          const char *const *traces, size_t n,
                                                          struct tracelake_error *errors);

/* Merge labels into those of a trace; an empty value removes the key. `out` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_set_labels(struct tracelake *lake, const char *trace,
                                                          const struct tracelake_label *labels,
                                                          size_t n, struct tracelake_trace **out,
                                                          struct tracelake_error *error);
/*
 * Decode the raw bytes again, with a new setup or (NULL) with the present one. `out` may be NULL.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_redecode(struct tracelake *lake, const char *trace,
                                                        const char *setup,
                                                        struct tracelake_trace **out,
                                                        struct tracelake_error *error);
/* Decode the raw bytes again with the setup before the present one. `out` may be NULL. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_redecode_back(struct tracelake *lake,
                                                             const char *trace,
                                                             struct tracelake_trace **out,
                                                             struct tracelake_error *error);
/* Check every stored byte of one trace, or ("") of all traces and the catalog. `*report` receives
 * one line per finding; free it with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_verify(struct tracelake *lake, const char *trace,
                                                      bool repair, uint32_t *findings,
                                                      char **report, struct tracelake_error *error);

/* How long the data of the traces in a scope is kept; 0: no limit. */
struct tracelake_retention {
    char scope[160]; /* "": all traces; "label KEY=VALUE"; "trace ID" */
    uint64_t raw_age_s;
    uint64_t raw_bytes; /* total for all traces in the scope */
    uint64_t decoded_age_s;
    uint64_t decoded_bytes;
};
/* All rules; free `*rules` with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_list_retention(struct tracelake *lake,
                                                              struct tracelake_retention **rules,
                                                              size_t *n,
                                                              struct tracelake_error *error);
/* What retention would remove now. */
struct tracelake_victim {
    char trace[64];
    char what[16];   /* "raw", "decoded", "shards": these would become virtual */
    char scope[160]; /* of the rule */
    bool by_age;     /* otherwise by size */
    uint64_t age_s;
    uint64_t limit; /* s or bytes */
    uint64_t bytes;
};
/* List that, with `rule` (may be NULL) instead of the one of its scope; free `*victims` with
 * free().
 * `*paused`: the server's clock is in doubt, so that nothing is removed because of its age. */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_plan_retention(struct tracelake *lake, const struct tracelake_retention *rule,
                         struct tracelake_victim **victims, size_t *n, bool *paused,
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
    TRACELAKE_BYTE, /* raw byte offset */
    TRACELAKE_NS    /* time in ns; USAGE for a stream whose clock rate is not known */
};

enum tracelake_format {
    TRACELAKE_ZSTF,
    TRACELAKE_STF,
    TRACELAKE_TEXT,
    TRACELAKE_JSON,
    TRACELAKE_NAMED /* text, with the function of each instruction by the server's images */
};

struct tracelake_range {
    const char *trace;
    const char *stream;
    enum tracelake_unit unit;
    uint64_t from; /* first position, in units */
    uint64_t to;   /* end, exclusive; or TRACELAKE_END */
};

/* Iteration over instructions. */

struct tracelake_insns;

enum tracelake_insn_kind {
    TRACELAKE_EXECUTED, /* an executed instruction */
    TRACELAKE_UNKNOWN,  /* an executed instruction with unknown encoding: no image covered it */
    TRACELAKE_BRANCH    /* a taken branch, in streams of branches only (Open SoC Debug CTM) */
};

struct tracelake_insn {
    uint64_t index;  /* within the stream, from 0 */
    uint64_t pc;     /* BRANCH: its source, 0 if not known */
    uint64_t target; /* BRANCH: its destination, otherwise 0 */
    uint32_t opcode; /* value of a 2- or 4-byte encoding (T32: first halfword first), otherwise 0 */
    uint8_t kind;    /* enum tracelake_insn_kind */
    uint8_t size;    /* encoding length in bytes, 0: not known */
    uint8_t bytes[18]; /* encoding in memory order */
};

/* Errors: NOTFOUND, USAGE. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_insns_open(struct tracelake_insns **out,
                                                          struct tracelake *lake,
                                                          const struct tracelake_range *range,
                                                          struct tracelake_error *error);
/* Return the next instruction, or TRACELAKE_EOF (streams of software trace have none). BAD: the
 * server sent data that is not STF, or fewer instructions than it had announced. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_insns_next(struct tracelake_insns *insns,
                                                          struct tracelake_insn *out,
                                                          struct tracelake_error *error);
/* First instruction index of the range and number of instructions, as resolved by the server. */
TRACELAKE_API void tracelake_insns_extent(const struct tracelake_insns *insns, uint64_t *first,
                                          uint64_t *count);
TRACELAKE_API void tracelake_insns_close(struct tracelake_insns *insns);

/* ---- flow --------------------------------------------------------------------------------- */

/*
 * All elements of a range, each with the time, mode and context current at that point. Also follows
 * a live stream as it grows.
 */
struct tracelake_flow;

/* One element of flow text (docs/flow-text.md). Strings are valid until the next call. */
struct tracelake_item {
    uint64_t at; /* position in the stream */
    /* I, N: address of the instruction; X: the preferred return address; otherwise 0. */
    uint64_t pc;
    uint64_t time;              /* last timestamp up to here, if has_time: ns, or ticks */
    const char *mode;           /* "el1.ns.a64"; "" before the trace has reported it */
    const char *context, *vmid; /* as in flow text; "" before the trace has reported it */
    const char *text;           /* the rest of the line after the kind letter */
    char kind;                  /* kind letter: I N B X R M C T Y V S G O A */
    bool has_time;
};

/* Errors: NOTFOUND, USAGE. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_flow_open(struct tracelake_flow **out,
                                                         struct tracelake *lake,
                                                         const struct tracelake_range *range,
                                                         struct tracelake_error *error);
/*
 * Follow a live stream from position `from` until the trace is sealed. A broken connection is
 * re-established, for up to ten minutes, without repeating elements.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_flow_follow(struct tracelake_flow **out, struct tracelake *lake, const char *trace,
                      const char *stream, uint64_t from, struct tracelake_error *error);
/* Return the next element, or TRACELAKE_EOF. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_flow_next(struct tracelake_flow *flow,
                                                         struct tracelake_item *out,
                                                         struct tracelake_error *error);
TRACELAKE_API void tracelake_flow_close(struct tracelake_flow *flow);

/* ---- questions in SQL ------------------------------------------------------------------------ */

/* SQLite's SELECT over tables of traces, functions, instructions, calls, events …: docs/sql.md. */
struct tracelake_question {
    const char *trace; /* whose rows the tables have, unless the question names others */
    const char *text;
    uint64_t rows;    /* the answer ends after so many; 0: 100,000 */
    uint32_t seconds; /* at most 30; 0: 30 */
};
enum tracelake_column_kind { TRACELAKE_INTEGER, TRACELAKE_REAL, TRACELAKE_TEXTS };
struct tracelake_column {
    const char *name;
    enum tracelake_column_kind kind; /* of this batch */
    /* One for each row: */
    const int64_t *integers;
    const double *reals;
    const char *const *texts;
    const bool *nulls; /* true: the row has no value */
};
struct tracelake_table {
    size_t n_columns, n_rows;
    const struct tracelake_column *columns;
    bool last, truncated; /* truncated, in the last batch: there are more rows */
};
/* `take` receives the rows in batches, at least one, which is borrowed. A result < 0 of it ends the
 * question and is returned. */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_sql(struct tracelake *lake, const struct tracelake_question *question,
              int (*take)(void *context, const struct tracelake_table *table), void *context,
              struct tracelake_error *error);

/* A range as a file: the pieces, concatenated, are one complete file of the format. */

struct tracelake_fetch;

TRACELAKE_MUST_USE TRACELAKE_API int tracelake_fetch_open(struct tracelake_fetch **out,
                                                          struct tracelake *lake,
                                                          const struct tracelake_range *range,
                                                          enum tracelake_format format,
                                                          struct tracelake_error *error);
/* Fetch a named region of a trace ("NAME.1": tracelake simpoints --save NAME), preceded by the
 * instructions that warm up a simulator. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_fetch_region(struct tracelake_fetch **out,
                                                            struct tracelake *lake,
                                                            const char *trace, const char *region,
                                                            enum tracelake_format format,
                                                            struct tracelake_error *error);
/*
 * Fetch a live stream from instruction `from`, then more as it arrives, until the trace is sealed.
 * `format`: TRACELAKE_TEXT, TRACELAKE_NAMED or TRACELAKE_JSON. Has no time limit.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_follow_open(struct tracelake_fetch **out, struct tracelake *lake, const char *trace,
                      const char *stream, uint64_t from, enum tracelake_format format,
                      struct tracelake_error *error);
/*
 * What is kept of a range: instructions and events that fit all that is given; NULL: any. What is
 * left out is a gap `off`, as if the trace unit had been told so; positions are the stream's.
 */
struct tracelake_filter {
    const char *mode; /* separated by commas: "u" (user), "k" (all others), or the begin of a mode
                         as flow text has it: "el1", "el1.ns", "ring0" */
    const char *process; /* name (*, ?) or number: process ID, context ID */
    const char *thread;
};
/* Does it leave out anything? */
TRACELAKE_API bool tracelake_filters(const struct tracelake_filter *filter);
/* The same with a filter, which the server applies. TRACELAKE_USAGE: no such mode. */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_fetch_filtered(struct tracelake_fetch **out, struct tracelake *lake,
                         const struct tracelake_range *range, const struct tracelake_filter *filter,
                         enum tracelake_format format, struct tracelake_error *error);
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_follow_filtered(struct tracelake_fetch **out, struct tracelake *lake, const char *trace,
                          const char *stream, uint64_t from, const struct tracelake_filter *filter,
                          enum tracelake_format format, struct tracelake_error *error);
/* Number of instructions that a filter kept of a range; known after its last piece. */
TRACELAKE_API uint64_t tracelake_fetch_kept(const struct tracelake_fetch *fetch);
/* Return the next piece, valid until the next call, or TRACELAKE_EOF. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_fetch_next(struct tracelake_fetch *fetch,
                                                          const void **data, size_t *n,
                                                          struct tracelake_error *error);
/* As for instructions; known after the first piece. For a live stream: the extent of the part that
 * the last piece belongs to; parts are consecutive. */
TRACELAKE_API void tracelake_fetch_extent(const struct tracelake_fetch *fetch, uint64_t *first,
                                          uint64_t *count);
/* Free; the rest of the transfer is cancelled. */
TRACELAKE_API void tracelake_fetch_close(struct tracelake_fetch *fetch);

/* Raw bytes, exactly as the rig sent them. */

struct tracelake_raw;

/* Read bytes [from, to) (TRACELAKE_END: all that are durable now). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_raw_open(struct tracelake_raw **out,
                                                        struct tracelake *lake, const char *trace,
                                                        uint64_t from, uint64_t to,
                                                        struct tracelake_error *error);
/* Return the next piece, valid until the next call, or TRACELAKE_EOF. TRACELAKE_IO, with the offset
 * in the text, if stored bytes are damaged or missing. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_raw_next(struct tracelake_raw *raw,
                                                        const void **data, size_t *n,
                                                        struct tracelake_error *error);
/* Was the rig's connection lost in front of the piece returned last? An unknown number of bytes may
 * be missing there. `*before_ns`, `*behind_ns`: when the bytes on both sides had arrived, since
 * 1970; 0: unknown. */
TRACELAKE_API bool tracelake_raw_lost(const struct tracelake_raw *raw, uint64_t *before_ns,
                                      uint64_t *behind_ns);
TRACELAKE_API void tracelake_raw_close(struct tracelake_raw *raw); /* accepts NULL */
/* Decoder setup of a trace, INI text as it was pushed; free `*setup` with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_setup(struct tracelake *lake, const char *trace,
                                                         char **setup,
                                                         struct tracelake_error *error);

#ifdef __cplusplus
}
#endif

#include "tracelake_lookups.h"
#include "tracelake_timing.h"

#endif
