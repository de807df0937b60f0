/* SPDX-License-Identifier: MIT */
#include "etm4/tape.h"

#include "etm4/headers.h"
#include "etm4/parse.h"

#include <string.h>

/* By enum tl_etm4_fill. */
static const uint8_t takes_address[TL_FILLS] = {[TL_FILL_ADDRESS] = 1, [TL_FILL_SHORT] = 1};
static const uint8_t takes_threshold[TL_FILLS] = {[TL_FILL_CYCLES] = 1, [TL_FILL_CYCLES2] = 1};

/* A plain packet that is more than its header and an address. */
static void parse_plain(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                        size_t at, struct tl_etm4_packet *out)
{
    struct tl_etm4_registers scratch = {.threshold = tape->threshold};
    const uint8_t *const b = tape->run.p + at;

    (void)tl_etm4_parse(tape->forms->class_of, &tape->forms->config, &scratch, b, tape->run.n - at,
                        out);
    if (tl_etm4_is_address(b[0]))
        out->value = tape->address[place->address++] & ~1ull;
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
static inline void make_plain(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                              size_t k, uint8_t header, struct tl_etm4_packet *out)
{
    const struct tl_etm4_forms *const forms = tape->forms;
    const size_t at = tape->at[k];
    const unsigned fill = forms->fill[header];

    if (fill == TL_FILL_PARSE) {
        parse_plain(tape, place, at, out);
    } else {
        const uint8_t *const b = tape->run.p + at;
        const unsigned is = takes_address[fill];
        const uint64_t address = tape->address[place->address] & -(uint64_t)is;
        *out = forms->fixed[header];
        out->value += (address & ~1ull) + (tape->threshold & -(uint64_t)takes_threshold[fill]);
        out->flags |= (uint32_t)(address & 1) * TL_ETM4_IS1;
        place->address += is;
        const unsigned is_short = fill == TL_FILL_SHORT; /* not worth a branch */
        out->bits = (uint8_t)(out->bits + ((b[is_short] >> 7 & is_short) << 3));
        if (fill == TL_FILL_CYCLES2)
            fill_cycles2(&forms->config, b, out);
    }
    out->offset = tl_run_offset(&tape->run, at);
}

static inline void make(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place, size_t k,
                        struct tl_etm4_packet *out)
{
    const uint8_t header = tape->header[k];
    if (header == TL_TAPE_OTHER)
        *out = tape->other[place->other++];
    else
        make_plain(tape, place, k, header, out);
}

size_t tl_etm4_tape_read(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                         struct tl_etm4_packet *out, size_t max)
{
    size_t n = tape->n - place->packet;

    if (n > max)
        n = max;
    for (size_t k = 0; k < n; k++)
        make(tape, place, place->packet + k, &out[k]);
    place->packet += n;
    return n;
}

size_t tl_etm4_tape_read_merged(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                                struct tl_etm4_packet *out, size_t max, bool had)
{
    struct tl_etm4_packet *const first = out;
    unsigned have = had && out[-1].type == TL_ETM4_ATOM ? out[-1].n : 64; /* atoms in out[-1] */
    size_t k = place->packet;

    for (; k < tape->n; k++) {
        const uint8_t header = tape->header[k];
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
            *out = tape->forms->fixed[header];
            out->offset = tl_run_offset(&tape->run, tape->at[k]);
            have = n;
        } else {
            if (out == first + max)
                break;
            make(tape, place, k, out);
            have = 64;
        }
        out++;
    }
    place->packet = k;
    return (size_t)(out - first);
}
