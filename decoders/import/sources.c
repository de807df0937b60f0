/* SPDX-License-Identifier: MIT */
/*
 * Files are described by the records that perf would have written, since clocks, order and
 * synchronisation of several Intel PT streams are then solved by the one container that knows them.
 * A ring is written from its head to its end and then from its start, which is the order of time.
 */
#include "import/sources.h"

#include "perf/info.h"
#include "perf/reader.h"
#include "perf/record.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { ATTR = 64 /* bytes */, PT_WORDS = 17 };

/* Words of Intel PT's information, by their names in perf's intel-pt.h. */
enum {
    TIME_SHIFT = 1,
    TIME_MULT,
    TIME_ZERO,
    CAP_USER_TIME_ZERO,
    HAVE_SCHED_SWITCH = 7,
    PER_CPU_MMAPS = 9
};

/* What all trailers contain, in this order; -1: unknown. */
struct trailer {
    int32_t pid, tid;
    uint64_t time;
    int32_t cpu;
};
#define TRAILER       (TL_PERF_SAMPLE_TID | TL_PERF_SAMPLE_TIME | TL_PERF_SAMPLE_CPU)
#define TRAILER_BYTES 24
#define MAX_SIDEBAND  ((size_t)1 << 30)

/* A capture being made: records are collected in memory until a piece of a file follows. */
struct making {
    struct tl_bundle_capture *capture;
    struct tl_buf bytes;
    enum tl_perf_switches switches;
    bool has_sideband;
};

/* Make a piece of the collected records; `path` names it in messages. */
static int flush(struct making *m, const char *path)
{
    const struct tl_bytes bytes = {m->bytes.p, m->bytes.n};
    const int rc = bytes.n > 0 ? tl_bundle_add_bytes(m->capture, path, bytes) : TL_OK;
    tl_buf_reset(&m->bytes);
    return rc;
}

/* Append a record; `trailer` may be NULL. */
static int add_record(struct tl_buf *out, uint32_t type, uint16_t misc, struct tl_bytes body,
                      const struct trailer *trailer)
{
    uint8_t header[TL_PERF_RECORD_HEADER], last[TRAILER_BYTES] = {0};
    const size_t n_last = trailer ? sizeof last : 0;
    tl_put_le32(header, type);
    tl_put_le16(header + 4, misc);
    tl_put_le16(header + 6, (uint16_t)(sizeof header + body.n + n_last));
    if (trailer) {
        tl_put_le32(last, (uint32_t)trailer->pid);
        tl_put_le32(last + 4, (uint32_t)trailer->tid);
        tl_put_le64(last + 8, trailer->time);
        tl_put_le32(last + 16, (uint32_t)trailer->cpu);
    }
    int rc = tl_buf_reserve(out, sizeof header + body.n + n_last);
    if (rc == TL_OK)
        rc = tl_buf_add(out, header, sizeof header);
    if (rc == TL_OK && body.n > 0)
        rc = tl_buf_add(out, body.p, body.n);
    return rc < 0 ? rc : tl_buf_add(out, last, n_last);
}

static int put_record(struct making *m, uint32_t type, const uint8_t *body, size_t n)
{
    return add_record(&m->bytes, type, 0, (struct tl_bytes){body, n}, NULL);
}

