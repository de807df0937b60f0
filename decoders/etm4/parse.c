/* SPDX-License-Identifier: MIT */
/*
 * Parses ETMv4 and ETE packets one by one. Payload is read with sticky errors that are checked
 * once, before any register changes: a packet cut off by the end of a push is parsed again from its
 * header, and must not count twice.
 */
#include "etm4/parse.h"

#include "base/bytes.h"
#include "etm4/headers.h"

#include <string.h>

enum bad_code { BAD_RESERVED, BAD_RESERVED_CFG, BAD_SEQUENCE };

/* Maximum bytes of fields that continue while bit 7 is set. */
#define FIELD_32BIT 5
#define FIELD_COUNT 3 /* cycle counts have at most 20 bits */
#define TS_BYTES    9 /* the ninth has eight bits of value */

#define ETE_PE_RESET    0x00 /* exception types for which ETE has three bytes and an address of 0 */
#define ETE_TRANS_FAILS 0x18

/*
 * Reads payload bytes with sticky errors: `starved` if a byte was missing, `bad` if a field was too
 * long. Both are checked once per packet, before any state is changed.
 */
struct reader {
    const uint8_t *p;
    size_t n;
    size_t i;
    bool starved;
    bool bad;
};

static uint8_t get8(struct reader *r)
{
    if (r->i >= r->n) {
        r->starved = true;
        return 0;
    }
    return r->p[r->i++];
}

static const uint8_t *get_bytes(struct reader *r, size_t n)
{
    static const uint8_t nothing[8];
    if (r->n - r->i < n) {
        r->starved = true;
        return nothing;
    }
    r->i += n;
    return r->p + r->i - n;
}

static uint32_t get_field(struct reader *r, unsigned max)
{
    uint64_t value = 0;
    for (unsigned k = 0; k < max && !r->bad; k++) {
        const uint8_t byte = get8(r);
        value |= (uint64_t)(byte & 0x7f) << 7 * k;
        if ((byte & 0x80) == 0)
            return (uint32_t)value; /* all such fields have at most 32 bits */
    }
    r->bad = true;
    return 0;
}

static size_t done(const struct reader *r, struct tl_etm4_packet *out)
{
    if (r->starved)
        return 0;
    if (r->bad)
        *out =
            (struct tl_etm4_packet){.type = TL_ETM4_BAD, .header = r->p[0], .value = BAD_SEQUENCE};
    return r->i;
}

static bool usable(const struct reader *r)
{
    return !r->starved && !r->bad;
}

/* ---- addresses ----------------------------------------------------------------------------- */

static void remember(struct tl_etm4_registers *regs, uint64_t address, uint8_t is)
{
    regs->address[2] = regs->address[1];
    regs->address[1] = regs->address[0];
    regs->address[0] = address;
    regs->is[2] = regs->is[1];
    regs->is[1] = regs->is[0];
    regs->is[0] = is;
}

static void set_address(struct tl_etm4_packet *out, struct tl_etm4_registers *regs,
                        uint64_t address, uint8_t is, unsigned bits)
{
    remember(regs, address, is);
    out->value = address;
    out->bits = (uint8_t)bits;
    if (is)
        out->flags |= TL_ETM4_IS1;
    if (bits == 64)
        out->flags |= TL_ETM4_64BIT;
}

static void address_match(struct tl_etm4_packet *out, struct tl_etm4_registers *regs, unsigned k)
{
    out->n = (uint8_t)k;
    out->flags |= TL_ETM4_EXACT;
    set_address(out, regs, regs->address[k], regs->is[k], 0);
}

static void address_short(struct reader *r, struct tl_etm4_packet *out,
                          struct tl_etm4_registers *regs, uint8_t is)
{
    const unsigned shift = is ? 1 : 2;
    unsigned bits = 7 + shift;
    const uint8_t first = get8(r);
    uint64_t value = (uint64_t)(first & 0x7f) << shift;

    if (first & 0x80) {
        value |= (uint64_t)get8(r) << bits;
        bits += 8;
    }
    if (usable(r))
        set_address(out, regs, (regs->address[0] & ~((1ull << bits) - 1)) | value, is, bits);
}

