/* SPDX-License-Identifier: MIT */
/*
 * STF knows fewer levels and events than the architectures that it is used for, so each maps to the
 * nearest one. Interrupts and causes that STF does not know become an external interrupt, which may
 * come at any instruction.
 */
#include "stf/flow_map.h"

uint16_t tl_stf_map_isa(enum tl_isa isa)
{
    switch (isa) {
    case TL_ISA_A64:
    case TL_ISA_A32:
    case TL_ISA_T32:
        return TL_STF_ISA_ARM;
    case TL_ISA_RV32:
    case TL_ISA_RV64:
        return TL_STF_ISA_RISCV;
    case TL_ISA_X16:
    case TL_ISA_X32:
    case TL_ISA_X64:
        return TL_STF_ISA_X86;
    default:
        return TL_STF_ISA_OTHER;
    }
}

uint16_t tl_stf_map_iem(enum tl_isa isa)
{
    switch (isa) {
    case TL_ISA_A64:
    case TL_ISA_RV64:
    case TL_ISA_X64:
    case TL_ISA_NONE:
        return TL_STF_IEM_64;
    default:
        return TL_STF_IEM_32;
    }
}

enum tl_isa tl_stf_unmap_isa(uint16_t isa, uint16_t iem)
{
    const bool wide = iem == TL_STF_IEM_64;
    switch (isa) {
    case TL_STF_ISA_RISCV:
        return wide ? TL_ISA_RV64 : TL_ISA_RV32;
    case TL_STF_ISA_ARM:
        return wide ? TL_ISA_A64 : TL_ISA_A32;
    case TL_STF_ISA_X86:
        return wide ? TL_ISA_X64 : TL_ISA_X32;
    default:
        return wide ? TL_ISA_NONE : TL_ISA_OR1K;
    }
}

enum tl_isa tl_stf_isa_by_iem(enum tl_isa isa, uint16_t iem)
{
    return tl_stf_map_iem(isa) == iem ? isa : tl_stf_unmap_isa(tl_stf_map_isa(isa), iem);
}

enum tl_arch tl_stf_arch(enum tl_isa isa)
{
    switch (isa) {
    case TL_ISA_RV32:
    case TL_ISA_RV64:
        return TL_ARCH_RISCV;
    case TL_ISA_X16:
    case TL_ISA_X32:
    case TL_ISA_X64:
        return TL_ARCH_X86;
    case TL_ISA_OR1K:
        return TL_ARCH_OR1K;
    default:
        return TL_ARCH_ARM;
    }
}

unsigned tl_stf_map_level(uint64_t mode)
{
    const unsigned level = tl_mode_privilege(mode);
    if (tl_mode_arch(mode) == TL_ARCH_RISCV && level == 5)
        return 1; /* VS */
    if (level > 3)
        return 0; /* unknown: user, which readers assume without any event */
    return tl_mode_arch(mode) == TL_ARCH_X86 ? 3 - level : level;
}

uint64_t tl_stf_unmap_level(unsigned level, enum tl_isa isa)
{
    const enum tl_arch arch = tl_stf_arch(isa);
    if (level > 3)
        level = 15;
    else if (arch == TL_ARCH_X86)
        level = 3 - level;
    return tl_mode(arch, level, TL_SEC_NONE, isa);
}

/*
 * Map ETMv4 exception numbers, A and R profile, to the nearest STF event. Source: Arm IHI 0064,
 * "Exception instruction trace packet", TYPE.
 */
static uint64_t map_arm(unsigned level, unsigned number)
{
    switch (number) {
    case 1: /* debug halt */
    case 6: /* instruction debug */
    case 7: /* data debug */
        return 3;
    case 2: /* call: SVC, HVC, SMC */
        return 8 + level;
    case 4: /* system error */
        return 5;
    case 10: /* alignment */
        return 4;
    case 11: /* instruction fault */
        return 12;
    case 12: /* data fault */
        return 13;
    case 14: /* IRQ */
        return TL_STF_EVENT_INTERRUPT | 11;
    case 15: /* FIQ */
        return TL_STF_EVENT_INTERRUPT | 10;
    default:
        return number < 16 ? 2 : TL_STF_EVENT_INTERRUPT | 11;
    }
}

uint64_t tl_stf_map_exception(enum tl_arch arch, unsigned level, unsigned number)
{
    if (arch == TL_ARCH_ARM)
        return map_arm(level, number);
    if (arch == TL_ARCH_RISCV) {
        const uint64_t cause = (number & 0x8000 ? TL_STF_EVENT_INTERRUPT : 0) | (number & 0x7fff);
        return tl_stf_event_name(cause) ? cause : TL_STF_EVENT_INTERRUPT | 11;
    }
    return TL_STF_EVENT_INTERRUPT | 11;
}
