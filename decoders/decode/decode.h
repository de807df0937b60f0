/* SPDX-License-Identifier: MIT */
/*
 * A complete decode: raw bytes of one capture in, flow items per stream out. This is the only entry
 * point to the decoders, used by the server, the command line, tests, fuzzers and benchmarks.
 *
 * The same bytes give the same items for any chunking and any number of helper threads. Not
 * thread-safe: an object is used by one thread at a time; objects are independent of each other. No
 * I/O, no global state, no threads other than those of the crew set by tl_decode_set_crew().
 */
#ifndef TL_DECODE_DECODE_H
#define TL_DECODE_DECODE_H

#include "base/bytes.h"
#include "flow/item.h"
#include "setup/setup.h"

struct tl_decode;
struct tl_crew;
struct tl_run;

/* A stream, announced before its first item. Owned by the decode. */
struct tl_decode_stream {
    uint32_t index; /* 0, 1, … in order of appearance */
    const char *name;
    enum tl_protocol protocol;
    const struct tl_source *source; /* NULL if the setup has no such source */
    /* initial instruction set, until the trace reports one; TL_ISA_NONE: unknown */
    enum tl_isa isa;
};

/* Bytes that could not be decoded, in a stream or (stream NULL) in the container. */
struct tl_decode_loss {
    const struct tl_decode_stream *stream;
    const char *reason; /* borrowed for the call, e.g. "bad packet header" */
    uint64_t offset;    /* file offset of the first byte */
    uint64_t bytes;     /* number of bytes, 0 if unknown */
    /* damaged input; false for the normal start of a capture or a trace unit overflow */
    bool fault;
};

struct tl_decode_sink {
    void *context;
    /* Any member may be NULL. A result < 0 stops the decode, which returns it. */
    int (*stream)(void *context, const struct tl_decode_stream *stream);
    int (*items)(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                 size_t n);
    /* Receive one line (without line end) per packet, in the format of `--packets`. Slow: set it
     * only to list packets. */
    int (*packet)(void *context, const struct tl_decode_stream *stream, const char *line);
    /* Receive a stream's bytes with their offsets in the capture, just before they are decoded; for
     * DI datagrams (stream NULL) the container's bytes. Called only if `packet` is set. */
    int (*bytes)(void *context, const struct tl_decode_stream *stream, const struct tl_run *run);
    int (*loss)(void *context, const struct tl_decode_loss *loss);
    /*
     * Optional two-step replacement for `items`, used only with a crew (tl_decode_set_crew()); set
     * both or neither. `digest` processes a batch and appends the result to `out`; it may be called
     * by any thread, and by several at once. `out` is empty before the first batch, and consecutive
     * calls with the same `out` get consecutive batches of the stream. `digested` receives the
     * result in stream order, instead of the items.
     */
    int (*digest)(void *context, const struct tl_decode_stream *stream, struct tl_buf *out,
                  const struct tl_item *items, size_t n);
    int (*digested)(void *context, const struct tl_decode_stream *stream, struct tl_bytes digest);
};

/*
 * Create a decode. `setup` and `image` (frozen, may be NULL) are borrowed for the object's life;
 * `sink` is copied. Returns TL_UNSUPPORTED or TL_USAGE with a text that says what to do, or
 * TL_NOMEM.
 */
TL_MUST_USE int tl_decode_new(struct tl_decode **out, const struct tl_setup *setup,
                              const struct tl_image *image, const struct tl_decode_sink *sink,
                              struct tl_fail *fail);
void tl_decode_free(struct tl_decode *decode);

/*
 * The sink's `items` accepts PATH items: many blocks in one item, for speed. Call before the first
 * push.
 */
void tl_decode_allow_paths(struct tl_decode *decode);
/* Set the encoder for `coded` of blocks (flow/block.h), if the format supports it. Call before the
 * first push. */
void tl_decode_set_code(struct tl_decode *decode, tl_block_code *code);