/* Value of bytes 0 and 1 of a long address: for IS0 seven bits each, for IS1 seven and eight. */
static uint64_t long_low(const uint8_t *b, uint8_t is)
{
    return is ? (uint64_t)(b[0] & 0x7f) << 1 | (uint64_t)b[1] << 8
              : (uint64_t)(b[0] & 0x7f) << 2 | (uint64_t)(b[1] & 0x7f) << 9;
}

static uint64_t address_long(struct reader *r, const struct tl_etm4_registers *regs, uint8_t is,
                             unsigned bits)
{
    const uint8_t *b = get_bytes(r, bits / 8);
    if (bits == 64)
        return long_low(b, is) | (tl_le64(b) & ~0xffffull);
    const uint64_t upper = regs->sf ? regs->address[0] & ~0xffffffffull : 0;
    return upper | long_low(b, is) | (tl_le32(b) & 0xffff0000u);
}

/* Read the context part of a packet, starting at its information byte. */
static void get_context(struct reader *r, const struct tl_etm4_config *config,
                        struct tl_etm4_packet *out)
{
    const uint8_t info = get8(r);
    const uint8_t vmid_bytes = info & 0x40 ? config->vmid_bytes : 0;
    const uint8_t context_bytes = info & 0x80 ? config->context_bytes : 0;

    out->flags |= tl_etm4_context_flags(config, info);
    for (unsigned k = 0; k < vmid_bytes; k++)
        out->vmid |= (uint32_t)get8(r) << 8 * k;
    for (unsigned k = 0; k < context_bytes; k++)
        out->context_id |= (uint32_t)get8(r) << 8 * k;
}

static void remember_context(struct tl_etm4_registers *regs, const struct tl_etm4_packet *out)
{
    regs->sf = out->flags & TL_ETM4_SF ? 1 : 0;
}

static void parse_context(struct reader *r, const struct tl_etm4_config *config,
                          struct tl_etm4_registers *regs, struct tl_etm4_packet *out)
{
    out->type = TL_ETM4_CONTEXT;
    if ((out->header & 1) == 0)
        return;
    get_context(r, config, out);
    if (usable(r))
        remember_context(regs, out);
}

static void parse_long(struct reader *r, struct tl_etm4_registers *regs, struct tl_etm4_packet *out,
                       uint8_t is, unsigned bits)
{
    const uint64_t address = address_long(r, regs, is, bits);
    if (usable(r))
        set_address(out, regs, address, is, bits);
}

static void parse_address_context(struct reader *r, const struct tl_etm4_config *config,
                                  struct tl_etm4_registers *regs, struct tl_etm4_packet *out)
{
    const unsigned bits = out->header >= 0x85 ? 64 : 32;
    const uint8_t is = out->header == 0x83 || out->header == 0x86;
    const uint64_t address = address_long(r, regs, is, bits);

    out->type = TL_ETM4_ADDRESS;
    get_context(r, config, out);
    if (usable(r)) {
        set_address(out, regs, address, is, bits);
        remember_context(regs, out);
    }
}

static void parse_q(struct reader *r, struct tl_etm4_registers *regs, struct tl_etm4_packet *out)
{
    const unsigned kind = out->header & 0xf;
    struct tl_etm4_registers after = *regs; /* the count after the address may be missing */

    out->type = TL_ETM4_Q;
    if (kind < 3)
        address_match(out, &after, kind);
    else if (kind == 0x5 || kind == 0x6)
        address_short(r, out, &after, kind == 0x6);
    else if (kind == 0xa || kind == 0xb)
        parse_long(r, &after, out, kind == 0xb, 32);
    if (kind != 0xc && kind != 0xf)
        out->flags |= TL_ETM4_HAS_ADDRESS;
    if (kind != 0xf) {
        out->value2 = get_field(r, FIELD_32BIT);
        out->flags |= TL_ETM4_HAS_COUNT;
    }
    if (usable(r))
        *regs = after;
}

/* ---- other packets ---------------------------------------------------------------------- */

static void parse_trace_info(struct reader *r, struct tl_etm4_registers *regs,
                             struct tl_etm4_packet *out)
{
    const uint8_t sections = get8(r);
    uint32_t info = 0, depth = 0, threshold = 0, window = 0;

