/* SPDX-License-Identifier: MIT */
/*
 * The spool: raw capture bytes, stored durably before anything else happens to them.
 *
 * A capture's bytes lie in segments, logs of the backend under "r/<capture>/<first offset, 16
 * hex digits>.seg", of about 64 MiB. A segment is a 16-byte head and blocks, each with its length,
 * its place in the capture and a checksum:
 *
 *     segment  "TLSPOOL1" u64 offset of its first byte in the capture
 *     block    "TLB2" u32 n  u64 offset  u64 arrival  u64 durable  u32 crc32c of the 32 bytes
 *              before and of the n data bytes; n data bytes, 1 to 1 MiB
 *
 * `arrival` is when all of the data was there, in ns since 1970. `durable` is the offset up to
 * which the capture was durable when the block was written: damage in front of it hit bytes that
 * were once acknowledged and is a gap; what is damaged behind every such offset is a torn tail,
 * never acknowledged, and is cut off. ("TLB1", the first version, has neither.)
 *
 * One thread writes for all captures: it takes whatever has been appended, writes it, syncs
 * each touched segment once and then tells how far each capture is durable (group commit). A
 * failed write or sync never tears what was durable: the failed tail is forgotten and the next
 * append after a successful reopening goes into a new segment at the durable offset. A segment's
 * blocks at or behind the next segment's first offset are such forgotten tails.
 *
 * Segments that are complete may be packed (packed.h, repack.h): whoever reads finds them in either
 * form, also while one takes the other's place.
 *
 * Internally locked; see server/LOCKING.md.
 */
#ifndef TL_INGEST_SPOOL_H
#define TL_INGEST_SPOOL_H

#include "base/prometheus.h"
#include "store/backend.h"

struct tl_spool;   /* all captures */
struct tl_capture; /* one capture's raw bytes, being written */

#define TL_SPOOL_SEGMENT_BYTES (UINT64_C(64) << 20)

struct tl_spool_options {
    uint64_t segment_bytes; /* 0: TL_SPOOL_SEGMENT_BYTES */
    uint64_t pending_bytes; /* that may wait for the disk, of each capture. 0: 4 MiB */
    uint64_t min_free;      /* refuse appends below this much free space */
};

struct tl_spool_counters {
    uint64_t bytes;   /* made durable */
    uint64_t commits; /* group commits */
    uint64_t syncs;
    uint64_t failures;
    uint64_t captures; /* open now … */
    uint64_t pending;  /* … and their bytes that wait for the disk */
};

/* `backend` is borrowed and must outlive the spool. */
TL_MUST_USE int tl_spool_new(struct tl_spool **out, struct tl_backend *backend,
                             const struct tl_spool_options *options, struct tl_fail *fail);
/* All captures must be closed before. NULL is fine. */
void tl_spool_free(struct tl_spool *spool);
void tl_spool_counters(struct tl_spool *spool, struct tl_spool_counters *out);
/* How long group commits took. Borrowed. */
const struct tl_histogram *tl_spool_commits(const struct tl_spool *spool);
/* Another `min_free` from now on. */
void tl_spool_limit(struct tl_spool *spool, uint64_t min_free);
/* Is there room for `n` bytes more? The journal hears of it when that changes. TL_NOSPACE. */
TL_MUST_USE int tl_spool_room(struct tl_spool *spool, size_t n, struct tl_fail *fail);

/*
 * Open a capture for writing, behind what of it is intact: a torn tail is cut off. `on_durable`
 * (may be NULL) is called from the spool's thread with the capture's durable offset whenever it
 * has grown; it must not block nor call the spool. TL_IO, TL_NOSPACE, TL_NOMEM.
 */
TL_MUST_USE int tl_capture_open(struct tl_spool *spool, const char *name,
                                void (*on_durable)(void *context, uint64_t offset), void *context,
                                struct tl_capture **out, struct tl_fail *fail);
