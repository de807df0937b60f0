/* SPDX-License-Identifier: MIT */
/*
 * Interfaces of container decoders and stream decoders. formats/registry.c lists the
 * implementations; tests/toy/toy.c is the smallest complete stream decoder.
 */
#ifndef TL_DECODE_OPS_H
#define TL_DECODE_OPS_H

#include "base/state.h"
#include "decode/decode.h"
#include "frame/run.h"

#include <string.h>

/* A place at which bytes are missing. Borrowed for the call. */
struct tl_decode_hole {
    uint64_t n;         /* the capture's own bytes that are missing; 0: they never reached it */
    const char *reason; /* of the loss */
    const char *note;   /* for each stream, before its gap; NULL: none */
};

/*
 * A container decoder: demultiplexes a capture and drives stream decoders. Implementations embed
 * struct tl_decode as their first member and set `ops`; contracts as in decode/decode.h.
 */
struct tl_decode_ops {
    const char *name; /* as in the setup's format: "tpiu", "di", … */
    int (*create)(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail);
    int (*push)(struct tl_decode *decode, const uint8_t *p, size_t n);
    /* Make streams deliver pending items. NULL: none are ever pending. */
    int (*flush)(struct tl_decode *decode);
    int (*finish)(struct tl_decode *decode);
    void (*destroy)(struct tl_decode *decode); /* accepts NULL */
    /* See tl_decode_save(); NULL: state cannot be saved. */
    void (*state)(struct tl_decode *decode, struct tl_state *state);
    /* See tl_decode_skip() and tl_decode_reconnect(); NULL: cannot resume in the middle. */
    int (*lost)(struct tl_decode *decode, const struct tl_decode_hole *hole);
    size_t (*bytes)(struct tl_decode *decode); /* See tl_decode_bytes(). */
};

/* Resources shared by the streams of a decode for multi-threaded decoding (decode/split.h). One
 * stream uses them at a time. */
struct tl_share {
    struct tl_crew *crew;       /* borrowed; NULL: the pushing thread only */
    struct tl_kept_room *rooms; /* owned, those not in use; memory for decode/kept.h */
    size_t room_bytes;          /* of all, also those in use */
};

struct tl_decode {
    const struct tl_decode_ops *ops;
    struct tl_share share;
    uint64_t arrival;     /* arrival time of the data being pushed, see tl_decode_set_arrival() */
    bool paths;           /* see tl_decode_allow_paths() */
    tl_block_code *code;  /* see tl_decode_set_code() */
    tl_decode_read *read; /* see tl_decode_set_reader(); NULL: not available */
    void *read_context;
    uint64_t at;                  /* offset of the next byte */
    struct tl_setup_loss *losses; /* a copy of the setup's; those in front of `at` are done */
    size_t n_losses;
};

/* Append to `out` capture bytes that a saved state left out. */
TL_MUST_USE int tl_decode_reread(const struct tl_decode *decode, uint64_t offset, uint64_t n,
                                 struct tl_buf *out);

/*
 * Loss reasons that are not faults of the input: a capture may begin in the middle, and end within
 * a packet or message, as buffers do and rigs that are stopped; a trace unit reports its own
 * losses; and TL_LOSS_TIME_RESTART (flow/item.h), by which nothing is lost. All other reasons are
 * faults.
 */
#define TL_LOSS_NOT_SYNC "not synchronised"
#define TL_LOSS_OVERFLOW "trace unit overflow"
#define TL_LOSS_DISCARD  "trace unit discard"
#define TL_LOSS_NO_ID    "no trace ID yet"
#define TL_LOSS_CUT_OFF  "the capture ends within a packet"
/* The same where bytes of the capture are missing behind the packet's begin: a fault. */
#define TL_LOSS_NO_END "the end of a packet is missing"
/* Faults that depend on the program: another one ran, or bytes are damaged. */
#define TL_LOSS_MISFIT                                                                             \
    "trace and program do not fit (another image, or encoder options that --config lacks)"
/* A fault between rig and server: how many bytes it cost is unknown. */
#define TL_LOSS_CONNECTION "connection lost"
/* A fault of the store. */
#define TL_LOSS_STORED "raw bytes are damaged or missing"

/* Does this loss reason denote a fault of the input? */
static inline bool tl_loss_is_fault(const char *reason)
{
    return strcmp(reason, TL_LOSS_NOT_SYNC) && strcmp(reason, TL_LOSS_OVERFLOW) &&
           strcmp(reason, TL_LOSS_DISCARD) && strcmp(reason, TL_LOSS_NO_ID) &&
           strcmp(reason, TL_LOSS_CUT_OFF) && strcmp(reason, TL_LOSS_TIME_RESTART);
}

/* Where a stream decoder delivers. As struct tl_decode_sink, but for one stream. */
struct tl_stream_sink {
    void *context;
    tl_item_sink *items;                            /* never NULL */
    int (*packet)(void *context, const char *line); /* NULL: do not list packets */
    /* never NULL */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
    bool paths;          /* `items` accepts PATH items */
    tl_block_code *code; /* encoder for their blocks; NULL: none */
    int (*digest)(void *context, struct tl_buf *out, const struct tl_item *items, size_t n);
    int (*digested)(void *context, struct tl_bytes digest);
};

/*
 * A stream decoder: turns the bytes of one trace source into flow items. Implementations embed
 * struct tl_stream_decoder as their first member.
 */