    if (sections & 0x80)
        (void)get_field(r, FIELD_32BIT - 1);
    if (sections & 0x01)
        info = get_field(r, FIELD_32BIT);
    if (sections & 0x02)
        (void)get_field(r, FIELD_32BIT); /* P0 key: for data trace */
    if (sections & 0x04)
        depth = get_field(r, FIELD_32BIT);
    if (sections & 0x08)
        threshold = get_field(r, FIELD_32BIT);
    if (sections & 0x10)
        window = get_field(r, FIELD_32BIT);

    out->type = TL_ETM4_TRACE_INFO;
    out->n = (uint8_t)info;
    out->value = window | (uint64_t)depth << 32;
    out->value2 = threshold;
    if (usable(r)) {
        memset(regs->address, 0, sizeof regs->address);
        memset(regs->is, 0, sizeof regs->is);
        regs->timestamp = 0;
        regs->threshold = threshold;
    }
}

static void parse_timestamp(struct reader *r, const struct tl_etm4_config *config,
                            struct tl_etm4_registers *regs, struct tl_etm4_packet *out)
{
    uint64_t value = 0;
    unsigned bits = 0;
    bool more = true;

    for (unsigned k = 0; k < TS_BYTES - 1 && more; k++) {
        const uint8_t byte = get8(r);
        value |= (uint64_t)(byte & 0x7f) << bits;
        bits += 7;
        more = byte & 0x80;
    }
    if (more) {
        value |= (uint64_t)get8(r) << bits;
        bits = 64;
    }
    out->type = TL_ETM4_TIMESTAMP;
    if (out->header & 1) {
        out->value2 = get_field(r, FIELD_COUNT) & ((1ull << config->cycle_bits) - 1);
        out->flags |= TL_ETM4_HAS_COUNT;
    }
    if (usable(r)) {
        if (bits < 64)
            value |= regs->timestamp & ~((1ull << bits) - 1);
        regs->timestamp = value;
        out->value = value;
        out->bits = (uint8_t)bits;
    }
}

static void parse_exception(struct reader *r, const struct tl_etm4_config *config,
                            struct tl_etm4_registers *regs, struct tl_etm4_packet *out)
{
    const uint8_t first = get8(r);
    const unsigned low = first >> 1 & 0x1f;
    const bool has_zero = config->ete && (low == ETE_PE_RESET || low == ETE_TRANS_FAILS);

    out->type = TL_ETM4_EXCEPTION;
    out->n = (uint8_t)((first & 0x40) >> 5 | (first & 1));
    out->value = low;
    if (first & 0x80 || has_zero) {
        const uint8_t second = get8(r);
        if (first & 0x80) {
            out->value |= (uint64_t)(second & 0x1f) << 5;
            out->flags |= second & 0x20 ? TL_ETM4_M_TAIL_CHAIN : 0;
        }
    }
    if (usable(r) && config->ete && (out->value == ETE_PE_RESET || out->value == ETE_TRANS_FAILS)) {
        remember(regs, 0, 0);
        if (out->value == ETE_PE_RESET)
            out->type = TL_ETM4_PE_RESET;
        else
            out->flags |= TL_ETM4_TRANSACTION_FAILED;
    }
}

static void parse_cycles(struct reader *r, unsigned class, const struct tl_etm4_config *config,
                         const struct tl_etm4_registers *regs, struct tl_etm4_packet *out)
{
    const uint8_t header = out->header;

    out->type = TL_ETM4_CYCLE_COUNT;
    if (class == TL_CLASS_CYCLES_F1) {
        if (!config->commit_opt1) {
            out->value2 = get_field(r, FIELD_32BIT);
            out->flags |= TL_ETM4_HAS_COMMIT;
        }
        if ((header & 1) == 0) {
            out->value = regs->threshold + get_field(r, FIELD_COUNT);
            out->flags |= TL_ETM4_HAS_COUNT;
        }
    } else if (class == TL_CLASS_CYCLES_F2) {
        const uint8_t byte = get8(r);
        const int64_t base = header & 1 ? (int64_t)config->max_spec_depth - 15 : 1;
        const int64_t commits = base + (byte >> 4);
        out->value = regs->threshold + (byte & 0xf);
        out->value2 = commits > 0 ? (uint64_t)commits : 0;
        out->flags |= TL_ETM4_HAS_COUNT | TL_ETM4_HAS_COMMIT;
    } else {
        out->value = regs->threshold + (header & 3);
        out->flags |= TL_ETM4_HAS_COUNT;
        if (!config->commit_opt1) {
            out->value2 = (header >> 2 & 3) + 1u;
            out->flags |= TL_ETM4_HAS_COMMIT;
        }
    }
}

