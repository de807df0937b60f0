/* SPDX-License-Identifier: MIT */
/*
 * Registers that a source lacks have the values of a common trace unit, because many captures come
 * without them and every packet needs the field widths. Data trace is refused: its P0 elements
 * cannot be followed in the instruction stream alone.
 */
#include "etm4/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Values of registers that a source does not specify: a common ETMv4 for a 64-bit core. */
#define DEFAULT_IDR0    0x28000ea1u /* COMMOPT, TRCCCI, return stack, 64-bit timestamps */
#define DEFAULT_IDR1    0x4100f403u /* ETMv4.0 */
#define DEFAULT_IDR2    0x00000488u /* 64-bit addresses, 32-bit context ID, 8-bit VMID */
#define DEFAULT_DEVARCH 0x47705a13u /* ETE 1.0 */

#define VERSION_4_0 0x40
#define VERSION_4_3 0x43
#define VERSION_ETE 0x50

static uint32_t field(uint64_t value, unsigned high, unsigned low)
{
    return (uint32_t)(value >> low) & ((1u << (high - low + 1)) - 1);
}

/* Does "Cortex-X<number>" denote a core older than Armv8? */
static bool is_before_v8(char profile, int number)
{
    if (profile == 'A')
        return number < 32; /* A5, A7, A8, A9, A12, A15, A17 */
    if (profile == 'R')
        return number < 52; /* R4, R5, R7, R8 */
    return number < 23;     /* M0, M1, M3, M4, M7 */
}

/* "Cortex-A53", "Cortex-M33", "ARMv8.1-M", "ARM-AA64", "ARM-AA64-R" */
static void take_core(struct tl_etm4_config *out, const char *core)
{
    char profile = 'A';
    bool v8 = true;
    bool aarch64 = true;

    if (strncasecmp(core, "Cortex-", 7) == 0) {
        const int number = atoi(core + 8);
        profile = (char)toupper((unsigned char)core[7]);
        v8 = !is_before_v8(profile, number);
        aarch64 = v8 && profile == 'A' && number != 32;
    } else if (strncasecmp(core, "ARMv", 4) == 0) {
        const char *dash = strrchr(core, '-');
        v8 = atoi(core + 4) >= 8;
        if (dash != NULL)
            profile = (char)toupper((unsigned char)dash[1]);
        aarch64 = v8 && profile == 'A';
    } else if (strncasecmp(core, "ARM-AA64-", 9) == 0) {
        profile = (char)toupper((unsigned char)core[9]);
    }
    out->m_profile = profile == 'M';
    out->v8 = v8;
    out->aarch64 = aarch64 && profile != 'M';
}

static uint8_t vmid_bytes(uint64_t idr2, unsigned version)
{
    const uint32_t size = field(idr2, 14, 10);
    if (size == 1)
        return 1;
    if (version > VERSION_4_0 && (size == 2 || size == 4))
        return (uint8_t)size;
    return 0;
}

void tl_etm4_config_init(struct tl_etm4_config *out, const struct tl_source *source)
{
    const uint64_t configr = tl_source_reg(source, "TRCCONFIGR", 0);
    const uint64_t idr0 = tl_source_reg(source, "TRCIDR0", DEFAULT_IDR0);
    const uint64_t idr1 = tl_source_reg(source, "TRCIDR1", DEFAULT_IDR1);
    const uint64_t idr2 = tl_source_reg(source, "TRCIDR2", DEFAULT_IDR2);
    const uint64_t devarch = tl_source_reg(source, "TRCDEVARCH", DEFAULT_DEVARCH);

    memset(out, 0, sizeof *out);
    take_core(out, source->core);
    out->since = source->since;
    out->other_clock = source->other_clock;
    out->ete = source->protocol == TL_PROTO_ETE;
    out->version = out->ete ? (uint8_t)(field(devarch, 15, 12) << 4 | field(devarch, 19, 16))
                            : (uint8_t)(field(idr1, 11, 8) << 4 | field(idr1, 7, 4));
    out->trace_id = (uint8_t)field(tl_source_reg(source, "TRCTRACEIDR", source->id), 6, 0);

    out->vmid_bytes = vmid_bytes(idr2, out->version);
    out->context_bytes = field(idr2, 9, 5) == 4 ? 4 : 0;
    out->address_bits = field(idr2, 4, 0) == 8 ? 64 : 32;
    out->cycle_bits = (uint8_t)(field(idr2, 28, 25) + 12);
    out->commit_opt1 = field(idr0, 29, 29) && field(idr0, 7, 7);
    out->conditional = field(idr0, 6, 6) && field(configr, 10, 8);
    out->data_trace = field(idr0, 4, 3) == 3 && field(configr, 2, 1) && field(configr, 17, 16);
    out->q_elements = field(idr0, 16, 15) != 0;

    out->load_store_p0 = field(configr, 2, 1) != 0;
    out->branch_broadcast = field(configr, 3, 3);
    out->cycle_count = field(configr, 4, 4);
    out->timestamps = field(configr, 11, 11);
    out->return_stack = field(configr, 12, 12);
    out->ts_marker = out->version >= VERSION_ETE + 1 && field(idr0, 23, 23);
    out->trans_p0 = !field(idr0, 30, 30);
    out->wfx_branch = out->version >= VERSION_4_3 && field(idr2, 31, 31);
    out->max_spec_depth = (uint32_t)tl_source_reg(source, "TRCIDR8", 0);
}

int tl_etm4_config_check(const struct tl_etm4_config *config, struct tl_fail *fail)
{
    if (config->load_store_p0 || config->data_trace)
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "TRCCONFIGR turns data trace on: the instruction stream alone cannot "
                           "be followed; clear INSTP0, DA and DV when tracing");
    return TL_OK;
}
