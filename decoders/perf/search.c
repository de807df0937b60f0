/* SPDX-License-Identifier: MIT */
/*
 * A header alone is too weak a sign, since eight bytes of trace often look like one; the chain of
 * sizes that must lead from record to record is not met by chance. A record whose size does not
 * lead to the next one decides by its fields, or rules the place out.
 */
#include "perf/search.h"

#include "perf/reader.h"

/* Types of the kernel, up to CALLCHAIN_DEFERRED, and of perf, up to COMPRESSED2 and its successor.
 */
static bool is_known(uint32_t type)
{
    return (type >= 1 && type <= 22) || (type >= TL_PERF_FROM_KERNEL && type <= 84);
}

/* An AUXTRACE record of `size` bytes, with all of its trace within `room`. */
static bool is_area(bool swap, const uint8_t *p, uint64_t room)
{
    const uint64_t bytes = tl_perf_u64(swap, p + TL_PERF_RECORD_HEADER);
    const int32_t tid = (int32_t)tl_perf_u32(swap, p + 36),
                  cpu = (int32_t)tl_perf_u32(swap, p + 40);
    return tl_perf_u16(swap, p + 4) == 0 && tl_perf_u16(swap, p + 6) == TL_PERF_AREA_RECORD &&
           bytes <= room - TL_PERF_AREA_RECORD && tid >= -1 && cpu >= -1 &&
           tl_perf_u32(swap, p + 44) == 0;
}

enum tl_perf_found tl_perf_search(bool swap, struct tl_bytes in, uint64_t room)
{
    size_t at = 0;
    for (unsigned n = 0; n < TL_PERF_CHAIN; n++) {
        if (at == room)
            return n > 0 ? TL_PERF_RECORD : TL_PERF_NO_RECORD;
        if (room - at < TL_PERF_RECORD_HEADER)
            return TL_PERF_NO_RECORD;
        if (in.n - at < TL_PERF_RECORD_HEADER)
            return TL_PERF_MORE_NEEDED;
        const uint32_t type = tl_perf_u32(swap, in.p + at);
        const size_t size = tl_perf_u16(swap, in.p + at + 6);
        if (!is_known(type) || size < TL_PERF_RECORD_HEADER || size > room - at ||
            (size % 8 != 0 && type != TL_PERF_COMPRESSED))
            return TL_PERF_NO_RECORD;
        if (type == TL_PERF_TRACING_DATA) /* its size is not all of it */
            return TL_PERF_NO_RECORD;
        if (type == TL_PERF_AUXTRACE && size != TL_PERF_AREA_RECORD)
            return TL_PERF_NO_RECORD;
        if (size > in.n - at)
            return TL_PERF_MORE_NEEDED;
        if (type == TL_PERF_AUXTRACE)
            return is_area(swap, in.p + at, room - at) ? TL_PERF_RECORD : TL_PERF_NO_RECORD;
        at += size;
    }
    return TL_PERF_RECORD;
}
