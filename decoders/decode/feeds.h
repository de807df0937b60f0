/* SPDX-License-Identifier: MIT */
/*
 * The sources of a container, in order of appearance, and where their bytes go. Each has its stream
 * decoder; or is refused, since its configuration cannot be decoded; or is not in the configuration
 * at all, as those of a buffer's stale end: then it is no stream. The bytes of sources without a
 * decoder are counted and reported at the end. A fault in one stream never affects another. Not
 * thread-safe.
 */
#ifndef TL_DECODE_FEEDS_H
#define TL_DECODE_FEEDS_H

#include "decode/stream_out.h"

/* A source. Containers may embed it as the first member of what they know about one. */
struct tl_feed {
    struct tl_stream_out out; /* must be first; its stream has a source only if it is a stream */
    uint16_t id;
    struct tl_stream_decoder *decoder; /* NULL: there is none, bytes are only counted */
    char refused[160];                 /* why */
    uint64_t refused_at, refused_bytes;
    char name[32];
};

struct tl_feeds {
    /* Set by the owner: */
    struct tl_decode *decode;
    const struct tl_image *image; /* borrowed; may be NULL */
    struct tl_decode_sink sink;
    /* Adds the source with this number by tl_feeds_add(), when a saved state has it. */
    int (*add)(struct tl_decode *decode, uint16_t id, uint64_t offset, struct tl_feed **out);
    /* As tl_stream_out_decoder(), for the feed. NULL: that is used. */
    int (*create)(struct tl_decode *decode, struct tl_feed *feed, struct tl_fail *fail);

    struct tl_feed **v; /* [n], owned */
    size_t cap;
    uint32_t n;
    uint32_t n_streams;
    struct tl_feed *recent[128]; /* the last one found, by the low bits of its number */
};

struct tl_feed *tl_feeds_search(struct tl_feeds *feeds, uint16_t id);

/* The source with this number; NULL: it has not appeared. */
static inline struct tl_feed *tl_feeds_find(struct tl_feeds *feeds, uint16_t id)
{
    struct tl_feed *const feed = feeds->recent[id % 128];
    return feed && feed->id == id ? feed : tl_feeds_search(feeds, id);
}

/*
 * Add a source that appears at `offset`: `feed`, from calloc(), with its `id`, and its `name` for
 * the case that `source` has none. `source` (borrowed) is NULL if it is not in the configuration.
 * Takes ownership of `feed`, also on failure. Returns TL_NOMEM or the sink's errors.
 */
TL_MUST_USE int tl_feeds_add(struct tl_feeds *feeds, struct tl_feed *feed,
                             const struct tl_source *source, uint64_t offset);

/* Pass bytes on to the feed's decoder. Returns its errors. */
TL_MUST_USE int tl_feeds_push(struct tl_feeds *feeds, struct tl_feed *feed,
                              const struct tl_run *run);
/* Count bytes of a feed without decoder. */
static inline void tl_feed_skip(struct tl_feed *feed, size_t n)
{
    feed->refused_bytes += n;
}

TL_MUST_USE int tl_feeds_flush(struct tl_feeds *feeds);
/* End all streams, and start them again with the bytes from `offset` on; clocks that only count
 * differences go on. `cut`: why packets are not complete, TL_LOSS_NO_END if bytes in front of these
 * are lost, TL_LOSS_CUT_OFF if another buffer begins. */
TL_MUST_USE int tl_feeds_restart(struct tl_feeds *feeds, uint64_t offset, const char *cut);
/* Report in all streams that bytes are missing, after a note (NULL: none). */
TL_MUST_USE int tl_feeds_report_gap(struct tl_feeds *feeds, uint64_t offset, const char *note);
/* At the end of the capture: end all streams, and report the bytes of the other sources. */
TL_MUST_USE int tl_feeds_finish(struct tl_feeds *feeds);
void tl_feeds_fini(struct tl_feeds *feeds);
/* Memory of their decoders in bytes. */
size_t tl_feeds_bytes(const struct tl_feeds *feeds);

/* Save all feeds, or load them into an empty object. */
void tl_feeds_state(struct tl_feeds *feeds, struct tl_state *state);

#endif
