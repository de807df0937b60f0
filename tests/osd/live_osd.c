/* SPDX-License-Identifier: MIT */
/*
 * Open SoC Debug live: a lake with its host controller and its dialled sources on one side, the
 * simulated device and osd-sw's kind of host modules on real sockets on the other. What is stored
 * and decoded must be what was sent.
 */
#include "device_net.h"
#include "osdhost/dial.h"
#include "osdhost/host.h"
#include "rpc/raw.h"
#include "unit/lake_help.h"

#include "base/bytes.h"
#include "osdhost/bringup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <zmq.h>

#define SETUP     "[trace]\nformat=di\n"
#define PATIENCE  20000 /* ms until something is taken for broken */
#define ANSWER_MS 150
#define HOST_SELF 0x0400

/* ---- the server's side -------------------------------------------------------------------- */

static struct tl_buf log_text;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_log(const char *line)
{
    pthread_mutex_lock(&log_lock);
    assert_int_equal(tl_buf_printf(&log_text, "%s\n", line), TL_OK);
    pthread_mutex_unlock(&log_lock);
}

static size_t count_in_log(const char *what)
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

static void wait_for_log(const char *what, size_t times)
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

static void open_lab(struct lab *lab)
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
                                                .answer_ms = ANSWER_MS};
    if (tl_osd_host_new(&lab->host, lab->lake, &options, on_log, &fail) < 0 ||
        tl_osd_host_start(lab->host, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_raw_new(&lab->raw, lab->lake, on_log), TL_OK);
}

static void stop_lab(struct lab *lab)
{
    tl_raw_free(lab->raw);
    tl_osd_host_free(lab->host);
    lab->raw = NULL;
    lab->host = NULL;
}

static void close_lab(struct lab *lab)
{
    stop_lab(lab);
    tl_lake_close(lab->lake);
    tl_backend_free(lab->backend);
    tl_buf_fini(&log_text);
}

/* The id of the n-th trace that was begun. */
static void trace_id(struct lab *lab, size_t n, char id[static 64])
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_traces(lab->lake, &list), TL_OK);
    if (n >= list.n)
        fail_msg("%zu traces, not %zu", list.n, n + 1);
    snprintf(id, 64, "%s", list.rows[list.n - 1 - n].id); /* the newest is in front */
    tl_trace_list_free(&list);
}

static size_t traces(struct lab *lab)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_traces(lab->lake, &list), TL_OK);
    const size_t n = list.n;
    tl_trace_list_free(&list);
    return n;
}

/* ---- what was sent against what is there -------------------------------------------------- */

static void stored_bytes(struct lab *lab, const char *id, struct tl_buf *out)
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

static void add_lines(const struct tl_buf *text, const char *start, struct tl_buf *out)
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

static uint64_t sum_gaps(const struct tl_buf *text)
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

static size_t count_lines(const struct tl_buf *text, const char *start)
{
    struct tl_buf lines = {0};
    size_t n = 0;
    add_lines(text, start, &lines);
    for (size_t i = 0; i < lines.n; i++)
        n += lines.p[i] == '\n';
    tl_buf_fini(&lines);
    return n;
}

/* The trace's text says what the device's events of [from, to) of its bytes were. */
static void check_text(const struct tl_buf *text, const struct tl_sim_osd *sent, size_t from,
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

/* Trace `id` holds the device's bytes from `from` up to `to`, and their events. */
static void check_trace(struct lab *lab, const char *id, const struct tl_sim_osd *sent, size_t from,
                        size_t to)
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
    uint16_t port;        /* to connect to, 0: it listens */
    pthread_t thread;
    int rc;
};

static void *run_device(void *argument)
{
    struct device *const d = argument;
    d->rc = d->endpoint ? osd_gateway_run(&d->sim, d->endpoint, &d->plan)
            : d->port   ? osd_glip_dial(&d->sim, d->port, &d->plan)
                        : osd_glip_run(&d->sim, &d->glip, &d->plan);
    return NULL;
}

static void start_device(struct device *d)
{
    assert_int_equal(pthread_create(&d->thread, NULL, run_device, d), 0);
}

