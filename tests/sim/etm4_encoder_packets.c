/* SPDX-License-Identifier: MIT */
#include "sim/etm4_encoder_packets.h"

#include <stdlib.h>
#include <string.h>

#define RANDOM(s, n) tl_sim_below(&(s)->rng, n)

void tl_sim_packets_config(struct tl_etm4_config *config, struct tl_sim_rng *rng)
{
    static const uint8_t vmid[] = {0, 1, 2, 4};

    memset(config, 0, sizeof *config);
    config->ete = tl_sim_percent(rng, 50);
    config->version =
        (uint8_t)(config->ete ? 0x50 + tl_sim_below(rng, 4) : 0x40 + tl_sim_below(rng, 7));
    config->v8 = true;
    config->m_profile = !config->ete && tl_sim_percent(rng, 30);
    config->aarch64 = !config->m_profile;
    config->vmid_bytes = vmid[tl_sim_below(rng, 4)];
    config->context_bytes = tl_sim_percent(rng, 60) ? 4 : 0;
    config->address_bits = 64;
    config->cycle_bits = (uint8_t)tl_sim_between(rng, 12, 20);
    config->commit_opt1 = tl_sim_percent(rng, 50);
    config->conditional = !config->ete && tl_sim_percent(rng, 30);
    config->data_trace = !config->ete && tl_sim_percent(rng, 30);
    config->q_elements = tl_sim_percent(rng, 50);
    config->max_spec_depth = tl_sim_below(rng, 40);
}

void tl_sim_packets_init(struct tl_sim_packets *s, const struct tl_etm4_config *config,
                         enum tl_sim_mix mix, bool bad, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->config = *config;
    s->mix = mix;
    s->bad = bad;
    s->rng.state = seed;
}

