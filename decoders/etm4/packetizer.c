/* SPDX-License-Identifier: MIT */
/*
 * A-Sync is found by counting zeros from byte to byte, and the offsets of the last ones are kept,
 * because other sources' bytes lie between those of this one. Packets that reach the end of a push
 * wait in a buffer; all others are parsed in place.
 */
#include "etm4/packetizer.h"

#include "base/bytes.h"
#include "etm4/headers.h"
#include "etm4/parse.h"
#include "etm4/unrolled.h"
#include "etm4/unrolled_parts.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct tl_etm4_packetizer) / 1024 == 30, "as the manual says");

#define ASYNC_ZEROS  11
#define ASYNC_LAST   0x80
#define BAD_SEQUENCE 2
#define RING         15      /* mask of zero_at */
#define RUN_MAX      0x10000 /* maximum run length that a tape's 16-bit positions can address */

static void init(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config, void *context)
{
    memset(p, 0, sizeof *p);
    p->context = context;
    memset(p->tail, 0xff, sizeof p->tail);
    p->regs.sf = 1; /* upper address bits are kept until a context selects AArch32 */
    tl_etm4_forms_init(&p->forms, config);
    tl_etm4_packetizer_use(p, tl_etm4_kernel_at(tl_cpu_level()));
}

void tl_etm4_packetizer_init(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                             tl_etm4_packet_sink *sink, void *context)
{
    init(p, config, context);
    p->sink = sink;
}

void tl_etm4_packetizer_init_tape(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                                  tl_etm4_tape_sink *sink, void *context)
{
    init(p, config, context);
    p->tape_sink = sink;
}

void tl_etm4_packetizer_use(struct tl_etm4_packetizer *p, const struct tl_etm4_kernel *kernel)
{
    p->kernel = kernel;
}

void tl_etm4_packetizer_reset(struct tl_etm4_packetizer *p)
{
    struct tl_etm4_columns *const c = &p->columns;

    p->regs = (struct tl_etm4_registers){.sf = 1};
    p->in_sync = false;
    p->failed = TL_OK;
    p->length = 0;
    p->start = p->zeros = p->skipped = 0;
    memset(p->tail, 0xff, sizeof p->tail);
    c->n = c->n_found = c->n_addresses = c->n_others = 0;
}

void tl_etm4_packetizer_state(struct tl_etm4_packetizer *p, struct tl_state *s)
{
    struct tl_etm4_packet unused;
    struct tl_etm4_registers *const r = &p->regs;
    for (size_t i = 0; i < 3; i++) {
        tl_state_u64(s, &r->address[i]);
        tl_state_u8(s, &r->is[i], 1);
    }
    tl_state_u8(s, &r->sf, 1);
    tl_state_u64(s, &r->timestamp);
    tl_state_u64(s, &r->threshold);
    tl_state_bool(s, &p->in_sync);
    tl_state_u8(s, &p->length, TL_ETM4_PACKET_MAX - 1);
    memset(p->bytes + p->length, 0, sizeof p->bytes - p->length);
    tl_state_bytes(s, p->bytes, sizeof p->bytes);
    tl_state_u64(s, &p->start);
    tl_state_u64(s, &p->zeros);
    if (p->zeros == 0)
        memset(p->zero_at, 0, sizeof p->zero_at);
    tl_state_bytes(s, p->zero_at, sizeof p->zero_at);
    tl_state_u64(s, &p->skipped);
    tl_state_bytes(s, p->tail, sizeof p->tail);
    /* The bytes kept for the next push must be an incomplete packet. */
    if (tl_state_loads(s) && p->length > 0) {
        struct tl_etm4_registers regs = p->regs;
        tl_state_check(s,
                       p->bytes[0] != 0 && tl_etm4_parse(p->forms.class_of, &p->forms.config, &regs,
                                                         p->bytes, p->length, &unused) == 0);
    }
    p->failed = TL_OK;
}

/* ---- delivery ------------------------------------------------------------------------------ */

/* Deliver the tape's packets to a packet sink. */
static void unroll_tape(struct tl_etm4_packetizer *p, const struct tl_etm4_tape *tape)
{
    struct tl_etm4_packet packets[TL_ETM4_BATCH];
    struct tl_etm4_tape_place place = {0};

    while (place.packet < tape->n && p->failed >= 0) {
        const size_t n = tl_etm4_tape_read(tape, &place, packets, TL_ETM4_BATCH);
        p->failed = p->sink(p->context, packets, n);
    }
}

void tl_etm4_columns_flush(struct tl_etm4_packetizer *p)
{
    struct tl_etm4_columns *const c = &p->columns;
    const struct tl_etm4_tape tape = {
        .forms = &p->forms,
        .run = p->run,
        .n = c->n,
        .n_addresses = c->n_addresses,
        .n_others = c->n_others,
        .header = c->header,
        .at = c->at,
        .address = c->address,
        .other = c->other,
        .threshold = p->regs.threshold,
    };

    if (c->n > 0 && p->failed >= 0) {
        if (p->tape_sink != NULL)
            p->failed = p->tape_sink(p->context, &tape);
        else
            unroll_tape(p, &tape);
    }
    c->n = c->n_found = c->n_addresses = c->n_others = 0;
}

