/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets as text, one line each:
 *
 *   offset id NAME field=value…
 *
 * offset is decimal, id (the CPU) two hex digits. Names are those of the manual: TNT.8, TIP.PGE,
 * MODE.Exec, … Fields, where the packet has them:
 *   bits=TNT           branch outcomes, oldest first
 *   ipc=N payload=0x…  IPBytes and the IP's bytes, of TIP, TIP.PGE, TIP.PGD, FUP
 *   csl=N csd=N if=N   intx=N abrt=N    execution mode; transactions
 *   tsc=0x… ctc=0x… fc=0x… cyc=N ratio=N     times
 *   cr3=0x… nr=N base=0x…              address space
 *   ip=1               a FUP belongs to it (EXSTOP, PTW, CFE, TRIG)
 *   hints=0x… ext=0x… state=N sub=N hw=N last=N deepest=N wake=0x…    power
 *   payload=0x… type=N vector=N trbv=0x… mult=N icnt=N    software, events, triggers
 *
 * Pure functions, thread-safe.
 *
 * Source: Intel SDM volume 3, "Intel Processor Trace", Trace Packets and Data Types.
 */
#ifndef TL_PT_PACKET_TEXT_H
#define TL_PT_PACKET_TEXT_H

#include "pt/packet.h"

#define TL_PT_TEXT_MAX 160 /* maximum length of a line, including its NUL */

/* Name of an enum tl_pt_kind, e.g. "TIP.PGE". Static storage. */
const char *tl_pt_packet_name(unsigned kind);

/* Write the line, without a line end, to `out`; returns its length. */
size_t tl_pt_packet_text(char out[static TL_PT_TEXT_MAX], const struct tl_pt_packet *packet,
                         unsigned id);

#endif
