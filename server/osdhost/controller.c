/* SPDX-License-Identifier: MIT */
/*
 * Routes messages between gateways and host modules and answers their requests. Everything that a
 * peer sends is checked and anything repeatable is logged ever more rarely, as the protocol has no
 * authentication.
 */
#include "osdhost/controller.h"
#include "base/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 65535
#define MIN_WORDS 3
#define ID_MAX    255
#define TEXT_MAX  63 /* of a management message; longer ones are unknown */

/* A participant that has an address or is a gateway. */
struct tl_osd_peer {
    struct tl_osd_peer *next;
    int64_t connection;
    bool gone;
    unsigned uses; /* number of links and addresses */
    uint8_t n_id;
    uint8_t id[ID_MAX];
};

struct tl_osd_ctl {
    struct tl_osd_ctl_sink sink;
    struct tl_osd_ctl_options options;
    struct tl_osd_ctl_counters counters;
    struct tl_osd_peer *peers;
    struct tl_osd_link *links;
    struct tl_osd_link *gateways[TL_OSD_SUBNETS]; /* the current owner of the subnet */
    struct tl_osd_peer *hosts[TL_OSD_LOCALS];     /* owner of address 1.n */
    bool stopping;
};

/* Of events that a peer can repeat at will, log the 1st, 2nd, 4th, 8th … */
static bool report(uint64_t count)
{
    return (count & (count - 1)) == 0;
}

static unsigned subnet_of(uint16_t address)
{
    return address / TL_OSD_LOCALS;
}

/* ---- peers -------------------------------------------------------------------------------- */

static struct tl_bytes id_of(const struct tl_osd_peer *peer)
{
    return (struct tl_bytes){peer->id, peer->n_id};
}

/* Recently used peers are in front. */
static struct tl_osd_peer *find_peer(struct tl_osd_ctl *ctl, struct tl_bytes id)
{
    for (struct tl_osd_peer **p = &ctl->peers; *p; p = &(*p)->next) {
        struct tl_osd_peer *const peer = *p;
        if (peer->n_id != id.n || memcmp(peer->id, id.p, id.n) != 0)
            continue;
        *p = peer->next;
        peer->next = ctl->peers;
        return ctl->peers = peer;
    }
    return NULL;
}

/* Find or add the peer with this id; a new one has no uses yet. NULL: out of memory. */
static struct tl_osd_peer *get_peer(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection)
{
    struct tl_osd_peer *peer = find_peer(ctl, id);
    if (!peer && (peer = calloc(1, sizeof *peer))) {
        peer->n_id = (uint8_t)id.n;
        memcpy(peer->id, id.p, id.n);
        peer->next = ctl->peers;
        ctl->peers = peer;
    }
    if (peer) {
        peer->connection = connection;
        peer->gone = false;
    }
    return peer;
}

static void put_peer(struct tl_osd_ctl *ctl, struct tl_osd_peer *peer)
{
    if (--peer->uses)
        return;
    struct tl_osd_peer **p = &ctl->peers;
    while (*p != peer)
        p = &(*p)->next;
    *p = peer->next;
    free(peer);
}

static int send_text(struct tl_osd_ctl *ctl, struct tl_bytes id, const char *text)
{
    const struct tl_bytes payload = {(const uint8_t *)text, strlen(text)};
    (void)ctl->sink.send(ctl->sink.context, id, 'M',
                         payload); /* a peer that is gone needs no answer */
    return TL_OK;
}

static int accept_it(struct tl_osd_ctl *ctl, struct tl_bytes id)
{
    return send_text(ctl, id, "ACK");
}

static int refuse(struct tl_osd_ctl *ctl, struct tl_bytes id, const char *why)
{
    if (report(++ctl->counters.refused))
        tl_say(ctl->sink.log, ctl->sink.context, "refused: %s", why);
    return send_text(ctl, id, "NACK");
}

/* ---- addresses of host modules ------------------------------------------------------------ */