void tl_sim_packets_fini(struct tl_sim_packets *s)
{
    tl_buf_fini(&s->bytes);
    free(s->expected);
    s->expected = NULL;
    s->n = s->cap = 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void put(struct tl_sim_packets *s, unsigned byte)
{
    const uint8_t b = (uint8_t)byte;
    if (s->result == 0)
        s->result = tl_buf_add(&s->bytes, &b, 1);
}

static void put_le(struct tl_sim_packets *s, uint64_t value, unsigned bytes)
{
    for (unsigned k = 0; k < bytes; k++)
        put(s, value >> 8 * k & 0xff);
}

/* Write a value in as few bytes as possible, but at least `min`. */
static void put_field(struct tl_sim_packets *s, uint64_t value, unsigned min)
{
    for (unsigned k = 1; value >= 0x80 || k < min; value >>= 7, k++)
        put(s, 0x80 | (value & 0x7f));
    put(s, (unsigned)value);
}

/* A value of random size, up to `bits`. */
static uint64_t any(struct tl_sim_packets *s, unsigned bits)
{
    const unsigned n = 1 + RANDOM(s, bits);
    return tl_sim_rand(&s->rng) >> (64 - n);
}

/* Expect a packet beginning here, and write its header. */
static struct tl_etm4_packet *begin(struct tl_sim_packets *s, enum tl_etm4_type type,
                                    unsigned header)
{
    static struct tl_etm4_packet nowhere;
    if (s->result == 0)
        s->result = tl_grow(&s->expected, &s->cap, s->n + 1, sizeof *s->expected);
    if (s->result != 0)
        return &nowhere;
    s->expected[s->n] = (struct tl_etm4_packet){
        .type = (uint8_t)type, .header = (uint8_t)header, .offset = s->bytes.n};
    put(s, header);
    return &s->expected[s->n++];
}

/* ---- packets ------------------------------------------------------------------------------- */

static void atom(struct tl_sim_packets *s)
{
    static const uint8_t f4[] = {0xe, 0x0, 0xa, 0x5};
    const unsigned header = 0xc0 + RANDOM(s, 64);
    struct tl_etm4_packet *e = begin(s, TL_ETM4_ATOM, header);

    if (header >= 0xf8) {
        e->n = 3;
        e->value = header & 7;
    } else if (header >= 0xf6) {
        e->n = 1;
        e->value = header & 1;
    } else if (header == 0xf5) {
        e->n = 5;
        e->value = 0x1e;
    } else if (header >= 0xdc && header <= 0xdf) {
        e->n = 4;
        e->value = f4[header & 3];
    } else if (header >= 0xd8 && header <= 0xdb) {
        e->n = 2;
        e->value = header & 3;
    } else if (header >= 0xd5 && header <= 0xd7) {
        e->n = 5;
        e->value = header == 0xd5 ? 0 : header == 0xd6 ? 0xa : 0x15;
    } else {
        const unsigned run = (header & 0x1f) + 3;
        e->n = (uint8_t)(run + 1);
        e->value = (1u << run) - 1;
        if ((header & 0x20) == 0)
            e->value |= 1u << run;
    }
}

static void remember(struct tl_sim_packets *s, uint64_t address, unsigned is)
{
    memmove(s->address + 1, s->address, 2 * sizeof s->address[0]);
    memmove(s->is + 1, s->is, 2);
    s->address[0] = address;
    s->is[0] = (uint8_t)is;
}

static void got_address(struct tl_sim_packets *s, struct tl_etm4_packet *e, uint64_t address,
                        unsigned is, unsigned bits)
{
    e->value = address;
    e->bits = (uint8_t)bits;
    e->flags |= (is ? TL_ETM4_IS1 : 0) | (bits == 64 ? TL_ETM4_64BIT : 0);
    remember(s, address, is);
}

static void match_address(struct tl_sim_packets *s, struct tl_etm4_packet *e, unsigned k)
{
    e->n = (uint8_t)k;
    e->flags |= TL_ETM4_EXACT;
    got_address(s, e, s->address[k], s->is[k], 0);
}

static void short_address(struct tl_sim_packets *s, struct tl_etm4_packet *e, unsigned is)
{
    const unsigned shift = is ? 1 : 2;
    const unsigned low = RANDOM(s, 128);
    uint64_t address = s->address[0];

    if (tl_sim_percent(&s->rng, 50)) {
        put(s, low);
        address = address >> (7 + shift) << (7 + shift) | low << shift;
        got_address(s, e, address, is, 7 + shift);
    } else {
        const unsigned high = RANDOM(s, 256);
        put(s, 0x80 | low);
        put(s, high);
        address = address >> (15 + shift) << (15 + shift) | low << shift | high << (7 + shift);
        got_address(s, e, address, is, 15 + shift);
    }
}

/* The bytes of a long address, and its value. */
static uint64_t put_long(struct tl_sim_packets *s, unsigned is, unsigned bits)
{
    const uint64_t address = tl_sim_rand(&s->rng) & (is ? ~1ull : ~3ull);
    if (is) {
        put(s, (address >> 1 & 0x7f) | (RANDOM(s, 2) << 7));
        put(s, address >> 8 & 0xff);
    } else {
        put(s, (address >> 2 & 0x7f) | (RANDOM(s, 2) << 7));
        put(s, (address >> 9 & 0x7f) | (RANDOM(s, 2) << 7));
    }
    put_le(s, address >> 16, bits / 8 - 2);
    if (bits == 64)
        return address;
    return (s->aarch32 ? 0 : s->address[0] >> 32 << 32) | (uint32_t)address;
}

static void put_context(struct tl_sim_packets *s, struct tl_etm4_packet *e)
{
    const unsigned info = RANDOM(s, 256);
    put(s, info);
    e->flags |= TL_ETM4_HAS_CONTEXT | (info & 3) << TL_ETM4_EL_SHIFT;
    e->flags |= (info & 0x10 ? TL_ETM4_SF : 0) | (info & 0x20 ? TL_ETM4_NS : 0);
    e->flags |= info & 0x08 && s->config.ete ? TL_ETM4_NSE : 0;
    if (info & 0x40 && s->config.vmid_bytes > 0) {
        e->vmid = (uint32_t)(tl_sim_rand(&s->rng) & ((1ull << 8 * s->config.vmid_bytes) - 1));
        e->flags |= TL_ETM4_HAS_VMID;
        put_le(s, e->vmid, s->config.vmid_bytes);
    }
    if (info & 0x80 && s->config.context_bytes > 0) {
        e->context_id = (uint32_t)tl_sim_rand(&s->rng);
        e->flags |= TL_ETM4_HAS_CTXID;
        put_le(s, e->context_id, 4);
    }
    s->aarch32 = (info & 0x10) == 0;
}

static void address(struct tl_sim_packets *s)
{
    static const uint8_t long_headers[2][2][2] = {{{0x9a, 0x9b}, {0x9d, 0x9e}},
                                                  {{0x82, 0x83}, {0x85, 0x86}}};
    const unsigned is = tl_sim_percent(&s->rng, 20);
    const unsigned kind = RANDOM(s, 10);
    struct tl_etm4_packet *e;

    if (kind < 4) {
        const unsigned k = RANDOM(s, 3);
        match_address(s, begin(s, TL_ETM4_ADDRESS, 0x90 + k), k);
    } else if (kind < 7) {
        e = begin(s, TL_ETM4_ADDRESS, 0x95 + is);
        short_address(s, e, is);
    } else {
        const unsigned wide = tl_sim_percent(&s->rng, 30);
        const unsigned context = tl_sim_percent(&s->rng, 20);
        const unsigned bits = wide ? 64 : 32;
        e = begin(s, TL_ETM4_ADDRESS, long_headers[context][wide][is]);
        const uint64_t value = put_long(s, is, bits);
        got_address(s, e, value, is, bits);
        if (context)
            put_context(s, e);
    }
}

static void source_address(struct tl_sim_packets *s)
{
    const unsigned is = RANDOM(s, 2);
    const unsigned kind = RANDOM(s, 4);
    struct tl_etm4_packet *e;

    if (kind == 0) {
        const unsigned k = RANDOM(s, 3);
        match_address(s, begin(s, TL_ETM4_SOURCE_ADDRESS, 0xb0 + k), k);
    } else if (kind == 1) {
        e = begin(s, TL_ETM4_SOURCE_ADDRESS, 0xb4 + is);
        short_address(s, e, is);
    } else {
        e = begin(s, TL_ETM4_SOURCE_ADDRESS, (kind == 2 ? 0xb6 : 0xb8) + is);
        const uint64_t value = put_long(s, is, kind == 2 ? 32 : 64);
        got_address(s, e, value, is, kind == 2 ? 32 : 64);
    }
}

static void context(struct tl_sim_packets *s)
{
    const unsigned payload = tl_sim_percent(&s->rng, 80);
    struct tl_etm4_packet *e = begin(s, TL_ETM4_CONTEXT, 0x80 + payload);
    if (payload)
        put_context(s, e);
}

static void trace_info(struct tl_sim_packets *s)
{
    struct tl_etm4_packet *e = begin(s, TL_ETM4_TRACE_INFO, 0x01);
    const unsigned sections = RANDOM(s, 32);
    const bool extended = tl_sim_percent(&s->rng, 10);

    put(s, sections | (extended ? 0x80 : 0));
    if (extended)
        put(s, RANDOM(s, 128));
    if (sections & 1) {
        e->n = (uint8_t)RANDOM(s, 128);
        put_field(s, e->n, 1);
    }
    if (sections & 2)
        put_field(s, any(s, 32), 1);
    if (sections & 4) {
        const uint64_t depth = any(s, 32);
        put_field(s, depth, 1);
        e->value |= depth << 32;
    }
    if (sections & 8) {
        e->value2 = any(s, 20);
        put_field(s, e->value2, 1);
    }
    if (sections & 16) {
        const uint64_t window = any(s, 32);
        put_field(s, window, 1);
        e->value |= window;
    }
    s->threshold = e->value2;
    s->timestamp = 0;
    memset(s->address, 0, sizeof s->address);
    memset(s->is, 0, sizeof s->is);
}

static void timestamp(struct tl_sim_packets *s)
{
    const unsigned has_count = RANDOM(s, 2);
    struct tl_etm4_packet *e = begin(s, TL_ETM4_TIMESTAMP, 0x02 + has_count);
    const unsigned bytes = 1 + RANDOM(s, 9);
    const uint64_t mask = bytes == 9 ? UINT64_MAX : (1ull << 7 * bytes) - 1;
    const uint64_t value = tl_sim_rand(&s->rng);

    for (unsigned k = 0; k < bytes; k++) {
        const unsigned more = k + 1 < bytes ? 0x80 : 0;
        put(s, k == 8 ? value >> 56 & 0xff : more | (value >> 7 * k & 0x7f));
    }
    s->timestamp = (s->timestamp & ~mask) | (value & mask);
    e->value = s->timestamp;
    e->bits = (uint8_t)(bytes == 9 ? 64 : 7 * bytes);
    if (has_count) {
        const uint64_t count = any(s, 20);
        put_field(s, count, 1);
        e->value2 = count & ((1u << s->config.cycle_bits) - 1);
        e->flags = TL_ETM4_HAS_COUNT;
    }
}

static void exception(struct tl_sim_packets *s)
{
    struct tl_etm4_packet *e = begin(s, TL_ETM4_EXCEPTION, 0x06);
    const unsigned low = RANDOM(s, 32);
    const unsigned ret = RANDOM(s, 4);
    const bool extended = tl_sim_percent(&s->rng, 30);
    const bool special = s->config.ete && (low == 0 || low == 0x18);

    put(s, low << 1 | (ret & 1) | (ret & 2) << 5 | (extended ? 0x80 : 0));
    e->n = (uint8_t)ret;
    e->value = low;
    if (extended) {
        const unsigned high = RANDOM(s, 64);
        put(s, high);
        e->value |= (high & 0x1f) << 5;
        e->flags |= high & 0x20 ? TL_ETM4_M_TAIL_CHAIN : 0;
    } else if (special) {
        put(s, 0);
    }
    if (special && e->value == low) {
        remember(s, 0, 0);
        if (low == 0)
            e->type = TL_ETM4_PE_RESET;
        else
            e->flags |= TL_ETM4_TRANSACTION_FAILED;
    }
}

static void cycles(struct tl_sim_packets *s)
{
    const unsigned format = 1 + RANDOM(s, 3);
    const unsigned bit = RANDOM(s, 2);
    struct tl_etm4_packet *e;

    if (format == 1) {
        e = begin(s, TL_ETM4_CYCLE_COUNT, 0x0e + bit);
        if (!s->config.commit_opt1) {
            e->value2 = any(s, 16);
            e->flags |= TL_ETM4_HAS_COMMIT;
            put_field(s, e->value2, 1);
        }
        if (!bit) {
            const uint64_t count = any(s, 20);
            put_field(s, count, 1);
            e->value = s->threshold + count;
            e->flags |= TL_ETM4_HAS_COUNT;
        }
    } else if (format == 2) {
        const unsigned count = RANDOM(s, 16), a = RANDOM(s, 16);
        e = begin(s, TL_ETM4_CYCLE_COUNT, 0x0c + bit);
        const int64_t commits = bit ? (int64_t)s->config.max_spec_depth + a - 15 : a + 1;
        put(s, a << 4 | count);
        e->value = s->threshold + count;
        e->value2 = commits < 0 ? 0 : (uint64_t)commits;
        e->flags |= TL_ETM4_HAS_COUNT | TL_ETM4_HAS_COMMIT;
    } else {
        const unsigned count = RANDOM(s, 4), a = RANDOM(s, 4);
        e = begin(s, TL_ETM4_CYCLE_COUNT, 0x10 + a * 4 + count);
        e->value = s->threshold + count;
        e->flags |= TL_ETM4_HAS_COUNT;
        if (!s->config.commit_opt1) {
            e->value2 = a + 1;
            e->flags |= TL_ETM4_HAS_COMMIT;
        }
    }
}

static void speculation(struct tl_sim_packets *s)
{
    static const uint8_t atoms[4][2] = {{0, 0}, {1, 1}, {2, 3}, {1, 0}};
    const unsigned a = RANDOM(s, 4);
    struct tl_etm4_packet *e;

    switch (RANDOM(s, 5)) {
    case 0:
        e = begin(s, TL_ETM4_COMMIT, 0x2d);
        e->value = any(s, 32);
        put_field(s, e->value, 1);
        break;
    case 1:
        e = begin(s, TL_ETM4_CANCEL, 0x2e + (a & 1));
        e->value = any(s, 32);
        e->flags = a & 1 ? TL_ETM4_IS_MISPREDICT : 0;
        put_field(s, e->value, 1);
        break;
    case 2:
        e = begin(s, TL_ETM4_MISPREDICT, 0x30 + a);
        e->n = atoms[a][0];
        e->value2 = atoms[a][1];
        break;
    case 3:
        e = begin(s, TL_ETM4_CANCEL, 0x34 + a);
        e->n = atoms[a][0];
        e->value2 = atoms[a][1];
        e->value = 1;
        e->flags = TL_ETM4_IS_MISPREDICT;
        break;
    default:
        e = begin(s, TL_ETM4_CANCEL, 0x38 + a * 2);
        e->value = a + 2;
        e->flags = TL_ETM4_IS_MISPREDICT;
        if (RANDOM(s, 2)) { /* an E atom first */
            e->header |= 1;
            s->bytes.p[s->bytes.n - 1] |= 1;
            e->n = 1;
            e->value2 = 1;
        }
        break;
    }
}

static void event(struct tl_sim_packets *s)
{
    const unsigned bits = 1 + RANDOM(s, 15);
    begin(s, TL_ETM4_EVENT, 0x70 + bits)->value = bits;
}

static void q(struct tl_sim_packets *s)
{
    static const uint8_t kinds[] = {0, 1, 2, 5, 6, 0xa, 0xb, 0xc, 0xf};
    const unsigned kind = kinds[RANDOM(s, sizeof kinds)];
    struct tl_etm4_packet *e = begin(s, TL_ETM4_Q, 0xa0 + kind);

    if (kind < 3)
        match_address(s, e, kind);
    else if (kind < 7)
        short_address(s, e, kind == 6);
    else if (kind < 0xc)
        got_address(s, e, put_long(s, kind == 0xb, 32), kind == 0xb, 32);
    if (kind < 0xc)
        e->flags |= TL_ETM4_HAS_ADDRESS;
    if (kind != 0xf) {
        e->value2 = any(s, 32);
        e->flags |= TL_ETM4_HAS_COUNT;
        put_field(s, e->value2, 1);
    }
}

static void ite(struct tl_sim_packets *s)
{
    struct tl_etm4_packet *e = begin(s, TL_ETM4_ITE, 0x09);
    e->n = (uint8_t)RANDOM(s, 4);
    e->value = tl_sim_rand(&s->rng);
    put(s, e->n);
    put_le(s, e->value, 8);
}

static void conditional(struct tl_sim_packets *s)
{
    static const uint8_t single[] = {0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46,
                                     0x48, 0x49, 0x4a, 0x4c, 0x4d, 0x4e};
    static const uint8_t result1[] = {0x68, 0x69, 0x6a, 0x6b, 0x6e, 0x6f};
    struct tl_etm4_packet *e;

    switch (RANDOM(s, 4)) {
    case 0:
        begin(s, TL_ETM4_CONDITIONAL, single[RANDOM(s, sizeof single)]);
        break;
    case 1:
        e = begin(s, TL_ETM4_CONDITIONAL, RANDOM(s, 2) ? 0x6d : 0x50 + RANDOM(s, 16));
        e->value = RANDOM(s, 256);
        put(s, (unsigned)e->value);
        break;
    case 2:
        e = begin(s, TL_ETM4_CONDITIONAL, 0x6c);
        e->value = any(s, 32);
        put_field(s, e->value, 1);
        break;
    default:
        e = begin(s, TL_ETM4_CONDITIONAL, result1[RANDOM(s, sizeof result1)]);
        e->value = any(s, 32);
        put_field(s, e->value, 1);
        if (e->header < 0x6c) {
            e->value2 = any(s, 32);
            put_field(s, e->value2, 1);
        }
        break;
    }
}

static void marker(struct tl_sim_packets *s)
{
    const unsigned header = 0x20 + RANDOM(s, 13);
    begin(s, TL_ETM4_DATA_MARKER, header)->value = header & 7;
}

/* One-byte packets that only some configurations have. */
static void single(struct tl_sim_packets *s)
{
    const struct tl_etm4_config *c = &s->config;
    switch (RANDOM(s, 6)) {
    case 0:
        if (c->version >= 0x46) {
            begin(s, TL_ETM4_TS_MARKER, 0x88);
            return;
        }
        break;
    case 1:
        if (c->version >= 0x43) {
            begin(s, TL_ETM4_IGNORE, 0x70);
            return;
        }
        break;
    case 2:
        if (c->ete) {
            const unsigned commit = RANDOM(s, 2);
            begin(s, commit ? TL_ETM4_TRANSACTION_COMMIT : TL_ETM4_TRANSACTION_START,
                  0x0a + commit);
            return;
        }
        break;
    case 3:
        if (!c->ete) {
            begin(s, TL_ETM4_EXCEPTION_RETURN, 0x07);
            return;
        }
        break;
    case 4:
        if (c->m_profile && c->version >= 0x42) {
            begin(s, TL_ETM4_FUNCTION_RETURN, 0x05);
            return;
        }
        break;
    default:
        break;
    }
    begin(s, TL_ETM4_TRACE_ON, 0x04);
}

static void async(struct tl_sim_packets *s)
{
    begin(s, TL_ETM4_ASYNC, 0);
    for (unsigned k = 0; k < 10; k++)
        put(s, 0);
    put(s, 0x80);
}

int tl_sim_packets_async(struct tl_sim_packets *s)
{
    async(s);
    return s->result;
}

static void extension(struct tl_sim_packets *s)
{
    switch (RANDOM(s, 4)) {
    case 0:
        begin(s, TL_ETM4_OVERFLOW, 0);
        put(s, 0x05);
        break;
    case 1:
        begin(s, TL_ETM4_DISCARD, 0);
        put(s, 0x03);
        break;
    default:
        async(s);
        break;
    }
}

static void bad(struct tl_sim_packets *s)
{
    unsigned zeros;

    switch (RANDOM(s, 4)) {
    case 0: /* more zeros than in an A-Sync */
        begin(s, TL_ETM4_BAD, 0)->value = 2;
        for (unsigned n = RANDOM(s, 100); n > 0; n--)
            put(s, 0);
        async(s);
        break;
    case 1: /* too few zeros */
        begin(s, TL_ETM4_BAD, 0)->value = 2;
        zeros = RANDOM(s, 9);
        for (unsigned n = zeros; n > 0; n--)
            put(s, 0);
        put(s, zeros == 0 ? 0x77 : 1 + RANDOM(s, 127)); /* not 0x80: it would end an A-Sync */
        break;
    case 2: /* a field without end */
        begin(s, TL_ETM4_BAD, 0x2d)->value = 2;
        for (unsigned n = 0; n < 5; n++)
            put(s, 0x80 | RANDOM(s, 128));
        break;
    default:
        begin(s, TL_ETM4_BAD, RANDOM(s, 2) ? 0x84 : 0x99);
        break;
    }
}

static void one_of_all(struct tl_sim_packets *s)
{
    switch (RANDOM(s, 16)) {
    case 0:
        trace_info(s);
        break;
    case 1:
        timestamp(s);
        break;
    case 2:
        exception(s);
        break;
    case 3:
        cycles(s);
        break;
    case 4:
        speculation(s);
        break;
    case 5:
        event(s);
        break;
    case 6:
        context(s);
        break;
    case 7:
        extension(s);
        break;
    case 8:
        if (s->config.q_elements)
            q(s);
        break;
    case 9:
        if (s->config.ete)
            source_address(s);
        break;
    case 10:
        if (s->config.version >= 0x53)
            ite(s);
        break;
    case 11:
        if (s->config.conditional)
            conditional(s);
        break;
    case 12:
        if (s->config.data_trace)
            marker(s);
        break;
    case 13:
        if (s->bad && tl_sim_percent(&s->rng, 20))
            bad(s);
        break;
    default:
        single(s);
        break;
    }
}

int tl_sim_packets_add(struct tl_sim_packets *s, size_t n)
{
    static const struct {
        uint8_t atoms, addresses;
    } percent[TL_SIM_MIXES] = {{15, 25}, {95, 3}, {45, 54}};

    const size_t end = s->n + n;
    while (s->n < end && s->result == 0) {
        const unsigned roll = RANDOM(s, 100);
        if (roll < percent[s->mix].atoms)
            atom(s);
        else if (roll < percent[s->mix].atoms + percent[s->mix].addresses)
            address(s);
        else
            one_of_all(s);
    }
    return s->result;
}
