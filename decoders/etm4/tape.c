/* SPDX-License-Identifier: MIT */
/*
 * Builds packets from a tape's columns. Frequent types are built without a branch on the type,
 * which is unpredictable in a trace; the rest are parsed from their bytes again.
 */
#include "etm4/tape.h"

#include "base/bytes.h"
#include "etm4/parse.h"
#include "etm4/unrolled_parts.h"

#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Value of a packet: template's value + `plus` + (next address & `mask`). */
struct value {
    uint64_t mask, plus;
};

/* Read position in a tape, with the values of its packets by fill. */
struct reader {
    const struct tl_etm4_tape *tape;
    const uint8_t *header;
    const uint16_t *at;
    const uint64_t *address;
    const struct tl_etm4_packet *other;
    struct value value[TL_FILLS]; /* from TL_FILL_FIXED on */
};

static ALWAYS_INLINE void reader_at(struct reader *r, const struct tl_etm4_tape *tape,
                                    const struct tl_etm4_tape_place *place)
{
    const struct value none = {0, 0}, address = {~1ull, 0};

    r->tape = tape;
    r->header = tape->header + place->packet;
    r->at = tape->at + place->packet;
    r->address = tape->address + place->address;
    r->other = tape->other + place->other;
    r->value[TL_FILL_FIXED] = none;
    r->value[TL_FILL_ADDRESS] = r->value[TL_FILL_SHORT] = address;
    r->value[TL_FILL_CYCLES] = (struct value){0, tape->threshold};
}

/* Commits and count of a format 2 cycle count packet. */
static void fill_cycles2(const struct tl_etm4_tape *tape, const uint8_t *b,
                         struct tl_etm4_packet *out)
{
    const int64_t base = b[0] & 1 ? (int64_t)tape->forms->config.max_spec_depth - 15 : 1;
    const int64_t commits = base + (b[1] >> 4);

    out->value = tape->forms->fixed[b[0]].value + tape->threshold + (b[1] & 15);
    out->value2 = commits > 0 ? (uint64_t)commits : 0;
}

/* Parse the plain packet at byte `at` from its bytes; its address is not filled in. */
static void parse(const struct tl_etm4_tape *tape, size_t at, struct tl_etm4_packet *out)
{
    const struct tl_etm4_forms *const forms = tape->forms;
    const uint8_t *const b = tape->run.p + at;

    if (forms->fill[b[0]] == TL_FILL_CYCLES2) {
        *out = forms->fixed[b[0]];
        fill_cycles2(tape, b, out);
    } else {
        struct tl_etm4_registers scratch = {.threshold = tape->threshold};
        (void)tl_etm4_parse(forms->class_of, &forms->config, &scratch, b, tape->run.n - at, out);
    }
    out->offset = tl_run_offset(&tape->run, at);
}

/* The first 8 bytes of the structure. */
static ALWAYS_INLINE uint64_t first_of(struct tl_etm4_packet packet)
{
    uint64_t first;
    memcpy(&first, &packet, sizeof first);
    return first;
}

/* Build the next packet, if it is one of `others` or must be parsed. */
static ALWAYS_INLINE void make_rare(struct reader *r, uint8_t header, size_t k,
                                    struct tl_etm4_packet *out)
{
    if (header == TL_TAPE_OTHER) {
        *out = *r->other++;
        return;
    }
    parse(r->tape, r->at[k], out);
    if (tl_etm4_is_address(header))
        out->value = *r->address++ & ~1ull;
}

/* A packet as four words to be written; avoids reading the output. */
struct words {
    uint64_t first, offset, value, value2;
};

/* Build the next packet, if frequent: branch-free, since the type is unpredictable. */
static ALWAYS_INLINE struct words make(struct reader *r, uint8_t header, unsigned fill, size_t k,
                                       bool linear)
{
    const uint64_t is1 = first_of((struct tl_etm4_packet){.flags = TL_ETM4_IS1});
    const uint64_t more_bits = first_of((struct tl_etm4_packet){.bits = 8});
    const struct tl_etm4_packet *const fixed = &r->tape->forms->fixed[header];
    const size_t is_short = fill == TL_FILL_SHORT, at = r->at[k];
    const struct value *const value = &r->value[fill];
    const uint64_t address = *r->address;
    struct words w = {
        .offset = linear ? r->tape->run.base + at : tl_run_offset(&r->tape->run, at),
        .value = fixed->value + value->plus + (address & value->mask),
        .value2 = fixed->value2,
    };

    memcpy(&w.first, fixed, sizeof w.first);
    w.first |= is1 & value->mask & -(address & 1);
    w.first += more_bits & -(r->tape->run.p[at + is_short] >> 7 & is_short);
    r->address += value->mask >> 63;
    return w;
}

