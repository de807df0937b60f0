/* SPDX-License-Identifier: MIT */
/*
 * Search in a stream, chunk by chunk. A chunk's index gives its executed code and its kinds of
 * items, so that chunks without a hit are skipped unread; the catalog's summary excludes shards
 * without the wanted kinds of events, and these are not opened. Neither has what is missing of
 * virtual shards: those of which that is known are searched anyway for gaps and notes.
 */
#ifndef TL_QUERY_SEEK_H
#define TL_QUERY_SEEK_H

#include "image/variables.h"
#include "lake_find.h"
#include "query/opcodes.h"
#include "query/query.h"

/* A search query for all streams of a generation. Immutable once created. */
struct tl_sought {
    enum tl_find_kind kind; /* never TL_FIND_TEXT */
    const struct tl_image *image;
    const struct tl_image *fixed; /* the same, if its memory never changes; otherwise NULL */
    const char *text;             /* MNEMONIC, OPCODE, LINE: in `own`, without prefixes */
    char *own;                    /* copy of the request's text */
    struct tl_sought_range {      /* PC, SYMBOL: [from, to), in order of `from`, all different */
        uint64_t from, to;
    } * ranges;
    size_t n_ranges;
    uint64_t pc_from, pc_to; /* all of them are within this one */
    uint32_t kinds;          /* EVENT, LINE: bit set of item kinds */
    int gap;                 /* EVENT: only this enum tl_gap; -1: any */
    const char *process;     /* EVENT: only notes that a process of this name runs; NULL: all */
    struct tl_image_range
        *memory; /* EVENT: only accesses to any of this memory; NULL: all events */
    size_t n_memory;
    const char *variable; /* EVENT: only accesses to this variable, which `memory` is; NULL: none */
    bool written;         /* EVENT: no reads */
    uint8_t *symbols;     /* CALL, SYMBOL: for each symbol of the image, whether it is wanted */
    size_t n_symbols;     /* size of `symbols` */
    uint32_t *wanted;     /* the wanted symbols, in order of address */
    size_t n_wanted;
    size_t functions; /* CALL, SYMBOL: how many functions are wanted */
    char what[128];
};

/* Create a query. TL_USAGE: not searchable; TL_NOTFOUND: no such symbol; TL_NOMEM. Free with
 * tl_sought_fini(), also after an error. */
TL_MUST_USE int tl_sought_init(struct tl_sought *out, struct tl_gen *gen,
                               const struct tl_find_request *request, struct tl_fail *fail);
/* Parse "ADDR", "FROM:TO" or "FROM-TO", hexadecimal; `*to` is `*from` if there is only one. */
bool tl_sought_addresses(const char *text, uint64_t *from, uint64_t *to);
/* Query for the calls of one function, by the index of its symbol. TL_NOMEM. */
TL_MUST_USE int tl_sought_function(struct tl_sought *out, struct tl_gen *gen, uint32_t function);
void tl_sought_fini(struct tl_sought *sought);
/* `r`, of a search, with a text if it has none: no memory, no disassembler. */
TL_MUST_USE int tl_sought_failed(int r, struct tl_fail *fail);

/* Range and direction of a search. */
struct tl_seek_range {
    uint64_t from, to; /* positions */
    bool tail;         /* also items after the last position */
    bool backward;
    uint64_t first; /* `from` of the whole search: positions before it are irrelevant */
};

/* Receives a hit; `text` is "" if seek.count is set. A result < 0 ends the search. */
typedef int tl_seek_sink(void *context, uint64_t position, uint64_t pc, const char *text);

/*
 * Receives a count of `hits` within the `n` positions beginning here. TL_AGAIN: report each hit
 * instead.
 */
typedef int tl_seek_count(void *context, uint64_t position, uint32_t n, uint32_t hits);

/* State of one thread searching a stream. */
struct tl_seek {
    const struct tl_sought *sought;
    const struct tl_cut *cut;
    tl_seek_sink *sink;
    void *context;
    tl_seek_count *count;      /* NULL, or set if only counts are needed */
    struct tl_buckets summary; /* of the first `shards` shards: for events */
    uint64_t shards;
    /* Private: */
    struct tl_opcodes opcodes;
    struct tl_callstack *calls;
    struct tl_walk walk, before;
    struct tl_buf line;
    struct tl_flow_now now;
    size_t inside;  /* number of the range that the last examined instruction was in; 0: none */
    uint64_t after; /* the position after it */
    const struct tl_seek_range *range;
    uint64_t chunk_end; /* CALL: no hits at or after this position in this walk */
};

TL_MUST_USE int tl_seek_init(struct tl_seek *seek, const struct tl_sought *sought,
                             const struct tl_cut *cut);
void tl_seek_fini(struct tl_seek *seek);

/* Walk the instruction before `position` > 0 into seek->before. 1; TL_OK: the stream has none
 * there; or an error. */
TL_MUST_USE int tl_seek_before(struct tl_seek *seek, uint64_t position, struct tl_fail *fail);

/*
 * Report the hits of shard `i` in the range to the sink, in order. Backward: chunks are processed
 * from the last to the first, and hits are reported window by window, in order within each;
 * `window(context)` is called after each. Returns a result < 0 of the sink or window,
 * TL_UNSUPPORTED (there is no disassembler), TL_NOMEM, TL_IO, TL_BAD.
 */
TL_MUST_USE int tl_seek_shard(struct tl_seek *seek, size_t i, const struct tl_seek_range *range,
                              int (*window)(void *context), struct tl_fail *fail);
/* The shards [*first, *end) that may contain positions of the range. */
void tl_seek_shards(const struct tl_cut *cut, const struct tl_seek_range *range, size_t *first,
                    size_t *end);

#endif