static void free_address(struct tl_osd_ctl *ctl, unsigned local)
{
    struct tl_osd_peer *const peer = ctl->hosts[local];
    ctl->hosts[local] = NULL;
    ctl->counters.hosts--;
    put_peer(ctl, peer);
}

static int give_address(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection)
{
    unsigned local = 1; /* 0 is our own */
    while (local < TL_OSD_LOCALS && ctl->hosts[local])
        local++;
    if (local == TL_OSD_LOCALS)
        return refuse(ctl, id, "all addresses are given away");
    struct tl_osd_peer *const peer = get_peer(ctl, id, connection);
    if (!peer)
        return TL_NOMEM;
    peer->uses++;
    ctl->hosts[local] = peer;
    ctl->counters.hosts++;
    char text[8];
    snprintf(text, sizeof text, "%u", TL_OSD_HOST_SELF + local);
    return send_text(ctl, id, text);
}

static int release_address(struct tl_osd_ctl *ctl, struct tl_bytes id)
{
    const struct tl_osd_peer *const peer = find_peer(ctl, id);
    unsigned local = 1;
    while (local < TL_OSD_LOCALS && (!peer || ctl->hosts[local] != peer))
        local++;
    if (local == TL_OSD_LOCALS)
        return refuse(ctl, id, "an address is given back that was not given away");
    free_address(ctl, local);
    return accept_it(ctl, id);
}

static void free_addresses_of(struct tl_osd_ctl *ctl, const struct tl_osd_peer *peer)
{
    for (unsigned local = 1; local < TL_OSD_LOCALS; local++)
        if (ctl->hosts[local] == peer)
            free_address(ctl, local);
}

/* ---- gateways ----------------------------------------------------------------------------- */

static int send_packet(struct tl_osd_ctl *ctl, struct tl_osd_peer *peer, struct tl_bytes packet)
{
    if (peer->gone)
        return TL_UNREACHABLE;
    const int rc = ctl->sink.send(ctl->sink.context, id_of(peer), 'D', packet);
    peer->gone = peer->gone || rc == TL_UNREACHABLE;
    return rc;
}

/* Send pending packets of the bring-up, and report its progress. */
static void pump(struct tl_osd_ctl *ctl, struct tl_osd_link *link, int64_t now)
{
    uint16_t words[TL_OSD_REQUEST_WORDS];
    for (unsigned n; (n = tl_osd_bringup_next(&link->bringup, words, now)) > 0;)
        (void)send_packet(ctl, link->peer, (struct tl_bytes){(const uint8_t *)words, 2 * n});
    if (link->bringup.enumerated && !link->was_enumerated) {
        link->was_enumerated = true;
        ctl->sink.enumerated(ctl->sink.context, link);
    }
}

static int open_link(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                     unsigned subnet, struct tl_osd_link **out)
{
    struct tl_osd_link *const link = calloc(1, sizeof *link);
    struct tl_osd_peer *const peer = link ? get_peer(ctl, id, connection) : NULL;
    if (!peer) {
        free(link);
        return TL_NOMEM;
    }
    peer->uses++;
    link->peer = peer;
    link->subnet = subnet;
    link->next = ctl->links;
    ctl->links = ctl->gateways[subnet] = link;
    ctl->counters.gateways++;
    tl_osd_bringup_init(&link->bringup, subnet, TL_OSD_HOST_SELF);
    link->bringup.start = ctl->options.start;
    link->bringup.reset = ctl->options.reset;
    if (ctl->options.answer_ms)
        link->bringup.answer_ms = ctl->options.answer_ms;
    link->bringup.context = ctl->sink.context;
    link->bringup.log = ctl->sink.log;
    ctl->sink.opened(ctl->sink.context, link);
    *out = link;
    return TL_OK;
}

static void close_link(struct tl_osd_ctl *ctl, struct tl_osd_link *link, const char *why)
{
    struct tl_osd_link **p = &ctl->links;
    while (*p != link)
        p = &(*p)->next;
    *p = link->next;
    if (ctl->gateways[link->subnet] == link)
        ctl->gateways[link->subnet] = NULL;
    ctl->counters.gateways--;
    ctl->sink.closed(ctl->sink.context, link, why);
    tl_osd_bringup_fini(&link->bringup);
    put_peer(ctl, link->peer);
    free(link);
}

