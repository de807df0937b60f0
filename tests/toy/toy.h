/* SPDX-License-Identifier: MIT */
/*
 * A made-up trace format of A64 programs, as an example of how a format is added: synchronisation,
 * bits and addresses. HACKING.md walks through it.
 *
 *   01 to 7f     bits of conditional branches below the highest bit that is set, the oldest in
 *                bit 0; 1: taken
 *   80 A*8       the next branch that is indirect leads to address A
 *   c0 'TOY' A*8 synchronisation: execution is at address A
 *
 * Addresses have 8 bytes, the lowest first.
 */
#ifndef TL_TOY_H
#define TL_TOY_H

#include "decode/ops.h"

#define TOY_ADDRESS   0x80
#define TOY_SYNC      "\xc0TOY"
#define TOY_SYNC_SIZE 12u /* bytes */
#define TOY_BITS      6u  /* of a packet, at most */

#define TL_PROTO_TOY TL_PROTOCOLS

extern const struct tl_stream_ops tl_toy_ops;

#endif