/*
 * Use the crew's threads (base/crew.h; borrowed) for data pushed from now on; NULL, the default:
 * use none and free the memory this needed. Call between pushes. Streams are split at their
 * synchronisation points (decode/split.h). The sink is called by the pushing thread only, except
 * `digest`. With a crew, pushed data may stay pending until tl_decode_flush() or until
 * TL_DECODE_PUSH bytes of a stream are pending: larger batches parallelise better; the result is
 * the same. Returns TL_NOMEM, or what the sink returned.
 */
TL_MUST_USE int tl_decode_set_crew(struct tl_decode *decode, struct tl_crew *crew);

/* Incremented when any input decodes differently than before, or saved states have other members.
 * Results of different versions are not mixed: data decoded by another version is decoded again
 * before it is continued. */
#define TL_DECODE_VERSION 25

#define TL_DECODE_PUSH ((size_t)4 << 20)

/* Deliver everything that results from the data pushed so far. Returns as tl_decode_push(). */
TL_MUST_USE int tl_decode_flush(struct tl_decode *decode);

/*
 * Set the arrival time of data pushed from now on: `ns` in any epoch, never decreasing; 0, the
 * default: unknown. Used to resolve wraps of a format's own timestamps.
 */
void tl_decode_set_arrival(struct tl_decode *decode, uint64_t ns);

/* Decode the next bytes; consumes all of them. Bad input is reported to the sink and is never an
 * error. */
TL_MUST_USE int tl_decode_push(struct tl_decode *decode, const uint8_t *p, size_t n);

/*
 * Skip the next `n` bytes of the capture, which are lost (damaged in the store). Streams restart
 * after the gap; offsets include it. Returns TL_UNSUPPORTED if the format cannot resume in the
 * middle: the decode can then only be finished.
 */
TL_MUST_USE int tl_decode_skip(struct tl_decode *decode, uint64_t n);

/*
 * The connection that the bytes came by was lost behind those pushed so far, and those pushed next
 * came by another one: an unknown number is missing between them, none of the capture's offsets.
 * Streams restart after the gap. `back`: when the first byte behind it had arrived, as for
 * tl_decode_set_arrival(), in ns since 1970; 0: unknown. Returns TL_UNSUPPORTED as
 * tl_decode_skip().
 */
TL_MUST_USE int tl_decode_reconnect(struct tl_decode *decode, uint64_t back);

/*
 * Reread bytes that were pushed: exactly `n` bytes from capture offset `offset` into `out`. With
 * this, saved states need not contain those bytes; a state of a format that relies on it records
 * which bytes it left out. Set it before the first push or tl_decode_load(). Returns TL_OK, or an
 * error that tl_decode_load() returns.
 */
typedef int tl_decode_read(void *context, uint64_t offset, uint8_t *out, size_t n);
void tl_decode_set_reader(struct tl_decode *decode, tl_decode_read *read, void *context);

/*
 * Save the decoder's state: append it to `out`, for tl_decode_load() by the same program with the
 * same setup and image. Call between pushes; with a crew, after a flush. Returns TL_AGAIN: not
 * possible at this point, try a little later; TL_UNSUPPORTED: not possible with this format;
 * TL_NOMEM. On failure discard `out`.
 */
TL_MUST_USE int tl_decode_save(struct tl_decode *decode, struct tl_buf *out);

/*
 * Restore a saved state into a decode that nothing has been pushed to: it continues exactly where
 * the saved one stopped. Streams are announced again, in the same order. Returns TL_BAD: not a
 * valid state; TL_UNSUPPORTED: not possible with this format, or bytes of the capture cannot be
 * read again; what the read function returned; TL_NOMEM. On failure the decode can only be freed.
 */
TL_MUST_USE int tl_decode_load(struct tl_decode *decode, struct tl_bytes bytes);

/* End of input: deliver what is pending. Call once. */
TL_MUST_USE int tl_decode_finish(struct tl_decode *decode);

/* Memory that the decode uses, in bytes: what grows with the input, and roughly the rest. For the
 * pushing thread, also within the sink's callbacks and tl_give_way(). */
size_t tl_decode_bytes(struct tl_decode *decode);

#endif
