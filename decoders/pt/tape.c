/* SPDX-License-Identifier: MIT */
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

/* Close the entry with only its outcomes, if any; the next one starts without outcomes. */
static void close_outcomes(struct tl_pt_tape *tape, size_t at)
{
    if (tape->tnt[tape->n] != 1) {
        tape->kind[tape->n] = TL_PT_PAD;
        tape->at[tape->n] = (uint32_t)at;
        tape->value[tape->n] = 0;
        tape->n++;
    }
    tape->tnt[tape->n] = 1;
    tape->from[tape->n] = (uint32_t)at;
}

/* Add the outcomes of a TNT_8. */
static void add_outcomes(struct tl_pt_tape *tape, const struct tl_pt_packet *packet)
{
    if (tape->tnt[tape->n] >> (TL_PT_TAPE_OUTCOMES - packet->tnt.n + 1))
        close_outcomes(tape, packet->offset);
    uint64_t *const tnt = &tape->tnt[tape->n];
    *tnt = *tnt << packet->tnt.n | packet->tnt.bits;
}

int tl_pt_tape_add(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                   size_t at)
{
    struct tl_pt_packet packet = {.offset = at};
    if (tape->n >= TL_PT_TAPE_ROOM || tape->n_others == TL_PT_TAPE_OTHERS)
        return TL_LIMIT;
    const int size = tl_pt_parse(config, (struct tl_bytes){in.p + at, in.n - at}, &packet);
    if (size < 0 || packet.kind == TL_PT_PAD)
        return size;
    if (packet.kind == TL_PT_TNT_8) {
        add_outcomes(tape, &packet);
        return size;
    }
    const size_t n = tape->n;
    tape->at[n] = (uint32_t)at;
    tape->kind[n] = packet.kind;
    if (!is_address(packet.kind))
        tape->value[n] = value_of(tape, &packet);
    else
        tape->value[n] = resolve(tape, &packet);
    if (is_address(packet.kind) && packet.address.ipc == TL_PT_IP_SUPPRESSED)
        tape->kind[n] |= TL_PT_TAPE_SUPPRESSED;
    tape->n = n + 1;
    tape->tnt[n + 1] = 1;
    tape->from[n + 1] = (uint32_t)(at + (size_t)size);
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
    tape->from[0] = (uint32_t)*at;
    if (in.n > UINT32_MAX)
        in.n = UINT32_MAX;
    if (config->errata.skd007) /* a CYC may have to be merged with the next packet */
        level = TL_CPU_SCALAR;
    if (level == TL_CPU_AVX512)
        rc = tl_pt_tape_avx512(tape, config, in, at);
    else if (level == TL_CPU_AVX2)
        rc = tl_pt_tape_avx2(tape, config, in, at);
    /* If there is still space for a block, less than a block of input is left. */
    if (rc == TL_OK && tape->n + TL_PT_TAPE_BLOCK <= TL_PT_TAPE_ROOM)
        rc = take_one_by_one(tape, config, in, at);
    close_outcomes(tape, *at);
    if (rc == TL_BAD || rc == TL_UNSUPPORTED)
        tape->ip = 0;
    return rc == TL_LIMIT ? TL_OK : rc;
}

int tl_pt_tape_fill(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                    size_t *at)
{
    return tl_pt_tape_fill_at(tl_cpu_level(), tape, config, in, at);
}
