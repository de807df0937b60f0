/* SPDX-License-Identifier: MIT */
/*
 * STM: the System Trace Protocol version 2, a stream of nibbles, low half of a byte first.
 *
 * Source: MIPI STPv2; Arm IHI0054 (STM architecture). After a reserved header synchronisation is
 * lost until the next ASYNC (21 nibbles of F and one of 0).
 */
#include "decode/soft.h"

#include <stdlib.h>

enum { ASYNC_ONES = 21 };

enum packet {
    RESERVED,
    EXTEND, /* more header nibbles follow */
    NULL_,
    MASTER, /* M8, M16 */
    MERR,
    C8,
    C16,
    GERR,
    CERR,
    DATA,
    FLAG,
    VERSION,
    TRIG,
    XSYNC,
    FREQ,
    ASYNC
};

/* Meaning of a header: kind, number of payload nibbles, presence of marker and timestamp. */
struct header {
    uint8_t packet;
    uint8_t payload;
    bool marker;
    bool timestamp;
    const char *name;
};

/*
 * Source: STPv2, table of packet encodings. Indexed by first nibble, and by the nibbles after F, F0
 * and F0F. USER, TIME and DIP (F02 to F05, F0F2) have user-defined payloads, so they are treated as
 * reserved; no Arm STM sends them.
 */
static const struct header headers[4][16] = {
    {
        {NULL_, 0, false, false, "NULL"},
        {MASTER, 2, false, false, "M8"},
        {MERR, 2, false, false, "MERR"},
        {C8, 2, false, false, "C8"},
        {DATA, 2, false, false, "D8"},
        {DATA, 4, false, false, "D16"},
        {DATA, 8, false, false, "D32"},
        {DATA, 16, false, false, "D64"},
        {DATA, 2, true, true, "D8MTS"},
        {DATA, 4, true, true, "D16MTS"},
        {DATA, 8, true, true, "D32MTS"},
        {DATA, 16, true, true, "D64MTS"},
        {DATA, 1, false, false, "D4"},
        {DATA, 1, true, true, "D4MTS"},
        {FLAG, 0, false, true, "FLAG_TS"},
        {EXTEND, 0, false, false, NULL},
    },
    {
        {EXTEND, 0, false, false, NULL},
        {MASTER, 4, false, false, "M16"},
        {GERR, 2, false, false, "GERR"},
        {C16, 4, false, false, "C16"},
        {DATA, 2, false, true, "D8TS"},
        {DATA, 4, false, true, "D16TS"},
        {DATA, 8, false, true, "D32TS"},
        {DATA, 16, false, true, "D64TS"},
        {DATA, 2, true, false, "D8M"},
        {DATA, 4, true, false, "D16M"},
        {DATA, 8, true, false, "D32M"},
        {DATA, 16, true, false, "D64M"},
        {DATA, 1, false, true, "D4TS"},
        {DATA, 1, true, false, "D4M"},
        {FLAG, 0, false, false, "FLAG"},
        {ASYNC, 0, false, false, "ASYNC"},
    },
    {
        [0] = {VERSION, 1, false, false, "VERSION"},
        [1] = {NULL_, 0, false, true, "NULL_TS"},
        [6] = {TRIG, 2, false, false, "TRIG"},
        [7] = {TRIG, 2, false, true, "TRIG_TS"},
        [8] = {FREQ, 8, false, false, "FREQ"},
        [9] = {FREQ, 8, false, true, "FREQ_TS"},
        [10] = {XSYNC, 2, false, false, "XSYNC"},
        [11] = {XSYNC, 2, false, true, "XSYNC_TS"},
        [15] = {EXTEND, 0, false, false, NULL},
    },
    {
        [0] = {FREQ, 10, false, false, "FREQ_40"},
        [1] = {FREQ, 10, false, true, "FREQ_40_TS"},
        [3] = {CERR, 2, false, false, "CERR"},
    },
};

enum state { HUNT, HEADER, PAYLOAD, STAMP_SIZE, STAMP, ONES };

/* Reasons for loss of synchronisation, in addition to TL_LOSS_NOT_SYNC. */
static const char BAD_HEADER[] = "reserved STM header";
static const char BAD_SIZE[] = "reserved STM timestamp size";
static const char BAD_SYNC[] = "malformed STM synchronisation";
static const char CUT_SHORT[] = "STM packet cut short";

