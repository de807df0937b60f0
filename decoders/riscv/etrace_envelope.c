/* SPDX-License-Identifier: MIT */
/*
 * One function per envelope reads a frame from its first byte and tells its size, or that more
 * bytes are needed. Fields of the standard's envelope need not end at bytes; then payloads are
 * shifted into a buffer of the frame's own.
 */
#include "riscv/etrace_envelope.h"

#include "riscv/source.h"

#include <stddef.h>
#include <string.h>

#define RECORD 40u /* bytes */

int tl_etrace_envelope(struct tl_etrace_envelope *out, const struct tl_setup *setup,
                       struct tl_fail *fail)
{
    *out = (struct tl_etrace_envelope){
        .src_bits = setup->src_bits == TL_SETUP_UNSAID ? 0 : setup->src_bits,
        .ts_bytes = setup->ts_bytes == TL_SETUP_UNSAID ? 0 : setup->ts_bytes,
        .type_bits = setup->type_bits == TL_SETUP_UNSAID ? 0 : setup->type_bits};
    if (out->src_bits > 16 || out->ts_bytes > 8 || out->type_bits > 8)
        return tl_fail_set(fail, TL_USAGE,
                           "format %.40s: src_bits are at most 16, ts_bytes and "
                           "type_bits at most 8",
                           setup->format);
    if (!strncmp(setup->format, "etrace-smi", 10))
        out->wrapping = TL_ETRACE_SMI;
    else if (!strncmp(setup->format, "etrace-esp32", 12))
        out->wrapping = TL_ETRACE_INDEXED;
    for (size_t i = 0; i < setup->n_sources; i++)
        if (out->wrapping == TL_ETRACE_ENCAP && !strcmp(setup->sources[i].type, "pulp"))
            out->wrapping = TL_ETRACE_RECORDS;
    return TL_OK;
}

int tl_etrace_source_envelope(struct tl_etrace_envelope *out, const struct tl_source *source,
                              struct tl_fail *fail)
{
    const uint64_t src = tl_riscv_src_bits(source), ts = tl_source_reg(source, "ts_bytes", 0),
                   type = tl_source_reg(source, "type_bits", 0);
    if (src > 16 || ts > 8 || type > 8)
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "source %s: trTeSrcBits is at most 16, ts_bytes and type_bits 8",
                           source->name);
    *out = (struct tl_etrace_envelope){.wrapping = TL_ETRACE_ENCAP,
                                       .src_bits = (uint8_t)src,
                                       .ts_bytes = (uint8_t)ts,
                                       .type_bits = (uint8_t)type};
    return TL_OK;
}

/* `width` (up to 64) bits of `in` from bit `at` on, least significant first. */
static inline uint64_t bits_at(struct tl_bytes in, size_t at, unsigned width)
{
    const unsigned shift = at % 8;
    if (width == 0)
        return 0;
    uint64_t value = (uint64_t)in.p[at / 8] >> shift;
    for (unsigned bits = 8 - shift; bits < width; bits += 8)
        value |= (uint64_t)in.p[(at + bits) / 8] << bits;
    return width < 64 ? value & ((UINT64_C(1) << width) - 1) : value;
}

/* The payload: `n` bytes of `in` from bit `at` on. */
static void take_payload(struct tl_etrace_frame *out, struct tl_bytes in, size_t at, size_t n)
{
    const uint8_t *const p = in.p + at / 8;
    const unsigned shift = at % 8;
    out->payload = (struct tl_bytes){p, n};
    if (shift == 0)
        return;
    for (size_t i = 0; i < n; i++)
        out->bytes[i] = (uint8_t)(p[i] >> shift | p[i + 1] << (8 - shift));
    out->payload.p = out->bytes;
}

static int finish_frame(struct tl_etrace_frame *out, size_t size, struct tl_bytes in)
{
    out->size = (unsigned)size;
    return in.n < size ? TL_AGAIN : (int)size;
}

