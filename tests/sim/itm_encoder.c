/* SPDX-License-Identifier: MIT */
/*
 * Each packet appends its bytes and its line of flow text, the latter to `held` until a local
 * timestamp comes: the truth is built from what happens, not from the bytes.
 */
#include "sim/itm_encoder.h"

#include <inttypes.h>
#include <stdio.h>

void tl_sim_itm_init(struct tl_sim_itm *itm, const struct tl_sim_itm_options *options)
{
    itm->options = *options;
    itm->rng = (struct tl_sim_rng){options->seed};
}

void tl_sim_itm_fini(struct tl_sim_itm *itm)
{
    tl_buf_fini(&itm->trace);
    tl_buf_fini(&itm->text);
    tl_buf_fini(&itm->held);
}

static int release(struct tl_sim_itm *itm)
{
    const int rc = tl_buf_add(&itm->text, itm->held.p, itm->held.n);
    tl_buf_reset(&itm->held);
    itm->together = 0;
    return rc;
}

static int put(struct tl_sim_itm *itm, const uint8_t *bytes, size_t n)
{
    itm->begun = true;
    return tl_buf_add(&itm->trace, bytes, n);
}

/* A header and `value` in groups of 7 bits: `n` of them, or as many as necessary (0). */
static int put_series(struct tl_sim_itm *itm, uint8_t header, uint64_t value, unsigned n)
{
    uint8_t bytes[8] = {header};
    unsigned i = 1;
    do {
        bytes[i] = (uint8_t)(value & 0x7f);
        value >>= 7;
        if (n ? i < n : value != 0)
            bytes[i] |= 0x80;
    } while (bytes[i++] & 0x80);
    return put(itm, bytes, i);
}

static int put_packet(struct tl_sim_itm *itm, unsigned id, bool hardware, unsigned size,
                      uint32_t value)
{
    const unsigned ss = size == 4 ? 3 : size;
    uint8_t bytes[5] = {(uint8_t)(id << 3 | (unsigned)hardware << 2 | ss)};
    for (unsigned i = 0; i < size; i++)
        bytes[1 + i] = (uint8_t)(value >> 8 * i);
    return put(itm, bytes, 1 + size);
}

static unsigned any_size(struct tl_sim_itm *itm)
{
    return 1u << tl_sim_below(&itm->rng, 3);
}

static uint32_t any_value(struct tl_sim_itm *itm, unsigned size)
{
    return (uint32_t)(tl_sim_rand(&itm->rng) & (size == 4 ? UINT32_MAX : (1u << 8 * size) - 1));
}

static int put_software(struct tl_sim_itm *itm)
{
    const unsigned id = tl_sim_below(&itm->rng, 32), size = any_size(itm);
    const uint32_t value = any_value(itm, size);
    const int rc = tl_buf_printf(&itm->held, "S itm %x %0*" PRIx32 "\n", itm->page << 5 | id,
                                 (int)size * 2, value);
    return rc < 0 ? rc : put_packet(itm, id, false, size, value);
}

static int put_exception(struct tl_sim_itm *itm)
{
    static const char *const actions[] = {"enter", "exit", "return"};
    const unsigned number = 16 + tl_sim_below(&itm->rng, 496), action = tl_sim_below(&itm->rng, 3);
    const int rc = tl_buf_printf(&itm->held, "H exception %s %u irq%u\n", actions[action], number,
                                 number - 16);
    return rc < 0 ? rc : put_packet(itm, 1, true, 2, number | (action + 1) << 12);
}

static int put_sample(struct tl_sim_itm *itm)
{
    const uint32_t pc = any_value(itm, 4);
    const unsigned kind = tl_sim_below(&itm->rng, 8);
    const bool asleep = kind == 0, prohibited = kind == 1;
    const int rc = asleep       ? tl_buf_printf(&itm->held, "H sleep\n")
                   : prohibited ? tl_buf_printf(&itm->held, "H prohibited\n")
                                : tl_buf_printf(&itm->held, "H pc %016" PRIx32 "\n", pc);
    return rc < 0 ? rc
                  : put_packet(itm, 2, true, asleep || prohibited ? 1 : 4,
                               asleep       ? 0
                               : prohibited ? 0xff
                                            : pc);
}

static int put_counter(struct tl_sim_itm *itm)
{
    static const char *const names[] = {"cpi", "exc", "sleep", "lsu", "fold", "cyc"};
    const unsigned which = tl_sim_below(&itm->rng, 6);
    const int rc = tl_buf_printf(&itm->held, "H counter %s\n", names[which]);
    return rc < 0 ? rc : put_packet(itm, 0, true, 1, 1u << which);
}

