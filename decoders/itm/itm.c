/* SPDX-License-Identifier: MIT */
/*
 * ITM: software stimulus and DWT hardware packets of Armv7-M and Armv8-M cores.
 *
 * Source: Arm DDI0403E (Armv7-M), appendix D4 "Debug ITM and DWT packet protocol"; DDI0553
 * (Armv8-M), chapter F1. After a reserved header synchronisation is lost until the next
 * synchronisation packet (at least 47 zero bits and a one).
 */
#include "decode/soft.h"

#include <stdlib.h>

enum { SYNC_ZEROS = 5, MAX_PACKET = 8 };

enum state {
    HUNT,   /* searching for a synchronisation packet */
    HEADER, /* the next byte begins a packet */
    FIXED,  /* `need` more payload bytes */
    SERIES, /* payload bytes up to one with bit 7 clear, at most `need` */
    ZEROS   /* inside a synchronisation packet */
};

/* Reasons for loss of synchronisation, in addition to TL_LOSS_NOT_SYNC. */
static const char RESERVED[] = "reserved ITM header";
static const char BAD_SYNC[] = "malformed ITM synchronisation";
static const char CUT_SHORT[] = "ITM packet cut short";

struct itm {
    struct tl_soft soft;
    enum state state;
    uint8_t bytes[MAX_PACKET];
    uint8_t n;
    uint8_t need;
    uint64_t start;
    uint64_t zeros;               /* consecutive zero bytes, whatever they belong to */
    uint64_t zero_at[SYNC_ZEROS]; /* ring of the offsets of the last ones */
    uint64_t packet;              /* bytes of the current packet */
    uint64_t lost;                /* bytes since synchronisation was lost */
    uint8_t page;                 /* of the stimulus ports */
    uint8_t prescale;             /* clock ticks per unit of local timestamps */
    uint64_t local_time;          /* sum of local timestamps since the last overflow */
    uint64_t global_time;         /* bits of the global timestamp known so far */
};

static void lose_sync(struct itm *d, const char *why, uint64_t at, uint64_t bytes)
{
    d->state = HUNT;
    d->soft.lost_why = why;
    d->soft.lost_at = at;
    d->lost = bytes;
}

static void bad(struct itm *d, const char *why)
{
    char fields[48];
    snprintf(fields, sizeof fields, "header=0x%02x", d->bytes[0]);
    tl_soft_list(&d->soft, d->start, "ITM_RESERVED", fields);
    lose_sync(d, why, d->start, d->n);
}

/*
 * ---- complete packets ---------------------------------------------------------------------------
 */

static void on_source(struct itm *d)
{
    const uint8_t h = d->bytes[0];
    const unsigned size = (unsigned)d->n - 1;
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)d->bytes[1 + i] << 8 * i;
    const bool hardware = h & 4;
    char fields[64];
    snprintf(fields, sizeof fields, "%s=0x%02x data=0x%0*" PRIx64, hardware ? "desc" : "src",
             h >> 3, (int)size * 2, value);
    tl_soft_list(&d->soft, d->start, hardware ? "ITM_DWT" : "ITM_SWIT", fields);
    const uint64_t channel = hardware ? h >> 3 : (uint64_t)d->page << 5 | h >> 3;
    tl_item_batch_software(&d->soft.out, hardware ? "dwt" : "itm", channel, value, size, d->start);
}

static void on_local_time(struct itm *d)
{
    static const char *const relations[] = {"sync", "ts-delayed", "packet-delayed", "both-delayed"};
    const uint8_t h = d->bytes[0];
    uint64_t delta = 0;
    unsigned relation = 0;
    if (h & 0x80) {
        for (unsigned i = 1; i < d->n; i++)
            delta |= (uint64_t)(d->bytes[i] & 0x7f) << 7 * (i - 1);
        relation = h >> 4 & 3;
    } else {
        delta = h >> 4 & 7;
    }
    d->local_time += delta * d->prescale;
    char fields[64];
    snprintf(fields, sizeof fields, "ts=0x%" PRIx64 " relation=%s", delta, relations[relation]);
    tl_soft_list(&d->soft, d->start, "ITM_TS_LOCAL", fields);
    tl_soft_time(&d->soft, d->local_time, d->start);
}

static void on_global_time(struct itm *d, const char *name, uint64_t value, const char *flags)
{
    char fields[64];
    snprintf(fields, sizeof fields, "ts=0x%" PRIx64 "%s", value, flags);
    tl_soft_list(&d->soft, d->start, name, fields);
    tl_soft_note(&d->soft, d->start, "global-time %" PRIu64, d->global_time);
}

