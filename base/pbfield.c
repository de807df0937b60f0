/* SPDX-License-Identifier: MIT */
/*
 * Fields are views of the message, and every length is checked against what is left of it: messages
 * come from the network. A field that was not asked for is reported, so that a caller can leave
 * unusual messages to a complete parser.
 */
#include "base/pbfield.h"

static bool take_varint(struct tl_bytes *in, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; in->n && shift < 64; shift += 7) {
        const uint8_t b = *in->p++;
        in->n--;
        if (shift == 63 && b > 1)
            return false;
        value |= (uint64_t)(b & 127) << shift;
        if (b < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct tl_bytes *in, uint64_t n, struct tl_bytes *out)
{
    if (n > in->n)
        return false;
    *out = (struct tl_bytes){in->p, (size_t)n};
    in->p += n;
    in->n -= (size_t)n;
    return true;
}

bool tl_pbfield_take(struct tl_bytes *in, struct tl_pbfield *out)
{
    *out = (struct tl_pbfield){0};
    if (!take_varint(in, &out->key))
        return false;
    switch (out->key & 7) {
    case TL_PB_VARINT:
        return take_varint(in, &out->value);
    case TL_PB_BYTES:
        return take_varint(in, &out->value) && take_bytes(in, out->value, &out->bytes);
    case TL_PB_FIXED32:
        if (!take_bytes(in, 4, &out->bytes))
            return false;
        out->value = tl_le32(out->bytes.p);
        return true;
    case TL_PB_FIXED64:
        if (!take_bytes(in, 8, &out->bytes))
            return false;
        out->value = tl_le64(out->bytes.p);
        return true;
    default: /* groups are not used */
        return false;
    }
}

bool tl_pbfield_pick(struct tl_bytes message, const uint64_t *keys, size_t n_keys,
                     struct tl_pbfield *out, bool *others)
{
    struct tl_pbfield field;
    *others = false;
    memset(out, 0, n_keys * sizeof *out);
    while (message.n) {
        size_t i = 0;
        if (!tl_pbfield_take(&message, &field))
            return false;
        while (i < n_keys && keys[i] != field.key)
            i++;
        *others = *others || i == n_keys || out[i].key;
        if (i < n_keys)
            out[i] = field;
    }
    return true;
}

size_t tl_pb_put_varint(uint8_t out[static TL_PB_VARINT_MAX], uint64_t value)
{
    size_t n = 0;
    for (; value >= 128; value >>= 7)
        out[n++] = (uint8_t)(value | 128);
    out[n++] = (uint8_t)value;
    return n;
}
