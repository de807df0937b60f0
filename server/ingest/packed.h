/* SPDX-License-Identifier: MIT */
/*
 * Packed segments: complete segments of the spool, compressed. An immutable object
 * "r/<capture>/<first offset, 16 hex digits>.zst" of zstd frames of 64 KiB each, so that any
 * offset is reached by unpacking one of them. What is ours lies in skippable frames between them:
 * `zstd -d` makes the capture's bytes of the object.
 *
 *     head    { "TLSPOOLZ" u64 offset of its first byte in the capture  u64 offset behind its last
 *               one  u32 crc32c of the 24 bytes before }
 *     frames  { "TLZ1" u32 n  u64 offset  u32 packed  u32 crc32c of the 20 bytes before, of the
 *               arrivals and of the packed bytes; arrivals }, then the zstd frame: `packed` bytes
 *               that are unpacked to `n` of the capture
 *     index   { of each frame u64 place in the object, u64 offset in the capture; the same of where
 *               the last one ends; u32 number of frames, u32 crc32c of all before it, "TLZI" }
 *
 * {…} is a skippable frame: u32 0x184D2A5D, u32 length, then these. Arrivals are the blocks'
 * (spool.h): runs of bytes that came together, each a varint of its length and one, zigzag, of how
 * much later than the one before it had come, in ns; the first since 1970.
 *
 * The index only repeats the heads: without it the frames are found by following them. Of what is
 * damaged one frame's bytes are lost. Functions return TL_IO, TL_NOMEM and TL_NOTFOUND besides
 * what they say.
 */
#ifndef TL_INGEST_PACKED_H
#define TL_INGEST_PACKED_H

#include "store/backend.h"

#define TL_PACKED_FRAME (64u << 10) /* bytes of the capture in each frame but the last */

char *tl_packed_key(char out[static 128], const char *name, uint64_t first);

/* ---- writing -------------------------------------------------------------------------------- */

struct tl_packed_writer;

TL_MUST_USE int tl_packed_writer_new(struct tl_packed_writer **out, uint64_t first);
void tl_packed_writer_free(struct tl_packed_writer *writer); /* NULL is fine */
/* The next bytes, which had all come at `arrival`. */
TL_MUST_USE int tl_packed_writer_add(struct tl_packed_writer *writer, struct tl_bytes bytes,
                                     uint64_t arrival);
/* The whole object, borrowed from the writer. */
TL_MUST_USE int tl_packed_writer_finish(struct tl_packed_writer *writer, struct tl_bytes *out);

/* ---- reading -------------------------------------------------------------------------------- */

/* A frame, sound or not. */
struct tl_packed_frame {
    uint64_t at, bytes; /* in the object, with its head; bytes == 0: nothing of it is known */
    uint64_t offset, n; /* in the capture */
};

struct tl_packed {
    struct tl_backend *backend; /* borrowed */
    char key[128];
    uint64_t first, size;
    uint64_t told;                  /* end of the capture's bytes as its head tells, 0: not known */
    struct tl_packed_frame *frames; /* without holes between them */
    size_t n, cap;
    bool sound;          /* head and index are */
    struct tl_buf ahead; /* bytes of the object, from `ahead_at` on, that were read at once */
    uint64_t ahead_at;
    size_t next; /* the frame behind the one that was read last */
};

/* Not thread-safe. An object of which nothing can be read has no frames. */
TL_MUST_USE int tl_packed_open(struct tl_packed *out, struct tl_backend *backend, const char *name,
                               uint64_t first, struct tl_fail *fail);
void tl_packed_close(struct tl_packed *packed);
/* Capture offset behind its last byte. */
uint64_t tl_packed_end(const struct tl_packed *packed);
/* The frame that holds `offset`, or behind which it lies; n: there is none. */
size_t tl_packed_find(const struct tl_packed *packed, uint64_t offset);

/* Bytes of a frame that came together. */
struct tl_packed_run {
    uint64_t n;
    uint64_t arrival; /* ns since 1970 */
};
/* Frame i's bytes into `data` (who reads frames in order reads far fewer times than there are), its
 * `*n_runs` runs into `arrivals`, where `*runs` is; both are emptied before. TL_BAD: damaged. */
TL_MUST_USE int tl_packed_read(struct tl_packed *packed, size_t i, struct tl_buf *data,
                               struct tl_buf *arrivals, struct tl_packed_run **runs, size_t *n_runs,
                               struct tl_fail *fail);
/* Write head and index anew, where they are damaged: the object is replaced. */
TL_MUST_USE int tl_packed_mend(const struct tl_packed *packed, struct tl_fail *fail);

#endif
