/* SPDX-License-Identifier: MIT */
/*
 * The .zstf container: an STF stream cut into chunks of a fixed number of markers (instructions),
 * each one zstd frame, with an index for random access.
 *
 *     0      "ZSTF", u64 markers per chunk C, i64 offset E of the index (0 until complete)
 *     20     chunk 0 (begins with the STF header), chunk 1, …, back to back
 *     E      u64 number of chunks N, N times { i64 offset, u64 start PC, u64 plain size }
 *     E+8+24N  bytes that other readers ignore: a private index may ride there
 *
 * Every chunk but the last holds exactly C markers and ends with one. No I/O here, no threads:
 * several compress chunks with stf/zstf_pool.h.
 */
#ifndef TL_STF_ZSTF_H
#define TL_STF_ZSTF_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

TL_C_BEGIN

#define TL_ZSTF_HEAD      20
#define TL_ZSTF_MARKERS   100000              /* default markers per chunk, as stf_lib's */
#define TL_ZSTF_LEVEL     1                   /* default zstd level */
#define TL_ZSTF_CHUNK_MAX (UINT64_C(1) << 30) /* plain bytes of a chunk that we read */

struct tl_zstf_entry {
    uint64_t offset;   /* in the file */
    uint64_t start_pc; /* of its first instruction; 0 for chunk 0 (the header tells) */
    uint64_t size;     /* plain bytes */
};

/* ---- writing ---------------------------------------------------------------------------- */

struct tl_zstf_writer;

/* `markers` per chunk (0: default), zstd `level` (0: default; negative ones are allowed). */
TL_MUST_USE int tl_zstf_writer_new(struct tl_zstf_writer **out, uint64_t markers, int level);
void tl_zstf_writer_free(struct tl_zstf_writer *writer);

/* Begin a file: appends its first 20 bytes, with E still 0. Reusable after a finish. */
TL_MUST_USE int tl_zstf_writer_begin(struct tl_zstf_writer *writer, struct tl_buf *out);

/*
 * Append a chunk of `markers` markers (counted by the caller). Chunks must be full, the last one
 * may be short: a chunk behind a short one is TL_USAGE. `start_pc`: address of its first
 * instruction. TL_NOMEM.
 */
TL_MUST_USE int tl_zstf_writer_chunk(struct tl_zstf_writer *writer, struct tl_bytes stf,
                                     uint64_t markers, uint64_t start_pc, struct tl_buf *out);
/* The same of a chunk that tl_zstf_pack() made of `size` bytes. */
TL_MUST_USE int tl_zstf_writer_frame(struct tl_zstf_writer *writer, struct tl_bytes frame,
                                     uint64_t size, uint64_t markers, uint64_t start_pc,
                                     struct tl_buf *out);
/* The same of a frame of `n` bytes that the caller puts there itself. */
TL_MUST_USE int tl_zstf_writer_skip(struct tl_zstf_writer *writer, uint64_t n, uint64_t size,
                                    uint64_t markers, uint64_t start_pc);
/*
 * Append the index and, behind it, the bytes `more`, which stf_lib ignores. The caller must then
 * overwrite the file's first 20 bytes with `head`. TL_USAGE: there is no chunk.
 */
TL_MUST_USE int tl_zstf_writer_finish(struct tl_zstf_writer *writer, struct tl_bytes more,
                                      struct tl_buf *out, uint8_t head[TL_AT_LEAST(TL_ZSTF_HEAD)]);

/* The head with these values. */
void tl_zstf_head(uint8_t head[TL_AT_LEAST(TL_ZSTF_HEAD)], uint64_t markers, uint64_t index);

/* What makes frames of chunks: the same frames, whatever it made before. zstd `level` as above. */
struct tl_zstf_packer;
TL_MUST_USE int tl_zstf_packer_new(struct tl_zstf_packer **out, int level);
void tl_zstf_packer_free(struct tl_zstf_packer *packer);
/* One chunk as one zstd frame, appended. TL_NOMEM. */
TL_MUST_USE int tl_zstf_pack(struct tl_zstf_packer *packer, struct tl_bytes stf,
                             struct tl_buf *out);

/* ---- reading ---------------------------------------------------------------------------- */

/* Random access to a file's bytes. */
struct tl_zstf_input {
    void *context;
    /* Copy `n` bytes from `offset`; a short file is TL_BAD. */
    int (*read)(void *context, uint64_t offset, uint8_t *p, size_t n, struct tl_fail *fail);
    uint64_t size; /* of the file */
};

struct tl_zstf;

/*
 * Open by the index. `input` is copied. TL_BAD: no .zstf, or the index lies outside the file or
 * contradicts itself; TL_EOF: it was never completed (E is 0): tl_stf_unpack can still
 * read it from the front. TL_NOMEM, and the input's errors.
 */
TL_MUST_USE int tl_zstf_open(struct tl_zstf **out, const struct tl_zstf_input *input,
                             struct tl_fail *fail);
/* The same of a file in memory, borrowed for the object's life. */
TL_MUST_USE int tl_zstf_open_bytes(struct tl_zstf **out, struct tl_bytes file,
                                   struct tl_fail *fail);
void tl_zstf_close(struct tl_zstf *zstf);

uint64_t tl_zstf_markers(const struct tl_zstf *zstf); /* per chunk */
uint64_t tl_zstf_chunks(const struct tl_zstf *zstf);  /* at least 1 */
uint64_t tl_zstf_index(const struct tl_zstf *zstf);   /* offset of the chunk index */
const struct tl_zstf_entry *tl_zstf_chunk(const struct tl_zstf *zstf, uint64_t i);

/*
 * Append chunk `i`, unpacked. Tolerates what stf_lib does not: several or skippable frames, bytes
 * behind the frame, a wrong plain size (`*odd`, may be NULL, then gets true). TL_BAD: it cannot
 * be unpacked; what could be is appended.
 */
TL_MUST_USE int tl_zstf_read(struct tl_zstf *zstf, uint64_t i, struct tl_buf *out, bool *odd,
                             struct tl_fail *fail);

TL_C_END

#endif
