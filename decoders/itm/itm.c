/* SPDX-License-Identifier: MIT */
/*
 * ITM: software stimulus and DWT hardware packets of Armv7-M and Armv8-M cores.
 *
 * Source: Arm DDI0403E (Armv7-M), appendix D4 "Debug ITM and DWT packet protocol"; DDI0553
 * (Armv8-M), chapter F1. Most set-ups for printing send no synchronisation packets (at least 47
 * zero bits and a one), so the first byte counts as a header, and bytes that cannot be one are
 * dropped until the next that can; so is the header of a packet that cannot be. A synchronisation
 * packet ends whatever it comes in.
 */
#include "decode/soft.h"
#include "itm/held.h"
#include "itm/quality.h"

#include <stdlib.h>

enum { SYNC_ZEROS = 5, MAX_PACKET = 8, LOW_BITS = 26 };

enum state {
    HEADER, /* the next byte begins a packet */
    FIXED,  /* `need` more payload bytes */
    SERIES, /* payload bytes up to one with bit 7 clear, at most `need` */
    ZEROS,  /* inside a synchronisation packet */
    NOT_HEADER
};

/* Reasons for loss, in addition to TL_LOSS_NOT_SYNC: nothing could be decoded yet. */
static const char RESERVED[] = "reserved ITM packet";
static const char BAD_SYNC[] = "malformed ITM synchronisation";
static const char CUT_SHORT[] = "ITM packet cut short";
/* What the input is rather than ITM packets. */
static const char FRAMED[] = "these are frames of a TPIU: give the format as tpiu";
static const char STRANGE[] =
    "packets as no trace unit sends them: check the clock and the baud rate of the SWO";
static const char NOISE[] = "mostly no ITM packets: check the clock and the baud rate of the SWO";

struct itm {
    struct tl_soft soft;
    enum state state;
    uint8_t bytes[MAX_PACKET];
    uint64_t at[MAX_PACKET]; /* their offsets */
    uint8_t n;
    uint8_t need;
    uint64_t start;
    uint64_t zeros;               /* consecutive zero bytes, whatever they belong to */
    uint64_t zero_at[SYNC_ZEROS]; /* ring of the offsets of the last ones */
    uint64_t packet;              /* bytes of the current packet */
    uint64_t lost;                /* bytes dropped since the last packet */
    bool begun;                   /* a packet has been decoded */
    uint8_t page;                 /* of the stimulus ports; 0 behind a loss, as at the begin */
    uint64_t global_time;         /* the global timestamp, as far as it is known */
    uint8_t low_bits;             /* of its bits 25:0, so many of the lowest are known */
    bool has_high;                /* those from 26 on are known */
    bool wrapped;                 /* … but will change with the next packet that has them */
    bool vague;                   /* … or have changed with one that was lost */
    bool changed;                 /* the clock has, since the last complete global timestamp */
    struct tl_itm_quality quality;
    struct tl_dwt dwt;
    struct tl_itm_held held;
};

/* ---- events ---------------------------------------------------------------------------------- */

static void on_event(void *context, const struct tl_hardware *event)
{
    struct itm *const d = context;
    tl_itm_hold(&d->held,
                &(struct tl_held){.kind = TL_HELD_EVENT, .offset = d->start, .event = *event});
}

/* Anything but packets of comparators ends their accesses. */
static void end_accesses(struct itm *d)
{
    tl_dwt_flush(&d->dwt, on_event, d);
}

/* Deliver everything so far, whose timestamps may be lost. */
static void break_off(struct itm *d)
{
    end_accesses(d);
    tl_itm_break(&d->held);
}

/* ---- loss ------------------------------------------------------------------------------------ */

static void report_loss(struct itm *d, uint64_t bytes)
{
    if (bytes) {
        if (tl_itm_is_noisy(&d->quality) && d->soft.lost_why != FRAMED) /* as it turned out */
            d->soft.lost_why = NOISE;
        d->quality.said |= d->soft.lost_why == NOISE || d->soft.lost_why == FRAMED;
        break_off(d);
        d->low_bits = 0;
        d->wrapped = false;
        d->vague = d->has_high;
        d->page = 0;
    }
    tl_soft_report_loss(&d->soft, "ITM_NOTSYNC", bytes);
    d->lost = 0;
}

/* A window of noise in which nothing is lost, so that no loss has said it. */
static void report_noise(struct itm *d, uint64_t offset)
{
    if (!d->quality.noisy || d->quality.said || d->lost > 0 || d->soft.rc < 0)
        return;
    d->quality.said = true;
    d->soft.rc = d->soft.sink.loss(d->soft.sink.context, STRANGE, offset, 0);
}

