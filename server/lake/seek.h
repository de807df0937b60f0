/* SPDX-License-Identifier: MIT */
/*
 * What is looked for in a stream, and looking for it chunk by chunk. A chunk's index tells which
 * code it executed and which kinds of items it has, so that chunks without a hit are skipped
 * unread; the catalog's summary tells which shards have no such event, and these are not opened.
 */
#ifndef TL_LAKE_SEEK_H
#define TL_LAKE_SEEK_H

#include "lake/opcodes.h"
#include "lake/query.h"

/* What is looked for in all streams of a generation. Does not change once it is made. */
struct tl_sought {
    enum tl_find_kind kind; /* never TL_FIND_TEXT */
    const struct tl_image *image;
    const struct tl_image *fixed; /* the same, if its memory never changes; else NULL */
    const char *text;             /* borrowed from the request, but for quotes and prefixes */
    char own[128];
    uint64_t pc_from, pc_to; /* PC, SYMBOL: [from, to) */
    uint32_t kinds;          /* EVENT: of items */
    int gap;                 /* … only this enum tl_gap, or -1 … */
    const char *process;     /* … or only notes that one that is called so runs; NULL: all are */
    uint8_t *symbols;        /* CALL: for each of the image's, whether it is wanted … */
    size_t n_symbols;        /* … and how many there are */
    uint32_t *wanted;        /* the wanted ones, in order of address */
    size_t n_wanted;
    char what[128];
};

/* TL_USAGE: it cannot be looked for; TL_NOTFOUND: there is no such symbol; TL_NOMEM. Free it with
 * tl_sought_fini(), also after an error. */
TL_MUST_USE int tl_sought_init(struct tl_sought *out, struct tl_gen *gen,
                               const struct tl_find_request *request, struct tl_fail *fail);
/* Calls of one function, by the index of its symbol. TL_NOMEM. */
TL_MUST_USE int tl_sought_function(struct tl_sought *out, struct tl_gen *gen, uint32_t function);
void tl_sought_fini(struct tl_sought *sought);

/* Where to look, and in which direction. */
struct tl_seek_range {
    uint64_t from, to; /* positions */
    bool tail;         /* items behind the last position, too */
    bool backward;
    uint64_t first; /* `from` of the whole search: nothing before that matters */
};

/* A hit; `text` is "" where seek.count is there. < 0 ends it. */
typedef int tl_seek_sink(void *context, uint64_t position, uint64_t pc, const char *text);

/* `hits` of them somewhere in `n` positions from this one on. TL_AGAIN: tell of each. */
typedef int tl_seek_count(void *context, uint64_t position, uint32_t n, uint32_t hits);

/* One thread's way through a stream. */
struct tl_seek {
    const struct tl_sought *sought;
    const struct tl_cut *cut;
    tl_seek_sink *sink;
    void *context;
    tl_seek_count *count;      /* NULL, or for who only counts */
    struct tl_buckets summary; /* of the first `shards` shards: for events */
    uint64_t shards;
    /* Its own: */
    struct tl_opcodes opcodes;
    struct tl_callstack *calls;
    struct tl_walk walk, before;
    struct tl_buf line;
    struct tl_flow_now now;
    bool inside;     /* the last instruction examined was in the address range … */
    uint64_t behind; /* … and this is the position behind it */
    const struct tl_seek_range *range;
    uint64_t chunk_end; /* CALL: no hit from here on in this walk */
};

TL_MUST_USE int tl_seek_init(struct tl_seek *seek, const struct tl_sought *sought,
                             const struct tl_cut *cut);
void tl_seek_fini(struct tl_seek *seek);

/*
 * Tell the sink of the hits of shard `i` that lie in the range, in order. Backward the chunks come
 * from the last to the first, and the sink is told of the hits of one window of positions after the
 * other, each in its order: `window(context)` is called behind each. Returns what the sink or
 * window did where that is < 0, TL_UNSUPPORTED (there is no disassembler), TL_NOMEM, TL_IO, TL_BAD.
 */
TL_MUST_USE int tl_seek_shard(struct tl_seek *seek, size_t i, const struct tl_seek_range *range,
                              int (*window)(void *context), struct tl_fail *fail);
/* The shards [*first, *end) that may hold positions of the range. */
void tl_seek_shards(const struct tl_cut *cut, const struct tl_seek_range *range, size_t *first,
                    size_t *end);

#endif