/* Space for the next packet that is not plain. */
static struct tl_etm4_packet *slot(struct tl_etm4_packetizer *p)
{
    if (p->columns.n >= TL_TAPE_PACKETS || p->columns.n_others == TL_TAPE_OTHERS)
        tl_etm4_columns_flush(p);
    return &p->columns.other[p->columns.n_others];
}

/* Append the packet in slot(). */
static void keep(struct tl_etm4_packetizer *p)
{
    struct tl_etm4_columns *const c = &p->columns;
    c->header[c->n++] = TL_TAPE_OTHER;
    c->n_others++;
}

static void emit(struct tl_etm4_packetizer *p, enum tl_etm4_type type, uint64_t offset,
                 uint64_t value, uint8_t header)
{
    *slot(p) = (struct tl_etm4_packet){
        .type = (uint8_t)type, .header = header, .offset = offset, .value = value};
    keep(p);
}

/* ---- alignment synchronisation ------------------------------------------------------------- */

/* Offset of an A-Sync after `zeros` zeros, the last 11 of which belong to it. */
static uint64_t async_offset(const struct tl_etm4_packetizer *p)
{
    return p->zero_at[(p->zeros - ASYNC_ZEROS) & RING];
}

static void count_zero(struct tl_etm4_packetizer *p, uint64_t offset)
{
    p->zero_at[p->zeros++ & RING] = offset;
}

/* Not in sync: skip up to and including A-Sync. Returns the index of the first unprocessed byte. */
static size_t hunt(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    if (p->skipped == 0 && p->zeros == 0)
        p->start = tl_run_offset(run, i);
    for (; i < run->n; i++) {
        const uint8_t byte = run->p[i];
        if (byte == 0) {
            count_zero(p, tl_run_offset(run, i));
            continue;
        }
        if (byte == ASYNC_LAST && p->zeros >= ASYNC_ZEROS) {
            const uint64_t skipped = p->skipped + p->zeros - ASYNC_ZEROS;
            if (skipped > 0)
                emit(p, TL_ETM4_NOT_SYNC, p->start, skipped, 0);
            emit(p, TL_ETM4_ASYNC, async_offset(p), 0, 0);
            p->skipped = 0;
            p->zeros = 0;
            p->in_sync = true;
            return i + 1;
        }
        p->skipped += p->zeros + 1;
        p->zeros = 0;
        /* The zeros of an A-Sync that begins in the next 11 bytes include the last one of these. */
        while (run->n - i > ASYNC_ZEROS && run->p[i + ASYNC_ZEROS] != 0) {
            p->skipped += ASYNC_ZEROS;
            i += ASYNC_ZEROS;
        }
    }
    return i;
}

/* Were the `n` bytes before run->p[i] also zeros? The tail holds those of earlier runs. */
static bool zeros_before(const struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i,
                         size_t n)
{
    for (; n > 0; n--) {
        const uint8_t *const byte = i >= n ? &run->p[i - n] : &p->tail[sizeof p->tail + i - n];
        if (*byte != 0)
            return false;
    }
    return true;
}

static void keep_tail(struct tl_etm4_packetizer *p, const struct tl_run *run)
{
    const size_t n = run->n < sizeof p->tail ? run->n : sizeof p->tail;
    memmove(p->tail, p->tail + n, sizeof p->tail - n);
    memcpy(p->tail + sizeof p->tail - n, run->p + run->n - n, n);
}

/* In sync, after a 0x00 header: A-Sync, discard, overflow, or an invalid packet. */
static size_t extension(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    if (p->zeros == 0)
        p->start = tl_run_offset(run, i);
    while (i < run->n && run->p[i] == 0)
        count_zero(p, tl_run_offset(run, i++));
    if (i == run->n)
        return i;

    const uint8_t byte = run->p[i];
    if (byte == ASYNC_LAST && p->zeros >= ASYNC_ZEROS) {
        if (p->zeros > ASYNC_ZEROS)
            emit(p, TL_ETM4_BAD, p->start, BAD_SEQUENCE, 0);
        emit(p, TL_ETM4_ASYNC, async_offset(p), 0, 0);
    } else if (p->zeros == 1 && byte == 0x03) {
        emit(p, TL_ETM4_DISCARD, p->start, 0, 0);
    } else if (p->zeros == 1 && byte == 0x05) {
        emit(p, TL_ETM4_OVERFLOW, p->start, 0, 0);
    } else {
        emit(p, TL_ETM4_BAD, p->start, BAD_SEQUENCE, 0);
        /* A damaged packet may have consumed the first zeros. */
        if (byte == ASYNC_LAST && p->zeros < ASYNC_ZEROS && zeros_before(p, run, i, ASYNC_ZEROS))
            emit(p, TL_ETM4_ASYNC, p->start, 0, 0);
    }
    p->zeros = 0;
    return i + 1;
}

/* ---- packets ------------------------------------------------------------------------------- */

/* Parse the packet at `b` into slot(). A trace info changes the meaning of cycle counts, so the
 * tape before it is delivered first. */
