/* SPDX-License-Identifier: MIT */
#include "toy/toy.h"

#include "decode/soft.h"
#include "flow/walker.h"

#include <stdlib.h>

static const char BAD_PACKET[] = "bad toy packet";

struct toy {
    struct tl_soft soft; /* listing, losses, and items waiting to be delivered */
    struct tl_walker walker;
    uint8_t packet[TOY_SYNC_SIZE];
    uint8_t n; /* bytes of the packet received so far */
    bool synced;
    uint64_t start; /* offset of the packet */
    uint64_t lost;  /* bytes since synchronisation was lost */
};

/* ---- packets to flow ----------------------------------------------------------------------- */

static void on_bits(struct toy *t, uint8_t header)
{
    const unsigned n = 31 - (unsigned)__builtin_clz(header);
    char fields[32];
    snprintf(fields, sizeof fields, "n=%u bits=0x%x", n, header & ((1u << n) - 1));
    tl_soft_list(&t->soft, t->start, "TOY_BITS", fields);
    if (tl_walker_conditions(&t->walker, header, n, t->start) < n &&
        tl_walker_is_known(&t->walker, t->start)) /* an address is needed */
        tl_walker_lose(&t->walker, TL_GAP_NO_PATH, t->start);
}

static void on_address(struct toy *t, uint64_t address)
{
    if (tl_walker_is_known(&t->walker, t->start))
        (void)tl_walker_to_indirect(&t->walker, t->start);
    tl_walker_jump(&t->walker, address, TL_ISA_A64, t->start);
}

/* The synchronisation packet contains everything that a decoder needs to begin. */
static void on_sync(struct toy *t, uint64_t address)
{
    tl_soft_report_loss(&t->soft, "TOY_NOTSYNC", t->lost);
    t->lost = 0;
    t->soft.out.run = 0; /* a decode may begin here, see decode/split.h */
    if (tl_walker_is_known(&t->walker, t->start))
        (void)tl_walker_to(&t->walker, address, false, t->start);
    tl_walker_mode(&t->walker, tl_mode(TL_ARCH_ARM, 0, TL_SEC_NS, TL_ISA_A64), t->start);
    tl_walker_jump(&t->walker, address, TL_ISA_A64, t->start);
}

static void on_packet(struct toy *t)
{
    if (t->packet[0] < TOY_ADDRESS) {
        on_bits(t, t->packet[0]);
        return;
    }
    const bool sync = t->packet[0] != TOY_ADDRESS;
    const uint64_t address = tl_le64(t->packet + (sync ? 4 : 1));
    char fields[32];
    snprintf(fields, sizeof fields, "addr=0x%" PRIx64, address);
    tl_soft_list(&t->soft, t->start, sync ? "TOY_SYNC" : "TOY_ADDRESS", fields);
    if (sync)
        on_sync(t, address);
    else
        on_address(t, address);
}

/* ---- bytes to packets ---------------------------------------------------------------------- */

/* The size of the packet with this header; 0: no such packet. */
static unsigned size_of(uint8_t header)
{
    return header == 0                      ? 0
           : header < TOY_ADDRESS           ? 1
           : header == TOY_ADDRESS          ? 9
           : header == (uint8_t)TOY_SYNC[0] ? TOY_SYNC_SIZE
                                            : 0;
}

/* The received bytes do not begin a packet: count the first one as lost. */
static void lose(struct toy *t)
{
    if (t->synced) {
        t->soft.lost_why = BAD_PACKET;
        tl_walker_reset(&t->walker);
    } else if (t->lost == 0) {
        t->soft.lost_why = TL_LOSS_NOT_SYNC;
    }
    if (t->lost == 0)
        t->soft.lost_at = t->start;
    t->synced = false;
    t->lost += t->n;
    t->n = 0;
}