/*
 * Low 26 bits: only the transmitted ones are replaced. The fourth byte has five bits and two flags.
 */
static void on_global_low(struct itm *d)
{
    uint64_t value = 0;
    unsigned bits = 0;
    const char *flags = "";
    for (unsigned i = 1; i < d->n; i++) {
        const uint8_t b = d->bytes[i];
        const unsigned width = i == 4 ? 5 : 7;
        value |= (uint64_t)(b & ((1u << width) - 1)) << bits;
        bits += width;
        if (i == 4)
            flags = (b & 0x60) == 0x60 ? " clk-change wrap"
                    : b & 0x20         ? " clk-change"
                    : b & 0x40         ? " wrap"
                                       : "";
    }
    d->global_time = (d->global_time & ~((UINT64_C(1) << bits) - 1)) | value;
    on_global_time(d, "ITM_GTS_1", value, flags);
}

/* Bits 26 and up: four bytes transmit bits up to 47, six bytes up to 63; other lengths are not
 * defined. */
static void on_global_high(struct itm *d)
{
    uint64_t value = 0;
    for (unsigned i = 1; i < d->n; i++)
        value |= (uint64_t)(d->bytes[i] & 0x7f) << 7 * (i - 1);
    const unsigned width = d->n == 5 ? 22 : 38;
    value &= (UINT64_C(1) << width) - 1;
    d->global_time = (d->global_time & 0x3ffffff) | value << 26;
    on_global_time(d, "ITM_GTS_2", value, "");
}

static void on_extension(struct itm *d)
{
    const uint8_t h = d->bytes[0];
    uint64_t value = h >> 4 & 7;
    for (unsigned i = 1; i < d->n; i++)
        value |= (uint64_t)(d->bytes[i] & (i == 4 ? 0xff : 0x7f)) << (3 + 7 * (i - 1));
    char fields[48];
    snprintf(fields, sizeof fields, "%s=0x%" PRIx64, h & 4 ? "dwt" : "page", value);
    tl_soft_list(&d->soft, d->start, "ITM_EXTENSION", fields);
    if (!(h & 4) && d->n == 1)
        d->page = (uint8_t)value;
}

static void on_overflow(struct itm *d)
{
    tl_soft_list(&d->soft, d->start, "ITM_OVERFLOW", "");
    d->local_time = 0;
    tl_item_batch_add(&d->soft.out, TL_ITEM_GAP, d->start)->sub = TL_GAP_OVERFLOW;
}