static void set_atoms(struct tl_etm4_packet *out, unsigned n, uint64_t bits)
{
    out->n = (uint8_t)n;
    out->value2 = bits;
}

static void parse_speculation(struct reader *r, unsigned class, struct tl_etm4_packet *out)
{
    static const uint8_t before[4][2] = {{0, 0}, {1, 1}, {2, 3}, {1, 0}}; /* none, E, EE, N */
    const uint8_t header = out->header;

    out->type = class == TL_CLASS_COMMIT       ? TL_ETM4_COMMIT
                : class == TL_CLASS_MISPREDICT ? TL_ETM4_MISPREDICT
                                               : TL_ETM4_CANCEL;
    switch (class) {
    case TL_CLASS_COMMIT:
        out->value = get_field(r, FIELD_32BIT);
        break;
    case TL_CLASS_CANCEL_F1:
        out->value = get_field(r, FIELD_32BIT);
        out->flags = header & 1 ? TL_ETM4_IS_MISPREDICT : 0;
        break;
    case TL_CLASS_CANCEL_F3:
        out->value = (header >> 1 & 3) + 2u;
        out->flags = TL_ETM4_IS_MISPREDICT;
        if (header & 1)
            set_atoms(out, 1, 1);
        break;
    default: /* F2 and mispredict */
        if (class == TL_CLASS_CANCEL_F2) {
            out->value = 1;
            out->flags = TL_ETM4_IS_MISPREDICT;
        }
        set_atoms(out, before[header & 3][0], before[header & 3][1]);
        break;
    }
}

static void parse_conditional(struct reader *r, unsigned class, struct tl_etm4_packet *out)
{
    out->type = TL_ETM4_CONDITIONAL;
    if (class == TL_CLASS_COND_PAIR) {
        out->value = get8(r);
    } else if (class == TL_CLASS_COND_I_F1) {
        out->value = get_field(r, FIELD_32BIT);
    } else if (class == TL_CLASS_COND_RES_F1) {
        out->value = get_field(r, FIELD_32BIT + 1); /* result and 32-bit key */
        if ((out->header & 0xfc) == 0x68)
            out->value2 = get_field(r, FIELD_32BIT + 1);
    }
}

static void parse_ite(struct reader *r, struct tl_etm4_packet *out)
{
    out->type = TL_ETM4_ITE;
    out->n = get8(r);
    out->value = tl_le64(get_bytes(r, 8));
}

static void parse_single(unsigned class, struct tl_etm4_packet *out)
{
    static const uint8_t types[TL_CLASSES] = {
        [TL_CLASS_TRACE_ON] = TL_ETM4_TRACE_ON,
        [TL_CLASS_FUNCTION_RETURN] = TL_ETM4_FUNCTION_RETURN,
        [TL_CLASS_EXCEPTION_RETURN] = TL_ETM4_EXCEPTION_RETURN,
        [TL_CLASS_TRANSACTION_START] = TL_ETM4_TRANSACTION_START,
        [TL_CLASS_TRANSACTION_COMMIT] = TL_ETM4_TRANSACTION_COMMIT,
        [TL_CLASS_IGNORE] = TL_ETM4_IGNORE,
        [TL_CLASS_TS_MARKER] = TL_ETM4_TS_MARKER,
        [TL_CLASS_EVENT] = TL_ETM4_EVENT,
        [TL_CLASS_DATA_MARKER] = TL_ETM4_DATA_MARKER,
        [TL_CLASS_COND_SINGLE] = TL_ETM4_CONDITIONAL,
        [TL_CLASS_RESERVED] = TL_ETM4_BAD,
        [TL_CLASS_RESERVED_CFG] = TL_ETM4_BAD,
        [TL_CLASS_EXTENSION] = TL_ETM4_BAD, /* handled by the caller */
    };
    out->type = types[class];
    if (class == TL_CLASS_EVENT)
        out->value = out->header & 0xf;
    else if (class == TL_CLASS_DATA_MARKER)
        out->value = out->header & 0x7;
    else if (class == TL_CLASS_RESERVED_CFG)
        out->value = BAD_RESERVED_CFG;
}

