/* SPDX-License-Identifier: MIT */
/*
 * Rows of a stream's shards, in order. A trace of days has millions of them, and a question looks
 * at few: where there are more than TL_ROWS_HEAP they lie in a scratch file that is mapped, so that
 * the system drops from memory what nobody looks at, and a copy for a reader costs what he looks
 * at. Where there can be no file they stay on the heap. A medium that cannot read back what it was
 * given ends the process, as with any mapped file. Not thread-safe; copies may be read by any
 * thread.
 */
#ifndef TL_LAKE_SHARDROWS_H
#define TL_LAKE_SHARDROWS_H

#include "store/shard.h"

struct tl_backend;

#define TL_ROWS_HEAP 4096

/* What all rows have together. */
struct tl_rows_totals {
    uint64_t events, gaps, bytes, anchors;
    uint64_t time_first, time_last; /* ticks, if there are anchors */
};

/* Zeroed is empty. */
struct tl_rows {
    struct tl_shard_row *v;
    size_t n, cap;
    struct tl_rows_totals totals;
    int file; /* if is_mapped */
    bool is_mapped;
};

void tl_rows_fini(struct tl_rows *rows);
/* One more; the file is the backend's scratch(). TL_NOMEM. */
TL_MUST_USE int tl_rows_add(struct tl_rows *rows, const struct tl_shard_row *row,
                            struct tl_backend *backend);
/* In the place of the row with this number, if there is one. Copies may show either. */
void tl_rows_replace(struct tl_rows *rows, const struct tl_shard_row *row);

/* The rows as they are, with room for `more` behind them. */
struct tl_rows_copy {
    struct tl_shard_row *v;
    size_t mapped; /* bytes; 0: on the heap */
};

/* TL_NOMEM. */
TL_MUST_USE int tl_rows_copy(struct tl_rows_copy *out, const struct tl_rows *rows, size_t more);
void tl_rows_copy_fini(struct tl_rows_copy *copy);

#endif