static const char *reason(const struct itm *d, const char *why)
{
    if (tl_itm_is_framed(&d->quality))
        return FRAMED;
    if (tl_itm_is_noisy(&d->quality))
        return NOISE;
    return d->begun ? why : TL_LOSS_NOT_SYNC;
}

/* Bytes that belong to no packet: reported with those that follow them. */
static void drop(struct itm *d, const char *why, uint64_t at, uint64_t bytes)
{
    char fields[48];
    snprintf(fields, sizeof fields, "header=0x%02x", d->bytes[0]);
    tl_soft_list(&d->soft, at, "ITM_RESERVED", fields);
    d->quality.bad++;
    if (d->lost == 0) {
        d->soft.lost_at = at;
        d->soft.lost_why = reason(d, why);
    }
    d->lost += bytes;
    d->state = HEADER;
}

/* ---- complete packets ------------------------------------------------------------------------ */

static void step(struct itm *d, uint8_t b, uint64_t offset);

/* It cannot be: what follows its header may be packets. */
static void step_back(struct itm *d)
{
    uint8_t bytes[MAX_PACKET];
    uint64_t at[MAX_PACKET];
    const uint8_t n = d->n;
    memcpy(bytes, d->bytes, sizeof bytes);
    memcpy(at, d->at, sizeof at);
    drop(d, RESERVED, d->start, 1);
    for (uint8_t i = 1; i < n; i++)
        step(d, bytes[i], at[i]);
}

static uint64_t payload_of(const struct itm *d)
{
    uint64_t value = 0;
    for (unsigned i = 1; i < d->n; i++)
        value |= (uint64_t)d->bytes[i] << 8 * (i - 1);
    return value;
}

static void list_source(struct itm *d, bool hardware)
{
    char fields[64];
    const int digits = 2 * (d->n - 1);
    snprintf(fields, sizeof fields, "%s=0x%02x data=0x%0*" PRIx64, hardware ? "desc" : "src",
             d->bytes[0] >> 3, digits, payload_of(d));
    tl_soft_list(&d->soft, d->start, hardware ? "ITM_DWT" : "ITM_SWIT", fields);
}

static void on_software(struct itm *d)
{
    list_source(d, false);
    tl_itm_look_at_payload(&d->quality, d->bytes + 1, (size_t)d->n - 1);
    end_accesses(d);
    tl_itm_hold(&d->held, &(struct tl_held){.kind = TL_HELD_SOFTWARE,
                                            .size = (uint8_t)(d->n - 1),
                                            .channel = (uint64_t)d->page << 5 | d->bytes[0] >> 3,
                                            .value = payload_of(d),
                                            .offset = d->start});
}

static void on_hardware(struct itm *d)
{
    list_source(d, true);
    d->quality.bad += !tl_dwt_is_known(d->bytes[0] >> 3);
    tl_dwt_packet(&d->dwt, d->bytes[0] >> 3, (unsigned)d->n - 1, (uint32_t)payload_of(d), on_event,
                  d);
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
    char fields[64];
    snprintf(fields, sizeof fields, "ts=0x%" PRIx64 " relation=%s", delta, relations[relation]);
    tl_soft_list(&d->soft, d->start, "ITM_TS_LOCAL", fields);
    end_accesses(d);
    tl_itm_local_time(&d->held, delta, relation, d->start);
}

/* May the time be later than what is known of it? */
static bool is_low(const struct itm *d)
{
    return d->low_bits < LOW_BITS || d->vague;
}

static void on_global_time(struct itm *d, const char *name, uint64_t value, const char *flags,
                           bool changed)
{
    char fields[64];
    snprintf(fields, sizeof fields, "ts=0x%" PRIx64 "%s", value, flags);
    tl_soft_list(&d->soft, d->start, name, fields);
    end_accesses(d);
    d->changed |= changed;
    if (d->wrapped)
        return;
    if (d->has_high) {
        tl_itm_global_time(&d->held, d->global_time, d->changed, is_low(d), d->start);
        d->changed = false;
    } else {
        tl_itm_hold(&d->held, &(struct tl_held){.kind = TL_HELD_TIME_LOW,
                                                .value = d->global_time,
                                                .offset = d->start});
    }
}

/* Replace the `bits` lowest bits. If others are not known, the time is the next one that has those
 * which are: this, or later. */
