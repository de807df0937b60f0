/* SPDX-License-Identifier: MIT */
/*
 * The Open SoC Debug host controller without sockets: its answers, word by word; devices that
 * answer wrongly, late or not at all.
 */
#include "osdhost/controller.h"
#include "osdhost/glip.h"
#include "osdhost/silent.h"
#include "setup/setup.h"
#include "sim/osd_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a bring-up connected to a device ----------------------------------------------------- */

struct bench {
    struct tl_osd_bringup b;
    struct tl_sim_osd_device d;
    size_t taken; /* of the device's output */
    int64_t now;
    unsigned requests;
    uint16_t asked[256][TL_OSD_REQUEST_WORDS];
};

static void open_bench(struct bench *t)
{
    *t = (struct bench){0};
    tl_sim_osd_device_init(&t->d, 0, 32, 12, 1);
    tl_osd_bringup_init(&t->b, 0, 0x0400);
    assert_int_equal(tl_osd_bringup_begin(&t->b, t->now), TL_OK);
}

static void close_bench(struct bench *t)
{
    tl_osd_bringup_fini(&t->b);
    tl_sim_osd_device_fini(&t->d);
}

/* Let the device process its input. Returns false if there was none. */
static bool ask(struct bench *t)
{
    uint16_t *const words = t->asked[t->requests % 256];
    const unsigned n = tl_osd_bringup_next(&t->b, words, t->now);
    if (n == 0)
        return false;
    t->requests++;
    assert_int_equal(tl_sim_osd_device_take(&t->d, words, n), TL_OK);
    return true;
}

/* Deliver the device's oldest pending packet. Returns false if there is none. */
static bool bring(struct bench *t)
{
    const struct tl_buf *const out = &t->d.sent.out;
    uint16_t words[64];
    if (t->taken == out->n)
        return false;
    const size_t n = tl_be16(out->p + t->taken);
    for (size_t i = 0; i < n; i++)
        words[i] = tl_be16(out->p + t->taken + 2 * (i + 1));
    t->taken += 2 * (n + 1);
    (void)tl_osd_bringup_take(&t->b, words, n, t->now);
    return true;
}

static void settle(struct bench *t)
{
    while (ask(t) || bring(t))
        ;
}

static void asks_in_this_order(void **state)
{
    static struct bench t;
    static const uint16_t expected[][4] = {/* module, FLAGS, register, value */
                                           {0, 0, 0},
                                           {0, 0, 1},
                                           {0, 0, 2},
                                           {0, 0, 0x200},
                                           {0, 0, 0x201},
                                           {0, 0, 0x202},
                                           {0, 0, 0x203},
                                           {1, 0, 0},
                                           {1, 0, 1},
                                           {1, 0, 2},
                                           {1, 0, 0x200},
                                           {1, 0, 0x201},
                                           {2, 0, 0},
                                           {2, 0, 1},
                                           {2, 0, 2},
                                           {2, 0, 0x200},
                                           {3, 0, 0},
                                           {3, 0, 1},
                                           {3, 0, 2},
                                           {4, 0, 0},
                                           {4, 0, 1},
                                           {4, 0, 2},
                                           {4, 0, 0x200},
                                           {4, 0, 0x201},
                                           {5, 0, 0},
                                           {5, 0, 1},
                                           {5, 0, 2},
                                           {5, 0, 0x200},
                                           {5, 0, 0x201},
                                           {5, 0, 0x202},
                                           {0, 0x1000, 0x204, 2},
                                           {1, 0x1000, 4, 0x400},
                                           {2, 0x1000, 4, 0x400},
                                           {1, 0x1000, 3, 1},
                                           {2, 0x1000, 3, 1},
                                           {0, 0x1000, 0x204, 0},
                                           {1, 0x1000, 3, 0},
                                           {2, 0x1000, 3, 0}};
    const size_t n = sizeof expected / sizeof expected[0];
    (void)state;
    open_bench(&t);
    t.b.reset = true;
    assert_int_equal(tl_osd_start_parse("ctm+stm", &t.b.start), TL_OK);
    settle(&t);
    assert_int_equal(t.b.phase, TL_OSD_RUNNING);
    assert_int_equal(tl_osd_bringup_due(&t.b), -1);
    tl_osd_bringup_stop(&t.b, t.now);
    settle(&t);
    assert_int_equal(t.b.phase, TL_OSD_DONE);
    assert_int_equal(t.requests, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(t.asked[i][0], expected[i][0]);
        assert_int_equal(t.asked[i][1], 0x0400);
        assert_int_equal(t.asked[i][2], expected[i][1]);
        assert_int_equal(t.asked[i][3], expected[i][2]);
        if (expected[i][1])
            assert_int_equal(t.asked[i][4], expected[i][3]);
    }
    close_bench(&t);
}

