/* SPDX-License-Identifier: MIT */
/*
 * Unwraps STF from any supported file format: .stf, .zstf, .stf.gz, .stf.xz, .stf.zst.
 *
 * The unpacker does no I/O. tl_stf_file adds reading of files, for programs that have a path.
 * Neither is thread-safe.
 */
#ifndef TL_STF_FILE_H
#define TL_STF_FILE_H

#include "stf/reader.h"
#include "stf/zstf.h"

TL_C_BEGIN

enum tl_stf_wrap { TL_STF_PLAIN, TL_STF_ZSTF, TL_STF_GZIP, TL_STF_XZ, TL_STF_ZSTD };

/*
 * Detect the format from the first bytes (up to 6 are examined), regardless of the name. Returns
 * enum tl_stf_wrap, or TL_BAD: unknown.
 */
int tl_stf_sniff(struct tl_bytes head);

/* Streaming decompressor: wrapped bytes to plain STF bytes. */
struct tl_stf_unpack;
TL_MUST_USE int tl_stf_unpack_new(struct tl_stf_unpack **out);
/* Bytes of memory that the decompressor uses. */
size_t tl_stf_unpack_bytes(const struct tl_stf_unpack *unpack);
void tl_stf_unpack_free(struct tl_stf_unpack *unpack);
/*
 * Unpack from `in`: appends about 256 KiB at most to `out`, and advances `in` past what was used.
 * Returns TL_OK: call again while in->n > 0 or something was appended; TL_BAD with the offset in
 * the wrapped stream.
 */
TL_MUST_USE int tl_stf_unpack_push(struct tl_stf_unpack *unpack, struct tl_bytes *in,
                                   struct tl_buf *out, struct tl_fail *fail);
/*
 * Continue with the bytes of a .zstf from `offset`, the beginning of a chunk; its index is at
 * `index`. For a new unpacker or a used one. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_stf_unpack_chunks(struct tl_stf_unpack *unpack, uint64_t offset, uint64_t index);
/*
 * End of input. Returns TL_BAD: the wrapped stream is truncated, or chunks of a .zstf are missing.
 */
TL_MUST_USE int tl_stf_unpack_finish(struct tl_stf_unpack *unpack, struct tl_fail *fail);
/* Number of bytes between chunks of a .zstf that belong to no chunk and were skipped; `*offset` is
 * that of the first one in the wrapped stream. */
uint64_t tl_stf_unpack_strange(const struct tl_stf_unpack *unpack, uint64_t *offset);

struct tl_stf_file;
/*
 * Open a file, or standard input for "-". A .zstf that supports random access is read through its
 * chunk index. Returns TL_IO, TL_BAD (not STF), TL_NOMEM.
 */
TL_MUST_USE int tl_stf_file_open(struct tl_stf_file **out, const char *path, struct tl_fail *fail);
/* Open STF in memory, wrapped or plain; `bytes` are borrowed for the object's life. */
TL_MUST_USE int tl_stf_file_bytes(struct tl_stf_file **out, struct tl_bytes bytes,
                                  struct tl_fail *fail);
void tl_stf_file_close(struct tl_stf_file *file);
/* Source of the file's plain bytes, for a reader. Borrows the file. Supports seeking if the file is
 * a .zstf. */
struct tl_stf_source tl_stf_file_source(struct tl_stf_file *file);
/* enum tl_stf_wrap */
int tl_stf_file_wrap(const struct tl_stf_file *file);
/* A container anomaly that does not prevent reading, with its file offset, or NULL. Owned by the
 * file. */
const struct tl_fail *tl_stf_file_warning(const struct tl_stf_file *file);
/* The underlying .zstf reader; NULL if there is none or its index is unusable. */
struct tl_zstf *tl_stf_file_zstf(struct tl_stf_file *file);

TL_C_END

#endif