static size_t parse(struct tl_etm4_packetizer *p, const uint8_t *b, size_t n)
{
    if (p->forms.class_of[b[0]] == TL_CLASS_TRACE_INFO)
        tl_etm4_columns_flush(p);
    struct tl_etm4_packet *const out = slot(p);
    return tl_etm4_parse(p->forms.class_of, &p->forms.config, &p->regs, b, n, out);
}

/* Continue a packet begun in the previous run. */
static size_t resume(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    const size_t had = p->length;
    size_t more = run->n - i;

    if (more > sizeof p->bytes - had)
        more = sizeof p->bytes - had;
    memcpy(p->bytes + had, run->p + i, more);
    const size_t length = parse(p, p->bytes, had + more);
    if (length == 0) {
        p->length = (uint8_t)(had + more);
        return i + more;
    }
    p->columns.other[p->columns.n_others].offset = p->start;
    keep(p);
    p->length = 0;
    return i + length - had;
}

size_t tl_etm4_parse_one(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    if (run->p[i] == 0)
        return 0;
    const size_t length = parse(p, run->p + i, run->n - i);
    if (length > 0) {
        p->columns.other[p->columns.n_others].offset = tl_run_offset(run, i);
        keep(p);
    }
    return length;
}

/* Payload of an address packet, as far as bytes are available. */
static uint64_t payload_of(const uint8_t *b, size_t n)
{
    uint8_t bytes[8] = {0};
    memcpy(bytes, b + 1, n > 8 ? 8 : n - 1);
    return tl_le64(bytes);
}

size_t tl_etm4_plain(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i, size_t end)
{
    struct tl_etm4_columns *const c = &p->columns;

    while (i < end && p->failed >= 0) {
        const uint8_t *const b = run->p + i;
        const size_t length = tl_etm4_plain_length(&p->forms, b, run->n - i);
        if (length == 0)
            break;
        if (c->n >= TL_TAPE_PACKETS)
            tl_etm4_columns_flush(p);
        c->header[c->n] = b[0];
        c->at[c->n++] = (uint16_t)i;
        if (tl_etm4_is_address(b[0])) {
            struct tl_etm4_history history = tl_etm4_history_of(&p->regs);
            c->address[c->n_addresses++] =
                tl_etm4_resolve(&history, b[0], payload_of(b, run->n - i), p->regs.sf);
            c->n_found = c->n_addresses;
            tl_etm4_history_keep(&history, &p->regs);
        }
        if (tl_etm4_context_at(b[0]) != 0)
            p->regs.sf = b[tl_etm4_context_at(b[0])] >> 4 & 1;
        i += length;
    }
    return i;
}

static size_t packets(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    const uint8_t *const b = run->p;
    const size_t n = run->n;

    if (p->kernel != NULL)
        i = p->kernel->run(p, run, i);
    while (p->failed >= 0) {
        i = tl_etm4_plain(p, run, i, n);
        if (i == n)
            return n;
        const size_t length = tl_etm4_parse_one(p, run, i);
        if (length > 0) {
            i += length;
            continue;
        }
        if (b[i] == 0)
            return i;
        p->start = tl_run_offset(run, i);
        p->length = (uint8_t)(n - i);
        memcpy(p->bytes, b + i, n - i);
        return n;
    }
    return i;
}

static void take(struct tl_etm4_packetizer *p, const struct tl_run *run)
{
    size_t i = 0;

    p->run = *run;
    while (i < run->n && p->failed >= 0) {
        if (!p->in_sync)
            i = hunt(p, run, i);
        else if (p->length > 0)
            i = resume(p, run, i);
        else if (p->zeros > 0 || run->p[i] == 0)
            i = extension(p, run, i);
        else
            i = packets(p, run, i);
    }
}

int tl_etm4_packetizer_push(struct tl_etm4_packetizer *p, const struct tl_run *run)
{
    for (size_t i = 0; i < run->n && p->failed >= 0; i += RUN_MAX) {
        struct tl_run part = tl_run_from(run, i);
        if (part.n > RUN_MAX)
            part.n = RUN_MAX;
        take(p, &part);
        keep_tail(p, &part);
        tl_etm4_columns_flush(p);
    }
    return p->failed < 0 ? p->failed : 0;
}

size_t tl_etm4_packetizer_begun(const struct tl_etm4_packetizer *p, uint64_t *offset)
{
    *offset = p->start;
    return p->in_sync ? p->length : 0;
}

int tl_etm4_packetizer_finish(struct tl_etm4_packetizer *p)
{
    if (!p->in_sync && p->skipped + p->zeros > 0)
        emit(p, TL_ETM4_NOT_SYNC, p->start, p->skipped + p->zeros, 0);
    else if (p->in_sync && (p->length > 0 || p->zeros > 0))
        emit(p, TL_ETM4_INCOMPLETE, p->start, 0, p->length > 0 ? p->bytes[0] : 0);
    p->skipped = 0;
    p->zeros = 0;
    p->length = 0;
    p->in_sync = false;
    tl_etm4_columns_flush(p);
    return p->failed < 0 ? p->failed : 0;
}