struct stm {
    struct tl_soft soft;
    enum state state;
    uint8_t level; /* row of `headers` */
    const struct header *header;
    uint8_t need; /* remaining nibbles of payload or timestamp */
    uint8_t stamp_nibbles;
    uint64_t value;
    uint64_t stamp;
    uint64_t start; /* offset of the byte in which the packet begins */

    uint64_t ones;               /* consecutive F nibbles, whatever they belong to */
    uint64_t one_at[ASYNC_ONES]; /* ring of the offsets of the last ones */
    uint64_t packet;             /* nibbles of the current packet */
    uint64_t lost_nibbles;

    uint16_t master;
    uint16_t channel;
    bool gray;     /* timestamps are Gray coded: VERSION 4 */
    bool delta;    /* timestamps are differences: VERSION 2 */
    uint64_t time; /* as transmitted: each timestamp replaces its low nibbles */
};

static void lose_sync(struct stm *d, const char *why, uint64_t at, uint64_t nibbles)
{
    d->state = HUNT;
    d->soft.lost_why = why;
    d->soft.lost_at = at;
    d->lost_nibbles = nibbles;
}

/* Losses are counted in nibbles but reported in bytes. */
static void report_loss(struct stm *d, uint64_t nibbles)
{
    tl_soft_report_loss(&d->soft, "NOTSYNC", (nibbles + 1) / 2);
}

static void bad(struct stm *d, const char *why)
{
    tl_soft_list(&d->soft, d->start, "RESERVED", "");
    lose_sync(d, why, d->start, d->packet);
}

/*
 * ---- complete packets ---------------------------------------------------------------------------
 */

static uint64_t from_gray(uint64_t gray)
{
    for (unsigned shift = 32; shift; shift >>= 1)
        gray ^= gray >> shift;
    return gray;
}

static uint64_t to_gray(uint64_t binary)
{
    return binary ^ binary >> 1;
}

/* Apply a timestamp: it replaces the low nibbles of the previous one, or is added to it. */
static uint64_t take_stamp(struct stm *d)
{
    if (d->delta)
        return d->time += d->stamp;
    if (d->stamp_nibbles) {
        const uint64_t mask =
            d->stamp_nibbles == 16 ? UINT64_MAX : (UINT64_C(1) << 4 * d->stamp_nibbles) - 1;
        d->time = (d->time & ~mask) | d->stamp;
    }
    return d->gray ? from_gray(d->time) : d->time;
}

static void on_data(struct stm *d)
{
    const uint64_t channel = (uint64_t)d->master << 32 | d->channel;
    tl_item_batch_software(&d->soft.out, "stm", channel, d->value, (d->header->payload + 1u) / 2,
                           d->start);
    if (d->header->marker)
        tl_soft_note(&d->soft, d->start, "stm marker %x.%x", d->master, d->channel);
}

/* Reset by a synchronisation. Source: STPv2, ASYNC and VERSION packets. */
static void on_version(struct stm *d)
{
    const bool gray = d->value == 4;
    if (gray != d->gray)
        d->time = gray ? to_gray(d->time) : from_gray(d->time);
    d->gray = gray;
    d->delta = d->value == 2;
    d->master = 0;
    d->channel = 0;
}

static void act(struct stm *d)
{
    switch ((enum packet)d->header->packet) {
    case MASTER:
        d->master = (uint16_t)d->value;
        d->channel = 0;
        break;
    case C8:
        d->channel = (uint16_t)((d->channel & 0xff00) | d->value);
        break;
    case C16:
        d->channel = (uint16_t)d->value;
        break;
    case DATA:
        on_data(d);
        break;
    case VERSION:
        on_version(d);
        break;
    case FLAG:
        tl_soft_note(&d->soft, d->start, "stm flag %x.%x", d->master, d->channel);
        break;
    case TRIG:
        tl_soft_note(&d->soft, d->start, "stm trigger %" PRIu64, d->value);
        break;
    case XSYNC:
        tl_soft_note(&d->soft, d->start, "stm cross-sync %" PRIu64, d->value);
        break;
    case FREQ:
        tl_soft_note(&d->soft, d->start, "stm frequency %" PRIu64, d->value);
        break;
    case MERR:
        tl_soft_note(&d->soft, d->start, "stm master-error %x %" PRIu64, d->master, d->value);
        d->channel = 0;
        break;
    case CERR:
        tl_soft_note(&d->soft, d->start, "stm channel-error %x.%x %" PRIu64, d->master, d->channel,
                     d->value);
        break;
    case GERR:
        tl_soft_note(&d->soft, d->start, "stm global-error %" PRIu64, d->value);
        d->master = 0;
        d->channel = 0;
        break;
    default:
        break;
    }
}