/* Parse " 5": the number of a subnet that a gateway may have; otherwise -1. */
static int parse_subnet(const char *text)
{
    char *end;
    if (*text != ' ' || text[1] < '0' || text[1] > '9')
        return -1;
    const unsigned long subnet = strtoul(text + 1, &end, 10);
    return *end || subnet >= TL_OSD_SUBNETS || subnet == TL_OSD_HOST_SUBNET ? -1 : (int)subnet;
}

static int register_gateway(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                            const char *text, int64_t now)
{
    const int subnet = parse_subnet(text);
    if (ctl->stopping)
        return refuse(ctl, id, "a gateway registers while the server stops");
    if (subnet < 0)
        return refuse(ctl, id, "a gateway registers for no possible subnet");
    const struct tl_osd_peer *const peer = find_peer(ctl, id);
    struct tl_osd_link *link = ctl->gateways[subnet];
    if (link && peer && link->peer == peer && peer->connection != connection) {
        close_link(ctl, link, "the gateway has connected anew");
        link = NULL;
    }
    if (link && !link->peer->gone)
        return refuse(ctl, id, "a gateway registers for a subnet that has one");
    const int rc = open_link(ctl, id, connection, (unsigned)subnet, &link);
    if (rc < 0)
        return rc;
    (void)accept_it(ctl, id); /* first: it waits for this, and aborts on anything else */
    const int begun = tl_osd_bringup_begin(&link->bringup, now);
    pump(ctl, link, now);
    return begun;
}

static int unregister_gateway(struct tl_osd_ctl *ctl, struct tl_bytes id, const char *text)
{
    const int subnet = parse_subnet(text);
    struct tl_osd_link *const link = subnet < 0 ? NULL : ctl->gateways[subnet];
    const struct tl_osd_peer *const peer = find_peer(ctl, id);
    if (!link || link->peer != peer)
        return refuse(ctl, id, "a gateway leaves a subnet that is not its own");
    close_link(ctl, link, "the gateway has unregistered");
    return accept_it(ctl, id);
}

/* ---- messages ----------------------------------------------------------------------------- */

static int malformed(struct tl_osd_ctl *ctl, const char *what)
{
    if (report(++ctl->counters.malformed))
        tl_say(ctl->sink.log, ctl->sink.context, "dropped: %s", what);
    return TL_OK;
}

static int take_management(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                           const struct tl_bytes *payload, int64_t now)
{
    static const char reg[] = "GW_REGISTER", unreg[] = "GW_UNREGISTER";
    char text[TEXT_MAX + 1];
    const size_t n = payload->n < TEXT_MAX ? payload->n : TEXT_MAX;
    if (n)
        memcpy(text, payload->p, n);
    text[n] = 0;
    if (!strcmp(text, "DIADDR_REQUEST"))
        return give_address(ctl, id, connection);
    if (!strcmp(text, "DIADDR_RELEASE"))
        return release_address(ctl, id);
    if (!strncmp(text, reg, sizeof reg - 1))
        return register_gateway(ctl, id, connection, text + sizeof reg - 1, now);
    if (!strncmp(text, unreg, sizeof unreg - 1))
        return unregister_gateway(ctl, id, text + sizeof unreg - 1);
    return accept_it(ctl, id); /* as osd-sw does with unknown requests */
}

/* The link over which a packet arrived, or NULL: it is from a host module. */
static struct tl_osd_link *link_of(struct tl_osd_ctl *ctl, const struct tl_osd_peer *peer,
                                   unsigned subnet)
{
    struct tl_osd_link *any = NULL;
    for (struct tl_osd_link *link = ctl->links; link && peer; link = link->next) {
        if (link->peer != peer)
            continue;
        if (link->subnet == subnet)
            return link;
        any = link; /* whatever its source address is, it came from there */
    }
    return any;
}

