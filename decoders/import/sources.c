/* SPDX-License-Identifier: MIT */
/*
 * Files are described by the records that perf would have written, since clocks, order and
 * synchronisation of several Intel PT streams are then solved by the one container that knows them.
 * A ring is written from its head to its end and then from its start, which is the order of time.
 */
#include "import/sources.h"

#include "perf/reader.h"
#include "perf/record.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { ATTR = 64, PT_WORDS = 17 };

/* Builds pieces; bytes in memory are collected until the next piece of a file. */
struct making {
    struct tl_bundle_capture *capture;
    struct tl_buf bytes;
};

static int flush(struct making *m, const char *path)
{
    const struct tl_bytes bytes = {m->bytes.p, m->bytes.n};
    const int rc = bytes.n > 0 ? tl_bundle_add_bytes(m->capture, path, bytes) : TL_OK;
    tl_buf_reset(&m->bytes);
    return rc;
}

static int put_record(struct making *m, uint32_t type, const uint8_t *body, size_t n)
{
    uint8_t header[8] = {0};
    tl_put_le32(header, type);
    tl_put_le16(header + 6, (uint16_t)(sizeof header + n));
    const int rc = tl_buf_add(&m->bytes, header, sizeof header);
    return rc < 0 || n == 0 ? rc : tl_buf_add(&m->bytes, body, n);
}

/* Write the beginning: trailers contain thread and CPU; Intel PT without perf's time. */
static int begin_sources(struct making *m)
{
    uint8_t header[16], attr[ATTR] = {0}, info[8 + 8 * PT_WORDS] = {0};
    tl_put_le64(header, TL_PERF_MAGIC);
    tl_put_le64(header + 8, sizeof header);
    tl_put_le32(attr + 4, ATTR);
    tl_put_le64(attr + 24, TL_PERF_SAMPLE_TID | TL_PERF_SAMPLE_CPU);
    tl_put_le64(attr + 40, (uint64_t)1 << TL_PERF_SAMPLE_ID_ALL);
    tl_put_le32(info, 1);
    tl_put_le64(info + 8 + 8 * 9, 1); /* one buffer per CPU */
    int rc = tl_buf_add(&m->bytes, header, sizeof header);
    if (rc == TL_OK)
        rc = put_record(m, TL_PERF_ATTR, attr, sizeof attr);
    return rc < 0 ? rc : put_record(m, TL_PERF_AUXTRACE_INFO, info, sizeof info);
}

/* Mark the area as a snapshot. */
static int put_ring(struct making *m, int32_t cpu, int32_t tid)
{
    uint8_t body[40] = {0};
    tl_put_le64(body + 16, TL_PERF_AUX_OVERWRITE);
    tl_put_le32(body + 24, (uint32_t)tid);
    tl_put_le32(body + 28, (uint32_t)tid);
    tl_put_le32(body + 32, (uint32_t)cpu);
    return put_record(m, TL_PERF_AUX, body, sizeof body);
}

static int put_area(struct making *m, const struct tl_setup_file *file, uint64_t size,
                    uint64_t offset, int32_t cpu, int32_t tid)
{
    uint8_t body[40] = {0};
    int rc = file->is_ring ? put_ring(m, cpu, tid) : TL_OK;
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

static int put_file(struct making *m, const struct tl_setup_file *file, uint64_t *offset,
                    struct tl_fail *fail)
{
    const struct tl_source *const source = &m->capture->setup.sources[file->source];
    struct stat st;
    int32_t cpu, tid;
    if (!owner_of(source->name, &cpu, &tid))
        return tl_fail_set(fail, TL_BAD,
                           "[source %s]: file= is for pt.CPU and pt.tTHREAD, one section each",
                           source->name);
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
    const int rc = put_area(m, file, size, *offset, cpu, tid);
    *offset += size;
    return rc < 0 ? tl_fail_set(fail, (enum tl_err)rc, "out of memory") : TL_OK;
}

int tl_sources_read(struct tl_bundle_capture *capture, struct tl_fail *fail)
{
    const struct tl_setup *const setup = &capture->setup;
    struct making m = {.capture = capture};
    int rc = begin_sources(&m) < 0 ? tl_fail_set(fail, TL_NOMEM, "out of memory") : TL_OK;
    for (size_t i = 0; rc == TL_OK && i < setup->n_sources; i++) {
        uint64_t offset = 0; /* files of a source are consecutive */
        for (size_t k = 0; rc == TL_OK && k < setup->n_files; k++)
            if (setup->files[k].source == i)
                rc = put_file(&m, &setup->files[k], &offset, fail);
    }
    if (rc == TL_OK && flush(&m, "-") < 0)
        rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    tl_buf_fini(&m.bytes);
    return rc;
}