static void set_low(struct itm *d, uint64_t value, unsigned bits)
{
    const uint64_t last = d->global_time;
    d->low_bits = bits > d->low_bits ? (uint8_t)bits : d->low_bits;
    d->global_time = (last & ~((UINT64_C(1) << bits) - 1)) | value;
    if (d->has_high && is_low(d) && !d->wrapped && d->global_time < last)
        d->global_time += UINT64_C(1) << d->low_bits;
}

/*
 * Low 26 bits: only the transmitted ones are replaced. The fourth byte has five bits and two flags:
 * with `wrap` the upper bits are no longer valid, and follow.
 */
static void on_global_low(struct itm *d)
{
    static const char *const flags[] = {"", " clk-change", " wrap", " clk-change wrap"};
    uint64_t value = 0;
    unsigned bits = 0, flag = 0;
    for (unsigned i = 1; i < d->n; i++) {
        const uint8_t b = d->bytes[i];
        const unsigned width = i == 4 ? 5 : 7;
        value |= (uint64_t)(b & ((1u << width) - 1)) << bits;
        bits += width;
        flag = i == 4 ? b >> 5 & 3 : 0;
    }
    d->wrapped |= flag & 2 && d->has_high;
    set_low(d, value, bits);
    on_global_time(d, "ITM_GTS_1", value, flags[flag], flag & 1);
}

/* Bits 26 and up: four bytes transmit bits up to 47, six bytes up to 63. */
static void on_global_high(struct itm *d)
{
    uint64_t value = 0;
    for (unsigned i = 1; i < d->n; i++)
        value |= (uint64_t)(d->bytes[i] & 0x7f) << 7 * (i - 1);
    const unsigned width = d->n == 5 ? 22 : 38;
    value &= (UINT64_C(1) << width) - 1;
    if (!d->has_high || d->low_bits == LOW_BITS || d->global_time >> LOW_BITS != value)
        d->global_time = (d->global_time & ((UINT64_C(1) << d->low_bits) - 1)) | value << LOW_BITS;
    d->has_high = true;
    d->wrapped = d->vague = false;
    on_global_time(d, "ITM_GTS_2", value, "", false);
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
    const bool is_page = !(h & 4) && d->n == 1;
    if (is_page)
        d->page = (uint8_t)value;
    /* No others are defined, and a page is sent for a packet of a stimulus port. */
    d->quality.bad += !is_page || d->quality.extended;
    d->quality.extended = true;
}

static void on_overflow(struct itm *d)
{
    tl_soft_list(&d->soft, d->start, "ITM_OVERFLOW", "");
    break_off(d);
    tl_item_batch_add(&d->soft.out, TL_ITEM_GAP, d->start)->sub = TL_GAP_OVERFLOW;
    d->page = 0;
}

typedef void on_packet(struct itm *d);

static on_packet *packet_of(uint8_t h)
{
    if (h & 3)
        return h & 4 ? on_hardware : on_software;
    if (h == 0x94)
        return on_global_low;
    if (h == 0xb4)
        return on_global_high;
    if ((h & 0x0b) == 8)
        return on_extension;
    return h == 0x70 ? on_overflow : on_local_time;
}