static void modules_are_described(void **state)
{
    static struct bench t;
    struct tl_setup setup;
    char text[64];
    (void)state;
    open_bench(&t);
    settle(&t);
    assert_string_equal(tl_osd_bringup_text(&t.b, 1, text, sizeof text),
                        "0.1 CTM 32 bit, version 0");
    assert_string_equal(tl_osd_bringup_text(&t.b, 3, text, sizeof text), "0.3 DEM-UART, version 0");
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "di", NULL), TL_OK);
    struct tl_source *const own = tl_setup_add_source(&setup);
    own->id = 2; /* a module's settings from the user are not changed */
    assert_int_equal(tl_osd_bringup_describe(&t.b, &setup), TL_OK);
    assert_int_equal(setup.n_sources, 6);
    assert_int_equal(tl_setup_source(&setup, 2)->n_regs, 0);
    assert_int_equal(tl_source_reg(tl_setup_source(&setup, 0), "MAX_PKT_LEN", 0), 12);
    assert_int_equal(tl_source_reg(tl_setup_source(&setup, 1), "ADDR_WIDTH", 0), 32);
    assert_int_equal(tl_source_reg(tl_setup_source(&setup, 1), "MOD_TYPE", 0), 5);
    assert_string_equal(tl_setup_source(&setup, 1)->name, "di.0.1");
    tl_setup_fini(&setup);
    close_bench(&t);
}

/* Let time pass until something is due, `times` times. */
static void wait_for_due(struct bench *t, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        const int64_t due = tl_osd_bringup_due(&t->b);
        assert_true(due >= t->now);
        t->now = due;
        tl_osd_bringup_tick(&t->b, t->now);
        settle(t);
    }
}

static void silence_is_survived(void **state)
{
    static struct bench t;
    (void)state;
    open_bench(&t);
    atomic_store(&t.d.deaf, true);
    settle(&t);
    wait_for_due(&t, 3); /* three requests */
    assert_int_equal(t.b.phase, TL_OSD_WAIT);
    assert_int_equal(t.requests, 3);
    const int64_t begin = t.now;
    wait_for_due(&t, 1 + 3 + 1 + 3); /* two more rounds */
    assert_int_equal(t.b.phase, TL_OSD_WAIT);
    assert_true(t.now - begin >= 3000); /* with increasing pauses */
    atomic_store(&t.d.deaf, false);
    wait_for_due(&t, 1);
    assert_int_equal(t.b.phase, TL_OSD_RUNNING);
    atomic_store(&t.d.deaf, true); /* the device stops answering; this must not delay the end */
    tl_osd_bringup_stop(&t.b, t.now);
    settle(&t);
    for (unsigned i = 0; i < 20 && t.b.phase != TL_OSD_DONE; i++)
        wait_for_due(&t, 1);
    assert_int_equal(t.b.phase, TL_OSD_DONE);
    close_bench(&t);
}

/* An answer arrives after its request was repeated: the second answer is not taken for the next
 * request's. */
static void late_answers_do_not_shift(void **state)
{
    static struct bench t;
    (void)state;
    open_bench(&t);
    for (unsigned i = 0; i < 12; i++) { /* up to the CTM's MOD_TYPE */
        assert_true(ask(&t));
        if (i == 8)
            break;
        assert_true(bring(&t));
    }
    t.now = tl_osd_bringup_due(&t.b);
    tl_osd_bringup_tick(&t.b, t.now);
    assert_true(ask(&t)); /* the repeated request; two answers are now in flight */
    assert_true(bring(&t));
    assert_false(ask(&t)); /* it waits for the second answer */
    assert_true(bring(&t));
    assert_true(tl_osd_bringup_due(&t.b) > t.now);
    t.now = tl_osd_bringup_due(&t.b);
    tl_osd_bringup_tick(&t.b, t.now);
    settle(&t);
    assert_int_equal(t.b.phase, TL_OSD_RUNNING);
    assert_int_equal(t.b.modules[1].type, 5);
    assert_int_equal(t.b.modules[1].special[0], 32);
    close_bench(&t);
}