static void complete(struct itm *d)
{
    const uint8_t h = d->bytes[0];
    d->state = HEADER;
    if (h & 3)
        on_source(d);
    else if (h == 0x94)
        on_global_low(d);
    else if (h == 0xb4)
        on_global_high(d);
    else if ((h & 0x0b) == 8)
        on_extension(d);
    else if (h == 0x70)
        on_overflow(d);
    else
        on_local_time(d);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void on_header(struct itm *d, uint8_t b)
{
    static const uint8_t sizes[] = {0, 1, 2, 4};
    d->bytes[0] = b;
    d->n = 1;
    if (b & 3) {
        d->state = FIXED;
        d->need = sizes[b & 3];
    } else if (b == 0) {
        d->state = ZEROS;
    } else if (b == 0x94 || ((b & 0xcf) == 0xc0) || ((b & 0x8b) == 0x88)) {
        d->state = SERIES;
        d->need = 4;
    } else if (b == 0xb4) {
        d->state = SERIES;
        d->need = 6;
    } else if (b == 0x70 || (b & 0x8f) == 0 || (b & 0x8b) == 8) {
        complete(d);
    } else {
        bad(d, RESERVED);
    }
}

static void on_payload(struct itm *d, uint8_t b)
{
    d->bytes[d->n++] = b;
    d->need--;
    if (d->state == SERIES) {
        if (!(b & 0x80) || !d->need)
            complete(d);
    } else if (!d->need) {
        complete(d);
    }
}

/* When synchronised, a zero byte can only begin a synchronisation packet. */
static void on_zeros(struct itm *d, uint8_t b)
{
    if (b == 0)
        return;
    d->n = 1;
    d->bytes[0] = 0;
    bad(d, BAD_SYNC);
    d->lost = d->packet;
}

static void on_hunt(struct itm *d, uint64_t offset)
{
    if (!d->lost++)
        d->soft.lost_at = offset;
}

/* A synchronisation packet interrupted the current packet. */
static void cut_short(struct itm *d)
{
    d->soft.lost_why = CUT_SHORT;
    d->soft.lost_at = d->start;
}

/*
 * The end of a synchronisation packet. No other synchronised bytes have five zeros before 80, so it
 * is valid even within another packet, which was then cut short. If there are more zeros, the last
 * five belong to it.
 */
static void on_sync(struct itm *d)
{
    const uint64_t begin = d->zero_at[d->zeros % SYNC_ZEROS];
    uint64_t lost = 0;
    if (d->state == HUNT) {
        lost = d->lost - SYNC_ZEROS;
    } else if (d->state != ZEROS || d->packet < SYNC_ZEROS) {
        cut_short(d);
        lost = d->packet > SYNC_ZEROS ? d->packet - SYNC_ZEROS : 1;
    }
    tl_soft_report_loss(&d->soft, "ITM_NOTSYNC", lost);
    tl_soft_list(&d->soft, begin, "ITM_ASYNC", "");
    d->lost = 0;
    d->state = HEADER;
}

static void take(struct itm *d, uint8_t b, uint64_t offset)
{
    if (b == 0x80 && d->zeros >= SYNC_ZEROS) {
        on_sync(d);
        d->zeros = 0;
        return;
    }
    if (b == 0)
        d->zero_at[d->zeros++ % SYNC_ZEROS] = offset;
    else
        d->zeros = 0;
    d->packet++;
    switch (d->state) {
    case HUNT:
        on_hunt(d, offset);
        break;
    case HEADER:
        d->start = offset;
        d->packet = 1;
        on_header(d, b);
        break;
    case ZEROS:
        on_zeros(d, b);
        break;
    default:
        on_payload(d, b);
    }
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct itm *const d = (struct itm *)decoder;
    for (size_t i = 0; i < run->n && d->soft.rc >= 0; i++)
        take(d, run->p[i], tl_run_offset(run, i));
    return tl_soft_flush(&d->soft);
}

static int finish(struct tl_stream_decoder *decoder)
{
    struct itm *const d = (struct itm *)decoder;
    if (d->state == HUNT) {
        tl_soft_report_loss(&d->soft, "ITM_NOTSYNC", d->lost);
    } else if (d->state != HEADER) {
        tl_soft_list(&d->soft, d->start, "ITM_INCOMPLETE_EOT", "");
    }
    return tl_soft_flush(&d->soft);
}

/* The prescaler works on the clock of the trace port: if SWOENA (bit 4) selects that. */
static uint8_t prescale_of(const struct tl_source *source)
{
    const uint64_t control =
        tl_source_reg(source, "ITMTCR", tl_source_reg(source, "CONTROL_REGISTER", 0));
    return control & 0x10 ? (uint8_t)(1u << 2 * (control >> 8 & 3)) : 1;
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct itm *const d = tl_soft_new(sizeof *d, &tl_itm_ops, source, sink);
    if (!d)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    d->prescale = prescale_of(source);
    lose_sync(d, TL_LOSS_NOT_SYNC, 0, 0);
    *out = &d->soft.base;
    return TL_OK;
}

static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    static const char *const reasons[] = {TL_LOSS_NOT_SYNC, RESERVED, BAD_SYNC, CUT_SHORT};
    struct itm *const d = (struct itm *)decoder;
    uint8_t now = (uint8_t)d->state;
    tl_soft_state(&d->soft, s, reasons, sizeof reasons / sizeof *reasons);
    tl_state_u8(s, &now, ZEROS);
    d->state = (enum state)now;
    tl_state_bytes(s, d->bytes, sizeof d->bytes);
    tl_state_u8(s, &d->n, MAX_PACKET);
    tl_state_u8(s, &d->need, MAX_PACKET);
    tl_state_check(s, (d->state != FIXED && d->state != SERIES) ||
                          (d->n > 0 && d->need > 0 && d->n + d->need <= MAX_PACKET));
    tl_state_u64(s, &d->start);
    tl_state_u64(s, &d->zeros);
    tl_state_bytes(s, d->zero_at, sizeof d->zero_at);
    tl_state_u64(s, &d->packet);
    tl_state_u64(s, &d->lost);
    tl_state_u8(s, &d->page, UINT8_MAX);
    tl_state_u64(s, &d->local_time);
    tl_state_u64(s, &d->global_time);
}

const struct tl_stream_ops tl_itm_ops = {
    .name = "itm",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = tl_soft_destroy,
    .state = state,
};
