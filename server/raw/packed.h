/* SPDX-License-Identifier: MIT */
/*
 * Packed segments: complete segments of the spool, compressed. An immutable object
 * "r/<capture>/<first offset, 16 hex digits>.zst" of zstd frames of 64 KiB each, so that any offset
 * is reached by unpacking one of them. Our metadata is in skippable frames between them: `zstd -d`
 * restores the capture's bytes.
 *
 *     head    { "TLSPOOLZ" u64 offset of its first byte in the capture  u64 offset after its last
 *               one  u32 crc32c of the 24 bytes before }
 *     frames  { "TLZ1" u32 n  u64 offset  u32 packed  u32 crc32c of the 20 bytes before, of the
 *               arrivals and of the packed bytes; arrivals }, then the zstd frame: `packed` bytes
 *               that unpack to `n` bytes of the capture
 *     index   { for each frame u64 position in the object, u64 offset in the capture; the same for
 *               the end of the last one; u32 frames, u32 crc32c of all before it, "TLZI" }
 *
 * {…} is a skippable frame: u32 0x184D2A5D, u32 length, then the content. Arrivals are those of the
 * blocks (spool.h): runs of bytes that arrived together, each a varint of its length and a zigzag
 * varint of the arrival time in ns relative to the previous run; the first relative to 1970.
 *
 * The index only repeats the heads: without it the frames are found by following them. Damage loses
 * only the bytes of the damaged frame. In addition to the errors listed, functions return TL_IO,
 * TL_NOMEM and TL_NOTFOUND.
 */
#ifndef TL_RAW_PACKED_H
#define TL_RAW_PACKED_H

#include "store/backend.h"

#define TL_PACKED_FRAME (64u << 10) /* bytes of the capture in each frame except the last */

char *tl_packed_key(char out[static 128], const char *name, uint64_t first);

/* ---- writing -------------------------------------------------------------------------------- */

struct tl_packed_writer;

TL_MUST_USE int tl_packed_writer_new(struct tl_packed_writer **out, uint64_t first);
void tl_packed_writer_free(struct tl_packed_writer *writer); /* accepts NULL */
/* Append bytes, all of which had arrived at `arrival`; TL_ARRIVAL_REJOINED in it is of their first
 * one. */
TL_MUST_USE int tl_packed_writer_add(struct tl_packed_writer *writer, struct tl_bytes bytes,
                                     uint64_t arrival);
/* Complete the object; `*out` is borrowed from the writer. */
TL_MUST_USE int tl_packed_writer_finish(struct tl_packed_writer *writer, struct tl_bytes *out);

/* ---- reading -------------------------------------------------------------------------------- */

/* A frame, intact or not. */
struct tl_packed_frame {
    uint64_t at, bytes; /* in the object, with its head; bytes == 0: the frame is lost completely */
    uint64_t offset, n; /* in the capture */
};

struct tl_packed {
    struct tl_backend *backend; /* borrowed */
    char key[128];
    uint64_t first, size;
    struct tl_packed_frame *frames; /* contiguous */
    size_t n, cap;
    bool indexed;        /* its index is intact */
    struct tl_buf ahead; /* read-ahead of the object, beginning at `ahead_at` */
    uint64_t ahead_at;
    size_t next; /* index of the frame after the one read last */
};

/* Open. Not thread-safe. A completely unreadable object has no frames. */
TL_MUST_USE int tl_packed_open(struct tl_packed *out, struct tl_backend *backend, const char *name,
                               uint64_t first, struct tl_fail *fail);
void tl_packed_close(struct tl_packed *packed);
/* Forget what was read ahead: nothing is read for a while. */
void tl_packed_rest(struct tl_packed *packed);
/* Are its head, which is read for this, and its index intact? */
TL_MUST_USE int tl_packed_sound(const struct tl_packed *packed, bool *sound, struct tl_fail *fail);
/* Capture offset after its last byte. */
uint64_t tl_packed_end(const struct tl_packed *packed);
/* Index of the frame that contains `offset`, or precedes it; n: there is none. */
size_t tl_packed_find(const struct tl_packed *packed, uint64_t offset);

/* Bytes of a frame that arrived together. */
struct tl_packed_run {
    uint64_t n;
    uint64_t arrival; /* ns since 1970; and TL_ARRIVAL_REJOINED, of the first byte */
};
/* Read frame i: its bytes into `data`, its `*n_runs` runs into `arrivals`, to which `*runs` points;
 * both buffers are cleared first. Reading frames in order needs far fewer read calls than frames.
 * TL_BAD: damaged. */
TL_MUST_USE int tl_packed_read(struct tl_packed *packed, size_t i, struct tl_buf *data,
                               struct tl_buf *arrivals, struct tl_packed_run **runs, size_t *n_runs,
                               struct tl_fail *fail);
/* Rewrite damaged head and index: the object is replaced. */
TL_MUST_USE int tl_packed_mend(const struct tl_packed *packed, struct tl_fail *fail);

#endif