/* Answers for others, refusals, impossible values. */
static void odd_answers_are_survived(void **state)
{
    struct tl_osd_bringup b;
    uint16_t words[TL_OSD_REQUEST_WORDS];
    (void)state;
    tl_osd_bringup_init(&b, 3, 0x0400);
    assert_int_equal(tl_osd_bringup_begin(&b, 0), TL_OK);
    assert_int_equal(tl_osd_bringup_next(&b, words, 0), 4);
    assert_int_equal(words[0], 3 << 10);
    assert_int_equal(tl_osd_bringup_next(&b, words, 0), 0);
    const uint16_t odd[][4] = {{0x0401, 3 << 10, 0x2000, 1}, /* for another client */
                               {0x0400, 1, 0x2000, 1},       /* of another module */
                               {0x0400, 3 << 10, 0x3800, 1}, /* to a write */
                               {0x0400, 3 << 10, 0x2400, 1}, /* 32 bits */
                               {0x0400, 3 << 10, 0x8000, 1}, /* an event */
                               {0x0400, 3 << 10, 0, 1}};     /* a request */
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        for (size_t n = 0; n <= 4; n++)
            assert_false(tl_osd_bringup_take(&b, odd[i], n, 0));
    for (unsigned i = 0; i < 5; i++) { /* vendor, type, version, two of the SCM */
        const uint16_t value = i < 2;
        assert_true(tl_osd_bringup_take(&b, (uint16_t[]){0x0400, 3 << 10, 0x2000, value}, 4, 0));
        assert_int_equal(tl_osd_bringup_next(&b, words, 0), 4);
    }
    assert_true(tl_osd_bringup_take(&b, (uint16_t[]){0x0400, 3 << 10, 0x2000, 0xffff}, 4, 0));
    assert_int_equal(b.n_modules, TL_OSD_LOCALS); /* the maximum */
    for (unsigned i = 0; i < 10000 && b.phase == TL_OSD_ENUMERATE; i++)
        if (tl_osd_bringup_next(&b, words, 0))
            assert_true(tl_osd_bringup_take(&b, (uint16_t[]){0x0400, words[0], 0x3000}, 3, 0));
    assert_int_equal(b.phase, TL_OSD_RUNNING); /* no module is known, so none is started */
    tl_osd_bringup_fini(&b);
}

/* A thousand modules that do not answer are not each retried. */
static void many_silent_modules_are_passed_by(void **state)
{
    struct tl_osd_bringup b;
    uint16_t words[TL_OSD_REQUEST_WORDS];
    int64_t now = 0;
    (void)state;
    tl_osd_bringup_init(&b, 0, 0x0400);
    assert_int_equal(tl_osd_bringup_begin(&b, 0), TL_OK);
    while (b.phase == TL_OSD_ENUMERATE) {
        const unsigned n = tl_osd_bringup_next(&b, words, now);
        const uint16_t value = words[3] == 0x202 ? 1000 : words[3] == 1 ? 5 : 1;
        if (n && words[0] < 2)
            assert_true(
                tl_osd_bringup_take(&b, (uint16_t[]){0x0400, words[0], 0x2000, value}, 4, now));
        else
            tl_osd_bringup_tick(&b, now = tl_osd_bringup_due(&b));
    }
    assert_true(now < 10000);
    assert_true(b.enumerated && b.modules[1].answers && !b.modules[2].answers);
    assert_int_equal(tl_osd_bringup_next(&b, words, now), 5); /* the existing one is started */
    assert_int_equal(words[0], 1);
    tl_osd_bringup_fini(&b);
}

