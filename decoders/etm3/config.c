/* SPDX-License-Identifier: MIT */
/*
 * Reads the registers of an ETMv3 or PTM. Everything that decoding depends on is decided here, so
 * that the other files ask no register.
 */
#include "etm3/config.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Values of registers that a source does not specify: units without options. */
#define DEFAULT_ETM_IDR                                                                            \
    0x4114f250u /* ETMv3.5 with the alternative branch encoding: Cortex-M3, M4 */
#define DEFAULT_PTM_IDR 0x411cf312u /* PFT1.1: Cortex-A15 */

static bool bit(uint64_t value, unsigned n)
{
    return value >> n & 1;
}

static bool is_m_profile(const char *core)
{
    if (strncasecmp(core, "Cortex-", 7) == 0)
        return toupper((unsigned char)core[7]) == 'M';
    const char *const dash = strrchr(core, '-');
    return strncasecmp(core, "ARMv", 4) == 0 && dash && toupper((unsigned char)dash[1]) == 'M';
}

/* Timestamps: PFT 1.0 has neither of the two bits, and counts in 48 Gray-coded bits. */
static void take_time(struct tl_etm3_config *out, uint64_t ccer)
{
    const bool old = out->ptm && out->minor == 0;
    out->gray = old || !bit(ccer, 28);
    out->time_bits = !old && bit(ccer, 29) ? 64 : 48;
}

void tl_etm3_config_init(struct tl_etm3_config *out, const struct tl_source *source)
{
    static const uint8_t context_bytes[] = {0, 1, 2, 4};
    const bool ptm = source->protocol == TL_PROTO_PTM;
    const uint64_t cr = tl_source_reg(source, "ETMCR", 0);
    const uint64_t ccer = tl_source_reg(source, "ETMCCER", 1u << 28);
    const uint64_t idr = tl_source_reg(source, "ETMIDR", ptm ? DEFAULT_PTM_IDR : DEFAULT_ETM_IDR);

    *out = (struct tl_etm3_config){
        .ptm = ptm,
        .minor = (uint8_t)(idr >> 4 & 15),
        .trace_id = (uint8_t)(tl_source_reg(source, "ETMTRACEIDR", source->id) & 0x7f),
        .m_profile = is_m_profile(source->core),
        .context_bytes = context_bytes[cr >> 14 & 3],
        .cycle_accurate = bit(cr, 12),
        .timestamps = bit(cr, 28),
        .since = source->since,
        .other_clock = source->other_clock,
    };
    take_time(out, ccer);
    if (ptm) {
        /* With branch broadcast (bit 8) every target is sent. */
        out->return_stack = bit(cr, 29) && bit(ccer, 23) && !bit(cr, 8);
        out->barrier_waypoints = bit(ccer, 24);
    } else {
        out->alternative_branch = bit(idr, 20) && out->minor >= 4;
        /* Processors before Thumb-2; all Cortex have it. */
        out->halves = !bit(idr, 18) && strncasecmp(source->core, "Cortex", 6) != 0;
        out->data_values = bit(cr, 2);
        out->data_addresses = bit(cr, 3);
        out->data_only = bit(cr, 20);
    }
}