size_t tl_etm4_parse(const uint8_t class_of[static 256], const struct tl_etm4_config *config,
                     struct tl_etm4_registers *regs, const uint8_t *b, size_t n,
                     struct tl_etm4_packet *out)
{
    const uint8_t header = b[0];
    const unsigned class = class_of[header];
    struct reader r = {.p = b, .n = n, .i = 1};

    *out = (struct tl_etm4_packet){.header = header};
    switch (class) {
    case TL_CLASS_ATOM:
        out->type = TL_ETM4_ATOM;
        out->n = (uint8_t)(tl_etm4_atoms[header - TL_ETM4_ATOM_FIRST] >> 24);
        out->value = tl_etm4_atoms[header - TL_ETM4_ATOM_FIRST] & 0xffffff;
        break;
    case TL_CLASS_ADDR_MATCH:
        out->type = TL_ETM4_ADDRESS;
        address_match(out, regs, header & 3);
        break;
    case TL_CLASS_ADDR_SHORT:
        out->type = TL_ETM4_ADDRESS;
        address_short(&r, out, regs, header == 0x96);
        break;
    case TL_CLASS_ADDR_LONG32:
        out->type = TL_ETM4_ADDRESS;
        parse_long(&r, regs, out, header == 0x9b, 32);
        break;
    case TL_CLASS_ADDR_LONG64:
        out->type = TL_ETM4_ADDRESS;
        parse_long(&r, regs, out, header == 0x9e, 64);
        break;
    case TL_CLASS_ADDR_CTX32:
    case TL_CLASS_ADDR_CTX64:
        parse_address_context(&r, config, regs, out);
        break;
    case TL_CLASS_CONTEXT:
        parse_context(&r, config, regs, out);
        break;
    case TL_CLASS_TRACE_INFO:
        parse_trace_info(&r, regs, out);
        break;
    case TL_CLASS_TIMESTAMP:
        parse_timestamp(&r, config, regs, out);
        break;
    case TL_CLASS_EXCEPTION:
        parse_exception(&r, config, regs, out);
        break;
    case TL_CLASS_CYCLES_F1:
    case TL_CLASS_CYCLES_F2:
    case TL_CLASS_CYCLES_F3:
        parse_cycles(&r, class, config, regs, out);
        break;
    case TL_CLASS_COMMIT:
    case TL_CLASS_CANCEL_F1:
    case TL_CLASS_CANCEL_F2:
    case TL_CLASS_CANCEL_F3:
    case TL_CLASS_MISPREDICT:
        parse_speculation(&r, class, out);
        break;
    case TL_CLASS_Q:
        parse_q(&r, regs, out);
        break;
    case TL_CLASS_SOURCE_MATCH:
        out->type = TL_ETM4_SOURCE_ADDRESS;
        address_match(out, regs, header & 3);
        break;
    case TL_CLASS_SOURCE_SHORT:
        out->type = TL_ETM4_SOURCE_ADDRESS;
        address_short(&r, out, regs, header & 1);
        break;
    case TL_CLASS_SOURCE_LONG32:
        out->type = TL_ETM4_SOURCE_ADDRESS;
        parse_long(&r, regs, out, header & 1, 32);
        break;
    case TL_CLASS_SOURCE_LONG64:
        out->type = TL_ETM4_SOURCE_ADDRESS;
        parse_long(&r, regs, out, header & 1, 64);
        break;
    case TL_CLASS_ITE:
        parse_ite(&r, out);
        break;
    case TL_CLASS_COND_I_F1:
    case TL_CLASS_COND_RES_F1:
    case TL_CLASS_COND_PAIR:
        parse_conditional(&r, class, out);
        break;
    default:
        parse_single(class, out);
        break;
    }
    return done(&r, out);
}
