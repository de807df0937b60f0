/* SPDX-License-Identifier: MIT */
/*
 * Search for accesses to memory, wherever a stream tells them: notes of an ETMv3's data trace,
 * events of a DWT, records of pushed STF. Hits of all three have one text:
 *
 *   write 0x5 by SysTick_Handler+0x4 at 0x20000100, 4 bytes: ticks = 5 (uint32_t)
 *
 * what is not known is left out, and a part of an address as "0xxxxx0100".
 */
#ifndef TL_QUERY_SEEK_DATA_H
#define TL_QUERY_SEEK_DATA_H

#include "query/seek.h"

/* Parse what is behind "data:" or "written:": a variable's name, ADDR, or FROM:TO. TL_USAGE:
 * neither; TL_NOMEM. */
TL_MUST_USE int tl_sought_data(struct tl_sought *sought, const char *text, bool written,
                               struct tl_fail *fail);

/* Must what was pushed as STF be looked through? Accesses are records of other tools' instructions.
 */
bool tl_seek_is_of_records(const struct tl_seek *seek);

/* Report the accesses that item `i` of the walk tells. */
TL_MUST_USE int tl_seek_data(struct tl_seek *seek, size_t i, struct tl_fail *fail);

#endif