static void complete(struct itm *d)
{
    on_packet *const on = packet_of(d->bytes[0]);
    d->state = HEADER;
    if (on == on_global_high && d->n != 5 && d->n != 7) { /* neither of 48 nor of 64 bits */
        drop(d, RESERVED, d->start, d->n);
        return;
    }
    if (on == on_hardware &&
        !tl_dwt_is_packet(d->bytes[0] >> 3, (unsigned)d->n - 1, (uint32_t)payload_of(d))) {
        step_back(d);
        return;
    }
    report_loss(d, d->lost);
    d->begun = true;
    d->quality.extended &= on == on_extension;
    if (on == on_software || on == on_hardware || on == on_extension)
        tl_itm_look_at_header(&d->quality, d->bytes[0]);
    on(d);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The state after a header. */
static enum state after_header(struct itm *d, uint8_t b)
{
    static const uint8_t sizes[] = {0, 1, 2, 4};
    if (b & 3) {
        d->need = sizes[b & 3];
        return b & 4 && !tl_dwt_is_source(b >> 3, d->need) ? NOT_HEADER : FIXED;
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
    d->at[0] = d->start;
    d->n = 1;
    d->state = next;
    if (next == NOT_HEADER)
        drop(d, RESERVED, d->start, 1);
    else if (next == HEADER)
        complete(d);
}

static void on_payload(struct itm *d, uint8_t b, uint64_t offset)
{
    d->at[d->n] = offset;
    d->bytes[d->n++] = b;
    d->need--;
    if (!d->need || (d->state == SERIES && !(b & 0x80)))
        complete(d);
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
    end_accesses(d);
    tl_soft_list(&d->soft, begin, "ITM_ASYNC", "");
    d->begun = true;
    d->state = HEADER;
}

static void step(struct itm *d, uint8_t b, uint64_t offset)
{
    d->packet++;
    switch (d->state) {
    case HEADER:
        begin_packet(d, b, offset);
        break;
    case ZEROS:
        on_zeros(d, b, offset);
        break;
    default:
        on_payload(d, b, offset);
    }
}

static void take(struct itm *d, uint8_t b, uint64_t offset)
{
    if (tl_itm_look_at(&d->quality, b))
        report_noise(d, offset);
    if (b == 0x80 && d->zeros >= SYNC_ZEROS) {
        on_sync(d);
        d->zeros = 0;
        return;
    }
    if (b == 0)
        d->zero_at[d->zeros++ % SYNC_ZEROS] = offset;
    else
        d->zeros = 0;
    step(d, b, offset);
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct itm *const d = (struct itm *)decoder;
    for (size_t i = 0; i < run->n && d->soft.rc >= 0; i++)
        take(d, run->p[i], tl_run_offset(run, i));
    return tl_soft_flush(&d->soft);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct itm *const d = (struct itm *)decoder;
    break_off(d);
    report_loss(d, d->lost);
    if (d->state != HEADER)
        tl_soft_list(&d->soft, d->start, "ITM_INCOMPLETE_EOT", "");
    if (d->state == FIXED || d->state == SERIES)
        tl_soft_cut(&d->soft, cut, d->start, d->n);
    return tl_soft_flush(&d->soft);
}

static void resume(struct tl_stream_decoder *decoder, const struct tl_stream_decoder *last)
{
    struct itm *const d = (struct itm *)decoder;
    const struct itm *const l = (const struct itm *)last;
    tl_itm_resume(&d->held, &l->held);
    d->soft.stamp = l->soft.stamp;
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct itm *const d = tl_soft_new(sizeof *d, &tl_itm_ops, source, sink);
    if (!d)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    tl_dwt_init(&d->dwt, source);
    tl_itm_held_init(&d->held, source);
    d->held.soft = &d->soft;
    d->held.image = image;
    d->held.dwt = &d->dwt;
    d->state = HEADER;
    *out = &d->soft.base;
    return TL_OK;
}

static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    static const char *const reasons[] = {TL_LOSS_NOT_SYNC, RESERVED, BAD_SYNC,
                                          CUT_SHORT,        FRAMED,   NOISE};
    struct itm *const d = (struct itm *)decoder;
    uint8_t now = (uint8_t)d->state;
    tl_soft_state(&d->soft, s, reasons, sizeof reasons / sizeof *reasons);
    tl_state_u8(s, &now, ZEROS);
    d->state = (enum state)now;
    tl_state_bytes(s, d->bytes, sizeof d->bytes);
    tl_state_bytes(s, d->at, sizeof d->at);
    tl_state_u8(s, &d->n, MAX_PACKET);
    tl_state_u8(s, &d->need, MAX_PACKET);
    tl_state_check(s, (d->state != FIXED && d->state != SERIES) ||
                          (d->n > 0 && d->need > 0 && d->n + d->need <= MAX_PACKET));
    tl_state_check(s, d->state != FIXED || !(d->bytes[0] & 4) ||
                          tl_dwt_is_source(d->bytes[0] >> 3, (unsigned)d->n - 1 + d->need));
    tl_state_u64(s, &d->start);
    tl_state_u64(s, &d->zeros);
    tl_state_bytes(s, d->zero_at, sizeof d->zero_at);
    tl_state_u64(s, &d->packet);
    tl_state_u64(s, &d->lost);
    tl_state_bool(s, &d->begun);
    tl_state_u8(s, &d->page, UINT8_MAX);
    tl_state_u64(s, &d->global_time);
    tl_state_u8(s, &d->low_bits, LOW_BITS);
    tl_state_bool(s, &d->has_high);
    tl_state_bool(s, &d->wrapped);
    tl_state_bool(s, &d->vague);
    tl_state_bool(s, &d->changed);
    tl_itm_quality_state(&d->quality, s);
    tl_dwt_state(&d->dwt, s);
    tl_itm_held_state(&d->held, s);
}

const struct tl_stream_ops tl_itm_ops = {
    .name = "itm",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = tl_soft_destroy,
    .resume = resume,
    .state = state,
};
