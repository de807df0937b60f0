/* SPDX-License-Identifier: MIT */
/*
 * STF out of whatever it is wrapped in: .stf, .zstf, .stf.gz, .stf.xz, .stf.zst.
 *
 * The unpacker does no I/O. tl_stf_file is the convenience on top of it for programs that have
 * a path: the only part of the decoders that opens files. Neither is thread-safe.
 */
#ifndef TL_STF_FILE_H
#define TL_STF_FILE_H

#include "stf/reader.h"
#include "stf/zstf.h"

TL_C_BEGIN

enum tl_stf_wrap { TL_STF_PLAIN, TL_STF_ZSTF, TL_STF_GZIP, TL_STF_XZ, TL_STF_ZSTD };

/*
 * What the first bytes are (up to 6 are looked at): content decides, never the name. TL_BAD:
 * none of them.
 */
int tl_stf_sniff(struct tl_bytes head);

/* A stream of wrapped bytes to plain STF bytes. */
struct tl_stf_unpack;
TL_MUST_USE int tl_stf_unpack_new(struct tl_stf_unpack **out);
void tl_stf_unpack_free(struct tl_stf_unpack *unpack);
/*
 * Unpack from `in`: appends at most some 256 KiB to `out`, and takes what it used off `in`.
 * TL_OK: call again while in->n > 0 or something was appended. TL_BAD with the offset in the
 * wrapped stream.
 */
TL_MUST_USE int tl_stf_unpack_push(struct tl_stf_unpack *unpack, struct tl_bytes *in,
                                   struct tl_buf *out, struct tl_fail *fail);
/*
 * What is pushed next are the bytes of a .zstf from `offset` on, where a chunk begins; its index is
 * at `index`. On a new unpacker or a used one. TL_NOMEM.
 */
TL_MUST_USE int tl_stf_unpack_chunks(struct tl_stf_unpack *unpack, uint64_t offset, uint64_t index);
/* No more bytes. TL_BAD: the wrapped stream is cut, or chunks of a .zstf are not there. */
TL_MUST_USE int tl_stf_unpack_finish(struct tl_stf_unpack *unpack, struct tl_fail *fail);
/* How many bytes between chunks of a .zstf belonged to none and were passed over, and where the
 * first one is in the wrapped stream. */
uint64_t tl_stf_unpack_strange(const struct tl_stf_unpack *unpack, uint64_t *offset);

struct tl_stf_file;
/*
 * Open a file, or standard input for "-". A .zstf that can be read at random is read by its
 * chunk index. Errors: TL_IO, TL_BAD (not STF), TL_NOMEM.
 */
TL_MUST_USE int tl_stf_file_open(struct tl_stf_file **out, const char *path, struct tl_fail *fail);
/* STF in memory, wrapped or not; `bytes` are borrowed for the object's life. */
TL_MUST_USE int tl_stf_file_bytes(struct tl_stf_file **out, struct tl_bytes bytes,
                                  struct tl_fail *fail);
void tl_stf_file_close(struct tl_stf_file *file);
/* Its plain bytes, for a reader. Borrows the file. Seeks where the file is a .zstf. */
struct tl_stf_source tl_stf_file_source(struct tl_stf_file *file);
/* enum tl_stf_wrap */
int tl_stf_file_wrap(const struct tl_stf_file *file);
/* What is odd about the container though it can be read so far, with its offset in the file, or
 * NULL. Owned by the file. */
const struct tl_fail *tl_stf_file_warning(const struct tl_stf_file *file);
/* The .zstf reader below it, or NULL where there is none, or no index that can be used. */
struct tl_zstf *tl_stf_file_zstf(struct tl_stf_file *file);

TL_C_END

#endif
