/* SPDX-License-Identifier: MIT */
/* Spool segments on the medium: names, block heads, scanning. Pure helpers, no state. */
#ifndef TL_INGEST_SEGMENT_H
#define TL_INGEST_SEGMENT_H

#include "store/backend.h"

#define TL_SEGMENT_HEAD 16
#define TL_BLOCK_HEAD   28
#define TL_BLOCK_BYTES  (1u << 20) /* data of one block at most */

/* First offsets of a capture's segments, rising. */
struct tl_segments {
    uint64_t *first;
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
/* The head of a block of `data` at capture offset `offset`, all of which had arrived at `arrival`
 * (ns since 1970, 0: not known). */
void tl_block_head(uint8_t out[static TL_BLOCK_HEAD], uint64_t offset, uint64_t arrival,
                   struct tl_bytes data);

struct tl_spool_block {
    uint64_t offset; /* in the capture */
    uint32_t n;      /* data bytes */
    uint32_t crc;
    uint32_t head;    /* bytes of its head: 20 in segments from before arrival was kept */
    uint64_t arrival; /* ns since 1970, 0: not known */
};
/* Read a block's head. TL_EOF at the log's end, TL_BAD where no block of `offset` begins. */
TL_MUST_USE int tl_block_read_head(struct tl_log *log, uint64_t at, uint64_t offset,
                                   struct tl_spool_block *out, struct tl_fail *fail);
/* Append a block's data, checked, to `out`. TL_BAD: cut or damaged. */
TL_MUST_USE int tl_block_read_data(struct tl_log *log, uint64_t at,
                                   const struct tl_spool_block *block, struct tl_buf *out,
                                   struct tl_fail *fail);

struct tl_segment_extent {
    uint64_t end;   /* capture offset behind the last intact block */
    uint64_t bytes; /* log bytes up to there; 0 if even the head is not intact */
};
/* Follow the blocks of an open segment; `check` also reads their data. TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_segment_scan(struct tl_log *log, uint64_t first, bool check,
                                struct tl_segment_extent *out, struct tl_fail *fail);

#endif