/* Write the beginning: Intel PT, in perf's time if the setup relates its timestamps to that. */
static int begin_sources(struct making *m)
{
    const struct tl_clock *const clock = &m->capture->setup.clock;
    uint8_t header[16], attr[ATTR] = {0}, info[8 + 8 * PT_WORDS] = {0};
    uint8_t *const words = info + 8;
    tl_put_le64(header, TL_PERF_MAGIC);
    tl_put_le64(header + 8, sizeof header);
    tl_put_le32(attr + 4, ATTR);
    tl_put_le64(attr + 24, TRAILER);
    tl_put_le64(attr + 40, (uint64_t)1 << TL_PERF_SAMPLE_ID_ALL);
    tl_put_le32(info, TL_PERF_TRACE_PT);
    tl_put_le64(words + 8 * TIME_SHIFT, clock->shift);
    tl_put_le64(words + 8 * TIME_MULT, clock->mult);
    tl_put_le64(words + 8 * TIME_ZERO, clock->zero);
    tl_put_le64(words + 8 * CAP_USER_TIME_ZERO, clock->known);
    tl_put_le64(words + 8 * HAVE_SCHED_SWITCH, m->switches);
    tl_put_le64(words + 8 * PER_CPU_MMAPS, 1); /* one buffer per CPU */
    int rc = tl_buf_add(&m->bytes, header, sizeof header);
    if (rc == TL_OK)
        rc = put_record(m, TL_PERF_ATTR, attr, sizeof attr);
    return rc < 0 ? rc : put_record(m, TL_PERF_AUXTRACE_INFO, info, sizeof info);
}

/* ---- records about processes ----------------------------------------------------------------- */

int tl_sources_add_map(struct tl_buf *records, const struct tl_sources_map *map)
{
    enum { NAME = 64, READ_EXECUTE = 5, PRIVATE = 2 };
    uint8_t body[NAME + 4096] = {0};
    const size_t length = strnlen(map->name, sizeof body - NAME - 1);
    const size_t n = NAME + (length / 8 + 1) * 8; /* its end is padded */
    const bool is_kernel = map->pid == TL_PERF_KERNEL_PID;
    tl_put_le32(body, (uint32_t)map->pid);
    tl_put_le32(body + 4, is_kernel ? 0 : (uint32_t)map->pid);
    tl_put_le64(body + 8, map->address);
    tl_put_le64(body + 16, map->length);
    tl_put_le64(body + 24, map->offset);
    tl_put_le32(body + 56, READ_EXECUTE);
    tl_put_le32(body + 60, PRIVATE);
    memcpy(body + NAME, map->name, length);
    const uint16_t mode = is_kernel ? TL_PERF_MODE_KERNEL : TL_PERF_MODE_USER;
    return add_record(records, TL_PERF_MMAP2, mode, (struct tl_bytes){body, n},
                      &(struct trailer){map->pid, map->pid, 0, 0});
}

int tl_sources_add_name(struct tl_buf *records, int32_t pid, int32_t tid, const char *name)
{
    uint8_t body[8 + 16] = {0};
    tl_put_le32(body, (uint32_t)pid);
    tl_put_le32(body + 4, (uint32_t)tid);
    memcpy(body + 8, name, strnlen(name, 15));
    return add_record(records, TL_PERF_COMM, 0, (struct tl_bytes){body, sizeof body},
                      &(struct trailer){pid, tid, 0, 0});
}

/* Read a trailer of this sample_type. */
static void take_trailer(struct trailer *out, uint64_t sample_type, const uint8_t *p)
{
    if (sample_type & TL_PERF_SAMPLE_TID) {
        out->pid = (int32_t)tl_le32(p);
        out->tid = (int32_t)tl_le32(p + 4);
        p += 8;
    }
    if (sample_type & TL_PERF_SAMPLE_TIME) {
        out->time = tl_le64(p);
        p += 8;
    }
    p += sample_type & TL_PERF_SAMPLE_ID ? 8 : 0;
    p += sample_type & TL_PERF_SAMPLE_STREAM_ID ? 8 : 0;
    if (sample_type & TL_PERF_SAMPLE_CPU)
        out->cpu = (int32_t)tl_le32(p);
}

/* Add a record of a sideband file, with the trailer that all have here. What refers to perf's own
 * buffers and events is left out. */
