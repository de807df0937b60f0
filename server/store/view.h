/* SPDX-License-Identifier: MIT */
/*
 * A view: one shard as it can be read, whether it is sealed in the store or still growing in
 * memory. Immutable and shared by reference count: a growing shard's view is a snapshot.
 */
#ifndef TL_STORE_VIEW_H
#define TL_STORE_VIEW_H

#include "store/backend.h"
#include "store/blob.h"
#include "store/calltree.h"
#include "store/codecount.h"
#include "store/shard.h"

#include <stdatomic.h>

struct tl_view_head;
struct tl_view;

/* Make frames [from, to) and the items of their chunks: a view by tl_view_over(), with a reference.
 * Frame `n_frames` is that of chunks which have none. `packed`: several are wanted so, and may be
 * packed meanwhile. */
typedef int tl_view_make(void *maker, struct tl_view *view, size_t from, size_t to, bool packed,
                         struct tl_view **out, struct tl_fail *fail);

struct tl_view {
    atomic_uint refs;
    _Atomic(struct tl_view_head *) head; /* see tl_view_head() */
    struct tl_shard_index index;         /* row.size == 0: it is not stored */
    bool open;                           /* it may still grow */
    /* In memory: */
    struct tl_blob **frames; /* one per index.frames */
    struct tl_blob **items;  /* one per index.chunks, NULL where there are none */
    size_t cap_frames, cap_items;
    struct tl_codecount *counts; /* of its code; NULL: not known */
    struct tl_calltree *calls;   /* the same */
    /* In the store: */
    struct tl_backend *backend;
    char key[192];
    /* Of a virtual shard, of which the index alone is there: what makes the rest. */
    tl_view_make *make;
    void *maker;
    /* What was made of a virtual shard: that one, of whose index it has all but the frames; frames
     * and items that were not made are NULL. */
    struct tl_view *base;
};

/* A view of nothing, to be filled in; NULL: no memory. */
struct tl_view *tl_view_new(void);
struct tl_view *tl_view_get(struct tl_view *view);
void tl_view_put(struct tl_view *view); /* NULL is fine */

/*
 * Open a stored shard by its index. `backend` is borrowed for the view's life. TL_BAD: damaged;
 * TL_NOTFOUND, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_view_open(struct tl_view **out, struct tl_backend *backend, const char *key,
                             struct tl_fail *fail);

/* Of a view that nobody else has yet: it has nothing but its index, from now on `make` makes the
 * rest. */
void tl_view_make_virtual(struct tl_view *view, tl_view_make *make, void *maker);
/* A view in memory over a virtual one, of which a reference is kept, without any frame or item.
 * TL_NOMEM. */
TL_MUST_USE int tl_view_over(struct tl_view **out, struct tl_view *base);
/* The frame that chunk i belongs to: most likely it has one. */
size_t tl_view_frame_of(const struct tl_view *view, size_t i);
/* A view, with a reference, that has frames [from, to): the same one, or if it is virtual one that
 * has been made over it, and makes what is missing when it is asked for. `packed` as above. Errors
 * of `make`. */
TL_MUST_USE int tl_view_part(struct tl_view *view, size_t from, size_t to, bool packed,
                             struct tl_view **out, struct tl_fail *fail);
/* Append chunk i's item log, plain, to `out`. TL_BAD, TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_view_items(const struct tl_view *view, size_t i, struct tl_buf *out,
                              struct tl_fail *fail);
/* Append the plain STF records of frame i to `out`. */
TL_MUST_USE int tl_view_frame(const struct tl_view *view, size_t i, struct tl_buf *out,
                              struct tl_fail *fail);

/*
 * The STF header that the first frame begins with, where somebody has told it by
 * tl_view_keep_head() (which copies it, or does nothing where memory does not do); else n == 0. For
 * who needs nothing else of that frame. Valid as long as the view is; both may be called at any
 * time.
 */
struct tl_bytes tl_view_head(const struct tl_view *view);
void tl_view_keep_head(struct tl_view *view, struct tl_bytes head);

/*
 * The file of a shard, made of a view in memory that will not grow, into `out`, which is empty.
 * What of it is not packed yet is packed with `packer`. TL_NOMEM.
 */
TL_MUST_USE int tl_view_encode(const struct tl_view *view, uint64_t markers_per_chunk,
                               struct tl_packer *packer, struct tl_buf *out, struct tl_fail *fail);

/* The object of a virtual shard: the index of the same view, packed, into `out`, which is empty.
 * tl_view_open() reads it, whoever does sets `make`. TL_NOMEM. */
TL_MUST_USE int tl_view_encode_index(const struct tl_view *view, struct tl_packer *packer,
                                     struct tl_buf *out, struct tl_fail *fail);

/*
 * Check every byte of a stored shard: container, checksums, and that each frame holds the
 * markers that the index says. Returns the number of findings; a line for each goes to `report`.
 */
TL_MUST_USE int tl_view_verify(struct tl_backend *backend, const char *key, struct tl_buf *report,
                               struct tl_fail *fail);

#endif
