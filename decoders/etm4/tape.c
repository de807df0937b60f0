/* SPDX-License-Identifier: MIT */
#include "etm4/tape.h"

#include "etm4/headers.h"
#include "etm4/parse.h"

#include <string.h>

/* By enum tl_etm4_fill. */
static const uint8_t takes_address[TL_FILLS] = {[TL_FILL_ADDRESS] = 1, [TL_FILL_SHORT] = 1};
static const uint8_t takes_threshold[TL_FILLS] = {[TL_FILL_CYCLES] = 1, [TL_FILL_CYCLES2] = 1};

/* What is read of a tape, apart from what is written: nothing of it changes by writing packets. */
struct reader {
    const struct tl_etm4_forms *forms;
    struct tl_run run;
    const uint8_t *header;
    const uint16_t *at;
    const uint64_t *address;
    const struct tl_etm4_packet *other;
    uint64_t threshold;
};

static inline struct reader reader_at(const struct tl_etm4_tape *tape,
                                      const struct tl_etm4_tape_place *place)
{
    return (struct reader){.forms = tape->forms,
                           .run = tape->run,
                           .header = tape->header,
                           .at = tape->at,
                           .address = tape->address + place->address,
                           .other = tape->other + place->other,
                           .threshold = tape->threshold};
}

static inline void reader_done(const struct reader *r, const struct tl_etm4_tape *tape,
                               struct tl_etm4_tape_place *place, size_t packet)
{
    place->packet = packet;
    place->address = (size_t)(r->address - tape->address);
    place->other = (size_t)(r->other - tape->other);
}

/* A plain packet that is more than its header and an address, but for its address. */
static __attribute__((noinline)) void parse_plain(const struct tl_etm4_forms *forms,
                                                  const uint8_t *b, size_t n, uint64_t threshold,
                                                  struct tl_etm4_packet *out)
{
    struct tl_etm4_registers scratch = {.threshold = threshold};
    (void)tl_etm4_parse(forms->class_of, &forms->config, &scratch, b, n, out);
}

/* Commits and count of a cycle count packet of format 2. */
static void fill_cycles2(const struct tl_etm4_config *config, const uint8_t *b,
                         struct tl_etm4_packet *out)
{
    const int64_t base = b[0] & 1 ? (int64_t)config->max_spec_depth - 15 : 1;
    const int64_t commits = base + (b[1] >> 4);
    out->value += b[1] & 15;
    out->value2 = commits > 0 ? (uint64_t)commits : 0;
}

/* Packet `k`, which is a plain one. */
static inline __attribute__((always_inline)) void
make_plain(struct reader *r, size_t k, uint8_t header, struct tl_etm4_packet *out)
{
    const size_t at = r->at[k];
    const uint8_t *const b = r->run.p + at;
    const unsigned fill = r->forms->fill[header];

    if (fill == TL_FILL_PARSE) {
        parse_plain(r->forms, b, r->run.n - at, r->threshold, out);
        if (tl_etm4_is_address(header))
            out->value = *r->address++ & ~1ull;
        out->offset = tl_run_offset(&r->run, at);
        return;
    }
    const unsigned is = takes_address[fill];
    const unsigned is_short = fill == TL_FILL_SHORT; /* not worth a branch */
    const uint64_t address = *r->address & -(uint64_t)is;
    const struct tl_etm4_packet *const fixed = &r->forms->fixed[header];
    *out = *fixed; /* and not read again: that would wait for the write */
    out->value =
        fixed->value + (address & ~1ull) + (r->threshold & -(uint64_t)takes_threshold[fill]);
    out->flags = fixed->flags | (uint32_t)(address & 1) * TL_ETM4_IS1;
    out->bits = (uint8_t)(fixed->bits + ((b[is_short] >> 7 & is_short) << 3));
    out->offset = tl_run_offset(&r->run, at);
    r->address += is;
    if (fill == TL_FILL_CYCLES2)
        fill_cycles2(&r->forms->config, b, out);
}

static inline __attribute__((always_inline)) void make(struct reader *r, size_t k,
                                                       struct tl_etm4_packet *out)
{
    const uint8_t header = r->header[k];
    if (header == TL_TAPE_OTHER)
        *out = *r->other++;
    else
        make_plain(r, k, header, out);
}

size_t tl_etm4_tape_read(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                         struct tl_etm4_packet *out, size_t max)
{
    size_t n = tape->n - place->packet;

    if (n > max)
        n = max;
    struct reader r = reader_at(tape, place);
    for (size_t k = 0; k < n; k++)
        make(&r, place->packet + k, &out[k]);
    reader_done(&r, tape, place, place->packet + n);
    return n;
}

size_t tl_etm4_tape_read_merged(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                                struct tl_etm4_packet *out, size_t max, bool had)
{
    struct tl_etm4_packet *const first = out;
    unsigned have = had && out[-1].type == TL_ETM4_ATOM ? out[-1].n : 64; /* atoms in out[-1] */
    const size_t n_tape = tape->n;
    size_t k = place->packet;
    struct reader r = reader_at(tape, place);

    for (; k < n_tape; k++) {
        const uint8_t header = r.header[k];
        if (header >= TL_ETM4_ATOM_FIRST) {
            const uint32_t atoms = tl_etm4_atoms[header - TL_ETM4_ATOM_FIRST];
            const unsigned n = atoms >> 24;
            if (have + n <= 64) {
                out[-1].value |= (uint64_t)(atoms & 0xffffff) << have;
                out[-1].n = (uint8_t)(have += n);
                continue;
            }
            if (out == first + max)
                break;
            *out = r.forms->fixed[header];
            out->offset = tl_run_offset(&r.run, r.at[k]);
            have = n;
        } else {
            if (out == first + max)
                break;
            make(&r, k, out);
            have = 64;
        }
        out++;
    }
    reader_done(&r, tape, place, k);
    return (size_t)(out - first);
}