static int read_encap(struct tl_etrace_frame *out, const struct tl_etrace_envelope *e,
                      struct tl_bytes in)
{
    const unsigned length = in.p[0] & 31;
    if (length == 0) {
        out->size = 1;
        return 1;
    }
    const bool extend = in.p[0] >> 7;
    const unsigned time_bits = extend ? 8u * e->ts_bytes : 0;
    const unsigned odd = e->src_bits % 8 + e->type_bits; /* of these, `length` includes */
    const int rc = finish_frame(out, 1 + e->src_bits / 8 + time_bits / 8 + (size_t)length, in);
    if (rc < 0)
        return rc;
    size_t at = 8;
    out->src = (uint16_t)bits_at(in, at, e->src_bits);
    at += e->src_bits;
    out->has_time = time_bits > 0;
    out->time_bits = (uint8_t)time_bits;
    out->time = bits_at(in, at, time_bits);
    at += time_bits;
    const uint64_t type = bits_at(in, at, e->type_bits);
    at += e->type_bits;
    out->is_data = type & 1;
    out->is_bad = type > 3 || 8 * length < odd + 8;
    if (!out->is_bad)
        take_payload(out, in, at, (8 * length - odd) / 8);
    return rc;
}

static int read_smi(struct tl_etrace_frame *out, const struct tl_etrace_envelope *e,
                    struct tl_bytes in)
{
    const unsigned length = in.p[0] & 31, type = in.p[0] >> 5 & 3;
    if (in.p[0] == 0) {
        out->size = 1;
        return 1;
    }
    const unsigned tag = in.p[0] >> 7 ? 2 : 0, hart = (e->src_bits + 7u) / 8;
    const int rc = finish_frame(out, 1 + tag + hart + (size_t)length, in);
    if (rc < 0)
        return rc;
    out->has_time = tag > 0;
    out->time_bits = 16;
    out->time = bits_at(in, 8, 8 * tag);
    out->src = (uint16_t)bits_at(in, 8 * (1 + (size_t)tag), e->src_bits);
    out->is_data = type & 1;
    out->is_bad = type < 2 || length == 0;
    take_payload(out, in, 8 * (1 + (size_t)tag + hart), length);
    return rc;
}

static int read_indexed(struct tl_etrace_frame *out, struct tl_bytes in)
{
    const unsigned length = in.p[0] & 31;
    if (in.p[0] == 0) {
        out->size = 1;
        return 1;
    }
    out->is_bad = in.p[0] > 31 || length < 4;
    if (out->is_bad) {
        out->size = 1;
        return 1;
    }
    const int rc = finish_frame(out, length, in);
    if (rc < 0)
        return rc;
    out->index = tl_le16(in.p + 1);
    take_payload(out, in, 24, length - 3);
    return rc;
}

static int read_record(struct tl_etrace_frame *out, struct tl_bytes in)
{
    const int rc = finish_frame(out, RECORD, in);
    if (rc < 0)
        return rc;
    uint8_t bytes[RECORD];
    for (unsigned i = 0; i < RECORD; i++)
        bytes[i] = in.p[RECORD - 1 - i];
    const unsigned length = bytes[0] & 31;
    out->has_time = length > 0;
    out->time_bits = 64;
    out->time = tl_le64(bytes + 1);
    for (unsigned i = 9; length == 0 && i < RECORD; i++)
        out->is_bad |= bytes[i] != 0; /* a record that begins elsewhere */
    memcpy(out->bytes, bytes + 9, length);
    out->payload = (struct tl_bytes){out->bytes, length};
    return rc;
}

int tl_etrace_frame_read(struct tl_etrace_frame *out, const struct tl_etrace_envelope *e,
                         struct tl_bytes in)
{
    memset(out, 0, offsetof(struct tl_etrace_frame, bytes));
    if (in.n == 0)
        return TL_AGAIN;
    switch (e->wrapping) {
    case TL_ETRACE_SMI:
        return read_smi(out, e, in);
    case TL_ETRACE_INDEXED:
        return read_indexed(out, in);
    case TL_ETRACE_RECORDS:
        return read_record(out, in);
    default:
        return read_encap(out, e, in);
    }
}

/* The payload is then in `bytes`. */
void tl_etrace_frame_state(struct tl_etrace_frame *f, struct tl_state *s)
{
    uint32_t size = f->size;
    size_t n = f->payload.n;
    tl_state_u64(s, &f->offset);
    tl_state_u32(s, &size);
    tl_state_u16(s, &f->src);
    tl_state_u16(s, &f->index);
    tl_state_bool(s, &f->has_time);
    tl_state_u8(s, &f->time_bits, 64);
    tl_state_u64(s, &f->time);
    tl_state_size(s, &n, sizeof f->bytes);
    tl_state_check(s, n > 0);
    if (tl_state_loads(s))
        f->payload = (struct tl_bytes){f->bytes, n};
    tl_state_bytes(s, (uint8_t *)f->payload.p, n);
    f->size = size;
}
