/* SPDX-License-Identifier: MIT */
/*
 * A view: a readable shard, either sealed in the store or still growing in memory. Immutable and
 * reference-counted: the view of a growing shard is a snapshot.
 */
#ifndef TL_SHARD_VIEW_H
#define TL_SHARD_VIEW_H

#include "shard/blob.h"
#include "shard/codecount.h"
#include "shard/shard.h"
#include "shard/shardcalls.h"
#include "store/backend.h"

#include <stdatomic.h>

struct tl_view_head;
struct tl_view_file;
struct tl_view;

/* Build frames [from, to) and the items of their chunks: a view by tl_view_over(), with a
 * reference. Frame `n_frames` is that of the chunks without a frame. `packed`: several are wanted
 * in packed form, and may be packed in parallel. */
typedef int tl_view_make(void *maker, struct tl_view *view, size_t from, size_t to, bool packed,
                         struct tl_view **out, struct tl_fail *fail);

struct tl_view {
    atomic_uint refs;
    _Atomic(struct tl_view_head *) head;  /* see tl_view_head() */
    _Atomic(struct tl_view_head *) apart; /* see tl_view_apart() */
    _Atomic(struct tl_view_file *) file;  /* see tl_view_map() */
    struct tl_shard_index index;          /* row.size == 0: not stored */
    bool open;                            /* it may still grow */
    /* In memory: */
    struct tl_blob **frames; /* one per index.frames */
    struct tl_blob **items;  /* one per index.chunks, NULL if it has none */
    size_t cap_frames, cap_items;
    struct tl_codecount *counts;  /* of its code; NULL: not known */
    struct tl_shard_calls *calls; /* NULL: not known */
    /* In the store: */
    struct tl_backend *backend;
    char key[192];
    /* For a virtual shard, of which only the index is stored: regenerates the rest. */
    tl_view_make *make;
    void *maker;
    /* For regenerated parts of a virtual shard: that shard, whose index this one shares except for
     * the frames; frames and items that were not regenerated are NULL. */
    struct tl_view *base;
    bool incomplete; /* regenerated, but some of its positions could not be: missing.h */
};

/* Create an empty view, to be filled in; NULL: out of memory. */
struct tl_view *tl_view_new(void);
struct tl_view *tl_view_get(struct tl_view *view);
void tl_view_put(struct tl_view *view); /* accepts NULL */

/*
 * Open a stored shard by its index. `backend` is borrowed for the lifetime of the view. TL_BAD:
 * damaged; TL_NOTFOUND, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_view_open(struct tl_view **out, struct tl_backend *backend, const char *key,
                             struct tl_fail *fail);

/* Make a view virtual before it is shared: it has only its index, and `make` regenerates
 * the rest. */
void tl_view_make_virtual(struct tl_view *view, tl_view_make *make, void *maker);
/* Create an in-memory view over a virtual one, keeping a reference to it, without any frames or
 * items. TL_NOMEM. */
TL_MUST_USE int tl_view_over(struct tl_view **out, struct tl_view *base);
/* The frame of chunk i; the chunk may have none. */
size_t tl_view_frame_of(const struct tl_view *view, size_t i);
/* A view with frames [from, to), with a reference: the same view, or, if it is virtual, one built
 * over it, which builds missing parts on demand. `packed` as above. Errors of `make`. */
TL_MUST_USE int tl_view_part(struct tl_view *view, size_t from, size_t to, bool packed,
                             struct tl_view **out, struct tl_fail *fail);
/* Append chunk i's plain item log to `out`. TL_BAD, TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_view_items(const struct tl_view *view, size_t i, struct tl_buf *out,
                              struct tl_fail *fail);
/* Append the plain STF records of frame i to `out`. */
TL_MUST_USE int tl_view_frame(const struct tl_view *view, size_t i, struct tl_buf *out,
                              struct tl_fail *fail);

/*
 * The STF header of the first frame, for callers that need nothing else of that frame, if it was
 * recorded by tl_view_keep_head() (which copies it, or does nothing if memory runs out); otherwise
 * n == 0. Valid as long as the view; both may be called at any time.
 */
struct tl_bytes tl_view_head(const struct tl_view *view);
void tl_view_keep_head(struct tl_view *view, struct tl_bytes head);

/* The same for the first frame's head as it is stored separately (tl_pack_head()). */
struct tl_bytes tl_view_apart(const struct tl_view *view);
void tl_view_keep_apart(struct tl_view *view, struct tl_bytes head);

/*
 * Bytes [offset, offset + n) of a stored shard, mapped to memory as long as the view exists, and
 * read from the disk: for system calls only, see tl_backend_ops.map. n == 0: not possible, or the
 * file is shorter than it was; read them. May be called at any time.
 */
struct tl_bytes tl_view_map(struct tl_view *view, uint64_t offset, size_t n);

/*
 * Write the file of a shard, from a complete view in memory, to `out`, which is empty. Packs
 * whatever is not packed yet, using `packer`. TL_NOMEM.
 */
TL_MUST_USE int tl_view_encode(const struct tl_view *view, uint64_t markers_per_chunk,
                               struct tl_packer *packer, struct tl_buf *out, struct tl_fail *fail);

/* Write the object of a virtual shard, the packed index of the view, to `out`, which is empty. Read
 * by tl_view_open(), after which the caller sets `make`. TL_NOMEM. */
TL_MUST_USE int tl_view_encode_index(const struct tl_view *view, struct tl_packer *packer,
                                     struct tl_buf *out, struct tl_fail *fail);

/*
 * Check every byte of a stored shard: container, checksums, and that each frame has the markers
 * given in the index. Returns the number of findings; appends a line for each to `report`.
 */
TL_MUST_USE int tl_view_verify(struct tl_backend *backend, const char *key, struct tl_buf *report,
                               struct tl_fail *fail);

#endif