/* Counters of the PMU that overflowed, and comparators that matched (Armv8-M). */
static int put_pmu(struct tl_sim_itm *itm)
{
    const uint32_t which = 1 + tl_sim_below(&itm->rng, 255);
    const int rc = tl_buf_printf(&itm->held, "H pmu %02" PRIx32 "\n", which);
    return rc < 0 ? rc : put_packet(itm, 3, true, 1, which);
}

static int put_match(struct tl_sim_itm *itm)
{
    const unsigned c = tl_sim_below(&itm->rng, 4);
    const int rc = tl_buf_printf(&itm->held, "H match %u dwt%u\n", c, c);
    return rc < 0 ? rc : put_packet(itm, 8 + 2 * c, true, 1, 1);
}

/*
 * An access that a comparator reports: the instruction's address, the data's, or both in front of
 * the value; the comparator's range is not told, so that only the transmitted bits of an address
 * are known: 16, or with Armv8-M 8 or all.
 */
static int put_access(struct tl_sim_itm *itm)
{
    const unsigned c = tl_sim_below(&itm->rng, 4), size = any_size(itm);
    const bool has_pc = tl_sim_below(&itm->rng, 2), has_address = tl_sim_below(&itm->rng, 2),
               writes = tl_sim_below(&itm->rng, 2);
    const unsigned known = any_size(itm);
    const uint32_t pc = any_value(itm, 4), address = any_value(itm, known),
                   value = any_value(itm, size);
    char pc_text[24] = "-", address_text[16] = "-";
    int rc = TL_OK;
    if (has_pc)
        snprintf(pc_text, sizeof pc_text, "%016" PRIx32, pc);
    if (has_address)
        snprintf(address_text, sizeof address_text, "%.*s%0*" PRIx32, (int)(8 - 2 * known),
                 "xxxxxx", (int)(2 * known), address);
    if (has_pc)
        rc = put_packet(itm, 8 + 2 * c, true, 4, pc);
    if (rc >= 0 && has_address)
        rc = put_packet(itm, 9 + 2 * c, true, known, address);
    if (rc >= 0)
        rc = put_packet(itm, 16 + 2 * c + writes, true, size, value);
    return rc < 0 ? rc
                  : tl_buf_printf(&itm->held, "H data %s %u %s %0*" PRIx32 " %s dwt%u\n",
                                  writes ? "write" : "read", c, address_text, (int)size * 2, value,
                                  pc_text, c);
}

static int put_source(struct tl_sim_itm *itm)
{
    static int (*const hardware[])(struct tl_sim_itm *) = {
        put_exception, put_sample, put_counter, put_access, put_access, put_pmu, put_match};
    itm->together++;
    return tl_sim_below(&itm->rng, 3) ? put_software(itm)
                                      : hardware[tl_sim_below(&itm->rng, 7)](itm);
}

static int put_local_time(struct tl_sim_itm *itm)
{
    const uint32_t bits = tl_sim_below(&itm->rng, 27);
    const uint32_t delta = 1 + tl_sim_below(&itm->rng, UINT32_C(1) << bits);
    const uint8_t brief = (uint8_t)(delta << 4),
                  header = (uint8_t)(0xc0 | tl_sim_below(&itm->rng, 4) << 4);
    itm->time += (uint64_t)delta * itm->options.prescale;
    itm->times++;
    int rc = itm->global ? tl_buf_printf(&itm->text, "T %" PRIu64 "\n", itm->base + itm->time)
                         : tl_buf_printf(&itm->text, "A time %" PRIu64 "\n", itm->time);
    if (rc >= 0)
        rc = release(itm);
    if (rc < 0)
        return rc;
    return delta <= 6 && tl_sim_below(&itm->rng, 2) ? put(itm, &brief, 1)
                                                    : put_series(itm, header, delta, 0);
}

/* What text a global timestamp makes: in front of what it is for. */
static int tell_global_time(struct tl_sim_itm *itm, uint64_t time, bool first)
{
    int rc = TL_OK;
    if (first && itm->time > 0)
        rc = tl_buf_printf(&itm->text, "A time-restart %" PRIu64 " %" PRIu64 "\n", itm->time, time);
    if (rc >= 0)
        rc = tl_buf_printf(&itm->text, "T %" PRIu64 "\n", time);
    return rc < 0 ? rc : release(itm);
}

/*
 * The lower bits, of which the upper ones have not changed; or all. With local timestamps the
 * global clock is theirs, begun earlier, and stands where the last one was.
 */