/* Is it an event, or an answer to a register access, as sent by devices? */
static bool is_from_device(const uint16_t *words)
{
    const unsigned type = words[2] >> 14;
    return !(words[2] & 0x3ff) && (type == 2 || (type == 0 && words[2] & 0x2000));
}

/* A gateway that registered with an earlier process continues sending. */
static int adopt(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                 const uint16_t *words, int64_t now, struct tl_osd_link **link)
{
    const unsigned subnet = subnet_of(words[1]);
    if (ctl->stopping || subnet == TL_OSD_HOST_SUBNET || ctl->gateways[subnet] ||
        !is_from_device(words))
        return TL_OK;
    const int rc = open_link(ctl, id, connection, subnet, link);
    if (rc < 0)
        return rc;
    tl_say(ctl->sink.log, ctl->sink.context,
           "a gateway that has not registered sends packets of subnet %u", subnet);
    return tl_osd_bringup_begin(&(*link)->bringup, now);
}

int tl_osd_ctl_ask(struct tl_osd_ctl *ctl, struct tl_bytes id)
{
    /* DEST 0.0, SRC 1.0, FLAGS: read a register of 16 bits, MOD_VENDOR */
    static const uint16_t words[] = {0, TL_OSD_HOST_SELF, 0, 0};
    if (ctl->stopping || ctl->gateways[0])
        return TL_AGAIN;
    return ctl->sink.send(ctl->sink.context, id, 'D',
                          (struct tl_bytes){(const uint8_t *)words, sizeof words});
}

static void route(struct tl_osd_ctl *ctl, const struct tl_osd_link *from, struct tl_bytes packet,
                  uint16_t dest)
{
    const unsigned subnet = subnet_of(dest);
    struct tl_osd_peer *to = NULL;
    if (subnet == TL_OSD_HOST_SUBNET)
        to = ctl->hosts[dest % TL_OSD_LOCALS];
    else if (ctl->gateways[subnet] && ctl->gateways[subnet] != from)
        to = ctl->gateways[subnet]->peer;
    if (to && send_packet(ctl, to, packet) == TL_OK) {
        ctl->counters.routed++;
        return;
    }
    if (report(++ctl->counters.undelivered) && !from)
        tl_say(ctl->sink.log, ctl->sink.context, "nobody is at %u.%u, to whom a packet was sent",
               subnet, dest % TL_OSD_LOCALS);
    if (to && to->gone)
        free_addresses_of(ctl, to); /* a gateway's link ends when its messages do */
}

static int take_data(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                     const struct tl_bytes *payload, int64_t now)
{
    uint16_t words[MAX_WORDS];
    const size_t n = payload->n / 2;
    if (payload->n % 2 || n < MIN_WORDS || n > MAX_WORDS)
        return malformed(ctl, "a packet that is none");
    memcpy(words, payload->p, payload->n); /* in the byte order of the machine, on which both run */
    ctl->counters.packets++;
    struct tl_osd_peer *const peer = find_peer(ctl, id);
    if (peer && peer->connection != connection) { /* back, with its old id */
        peer->connection = connection;
        peer->gone = false;
    }
    struct tl_osd_link *link = link_of(ctl, peer, subnet_of(words[1]));
    if (!peer) {
        const int rc = adopt(ctl, id, connection, words, now, &link);
        if (rc < 0)
            return rc;
    }
    if (link) {
        link->packets++;
        link->words += n;
        ctl->sink.packet(ctl->sink.context, link, words, n);
    }
    if (words[0] != TL_OSD_HOST_SELF)
        route(ctl, link, (struct tl_bytes){payload->p, payload->n}, words[0]);
    else if (link)
        (void)tl_osd_bringup_take(&link->bringup, words, n, now);
    if (link)
        pump(ctl, link, now);
    return TL_OK;
}

