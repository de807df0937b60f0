/* SPDX-License-Identifier: MIT */
#include "etm4/packetizer.h"

#include "etm4/headers.h"
#include "etm4/parse.h"
#include "etm4/unrolled.h"
#include "etm4/unrolled_parts.h"

#include <string.h>

#define ASYNC_ZEROS  11
#define ASYNC_LAST   0x80
#define BAD_SEQUENCE 2
#define RING         15 /* mask of zero_at */

void tl_etm4_packetizer_init(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                             bool merge_atoms, tl_etm4_packet_sink *sink, void *context)
{
    memset(p, 0, sizeof *p);
    p->config = *config;
    p->sink = sink;
    p->context = context;
    p->merge_atoms = merge_atoms;
    memset(p->tail, 0xff, sizeof p->tail);
    p->regs.sf = 1; /* upper address bits are kept until a context says AArch32 */
    tl_etm4_classify(p->class_of, config);
    tl_etm4_packetizer_use(p, tl_etm4_kernel_at(tl_cpu_level()));
}

static void deliver(struct tl_etm4_packetizer *p, size_t n)
{
    if (n > 0 && p->failed >= 0)
        p->failed = p->sink(p->context, p->batch, n);
}

/* Atoms that may be joined to others yet stay: batches must not show in what is delivered. */
void tl_etm4_batch_flush(struct tl_etm4_packetizer *p)
{
    const struct tl_etm4_packet *last = p->n > 0 ? &p->batch[p->n - 1] : NULL;
    const bool stays = p->merge_atoms && last != NULL && last->type == TL_ETM4_ATOM;

    deliver(p, p->n - stays);
    if (stays)
        p->batch[0] = *last;
    p->n = stays;
}

/* Where the next packet goes. */
static struct tl_etm4_packet *slot(struct tl_etm4_packetizer *p)
{
    if (p->n == TL_ETM4_BATCH)
        tl_etm4_batch_flush(p);
    return &p->batch[p->n];
}

/* Keep the packet in slot(), joined to atoms before it where that is wanted. */
static void keep(struct tl_etm4_packetizer *p)
{
    const struct tl_etm4_packet *packet = &p->batch[p->n];
    if (p->merge_atoms && packet->type == TL_ETM4_ATOM && p->n > 0) {
        struct tl_etm4_packet *last = packet[-1].type == TL_ETM4_ATOM ? &p->batch[p->n - 1] : NULL;
        if (last != NULL && last->n + packet->n <= 64) {
            last->value |= packet->value << last->n;
            last->n = (uint8_t)(last->n + packet->n);
            return;
        }
    }
    p->n++;
}

static void emit(struct tl_etm4_packetizer *p, enum tl_etm4_type type, uint64_t offset,
                 uint64_t value, uint8_t header)
{
    *slot(p) = (struct tl_etm4_packet){
        .type = (uint8_t)type, .header = header, .offset = offset, .value = value};
    p->n++;
}

/* A-Sync has ended behind `zeros` zeros, of which those before the last 11 are not part of it. */
static uint64_t async_offset(const struct tl_etm4_packetizer *p)
{
    return p->zero_at[(p->zeros - ASYNC_ZEROS) & RING];
}

static void count_zero(struct tl_etm4_packetizer *p, uint64_t offset)
{
    p->zero_at[p->zeros++ & RING] = offset;
}

/* Not in sync: skip up to and including A-Sync. Returns the first byte not taken. */
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
    }
    return i;
}

/* Were the `n` bytes in front of run->p[i] zeros, too? Those of earlier pushes are in the tail. */
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

/* In sync behind a 0x00 header: A-Sync, discard, overflow, or nothing good. */
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
        /* A damaged packet may have swallowed the first zeros. */
        if (byte == ASYNC_LAST && p->zeros < ASYNC_ZEROS && zeros_before(p, run, i, ASYNC_ZEROS))
            emit(p, TL_ETM4_ASYNC, p->start, 0, 0);
    }
    p->zeros = 0;
    return i + 1;
}

