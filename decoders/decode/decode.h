/* SPDX-License-Identifier: MIT */
/*
 * A whole decode: raw bytes of one capture in, flow items per stream out. This is the one
 * entry to the decoders, used by the server, the command line, tests, fuzzers and benchmarks.
 *
 * Same bytes give the same items, whatever the chunking and however many threads help. Not
 * thread-safe: an object is used by one thread at a time; objects are independent of each other. No
 * I/O, no global state, no threads but those of a crew that it is told to use.
 */
#ifndef TL_DECODE_DECODE_H
#define TL_DECODE_DECODE_H

#include "base/bytes.h"
#include "flow/item.h"
#include "setup/setup.h"

struct tl_decode;
struct tl_crew;
struct tl_run;

/* One stream, announced before its first item. Owned by the decode. */
struct tl_decode_stream {
    uint32_t index; /* 0, 1, … in order of appearance */
    const char *name;
    enum tl_protocol protocol;
    const struct tl_source *source; /* NULL where the setup does not know it */
    enum tl_isa isa;                /* as long as nothing in it tells; TL_ISA_NONE: not known */
};

/* Bytes that could not be used, of one stream or (stream NULL) of the container. */
struct tl_decode_loss {
    const struct tl_decode_stream *stream;
    const char *reason; /* borrowed for the call, e.g. "bad packet header" */
    uint64_t offset;    /* file offset of the first byte */
    uint64_t bytes;     /* how many, 0 if not known */
    bool fault;         /* the input is damaged; else a capture's normal beginning or overflow */
};

struct tl_decode_sink {
    void *context;
    /* NULL members are not called. A result < 0 stops the decode and is returned by it. */
    int (*stream)(void *context, const struct tl_decode_stream *stream);
    int (*items)(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                 size_t n);
    /* One line (no line end) per packet, in the form of `--packets`. Costs speed: set it only
     * to list packets. */
    int (*packet)(void *context, const struct tl_decode_stream *stream, const char *line);
    /* A stream's bytes on their way to its decoder, with their places in the capture, before
     * anything comes of them; of DI datagrams (stream NULL) the container's. With `packet` only. */
    int (*bytes)(void *context, const struct tl_decode_stream *stream, const struct tl_run *run);
    int (*loss)(void *context, const struct tl_decode_loss *loss);
    /*
     * Both or none, and only asked where a crew helps (tl_decode_crew()). Where what `items` does
     * can be done in two steps: `digest` adds what comes of a batch to `out`, by any thread, also
     * several at once; `out` was empty in front of the first batch, and nothing of the stream is
     * left out between two. `digested` takes it in its turn, in place of the items.
     */
    int (*digest)(void *context, const struct tl_decode_stream *stream, struct tl_buf *out,
                  const struct tl_item *items, size_t n);
    int (*digested)(void *context, const struct tl_decode_stream *stream, struct tl_bytes digest);
};

/*
 * `setup` and `image` (frozen, may be NULL) are borrowed for the object's life; `sink` is
 * copied. Errors: TL_UNSUPPORTED and TL_USAGE with a text that says what to do, TL_NOMEM.
 */
TL_MUST_USE int tl_decode_new(struct tl_decode **out, const struct tl_setup *setup,
                              const struct tl_image *image, const struct tl_decode_sink *sink,
                              struct tl_fail *fail);
void tl_decode_free(struct tl_decode *decode);

/*
 * The sink's `items` takes PATH items: many blocks in one item, for speed. To be said before the
 * first push.
 */
void tl_decode_paths(struct tl_decode *decode);
/* Blocks of items have this ready where the format can (flow/block.h). Before the first push. */
void tl_decode_code(struct tl_decode *decode, tl_block_code *code);

/*
 * Have the crew's threads (base/crew.h; borrowed) help with what is pushed from now on; NULL, as
 * at first: none, and memory that this took is freed. Between two pushes. Streams are split at
 * their synchronisation points (decode/split.h): the sink is called by the pushing thread alone,
 * but for `digest`. With a crew, what was pushed may wait until tl_decode_flush(), or until
 * TL_DECODE_PUSH bytes of a stream wait: the more that is, the more is gained, and what comes of it
 * is the same. TL_NOMEM, or what the sink returned.
 */
TL_MUST_USE int tl_decode_crew(struct tl_decode *decode, struct tl_crew *crew);

/* Another number wherever something is decoded otherwise than before: what was made by another one
 * is decoded anew before anything is made to go with it. */
#define TL_DECODE_VERSION 3

#define TL_DECODE_PUSH ((size_t)4 << 20)

/* Everything that comes of what was pushed is delivered when it returns. As tl_decode_push(). */
TL_MUST_USE int tl_decode_flush(struct tl_decode *decode);

/*
 * What is pushed from now on had arrived by `ns` (any epoch; never falling; 0: not known, as at
 * first). Where a format's own timestamps wrap, this tells how often they did.
 */
void tl_decode_arrival(struct tl_decode *decode, uint64_t ns);

/* Take the next bytes, all of them. Bad input is reported through the sink, never an error. */
TL_MUST_USE int tl_decode_push(struct tl_decode *decode, const uint8_t *p, size_t n);

/*
 * The next `n` bytes of the capture are lost (damaged in the store): nothing goes on across them.
 * Streams end and begin anew behind a gap; offsets go on. TL_UNSUPPORTED: the format cannot be
 * taken up again in the middle, all that can be done is to finish.
 */
TL_MUST_USE int tl_decode_lost(struct tl_decode *decode, uint64_t n);

/*
 * How bytes that were pushed are read again: exactly `n` from `offset` of the capture on, into
 * `out`. So states need not hold them; a format says in which of its states they are missing then.
 * To be said before the first push or tl_decode_load(). Returns TL_OK, or an error that the load
 * returns.
 */
typedef int tl_decode_read(void *context, uint64_t offset, uint8_t *out, size_t n);
void tl_decode_again(struct tl_decode *decode, tl_decode_read *read, void *context);

/*
 * Where the decode stands, between two pushes, with a crew behind a flush: appended to `out`, for
 * tl_decode_load() of the same program with the same setup and image. TL_AGAIN: not here, but a
 * little later; TL_UNSUPPORTED: not of this format; TL_NOMEM. `out` is of no use then.
 */
TL_MUST_USE int tl_decode_save(struct tl_decode *decode, struct tl_buf *out);

/*
 * Go on where another decode stood when it was saved: what is pushed next gives what it would have
 * given. Streams are announced again, in the same order. For a decode that nothing was pushed to.
 * TL_BAD: these bytes are no such state; TL_UNSUPPORTED: of this format, or bytes of the capture
 * cannot be read again; what reading them returned; TL_NOMEM. The decode is only to be freed then.
 */
TL_MUST_USE int tl_decode_load(struct tl_decode *decode, struct tl_bytes bytes);

/* No more bytes: deliver what is pending. Call once. */
TL_MUST_USE int tl_decode_finish(struct tl_decode *decode);

#endif
