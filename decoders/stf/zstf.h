/* SPDX-License-Identifier: MIT */
/*
 * The .zstf container: an STF stream divided into chunks of a fixed number of markers
 * (instructions), each compressed as one zstd frame, with an index for random access.
 *
 *     0      "ZSTF", u64 markers per chunk C, i64 offset E of the index (0 until complete)
 *     20     chunk 0 (begins with the STF header), chunk 1, …, back to back
 *     E      u64 number of chunks N, N times { i64 offset, u64 start PC, u64 plain size }
 *     E+8+24N  bytes that other readers ignore: may hold a private index
 *
 * Every chunk but the last contains exactly C markers and ends with one. No I/O or threads here;
 * stf/zstf_pool.h compresses chunks with several threads.
 */
#ifndef TL_STF_ZSTF_H
#define TL_STF_ZSTF_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

TL_C_BEGIN

#define TL_ZSTF_HEAD    20
#define TL_ZSTF_MARKERS 100000 /* default markers per chunk, same as stf_lib's */
#define TL_ZSTF_LEVEL   1      /* default zstd level */
/* Maximum plain bytes of a chunk accepted for reading */
#define TL_ZSTF_CHUNK_MAX (UINT64_C(1) << 30)

struct tl_zstf_entry {
    uint64_t offset;   /* in the file */
    uint64_t start_pc; /* of its first instruction; 0 for chunk 0 (given by the header) */
    uint64_t size;     /* plain bytes */
};

/* ---- writing ---------------------------------------------------------------------------- */

struct tl_zstf_writer;

/* Create a writer with `markers` per chunk (0: default) and zstd `level` (0: default; may be
 * negative). */
TL_MUST_USE int tl_zstf_writer_new(struct tl_zstf_writer **out, uint64_t markers, int level);
void tl_zstf_writer_free(struct tl_zstf_writer *writer);

/* Begin a file: append its first 20 bytes, with E = 0. May be called again after a finish. */
TL_MUST_USE int tl_zstf_writer_begin(struct tl_zstf_writer *writer, struct tl_buf *out);

/*
 * Append a chunk of `markers` markers (counted by the caller). Chunks must be full except the last
 * one: a chunk after a short one gives TL_USAGE. `start_pc`: address of its first instruction.
 * Returns TL_NOMEM.
 */
TL_MUST_USE int tl_zstf_writer_chunk(struct tl_zstf_writer *writer, struct tl_bytes stf,
                                     uint64_t markers, uint64_t start_pc, struct tl_buf *out);
/* The same for a chunk of `size` plain bytes already compressed by tl_zstf_pack(). */
TL_MUST_USE int tl_zstf_writer_frame(struct tl_zstf_writer *writer, struct tl_bytes frame,
                                     uint64_t size, uint64_t markers, uint64_t start_pc,
                                     struct tl_buf *out);
/* The same for a frame of `n` bytes that the caller writes itself. */
TL_MUST_USE int tl_zstf_writer_skip(struct tl_zstf_writer *writer, uint64_t n, uint64_t size,
                                    uint64_t markers, uint64_t start_pc);
/*
 * Append the index, followed by the bytes `more`, which stf_lib ignores. The caller must then
 * overwrite the file's first 20 bytes with `head`. Returns TL_USAGE: there is no chunk.
 */
TL_MUST_USE int tl_zstf_writer_finish(struct tl_zstf_writer *writer, struct tl_bytes more,
                                      struct tl_buf *out, uint8_t head[TL_AT_LEAST(TL_ZSTF_HEAD)]);

/* Build a file head from these values. */
void tl_zstf_head(uint8_t head[TL_AT_LEAST(TL_ZSTF_HEAD)], uint64_t markers, uint64_t index);

/* Compresses chunks. The output does not depend on earlier chunks. zstd `level` as above. */
struct tl_zstf_packer;
TL_MUST_USE int tl_zstf_packer_new(struct tl_zstf_packer **out, int level);
void tl_zstf_packer_free(struct tl_zstf_packer *packer);
/* Compress one chunk to one zstd frame and append it. Returns TL_NOMEM. */
TL_MUST_USE int tl_zstf_pack(struct tl_zstf_packer *packer, struct tl_bytes stf,
                             struct tl_buf *out);

/* ---- reading ---------------------------------------------------------------------------- */

/* Random access to a file's bytes. */
struct tl_zstf_input {
    void *context;
    /* Copy `n` bytes from `offset`; a short file gives TL_BAD. */
    int (*read)(void *context, uint64_t offset, uint8_t *p, size_t n, struct tl_fail *fail);
    uint64_t size; /* of the file */
};

struct tl_zstf;

/*
 * Open a file through its index. `input` is copied. Returns TL_BAD: not .zstf, or the index is
 * outside the file or inconsistent; TL_EOF: the file was never completed (E is 0), but
 * tl_stf_unpack can still read it sequentially; TL_NOMEM, and the input's errors.
 */
TL_MUST_USE int tl_zstf_open(struct tl_zstf **out, const struct tl_zstf_input *input,
                             struct tl_fail *fail);
/* The same for a file in memory, borrowed for the object's life. */
TL_MUST_USE int tl_zstf_open_bytes(struct tl_zstf **out, struct tl_bytes file,
                                   struct tl_fail *fail);
void tl_zstf_close(struct tl_zstf *zstf);

uint64_t tl_zstf_markers(const struct tl_zstf *zstf); /* per chunk */
uint64_t tl_zstf_chunks(const struct tl_zstf *zstf);  /* at least 1 */
uint64_t tl_zstf_index(const struct tl_zstf *zstf);   /* offset of the chunk index */
const struct tl_zstf_entry *tl_zstf_chunk(const struct tl_zstf *zstf, uint64_t i);

/*
 * Append chunk `i`, unpacked. Tolerates what stf_lib does not: several or skippable frames, bytes
 * after the frame, a wrong plain size (sets `*odd`, may be NULL, to true). Returns TL_BAD: it
 * cannot be unpacked completely; the part that could be is appended.
 */
TL_MUST_USE int tl_zstf_read(struct tl_zstf *zstf, uint64_t i, struct tl_buf *out, bool *odd,
                             struct tl_fail *fail);

TL_C_END

#endif