static void join_device(struct device *d, int expected)
{
    pthread_join(d->thread, NULL);
    assert_int_equal(d->rc, expected);
}

/* It leaves when its modules are switched off; the server may be gone then. */
static void join_switched_off(struct device *d)
{
    pthread_join(d->thread, NULL);
    assert_true(d->rc == TL_OK || d->rc == TL_UNREACHABLE);
}

static void wait_until_sent(const struct device *d)
{
    for (unsigned i = 0; i < PATIENCE && !atomic_load(&d->plan.done); i++)
        usleep(1000);
    assert_true(atomic_load(&d->plan.done));
}

/* What the host must have done to the device's modules: all but SCM and MAM. */
static void check_switched(const struct tl_sim_osd_device *d, unsigned starts, unsigned stops,
                           uint16_t host)
{
    for (size_t i = 0; i < d->n_modules; i++) {
        const bool traced =
            d->modules[i].type != TL_SIM_OSD_SCM && d->modules[i].type != TL_SIM_OSD_MAM;
        assert_int_equal(d->modules[i].starts, traced ? starts : 0);
        assert_int_equal(d->modules[i].stops, traced ? stops : 0);
        assert_int_equal(d->modules[i].event_dest, traced ? host : 0);
    }
}

/* ---- gateways ----------------------------------------------------------------------------- */

static void gateway_is_traced_from_registration_to_the_end(void **state)
{
    struct lab lab;
    (void)state;
    const struct {
        unsigned width, max_pkt_len;
    } kinds[] = {{16, 12}, {32, 12}, {64, 12}, {64, 32}};
    for (size_t i = 0; i < 4; i++) {
        char id[64];
        struct device d = {.plan = {.events = 3000, .until_off = true}};
        open_lab(&lab);
        d.endpoint = tl_osd_host_url(lab.host);
        tl_sim_osd_device_init(&d.sim, 0, kinds[i].width, kinds[i].max_pkt_len, 7 + i);
        start_device(&d);
        wait_until_sent(&d);
        wait_for_log("running, 4 of 6", 1);
        stop_lab(&lab); /* which switches the modules off, so that the device leaves */
        join_switched_off(&d);
        check_switched(&d.sim, 1, 1, HOST_SELF);
        assert_int_equal(traces(&lab), 1);
        trace_id(&lab, 0, id);
        check_trace(&lab, id, &d.sim.sent, 0, d.sim.sent.out.n);
        tl_sim_osd_device_fini(&d.sim);
        close_lab(&lab);
    }
}

static void gateways_come_and_go(void **state)
{
    struct lab lab;
    struct device d = {.plan = {.vanish = true}};
    size_t ends[5] = {0};
    (void)state;
    open_lab(&lab);
    d.endpoint = tl_osd_host_url(lab.host);
    tl_sim_osd_device_init(&d.sim, 0, 32, 12, 1);
    for (size_t i = 0; i < 4; i++) {
        d.plan.events += 700;
        d.plan.vanish = i % 2 == 0; /* without a word, or as it should be */
        d.plan.stop = d.plan.done = false;
        start_device(&d);
        wait_until_sent(&d);
        if (!d.plan.vanish)
            wait_for_log("running", i / 2 + 1);
        atomic_store(&d.plan.stop, !d.plan.vanish);
        join_device(&d, TL_OK);
        ends[i + 1] = d.sim.sent.out.n;
        for (size_t m = 0; m < d.sim.n_modules; m++) /* the device is reset */
            d.sim.modules[m].cs = 0;
        atomic_store(&d.sim.active, 0);
        wait_for_log("subnet 0: the gateway", i + 1);
    }
    assert_int_equal(traces(&lab), 4);
    for (size_t i = 0; i < 4; i++) {
        char id[64];
        trace_id(&lab, i, id);
        check_trace(&lab, id, &d.sim.sent, ends[i], ends[i + 1]);
    }
    tl_sim_osd_device_fini(&d.sim);
    close_lab(&lab);
}

