/* SPDX-License-Identifier: MIT */
/* Open SoC Debug live, as a host controller: simulated devices connected to gateways, host modules
 * like those of osd-sw, and misbehaving peers. */
#include "live_lab.h"
#include "unit/data.h"

#include "base/bytes.h"

#include <errno.h>
#include <limits.h>
#include <zmq.h>

#define HOST_SELF 0x0400

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
        stop_lab(&lab); /* this disables the modules, so the device disconnects */
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
        d.plan.vanish = i % 2 == 0; /* abruptly, or unregistering first */
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
    /* The subnet is already registered. */
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

/* A device that does not answer at first is queried again. */
static void silent_device_is_asked_again(void **state)
{
    struct lab lab;
    char id[64];
    struct device d = {.plan = {.events = 100, .until_off = true}};
    (void)state;
    open_lab_with(&lab, 500);
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

/* ---- host modules and misbehaving peers --------------------------------------------------- */

struct peer {
    void *zmq, *socket;
};

static void open_peer(struct peer *p, const struct lab *lab)
{
    const int timeout = PATIENCE, linger = 1000;
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

/* Receive a packet; returns its number of words. */
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

/* Wait until the only trace has `n` bytes more. */
static void wait_for_bytes(struct lab *lab, uint64_t n)
{
    uint64_t begin, end;
    bool complete;
    char id[64];
    trace_id(lab, 0, id);
    assert_int_equal(tl_lake_offset(lab->lake, id, &begin, &complete), TL_OK);
    for (int64_t since = 0;;) {
        assert_int_equal(tl_lake_offset(lab->lake, id, &end, &complete), TL_OK);
        if (end >= begin + n)
            break;
        keep_waiting(&since, "bytes of the device");
    }
}

/* A register reader of osd-sw works through our controller; so does a logger, to which the events
 * are redirected. */
static void host_modules_reach_the_device(void **state)
{
    struct lab lab;
    struct peer reader, logger;
    uint16_t words[64];
    char id[64];
    struct device d = {.plan = {.events = UINT_MAX, .rate = 4000}};
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
    /* From here on, core trace goes to the logger, and still into the trace. */
    say(&logger, "D", (uint16_t[]){1, 1026, 0x1000, 4, 1026}, 10);
    assert_int_equal(receive(&logger, words), 3);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(receive(&logger, words) >= 4);
        assert_int_equal(words[1], 1);
    }
    /* its events have no destination now, the first cause of a crash in osd-sw */
    close_peer(&logger);
    wait_for_bytes(&lab, 4000);
    atomic_store(&d.plan.events, 0); /* it is enough */
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

/* Output of a model of real hardware, delivered by a gateway whose device ignores requests. */
static void real_streams_come_through(void **state)
{
    static const char *const names[] = {"ctm16_mpl12", "ctm32_mpl12", "ctm64_mpl12", "ctm64_mpl16"};
    struct lab lab;
    struct peer p;
    (void)state;
    open_lab(&lab);
    for (size_t i = 0; i < 4; i++) {
        char path[1024], name[64], id[64];
        struct tl_buf bytes = {0}, stored = {0}, expected = {0}, got = {0};
        struct tl_setup setup;
        uint16_t words[64];
        snprintf(name, sizeof name, "di/%s.dtd.bin", names[i]);
        if (!test_data(path, sizeof path, name)) {
            print_message("skipped: %s is not there\n", path);
            break;
        }
        read_file(path, &bytes);
        open_peer(&p, &lab);
        expect(&p, "GW_REGISTER 0", "ACK");
        for (size_t at = 0; at < bytes.n;) {
            const size_t n = tl_be16(bytes.p + at);
            assert_true(n <= 64);
            for (size_t k = 0; k < n; k++)
                words[k] = tl_be16(bytes.p + at + 2 * (k + 1));
            say(&p, "D", words, 2 * n);
            at += 2 * (n + 1);
        }
        say(&p, "M", "GW_UNREGISTER 0", 15);
        wait_for_log("subnet 0: the gateway has unregistered", i + 1);
        close_peer(&p);
        trace_id(&lab, i, id);
        assert_int_equal(wait_done(lab.lake, id), TL_TRACE_SEALED);
        stored_bytes(&lab, id, &stored);
        assert_int_equal(stored.n, bytes.n);
        assert_memory_equal(stored.p, bytes.p, bytes.n);
        tl_setup_init(&setup);
        assert_int_equal(tl_setup_format(&setup, "di", NULL), TL_OK);
        decode_text(&setup, NULL, (struct tl_bytes){bytes.p, bytes.n}, &expected);
        lake_text(lab.lake, id, &got);
        assert_texts_equal(&expected, &got);
        tl_setup_fini(&setup);
        tl_buf_fini(&bytes);
        tl_buf_fini(&stored);
        tl_buf_fini(&expected);
        tl_buf_fini(&got);
    }
    close_lab(&lab);
}

/* Everything that crashes the osd-host-controller of osd-sw, and more. */
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
    say(&p, "D", (uint16_t[]){0x0405, 0x0401, 0x8000}, 6); /* unknown destination */
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
    /* ACK: "M" alone is not a known request */
    assert_int_equal(zmq_recv(p.socket, answer, 7, 0), 3);
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
    say(&p, "D", zeros, sizeof zeros); /* too long: truncated */
    close_peer(&p);
    open_peer(&p, &lab);
    expect(&p, "GW_REGISTER 3", "ACK"); /* a gateway that delivers nothing */
    close_peer(&p);
    wait_for_log("the gateway is gone", 1);
    close_lab(&lab);
}

/* Bytes that are not ZeroMQ, from the beginning or later on. */
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

/* If the controller is restarted, the gateway does not notice, and continues to send. */
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
    for (unsigned i = 0; i < 10; i++) { /* wait until it is asked for its modules */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gateway_is_traced_from_registration_to_the_end),
        cmocka_unit_test(gateways_come_and_go),
        cmocka_unit_test(several_gateways_at_a_time),
        cmocka_unit_test(silent_device_is_asked_again),
        cmocka_unit_test(host_modules_reach_the_device),
        cmocka_unit_test(real_streams_come_through),
        cmocka_unit_test(nobody_dies_of_a_message),
        cmocka_unit_test(nobody_dies_of_bytes),
        cmocka_unit_test(gateway_of_an_earlier_controller_is_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
