/* SPDX-License-Identifier: MIT */
/* Properties of packets and instructions that determine which instruction a packet binds to. Pure
 * functions. */
#ifndef TL_PT_BINDING_H
#define TL_PT_BINDING_H

#include "isa/x86.h"
#include "pt/packet.h"

/* Instruction set (enum tl_isa) of a MODE.Exec packet; TL_ISA_NONE: reserved combination. */
static inline uint8_t tl_pt_exec_isa(const struct tl_pt_packet *p)
{
    return p->exec.csl ? (p->exec.csd ? TL_ISA_NONE : TL_ISA_X64)
                       : (p->exec.csd ? TL_ISA_X32 : TL_ISA_X16);
}

static inline bool tl_pt_is_far(const struct tl_x86_insn *x)
{
    return x->class == TL_X86_FAR_CALL || x->class == TL_X86_FAR_RETURN ||
           x->class == TL_X86_FAR_JUMP;
}

static inline bool tl_pt_changes_cr3(const struct tl_x86_insn *x)
{
    return x->special == TL_X86_MOV_CR3;
}

static inline bool tl_pt_binds_pip(const struct tl_x86_insn *x)
{
    return tl_pt_is_far(x) || tl_pt_changes_cr3(x) || x->special == TL_X86_VM_ENTRY;
}

static inline bool tl_pt_binds_vmcs(const struct tl_x86_insn *x)
{
    return tl_pt_is_far(x) || x->special == TL_X86_VMPTRLD || x->special == TL_X86_VM_ENTRY;
}

static inline bool tl_pt_is_ptwrite(const struct tl_x86_insn *x)
{
    return x->class == TL_X86_PTWRITE;
}

static inline bool tl_pt_is_iret(const struct tl_x86_insn *x)
{
    return x->special == TL_X86_IRET || x->special == TL_X86_SYSRET ||
           x->special == TL_X86_SYSEXIT || x->special == TL_X86_ERET;
}

static inline bool tl_pt_is_vmentry(const struct tl_x86_insn *x)
{
    return x->special == TL_X86_VM_ENTRY;
}

static inline bool tl_pt_is_uiret(const struct tl_x86_insn *x)
{
    return x->special == TL_X86_UIRET;
}

/* Is it a direct jump or call, for which no packet is sent? JMPABS has a TIP. */
static inline bool tl_pt_is_unreported(const struct tl_x86_insn *x)
{
    return x->direct && ((x->class == TL_X86_JUMP && !x->absolute) || x->class == TL_X86_CALL);
}

#endif