/* Go on with the packet that the last run ended in. */
static size_t resume(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    const size_t had = p->length;
    size_t more = run->n - i;

    if (more > sizeof p->bytes - had)
        more = sizeof p->bytes - had;
    memcpy(p->bytes + had, run->p + i, more);
    const size_t length =
        tl_etm4_parse(p->class_of, &p->config, &p->regs, p->bytes, had + more, slot(p));
    if (length == 0) {
        p->length = (uint8_t)(had + more);
        return i + more;
    }
    p->batch[p->n].offset = p->start;
    keep(p);
    p->length = 0;
    return i + length - had;
}

size_t tl_etm4_parse_one(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    if (run->p[i] == 0)
        return 0;
    struct tl_etm4_packet *out = slot(p);
    const size_t length =
        tl_etm4_parse(p->class_of, &p->config, &p->regs, run->p + i, run->n - i, out);
    if (length > 0) {
        out->offset = tl_run_offset(run, i);
        keep(p);
    }
    return length;
}

/* The resolved address of the packet at `b`, which is one that quick() takes. */
static uint64_t quick_address(const struct tl_etm4_registers *regs, const uint8_t *b,
                              unsigned action)
{
    const uint64_t last = regs->address[0];
    switch (action) {
    case TL_ACTION_SHORT1:
        return (last & ~0x1ffull) | (uint64_t)b[1] << 2;
    case TL_ACTION_SHORT2:
        return (last & ~0x1ffffull) | (b[1] & 0x7full) << 2 | (uint64_t)b[2] << 9;
    case TL_ACTION_LONG32:
        return (regs->sf ? last & ~0xffffffffull : 0) | (b[1] & 0x7full) << 2 |
               (b[2] & 0x7full) << 9 | (uint64_t)b[3] << 16 | (uint64_t)b[4] << 24;
    default:
        return regs->address[action - TL_ACTION_MATCH];
    }
}

/*
 * The packets that most of a stream is made of, without detours: atoms, exact matches, short
 * and 32-bit addresses of A64 and A32. Returns the first byte that is not of these.
 */
static size_t quick(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)
{
    const bool t32 = p->regs.is[0] | p->regs.is[1] | p->regs.is[2];

    while (i < run->n && p->failed >= 0) {
        const uint8_t *const b = run->p + i;
        const size_t left = run->n - i;
        unsigned action, length = 1;
        if (b[0] >= TL_ETM4_ATOM_FIRST) {
            action = b[0] - TL_ETM4_ATOM_FIRST;
        } else if (t32) {
            break;
        } else if (b[0] >= 0x90 && b[0] <= 0x92) {
            action = TL_ACTION_MATCH + (b[0] & 3);
        } else if (b[0] == 0x95 && left >= 3) {
            action = b[1] & 0x80 ? TL_ACTION_SHORT2 : TL_ACTION_SHORT1;
            length = b[1] & 0x80 ? 3 : 2;
        } else if (b[0] == 0x9a && left >= 5) {
            action = TL_ACTION_LONG32;
            length = 5;
        } else {
            break;
        }
        struct tl_etm4_packet *const out = slot(p);
        memcpy(out, p->actions[action], sizeof *out);
        out->offset = tl_run_offset(run, i);
        if (action >= TL_ACTION_ADDRESS) {
            out->value = quick_address(&p->regs, b, action);
            p->regs.address[2] = p->regs.address[1];
            p->regs.address[1] = p->regs.address[0];
            p->regs.address[0] = out->value;
        }
        keep(p);
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
        i = quick(p, run, i);
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

int tl_etm4_packetizer_push(struct tl_etm4_packetizer *p, const struct tl_run *run)
{
    size_t i = 0;
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
    keep_tail(p, run);
    deliver(p, p->n);
    p->n = 0;
    return p->failed < 0 ? p->failed : 0;
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
    deliver(p, p->n);
    p->n = 0;
    return p->failed < 0 ? p->failed : 0;
}
