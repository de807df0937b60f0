/* SPDX-License-Identifier: MIT */
/*
 * Shards: a range of consecutive positions of a stream as one object, a complete .zstf of its own,
 * with a private index after the chunk index, which other STF tools ignore.
 *
 * A position is an executed instruction with known encoding (a marker of the STF) or unknown one
 * (UNKNOWN), in branch-only streams (OSD CTM) a BRANCH, in software trace a SOFTWARE item.
 *
 * The private index divides the shard's positions into index chunks. An index chunk never crosses a
 * chunk of the .zstf, but a .zstf chunk may have several, where there are many items and few
 * instructions. Layout, beginning after the .zstf's own index:
 *
 *     sums          checksums of all blocks (sums.h)
 *     item blocks   of each index chunk: its item log (itemlog.h) as a zstd frame
 *     body          a zstd frame of: shard values, index chunks, checksums of the .zstf's
 *                   frames, page sets (older shards only), tile buckets of TL_LEVEL_STORED (finer
 *                   ones in older shards), executed code, statistics, buckets in time and
 *                   counts of functions (not in older shards)
 *     footer        48 bytes: "TLSHARD1", u32 version 1, u32 crc32c of the body frame, u64 offset
 *                   of the sums in the file, u64 offset of the body frame, u64 its size, u32 0,
 *                   u32 crc32c of the 44 footer bytes before
 *
 * Everything in it can be rebuilt from the raw bytes, and sums, body and footer from the .zstf and
 * the item logs (mend.h); nothing in the .zstf depends on it.
 */
#ifndef TL_SHARD_SHARD_H
#define TL_SHARD_SHARD_H

#include "decode/point.h"
#include "setup/setup.h"
#include "shard/bucket.h"
#include "shard/function_counts.h"
#include "shard/pack.h"
#include "shard/shard_stats.h"
#include "shard/timebucket.h"

#define TL_SHARD_FOOTER 48
/*
 * Version 2: each EVENT except changes of mode has its EVENT_PC_TARGET, no group violates the order
 * given in stf/writer.h, and the repeated mode in a shard of imported STF has our fields. Version
 * 3: such a shard also repeats registers and page walks. Version 4: its header and first group are
 * a block of their own within the first frame (pack.h, unless they are long), and it stores where
 * the flow continues after it, so that its frames can be copied into longer files (splice.h). Older
 * versions are read as well.
 */
#define TL_SHARD_VERSION 4

#define TL_CHUNK_MARKERS     65536 /* instructions per .zstf chunk */
#define TL_CHUNK_MARKERS_OLD 32768 /* the same in older versions */

/* A shard ends when its item logs reach this many bytes, even between instructions. */
#define TL_SHARD_LOG_BYTES (8u << 20)

/* Is the item a timestamp, which places a position on the stream's time axis? */
static inline bool tl_item_is_anchor(const struct tl_item *item)
{
    return item->kind == TL_ITEM_TIME;
}

/* State at the begin of a chunk. */
struct tl_flow_now {
    uint64_t mode;    /* if has_mode */
    uint64_t context; /* if has_context */
    uint64_t vmid;    /* if has_vmid */
    uint64_t time;    /* largest timestamp so far, if has_time */
    /*
     * The last timestamp's place on the time axis, which never goes back; the same as `time` where
     * timestamps never begin again. Each time segment begins one tick after the last timestamp of
     * the one before: `shift` is added to its timestamps, modulo 2^64.
     */
    uint64_t axis, shift;
    uint64_t offset; /* raw byte offset of the last item */
    uint32_t depth;  /* of the call stack */
    uint8_t isa;     /* enum tl_isa of the next instruction */
    bool has_mode, has_context, has_vmid, has_time;
    bool restarts; /* the next timestamp begins a time segment */
};

/* Privilege level, > 3: not known. */
static inline unsigned tl_flow_now_privilege(const struct tl_flow_now *now)
{
    return now->has_mode ? tl_mode_privilege(now->mode) : 15;
}

/* Update the state with an item that is not a BLOCK. */
void tl_flow_now_item(struct tl_flow_now *now, const struct tl_item *item);
/* The view of `image` in this state, and the spaces that are visible in it. */
uint64_t tl_flow_now_view(const struct tl_flow_now *now, const struct tl_image *image,
                          uint16_t *space);
