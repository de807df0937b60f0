/* SPDX-License-Identifier: MIT */
/*
 * A made-up trace format for A64 programs, as an example of how to add a format: synchronisation,
 * bits and addresses. HACKING.md walks through it.
 *
 * - 01 to 7f: outcomes of conditional branches (1: taken), in the bits below the highest set bit,
 *   the oldest in bit 0
 * - 80 A*8: the next indirect branch goes to address A
 * - c0 'TOY' A*8: synchronisation: execution is at address A
 *
 * Addresses have 8 bytes, little-endian.
 */
#ifndef TL_TOY_H
#define TL_TOY_H

#include "decode/ops.h"

#define TOY_ADDRESS   0x80
#define TOY_SYNC      "\xc0TOY"
#define TOY_SYNC_SIZE 12u /* bytes */
#define TOY_BITS      6u  /* maximum in a packet */

#define TL_PROTO_TOY TL_PROTOCOLS

extern const struct tl_stream_ops tl_toy_ops;

#endif
