/* SPDX-License-Identifier: MIT */
/*
 * Names of registers as stf_lib prints them: REG_5, REG_F5, REG_V5, PC, and CSRs by their names.
 * Source: RISC-V privileged architecture, "CSR Listing", and the addresses of ratified extensions.
 */
#include "base/search.h"
#include "stf/record.h"

#include <stdio.h>

/* A CSR, or a range of numbered ones. */
struct csr {
    uint16_t first, last;
    /* Of the first; in a range, %u is replaced by the number, counted from `base`. */
    const char *name;
    uint8_t base;
};

/* Sorted by address. */
static const struct csr csrs[] = {
    {0x001, 0x001, "FFLAGS", 0},
    {0x002, 0x002, "FRM", 0},
    {0x003, 0x003, "FCSR", 0},
    {0x008, 0x008, "VSTART", 0},
    {0x009, 0x009, "VXSAT", 0},
    {0x00a, 0x00a, "VXRM", 0},
    {0x00f, 0x00f, "VCSR", 0},
    {0x011, 0x011, "SSP", 0},
    {0x015, 0x015, "SEED", 0},
    {0x017, 0x017, "JVT", 0},
    {0x100, 0x100, "SSTATUS", 0},
    {0x102, 0x102, "SEDELEG", 0},
    {0x103, 0x103, "SIDELEG", 0},
    {0x104, 0x104, "SIE", 0},
    {0x105, 0x105, "STVEC", 0},
    {0x106, 0x106, "SCOUNTEREN", 0},
    {0x10a, 0x10a, "SENVCFG", 0},
    {0x10c, 0x10f, "SSTATEEN%u", 0},
    {0x114, 0x114, "SIEH", 0},
    {0x120, 0x120, "SCOUNTINHIBIT", 0},
    {0x140, 0x140, "SSCRATCH", 0},
    {0x141, 0x141, "SEPC", 0},
    {0x142, 0x142, "SCAUSE", 0},
    {0x143, 0x143, "STVAL", 0},
    {0x144, 0x144, "SIP", 0},
    {0x14d, 0x14d, "STIMECMP", 0},
    {0x14e, 0x14e, "SCTRCTL", 0},
    {0x14f, 0x14f, "SCTRSTATUS", 0},
    {0x150, 0x150, "SISELECT", 0},
    {0x151, 0x151, "SIREG", 0},
    {0x152, 0x153, "SIREG%u", 2},
    {0x154, 0x154, "SIPH", 0},
    {0x155, 0x157, "SIREG%u", 4},
    {0x15c, 0x15c, "STOPEI", 0},
    {0x15d, 0x15d, "STIMECMPH", 0},
    {0x15f, 0x15f, "SCTRDEPTH", 0},
    {0x180, 0x180, "SATP", 0},
    {0x181, 0x181, "SRMCFG", 0},
    {0x19a, 0x19a, "SENVCFG", 0}, /* address used in old traces */
    {0x200, 0x200, "VSSTATUS", 0},
    {0x204, 0x204, "VSIE", 0},
    {0x205, 0x205, "VSTVEC", 0},
    {0x214, 0x214, "VSIEH", 0},
    {0x240, 0x240, "VSSCRATCH", 0},
    {0x241, 0x241, "VSEPC", 0},
    {0x242, 0x242, "VSCAUSE", 0},
    {0x243, 0x243, "VSTVAL", 0},
    {0x244, 0x244, "VSIP", 0},
    {0x24d, 0x24d, "VSTIMECMP", 0},
    {0x24e, 0x24e, "VSCTRCTL", 0},
    {0x250, 0x250, "VSISELECT", 0},
    {0x251, 0x251, "VSIREG", 0},
    {0x252, 0x253, "VSIREG%u", 2},
    {0x254, 0x254, "VSIPH", 0},
    {0x255, 0x257, "VSIREG%u", 4},
    {0x25c, 0x25c, "VSTOPEI", 0},
    {0x25d, 0x25d, "VSTIMECMPH", 0},
    {0x280, 0x280, "VSATP", 0},
    {0x300, 0x300, "MSTATUS", 0},
    {0x301, 0x301, "MISA", 0},
    {0x302, 0x302, "MEDELEG", 0},
    {0x303, 0x303, "MIDELEG", 0},
    {0x304, 0x304, "MIE", 0},
    {0x305, 0x305, "MTVEC", 0},
    {0x306, 0x306, "MCOUNTEREN", 0},
    {0x308, 0x308, "MVIEN", 0},
    {0x309, 0x309, "MVIP", 0},
    {0x30a, 0x30a, "MENVCFG", 0},
    {0x30c, 0x30f, "MSTATEEN%u", 0},
    {0x310, 0x310, "MSTATUSH", 0},
    {0x312, 0x312, "MEDELEGH", 0},
    {0x313, 0x313, "MIDELEGH", 0},
    {0x314, 0x314, "MIEH", 0},
    {0x318, 0x318, "MVIENH", 0},
    {0x319, 0x319, "MVIPH", 0},
    {0x31a, 0x31a, "MENVCFGH", 0},
    {0x31c, 0x31f, "MSTATEEN%uH", 0},
    {0x320, 0x320, "MCOUNTINHIBIT", 0},
    {0x321, 0x321, "MCYCLECFG", 0},
    {0x322, 0x322, "MINSTRETCFG", 0},
    {0x323, 0x33f, "MHPMEVENT%u", 3},
    {0x340, 0x340, "MSCRATCH", 0},
    {0x341, 0x341, "MEPC", 0},
    {0x342, 0x342, "MCAUSE", 0},
    {0x343, 0x343, "MTVAL", 0},
    {0x344, 0x344, "MIP", 0},
    {0x34a, 0x34a, "MTINST", 0},
    {0x34b, 0x34b, "MTVAL2", 0},
    {0x34e, 0x34e, "MCTRCTL", 0},
    {0x350, 0x350, "MISELECT", 0},
    {0x351, 0x351, "MIREG", 0},
    {0x352, 0x353, "MIREG%u", 2},
    {0x354, 0x354, "MIPH", 0},
    {0x355, 0x357, "MIREG%u", 4},
    {0x35c, 0x35c, "MTOPEI", 0},
    {0x3a0, 0x3af, "PMPCFG%u", 0},
    {0x3b0, 0x3ef, "PMPADDR%u", 0},
    {0x5a8, 0x5a8, "SCONTEXT", 0},
    {0x600, 0x600, "HSTATUS", 0},
    {0x602, 0x602, "HEDELEG", 0},
    {0x603, 0x603, "HIDELEG", 0},
    {0x604, 0x604, "HIE", 0},
    {0x605, 0x605, "HTIMEDELTA", 0},
    {0x606, 0x606, "HCOUNTEREN", 0},
    {0x607, 0x607, "HGEIE", 0},
    {0x608, 0x608, "HVIEN", 0},
    {0x609, 0x609, "HVICTL", 0},
    {0x60a, 0x60a, "HENVCFG", 0},
    {0x60c, 0x60f, "HSTATEEN%u", 0},
    {0x612, 0x612, "HEDELEGH", 0},
    {0x613, 0x613, "HIDELEGH", 0},
    {0x615, 0x615, "HTIMEDELTAH", 0},
    {0x618, 0x618, "HVIENH", 0},
    {0x61a, 0x61a, "HENVCFGH", 0},
    {0x61c, 0x61f, "HSTATEEN%uH", 0},
    {0x643, 0x643, "HTVAL", 0},
    {0x644, 0x644, "HIP", 0},
    {0x645, 0x645, "HVIP", 0},
    {0x646, 0x647, "HVIPRIO%u", 1},
    {0x64a, 0x64a, "HTINST", 0},
    {0x655, 0x655, "HVIPH", 0},
    {0x656, 0x657, "HVIPRIO%uH", 1},
    {0x680, 0x680, "HGATP", 0},
    {0x6a8, 0x6a8, "HCONTEXT", 0},
    {0x721, 0x721, "MCYCLECFGH", 0},
    {0x722, 0x722, "MINSTRETCFGH", 0},
    {0x723, 0x73f, "MHPMEVENT%uH", 3},
    {0x740, 0x740, "MNSCRATCH", 0},
    {0x741, 0x741, "MNEPC", 0},
    {0x742, 0x742, "MNCAUSE", 0},
    {0x744, 0x744, "MNSTATUS", 0},
    {0x747, 0x747, "MSECCFG", 0},
    {0x757, 0x757, "MSECCFGH", 0},
    {0x7a0, 0x7a0, "TSELECT", 0},
    {0x7a1, 0x7a3, "TDATA%u", 1},
    {0x7a4, 0x7a4, "TINFO", 0},
    {0x7a5, 0x7a5, "TCONTROL", 0},
    {0x7a8, 0x7a8, "MCONTEXT", 0},
    {0x7aa, 0x7aa, "MSCONTEXT", 0},
    {0x7b0, 0x7b0, "DCSR", 0},
    {0x7b1, 0x7b1, "DPC", 0},
    {0x7b2, 0x7b3, "DSCRATCH%u", 0},
    {0xb00, 0xb00, "MCYCLE", 0},
    {0xb02, 0xb02, "MINSTRET", 0},
    {0xb03, 0xb1f, "MHPMCOUNTER%u", 3},
    {0xb80, 0xb80, "MCYCLEH", 0},
    {0xb82, 0xb82, "MINSTRETH", 0},
    {0xb83, 0xb9f, "MHPMCOUNTER%uH", 3},
    {0xc00, 0xc00, "CYCLE", 0},
    {0xc01, 0xc01, "TIME", 0},
    {0xc02, 0xc02, "INSTRET", 0},
    {0xc03, 0xc1f, "HPMCOUNTER%u", 3},
    {0xc20, 0xc20, "VL", 0},
    {0xc21, 0xc21, "VTYPE", 0},
    {0xc22, 0xc22, "VLENB", 0},
    {0xc80, 0xc80, "CYCLEH", 0},
    {0xc81, 0xc81, "TIMEH", 0},
    {0xc82, 0xc82, "INSTRETH", 0},
    {0xc83, 0xc9f, "HPMCOUNTER%uH", 3},
    {0xda0, 0xda0, "SCOUNTOVF", 0},
    {0xdb0, 0xdb0, "STOPI", 0},
    {0xe12, 0xe12, "HGEIP", 0},
    {0xeb0, 0xeb0, "VSTOPI", 0},
    {0xf11, 0xf11, "MVENDORID", 0},
    {0xf12, 0xf12, "MARCHID", 0},
    {0xf13, 0xf13, "MIMPID", 0},
    {0xf14, 0xf14, "MHARTID", 0},
    {0xf15, 0xf15, "MCONFIGPTR", 0},
    {0xfb0, 0xfb0, "MTOPI", 0},
};

