/* SPDX-License-Identifier: MIT */
#ifndef TL_DECODE_REGISTRY_H
#define TL_DECODE_REGISTRY_H

#include "decode/ops.h"

/* The decoder of one source's bytes, or NULL where the protocol is not supported. */
const struct tl_stream_ops *tl_stream_ops_of(enum tl_protocol protocol);

#endif
