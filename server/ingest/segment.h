/* SPDX-License-Identifier: MIT */
/* Spool segments on the medium: names, block heads, scanning. Pure helpers, no state. */
#ifndef TL_INGEST_SEGMENT_H
#define TL_INGEST_SEGMENT_H

#include "store/backend.h"

#define TL_SEGMENT_HEAD 16
#define TL_BLOCK_HEAD   36
#define TL_SPOOL_BLOCK  (1u << 20) /* data of one block at most */

struct tl_segment {
    uint64_t first; /* its offset in the capture */
    bool log;       /* it is there as a log … */
    bool packed;    /* … and packed (packed.h), which counts where it is both */
};

/* A capture's segments, rising. */
struct tl_segments {
    struct tl_segment *v;
    size_t n, cap;
};

/* The key of the segment of `name` that begins at `first`; returns `out`. */
char *tl_segment_key(char out[static 128], const char *name, uint64_t first);

TL_MUST_USE int tl_segments_list(struct tl_segments *out, struct tl_backend *backend,
                                 const char *name, struct tl_fail *fail);
void tl_segments_fini(struct tl_segments *segments);
/* Index of the segment that holds `offset`, or -1. */
long tl_segments_find(const struct tl_segments *segments, uint64_t offset);

void tl_segment_head(uint8_t out[static TL_SEGMENT_HEAD], uint64_t first);
TL_MUST_USE int tl_segment_head_read(struct tl_log *log, uint64_t first, bool *intact,
                                     struct tl_fail *fail);

struct tl_spool_block {
    uint64_t offset;  /* in the capture */
    uint64_t arrival; /* when all of it had come, ns since 1970; 0: not known */
    uint64_t durable; /* what lies before this offset was durable when it was written */
    uint32_t n;       /* data bytes */
    uint32_t head;    /* bytes of its head: 20 in segments of the first version */
    uint32_t crc;
};
/* The head of a block with this offset, arrival and durable, and `data`. */
void tl_block_head(uint8_t out[static TL_BLOCK_HEAD], const struct tl_spool_block *block,
                   struct tl_bytes data);
/* Read a block's head. TL_EOF at the log's end, TL_BAD where no block of `offset` begins. */
TL_MUST_USE int tl_block_read_head(struct tl_log *log, uint64_t at, uint64_t offset,
                                   struct tl_spool_block *out, struct tl_fail *fail);
/* Append a block's data, checked, to `out`. TL_BAD: cut or damaged. */
TL_MUST_USE int tl_block_read_data(struct tl_log *log, uint64_t at,
                                   const struct tl_spool_block *block, struct tl_buf *out,
                                   struct tl_fail *fail);

/* ---- walking over damage ------------------------------------------------------------------- */

/*
 * Follows the blocks of a segment and finds them again behind damage. Behind a block with a
 * sound head but damaged data the next one begins at once; where a head is damaged, the next
 * whole and sound block is looked for.
 */
struct tl_segment_walk {
    struct tl_log *log; /* borrowed */
    uint64_t at;        /* place of the next block in the log */
    uint64_t offset;    /* … and in the capture */
    uint64_t end;       /* the capture ends there, or the next segment begins */
    struct tl_buf data; /* of the last block, if it was checked */
};

struct tl_segment_piece {
    bool damaged;
    uint64_t offset, n; /* in the capture; n may be 0 of damage at the segment's end */
    uint64_t at, bytes; /* in the log, with its head */
    uint64_t durable;   /* of an intact block, and … */
    uint64_t arrival;   /* … when it had come */
};

/* `log` holds the segment that begins at `first` and is followed by the capture's `end`. */
void tl_segment_walk_begin(struct tl_segment_walk *walk, struct tl_log *log, uint64_t first,
                           uint64_t end);
void tl_segment_walk_end(struct tl_segment_walk *walk);
/*
 * The next block, or a damaged or missing span. `check` also reads its data. TL_EOF behind the
 * segment's share of the capture; TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_segment_walk_next(struct tl_segment_walk *walk, bool check,
                                     struct tl_segment_piece *out, struct tl_fail *fail);

struct tl_segment_extent {
    uint64_t end;   /* capture offset behind the last block that counts */
    uint64_t bytes; /* log bytes up to there; 0: nothing of it can be used */
    bool head;      /* the segment's own head is intact */
};
/*
 * Where a capture's last segment ends. A torn tail, which was never acknowledged, does not
 * count; damage with blocks behind it that were written when it was durable does. TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_segment_scan(struct tl_log *log, uint64_t first, struct tl_segment_extent *out,
                                struct tl_fail *fail);

#endif