struct tl_stream_decoder {
    const struct tl_stream_ops *ops;
};

/*
 * What a container knows about a stream's processor from outside its trace. Applies between two
 * pushes: before anything reported by the bytes that follow.
 */
struct tl_stream_notice {
    uint64_t offset;  /* of the resulting items */
    uint64_t time;    /* lower bound of the current time in ticks; 0: unknown */
    bool has_context; /* from now on use `context` and ignore the trace's own */
    struct tl_image_context context;
    bool is_gap;      /* execution continued untraced */
    uint8_t gap;      /* enum tl_gap */
    const char *note; /* up to 63 characters, copied; NULL: none */
};

struct tl_stream_ops {
    const char *name; /* "etm4", "itm", … */
    /* `source` and `image` (may be NULL) are borrowed for the object's life, `sink` is copied.
     * Returns TL_UNSUPPORTED, with advice in `fail`, if the configuration cannot be decoded. */
    int (*create)(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail);
    /* Decode the whole run; items may stay pending until flush(). Bad bytes are reported to the
     * sink. Returns < 0 only for the sink's errors or TL_NOMEM. */
    int (*push)(struct tl_stream_decoder *decoder, const struct tl_run *run);
    /* No more bytes come: deliver what is complete. What is there of one more packet is a loss for
     * the reason `cut`, TL_LOSS_CUT_OFF or TL_LOSS_NO_END; not zeros, which are memory that the
     * trace unit did not write. */
    int (*finish)(struct tl_stream_decoder *decoder, const char *cut);
    void (*destroy)(struct tl_stream_decoder *decoder); /* accepts NULL */
    /* Bytes are missing between those of `last`, which is finished, and those of `decoder`, which
     * is new: take over what the trace tells by differences only. NULL: there is nothing such. */
    void (*resume)(struct tl_stream_decoder *decoder, const struct tl_stream_decoder *last);
    /* Deliver pending items, at the end of the container's push. NULL: none are ever pending. */
    int (*flush)(struct tl_stream_decoder *decoder);
    /* Save the state, or restore it if nothing has been pushed yet. Called between pushes of the
     * container. NULL: not supported. */
    void (*state)(struct tl_stream_decoder *decoder, struct tl_state *state);
    /* Multi-threaded decoding (decode/split.h). NULL: not supported. */
    const struct tl_split_ops *split;
    /* Apply a struct tl_stream_notice, between pushes. NULL: the format cannot use it. */
    int (*notify)(struct tl_stream_decoder *decoder, const struct tl_stream_notice *notice);
    /* Memory that grows with the input, in bytes. NULL: there is none. */
    size_t (*bytes)(struct tl_stream_decoder *decoder);
};

#define TL_STREAM_BYTES ((size_t)192 << 10) /* of a decoder, besides what grows */

/* Memory of a stream's decoder in bytes; NULL: 0. */
static inline size_t tl_stream_bytes(struct tl_stream_decoder *d)
{
    return d ? TL_STREAM_BYTES + (d->ops->bytes ? d->ops->bytes(d) : 0) : 0;
}

/*
 * What a format adds to struct tl_stream_ops for multi-threaded decoding. Requires `flush` and
 * `state`. The saved state must be canonical: two decoders that would produce the same output for
 * any further input must save identical bytes.
 */
struct tl_split_ops {
    /*
     * Return the index in p[0..n) of the first byte of the first synchronisation point: one where
     * decoding can start and after which the trace repeats everything it may omit elsewhere.
     * Returns `n` if there is none. False positives only cost time.
     */
    size_t (*find_sync)(const uint8_t *p, size_t n);
    /*
     * p[0..n) begins with a synchronisation point. Return the index after everything that is
     * repeated there, at which a push may end without effect on the items: between two items that
     * are never joined. Returns `n` if unknown.
     */
    size_t (*find_rest)(const struct tl_stream_decoder *decoder, const uint8_t *p, size_t n);
    /* Reset to the initial state, but keep decoded blocks. Pending items are dropped. */
    void (*reset)(struct tl_stream_decoder *decoder);
    struct tl_walker *(*walker)(struct tl_stream_decoder *decoder);
};

extern const struct tl_decode_ops tl_coresight_ops; /* "tpiu", and single sources */
extern const struct tl_decode_ops tl_orbflow_ops;   /* "orbflow" */
extern const struct tl_decode_ops tl_osd_ops;       /* "di" */
extern const struct tl_decode_ops tl_stf_ops;       /* "stf" */
extern const struct tl_decode_ops tl_perf_ops;      /* "perf" */
extern const struct tl_decode_ops tl_etrace_ops; /* "etrace-encap", "etrace-smi", "etrace-esp32" */
extern const struct tl_decode_ops tl_nexus_ops;  /* "ntrace", "nexus-sifive" */

extern const struct tl_stream_ops tl_etm3_ops; /* ETMv3 and PTM */
extern const struct tl_stream_ops tl_etm4_ops; /* ETMv4 and ETE */
extern const struct tl_stream_ops tl_mtb_ops;
extern const struct tl_stream_ops tl_itm_ops;
extern const struct tl_stream_ops tl_stm_ops;
extern const struct tl_stream_ops tl_pt_ops;
extern const struct tl_stream_ops tl_nexus_stream_ops;  /* N-Trace and SiFive's dialect */
extern const struct tl_stream_ops tl_etrace_stream_ops; /* E-Trace in another container */

#endif