static void start_option(void **state)
{
    unsigned start;
    (void)state;
    assert_int_equal(tl_osd_start_parse("yes", &start), TL_OK);
    assert_int_equal(start, TL_OSD_START_ALL);
    assert_int_equal(tl_osd_start_parse("none", &start), TL_OK);
    assert_int_equal(start, 0);
    assert_int_equal(tl_osd_start_parse("cdm+uart", &start), TL_OK);
    assert_int_equal(start, 1u << 6 | 1u << 2);
    assert_int_equal(tl_osd_start_parse("", &start), TL_USAGE);
    assert_int_equal(tl_osd_start_parse("ctm+", &start), TL_USAGE);
    assert_int_equal(tl_osd_start_parse("scm", &start), TL_USAGE);
    assert_int_equal(tl_osd_start_parse("ctm,stm", &start), TL_USAGE);
}

/* ---- over a byte stream ------------------------------------------------------------------- */

/* Bring up over GLIP with bytes in pieces of `piece`, with events in between. */
static void check_glip(size_t piece, bool little_endian)
{
    struct tl_osd_glip g;
    struct tl_sim_osd_device d;
    struct tl_buf out = {0};
    size_t taken = 0;
    tl_sim_osd_device_init(&d, 0, 64, 12, piece);
    tl_osd_glip_init(&g);
    d.sent.little_endian = little_endian;
    g.little_endian = little_endian;
    assert_int_equal(tl_osd_bringup_begin(&g.bringup, 0), TL_OK);
    while (g.bringup.phase != TL_OSD_RUNNING) {
        uint16_t words[TL_OSD_REQUEST_WORDS];
        assert_int_equal(tl_osd_glip_next(&g, &out, 0), TL_OK);
        assert_true(out.n == 10 || out.n == 12); /* one request at a time, or no answer yet */
        for (size_t i = 0; i < out.n / 2; i++) {
            const uint16_t word = little_endian ? tl_le16(out.p + 2 * i) : tl_be16(out.p + 2 * i);
            if (i == 0)
                assert_int_equal(word, out.n / 2 - 1);
            else
                words[i - 1] = word;
        }
        assert_int_equal(tl_sim_osd_device_run(&d, 3), TL_OK);
        assert_int_equal(tl_sim_osd_device_take(&d, words, out.n / 2 - 1), TL_OK);
        assert_int_equal(tl_sim_osd_device_run(&d, 2), TL_OK);
        tl_buf_reset(&out);
        while (taken < d.sent.out.n) {
            const size_t left = d.sent.out.n - taken, n = left < piece ? left : piece;
            tl_osd_glip_take(&g, (struct tl_bytes){d.sent.out.p + taken, n}, 0);
            taken += n;
        }
    }
    assert_int_equal(g.little_endian, little_endian);
    assert_int_equal(g.bringup.n_modules, 6);
    assert_int_equal(g.bringup.modules[1].special[0], 64);
    assert_int_equal(d.active, 4);
    tl_buf_fini(&out);
    tl_osd_glip_fini(&g);
    tl_sim_osd_device_fini(&d);
}

static void answers_are_found_in_any_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        check_glip(piece, false);
        check_glip(piece, true);
    }
    check_glip(100000, false);
}

/* ---- the controller ----------------------------------------------------------------------- */

struct world {
    struct tl_osd_ctl *ctl;
    char sent[4096]; /* as text: "2<M ACK\n" */
    bool unreachable;
    unsigned opened, closed, packets;
    size_t words;
};

static int on_send(void *context, struct tl_bytes id, char type, struct tl_bytes payload)
{
    struct world *const w = context;
    char *const end = w->sent + strlen(w->sent);
    const size_t room = sizeof w->sent - (size_t)(end - w->sent);
    if (w->unreachable)
        return TL_UNREACHABLE;
    if (type == 'M')
        snprintf(end, room, "%c<M %.*s\n", id.p[0], (int)payload.n, (const char *)payload.p);
    else
        snprintf(end, room, "%c<D %zu words to %x\n", id.p[0], payload.n / 2,
                 *(const uint16_t *)(const void *)payload.p);
    return TL_OK;
}

static void on_opened(void *context, struct tl_osd_link *link)
{
    ((struct world *)context)->opened++;
}

