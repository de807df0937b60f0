/* SPDX-License-Identifier: MIT */
/*
 * Shards: a run of consecutive positions of a stream as one object, a complete .zstf of its own
 * with a private index behind the chunk index, where other STF tools do not look.
 *
 * A position is an executed instruction with known encoding (a marker of the STF) or unknown one
 * (UNKNOWN), in streams of branches alone (OSD CTM) a BRANCH, in software trace a SOFTWARE item.
 *
 * The private index divides the shard's positions into index chunks. An index chunk never
 * crosses a chunk of the .zstf, but a .zstf chunk may have several, where there are many items
 * and few instructions. Layout, from the end of the .zstf's own index on:
 *
 *     sums          checksums of all blocks (sums.h)
 *     item blocks   of each index chunk: its item log (itemlog.h) as a zstd frame
 *     body          a zstd frame of: shard values, index chunks, checksums of the .zstf's
 *                   frames, page sets (older shards only), tile buckets of TL_LEVEL_STORED (finer
 *                   ones in older shards), which code was executed and what the shard consists of
 *                   (both not in older shards)
 *     footer        48 bytes: "TLSHARD1", u32 version 1, u32 crc32c of the body frame, u64 offset
 *                   of the sums in the file, u64 offset of the body frame, u64 its size, u32 0,
 *                   u32 crc32c of the 44 footer bytes before
 *
 * Everything in it can be rebuilt from the raw bytes, and sums, body and footer from the .zstf and
 * the item logs (mend.h); nothing of the .zstf depends on it.
 */
#ifndef TL_STORE_SHARD_H
#define TL_STORE_SHARD_H

#include "decode/point.h"
#include "setup/setup.h"
#include "store/bucket.h"
#include "store/pack.h"
#include "store/shard_stats.h"

#define TL_SHARD_FOOTER 48
/*
 * Version 2: each EVENT but changes of mode has its EVENT_PC_TARGET, no group breaks the order that
 * stf/writer.h tells, and what a shard of others' STF tells again of the mode has fields of ours.
 * Version 3: such a shard tells again of registers and page walks, too.
 * Version 4: its header and first group are a block of their own within the first frame (pack.h,
 * unless they are long), and it tells where the trace goes on behind it, so that its frames can be
 * copied into longer files (splice.h). Older ones are read as well.
 */
#define TL_SHARD_VERSION 4

#define TL_CHUNK_MARKERS     65536 /* instructions in a chunk of the .zstf */
#define TL_CHUNK_MARKERS_OLD 32768 /* … of older versions */

/* A timestamp of the trace unit: one that places a position on the trace's time axis. */
static inline bool tl_item_is_anchor(const struct tl_item *item)
{
    return item->kind == TL_ITEM_TIME && item->sub == TL_TIME_TRACE;
}

/* What is in force where a chunk begins. */
struct tl_flow_now {
    uint64_t mode;    /* if has_mode */
    uint64_t context; /* if has_context */
    uint64_t vmid;    /* if has_vmid */
    uint64_t time;    /* largest timestamp so far, if has_time */
    uint64_t offset;  /* raw byte offset of the last item */
    uint32_t depth;   /* of the call stack */
    uint8_t isa;      /* enum tl_isa of the next instruction */
    bool has_mode, has_context, has_vmid, has_time;
};

/* > 3: not known. */
static inline unsigned tl_flow_now_privilege(const struct tl_flow_now *now)
{
    return now->has_mode ? tl_mode_privilege(now->mode) : 15;
}

/* Apply an item that is no BLOCK. */
void tl_flow_now_item(struct tl_flow_now *now, const struct tl_item *item);
/* Index of the symbol of `image` that covers `pc` then, in this context and space, at this time;
 * -1: none. */
int64_t tl_flow_now_symbol(const struct tl_flow_now *now, const struct tl_image *image,
                           uint64_t pc);

/* The same as blocks have it: TL_NO_FUNCTION if there is none. */
static inline uint32_t tl_flow_now_function(const struct tl_flow_now *now,
                                            const struct tl_image *image, uint64_t pc)
{
    const int64_t symbol = tl_flow_now_symbol(now, image, pc);
    return symbol < 0 ? TL_NO_FUNCTION : (uint32_t)symbol;
}

/* Is `pc` the first address of this symbol, or TL_NO_FUNCTION, of the image? */
bool tl_begins_function(const struct tl_image *image, uint32_t function, uint64_t pc);

/* A timestamp and the position in front of which it stands. */
struct tl_anchor {
    uint64_t position;
    uint64_t time; /* ticks, made monotone: never less than an earlier one of the stream */
};

struct tl_chunk {
    uint64_t first;  /* position, in the stream */
    uint64_t n;      /* positions */
    uint64_t marker; /* markers of the shard in front of it */
    uint32_t stf;    /* chunk of the .zstf that holds its markers */
    uint32_t events; /* exceptions, hardware events, software trace */
    uint32_t gaps;
    uint32_t kinds;                             /* bit set of enum tl_item_kind, of its items */
    struct tl_flow_now at;                      /* where it begins */
    uint32_t anchors;                           /* timestamps in it */
    struct tl_anchor anchor_first, anchor_last; /* if anchors > 0 */
    uint64_t items_offset;                      /* in the file; of a live shard unused */
    uint32_t items_size;                        /* packed; 0: it has no items */
    uint32_t items_plain;
    uint32_t items_crc; /* of the packed bytes */
    uint32_t code;      /* first of its edges in the shard's table */
    uint32_t n_code;    /* UINT32_MAX: not known */
};