int tl_osd_ctl_message(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                       const struct tl_bytes *frames, size_t n_frames, int64_t now)
{
    ctl->counters.messages++;
    if (id.n == 0 || id.n > ID_MAX || n_frames == 0 || frames[0].n == 0)
        return malformed(ctl, "a message without a type");
    const char type = (char)frames[0].p[0];
    if (type != 'M' && type != 'D')
        return malformed(ctl, "a message of unknown type");
    if (n_frames < 2)
        return type == 'M' ? refuse(ctl, id, "a request without content")
                           : malformed(ctl, "a packet without content");
    return type == 'M' ? take_management(ctl, id, connection, &frames[1], now)
                       : take_data(ctl, id, connection, &frames[1], now);
}

/* ---- connections and time ----------------------------------------------------------------- */

void tl_osd_ctl_gone(struct tl_osd_ctl *ctl, int64_t connection)
{
    for (struct tl_osd_peer *peer = ctl->peers; peer; peer = peer->next)
        if (peer->connection == connection)
            peer->gone = true;
}

void tl_osd_ctl_settle(struct tl_osd_ctl *ctl)
{
    for (unsigned local = 1; local < TL_OSD_LOCALS && ctl->counters.hosts; local++)
        if (ctl->hosts[local] && ctl->hosts[local]->gone)
            free_address(ctl, local);
    for (struct tl_osd_link *link = ctl->links, *next; link; link = next) {
        next = link->next;
        if (link->peer->gone)
            close_link(ctl, link, "the gateway is gone");
    }
}

int64_t tl_osd_ctl_due(const struct tl_osd_ctl *ctl)
{
    int64_t due = -1;
    for (const struct tl_osd_link *link = ctl->links; link; link = link->next) {
        const int64_t t = tl_osd_bringup_due(&link->bringup);
        if (t >= 0 && (due < 0 || t < due))
            due = t;
    }
    return due;
}

int tl_osd_ctl_tick(struct tl_osd_ctl *ctl, int64_t now)
{
    for (struct tl_osd_link *link = ctl->links; link; link = link->next) {
        tl_osd_bringup_tick(&link->bringup, now);
        pump(ctl, link, now);
    }
    return TL_OK;
}

int tl_osd_ctl_stop(struct tl_osd_ctl *ctl, int64_t now)
{
    ctl->stopping = true;
    for (struct tl_osd_link *link = ctl->links; link; link = link->next) {
        tl_osd_bringup_stop(&link->bringup, now);
        pump(ctl, link, now);
    }
    return TL_OK;
}

bool tl_osd_ctl_stopped(const struct tl_osd_ctl *ctl)
{
    for (const struct tl_osd_link *link = ctl->links; link; link = link->next)
        if (!link->peer->gone && link->bringup.phase != TL_OSD_DONE)
            return false;
    return true;
}

/* ---- life --------------------------------------------------------------------------------- */

int tl_osd_ctl_new(struct tl_osd_ctl **out, const struct tl_osd_ctl_sink *sink,
                   const struct tl_osd_ctl_options *options)
{
    struct tl_osd_ctl *const ctl = calloc(1, sizeof *ctl);
    if (!ctl)
        return TL_NOMEM;
    ctl->sink = *sink;
    ctl->options = *options;
    *out = ctl;
    return TL_OK;
}

void tl_osd_ctl_free(struct tl_osd_ctl *ctl)
{
    if (!ctl)
        return;
    while (ctl->links)
        close_link(ctl, ctl->links, ctl->stopping ? "the server stops" : "ended");
    for (unsigned local = 1; local < TL_OSD_LOCALS; local++)
        if (ctl->hosts[local])
            free_address(ctl, local);
    free(ctl);
}

void tl_osd_ctl_counters(const struct tl_osd_ctl *ctl, struct tl_osd_ctl_counters *out)
{
    *out = ctl->counters;
}

void tl_osd_ctl_each(struct tl_osd_ctl *ctl, void (*fn)(void *context, struct tl_osd_link *link),
                     void *context)
{
    for (struct tl_osd_link *link = ctl->links; link; link = link->next)
        fn(context, link);
}
