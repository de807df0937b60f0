/* SPDX-License-Identifier: MIT */
/* Spool segments on the medium: names, block heads, scanning. Stateless helper functions. */
#ifndef TL_RAW_SEGMENT_H
#define TL_RAW_SEGMENT_H

#include "store/backend.h"

#define TL_SEGMENT_HEAD 16
#define TL_BLOCK_HEAD   40         /* at most */
#define TL_SPOOL_BLOCK  (1u << 20) /* maximum data of one block */
/* In a stored arrival: the rig's connection was lost before these bytes (spool.h). */
#define TL_ARRIVAL_REJOINED (UINT64_C(1) << 63)

struct tl_segment {
    uint64_t first; /* its offset in the capture */
    bool log;       /* exists as a log */
    bool packed;    /* exists in packed form (packed.h), which takes precedence over the log */
};

/* A capture's segments, ascending. */
struct tl_segments {
    struct tl_segment *v;
    size_t n, cap;
};

/* Format the key of the segment of `name` that begins at `first`; returns `out`. */
char *tl_segment_key(char out[static 128], const char *name, uint64_t first);

/* List a capture's segments, into an empty list; free it with tl_segments_fini(), also after an
 * error. TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_segments_list(struct tl_segments *out, struct tl_backend *backend,
                                 const char *name, struct tl_fail *fail);
void tl_segments_fini(struct tl_segments *segments);
/* Index of the segment that contains `offset`, or -1. */
long tl_segments_find(const struct tl_segments *segments, uint64_t offset);

/* Encode the head of the segment that begins at `first`. */
void tl_segment_head(uint8_t out[static TL_SEGMENT_HEAD], uint64_t first);
/* Read the head of a segment's log: is it that of the one that begins at `first`? */
TL_MUST_USE int tl_segment_head_read(struct tl_log *log, uint64_t first, bool *intact,
                                     struct tl_fail *fail);

struct tl_spool_block {
    uint64_t offset;  /* in the capture */
    uint64_t arrival; /* when all of it had arrived, ns since 1970; 0: not known; and
                         TL_ARRIVAL_REJOINED */
    uint64_t durable; /* durable offset of the capture when it was written */
    uint32_t n;       /* data bytes */
    uint32_t head;    /* size of its head */
    uint32_t crc;
    uint32_t before; /* CRC32C of all bytes of the capture before it */
    bool summed;     /* `before` is known */
};
/* Encode the head of a block with the offset, arrival, durable, n, before and summed of `block`,
 * whose data have the CRC32C `data_crc`. Returns its size. */
size_t tl_block_head(uint8_t out[static TL_BLOCK_HEAD], const struct tl_spool_block *block,
                     uint32_t data_crc);
/* Read a block's head. TL_EOF at the log's end, TL_BAD if no block of `offset` begins there. */
TL_MUST_USE int tl_block_read_head(struct tl_log *log, uint64_t at, uint64_t offset,
                                   struct tl_spool_block *out, struct tl_fail *fail);
/* Verify a block's data and append it to `out`. TL_BAD: truncated or damaged. */
TL_MUST_USE int tl_block_read_data(struct tl_log *log, uint64_t at,
                                   const struct tl_spool_block *block, struct tl_buf *out,
                                   struct tl_fail *fail);

/* ---- skipping damage ----------------------------------------------------------------------- */

/*
 * Follows the blocks of a segment and resynchronises after damage. If a block has an intact head
 * but damaged data, the next one begins right after it; if a head is damaged, the next complete and
 * intact block is searched for.
 */
struct tl_segment_walk {
    struct tl_log *log; /* borrowed */
    uint64_t at;        /* position of the next block in the log */
    uint64_t offset;    /* position of the next block in the capture */
    uint64_t end;       /* end of the capture, or begin of the next segment */
    struct tl_buf data; /* of the last block, if it was checked */
};

struct tl_segment_piece {
    bool damaged;
    uint64_t offset, n; /* in the capture; n may be 0 for damage at the segment's end */
    uint64_t at, bytes; /* in the log, with its head */
    uint64_t durable;   /* of an intact block */
    uint64_t arrival;   /* of an intact block, as in struct tl_spool_block */
    uint32_t before;    /* as in struct tl_spool_block */
    bool summed;
};

/*
 * Begin. `log` contains the segment that begins at `first`; its part of the capture ends at `end`.
 */
void tl_segment_walk_begin(struct tl_segment_walk *walk, struct tl_log *log, uint64_t first,
                           uint64_t end);
void tl_segment_walk_end(struct tl_segment_walk *walk);
/*
 * Get the next block, or damaged or missing span. `check` also reads the data. TL_EOF at the end of
 * the segment's part of the capture; TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_segment_walk_next(struct tl_segment_walk *walk, bool check,
                                     struct tl_segment_piece *out, struct tl_fail *fail);

struct tl_segment_extent {
    uint64_t end;   /* capture offset after the last valid block */
    uint64_t bytes; /* size of the log up to there; 0: nothing is usable */
    bool head;      /* the segment's own head is intact */
    bool summed;    /* `sum` is known: the CRC32C of the capture up to `end` */
    uint32_t sum;
};
/*
 * Find the end of a capture's last segment. A torn tail, which was never acknowledged, is ignored;
 * damage is included if it is followed by blocks that were written after it was durable. TL_IO,
 * TL_NOMEM.
 */
TL_MUST_USE int tl_segment_scan(struct tl_log *log, uint64_t first, struct tl_segment_extent *out,
                                struct tl_fail *fail);

#endif