static void on_packet(void *context, struct tl_osd_link *link, const uint16_t *words, size_t n)
{
    ((struct world *)context)->packets++;
    ((struct world *)context)->words += n;
}

static void on_closed(void *context, struct tl_osd_link *link, const char *why)
{
    ((struct world *)context)->closed++;
}

static void on_enumerated(void *context, struct tl_osd_link *link)
{
}

static void on_log(void *context, const char *line)
{
}

static void open_world(struct world *w)
{
    const struct tl_osd_ctl_options options = {.start = TL_OSD_START_ALL};
    const struct tl_osd_ctl_sink sink = {.context = w,
                                         .send = on_send,
                                         .opened = on_opened,
                                         .enumerated = on_enumerated,
                                         .packet = on_packet,
                                         .closed = on_closed,
                                         .log = on_log};
    *w = (struct world){0};
    assert_int_equal(tl_osd_ctl_new(&w->ctl, &sink, &options), TL_OK);
}

/* A message of peer `who` over connection `connection`, and what is sent in response. */
static void exchange(struct world *w, const char *who, int connection, const char *type,
                     const void *payload, size_t n, const char *expected)
{
    const struct tl_bytes frames[] = {{(const uint8_t *)type, strlen(type)}, {payload, n}};
    w->sent[0] = 0;
    assert_int_equal(tl_osd_ctl_message(w->ctl, (struct tl_bytes){(const uint8_t *)who, 1},
                                        connection, frames, 2, 0),
                     TL_OK);
    assert_string_equal(w->sent, expected);
}

static void manage(struct world *w, const char *who, int connection, const char *text,
                   const char *expected)
{
    exchange(w, who, connection, "M", text, strlen(text), expected);
}

static void packets_go_where_they_belong(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    manage(&w, "g", 1, "GW_REGISTER 0", "g<M ACK\ng<D 4 words to 0\n");
    manage(&w, "h", 2, "DIADDR_REQUEST", "h<M 1025\n");
    manage(&w, "i", 3, "DIADDR_REQUEST", "i<M 1026\n");
    manage(&w, "i", 3, "DIADDR_REQUEST", "i<M 1027\n"); /* no limit */
    const uint16_t to_device[] = {3, 0x0401, 0, 1}, to_h[] = {0x0401, 3, 0x8000, 'x'};
    const uint16_t to_i[] = {0x0403, 0x0401, 0x8000}, to_none[] = {0x0407, 3, 0x8000};
    const uint16_t to_subnet_5[] = {5 << 10, 3, 0x8000}, to_itself[] = {1, 3, 0x8000};
    exchange(&w, "h", 2, "D", to_device, 8, "g<D 4 words to 3\n");
    exchange(&w, "g", 1, "D", to_h, 8, "h<D 4 words to 401\n");
    exchange(&w, "h", 2, "D", to_i, 6, "i<D 3 words to 403\n");
    exchange(&w, "g", 1, "D", to_none, 6, "");
    exchange(&w, "g", 1, "D", to_subnet_5, 6, "");
    exchange(&w, "g", 1, "D", to_itself, 6, "");
    assert_int_equal(w.packets, 4); /* exactly the packets that the gateway delivered */
    assert_int_equal(w.words, 13);
    manage(&w, "i", 3, "DIADDR_RELEASE", "i<M ACK\n");
    manage(&w, "i", 3, "DIADDR_RELEASE", "i<M ACK\n");
    manage(&w, "i", 3, "DIADDR_RELEASE", "i<M NACK\n");
    manage(&w, "h", 2, "GW_UNREGISTER 0", "h<M NACK\n"); /* the gateway of another peer */
    manage(&w, "g", 1, "GW_UNREGISTER 0", "g<M ACK\n");
    assert_int_equal(w.closed, 1);
    tl_osd_ctl_free(w.ctl);
}

