/* SPDX-License-Identifier: MIT */
/*
 * The spool: raw capture bytes, stored durably before any other processing.
 *
 * A capture's bytes are stored in segments, logs of the backend under "r/<capture>/<first offset,
 * 16 hex digits>.seg", of about 64 MiB. A segment is a 16-byte head and blocks, each with its
 * length, its position in the capture and a checksum:
 *
 *     segment  "TLSPOOL1" u64 offset of its first byte in the capture
 *     block    "TLB3" u32 n  u64 offset  u64 arrival  u64 durable  u32 sum  u32 crc32c of the 36
 *              bytes before and of the n data bytes; n data bytes, 1 to 1 MiB
 *
 * `arrival` is when all of the data had arrived, in ns since 1970; its highest bit says that the
 * rig's connection was lost before the data, so that an unknown number of bytes is missing there
 * that never reached us. `durable` is the durable offset
 * of the capture when the block was written: damage before it affects bytes that had been
 * acknowledged and is a gap; damage after every such offset is a torn tail, never acknowledged, and
 * is truncated. `sum` is the CRC32C of all bytes of the capture before the block: what is stored is
 * compared with what a rig is about to continue without being read again. (Blocks "TLB2" lack it:
 * written by earlier versions, or after damage. "TLB1" lack arrival and durable, too.)
 *
 * One thread writes for all captures, another one syncs: whatever has been appended is written, and
 * when the previous group is durable, each touched segment is synced once and each capture's
 * durable offset reported (group commit). While a group is synced, the next one is written; if the
 * sync fails, both do. A failed write or sync never affects what was durable: the failed tail is
 * abandoned and the next append after a successful reopening goes into a new segment at the durable
 * offset. A segment's blocks at or after the next segment's first offset are such abandoned tails.
 *
 * Complete segments may be packed (packed.h, repack.h): readers find them in either form, also
 * during the replacement.
 *
 * Internally locked; see server/LOCKING.md.
 */
#ifndef TL_RAW_SPOOL_H
#define TL_RAW_SPOOL_H

#include "base/prometheus.h"
#include "store/backend.h"

struct tl_spool;   /* all captures */
struct tl_capture; /* one capture being written */
struct tl_given;   /* lake_ingest.h */

#define TL_SPOOL_SEGMENT_BYTES (UINT64_C(64) << 20)

struct tl_spool_options {
    uint64_t segment_bytes; /* 0: TL_SPOOL_SEGMENT_BYTES */
    uint64_t pending_bytes; /* maximum pending for the disk, per capture. 0: 4 MiB */
    uint64_t min_free;      /* reject appends if less space than this is free */
};

struct tl_spool_counters {
    uint64_t bytes;   /* made durable */
    uint64_t commits; /* group commits */
    uint64_t syncs;
    uint64_t failures;
    uint64_t captures; /* captures open now */
    uint64_t pending;  /* their bytes pending for the disk */
};

/* Create. `backend` is borrowed and must outlive the spool. */
TL_MUST_USE int tl_spool_new(struct tl_spool **out, struct tl_backend *backend,
                             const struct tl_spool_options *options, struct tl_fail *fail);
/* Free. All captures must be closed before. Accepts NULL. */
void tl_spool_free(struct tl_spool *spool);
void tl_spool_counters(struct tl_spool *spool, struct tl_spool_counters *out);
/* Durations of group commits, from the first write to the last sync. Borrowed. */
const struct tl_histogram *tl_spool_commits(const struct tl_spool *spool);
/* Change `min_free` from now on. */
void tl_spool_limit(struct tl_spool *spool, uint64_t min_free);
/* Check for space for `n` more bytes. Changes are reported to the journal. TL_NOSPACE. */
TL_MUST_USE int tl_spool_room(struct tl_spool *spool, size_t n, struct tl_fail *fail);

/*
 * Open a capture for writing after its intact part: a torn tail is truncated. `on_durable` (may be
 * NULL) is called from a thread of the spool with the capture's durable offset whenever it has
 * grown; it must not block nor call the spool. TL_IO, TL_NOSPACE, TL_NOMEM.
 */
TL_MUST_USE int tl_capture_open(struct tl_spool *spool, const char *name,
                                void (*on_durable)(void *context, uint64_t offset), void *context,
                                struct tl_capture **out, struct tl_fail *fail);
/*
 * Append bytes that begin at capture offset `offset` (copied); those already there are skipped.
 * Blocks while too much is pending. After a disk failure all further appends fail, whatever their
 * offset, until the capture is closed and opened again. TL_NOSPACE, TL_IO; TL_BAD: bytes before
 * `offset` are missing.
 */
TL_MUST_USE int tl_capture_append(struct tl_capture *capture, uint64_t offset,
                                  struct tl_bytes bytes, struct tl_fail *fail);
