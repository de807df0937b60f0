/* SPDX-License-Identifier: MIT */
/*
 * Who called whom how often, and how many instructions that took: a tree of call paths, and for
 * each function its calls. Made of a piece of a stream (call_counter.h), and merged with those of
 * other pieces. That of a shard is kept in the store as the object
 * "t/TRACE/GENERATION/STREAM/NUMBER.calls":
 *
 *     u32 CRC32C of all behind it │ zstd frame of varints: version, is it full,
 *         n paths; of each but the first how far its parent is in front of it, its function, calls
 *             and own instructions
 *         n functions; of each the function, calls, and if any ended, how many, instructions of
 *             all, the fewest, the most, and where the longest one was
 *
 * Not thread-safe.
 */
#ifndef TL_STORE_CALLTREE_H
#define TL_STORE_CALLTREE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/numbers.h"
#include "flow/item.h"
#include "store/pack.h"

#include <stdbool.h>

#define TL_CALLTREE_NODES (1u << 17) /* at most: deeper paths are counted as their callers */

/* A path; number 0 is that of nobody, which all others begin with. */
struct tl_calltree_node {
    uint32_t parent;   /* number of the path without the last function; lower than its own */
    uint32_t function; /* index of the image's symbol, or TL_NO_FUNCTION */
    uint64_t calls;    /* that began: not those that a gap or a task switch led into */
    uint64_t self;     /* instructions in the function itself */
};

struct tl_calltree_function {
    uint32_t function;
    uint64_t calls; /* that began */
    uint64_t ended; /* calls that ended, and of these: */
    uint64_t total; /* instructions, of what they called, too */
    uint64_t min, max;
    uint64_t longest; /* position of the first one that took `max` */
};

struct tl_calltree {
    struct tl_calltree_node *nodes;
    size_t n_nodes, cap_nodes;
    struct tl_calltree_function *functions; /* in the order in which they were met */
    size_t n_functions, cap_functions;
    bool full;                 /* paths were left out */
    bool stored;               /* the object is there */
    struct tl_numbers paths;   /* of nodes, number - 1, by parent and function */
    struct tl_numbers numbers; /* of functions */
};

/* A zeroed tree is empty. */
void tl_calltree_fini(struct tl_calltree *tree);
/* Have path 0. TL_NOMEM. */
TL_MUST_USE int tl_calltree_root(struct tl_calltree *tree);
/* Number of the path that goes on from `parent` to `function`; of `parent` where the tree is full.
 * TL_NOMEM. */
TL_MUST_USE int64_t tl_calltree_path(struct tl_calltree *tree, uint32_t parent, uint32_t function);
/* The function's place in `functions`, which it gets if it has none. TL_NOMEM. */
TL_MUST_USE int64_t tl_calltree_function(struct tl_calltree *tree, uint32_t function);
/* Add more calls of a function to what is known of it. */
void tl_calltree_add_function(struct tl_calltree_function *to,
                              const struct tl_calltree_function *more);
/* NULL: it was not met. */
const struct tl_calltree_function *tl_calltree_find(const struct tl_calltree *tree,
                                                    uint32_t function);
/* Add all of `from`, which is of a later piece of the stream, or of another one. TL_NOMEM. */
TL_MUST_USE int tl_calltree_merge(struct tl_calltree *into, const struct tl_calltree *from);

#define TL_CALLTREE_KIND "calls" /* of the object: tl_shard_object_key() */
/* Append the object. TL_NOMEM. */
TL_MUST_USE int tl_calltree_encode(const struct tl_calltree *tree, struct tl_packer *packer,
                                   struct tl_buf *out);
/* Add what the object says to an empty tree. TL_NOTFOUND: it is damaged, TL_UNSUPPORTED: of another
 * version; TL_NOMEM. */
TL_MUST_USE int tl_calltree_decode(struct tl_calltree *tree, struct tl_bytes object);
/* Give back what only adding needs. */
void tl_calltree_slim(struct tl_calltree *tree);
size_t tl_calltree_bytes(const struct tl_calltree *tree);

#endif