static int put_global_time(struct tl_sim_itm *itm)
{
    const bool first = itm->global == 0;
    if (first)
        itm->base = 1 + (itm->options.wide ? tl_sim_rand(&itm->rng) >> 2
                                           : tl_sim_below(&itm->rng, UINT32_C(1) << 30));
    const uint64_t next = itm->options.timed ? itm->base + itm->time
                          : first            ? itm->base
                                             : itm->global + 1 + tl_sim_below(&itm->rng, 100000);
    const uint64_t low = next & 0x3ffffff, other = itm->global ^ next;
    const bool whole = first || other >> 26 != 0;
    const size_t n = whole || other >> 21 ? 5 : other >> 14 ? 4 : other >> 7 ? 3 : 2;
    uint8_t bytes[5] = {0x94, (uint8_t)(low | 0x80), (uint8_t)(low >> 7 | 0x80),
                        (uint8_t)(low >> 14 | 0x80), (uint8_t)(low >> 21 & 0x1f)};
    bytes[4] |= whole ? 0x40 : 0;
    bytes[n - 1] &= 0x7f;
    int rc = put(itm, bytes, n);
    if (rc >= 0 && first)
        rc = tl_buf_printf(&itm->held, "A global-time-low %" PRIu64 "\n", low);
    if (rc >= 0 && whole)
        rc = put_series(itm, 0xb4, next >> 26, itm->options.wide ? 6 : 4);
    itm->global = next;
    return rc < 0 ? rc : tell_global_time(itm, next, first);
}

static int put_overflow(struct tl_sim_itm *itm)
{
    const uint8_t header = 0x70;
    int rc = release(itm);
    if (rc >= 0)
        rc = tl_buf_printf(&itm->text, "G overflow\n");
    itm->overflows++;
    itm->page = 0;
    return rc < 0 ? rc : put(itm, &header, 1);
}

static int put_page(struct tl_sim_itm *itm)
{
    itm->page = tl_sim_below(&itm->rng, 8);
    const uint8_t header = (uint8_t)(itm->page << 4 | 8);
    return put(itm, &header, 1);
}

static int put_bad_bytes(struct tl_sim_itm *itm)
{
    static const uint8_t bad[] = {0x04, 0x14, 0x24, 0x44, 0x80, 0x84, 0xa0, 0xe4, 0xf4};
    const bool begun = itm->begun;
    int rc = release(itm);
    if (rc >= 0)
        rc = tl_buf_printf(&itm->text, "G %s\n", begun ? "bad-packet" : "sync");
    for (unsigned n = 1 + tl_sim_below(&itm->rng, 3); n > 0 && rc >= 0; n--)
        rc = tl_buf_add(&itm->trace, &bad[tl_sim_below(&itm->rng, sizeof bad)], 1);
    itm->gaps++;
    itm->page = 0;
    return rc;
}

int tl_sim_itm_sync(struct tl_sim_itm *itm)
{
    static const uint8_t sync[] = {0, 0, 0, 0, 0, 0x80};
    return put(itm, sync, sizeof sync);
}

static int put_anything(struct tl_sim_itm *itm)
{
    const struct tl_sim_itm_options *const o = &itm->options;
    const unsigned choice = tl_sim_below(&itm->rng, 100);
    if (o->timed && itm->together > 0 && (choice < 60 || itm->together > 20))
        return put_local_time(itm);
    if (choice < 2 && o->syncs)
        return tl_sim_itm_sync(itm);
    if (choice < 4 && o->global && (!o->timed || itm->together == 0))
        return put_global_time(itm);
    if (!o->timed && o->global && itm->together > 50) /* before they wait no longer */
        return put_global_time(itm);
    return choice < 6 ? put_page(itm) : put_source(itm);
}

int tl_sim_itm_run(struct tl_sim_itm *itm, unsigned n)
{
    const struct tl_sim_itm_options *const o = &itm->options;
    int rc = TL_OK;
    for (; n > 0 && rc >= 0; n--) {
        if (o->bad_bytes && tl_sim_below(&itm->rng, o->bad_bytes) == 0)
            rc = put_bad_bytes(itm);
        else if (o->overflows && tl_sim_below(&itm->rng, o->overflows) == 0)
            rc = put_overflow(itm);
        /* So that a gap is followed by a packet. */
        if (rc >= 0)
            rc = put_anything(itm);
    }
    return rc;
}

int tl_sim_itm_end(struct tl_sim_itm *itm)
{
    const int rc = release(itm);
    return rc < 0 ? rc : tl_buf_add(&itm->text, "", 1);
}
