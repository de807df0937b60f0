/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets from bytes: for any bytes, parsing terminates, each packet lies inside the input
 * and can be printed, and tapes have the packets that the parser finds, at the same offsets, at
 * every vector level; chunks give the same result as all bytes at once. The first byte chooses
 * errata and chunk size.
 */
#include "pt/packet_text.h"
#include "pt/packetizer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

struct digest {
    uint64_t value, outcomes;
    size_t end;
    int rc;
};

static void add(struct digest *d, uint64_t value)
{
    d->value = (d->value ^ value) * 0x100000001b3u;
}

static void add_outcomes(struct digest *d, uint64_t with_stop_bit)
{
    for (unsigned n = 63 - (unsigned)__builtin_clzll(with_stop_bit); n-- > 0;)
        d->outcomes = d->outcomes * 3 + (with_stop_bit >> n & 1) + 1;
}

/* Parse up to the first byte that cannot be parsed. */
static struct digest by_parser(const struct tl_pt_config *config, struct tl_bytes in)
{
    struct digest d = {.end = 0};
    while (true) {
        struct tl_pt_packet p = {.offset = d.end};
        char line[TL_PT_TEXT_MAX];
        d.rc = tl_pt_parse(config, (struct tl_bytes){in.p + d.end, in.n - d.end}, &p);
        if (d.rc < 0)
            return d;
        require(d.rc > 0 && (size_t)d.rc <= in.n - d.end && p.kind < TL_PT_KINDS);
        require(tl_pt_packet_text(line, &p, 0) < sizeof line);
        if (p.kind == TL_PT_TNT_8)
            add_outcomes(&d, p.tnt.bits | UINT64_C(1) << p.tnt.n);
        else if (p.kind != TL_PT_PAD)
            add(&d, p.kind | d.end << 8 | d.outcomes << 40);
        d.end += (size_t)d.rc;
    }
}

static struct digest by_tapes(const struct tl_pt_config *config, struct tl_bytes in,
                              enum tl_cpu level)
{
    static struct tl_pt_tape tape;
    struct digest d = {.end = 0};
    tl_pt_tape_reset(&tape);
    do {
        const size_t before = d.end;
        d.rc = tl_pt_tape_fill_at(level, &tape, config, in, &d.end);
        require(d.rc != TL_OK || d.end > before);
        for (size_t i = 0; i < tape.n; i++) {
            const unsigned kind = tape.kind[i] & ~TL_PT_TAPE_SUPPRESSED;
            add_outcomes(&d, tape.tnt[i]);
            if (kind == TL_PT_TNT_8)
                add_outcomes(&d, tape.value[i]);
            else if (kind != TL_PT_PAD)
                add(&d, kind | (uint64_t)tl_pt_tape_at(&tape, i) << 8 | d.outcomes << 40);
        }
    } while (d.rc == TL_OK);
    return d;
}

/* ---- pushed --------------------------------------------------------------------------------- */

static int on_tape(void *context, const struct tl_pt_tape *tape, const struct tl_pt_piece *piece)
{
    struct digest *const d = context;
    for (size_t i = 0; i < tape->n; i++) {
        const unsigned kind = tape->kind[i] & ~TL_PT_TAPE_SUPPRESSED;
        add_outcomes(d, tape->tnt[i]);
        if (kind == TL_PT_TNT_8)
            add_outcomes(d, tape->value[i]);
        else if (kind != TL_PT_PAD)
            add(d, kind | (piece->base + tl_pt_tape_at(tape, i)) << 8 | d->outcomes << 40);
    }
    return TL_OK;
}

static int on_error(void *context, int why, uint64_t offset)
{
    add(context, (uint64_t)-why << 56 | offset);
    return TL_OK;
}

static int on_loss(void *context, uint64_t offset, uint64_t bytes)
{
    require(bytes > 0);
    add(context, offset << 32 | bytes);
    return TL_OK;
}

static struct digest pushed(const struct tl_pt_config *config, struct tl_bytes in, size_t chunk)
{
    static struct tl_pt_packetizer p;
    struct digest d = {.rc = 0};
    const struct tl_pt_packet_sink sink = {&d, on_tape, on_error, on_loss};
    tl_pt_packetizer_init(&p, config, &sink);
    for (size_t i = 0; i < in.n; i += chunk)
        require(tl_pt_packetizer_push(
                    &p, (struct tl_bytes){in.p + i, in.n - i < chunk ? in.n - i : chunk}) == TL_OK);
    require(tl_pt_packetizer_finish(&p) == TL_OK);
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const struct tl_pt_config config = {.errata = {.skd007 = data[0] & 1, .skz84 = data[0] & 2}};
    const struct tl_bytes in = {data + 1, size - 1};
    const struct digest want = by_parser(&config, in);
    for (int level = 0; level < TL_CPU_LEVELS; level++) {
        if (!tl_cpu_has((enum tl_cpu)level))
            continue;
        const struct digest got = by_tapes(&config, in, (enum tl_cpu)level);
        require(got.value == want.value && got.outcomes == want.outcomes);
        require(got.end == want.end && got.rc == want.rc);
    }
    const struct digest whole = pushed(&config, in, in.n + 1);
    const struct digest pieces = pushed(&config, in, 1 + data[0] / 4);
    require(whole.value == pieces.value && whole.outcomes == pieces.outcomes);
    require(tl_pt_resync(in, want.end) <= in.n);
    require(tl_pt_find_psb_backward(in) <= in.n);
    return 0;
}