static void list_packet(struct stm *d, uint64_t time)
{
    if (!d->soft.sink.packet)
        return;
    const struct header *const h = d->header;
    char fields[96];
    int n = 0;
    switch ((enum packet)h->packet) {
    case MASTER:
        n = snprintf(fields, sizeof fields, "master=0x%02x", d->master);
        break;
    case C8:
    case C16:
        n = snprintf(fields, sizeof fields, "chan=0x%04x", d->channel);
        break;
    case VERSION:
        n = snprintf(fields, sizeof fields, "ver=%" PRIu64, d->value);
        break;
    case NULL_:
    case FLAG:
        break;
    default:
        n = snprintf(fields, sizeof fields, "data=0x%0*" PRIx64, h->payload, d->value);
    }
    fields[n] = '\0';
    if (h->timestamp)
        snprintf(fields + n, sizeof fields - (size_t)n, "%sts=0x%" PRIx64, n ? " " : "", time);
    tl_soft_list(&d->soft, d->start, h->name, fields);
}

static void complete(struct stm *d)
{
    const uint64_t time = d->header->timestamp ? take_stamp(d) : 0;
    d->state = HEADER;
    d->level = 0;
    if (d->header->timestamp) {
        tl_soft_time(&d->soft, TL_TIME_SOURCE, time, 0, d->start);
    }
    act(d);
    list_packet(d, time);
}

/* ---- nibbles --------------------------------------------------------------------------------- */

static void payload_or_stamp(struct stm *d)
{
    if (d->header->timestamp)
        d->state = STAMP_SIZE;
    else
        complete(d);
}

static void on_header(struct stm *d, uint8_t nibble)
{
    const struct header *const h = &headers[d->level][nibble];
    d->header = h;
    d->value = 0;
    d->stamp = 0;
    d->stamp_nibbles = 0;
    if (h->packet == EXTEND) {
        d->level++;
        d->state = HEADER;
    } else if (h->packet == RESERVED) {
        bad(d, BAD_HEADER);
    } else if (h->packet == ASYNC) {
        d->state = ONES;
    } else if (h->payload) {
        d->need = h->payload;
        d->state = PAYLOAD;
    } else {
        payload_or_stamp(d);
    }
}

/* Timestamp sizes: 0 to 12 nibbles directly, then 14 and 16. Source: STPv2, timestamps. */
static void on_stamp_size(struct stm *d, uint8_t nibble)
{
    if (nibble == 15) {
        bad(d, BAD_SIZE);
        return;
    }
    d->stamp_nibbles = nibble < 13 ? nibble : nibble == 13 ? 14 : 16;
    d->need = d->stamp_nibbles;
    d->state = STAMP;
    if (!d->need)
        complete(d);
}

/* FF begins a synchronisation, which may only continue with F. */
static void on_ones(struct stm *d, uint8_t nibble)
{
    if (nibble != 15)
        bad(d, BAD_SYNC);
}

static void on_hunt(struct stm *d, uint64_t offset)
{
    if (!d->lost_nibbles++)
        d->soft.lost_at = offset;
}

/*
 * The end of a synchronisation. No other synchronised nibbles have 21 consecutive F, so it is valid
 * even within another packet, which was then cut short. If there are more than 21, the last ones
 * belong to it.
 */
static void on_sync(struct stm *d)
{
    const uint64_t begin = d->one_at[d->ones % ASYNC_ONES];
    uint64_t lost = 0;
    if (d->state == HUNT) {
        lost = d->lost_nibbles - ASYNC_ONES;
    } else if (d->state != ONES || d->packet < ASYNC_ONES) {
        d->soft.lost_why = CUT_SHORT;
        d->soft.lost_at = d->start;
        lost = d->packet > ASYNC_ONES ? d->packet - ASYNC_ONES : 1;
    }
    report_loss(d, lost);
    tl_soft_list(&d->soft, begin, "ASYNC", "");
    d->lost_nibbles = 0;
    d->state = HEADER;
    d->level = 0;
}