/* The same, but takes the block instead of copying, whatever it returns. */
TL_MUST_USE int tl_capture_give(struct tl_capture *capture, uint64_t offset,
                                const struct tl_given *given, struct tl_fail *fail);
/* The rig's connection was lost: mark the place before the byte that is appended next. Waits until
 * everything appended is durable, and reports why it will not be. The mark is lost if the capture
 * fails or is closed before that byte is durable. */
TL_MUST_USE int tl_capture_rejoin(struct tl_capture *capture, struct tl_fail *fail);
/* Wait until everything appended is durable, or report why it will not be. */
TL_MUST_USE int tl_capture_flush(struct tl_capture *capture, struct tl_fail *fail);
/* The same without waiting: TL_OK as long as nothing was rejected. */
TL_MUST_USE int tl_capture_failed(struct tl_capture *capture, struct tl_fail *fail);
/* Offset after the last appended byte, and after the last durable one. */
uint64_t tl_capture_end(struct tl_capture *capture);
uint64_t tl_capture_durable(struct tl_capture *capture);
/* The CRC32C of the capture up to its durable offset, which is returned. False: it is not known,
 * because bytes are damaged. */
bool tl_capture_sum(struct tl_capture *capture, uint64_t *durable, uint32_t *sum);
/* Flush if the disk permits, then free. No callback is called afterwards. Accepts NULL. */
void tl_capture_close(struct tl_capture *capture);

/* Discard what is known about a capture from failed writes: its bytes are being removed, or its
 * lease was acquired again and other servers may have appended meanwhile. */
void tl_spool_forget(struct tl_spool *spool, const char *name);

/* ---- reading ------------------------------------------------------------------------------ */

/* Reads one capture in order, also while it grows. Not thread-safe. */
struct tl_spool_reader;

TL_MUST_USE int tl_spool_reader_new(struct tl_spool_reader **out, struct tl_backend *backend,
                                    const char *name);
/*
 * Append the next intact block's bytes, beginning at capture offset `offset` and before `end`, to
 * `out`; at most 1 MiB. `end` must not exceed the durable offset. TL_EOF at `end`; TL_BAD, with the
 * offset, if a block is damaged or missing.
 */
TL_MUST_USE int tl_spool_read(struct tl_spool_reader *reader, uint64_t offset, uint64_t end,
                              struct tl_buf *out, struct tl_fail *fail);
/* A tl_decode_read(): read exactly `n` durable bytes. `reader` is a struct tl_spool_reader. TL_BAD,
 * TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_spool_read_again(void *reader, uint64_t offset, uint8_t *out, size_t n);
/* Arrival time of the bytes of the last successful tl_spool_read(), ns since 1970; 0: not known. */
uint64_t tl_spool_reader_arrival(const struct tl_spool_reader *reader);
/* Was the rig's connection lost before the first of these bytes? */
bool tl_spool_reader_rejoined(const struct tl_spool_reader *reader);
void tl_spool_reader_free(struct tl_spool_reader *reader); /* accepts NULL */
/* Nothing is read for a while: keep the places of packed bytes, but neither bytes nor an open log.
 * A frame is checked against its place and its checksum, so reading may continue at any time later.
 */
void tl_spool_reader_rest(struct tl_spool_reader *reader);
const char *tl_spool_reader_name(const struct tl_spool_reader *reader);

/*
 * Skip damage at `offset`, where tl_spool_read() returned TL_BAD: `*next` is the offset, at most
 * `end`, from which bytes can be read again.
 */
TL_MUST_USE int tl_spool_skip(struct tl_spool_reader *reader, uint64_t offset, uint64_t end,
                              uint64_t *next, struct tl_fail *fail);

/* Determine the length of a stored capture without opening it for writing: a torn tail is excluded,
 * damage before it is included. */
TL_MUST_USE int tl_spool_end(struct tl_backend *backend, const char *name, uint64_t *end,
                             struct tl_fail *fail);

/* The CRC32C of a stored capture up to `end`, at most its durable offset; usually reads only the
 * block before `end`. TL_BAD: bytes are damaged. */
TL_MUST_USE int tl_spool_sum(struct tl_backend *backend, const char *name, uint64_t end,
                             uint32_t *sum, struct tl_fail *fail);

/* A damaged or missing span of a capture, and its place in an object. */
struct tl_spool_damage {
    const char *key;
    uint64_t at;        /* in the object */
    uint64_t offset, n; /* in the capture; n == 0: none of its bytes is lost */
};
/* Read every byte of a stored capture of `end` bytes; calls `each` with every damage, in order. */
TL_MUST_USE int tl_spool_audit(struct tl_backend *backend, const char *name, uint64_t end,
                               int (*each)(void *context, const struct tl_spool_damage *damage),
                               void *context, struct tl_fail *fail);
/* Rewrite damaged heads of segments. */
TL_MUST_USE int tl_spool_mend(struct tl_backend *backend, const char *name, struct tl_fail *fail);

#endif
