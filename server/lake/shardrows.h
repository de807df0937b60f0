/* SPDX-License-Identifier: MIT */
/*
 * Rows of a stream's shards, in order. A trace of several days has millions of them, and a query
 * looks at few. If there are more than TL_ROWS_HEAP they are in a mapped scratch file, so that the
 * system drops unused parts from memory, and a reader's copy only costs the parts it reads. If no
 * file can be created they stay on the heap. If the medium fails to read back the file the process
 * ends, as with any mapped file. Not thread-safe; copies may be read by any thread.
 */
#ifndef TL_LAKE_SHARDROWS_H
#define TL_LAKE_SHARDROWS_H

#include "shard/shard.h"

struct tl_backend;

#define TL_ROWS_HEAP 4096

/* The timestamps of rows one after the other. */
struct tl_rows_times {
    uint64_t anchors;
    uint64_t first, last; /* ticks, if there are anchors */
};

/* Totals of all rows. */
struct tl_rows_totals {
    uint64_t events, gaps, bytes;
    struct tl_rows_times times;
};

/* All zeros: empty. */
struct tl_rows {
    struct tl_shard_row *v;
    size_t n, cap;
    struct tl_rows_totals totals;
    int file; /* if is_mapped */
    bool is_mapped;
};

/* Those of the next row too. */
void tl_rows_times_add(struct tl_rows_times *times, const struct tl_shard_row *row);

void tl_rows_fini(struct tl_rows *rows);
/* Append a row; the file is the backend's scratch(). TL_NOMEM. */
TL_MUST_USE int tl_rows_add(struct tl_rows *rows, const struct tl_shard_row *row,
                            struct tl_backend *backend);
/* Replace the row with this number, if there is one. Copies may show either version. */
void tl_rows_replace(struct tl_rows *rows, const struct tl_shard_row *row);

/* The current rows, with room for `more` after them. */
struct tl_rows_copy {
    struct tl_shard_row *v;
    size_t mapped; /* bytes; 0: on the heap */
};

/* TL_NOMEM. */
TL_MUST_USE int tl_rows_copy(struct tl_rows_copy *out, const struct tl_rows *rows, size_t more);
void tl_rows_copy_fini(struct tl_rows_copy *copy);

#endif