static void gateways_that_are_gone_make_room(void **state)
{
    struct world w;
    const uint16_t event[] = {0x0400, 1, 0x8000, 1};
    (void)state;
    open_world(&w);
    manage(&w, "a", 1, "GW_REGISTER 0", "a<M ACK\na<D 4 words to 0\n");
    manage(&w, "b", 2, "GW_REGISTER 0", "b<M NACK\n");
    tl_osd_ctl_gone(w.ctl, 1);
    manage(&w, "b", 2, "GW_REGISTER 0", "b<M ACK\nb<D 4 words to 0\n");
    assert_int_equal(w.opened, 2);
    exchange(&w, "a", 1, "D", event, 8, ""); /* sent before it disconnected; not lost */
    exchange(&w, "b", 2, "D", event, 8, "");
    assert_int_equal(w.packets, 2);
    assert_int_equal(w.closed, 0);
    tl_osd_ctl_settle(w.ctl);
    assert_int_equal(w.closed, 1);
    /* The same gateway over a new connection: it was restarted. */
    manage(&w, "b", 7, "GW_REGISTER 0", "b<M ACK\nb<D 4 words to 0\n");
    assert_int_equal(w.closed, 2);
    manage(&w, "b", 7, "GW_REGISTER 0", "b<M NACK\n");
    tl_osd_ctl_free(w.ctl);
    assert_int_equal(w.closed, 3);
}

static void hosts_that_are_gone_make_room(void **state)
{
    struct world w;
    const uint16_t event[] = {0x0401, 1, 0x8000, 1};
    (void)state;
    open_world(&w);
    manage(&w, "g", 1, "GW_REGISTER 0", "g<M ACK\ng<D 4 words to 0\n");
    manage(&w, "h", 2, "DIADDR_REQUEST", "h<M 1025\n");
    w.unreachable = true; /* sending fails without a stated reason */
    exchange(&w, "g", 1, "D", event, 8, "");
    w.unreachable = false;
    exchange(&w, "g", 1, "D", event, 8, "");
    manage(&w, "i", 3, "DIADDR_REQUEST", "i<M 1025\n");
    tl_osd_ctl_gone(w.ctl, 3);
    tl_osd_ctl_settle(w.ctl);
    manage(&w, "k", 4, "DIADDR_REQUEST", "k<M 1025\n");
    assert_int_equal(w.packets, 2);
    tl_osd_ctl_free(w.ctl);
}

static void unregistered_gateways_are_adopted(void **state)
{
    struct world w;
    const uint16_t event[] = {0x0401, 2, 0x8000, 1}, request[] = {5 << 10, 2 << 10, 0, 1};
    const uint16_t from_host[] = {0, 0x0409, 0x8000, 1};
    (void)state;
    open_world(&w);
    exchange(&w, "x", 1, "D", request, 8, ""); /* devices do not send requests */
    exchange(&w, "x", 1, "D", from_host, 8, "");
    assert_int_equal(w.opened, 0);
    exchange(&w, "g", 2, "D", event, 8, "g<D 4 words to 0\n");
    assert_int_equal(w.opened, 1);
    assert_int_equal(w.packets, 1);
    exchange(&w, "x", 1, "D", event, 8, ""); /* there is a gateway now */
    assert_int_equal(w.packets, 1);
    manage(&w, "g", 2, "GW_UNREGISTER 0", "g<M ACK\n");
    assert_int_equal(tl_osd_ctl_stop(w.ctl, 0), TL_OK);
    exchange(&w, "g", 2, "D", event, 8, ""); /* too late */
    manage(&w, "g", 2, "GW_REGISTER 0", "g<M NACK\n");
    assert_true(tl_osd_ctl_stopped(w.ctl));
    tl_osd_ctl_free(w.ctl);
}

static void silent_gateways_are_asked(void **state)
{
    struct world w;
    const uint16_t answer[] = {0x0400, 0, 0x2000, 1};
    const struct tl_bytes g = {(const uint8_t *)"g", 1}, h = {(const uint8_t *)"h", 1};
    (void)state;
    open_world(&w);
    w.unreachable = true;
    assert_int_equal(tl_osd_ctl_ask(w.ctl, g), TL_UNREACHABLE);
    w.unreachable = false;
    assert_int_equal(tl_osd_ctl_ask(w.ctl, g), TL_OK);
    assert_string_equal(w.sent, "g<D 4 words to 0\n");
    assert_int_equal(w.opened, 0);
    exchange(&w, "g", 1, "D", answer, 8, "g<D 4 words to 0\n"); /* it is brought up */
    assert_int_equal(w.opened, 1);
    assert_int_equal(w.packets, 1);
    assert_int_equal(tl_osd_ctl_ask(w.ctl, h), TL_AGAIN); /* there is one */
    manage(&w, "g", 1, "GW_UNREGISTER 0", "g<M ACK\n");
    assert_int_equal(tl_osd_ctl_stop(w.ctl, 0), TL_OK);
    assert_int_equal(tl_osd_ctl_ask(w.ctl, h), TL_AGAIN);
    tl_osd_ctl_free(w.ctl);
}