static int put_sideband(struct making *m, uint32_t type, uint16_t misc, struct tl_bytes body,
                        uint64_t sample_type, int32_t cpu)
{
    const struct tl_perf_attr attr = {.sample_type = sample_type,
                                      .flags = (uint64_t)1 << TL_PERF_SAMPLE_ID_ALL};
    const size_t old = tl_perf_attr_trailer(&attr);
    struct trailer trailer = {-1, -1, 0, cpu};
    if (type == TL_PERF_BUILD_ID || type == TL_PERF_TIME_CONV)
        return add_record(&m->bytes, type, misc, body, NULL);
    if (type >= TL_PERF_FROM_KERNEL || type == TL_PERF_SAMPLE || type == TL_PERF_AUX)
        return TL_OK;
    if (body.n < old || body.n - old > UINT16_MAX - TL_PERF_RECORD_HEADER - TRAILER_BYTES)
        return TL_BAD;
    if (type == TL_PERF_SWITCH && m->switches == TL_PERF_SWITCHES_NONE)
        m->switches = TL_PERF_SWITCHES_RECORDS;
    if (type == TL_PERF_SWITCH_CPU_WIDE)
        m->switches = TL_PERF_SWITCHES_CPU_WIDE;
    take_trailer(&trailer, sample_type, body.p + body.n - old);
    return add_record(&m->bytes, type, misc, (struct tl_bytes){body.p, body.n - old}, &trailer);
}

/* Add the records of a file of sideband for the CPU, where they do not name one. */
static int put_sideband_file(struct making *m, const struct tl_setup_file *file, int32_t cpu,
                             struct tl_fail *fail)
{
    struct tl_buf in = {0};
    int rc = tl_buf_read_file(&in, file->file, MAX_SIDEBAND, fail);
    size_t at = 0;
    while (rc == TL_OK && at < in.n) {
        const uint8_t *const p = in.p + at;
        const size_t left = in.n - at;
        const size_t size = left < TL_PERF_RECORD_HEADER ? 0 : tl_le16(p + 6);
        if (size < TL_PERF_RECORD_HEADER || size > left)
            rc = TL_BAD;
        else
            rc = put_sideband(
                m, tl_le32(p), tl_le16(p + 4),
                (struct tl_bytes){p + TL_PERF_RECORD_HEADER, size - TL_PERF_RECORD_HEADER},
                file->sideband, cpu);
        if (rc == TL_BAD)
            tl_fail_set(fail, TL_BAD,
                        "%.120s: byte %zu: no record of the kernel with a trailer of sample_type "
                        "0x%llx; give the recording's by sideband_type=",
                        file->file, at, (unsigned long long)file->sideband);
        at += size;
    }
    tl_buf_fini(&in);
    return rc;
}

/* Say that the next area is a snapshot: what the kernel has overwritten is no loss. */
static int put_snapshot_mark(struct making *m, int32_t cpu, int32_t tid)
{
    uint8_t body[24] = {0};
    tl_put_le64(body + 16, TL_PERF_AUX_OVERWRITE);
    return add_record(&m->bytes, TL_PERF_AUX, 0, (struct tl_bytes){body, sizeof body},
                      &(struct trailer){tid, tid, 0, cpu});
}

/* Add the file's bytes as an AUX area, at `offset` of the source's bytes. */
static int put_area(struct making *m, const struct tl_setup_file *file, uint64_t size,
                    uint64_t offset, int32_t cpu, int32_t tid)
{
    uint8_t body[40] = {0};
    int rc = file->is_ring ? put_snapshot_mark(m, cpu, tid) : TL_OK;
    tl_put_le64(body, size);
    tl_put_le64(body + 8, offset);
    tl_put_le32(body + 24, (uint32_t)file->source);
    tl_put_le32(body + 28, (uint32_t)tid);
    tl_put_le32(body + 32, (uint32_t)cpu);
    if (rc == TL_OK)
        rc = put_record(m, TL_PERF_AUXTRACE, body, sizeof body);
    if (rc == TL_OK)
        rc = flush(m, file->file);
    if (rc == TL_OK)
        rc = tl_bundle_add(m->capture, file->file, file->head, size - file->head);
    if (rc == TL_OK && file->head > 0)
        rc = tl_bundle_add(m->capture, file->file, 0, file->head);
    return rc < 0 ? rc : put_record(m, TL_PERF_FINISHED_ROUND, NULL, 0);
}

