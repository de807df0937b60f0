/* SPDX-License-Identifier: MIT */
/*
 * ITM: software stimulus and DWT hardware packets of Armv7-M and Armv8-M cores.
 *
 * Source: Arm DDI0403E (Armv7-M), appendix D4 "Debug ITM and DWT packet protocol"; DDI0553
 * (Armv8-M), chapter F1. Most set-ups for printing send no synchronisation packets (at least 47
 * zero bits and a one), so the first byte counts as a header, and bytes that cannot be one are
 * dropped until the next that can; a synchronisation packet ends whatever it comes in.
 *
 * A local timestamp follows the packets that it is for, all since the one before it: they are held
 * until it comes, so that its item can precede theirs as in all streams. Whether a stream has local
 * timestamps is known from its configuration, otherwise after HELD_MAX packets.
 */
#include "decode/soft.h"

#include <stdlib.h>

enum { SYNC_ZEROS = 5, MAX_PACKET = 8, HELD_MAX = 64 };

enum state {
    HEADER, /* the next byte begins a packet */
    FIXED,  /* `need` more payload bytes */
    SERIES, /* payload bytes up to one with bit 7 clear, at most `need` */
    ZEROS,  /* inside a synchronisation packet */
    NOT_HEADER
};

/* Has the stream local timestamps? */
enum timing { TIMING_UNKNOWN, UNTIMED, TIMED };

enum held_kind { HELD_SOFTWARE, HELD_HARDWARE, HELD_TIME, HELD_TIME_LOW };

/* A packet waiting for its timestamp. */
struct held {
    uint8_t kind; /* enum held_kind */
    uint8_t size; /* of a source's payload */
    uint64_t channel, value, offset;
};

/* Reasons for loss, in addition to TL_LOSS_NOT_SYNC: nothing could be decoded yet. */
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
    uint64_t lost;                /* bytes dropped since the last packet */
    bool begun;                   /* a packet has been decoded */
    uint8_t page;                 /* of the stimulus ports */
    uint8_t prescale;             /* clock ticks per unit of local timestamps */
    uint64_t local_time;          /* sum of all local timestamps */
    uint64_t global_time;         /* bits of the global timestamp known so far */
    bool has_high;                /* those from 26 on are known */
    bool wrapped;                 /* … but will change with the next packet that has them */
    uint8_t timing;               /* enum timing */
    uint8_t n_held;
    struct held held[HELD_MAX];
};

/* ---- items ----------------------------------------------------------------------------------- */

static void deliver(struct itm *d, const struct held *h)
{
    switch ((enum held_kind)h->kind) {
    case HELD_SOFTWARE:
    case HELD_HARDWARE:
        tl_item_batch_software(&d->soft.out, h->kind == HELD_HARDWARE ? "dwt" : "itm", h->channel,
                               h->value, h->size, h->offset);
        break;
    case HELD_TIME:
        tl_soft_note(&d->soft, h->offset, "global-time %" PRIu64, h->value);
        break;
    case HELD_TIME_LOW:
        tl_soft_note(&d->soft, h->offset, "global-time-low %" PRIu64, h->value);
        break;
    }
}

static void release(struct itm *d)
{
    for (uint8_t i = 0; i < d->n_held; i++)
        deliver(d, &d->held[i]);
    d->n_held = 0;
}

static void hold(struct itm *d, struct held packet)
{
    packet.offset = d->start;
    if (d->n_held == HELD_MAX) {
        release(d);
        d->timing = d->timing == TIMING_UNKNOWN ? UNTIMED : d->timing;
    }
    if (d->timing == UNTIMED) {
        deliver(d, &packet);
        return;
    }
    d->held[d->n_held++] = packet;
}

static void report_loss(struct itm *d, uint64_t bytes)
{
    release(d);
    tl_soft_report_loss(&d->soft, "ITM_NOTSYNC", bytes);
    d->lost = 0;
}

/* Bytes that belong to no packet: reported with those that follow them. */
static void drop(struct itm *d, const char *why, uint64_t at, uint64_t bytes)
{
    char fields[48];
    snprintf(fields, sizeof fields, "header=0x%02x", d->bytes[0]);
    tl_soft_list(&d->soft, at, "ITM_RESERVED", fields);
    if (d->lost == 0) {
        d->soft.lost_at = at;
        d->soft.lost_why = d->begun ? why : TL_LOSS_NOT_SYNC;
    }
    d->lost += bytes;
    d->state = HEADER;
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
    hold(d, (struct held){.kind = hardware ? HELD_HARDWARE : HELD_SOFTWARE,
                          .size = (uint8_t)size,
                          .channel = channel,
                          .value = value});
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
    d->timing = TIMED;
    tl_soft_time(&d->soft, d->local_time, d->n_held > 0 ? d->held[0].offset : d->start);
    release(d);
}

static void on_global_time(struct itm *d, const char *name, uint64_t value, const char *flags)
{
    char fields[64];
    snprintf(fields, sizeof fields, "ts=0x%" PRIx64 "%s", value, flags);
    tl_soft_list(&d->soft, d->start, name, fields);
    if (!d->wrapped)
        hold(d, (struct held){.kind = d->has_high ? HELD_TIME : HELD_TIME_LOW,
                              .value = d->global_time});
}