/* ---- connections that say nothing --------------------------------------------------------- */

static struct tl_bytes numbered(uint8_t id[static 5], uint32_t number)
{
    id[0] = 0;
    tl_put_be16(id + 1, (uint16_t)(number >> 16));
    tl_put_be16(id + 3, (uint16_t)number);
    return (struct tl_bytes){id, 5};
}

/* Everybody who has connected is looked for once it is quiet, except those who have spoken. */
static void connections_that_say_nothing_are_found(void **state)
{
    struct tl_osd_silent s;
    struct tl_bytes id;
    uint8_t expected[5];
    const uint32_t first = UINT32_MAX - 3; /* numbers go on behind the largest */
    (void)state;
    tl_osd_silent_init(&s, numbered(expected, first));
    assert_int_equal(tl_osd_silent_due(&s), -1);
    tl_osd_silent_spoke(&s, numbered(expected, first + 2)); /* read before it is counted */
    for (int64_t now = 0; now < 7; now++)
        tl_osd_silent_joined(&s, now);
    tl_osd_silent_spoke(&s, numbered(expected, first + 5));
    tl_osd_silent_spoke(&s, (struct tl_bytes){(const uint8_t *)"own id", 6});
    assert_int_equal(tl_osd_silent_due(&s), 6 + TL_OSD_SILENT_MS);
    assert_false(tl_osd_silent_next(&s, 5 + TL_OSD_SILENT_MS, &id));
    for (unsigned round = 0; round < 2; round++) { /* the second time: nobody was reached */
        static const uint32_t silent[] = {1, 3, 4, 6, 7};
        for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
            assert_true(tl_osd_silent_next(&s, 10000 * (round + 1), &id));
            assert_int_equal(id.n, 5);
            assert_memory_equal(id.p, numbered(expected, first + silent[i]).p, 5);
        }
        if (round)
            break;
        assert_false(tl_osd_silent_next(&s, 10000, &id));
        assert_int_equal(tl_osd_silent_due(&s), -1);
        tl_osd_silent_joined(&s, 10000); /* the eighth */
        tl_osd_silent_spoke(&s, numbered(expected, first + 8));
    }
    assert_false(tl_osd_silent_next(&s, 20000, &id));
    for (unsigned i = 0; i < 3 * TL_OSD_SILENT_KEPT; i++)
        tl_osd_silent_joined(&s, 0);
    unsigned n = 0;
    while (tl_osd_silent_next(&s, 10000, &id))
        n++;
    assert_int_equal(n, TL_OSD_SILENT_KEPT / 2);
    tl_osd_silent_init(&s, (struct tl_bytes){(const uint8_t *)"other", 5});
    tl_osd_silent_joined(&s, 0);
    assert_false(tl_osd_silent_next(&s, 10000, &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_in_this_order),
        cmocka_unit_test(modules_are_described),
        cmocka_unit_test(silence_is_survived),
        cmocka_unit_test(late_answers_do_not_shift),
        cmocka_unit_test(odd_answers_are_survived),
        cmocka_unit_test(many_silent_modules_are_passed_by),
        cmocka_unit_test(start_option),
        cmocka_unit_test(answers_are_found_in_any_pieces),
        cmocka_unit_test(packets_go_where_they_belong),
        cmocka_unit_test(gateways_that_are_gone_make_room),
        cmocka_unit_test(hosts_that_are_gone_make_room),
        cmocka_unit_test(unregistered_gateways_are_adopted),
        cmocka_unit_test(silent_gateways_are_asked),
        cmocka_unit_test(connections_that_say_nothing_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