static void take(struct stm *d, uint8_t nibble, uint64_t offset)
{
    if (nibble == 15) {
        d->one_at[d->ones++ % ASYNC_ONES] = offset;
    } else {
        const bool sync = nibble == 0 && d->ones >= ASYNC_ONES;
        if (sync)
            on_sync(d);
        d->ones = 0;
        if (sync)
            return;
    }
    d->packet++;
    switch (d->state) {
    case HUNT:
        on_hunt(d, offset);
        break;
    case HEADER:
        if (d->level == 0) {
            d->start = offset;
            d->packet = 1;
        }
        on_header(d, nibble);
        break;
    case PAYLOAD:
        d->value = d->value << 4 | nibble;
        if (!--d->need)
            payload_or_stamp(d);
        break;
    case STAMP_SIZE:
        on_stamp_size(d, nibble);
        break;
    case STAMP:
        d->stamp = d->stamp << 4 | nibble;
        if (!--d->need)
            complete(d);
        break;
    case ONES:
        on_ones(d, nibble);
        break;
    }
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct stm *const d = (struct stm *)decoder;
    for (size_t i = 0; i < run->n && d->soft.rc >= 0; i++) {
        const uint64_t offset = tl_run_offset(run, i);
        take(d, run->p[i] & 15, offset);
        take(d, run->p[i] >> 4, offset);
    }
    return tl_soft_flush(&d->soft);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct stm *const d = (struct stm *)decoder;
    if (d->state == HUNT) {
        report_loss(d, d->lost_nibbles);
    } else if (d->state != HEADER || d->level) {
        tl_soft_list(&d->soft, d->start, "INCOMPLETE_EOT", "");
        tl_soft_cut(&d->soft, cut, d->start, (d->packet + 1) / 2);
    }
    return tl_soft_flush(&d->soft);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct stm *const d = tl_soft_new(sizeof *d, &tl_stm_ops, source, sink);
    if (!d)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    lose_sync(d, TL_LOSS_NOT_SYNC, 0, 0);
    *out = &d->soft.base;
    return TL_OK;
}

/* Save or restore the header of the current packet as a table index. */
static void header_state(struct stm *d, struct tl_state *s)
{
    enum { NONE = sizeof headers / sizeof headers[0][0] };
    uint8_t at = NONE;
    if (!tl_state_loads(s) && d->header)
        at = (uint8_t)(d->header - &headers[0][0]);
    tl_state_u8(s, &at, NONE);
    d->header = at < NONE ? &headers[at / 16][at % 16] : NULL;
}

static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    static const char *const reasons[] = {TL_LOSS_NOT_SYNC, BAD_HEADER, BAD_SIZE, BAD_SYNC,
                                          CUT_SHORT};
    struct stm *const d = (struct stm *)decoder;
    uint8_t now = (uint8_t)d->state;
    tl_soft_state(&d->soft, s, reasons, sizeof reasons / sizeof *reasons);
    tl_state_u8(s, &now, ONES);
    d->state = (enum state)now;
    tl_state_u8(s, &d->level, 3);
    header_state(d, s);
    tl_state_u8(s, &d->need, UINT8_MAX);
    tl_state_u8(s, &d->stamp_nibbles, 16);
    tl_state_check(s, d->state == HUNT || d->state == HEADER || d->state == ONES || d->header);
    tl_state_check(s, (d->state != PAYLOAD && d->state != STAMP) || d->need > 0);
    tl_state_u64(s, &d->value);
    tl_state_u64(s, &d->stamp);
    tl_state_u64(s, &d->start);
    tl_state_u64(s, &d->ones);
    tl_state_bytes(s, d->one_at, sizeof d->one_at);
    tl_state_u64(s, &d->packet);
    tl_state_u64(s, &d->lost_nibbles);
    tl_state_u16(s, &d->master);
    tl_state_u16(s, &d->channel);
    tl_state_bool(s, &d->gray);
    tl_state_bool(s, &d->delta);
    tl_state_u64(s, &d->time);
}

const struct tl_stream_ops tl_stm_ops = {
    .name = "stm",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = tl_soft_destroy,
    .state = state,
};