/* Parse a stream name: "pt.3" belongs to a CPU, "pt.t4711" to a thread. */
static bool owner_of(const char *name, int32_t *cpu, int32_t *tid)
{
    unsigned number;
    int end = 0;
    *cpu = *tid = -1;
    if (sscanf(name, "pt.t%u%n", &number, &end) == 1 && !name[end] && number <= INT32_MAX) {
        *tid = (int32_t)number;
        return true;
    }
    if (sscanf(name, "pt.%u%n", &number, &end) == 1 && !name[end] && number <= INT32_MAX) {
        *cpu = (int32_t)number;
        return true;
    }
    return false;
}

/* Of which CPU or thread is the file? */
static int find_owner(const struct making *m, const struct tl_setup_file *file, int32_t *cpu,
                      int32_t *tid, struct tl_fail *fail)
{
    const char *const name = m->capture->setup.sources[file->source].name;
    return owner_of(name, cpu, tid)
               ? TL_OK
               : tl_fail_set(fail, TL_BAD,
                             "[source %s]: file= and sideband= are for pt.CPU and pt.tTHREAD, one "
                             "section each",
                             name);
}

static int put_file(struct making *m, const struct tl_setup_file *file, uint64_t *offset,
                    struct tl_fail *fail)
{
    struct stat st;
    int32_t cpu, tid;
    int rc = find_owner(m, file, &cpu, &tid, fail);
    if (rc < 0)
        return rc;
    if (stat(file->file, &st) < 0)
        return tl_fail_set(fail, TL_IO, "%.150s: %s", file->file, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return tl_fail_set(fail, TL_BAD,
                           "%.150s: is no file; push what comes live as docs/perf.md "
                           "says",
                           file->file);
    const uint64_t size = (uint64_t)st.st_size;
    if (file->head > size)
        return tl_fail_set(fail, TL_BAD, "%.150s: has %llu bytes, head= is beyond them", file->file,
                           (unsigned long long)size);
    rc = put_area(m, file, size, *offset, cpu, tid);
    *offset += size;
    return rc < 0 ? tl_fail_set(fail, (enum tl_err)rc, "out of memory") : TL_OK;
}

/* Add all sideband, in front of the first area: the container sorts by time what it gets up to
 * there. */
static int put_all_sideband(struct making *m, struct tl_fail *fail)
{
    const struct tl_setup *const setup = &m->capture->setup;
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < setup->n_files; i++) {
        int32_t cpu, tid;
        if (setup->files[i].sideband == 0)
            continue;
        m->has_sideband = true;
        rc = find_owner(m, &setup->files[i], &cpu, &tid, fail);
        if (rc == TL_OK)
            rc = put_sideband_file(m, &setup->files[i], cpu, fail);
    }
    return rc;
}

int tl_sources_read(struct tl_bundle_capture *capture, struct tl_bytes records, bool *has_sideband,
                    struct tl_fail *fail)
{
    const struct tl_setup *const setup = &capture->setup;
    struct making m = {.capture = capture, .has_sideband = records.n > 0};
    int rc = put_all_sideband(&m, fail);
    /* The capture begins by saying which switches the records contain, so they are made first. */
    struct tl_buf sideband = m.bytes;
    m.bytes = (struct tl_buf){0};
    if (rc == TL_OK && (begin_sources(&m) < 0 || tl_buf_add(&m.bytes, records.p, records.n) < 0 ||
                        tl_buf_add(&m.bytes, sideband.p, sideband.n) < 0))
        rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    tl_buf_fini(&sideband);
    for (size_t i = 0; rc == TL_OK && i < setup->n_sources; i++) {
        uint64_t offset = 0; /* files of a source are consecutive */
        for (size_t k = 0; rc == TL_OK && k < setup->n_files; k++)
            if (setup->files[k].source == i && setup->files[k].sideband == 0)
                rc = put_file(&m, &setup->files[k], &offset, fail);
    }
    if (rc == TL_OK && flush(&m, "-") < 0)
        rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    *has_sideband = m.has_sideband;
    tl_buf_fini(&m.bytes);
    return rc;
}