/* A chunk of the .zstf. */
struct tl_shard_frame {
    uint64_t offset; /* in the file */
    uint32_t size;   /* packed */
    uint32_t plain;
    uint32_t crc;    /* of the packed bytes */
    uint64_t marker; /* markers of the shard in front of it */
    /* Of its first instruction. Of the first one, whose header tells that: where the flow goes on
     * behind the shard's last marker; 0 where records follow that, and in older shards. */
    uint64_t pc;
};

/* What the catalog knows of a shard, and the body repeats. */
struct tl_shard_row {
    uint64_t number; /* 0, 1, … in the stream */
    uint64_t first;  /* position */
    uint64_t n;      /* positions */
    uint64_t markers;
    uint64_t byte_first, byte_last; /* raw offsets of its first and last item */
    uint64_t events, gaps;
    uint32_t anchors;
    struct tl_anchor anchor_first, anchor_last;
    struct tl_flow_now at; /* where it begins */
    uint64_t size;         /* bytes of the object */
};

struct tl_shard_index {
    uint32_t version; /* of the shard: its records are those of TL_SHARD_VERSION, or older ones */
    struct tl_shard_row row;
    struct tl_chunk *chunks;
    size_t n_chunks, cap_chunks;
    struct tl_shard_frame *frames;
    size_t n_frames, cap_frames;
    uint64_t *code; /* edges of executed code (codeset.h) of all chunks, rising within each */
    size_t n_code, cap_code;
    struct tl_buckets buckets;
    struct tl_shard_stats stats; /* of the whole shard */
};

void tl_shard_index_fini(struct tl_shard_index *index);

/*
 * Append the shard's values, its chunks and its frames; read them into an index that has none.
 * TL_BAD, TL_NOMEM.
 */
TL_MUST_USE int tl_shard_lists_encode(const struct tl_shard_index *index, struct tl_buf *out);
TL_MUST_USE int tl_shard_lists_decode(struct tl_shard_index *out, struct tl_bytes bytes);

/* About how many bytes the index takes while it is made: seldom too few. */
size_t tl_shard_index_about(const struct tl_shard_index *index);
/*
 * Append the private index's body and footer to `file`, in which the sums begin at `sums` and the
 * item blocks are there already. TL_NOMEM.
 */
TL_MUST_USE int tl_shard_index_encode(const struct tl_shard_index *index, uint64_t sums,
                                      struct tl_packer *packer, struct tl_buf *file);

/* The same packed, whatever its size, for an object that has nothing else. */
TL_MUST_USE int tl_shard_index_pack(const struct tl_shard_index *index, struct tl_packer *packer,
                                    struct tl_buf *file);

struct tl_shard_footer {
    uint32_t version;
    uint64_t items; /* offset of the sums, or of the first item block where there are none */
    uint64_t body;  /* offset of the body frame */
    uint64_t body_size;
    uint32_t body_crc;
};
/* Read the footer, the last TL_SHARD_FOOTER bytes of a file of `size` bytes. TL_BAD. */
TL_MUST_USE int tl_shard_footer_read(const uint8_t bytes[static TL_SHARD_FOOTER], uint64_t size,
                                     struct tl_shard_footer *out);
/* Decode a body frame; checks that everything lies inside the file. TL_BAD, TL_NOMEM. */
TL_MUST_USE int tl_shard_index_decode(struct tl_shard_index *out, struct tl_bytes body,
                                      const struct tl_shard_footer *footer);

/*
 * Instructions in each chunk of the .zstf but the last. Where there is one alone only `head`, what
 * the file's head says, can tell by which version it was made.
 */
uint64_t tl_shard_chunk_markers(const struct tl_shard_index *index, uint64_t head);
/* Index of the chunk that holds `position`: the last that begins at or before it. */
size_t tl_shard_chunk_at(const struct tl_shard_index *index, uint64_t position);
/* The first chunk that may have items at `position`: those in front of an instruction may be so
 * many that chunks end among them. */
size_t tl_shard_items_at(const struct tl_shard_index *index, uint64_t position);
/* May the chunk hold an instruction whose address lies in [from, to]? */
bool tl_shard_has_code(const struct tl_shard_index *index, const struct tl_chunk *chunk,
                       uint64_t from, uint64_t to);

/* Catalog blobs of a row's parts that are no columns. */
TL_MUST_USE int tl_flow_now_encode(const struct tl_flow_now *now, struct tl_buf *out);
TL_MUST_USE int tl_flow_now_decode(struct tl_flow_now *now, struct tl_bytes bytes);
/* The same as part of a state. */
void tl_flow_now_state(struct tl_flow_now *now, struct tl_state *state);

/* "t/<trace>/<generation>/<stream>/<number>.<kind>", an object of a shard, into `out`; returns it.
 */
char *tl_shard_object_key(char out[static 192], const char *trace, uint64_t generation,
                          const char *stream, uint64_t number, const char *kind);
/* Of kind "zstf". */
char *tl_shard_key(char out[static 192], const char *trace, uint64_t generation, const char *stream,
                   uint64_t number);

/* The same of a virtual shard, of which the index alone is stored: "….idx". */
char *tl_virtual_key(char out[static 192], const char *trace, uint64_t generation,
                     const char *stream, uint64_t number);

/* Append what tl_packer_bytes() packed. TL_NOMEM; TL_BAD, TL_LIMIT (more than `limit` bytes). */
TL_MUST_USE int tl_unpack(struct tl_bytes packed, size_t limit, struct tl_buf *out);
/* The same of what tl_packer_checked() did. TL_NOMEM; TL_NOTFOUND: it is damaged, or of more than
 * `limit` bytes, and as good as not there. */
TL_MUST_USE int tl_unpack_checked(struct tl_bytes object, size_t limit, struct tl_buf *out);

#endif
