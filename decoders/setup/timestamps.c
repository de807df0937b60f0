/* SPDX-License-Identifier: MIT */
/*
 * Tells whether a source has timestamps, by its trace unit's control register. Without the register
 * it may have them, which is the cautious answer: a decode then looks for them.
 */
#include "setup/timestamps.h"

/* Source: Arm IHI0014Q 3.5.1 (ETMCR, bit 28); IHI0064H 7.3.5 (TRCCONFIGR, bit 11); DDI0403E C1.7.6
 * (ITM_TCR, bits 11:10). */
static bool has_timestamps(const struct tl_source *source)
{
    const uint64_t all = UINT64_MAX;
    switch (source->protocol) {
    case TL_PROTO_MTB:
        return false;
    case TL_PROTO_ETM3:
    case TL_PROTO_PTM:
        return tl_source_reg(source, "ETMCR", all) >> 28 & 1;
    case TL_PROTO_ETM4:
    case TL_PROTO_ETE:
        return tl_source_reg(source, "TRCCONFIGR", all) >> 11 & 1;
    case TL_PROTO_ITM:
        return (tl_source_reg(source, "ITMTCR", tl_source_reg(source, "CONTROL_REGISTER", all)) >>
                    10 &
                3) != 0;
    default:
        return true;
    }
}

/* Does an ITM's register say that its times are global ones? */
static bool is_global(const struct tl_source *source)
{
    const bool told = tl_source_reg(source, "ITMTCR", UINT64_MAX) != UINT64_MAX ||
                      tl_source_reg(source, "CONTROL_REGISTER", UINT64_MAX) != UINT64_MAX;
    return source->protocol == TL_PROTO_ITM && told && has_timestamps(source);
}

bool tl_source_is_timed(const struct tl_setup *setup, const struct tl_source *source)
{
    if (!tl_protocol_has_own_clock(source->protocol) || is_global(source))
        return true;
    for (size_t i = 0; i < setup->n_sources; i++)
        if (setup->sources[i].protocol != source->protocol && has_timestamps(&setup->sources[i]))
            return false;
    return true;
}