/*
 * Append the bytes that begin at capture offset `offset` (copied); those that are there already are
 * left out. Waits while too much is pending. After a failure of the disk every further append
 * says so, whatever its offset, until the capture is closed and opened again. TL_NOSPACE, TL_IO;
 * TL_BAD: bytes in front of `offset` are missing.
 */
TL_MUST_USE int tl_capture_append(struct tl_capture *capture, uint64_t offset,
                                  struct tl_bytes bytes, struct tl_fail *fail);
/* Wait until all that was appended is durable, or say why it will not be. */
TL_MUST_USE int tl_capture_flush(struct tl_capture *capture, struct tl_fail *fail);
/* The same without waiting: TL_OK as long as nothing was refused. */
TL_MUST_USE int tl_capture_failed(struct tl_capture *capture, struct tl_fail *fail);
/* Offset behind the last byte that was appended, and behind the last durable one. */
uint64_t tl_capture_end(struct tl_capture *capture);
uint64_t tl_capture_durable(struct tl_capture *capture);
/* Flush if the disk lets us, then free. After this no callback comes. NULL is fine. */
void tl_capture_close(struct tl_capture *capture);

/* What is known of a capture from refused writes does not hold any more: its bytes are being
 * removed, or it is one's own again and others may have appended meanwhile. */
void tl_spool_forget(struct tl_spool *spool, const char *name);

/* ---- reading ------------------------------------------------------------------------------ */

/* Reads one capture in order, also while it grows. Not thread-safe. */
struct tl_spool_reader;

TL_MUST_USE int tl_spool_reader_new(struct tl_spool_reader **out, struct tl_backend *backend,
                                    const char *name);
/*
 * Append the next intact block's bytes, from capture offset `offset` on and below `end`, to
 * `out`; at most 1 MiB. `end` must not lie behind the durable offset. TL_EOF at `end`; TL_BAD
 * where a block is damaged or missing, with the offset.
 */
TL_MUST_USE int tl_spool_read(struct tl_spool_reader *reader, uint64_t offset, uint64_t end,
                              struct tl_buf *out, struct tl_fail *fail);
/* A tl_decode_read(): exactly `n` bytes, which are durable. `reader` is one of these. TL_BAD,
 * TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_spool_read_again(void *reader, uint64_t offset, uint8_t *out, size_t n);
/* When the bytes of the last successful tl_spool_read() had arrived, ns since 1970; 0: not known.
 */
uint64_t tl_spool_reader_arrival(const struct tl_spool_reader *reader);
void tl_spool_reader_free(struct tl_spool_reader *reader); /* NULL is fine */

/*
 * Step over damage at `offset`, where tl_spool_read() said TL_BAD: `*next` is the offset, at most
 * `end`, from which on bytes can be read again.
 */
TL_MUST_USE int tl_spool_skip(struct tl_spool_reader *reader, uint64_t offset, uint64_t end,
                              uint64_t *next, struct tl_fail *fail);

/* How long a stored capture is, without opening it for writing: a torn tail does not count,
 * damage further in front does. */
TL_MUST_USE int tl_spool_end(struct tl_backend *backend, const char *name, uint64_t *end,
                             struct tl_fail *fail);

/* A damaged or missing span of a capture, and where in which object it lies. */
struct tl_spool_damage {
    const char *key;
    uint64_t at;        /* in the object */
    uint64_t offset, n; /* in the capture; n == 0: none of its bytes is lost */
};
/* Read every byte of a stored capture of `end` bytes; `each` with every damage, in order. */
TL_MUST_USE int tl_spool_audit(struct tl_backend *backend, const char *name, uint64_t end,
                               int (*each)(void *context, const struct tl_spool_damage *damage),
                               void *context, struct tl_fail *fail);
/* Write the heads of segments anew where they are damaged. */
TL_MUST_USE int tl_spool_mend(struct tl_backend *backend, const char *name, struct tl_fail *fail);

#endif
