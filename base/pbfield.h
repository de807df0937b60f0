/* SPDX-License-Identifier: MIT */
/*
 * Fields of a protobuf message, without copying: for the few messages that carry a lot of data,
 * which protobuf-c would copy. Pure functions, thread-safe.
 * Source: Protocol Buffers, "Encoding".
 */
#ifndef TL_BASE_PBFIELD_H
#define TL_BASE_PBFIELD_H

#include "base/bytes.h"

#include <stdbool.h>

enum { TL_PB_VARINT = 0, TL_PB_FIXED64 = 1, TL_PB_BYTES = 2, TL_PB_FIXED32 = 5 };

struct tl_pbfield {
    uint64_t key;          /* TL_PB_KEY() */
    uint64_t value;        /* of a number */
    struct tl_bytes bytes; /* of TL_PB_BYTES, borrowed from the message */
};

/* Number and wire type of a field, as encoded before it. */
#define TL_PB_KEY(number, type) ((number) << 3 | (type))

/* The longest encoding of a number. */
#define TL_PB_VARINT_MAX 10

/* Encode a number, a key or a length. Returns how many bytes it takes. */
size_t tl_pb_put_varint(uint8_t out[static TL_PB_VARINT_MAX], uint64_t value);

/* Take the first field off `in`. False: the bytes do not begin with a complete field. */
bool tl_pbfield_take(struct tl_bytes *in, struct tl_pbfield *out);

/*
 * The fields of a message that have these keys: of each the last one, or an empty one. `*others`:
 * there are more, repeated ones included. False: it is no message.
 */
bool tl_pbfield_pick(struct tl_bytes message, const uint64_t *keys, size_t n_keys,
                     struct tl_pbfield *out, bool *others);

#endif