/* Index of the symbol of `image` that covers `pc` in this state (context, space and time); -1:
 * none. */
int64_t tl_flow_now_symbol(const struct tl_flow_now *now, const struct tl_image *image,
                           uint64_t pc);

/* The same in the form used by blocks: TL_NO_FUNCTION if there is none. */
static inline uint32_t tl_flow_now_function(const struct tl_flow_now *now,
                                            const struct tl_image *image, uint64_t pc)
{
    const int64_t symbol = tl_flow_now_symbol(now, image, pc);
    return symbol < 0 ? TL_NO_FUNCTION : (uint32_t)symbol;
}

/* Is `pc` the first address of this symbol of the image? `function` may be TL_NO_FUNCTION. */
bool tl_begins_function(const struct tl_image *image, uint32_t function, uint64_t pc);

/* A timestamp and the position that it precedes. */
struct tl_anchor {
    uint64_t position;
    uint64_t time; /* ticks, tl_flow_now.axis: never less than an earlier one of the stream */
};

struct tl_chunk {
    uint64_t first;  /* position, in the stream */
    uint64_t n;      /* positions */
    uint64_t marker; /* markers of the shard before it */
    uint32_t stf;    /* the .zstf chunk that contains its markers */
    uint32_t events; /* exceptions, hardware events, software trace */
    uint32_t gaps;
    uint32_t kinds;                             /* bit set of the enum tl_item_kind of its items */
    struct tl_flow_now at;                      /* state at its begin */
    uint32_t anchors;                           /* number of timestamps in it */
    struct tl_anchor anchor_first, anchor_last; /* if anchors > 0 */
    uint64_t items_offset;                      /* in the file; unused in a live shard */
    uint32_t items_size;                        /* packed; 0: no items */
    uint32_t items_plain;
    uint32_t items_crc; /* of the packed bytes */
    uint32_t code;      /* index of its first edge in the shard's table */
    uint32_t n_code;    /* number of edges, UINT32_MAX: not known */
};

/* A chunk of the .zstf. */
struct tl_shard_frame {
    uint64_t offset; /* in the file */
    uint32_t size;   /* packed */
    uint32_t plain;
    uint32_t crc;    /* of the packed bytes */
    uint64_t marker; /* markers of the shard before it */
    /* Address of its first instruction. Of the first frame, whose header contains that: where the
     * flow continues after the shard's last marker; 0 if records follow it, and in older shards. */
    uint64_t pc;
};

/* A shard's entry in the catalog, repeated in the body. */
struct tl_shard_row {
    uint64_t number; /* 0, 1, … in the stream */
    uint64_t first;  /* position */
    uint64_t n;      /* positions */
    uint64_t markers;
    uint64_t byte_first, byte_last; /* raw offsets of its first and last item */
    uint64_t events, gaps;
    uint32_t anchors;
    struct tl_anchor anchor_first, anchor_last;
    struct tl_flow_now at; /* state at its begin */
    uint64_t size;         /* bytes of the object */
};

struct tl_shard_index {
    uint32_t version; /* of the shard: its records follow TL_SHARD_VERSION or an older version */
    struct tl_shard_row row;
    struct tl_chunk *chunks;
    size_t n_chunks, cap_chunks;
    struct tl_shard_frame *frames;
    size_t n_frames, cap_frames;
    uint64_t *code; /* edges of executed code (codeset.h) of all chunks, ascending within each */
    size_t n_code, cap_code;
    struct tl_buckets buckets;
    struct tl_shard_stats stats; /* of the whole shard */
    /* From the last timestamp before the shard to its own last one. None: not known, or there is no
     * time. */
    struct tl_time_pyramid times;
    struct tl_time_pyramid functions; /* function_counts.h; none: an older shard */
};

void tl_shard_index_fini(struct tl_shard_index *index);

/*
 * Append the shard's values, chunks and frames; decode them into an empty index. TL_BAD, TL_NOMEM.
 */
TL_MUST_USE int tl_shard_lists_encode(const struct tl_shard_index *index, struct tl_buf *out);
TL_MUST_USE int tl_shard_lists_decode(struct tl_shard_index *out, struct tl_bytes bytes);

/* Append the catalog's summary of a shard: its buckets (bucket.h), those in time, and counts of
 * functions. TL_NOMEM. */
