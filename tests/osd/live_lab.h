/* SPDX-License-Identifier: MIT */
/*
 * Shared by the live tests: a lake with host controller and dialled sources on one side, simulated
 * devices in threads on the other, and a comparison of what was sent with what is stored and
 * decoded.
 */
#ifndef TL_TESTS_OSD_LIVE_LAB_H
#define TL_TESTS_OSD_LIVE_LAB_H

#include "device_net.h"
#include "osdhost/bringup.h"
#include "osdhost/host.h"
#include "rpc/raw.h"
#include "unit/lake_help.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#define SETUP    "[trace]\nformat=di\n"
#define PATIENCE 240000 /* ms until a test is considered hung */

/* ---- the server's side -------------------------------------------------------------------- */

static struct tl_buf log_text;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void on_log(const char *line)
{
    pthread_mutex_lock(&log_lock);
    assert_int_equal(tl_buf_printf(&log_text, "%s\n", line), TL_OK);
    pthread_mutex_unlock(&log_lock);
}

static inline size_t count_in_log(const char *what)
{
    size_t n = 0;
    pthread_mutex_lock(&log_lock);
    const char *p = (const char *)log_text.p;
    for (const char *const end = p + log_text.n;
         p && (p = memmem(p, (size_t)(end - p), what, strlen(what))); n++)
        p += strlen(what);
    pthread_mutex_unlock(&log_lock);
    return n;
}

static inline void wait_for_log(const char *what, size_t times)
{
    for (unsigned i = 0; i < PATIENCE && count_in_log(what) < times; i++)
        usleep(1000);
    if (count_in_log(what) < times)
        fail_msg("not in the log %zu times: %s\n%.*s", times, what, (int)log_text.n,
                 (const char *)log_text.p);
}

struct lab {
    struct tl_backend *backend;
    struct tl_lake *lake;
    struct tl_osd_host *host;
    struct tl_raw *raw;
};

/* `answer_ms`: the controller's timeout for answers; 0: the default. */
static inline void open_lab_with(struct lab *lab, unsigned answer_ms)
{
    struct tl_fail fail = {0};
    tl_buf_reset(&log_text);
    *lab = (struct lab){0};
    assert_int_equal(tl_backend_memory(&lab->backend), TL_OK);
    lab->lake = open_lake_sized(lab->backend, 1000000, 1);
    const struct tl_osd_host_options options = {.address = "127.0.0.1:0",
                                                .rig = "osd",
                                                .setup = SETUP,
                                                .start = TL_OSD_START_ALL,
                                                .answer_ms = answer_ms};
    if (tl_osd_host_new(&lab->host, lab->lake, &options, on_log, &fail) < 0 ||
        tl_osd_host_start(lab->host, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_raw_new(&lab->raw, lab->lake, on_log), TL_OK);
}

static inline void open_lab(struct lab *lab)
{
    open_lab_with(lab, 0);
}

static inline void stop_lab(struct lab *lab)
{
    tl_raw_free(lab->raw);
    tl_osd_host_free(lab->host);
    lab->raw = NULL;
    lab->host = NULL;
}

static inline void close_lab(struct lab *lab)
{
    stop_lab(lab);
    tl_lake_close(lab->lake);
    tl_backend_free(lab->backend);
    tl_buf_fini(&log_text);
}

/* The id of the n-th trace, in order of creation. */
static inline void trace_id(struct lab *lab, size_t n, char id[static 64])
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_traces(lab->lake, &list), TL_OK);
    if (n >= list.n)
        fail_msg("%zu traces, not %zu", list.n, n + 1);
    snprintf(id, 64, "%s", list.rows[list.n - 1 - n].id); /* newest first */
    tl_trace_list_free(&list);
}

static inline size_t traces(struct lab *lab)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_traces(lab->lake, &list), TL_OK);
    const size_t n = list.n;
    tl_trace_list_free(&list);
    return n;
}

/* ---- comparing stored data with what was sent --------------------------------------------- */

static inline void stored_bytes(struct lab *lab, const char *id, struct tl_buf *out)
{
    struct tl_spool_reader *reader;
    struct tl_fail fail = {0};
    uint64_t end;
    bool complete;
    assert_int_equal(tl_lake_offset(lab->lake, id, &end, &complete), TL_OK);
    assert_true(complete);
    assert_int_equal(tl_spool_reader_new(&reader, lab->backend, id), TL_OK);
    while (out->n < end)
        if (tl_spool_read(reader, out->n, end, out, &fail) < 0)
            fail_msg("%s", fail.text);
    tl_spool_reader_free(reader);
}

static inline void add_lines(const struct tl_buf *text, const char *start, struct tl_buf *out)
{
    const char *p = (const char *)text->p, *const end = p + text->n;
    while (p < end) {
        const char *const line = memchr(p, '\n', (size_t)(end - p));
        const size_t n = (size_t)(line - p) + 1;
        if (!strncmp(p, start, strlen(start)))
            assert_int_equal(tl_buf_add(out, p, n), TL_OK);
        p += n;
    }
}

