/* SPDX-License-Identifier: MIT */
/*
 * Real captures for benchmarks: the trace of the largest source of a format in the first buffer of
 * a snapshot, if the data is available (tests/unit/data.h).
 */
#ifndef TL_BENCH_CAPTURE_H
#define TL_BENCH_CAPTURE_H

#include "base/buf.h"
#include "frame/tpiu.h"
#include "import/bundle.h"
#include "unit/data.h"

#include <string.h>

static const char *const captures[] = {"juno-uname-002", "juno_r1_1", "a55-test-tpiu"};

#define N_CAPTURES (sizeof captures / sizeof captures[0])

/* Captures of ETMv3 and PTM. */
static const struct older_capture {
    const char *name; /* of the measurement, and */
    const char *snapshot;
    enum tl_protocol protocol;
} older_captures[] = {
    {"TC2, ETMv3.5", "TC2", TL_PROTO_ETM3},          {"TC2, PTM 1.1", "TC2", TL_PROTO_PTM},
    {"Snowball, PTM 1.0", "Snowball", TL_PROTO_PTM}, {"etm35-m4", "etm35-m4", TL_PROTO_ETM3},
    {"ptm10-a9-ca", "ptm10-a9-ca", TL_PROTO_PTM},
};

#define N_OLDER_CAPTURES (sizeof older_captures / sizeof older_captures[0])

struct capture {
    struct tl_bundle snapshot; /* contains `source` */
    const struct tl_source *source;
    struct tl_buf trace;
};

struct capture_ids {
    struct tl_buf bytes[128];
};

static inline int capture_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct capture_ids *ids = context;
    return id < 128 ? tl_buf_add(&ids->bytes[id], run->p, run->n) : 0;
}

static inline bool capture_frames(struct capture_ids *ids, const struct tl_bundle_capture *buffer)
{
    static struct tl_tpiu tpiu;
    const struct tl_tpiu_sink sink = {.context = ids, .run = capture_run};
    struct tl_bundle_input in;
    uint8_t bytes[4096];
    bool good = true;
    ssize_t n;

    if (tl_bundle_open(&in, buffer) < 0)
        return false;
    tl_tpiu_init(&tpiu, (enum tl_tpiu_sync)buffer->setup.sync, 0, &sink);
    while (good && (n = tl_bundle_next(&in, bytes, sizeof bytes)) > 0)
        good = tl_tpiu_push(&tpiu, bytes, (size_t)n) >= 0;
    tl_bundle_close(&in);
    return good && tl_tpiu_finish(&tpiu, TL_TPIU_UNFINISHED) >= 0;
}

static inline void capture_fini(struct capture *c)
{
    tl_buf_fini(&c->trace);
    tl_bundle_fini(&c->snapshot);
}

static inline bool capture_single(struct capture_ids *ids, const struct tl_bundle_capture *buffer)
{
    const unsigned id = buffer->setup.n_sources ? buffer->setup.sources[0].id & 127 : 0;
    return tl_bundle_bytes(buffer, &ids->bytes[id], NULL) >= 0;
}

/* Of `folder` below the captures' own. False: the snapshot is not available or has no such source.
 */
static inline bool capture_read_from(struct capture *c, const char *folder, const char *name,
                                     enum tl_protocol protocol)
{
    struct capture_ids ids = {0};
    char path[512], part[128];

    memset(c, 0, sizeof *c);
    snprintf(part, sizeof part, "coresight/%.20s/%.60s", folder, name);
    if (!test_data(path, sizeof path, part) ||
        tl_snapshot_read(&c->snapshot, path, NULL, NULL, NULL) < 0)
        return false;
    const struct tl_bundle_capture *const buffer = &c->snapshot.captures[0];
    const bool read = buffer->setup.container == TL_CONTAINER_SINGLE ? capture_single(&ids, buffer)
                                                                     : capture_frames(&ids, buffer);
    for (unsigned id = 0; id < 128; id++) {
        const struct tl_source *const source = tl_setup_source(&buffer->setup, id);
        if (read && source != NULL && source->protocol == protocol &&
            ids.bytes[id].n > c->trace.n) {
            tl_buf_fini(&c->trace);
            c->trace = ids.bytes[id];
            c->source = source;
        } else {
            tl_buf_fini(&ids.bytes[id]);
        }
    }
    if (c->source == NULL)
        capture_fini(c);
    return c->source != NULL;
}

static inline bool capture_read(struct capture *c, const char *name)
{
    return capture_read_from(c, "snapshots", name, TL_PROTO_ETM4);
}

/*
 * Position of the first A-Sync at or after `i` with what a decoder starts with behind it: trace
 * info, or an I-sync of ETMv3 or PTM.
 */
static inline size_t capture_sync(const struct tl_buf *trace, enum tl_protocol protocol, size_t i)
{
    static const uint8_t newer[13] = {[11] = 0x80, [12] = 0x01},
                         older[7] = {[5] = 0x80, [6] = 0x08};
    const bool is_newer = protocol == TL_PROTO_ETM4;
    const uint8_t *const sync = is_newer ? newer : older;
    const size_t n = is_newer ? sizeof newer : sizeof older;

    while (i + n <= trace->n && memcmp(trace->p + i, sync, n) != 0)
        i++;
    return i + n <= trace->n ? i : trace->n;
}

/*
 * Cut the trace to a part that can be repeated: from the first A-Sync with trace info to the last
 * one, so that each repetition starts like a trace and ends at a packet boundary. False: there are
 * fewer than two of them; the trace is unchanged.
 */
static inline bool capture_cut(struct tl_buf *trace, enum tl_protocol protocol)
{
    const size_t first = capture_sync(trace, protocol, 0);
    size_t last = first;

    for (size_t at; last < trace->n && (at = capture_sync(trace, protocol, last + 1)) < trace->n;)
        last = at;
    if (last == first)
        return false;
    memmove(trace->p, trace->p + first, last - first);
    trace->n = last - first;
    return true;
}

#endif