static void several_gateways_at_a_time(void **state)
{
    struct lab lab;
    static struct device d[3];
    (void)state;
    open_lab(&lab);
    for (size_t i = 0; i < 3; i++) {
        d[i] = (struct device){.endpoint = tl_osd_host_url(lab.host),
                               .plan = {.events = 1500, .until_off = true}};
        tl_sim_osd_device_init(&d[i].sim, (unsigned)(2 * i), 32, 12, i);
        start_device(&d[i]);
    }
    for (size_t i = 0; i < 3; i++)
        wait_until_sent(&d[i]);
    wait_for_log("running, 4 of 6", 3);
    /* The subnet is taken. */
    struct device other = {.endpoint = tl_osd_host_url(lab.host)};
    tl_sim_osd_device_init(&other.sim, 4, 32, 12, 9);
    start_device(&other);
    join_device(&other, TL_DENIED);
    tl_sim_osd_device_fini(&other.sim);
    stop_lab(&lab);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_traces(lab.lake, &list), TL_OK);
    assert_int_equal(list.n, 3);
    for (size_t i = 0; i < 3; i++) {
        static const char *const rigs[] = {"osd", "osd-2", "osd-4"};
        join_switched_off(&d[i]);
        size_t row = 0;
        while (row < 3 && strcmp(list.rows[row].rig, rigs[i]) != 0)
            row++;
        assert_true(row < 3);
        check_trace(&lab, list.rows[row].id, &d[i].sim.sent, 0, d[i].sim.sent.out.n);
        tl_sim_osd_device_fini(&d[i].sim);
    }
    tl_trace_list_free(&list);
    close_lab(&lab);
}

/* A device that does not answer at first is asked again. */
static void silent_device_is_asked_again(void **state)
{
    struct lab lab;
    char id[64];
    struct device d = {.plan = {.events = 100, .until_off = true}};
    (void)state;
    open_lab(&lab);
    d.endpoint = tl_osd_host_url(lab.host);
    tl_sim_osd_device_init(&d.sim, 0, 32, 12, 3);
    atomic_store(&d.sim.deaf, true);
    start_device(&d);
    wait_for_log("does not answer; trying again", 1);
    struct tl_buf metrics = {0};
    for (unsigned i = 0; i < PATIENCE; i++) {
        tl_buf_reset(&metrics);
        assert_int_equal(tl_osd_host_metrics(lab.host, &metrics), TL_OK);
        if (memmem(metrics.p, metrics.n, "state=\"no answer\"", 17))
            break;
        usleep(1000);
    }
    assert_non_null(memmem(metrics.p, metrics.n, "state=\"no answer\"", 17));
    tl_buf_fini(&metrics);
    atomic_store(&d.sim.deaf, false);
    wait_until_sent(&d);
    wait_for_log("running, 4 of 6", 1);
    stop_lab(&lab);
    join_switched_off(&d);
    check_switched(&d.sim, 1, 1, HOST_SELF);
    trace_id(&lab, 0, id);
    check_trace(&lab, id, &d.sim.sent, 0, d.sim.sent.out.n);
    tl_sim_osd_device_fini(&d.sim);
    close_lab(&lab);
}

/* ---- host modules, and peers that are out of order ---------------------------------------- */

struct peer {
    void *zmq, *socket;
};

