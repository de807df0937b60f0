/* SPDX-License-Identifier: MIT */
/*
 * Parses perf.data in chunks of any size, from a file or the output of `perf record -o -`, into
 * attributes, records, features, and the bytes of AUX areas. Compressed records are unpacked.
 * Either byte order.
 *
 * For any input, every length is checked against the data available, and memory is bounded by
 * format limits: a record has 64 KiB at most, and the parts before and after the records
 * TL_PERF_HEAD_MAX. After an invalid record, parsing continues at the next place where records
 * certainly begin (perf/search.h); the bytes between are reported as one loss, and a zstd frame
 * that began before them has ended. Not thread-safe.
 *
 * Source: tools/perf/Documentation/perf.data-file-format.txt.
 */
#ifndef TL_PERF_READER_H
#define TL_PERF_READER_H

#include "perf/attr.h"

#define TL_PERF_HEAD_MAX ((size_t)64 << 20)
#define TL_PERF_MAGIC    0x32454c4946524550 /* "PERFILE2" */

#define TL_PERF_RECORD_HEADER 8  /* bytes of a record's {type, misc, size} */
#define TL_PERF_AREA_RECORD   48 /* bytes of an AUXTRACE record, without the trace after it */

enum tl_perf_type { /* types of records */
                    TL_PERF_MMAP = 1,
                    TL_PERF_LOST = 2,
                    TL_PERF_COMM = 3,
                    TL_PERF_EXIT = 4,
                    TL_PERF_FORK = 7,
                    TL_PERF_SAMPLE = 9,
                    TL_PERF_MMAP2 = 10,
                    TL_PERF_AUX = 11,
                    TL_PERF_ITRACE_START = 12,
                    TL_PERF_LOST_SAMPLES = 13,
                    TL_PERF_SWITCH = 14,
                    TL_PERF_SWITCH_CPU_WIDE = 15,
                    TL_PERF_NAMESPACES = 16,
                    TL_PERF_KSYMBOL = 17,
                    TL_PERF_BPF_EVENT = 18,
                    TL_PERF_TEXT_POKE = 20,
                    TL_PERF_AUX_OUTPUT_HW_ID = 21,
                    TL_PERF_FROM_KERNEL = 64, /* types below this one have a trailer */
                    TL_PERF_ATTR = 64,
                    TL_PERF_TRACING_DATA = 66,
                    TL_PERF_BUILD_ID = 67,
                    TL_PERF_FINISHED_ROUND = 68,
                    TL_PERF_ID_INDEX = 69,
                    TL_PERF_AUXTRACE_INFO = 70,
                    TL_PERF_AUXTRACE = 71,
                    TL_PERF_TIME_CONV = 79,
                    TL_PERF_HEADER_FEATURE = 80,
                    TL_PERF_COMPRESSED = 81,
                    TL_PERF_COMPRESSED2 = 83
};

enum tl_perf_feature {
    TL_PERF_FEATURE_BUILD_ID = 2,
    TL_PERF_FEATURE_OSRELEASE = 4,
    TL_PERF_FEATURE_CPUID = 9,
    TL_PERF_FEATURE_EVENT_DESC = 12,
    TL_PERF_FEATURE_AUXTRACE = 18,
    TL_PERF_FEATURE_DIR_FORMAT = 24,
    TL_PERF_FEATURE_BPF_PROG_INFO = 25,
    TL_PERF_FEATURES = 256
};

#define TL_PERF_MISC_MODE     7         /* enum tl_perf_mode */
#define TL_PERF_MISC_EXEC     (1 << 13) /* COMM: the process executes another program */
#define TL_PERF_MISC_DATA     (1 << 13) /* MMAP: no code is mapped */
#define TL_PERF_MISC_OUT      (1 << 13) /* SWITCH: the task leaves */
#define TL_PERF_MISC_BUILD_ID (1 << 14) /* MMAP2 */
#define TL_PERF_MISC_SIZED    (1 << 15) /* BUILD_ID: its length is given */

/* What the processor ran: a kernel or a program, of the host or of a virtual machine. */
enum tl_perf_mode {
    TL_PERF_MODE_KERNEL = 1,
    TL_PERF_MODE_USER = 2,
    TL_PERF_MODE_GUEST_KERNEL = 4,
    TL_PERF_MODE_GUEST_USER = 5
};

/* A record as it is in the file. */
struct tl_perf_raw {
    uint32_t type;
    uint16_t misc;
    struct tl_bytes body; /* after its header; borrowed for the call */
    uint64_t offset;      /* file offset of its header; if `packed`, of the compressed record */
    bool packed;          /* it was in a compressed record */
};

/* An AUXTRACE record: `size` bytes of AUX area `idx`, from `offset` of its running count on. */
struct tl_perf_area {
    uint64_t size, offset, reference;
    uint32_t idx;
    int32_t tid, cpu; /* -1: per CPU, per thread */
};

struct tl_perf_reader_sink {
    void *context;
    /* Results < 0 stop the push, which returns them. */
    int (*record)(void *context, const struct tl_perf_raw *record);
    /* Receive bytes at..at+n of an area, which are at file offset `offset`. The first call for each
     * area has at = n = 0, the last one at + n = size, unless the input ends before. */
    int (*area)(void *context, const struct tl_perf_area *area, uint64_t at, struct tl_bytes bytes,
                uint64_t offset);
    /* May be NULL. */
    int (*feature)(void *context, unsigned feature, struct tl_bytes body);
    /* `reason` is borrowed for the call. */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
};

struct tl_decode;
struct tl_perf_reader;

TL_MUST_USE int tl_perf_reader_new(struct tl_perf_reader **out,
                                   const struct tl_perf_reader_sink *sink);
void tl_perf_reader_free(struct tl_perf_reader *reader); /* accepts NULL */

/* Process `in`, all of it. Returns TL_NOMEM, or what the sink returned. */
TL_MUST_USE int tl_perf_reader_push(struct tl_perf_reader *reader, struct tl_bytes in);
/* End of input: report what is incomplete. */
TL_MUST_USE int tl_perf_reader_finish(struct tl_perf_reader *reader);

/* Do the next bytes belong to an area? */
bool tl_perf_reader_in_area(const struct tl_perf_reader *reader);
/*
 * Save or restore. `decode` is used to reread bytes, such as the input of an unfinished zstd frame.
 */
void tl_perf_reader_state(struct tl_perf_reader *reader, const struct tl_decode *decode,
                          struct tl_state *state);

/* The byte order and the attributes so far; borrowed for the reader's life. */
bool tl_perf_reader_swaps(const struct tl_perf_reader *reader);
const struct tl_perf_attrs *tl_perf_reader_attrs(const struct tl_perf_reader *reader);

/* Is this the beginning of a perf.data file? `n` >= 8 bytes. */
bool tl_perf_is(const uint8_t *p, size_t n);

#endif