TL_MUST_USE int tl_shard_summary_encode(const struct tl_shard_index *index, struct tl_buf *out);

/* Approximate size of the encoded index; rarely too low. */
size_t tl_shard_index_about(const struct tl_shard_index *index);
/*
 * Append the private index's body and footer to `file`, in which the sums begin at `sums` and the
 * item blocks have already been written. TL_NOMEM.
 */
TL_MUST_USE int tl_shard_index_encode(const struct tl_shard_index *index, uint64_t sums,
                                      struct tl_packer *packer, struct tl_buf *file);

/* The same but always compressed, for an object that contains nothing else. */
TL_MUST_USE int tl_shard_index_pack(const struct tl_shard_index *index, struct tl_packer *packer,
                                    struct tl_buf *file);

struct tl_shard_footer {
    uint32_t version;
    uint64_t items; /* offset of the sums, or of the first item block if there are none */
    uint64_t body;  /* offset of the body frame */
    uint64_t body_size;
    uint32_t body_crc;
};
/* Does the footer have its checksum? */
bool tl_shard_footer_intact(const uint8_t bytes[static TL_SHARD_FOOTER]);
/* Read the footer from the last TL_SHARD_FOOTER bytes of a file of `size` bytes. TL_BAD. */
TL_MUST_USE int tl_shard_footer_read(const uint8_t bytes[static TL_SHARD_FOOTER], uint64_t size,
                                     struct tl_shard_footer *out);
/* Decode a body frame, checking that everything lies inside the file. TL_BAD, TL_NOMEM. */
TL_MUST_USE int tl_shard_index_decode(struct tl_shard_index *out, struct tl_bytes body,
                                      const struct tl_shard_footer *footer);

/*
 * Instructions in each .zstf chunk but the last. If there is only one, the version that wrote it
 * can be determined only by `head`, the value in the file's header.
 */
uint64_t tl_shard_chunk_markers(const struct tl_shard_index *index, uint64_t head);
/* Index of the chunk that contains `position`: the last that begins at or before it. */
size_t tl_shard_chunk_at(const struct tl_shard_index *index, uint64_t position);
/* First chunk that may have items at `position`: the items before an instruction may fill several
 * chunks. */
size_t tl_shard_items_at(const struct tl_shard_index *index, uint64_t position);
/* Did the shard end with an instruction, so that what its last group has of exceptions after it is
 * logged in the next shard? False also for some shards with very many items that did. */
bool tl_shard_ends_with_insn(const struct tl_shard_index *index);
/* Can the chunk contain an instruction with an address in [from, to]? */
bool tl_shard_has_code(const struct tl_shard_index *index, const struct tl_chunk *chunk,
                       uint64_t from, uint64_t to);

/* Catalog blobs of the parts of a row that are not columns. */
TL_MUST_USE int tl_flow_now_encode(const struct tl_flow_now *now, struct tl_buf *out);
TL_MUST_USE int tl_flow_now_decode(struct tl_flow_now *now, struct tl_bytes bytes);
/* The same as part of a saved state. */
void tl_flow_now_state(struct tl_flow_now *now, struct tl_state *state);

/* Format the key of an object of a shard, "t/<trace>/<generation>/<stream>/<number>.<kind>", into
 * `out`; returns it. */
char *tl_shard_object_key(char out[static 192], const char *trace, uint64_t generation,
                          const char *stream, uint64_t number, const char *kind);
/* The key of kind "zstf". */
char *tl_shard_key(char out[static 192], const char *trace, uint64_t generation, const char *stream,
                   uint64_t number);

/* The key of a virtual shard, of which only the index is stored: "….idx". */
char *tl_virtual_key(char out[static 192], const char *trace, uint64_t generation,
                     const char *stream, uint64_t number);

/*
 * Append the plain form of what tl_packer_bytes() packed. TL_NOMEM; TL_BAD, TL_LIMIT (more than
 * `limit` bytes).
 */
TL_MUST_USE int tl_unpack(struct tl_bytes packed, size_t limit, struct tl_buf *out);
/* The same for tl_packer_checked(). TL_NOMEM; TL_NOTFOUND: it is damaged or longer than `limit`
 * bytes, and to be treated as missing. */
TL_MUST_USE int tl_unpack_checked(struct tl_bytes object, size_t limit, struct tl_buf *out);

#endif