static inline uint64_t sum_gaps(const struct tl_buf *text)
{
    struct tl_buf lines = {0};
    uint64_t sum = 0;
    add_lines(text, "G overflow ", &lines);
    assert_int_equal(tl_buf_add(&lines, "", 1), TL_OK);
    for (const char *p = (const char *)lines.p; (p = strstr(p, "G overflow ")); p++)
        sum += strtoull(p + strlen("G overflow "), NULL, 10);
    tl_buf_fini(&lines);
    return sum;
}

static inline size_t count_lines(const struct tl_buf *text, const char *start)
{
    struct tl_buf lines = {0};
    size_t n = 0;
    add_lines(text, start, &lines);
    for (size_t i = 0; i < lines.n; i++)
        n += lines.p[i] == '\n';
    tl_buf_fini(&lines);
    return n;
}

/* Compare the trace's text with the device's events in [from, to) of its bytes. */
static inline void check_text(const struct tl_buf *text, const struct tl_sim_osd *sent, size_t from,
                              size_t to)
{
    struct tl_buf expected = {0}, got = {0};
    size_t stm = 0, uart = 0;
    uint64_t lost = 0;
    for (size_t i = 0; i < sent->n_truth; i++) {
        const struct tl_sim_osd_truth *const t = &sent->truth[i];
        if (t->offset < from || t->offset >= to)
            continue;
        if (t->overflow)
            lost += t->value;
        else if (t->type == TL_SIM_OSD_CTM)
            assert_int_equal(tl_buf_printf(&expected, "B %016llx %016llx\n",
                                           (unsigned long long)t->pc, (unsigned long long)t->npc),
                             TL_OK);
        stm += !t->overflow && t->type == TL_SIM_OSD_STM;
        uart += t->type == TL_SIM_OSD_UART;
    }
    add_lines(text, "B ", &got);
    if (got.n != expected.n || memcmp(got.p, expected.p, got.n) != 0)
        fail_msg("changes of flow differ: %zu bytes, expected %zu", got.n, expected.n);
    assert_int_equal(count_lines(text, "S osd-stm "), stm);
    assert_int_equal(count_lines(text, "S uart "), uart);
    assert_int_equal(sum_gaps(text), lost);
    tl_buf_fini(&expected);
    tl_buf_fini(&got);
}

/* Check that trace `id` contains the device's bytes from `from` to `to`, and their events. */
static inline void check_trace(struct lab *lab, const char *id, const struct tl_sim_osd *sent,
                               size_t from, size_t to)
{
    struct tl_buf raw = {0}, text = {0};
    assert_int_equal(wait_done(lab->lake, id), TL_TRACE_SEALED);
    stored_bytes(lab, id, &raw);
    if (raw.n != to - from || memcmp(raw.p, sent->out.p + from, raw.n) != 0)
        fail_msg("%s: %zu bytes are stored, %zu were sent, or they differ", id, raw.n, to - from);
    lake_text(lab->lake, id, &text);
    check_text(&text, sent, from, to);
    tl_buf_fini(&raw);
    tl_buf_fini(&text);
}

/* ---- devices in threads ------------------------------------------------------------------- */

struct device {
    struct tl_sim_osd_device sim;
    struct osd_plan plan;
    struct osd_glip glip;
    const char *endpoint; /* of the controller; NULL: GLIP */
    uint16_t port;        /* to connect to; 0: it listens */
    pthread_t thread;
    int rc;
};

static inline void *run_device(void *argument)
{
    struct device *const d = argument;
    d->rc = d->endpoint ? osd_gateway_run(&d->sim, d->endpoint, &d->plan)
            : d->port   ? osd_glip_dial(&d->sim, d->port, &d->plan)
                        : osd_glip_run(&d->sim, &d->glip, &d->plan);
    return NULL;
}

static inline void start_device(struct device *d)
{
    assert_int_equal(pthread_create(&d->thread, NULL, run_device, d), 0);
}

static inline void join_device(struct device *d, int expected)
{
    pthread_join(d->thread, NULL);
    assert_int_equal(d->rc, expected);
}

/* Join a device that ends when its modules are switched off; the server may be gone by then. */
static inline void join_switched_off(struct device *d)
{
    pthread_join(d->thread, NULL);
    assert_true(d->rc == TL_OK || d->rc == TL_UNREACHABLE);
}

static inline void wait_until_sent(const struct device *d)
{
    for (unsigned i = 0; i < PATIENCE && !atomic_load(&d->plan.done); i++)
        usleep(1000);
    assert_true(atomic_load(&d->plan.done));
}

/* Check what the host did with the device's modules: all except SCM and MAM. */
static inline void check_switched(const struct tl_sim_osd_device *d, unsigned starts,
                                  unsigned stops, uint16_t host)
{
    for (size_t i = 0; i < d->n_modules; i++) {
        const bool traced =
            d->modules[i].type != TL_SIM_OSD_SCM && d->modules[i].type != TL_SIM_OSD_MAM;
        assert_int_equal(d->modules[i].starts, traced ? starts : 0);
        assert_int_equal(d->modules[i].stops, traced ? stops : 0);
        assert_int_equal(d->modules[i].event_dest, traced ? host : 0);
    }
}

static inline int connect_to(uint16_t port)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

#endif
