/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 and ETE packets as text, one line each:
 *
 *   offset id NAME field=value…
 *
 * offset is decimal, id two hex digits. Names are those of the listings that Arm's reference
 * decoder prints (including its I_SCR_ADDR_L_32IS0). Fields, where the packet has them:
 *   addr=0x…  resolved address      match=N   exact match with address register N
 *   el=N sf=N ns=N nse=N            ctxid=0x… vmid=0x…
 *   atoms=EEN oldest first          ts=N cc=N timestamp and cycle count, decimal
 *   commit=N cancel=N count=N       elements committed, cancelled; instructions of a Q packet
 *   type=0xN ret=N                  exception type and E1:E0
 *   info=0xN spec=N threshold=N window=N    trace info
 *   event=0xN value=0xN bytes=N             event bits, payload, bytes skipped
 *
 * Pure functions, thread-safe.
 */
#ifndef TL_ETM4_PACKET_TEXT_H
#define TL_ETM4_PACKET_TEXT_H

#include "etm4/packet.h"

#include <stddef.h>

#define TL_ETM4_TEXT_MAX 320 /* maximum length of a line, including its NUL */

/* Name of the packet, e.g. "I_ATOM_F3". Static storage. */
const char *tl_etm4_packet_name(const struct tl_etm4_packet *packet);

/* Write the line, without a line end, to `out`; returns its length. */
size_t tl_etm4_packet_text(char out[static TL_ETM4_TEXT_MAX], const struct tl_etm4_packet *packet,
                           unsigned id);

#endif