/*
 * Low 26 bits: only the transmitted ones are replaced. The fourth byte has five bits and two flags:
 * with `wrap` the upper bits are no longer valid, and follow.
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
    d->wrapped |= d->n == 5 && d->bytes[4] & 0x40 && d->has_high;
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
    d->has_high = true;
    d->wrapped = false;
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
    release(d); /* their timestamp may be lost */
    tl_item_batch_add(&d->soft.out, TL_ITEM_GAP, d->start)->sub = TL_GAP_OVERFLOW;
}

static void complete(struct itm *d)
{
    const uint8_t h = d->bytes[0];
    d->state = HEADER;
    d->begun = true;
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

/* The state after a header. */
static enum state after_header(struct itm *d, uint8_t b)
{
    static const uint8_t sizes[] = {0, 1, 2, 4};
    if (b & 3) {
        d->need = sizes[b & 3];
        return FIXED;
    }
    if (b == 0)
        return ZEROS;
    if (b == 0x94 || b == 0xb4 || (b & 0xcf) == 0xc0 || (b & 0x8b) == 0x88) {
        d->need = b == 0xb4 ? 6 : 4;
        return SERIES;
    }
    return b == 0x70 || (b & 0x8f) == 0 || (b & 0x8b) == 8 ? HEADER : NOT_HEADER;
}

static void on_header(struct itm *d, uint8_t b)
{
    const enum state next = after_header(d, b);
    d->bytes[0] = b;
    d->n = 1;
    if (next == NOT_HEADER) {
        drop(d, RESERVED, d->start, 1);
        return;
    }
    if (next != ZEROS && d->lost > 0)
        report_loss(d, d->lost);
    d->state = next;
    if (next == HEADER)
        complete(d);
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

static void begin_packet(struct itm *d, uint8_t b, uint64_t offset)
{
    d->start = offset;
    d->packet = 1;
    on_header(d, b);
}

/* Outside of other packets zeros can only begin a synchronisation packet. */
static void on_zeros(struct itm *d, uint8_t b, uint64_t offset)
{
    if (b == 0)
        return;
    d->bytes[0] = 0;
    drop(d, BAD_SYNC, d->start, d->packet - 1);
    begin_packet(d, b, offset);
}

/* A synchronisation packet interrupted the current packet, of which `bytes` are lost. */
static void cut_short(struct itm *d, uint64_t bytes)
{
    if (d->lost == 0) {
        d->soft.lost_why = CUT_SHORT;
        d->soft.lost_at = d->start;
    }
    d->lost += bytes;
}

/*
 * The end of a synchronisation packet. No other synchronised bytes have five zeros before 80, so it
 * is valid even within another packet, which was then cut short. If there are more zeros, the last
 * five belong to it.
 */
static void on_sync(struct itm *d)
{
    const uint64_t begin = d->zero_at[d->zeros % SYNC_ZEROS];
    if (d->state != ZEROS || d->packet < SYNC_ZEROS)
        cut_short(d, d->packet > SYNC_ZEROS ? d->packet - SYNC_ZEROS : 1);
    report_loss(d, d->lost);
    tl_soft_list(&d->soft, begin, "ITM_ASYNC", "");
    d->begun = true;
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
    case HEADER:
        begin_packet(d, b, offset);
        break;
    case ZEROS:
        on_zeros(d, b, offset);
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
    report_loss(d, d->lost);
    if (d->state != HEADER)
        tl_soft_list(&d->soft, d->start, "ITM_INCOMPLETE_EOT", "");
    return tl_soft_flush(&d->soft);
}

/* Source: DDI0403E C1.7.6: TSENA (bit 1), TSPrescale (9:8). */
static void configure(struct itm *d, const struct tl_source *source)
{
    const uint64_t unknown = UINT64_MAX;
    const uint64_t control =
        tl_source_reg(source, "ITMTCR", tl_source_reg(source, "CONTROL_REGISTER", unknown));
    d->prescale = control == unknown ? 1 : (uint8_t)(1u << 2 * (control >> 8 & 3));
    d->timing = control == unknown ? TIMING_UNKNOWN : control & 2 ? TIMED : UNTIMED;
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct itm *const d = tl_soft_new(sizeof *d, &tl_itm_ops, source, sink);
    if (!d)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    configure(d, source);
    d->state = HEADER;
    *out = &d->soft.base;
    return TL_OK;
}

static void held_state(struct itm *d, struct tl_state *s)
{
    tl_state_u8(s, &d->timing, TIMED);
    tl_state_u8(s, &d->n_held, HELD_MAX);
    for (uint8_t i = 0; i < d->n_held; i++) {
        struct held *const h = &d->held[i];
        tl_state_u8(s, &h->kind, HELD_TIME_LOW);
        tl_state_u8(s, &h->size, 4);
        tl_state_u64(s, &h->channel);
        tl_state_u64(s, &h->value);
        tl_state_u64(s, &h->offset);
    }
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
    tl_state_bool(s, &d->begun);
    tl_state_u8(s, &d->page, UINT8_MAX);
    tl_state_u64(s, &d->local_time);
    tl_state_u64(s, &d->global_time);
    tl_state_bool(s, &d->has_high);
    tl_state_bool(s, &d->wrapped);
    held_state(d, s);
}

const struct tl_stream_ops tl_itm_ops = {
    .name = "itm",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = tl_soft_destroy,
    .state = state,
};