static void take(struct toy *t, uint8_t byte, uint64_t offset)
{
    if (t->n == 0)
        t->start = offset;
    t->packet[t->n++] = byte;
    const bool sync = t->packet[0] == (uint8_t)TOY_SYNC[0];
    if (sync && t->n <= 4 && byte != (uint8_t)TOY_SYNC[t->n - 1]) {
        t->n--; /* the current byte may begin one */
        lose(t);
        take(t, byte, offset);
    } else if (size_of(t->packet[0]) == 0 || (!sync && !t->synced)) {
        lose(t);
    } else if (t->n == size_of(t->packet[0])) {
        on_packet(t);
        t->synced = true;
        t->n = 0;
    }
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct toy *const t = (struct toy *)decoder;
    for (size_t i = 0; i < run->n; i++)
        take(t, run->p[i], tl_run_offset(run, i));
    tl_walker_trim(&t->walker);
    return t->walker.failed ? TL_NOMEM : TL_OK;
}

static int flush(struct tl_stream_decoder *decoder)
{
    return tl_soft_flush(&((struct toy *)decoder)->soft);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct toy *const t = (struct toy *)decoder;
    if (t->synced)
        tl_soft_cut(&t->soft, cut, t->start, t->n);
    else if (t->n > 0)
        lose(t);
    tl_soft_report_loss(&t->soft, "TOY_NOTSYNC", t->lost);
    return flush(decoder);
}

/*
 * ---- creating and freeing, state --------------------------------------------------------------
 */

static void destroy(struct tl_stream_decoder *decoder)
{
    struct toy *const t = (struct toy *)decoder;
    if (t)
        tl_walker_fini(&t->walker);
    free(t);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    const struct tl_walker_config config = {
        .image = image, .isa = {.arch_major = 8, .profile = 'A'}, .bits = TL_WALKER_CONDITIONS};
    struct toy *const t = tl_soft_new(sizeof *t, &tl_toy_ops, source, sink);
    if (!t)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    t->soft.out.paths = sink->paths;
    if (tl_walker_init(&t->walker, &config, &t->soft.out) < 0) {
        destroy(&t->soft.base);
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    }
    tl_walker_code(&t->walker, sink->code);
    *out = &t->soft.base;
    return TL_OK;
}

static void reset(struct tl_stream_decoder *decoder)
{
    struct toy *const t = (struct toy *)decoder;
    tl_item_batch_reset(&t->soft.out);
    tl_walker_reset(&t->walker);
    t->walker.failed = t->synced = false;
    t->n = 0;
    t->lost = 0;
}

/* Members that do not matter are saved as zero. */
static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    static const char *const reasons[] = {TL_LOSS_NOT_SYNC, BAD_PACKET};
    struct toy *const t = (struct toy *)decoder;
    if (t->n == 0)
        t->start = 0;
    if (t->lost == 0) {
        t->soft.lost_at = 0;
        t->soft.lost_why = TL_LOSS_NOT_SYNC;
    }
    memset(t->packet + t->n, 0, sizeof t->packet - t->n);
    tl_soft_state(&t->soft, s, reasons, 2);
    tl_item_batch_state(&t->soft.out, s);
    tl_state_bytes(s, t->packet, sizeof t->packet);
    tl_state_u8(s, &t->n, sizeof t->packet - 1);
    tl_state_bool(s, &t->synced);
    tl_state_u64(s, &t->start);
    tl_state_u64(s, &t->lost);
    tl_walker_place_state(&t->walker, s);
    tl_walker_rest_state(&t->walker, s);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_walker_restore_context(&t->walker, &(struct tl_image_context){0});
}

/* ---- support for several threads ------------------------------------------------------------- */

static size_t find_sync(const uint8_t *p, size_t n)
{
    const uint8_t *const found = memmem(p, n, TOY_SYNC, strlen(TOY_SYNC));
    return found ? (size_t)(found - p) : n;
}

static size_t find_rest(const struct tl_stream_decoder *decoder, const uint8_t *p, size_t n)
{
    return n < TOY_SYNC_SIZE ? n : TOY_SYNC_SIZE;
}

static struct tl_walker *walker(struct tl_stream_decoder *decoder)
{
    return &((struct toy *)decoder)->walker;
}

static const struct tl_split_ops split = {
    .find_sync = find_sync, .find_rest = find_rest, .reset = reset, .walker = walker};

const struct tl_stream_ops tl_toy_ops = {
    .name = "toy",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
    .split = &split,
};
