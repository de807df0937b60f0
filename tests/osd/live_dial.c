/* SPDX-License-Identifier: MIT */
/* Open SoC Debug live, without a gateway: simulated devices with GLIP over TCP. */
#include "live_lab.h"
#include "osdhost/dial.h"

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
                                         .answer_ms = 400,
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

/* The device does not understand the first request, and would never answer it. */
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

/* Each connection is a trace; one ends in the middle of a datagram. */
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
        assert_int_equal(d.sim.modules[5].starts, 0); /* the CDM was not requested */
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
        cmocka_unit_test(dialled_device_is_started),
        cmocka_unit_test(device_that_connects_is_started),
        cmocka_unit_test(little_endian_device_is_found_out),
        cmocka_unit_test(dialled_device_disconnects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