static ALWAYS_INLINE void put(struct tl_etm4_packet *out, struct words w)
{
    memcpy(out, &w.first, sizeof w.first);
    out->offset = w.offset;
    out->value = w.value;
    out->value2 = w.value2;
}

static ALWAYS_INLINE size_t read_all(struct reader *r, size_t n, struct tl_etm4_packet *out,
                                     bool linear)
{
    for (size_t k = 0; k < n; k++) {
        const uint8_t header = r->header[k];
        const unsigned fill = r->tape->forms->fill[header];
        if (__builtin_expect(fill < TL_FILL_FIXED, 0))
            make_rare(r, header, k, &out[k]);
        else
            put(&out[k], make(r, header, fill, k, linear));
    }
    return n;
}

static void reader_done(const struct reader *r, size_t packets, struct tl_etm4_tape_place *place)
{
    place->packet += packets;
    place->address = (size_t)(r->address - r->tape->address);
    place->other = (size_t)(r->other - r->tape->other);
}

size_t tl_etm4_tape_read(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                         struct tl_etm4_packet *out, size_t max)
{
    const size_t left = tape->n - place->packet;
    const size_t n = left < max ? left : max;
    struct reader r;

    reader_at(&r, tape, place);
    if (!tape->run.place)
        read_all(&r, n, out, true);
    else
        read_all(&r, n, out, false);
    reader_done(&r, n, place);
    return n;
}

/* Fill in a context, starting at its information byte. */
static void fill_context(const struct tl_etm4_config *config, const uint8_t *b,
                         struct tl_etm4_packet *out)
{
    const uint8_t info = *b++;

    out->flags |= tl_etm4_context_flags(config, info);
    for (unsigned k = 0; info & 0x40 && k < config->vmid_bytes; k++)
        out->vmid |= (uint32_t)*b++ << 8 * k;
    for (unsigned k = 0; info & 0x80 && k < config->context_bytes; k++)
        out->context_id |= (uint32_t)*b++ << 8 * k;
}

void tl_etm4_tape_next(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                       struct tl_etm4_packet *out)
{
    const size_t k = place->packet++;
    const uint8_t header = tape->header[k];

    if (header == TL_TAPE_OTHER) {
        *out = tape->other[place->other++];
        return;
    }
    const unsigned fill = tape->forms->fill[header];
    const unsigned context = tl_etm4_context_at(header);
    if (context == 0 && (fill < TL_FILL_FIXED || fill == TL_FILL_SHORT)) {
        parse(tape, tape->at[k], out);
    } else {
        *out = tape->forms->fixed[header];
        out->offset = tl_run_offset(&tape->run, tape->at[k]);
        out->value += fill == TL_FILL_CYCLES ? tape->threshold : 0;
        if (context > 0)
            fill_context(&tape->forms->config, tape->run.p + tape->at[k] + context, out);
    }
    if (tl_etm4_is_address(header)) {
        const uint64_t address = tape->address[place->address++];
        out->value = address & ~1ull;
        out->flags |= address & 1 ? TL_ETM4_IS1 : 0;
    }
}

/* Bit 7 of each of eight headers that is not an atom's, i.e. is below 0xc0. */
static inline uint64_t no_atoms(uint64_t headers)
{
    return ~(headers & headers << 1) & 0x8080808080808080;
}

void tl_etm4_tape_mark(const struct tl_etm4_tape *tape, struct tl_etm4_tape_marks *marks)
{
    const size_t words = tape->n / 64;

    for (size_t i = 0; i * 64 < tape->n; i++) {
        uint64_t word = 0;
        for (unsigned k = 0; k < 64; k += 8) /* the multiplication gathers the bits */
            word |=
                (no_atoms(tl_le64(tape->header + i * 64 + k)) >> 7) * 0x0102040810204080 >> 56 << k;
        marks->words[i] = word;
    }
    if (tape->n % 64 == 0)
        marks->words[words] = 0;
    marks->words[words] |= 1ull << tape->n % 64;
}
