/* SPDX-License-Identifier: MIT */
/*
 * What a container decoder and a stream decoder implement. decode/registry.c lists them;
 * tests/toy/toy.c is the smallest stream decoder that has everything.
 */
#ifndef TL_DECODE_OPS_H
#define TL_DECODE_OPS_H

#include "base/state.h"
#include "decode/decode.h"
#include "frame/run.h"

#include <string.h>

/*
 * A container: de-multiplexes a capture and drives stream decoders. Implementations embed
 * struct tl_decode as their first member and set `ops`; contracts as in decode/decode.h.
 */
struct tl_decode_ops {
    const char *name; /* as in FMT: "tpiu", "di", … */
    int (*create)(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail);
    int (*push)(struct tl_decode *decode, const uint8_t *p, size_t n);
    /* Have streams deliver what waits. NULL: nothing ever does. */
    int (*flush)(struct tl_decode *decode);
    int (*finish)(struct tl_decode *decode);
    void (*destroy)(struct tl_decode *decode); /* NULL is fine */
    /* See tl_decode_save(); NULL: that cannot be told. */
    void (*state)(struct tl_decode *decode, struct tl_state *state);
    /* See tl_decode_lost(), `n` > 0; NULL: it cannot be taken up again in the middle. */
    int (*lost)(struct tl_decode *decode, uint64_t n);
};

/* What the streams of a decode use in turn to be decoded by several threads (decode/split.h). */
struct tl_share {
    struct tl_crew *crew;       /* borrowed; NULL: the pushing thread alone */
    struct tl_item_room *rooms; /* owned; those that no stream uses */
};

struct tl_decode {
    const struct tl_decode_ops *ops;
    struct tl_share share;
    uint64_t arrival;     /* of what is pushed, see tl_decode_arrival() */
    bool paths;           /* see tl_decode_paths() */
    tl_block_code *code;  /* see tl_decode_code() */
    tl_decode_read *read; /* see tl_decode_again(); NULL: nobody can */
    void *read_context;
};

/* Bytes of the capture that a state has left out: appended to `out`. */
TL_MUST_USE int tl_decode_reread(const struct tl_decode *decode, uint64_t offset, uint64_t n,
                                 struct tl_buf *out);

/*
 * Reasons of a loss that are no fault of the input: every capture may begin in the middle, and a
 * trace unit says itself when it lost something. All other reasons are faults.
 */
#define TL_LOSS_NOT_SYNC "not synchronised"
#define TL_LOSS_OVERFLOW "trace unit overflow"
#define TL_LOSS_DISCARD  "trace unit discard"
#define TL_LOSS_NO_ID    "no trace ID yet"
/* A fault, of the store. */
#define TL_LOSS_STORED "raw bytes are damaged or missing"

/* Is this reason of a loss a fault of the input? */
static inline bool tl_loss_is_fault(const char *reason)
{
    return strcmp(reason, TL_LOSS_NOT_SYNC) && strcmp(reason, TL_LOSS_OVERFLOW) &&
           strcmp(reason, TL_LOSS_DISCARD) && strcmp(reason, TL_LOSS_NO_ID);
}

/* Where a stream decoder delivers. As struct tl_decode_sink, but of one stream. */
struct tl_stream_sink {
    void *context;
    tl_item_sink *items;                            /* never NULL */
    int (*packet)(void *context, const char *line); /* NULL: do not list packets */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes); /* not NULL */
    bool paths;          /* `items` takes PATH items */
    tl_block_code *code; /* of their blocks; NULL: none */
    int (*digest)(void *context, struct tl_buf *out, const struct tl_item *items, size_t n);
    int (*digested)(void *context, struct tl_bytes digest);
};

/*
 * A stream decoder: the bytes of one trace source to flow items. Implementations embed struct
 * tl_stream_decoder as their first member.
 */
struct tl_stream_decoder {
    const struct tl_stream_ops *ops;
};

/*
 * What a container knows of a stream's processor beside its trace: in force between two pushes, in
 * front of whatever the next bytes say.
 */
struct tl_stream_told {
    uint64_t offset;  /* of the items that come of it */
    uint64_t time;    /* ticks: it is not earlier; 0: not told */
    bool has_context; /* this one counts from now on, and not what the trace says … */
    struct tl_image_context context; /* … of it */
    bool is_gap;                     /* execution went on without a trace */
    uint8_t gap;                     /* enum tl_gap */
    const char *note;                /* up to 63 characters, copied; NULL: none */
};

struct tl_stream_ops {
    const char *name; /* "etm4", "itm", … */
    /* `source` and `image` (may be NULL) are borrowed for the object's life, `sink` is copied.
     * TL_UNSUPPORTED, with what to do, where the configuration cannot be decoded. */
    int (*create)(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail);
    /* Take the whole run; items may wait for flush(). Bad bytes are told through the sink; < 0 only
     * from the sink, NOMEM. */
    int (*push)(struct tl_stream_decoder *decoder, const struct tl_run *run);
    int (*finish)(struct tl_stream_decoder *decoder);
    void (*destroy)(struct tl_stream_decoder *decoder); /* NULL is fine */
    /* At the end of the container's push: deliver what waits. NULL: nothing ever does. */
    int (*flush)(struct tl_stream_decoder *decoder);
    /* Between two pushes of the container: where it stands, into bytes or, if nothing was pushed
     * yet, from them. NULL: that cannot be told. */
    void (*state)(struct tl_stream_decoder *decoder, struct tl_state *state);
    /* How it is decoded by several threads (decode/split.h). NULL: it cannot be. */
    const struct tl_split_ops *split;
    /* Between two pushes: see struct tl_stream_told. NULL: the format has no use for it. */
    int (*tell)(struct tl_stream_decoder *decoder, const struct tl_stream_told *told);
};

/*
 * What a format adds to struct tl_stream_ops, so that a stream is decoded by several threads. Its
 * `flush` and `state` are there then, and `state` saves nothing that does not matter: of two
 * decoders that would say the same of whatever comes it saves the same bytes.
 */
struct tl_split_ops {
    /*
     * Index of the first byte of the first synchronisation point in p[0..n): one that a decoder can
     * begin at, and behind which the trace says again all that it may leave out elsewhere. `n`:
     * there is none. What looks like one and is none costs time only.
     */
    size_t (*find_sync)(const uint8_t *p, size_t n);
    /*
     * p[0..n) begins with a synchronisation point: index behind all that the trace says again
     * there, where a push may end without a trace in the items, between two that are not joined.
     * `n`: not known.
     */
    size_t (*find_rest)(const struct tl_stream_decoder *decoder, const uint8_t *p, size_t n);
    /* As just made; decoded blocks are kept. What waits to be delivered is dropped. */
    void (*reset)(struct tl_stream_decoder *decoder);
    struct tl_walker *(*walker)(struct tl_stream_decoder *decoder);
};

extern const struct tl_decode_ops tl_coresight_ops; /* tpiu, and single sources */
extern const struct tl_decode_ops tl_osd_ops;       /* di */
extern const struct tl_decode_ops tl_stf_ops;       /* stf */
extern const struct tl_decode_ops tl_perf_ops;      /* perf */

extern const struct tl_stream_ops tl_etm4_ops; /* ETMv4 and ETE */
extern const struct tl_stream_ops tl_itm_ops;
extern const struct tl_stream_ops tl_stm_ops;
extern const struct tl_stream_ops tl_pt_ops;

#endif
