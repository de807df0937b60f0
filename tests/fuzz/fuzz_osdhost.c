/* SPDX-License-Identifier: MIT */
/*
 * The Open SoC Debug host controller: arbitrary messages from any peers, connections that end,
 * passing time; and the search for answers in a device's bytes. For any input, each packet of a
 * gateway is delivered once, links that were opened are closed, and answers are well-formed.
 *
 * The input is a script: an operation byte and its arguments (see step()).
 */
#include "osdhost/controller.h"
#include "osdhost/glip.h"
#include "setup/setup.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PEERS 6

struct world {
    struct tl_osd_ctl *ctl;
    uint64_t links;   /* open */
    uint64_t packets; /* delivered, from open links */
    bool gone[PEERS]; /* peers to which messages cannot be sent */
    int64_t now;
    uint16_t last; /* last word of a packet */
};

static void check(bool truth)
{
    if (!truth)
        abort();
}

static int on_send(void *context, struct tl_bytes id, char type, struct tl_bytes payload)
{
    const struct world *const w = context;
    check(id.n == 1 && id.p[0] < PEERS);
    if (type == 'D')
        check(payload.n >= 6 && payload.n % 2 == 0);
    else
        check(type == 'M' && payload.n >= 3 && payload.n <= 4);
    return w->gone[id.p[0]] ? TL_UNREACHABLE : TL_OK;
}

static void on_opened(void *context, struct tl_osd_link *link)
{
    struct world *const w = context;
    check(link->subnet < TL_OSD_SUBNETS && link->subnet != TL_OSD_HOST_SUBNET && !link->user);
    link->user = w;
    w->links++;
}

static void on_enumerated(void *context, struct tl_osd_link *link)
{
    struct tl_setup setup;
    char text[32];
    check(link->user == context && link->bringup.n_modules <= TL_OSD_LOCALS);
    for (size_t i = 0; i < link->bringup.n_modules; i++)
        check(strlen(tl_osd_bringup_text(&link->bringup, i, text, sizeof text)) < sizeof text);
    tl_setup_init(&setup);
    check(tl_osd_bringup_describe(&link->bringup, &setup) == TL_OK);
    tl_setup_fini(&setup);
}

static void on_packet(void *context, struct tl_osd_link *link, const uint16_t *words, size_t n)
{
    check(link->user == context && n >= 3);
    ((struct world *)context)->packets++;
    ((struct world *)context)->last = words[n - 1];
}

static void on_closed(void *context, struct tl_osd_link *link, const char *why)
{
    struct world *const w = context;
    check(link->user == w && *why);
    check(w->packets >= link->packets);
    w->packets -= link->packets;
    w->links--;
}

static void on_log(void *context, const char *line)
{
    check(*line && !strchr(line, '\n'));
}

/* The answer that a device would give to the pending request; `value` if it is a read. */
static void answer(struct world *w, uint8_t peer, uint8_t subnet, uint8_t module, uint8_t value,
                   uint8_t kind)
{
    static const uint16_t flags[] = {0x2000, 0x3000, 0x3800, 0x3c00};
    const uint16_t words[] = {TL_OSD_HOST_SELF, (uint16_t)(subnet << 10 | module), flags[kind % 4],
                              value};
    const struct tl_bytes frames[] = {{(const uint8_t *)"D", 1},
                                      {(const uint8_t *)words, kind % 4 ? 6 : 8}};
    check(tl_osd_ctl_message(w->ctl, (struct tl_bytes){&peer, 1}, peer, frames, 2, w->now) ==
          TL_OK);
}

static void message(struct world *w, uint8_t peer, const uint8_t *p, size_t n, bool more)
{
    struct tl_bytes frames[3];
    size_t k = 0;
    const size_t first = n ? 1 : 0;
    frames[k++] = (struct tl_bytes){p, first};
    frames[k++] = (struct tl_bytes){p + first, n - first};
    if (more)
        frames[k++] = (struct tl_bytes){p, n};
    check(tl_osd_ctl_message(w->ctl, (struct tl_bytes){&peer, 1}, peer, frames, n ? k : 0,
                             w->now) == TL_OK);
}

/* Perform one operation of the script. Returns its length. */
static size_t step(struct world *w, const uint8_t *p, size_t n)
{
    const uint8_t op = p[0] % 8, peer = p[0] / 8 % PEERS;
    switch (op) {
    case 0:
    case 1: /* length, message */
        if (n < 2 || n < 2 + (size_t)p[1])
            return n;
        message(w, peer, p + 2, p[1], op);
        return 2 + (size_t)p[1];
    case 2:
        w->gone[peer] = true;
        tl_osd_ctl_gone(w->ctl, peer);
        return 1;
    case 3:
        tl_osd_ctl_settle(w->ctl);
        memset(w->gone, 0, sizeof w->gone);
        return 1;
    case 4: /* time passes */
        w->now += n > 1 ? 8 * p[1] : 1;
        check(tl_osd_ctl_tick(w->ctl, w->now) == TL_OK);
        return n > 1 ? 2 : 1;
    case 6: /* somebody may be a gateway */
        (void)!tl_osd_ctl_ask(w->ctl, (struct tl_bytes){&peer, 1});
        return 1;
    case 5: /* shutdown begins */
        check(tl_osd_ctl_stop(w->ctl, w->now) == TL_OK);
        (void)tl_osd_ctl_stopped(w->ctl);
        return 1;
    default:
        if (n < 5)
            return n;
        answer(w, peer, p[1] % 3, p[2] % 4, p[3], p[4]);
        return 5;
    }
}

static void converse(const uint8_t *data, size_t size)
{
    struct world w = {.now = 1};
    const struct tl_osd_ctl_sink sink = {.context = &w,
                                         .send = on_send,
                                         .opened = on_opened,
                                         .enumerated = on_enumerated,
                                         .packet = on_packet,
                                         .closed = on_closed,
                                         .log = on_log};
    const struct tl_osd_ctl_options options = {.start = TL_OSD_START_ALL, .reset = size & 1};
    check(tl_osd_ctl_new(&w.ctl, &sink, &options) == TL_OK);
    while (size) {
        const size_t n = step(&w, data, size);
        struct tl_osd_ctl_counters c;
        tl_osd_ctl_counters(w.ctl, &c);
        check(c.gateways == w.links && c.hosts < TL_OSD_LOCALS && c.routed <= c.packets);
        (void)tl_osd_ctl_due(w.ctl);
        data += n;
        size -= n;
    }
    tl_osd_ctl_free(w.ctl);
    check(w.links == 0 && w.packets == 0);
}

/* A device's bytes in pieces, with our requests in between. */
static void dial(const uint8_t *data, size_t size)
{
    struct tl_osd_glip g;
    struct tl_buf out = {0};
    int64_t now = 0;
    tl_osd_glip_init(&g);
    g.bringup.answer_ms = 50;
    check(tl_osd_bringup_begin(&g.bringup, now) == TL_OK);
    while (size) {
        const size_t piece = 1 + data[0] % 24u, n = piece < size ? piece : size;
        check(tl_osd_glip_next(&g, &out, now) == TL_OK && out.n % 2 == 0);
        tl_osd_glip_take(&g, (struct tl_bytes){data, n}, now);
        tl_osd_bringup_tick(&g.bringup, now += 7);
        data += n;
        size -= n;
    }
    tl_osd_bringup_stop(&g.bringup, now);
    tl_buf_fini(&out);
    tl_osd_glip_fini(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    converse(data, size);
    dial(data, size);
    return 0;
}