static void open_peer(struct peer *p, const struct lab *lab)
{
    const int timeout = 5000, linger = 1000;
    p->zmq = zmq_ctx_new();
    p->socket = zmq_socket(p->zmq, ZMQ_DEALER);
    zmq_setsockopt(p->socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(p->socket, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal(zmq_connect(p->socket, tl_osd_host_url(lab->host)), 0);
}

static void close_peer(struct peer *p)
{
    zmq_close(p->socket);
    zmq_ctx_term(p->zmq);
}

static void say(struct peer *p, const char *type, const void *payload, size_t n)
{
    assert_true(zmq_send(p->socket, type, strlen(type), ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(p->socket, payload, n, 0) >= 0);
}

static void expect(struct peer *p, const char *text, const char *expected)
{
    char type = 0, answer[64] = {0};
    say(p, "M", text, strlen(text));
    assert_int_equal(zmq_recv(p->socket, &type, 1, 0), 1);
    assert_int_equal(type, 'M');
    assert_true(zmq_recv(p->socket, answer, sizeof answer - 1, 0) >= 0);
    if (strcmp(answer, expected) != 0)
        fail_msg("%s: answer %s, expected %s", text, answer, expected);
}

/* Receive a packet. Its words. */
static size_t receive(struct peer *p, uint16_t words[static 64])
{
    char type = 0;
    if (zmq_recv(p->socket, &type, 1, 0) != 1)
        return 0;
    assert_int_equal(type, 'D');
    const int n = zmq_recv(p->socket, words, 128, 0);
    assert_true(n >= 6);
    return (size_t)n / 2;
}

/* A register reader of osd-sw works through us; so does a logger, which takes the events over. */
static void host_modules_reach_the_device(void **state)
{
    struct lab lab;
    struct peer reader, logger;
    uint16_t words[64];
    char id[64];
    struct device d = {.plan = {.events = 400, .rate = 4000}};
    (void)state;
    open_lab(&lab);
    d.endpoint = tl_osd_host_url(lab.host);
    tl_sim_osd_device_init(&d.sim, 0, 32, 12, 5);
    start_device(&d);
    wait_for_log("running", 1);
    open_peer(&reader, &lab);
    open_peer(&logger, &lab);
    expect(&reader, "DIADDR_REQUEST", "1025");
    expect(&logger, "DIADDR_REQUEST", "1026");
    say(&reader, "D", (uint16_t[]){0, 1025, 0, 0x203}, 8);
    assert_int_equal(receive(&reader, words), 4);
    assert_int_equal(words[0], 1025);
    assert_int_equal(words[3], 12);
    expect(&reader, "DIADDR_RELEASE", "ACK");
    expect(&reader, "DIADDR_RELEASE", "NACK");
    expect(&reader, "DIADDR_REQUEST", "1025");
    /* The core trace goes to the logger from here on, and into the trace as before. */
    say(&logger, "D", (uint16_t[]){1, 1026, 0x1000, 4, 1026}, 10);
    assert_int_equal(receive(&logger, words), 3);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(receive(&logger, words) >= 4);
        assert_int_equal(words[1], 1);
    }
    close_peer(&logger); /* its events have nobody to go to: the first that osd-sw dies of */
    wait_until_sent(&d);
    close_peer(&reader);
    atomic_store(&d.plan.stop, true);
    join_device(&d, TL_OK);
    open_peer(&reader, &lab);
    expect(&reader, "DIADDR_REQUEST", "1025");
    close_peer(&reader);
    stop_lab(&lab);
    trace_id(&lab, 0, id);
    check_trace(&lab, id, &d.sim.sent, 0, d.sim.sent.out.n);
    tl_sim_osd_device_fini(&d.sim);
    close_lab(&lab);
}

/* Everything that osd-host-controller of osd-sw dies of, and some more. */
static void nobody_dies_of_a_message(void **state)
{
    struct lab lab;
    struct peer p, rest;
    static uint8_t zeros[200000];
    (void)state;
    open_lab(&lab);
    open_peer(&p, &lab);
    expect(&p, "GW_REGISTER 99", "NACK");
    expect(&p, "GW_REGISTER x", "NACK");
    expect(&p, "GW_REGISTER", "NACK");
    expect(&p, "GW_REGISTER ", "NACK");
    expect(&p, "GW_REGISTER -1", "NACK");
    expect(&p, "GW_REGISTER 1", "NACK");
    expect(&p, "GW_REGISTER 0 0", "NACK");
    expect(&p, "GW_REGISTER 4294967296", "NACK");
    expect(&p, "GW_REGISTER 99999999999999999999", "NACK");
    expect(&p, "GW_UNREGISTER 0", "NACK");
    expect(&p, "GW_UNREGISTER 99", "NACK");
    expect(&p, "something else", "ACK");
    expect(&p, "", "ACK");
    say(&p, "D", "", 0);
    say(&p, "D", zeros, 2);
    say(&p, "D", zeros, 4);
    say(&p, "D", zeros, 7);
    say(&p, "D", (uint16_t[]){0x0405, 0x0401, 0x8000}, 6); /* to nobody */
    say(&p, "D", (uint16_t[]){0x0001, 0x0401, 0x8000}, 6);
    say(&p, "D", zeros, 131070);
    say(&p, "Q", "?", 1);
    say(&p, "", "", 0);
    assert_true(zmq_send(p.socket, "M", 1, 0) == 1);
    char answer[8] = {0};
    assert_int_equal(zmq_recv(p.socket, answer, 1, 0), 1);
    assert_int_equal(zmq_recv(p.socket, answer, 7, 0), 4); /* NACK */
    assert_true(zmq_send(p.socket, "D", 1, 0) == 1);
    for (int i = 0; i < 20; i++)
        assert_true(zmq_send(p.socket, "M", 1, i < 19 ? ZMQ_SNDMORE : 0) == 1);
    assert_int_equal(zmq_recv(p.socket, answer, 1, 0), 1);
    assert_int_equal(zmq_recv(p.socket, answer, 7, 0), 3); /* ACK: "M" is nothing that we know */
    open_peer(&rest, &lab);
    for (unsigned i = 1; i < 1024; i++) {
        char number[8];
        snprintf(number, sizeof number, "%u", 1024 + i);
        expect(&rest, "DIADDR_REQUEST", number);
    }
    expect(&rest, "DIADDR_REQUEST", "NACK");
    expect(&p, "DIADDR_REQUEST", "NACK");
    expect(&rest, "DIADDR_RELEASE", "ACK");
    expect(&p, "DIADDR_REQUEST", "1025");
    close_peer(&rest);
    say(&p, "D", zeros, sizeof zeros); /* too long: cut off */
    close_peer(&p);
    open_peer(&p, &lab);
    expect(&p, "GW_REGISTER 3", "ACK"); /* a gateway that brings nothing */
    close_peer(&p);
    wait_for_log("the gateway is gone", 1);
    close_lab(&lab);
}

static int connect_to(uint16_t port)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Bytes that are no ZeroMQ, or stop being it. */
static void nobody_dies_of_bytes(void **state)
{
    static const uint8_t greeting[64] = {0xff, 0, 0,   0,   0,   0,   0, 0, 1, 0x7f,
                                         3,    0, 'N', 'U', 'L', 'L', 0, 0, 0, 0};
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct lab lab;
    struct peer p;
    uint64_t random = 1;
    (void)state;
    open_lab(&lab);
    const uint16_t port = (uint16_t)strtoul(strrchr(tl_osd_host_url(lab.host), ':') + 1, NULL, 10);
    for (unsigned i = 0; i < 150; i++) {
        uint8_t bytes[300];
        const int fd = connect_to(port);
        for (size_t k = 0; k < sizeof bytes; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[k] = (uint8_t)(random >> 33) & (i % 2 ? 0x0f : 0xff);
        }
        (void)!send(fd, http, i % 3 ? 0 : sizeof http, MSG_NOSIGNAL);
        (void)!send(fd, greeting, i % 3 == 1 ? sizeof greeting : 0, MSG_NOSIGNAL);
        (void)!send(fd, bytes, i % 299 + 1, MSG_NOSIGNAL);
        close(fd);
    }
    open_peer(&p, &lab);
    expect(&p, "DIADDR_REQUEST", "1025");
    close_peer(&p);
    close_lab(&lab);
}

/* The controller is started anew: the gateway does not know, and goes on sending. */
static void gateway_of_an_earlier_controller_is_recognised(void **state)
{
    struct lab lab;
    struct peer p;
    struct tl_sim_osd_device sim;
    uint16_t words[64];
    (void)state;
    open_lab(&lab);
    open_peer(&p, &lab);
    tl_sim_osd_device_init(&sim, 0, 32, 12, 5);
    say(&p, "D", (uint16_t[]){0x0401, 0x0003, 0x8000, 'x'}, 8);
    for (unsigned i = 0; i < 10; i++) { /* it is asked for its modules */
        const size_t n = receive(&p, words);
        assert_int_equal(words[0] >> 10, 0);
        const size_t from = sim.sent.out.n;
        assert_int_equal(tl_sim_osd_device_take(&sim, words, n), TL_OK);
        const size_t answer = (sim.sent.out.n - from) / 2 - 1;
        for (size_t k = 0; k < answer; k++)
            words[k] = tl_be16(sim.sent.out.p + from + 2 * (k + 1));
        say(&p, "D", words, 2 * answer);
    }
    close_peer(&p);
    wait_for_log("the gateway is gone", 1);
    assert_int_equal(traces(&lab), 1);
    tl_sim_osd_device_fini(&sim);
    close_lab(&lab);
}

/* ---- dialling ----------------------------------------------------------------------------- */

static void dial(struct lab *lab, uint16_t port, const char *more)
{
    struct tl_raw_spec spec;
    struct tl_fail fail = {0};
    char text[128];
    snprintf(text, sizeof text, "tcp://127.0.0.1:%u,format=di,rig=fpga%s", port, more);
    if (tl_raw_parse(&spec, lab->lake, text, &fail) < 0 || tl_raw_dial(lab->raw, &spec, &fail) < 0)
        fail_msg("%s", fail.text);
    tl_raw_spec_fini(&spec);
}

static void dialled_device_is_started(void **state)
{
    struct lab lab;
    (void)state;
    for (unsigned little = 0; little < 2; little++) {
        char id[64];
        struct device d = {.plan = {.events = 3000, .until_off = true, .strict = true}};
        open_lab(&lab);
        tl_sim_osd_device_init(&d.sim, 0, 64, 12, 11 + little);
        d.sim.sent.little_endian = little;
        assert_int_equal(osd_glip_listen(&d.glip, 0), TL_OK);
        start_device(&d);
        dial(&lab, d.glip.port,
             little ? ",start=yes,reset=yes,order=little" : ",start=yes,reset=yes");
        wait_until_sent(&d);
        wait_for_log("running, 4 of 6", 1);
        stop_lab(&lab);
        join_device(&d, TL_OK);
        osd_glip_close(&d.glip);
        check_switched(&d.sim, 1, 1, 0x0401);
        assert_int_equal(d.sim.sysrst, 0);
        trace_id(&lab, 0, id);
        check_trace(&lab, id, &d.sim.sent, 0, d.sim.sent.out.n);
        tl_sim_osd_device_fini(&d.sim);
        close_lab(&lab);
    }
}

static void device_that_connects_is_started(void **state)
{
    struct lab lab;
    struct tl_raw_spec spec;
    struct tl_fail fail = {0};
    char url[96], id[64];
    struct device d = {.plan = {.events = 1000, .until_off = true, .strict = true}};
    (void)state;
    open_lab(&lab);
    tl_sim_osd_device_init(&d.sim, 0, 16, 12, 17);
    if (tl_raw_parse(&spec, lab.lake, "127.0.0.1:0,format=di,rig=near,start=yes", &fail) < 0 ||
        tl_raw_listen(lab.raw, &spec, url, &fail) < 0)
        fail_msg("%s", fail.text);
    d.port = (uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10);
    start_device(&d);
    wait_until_sent(&d);
    wait_for_log("running, 4 of 6", 1);
    stop_lab(&lab);
    join_device(&d, TL_OK);
    check_switched(&d.sim, 1, 1, 0x0401);
    trace_id(&lab, 0, id);
    check_trace(&lab, id, &d.sim.sent, 0, d.sim.sent.out.n);
    tl_raw_spec_fini(&spec);
    tl_sim_osd_device_fini(&d.sim);
    close_lab(&lab);
}

struct dialled {
    struct lab *lab;
    uint16_t port;
    int stop[2];
};

static void *dial_until_understood(void *argument)
{
    const struct dialled *const to = argument;
    bool little_endian = false, any = false;
    for (unsigned i = 0; i < 4 && !any; i++) {
        const int data = connect_to(to->port), control = connect_to((uint16_t)(to->port + 1));
        const struct tl_osd_dial dial = {.lake = to->lab->lake,
                                         .address = "device",
                                         .rig = "fpga",
                                         .setup = SETUP,
                                         .start = TL_OSD_START_ALL,
                                         .answer_ms = 100,
                                         .log = on_log,
                                         .little_endian = &little_endian,
                                         .try_both = true,
                                         .fd = data,
                                         .stop_fd = to->stop[0]};
        any = tl_osd_dial_run(&dial);
        close(data);
        close(control);
    }
    assert_true(any && little_endian);
    return NULL;
}

/* It does not understand a word of what it is asked first, and would never again. */
static void little_endian_device_is_found_out(void **state)
{
    struct lab lab;
    char id[64];
    pthread_t thread;
    struct device d = {.plan = {.events = 1000, .until_off = true, .strict = true}};
    (void)state;
    open_lab(&lab);
    tl_sim_osd_device_init(&d.sim, 0, 32, 12, 13);
    d.sim.sent.little_endian = true;
    assert_int_equal(osd_glip_listen(&d.glip, 0), TL_OK);
    start_device(&d);
    struct dialled to = {.lab = &lab, .port = d.glip.port};
    assert_int_equal(pipe(to.stop), 0);
    assert_int_equal(pthread_create(&thread, NULL, dial_until_understood, &to), 0);
    wait_until_sent(&d);
    wait_for_log("running, 4 of 6", 1);
    assert_int_equal(write(to.stop[1], "x", 1), 1);
    pthread_join(thread, NULL);
    join_device(&d, TL_OK);
    osd_glip_close(&d.glip);
    close(to.stop[0]);
    close(to.stop[1]);
    assert_int_equal(count_in_log("trying the other byte order"), 1);
    assert_int_equal(traces(&lab), 1);
    trace_id(&lab, 0, id);
    check_trace(&lab, id, &d.sim.sent, 0, d.sim.sent.out.n);
    tl_sim_osd_device_fini(&d.sim);
    close_lab(&lab);
}

/* Each connection is a trace; one ends amid a datagram. */
static void dialled_device_disconnects(void **state)
{
    struct lab lab;
    struct device d = {.plan = {.cut = true}};
    size_t from[3], to[3];
    (void)state;
    open_lab(&lab);
    tl_sim_osd_device_init(&d.sim, 0, 32, 12, 21);
    assert_int_equal(osd_glip_listen(&d.glip, 0), TL_OK);
    dial(&lab, d.glip.port, ",start=ctm+stm+uart");
    for (size_t i = 0; i < 3; i++) {
        d.plan.events += 500;
        d.plan.cut = i < 2;
        d.plan.until_off = i == 2;
        d.plan.done = false;
        from[i] = d.sim.sent.out.n;
        start_device(&d);
        wait_until_sent(&d);
        if (i == 2)
            stop_lab(&lab);
        join_device(&d, TL_OK);
        to[i] = d.sim.sent.out.n;
        for (size_t m = 0; m < d.sim.n_modules; m++)
            d.sim.modules[m].cs = 0;
        atomic_store(&d.sim.active, 0);
        assert_int_equal(d.sim.modules[5].starts, 0); /* the CDM was not wanted */
    }
    osd_glip_close(&d.glip);
    assert_int_equal(traces(&lab), 3);
    for (size_t i = 0; i < 3; i++) {
        char id[64];
        struct tl_buf raw = {0};
        trace_id(&lab, i, id);
        assert_int_equal(wait_done(lab.lake, id), TL_TRACE_SEALED);
        stored_bytes(&lab, id, &raw);
        assert_int_equal(raw.n, to[i] - from[i]);
        assert_memory_equal(raw.p, d.sim.sent.out.p + from[i], raw.n);
        tl_buf_fini(&raw);
    }
    tl_sim_osd_device_fini(&d.sim);
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gateway_is_traced_from_registration_to_the_end),
        cmocka_unit_test(gateways_come_and_go),
        cmocka_unit_test(several_gateways_at_a_time),
        cmocka_unit_test(silent_device_is_asked_again),
        cmocka_unit_test(host_modules_reach_the_device),
        cmocka_unit_test(nobody_dies_of_a_message),
        cmocka_unit_test(nobody_dies_of_bytes),
        cmocka_unit_test(gateway_of_an_earlier_controller_is_recognised),
        cmocka_unit_test(dialled_device_is_started),
        cmocka_unit_test(device_that_connects_is_started),
        cmocka_unit_test(little_endian_device_is_found_out),
        cmocka_unit_test(dialled_device_disconnects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
