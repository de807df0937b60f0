/* SPDX-License-Identifier: MIT */
/*
 * Packets that the vector kernels leave are added one by one, with the same parser as everywhere. A
 * fill ends at the reach of 16-bit positions, and outcomes before that end become an entry of their
 * own: they must not wait for bytes that may never come.
 */
#include "pt/tape_parts.h"

void tl_pt_tape_reset(struct tl_pt_tape *tape)
{
    tape->ip = 0;
    tape->n = tape->n_others = 0;
}

static bool is_address(uint8_t kind)
{
    return kind == TL_PT_TIP || kind == TL_PT_TIP_PGE || kind == TL_PT_TIP_PGD || kind == TL_PT_FUP;
}

static uint64_t resolve(struct tl_pt_tape *tape, const struct tl_pt_packet *packet)
{
    struct tl_pt_last_ip last = {.ip = tape->ip};
    tl_pt_last_ip_update(&last, packet);
    return tape->ip = last.ip;
}

static uint64_t value_of(struct tl_pt_tape *tape, const struct tl_pt_packet *packet)
{
    switch (packet->kind) {
    case TL_PT_TNT_64:
        return UINT64_C(1) << packet->tnt.n | packet->tnt.bits;
    case TL_PT_TSC:
        return packet->tsc;
    case TL_PT_MTC:
        return packet->mtc;
    case TL_PT_CYC:
        return packet->cyc;
    case TL_PT_CBR:
        return packet->cbr;
    case TL_PT_PSB:
    case TL_PT_OVF:
        return tape->ip = 0;
    case TL_PT_PSBEND:
    case TL_PT_STOP:
        return 0;
    default:
        tape->other[tape->n_others] = *packet;
        return tape->n_others++;
    }
}

/* Enter a packet that is neither TNT_8 nor an IP as entry `k`. */
static void put_entry(struct tl_pt_tape *tape, size_t k, const struct tl_pt_packet *packet)
{
    tape->kind[k] = packet->kind;
    tape->value[k] = value_of(tape, packet);
}

/* Make outcomes that the entry after the last one already has, if any, an entry of their own; they
 * end before byte `at`. The next entry starts without outcomes. */
static void close_outcomes(struct tl_pt_tape *tape, size_t at)
{
    if (tape->tnt[tape->n] != 1) {
        tape->kind[tape->n] = TL_PT_PAD;
        tape->at[tape->n] = (uint16_t)(at - tape->begin);
        tape->value[tape->n] = 0;
        tape->n++;
    }
    tape->tnt[tape->n] = 1;
}

/* Add the outcomes of a TNT_8. */
static void add_outcomes(struct tl_pt_tape *tape, const struct tl_pt_packet *packet)
{
    if (tape->tnt[tape->n] >> (TL_PT_TAPE_OUTCOMES - packet->tnt.n + 1))
        close_outcomes(tape, packet->offset);
    uint32_t *const tnt = &tape->tnt[tape->n];
    *tnt = *tnt << packet->tnt.n | (uint32_t)packet->tnt.bits;
}

int tl_pt_tape_add(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                   size_t at)
{
    struct tl_pt_packet packet = {.offset = at};
    if (tape->n >= TL_PT_TAPE_ENTRIES || tape->n_others == TL_PT_TAPE_OTHERS)
        return TL_LIMIT;
    const int size = tl_pt_parse(config, (struct tl_bytes){in.p + at, in.n - at}, &packet);
    if (size < 0 || packet.kind == TL_PT_PAD)
        return size;
    if (packet.kind == TL_PT_TNT_8) {
        add_outcomes(tape, &packet);
        return size;
    }
    const size_t n = tape->n;
    tape->at[n] = (uint16_t)(at - tape->begin);
    if (!is_address(packet.kind)) {
        put_entry(tape, n, &packet);
    } else {
        tape->value[n] = resolve(tape, &packet);
        tape->kind[n] = packet.kind;
        if (packet.address.ipc == TL_PT_IP_SUPPRESSED)
            tape->kind[n] |= TL_PT_TAPE_SUPPRESSED;
    }
    tape->n = n + 1;
    tape->tnt[n + 1] = 1;
    return size;
}

static int take_one_by_one(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                           struct tl_bytes in, size_t *at)
{
    for (;;) {
        const int size = tl_pt_tape_add(tape, config, in, *at);
        if (size < 0)
            return size;
        *at += (size_t)size;
    }
}

int tl_pt_tape_fill_at(enum tl_cpu level, struct tl_pt_tape *tape,
                       const struct tl_pt_config *config, struct tl_bytes in, size_t *at)
{
    int rc = TL_OK;
    tape->n = tape->n_others = 0;
    tape->tnt[0] = 1;
    tape->begin = *at;
    const bool cut = in.n - *at > TL_PT_TAPE_REACH;
    if (cut)
        in.n = *at + TL_PT_TAPE_REACH;
    if (config->errata.skd007) /* a CYC may have to be merged with the next packet */
        level = TL_CPU_SCALAR;

    if (level == TL_CPU_AVX2)
        rc = tl_pt_tape_avx2(tape, config, in, at);
    /* If there is still space for a block, less than a block of input is left. */
    if (rc == TL_OK && tape->n + TL_PT_TAPE_BLOCK <= TL_PT_TAPE_ENTRIES)
        rc = take_one_by_one(tape, config, in, at);
    close_outcomes(tape, *at);
    if (rc == TL_BAD || rc == TL_UNSUPPORTED)
        tape->ip = 0;
    return rc == TL_LIMIT || (rc == TL_AGAIN && cut) ? TL_OK : rc;
}

size_t tl_pt_tape_from(const struct tl_pt_tape *tape, const struct tl_pt_config *config,
                       struct tl_bytes in, size_t k)
{
    struct tl_pt_packet packet;
    if (k == 0)
        return tape->begin;
    const size_t at = tl_pt_tape_at(tape, k - 1);
    if (tape->kind[k - 1] == TL_PT_PAD) /* only outcomes */
        return at;
    const int size = tl_pt_parse(config, (struct tl_bytes){in.p + at, in.n - at}, &packet);
    return at + (size_t)(size > 0 ? size : 0);
}

int tl_pt_tape_fill(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                    size_t *at)
{
    return tl_pt_tape_fill_at(tl_cpu_level(), tape, config, in, at);
}