/* Ranges reserved for custom use. */
static bool is_custom(uint16_t number)
{
    static const uint16_t ranges[][2] = {
        {0x5c0, 0x5ff}, {0x6c0, 0x6ff}, {0x7c0, 0x7ff}, {0x800, 0x8ff},
        {0x9c0, 0x9ff}, {0xac0, 0xaff}, {0xbc0, 0xbff}, {0xcc0, 0xcff},
        {0xdc0, 0xdff}, {0xec0, 0xeff}, {0xfc0, 0xfff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (number >= ranges[i][0] && number <= ranges[i][1])
            return true;
    }
    return false;
}

static bool is_below(const void *range, const void *number)
{
    return ((const struct csr *)range)->last < *(const uint16_t *)number;
}

static void csr_name(uint16_t number, char out[static TL_STF_REG_NAME])
{
    const size_t n = sizeof csrs / sizeof *csrs;
    const size_t i = tl_count_before(csrs, sizeof *csrs, n, is_below, &number);
    if (i == n || number < csrs[i].first) {
        snprintf(out, TL_STF_REG_NAME, "REG_CSR_%s_%x", is_custom(number) ? "NONST" : "UNK",
                 number);
        return;
    }
    const struct csr *const csr = &csrs[i];
    const char *const digits = strchr(csr->name, '%');
    if (digits)
        snprintf(out, TL_STF_REG_NAME, "REG_CSR_%.*s%u%s", (int)(digits - csr->name), csr->name,
                 (unsigned)(number - csr->first) + csr->base, digits + 2);
    else
        snprintf(out, TL_STF_REG_NAME, "REG_CSR_%s", csr->name);
}

char *tl_stf_reg_name(uint16_t number, uint8_t meta, char out[static TL_STF_REG_NAME])
{
    switch (meta & 15) {
    case TL_STF_REG_INT:
        if (number == 32)
            snprintf(out, TL_STF_REG_NAME, "PC");
        else
            snprintf(out, TL_STF_REG_NAME, "REG_%u", number);
        break;
    case TL_STF_REG_FP:
        snprintf(out, TL_STF_REG_NAME, "REG_F%u", number);
        break;
    case TL_STF_REG_VECTOR:
        snprintf(out, TL_STF_REG_NAME, "REG_V%u", number);
        break;
    case TL_STF_REG_CSR:
        csr_name(number, out);
        break;
    default:
        out[0] = 0;
        break;
    }
    return out;
}
