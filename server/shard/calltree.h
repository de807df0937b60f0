/* SPDX-License-Identifier: MIT */
/*
 * Call tree: who called whom how often, and how many instructions that took; also the calls of each
 * function. Built from a section of a stream (call_counter.h), and merged with those of other
 * sections. The call tree of a shard is stored as a part of an object (shardcalls.h):
 *
 *     u32 CRC32C of everything after it │ zstd frame of varints: version, is it full,
 *         n paths; for each but the first the distance to its parent, its function, calls, own
 *             instructions, and own time (not in version 1)
 *         n functions; for each the function, calls, and if any ended, their number, total
 *             instructions, minimum, maximum, and position of the longest
 *
 * Not thread-safe.
 */
#ifndef TL_SHARD_CALLTREE_H
#define TL_SHARD_CALLTREE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/numbers.h"
#include "flow/item.h"
#include "shard/pack.h"

#include <stdbool.h>

#define TL_CALLTREE_NODES (1u << 17) /* maximum; deeper paths are counted for their callers */

/* A path; path 0 is the root, without a function, of all others. */
struct tl_calltree_node {
    uint32_t parent;   /* path without the last function; its number is lower */
    uint32_t function; /* index of the image's symbol, or TL_NO_FUNCTION */
    uint64_t calls;    /* that began: not those entered through a gap or a task switch */
    uint64_t self;     /* instructions in the function itself */
    uint64_t time;     /* ticks in the function itself, as far as times are known (callindex.h) */
};

struct tl_calltree_function {
    uint32_t function;
    uint64_t calls; /* that began */
    uint64_t ended; /* calls that ended; of these: */
    uint64_t total; /* instructions, including callees */
    uint64_t min, max;
    uint64_t longest; /* position of the first one of length `max` */
};

struct tl_calltree {
    struct tl_calltree_node *nodes;
    size_t n_nodes, cap_nodes;
    struct tl_calltree_function *functions; /* in order of first occurrence */
    size_t n_functions, cap_functions;
    bool full;                 /* paths were left out */
    bool stored;               /* the object has been stored */
    struct tl_numbers paths;   /* index of nodes, number - 1, by parent and function */
    struct tl_numbers numbers; /* index of functions */
};

/* Free. A zeroed tree is empty. */
void tl_calltree_fini(struct tl_calltree *tree);
/* Ensure that path 0 exists. TL_NOMEM. */
TL_MUST_USE int tl_calltree_root(struct tl_calltree *tree);
/* Number of the path that extends `parent` by `function`; `parent` itself if the tree is full.
 * TL_NOMEM. */
TL_MUST_USE int64_t tl_calltree_path(struct tl_calltree *tree, uint32_t parent, uint32_t function);
/* Index of the function in `functions`, added if missing. TL_NOMEM. */
TL_MUST_USE int64_t tl_calltree_function(struct tl_calltree *tree, uint32_t function);
/* Add further calls of a function to its totals. */
void tl_calltree_add_function(struct tl_calltree_function *to,
                              const struct tl_calltree_function *more);
/* NULL: not found. */
const struct tl_calltree_function *tl_calltree_find(const struct tl_calltree *tree,
                                                    uint32_t function);
/* Add `from`, a tree of a later section of the stream, or of another stream. TL_NOMEM. */
TL_MUST_USE int tl_calltree_merge(struct tl_calltree *into, const struct tl_calltree *from);

#define TL_CALLTREE_KIND "calls" /* kind of the object: tl_shard_object_key() */
/* Append the part. TL_NOMEM. */
TL_MUST_USE int tl_calltree_encode(const struct tl_calltree *tree, struct tl_packer *packer,
                                   struct tl_buf *out);
/* Add a part's contents to an empty tree. TL_NOTFOUND: it is damaged, TL_UNSUPPORTED: another
 * version; TL_NOMEM. */
TL_MUST_USE int tl_calltree_decode(struct tl_calltree *tree, struct tl_bytes part);
/* Free the memory that only adding needs. */
void tl_calltree_slim(struct tl_calltree *tree);
size_t tl_calltree_bytes(const struct tl_calltree *tree);

#endif
