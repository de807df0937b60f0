/* SPDX-License-Identifier: MIT */
/*
 * Flow items for the call stack: what they say about how control moved, or who runs. Apart from
 * blocks they are rare, or come from sources without instructions that classify branches
 * themselves.
 */
#include "base/hash.h"
#include "flow/callstack_parts.h"
#include "flow/hardware.h"
#include "image/vectors.h"

#define SEARCH 64 /* number of frames searched for a call's address */

static uint32_t function_at(const struct tl_callstack *cs, uint64_t pc)
{
    const int64_t i = cs->image ? tl_image_symbol_index(cs->image, pc) : -1;
    return i < 0 ? TL_NO_FUNCTION : (uint32_t)i;
}

/* ---- branches without instructions ---------------------------------------------------------- */

#define CALL_BYTES 8 /* maximum bytes of a call and its delay slot */

static bool is_entry(const struct tl_callstack *cs, uint64_t pc)
{
    const struct tl_symbol *const symbol = cs->image ? tl_image_symbol_at(cs->image, pc) : NULL;
    return symbol && symbol->address == pc;
}

/* Frames of such calls store the address of the call as return address: its length is unknown. */
static int enter(struct tl_callstack *cs, const struct tl_item *item, uint32_t function)
{
    return tl_callstack_enter(
        cs, &(struct tl_frame){.pc = item->value,
                               .return_pc = item->flags & TL_ITEM_HAS_PC ? item->pc : 0,
                               .function = function,
                               .kind = TL_FRAME_CALL});
}

/* Depth of the frame called from just before `pc`; 0: none. */
static uint32_t find_site(const struct tl_callstack *cs, uint64_t pc)
{
    for (uint32_t i = cs->depth, looked = 0; i > 0 && looked < SEARCH; i--, looked++) {
        const struct tl_frame *const f = &cs->frames[i - 1];
        if (f->kind != TL_FRAME_ROOT && pc - f->return_pc <= CALL_BYTES)
            return i;
    }
    return 0;
}

/* A branch that the source classifies as a call may be a plain jump. */
static int branch_call(struct tl_callstack *cs, const struct tl_item *item)
{
    const uint64_t pc = item->value;
    const uint32_t function = function_at(cs, pc);
    if (!(item->flags & TL_ITEM_HAS_PC))
        return enter(cs, item, function);
    if (function == TL_NO_FUNCTION) {
        /* The same call again, without a return: a loop. */
        const struct tl_frame *const f = tl_callstack_top(cs);
        return f->pc == pc && f->return_pc == item->pc ? TL_OK : enter(cs, item, function);
    }
    return is_entry(cs, pc) ? enter(cs, item, function) : tl_callstack_settle(cs, pc, function);
}

/* A branch that the source classifies as a return may be any indirect jump or call. */
static int branch_return(struct tl_callstack *cs, const struct tl_item *item)
{
    const uint64_t pc = item->value;
    if (cs->deeper) {
        cs->deeper--;
        return TL_OK;
    }
    if (!(item->flags & TL_ITEM_HAS_PC))
        return cs->depth ? tl_callstack_unwind(cs, cs->depth - 1) : TL_OK;
    const uint32_t function = function_at(cs, pc);
    const uint32_t returned = find_site(cs, pc);
    if (returned) {
        const int rc = tl_callstack_unwind(cs, returned - 1);
        return rc < 0 ? rc : tl_callstack_settle(cs, pc, function);
    }
    if (is_entry(cs, pc) || (function == TL_NO_FUNCTION && cs->depth > 1))
        return enter(cs, item, function);
    if (function == cs->function)
        return TL_OK; /* a jump within a function, or a return of the outermost one */
    return tl_callstack_return_unknown(cs, pc, function, cs->depth);
}

/* The instruction at pc was executed: update the current function. */
static int branch_from(struct tl_callstack *cs, uint64_t pc)
{
    const uint32_t function = function_at(cs, pc);
    const enum tl_leave how = cs->how;
    cs->how = TL_LEAVE_STRAIGHT;
    if (how == TL_LEAVE_LOST)
        return tl_callstack_resume(cs, pc, function);
    return function == TL_NO_FUNCTION && cs->depth ? TL_OK : tl_callstack_settle(cs, pc, function);
}

/* Flow without instructions: the source itself classifies calls and returns. */
static int take_branch(struct tl_callstack *cs, const struct tl_item *item)
{
    if (!(item->flags & (TL_ITEM_CALL | TL_ITEM_RETURN))) {
        const uint64_t pc = tl_item_address(item);
        if (cs->how == TL_LEAVE_EXCEPTION || cs->how == TL_LEAVE_EXCEPTION_RETURN)
            return tl_callstack_go(cs, pc, function_at(cs, pc));
        return TL_OK; /* unknown whether it is a call, return or jump */
    }
    const int rc = item->flags & TL_ITEM_HAS_PC ? branch_from(cs, item->pc) : TL_OK;
    if (rc < 0)
        return rc;
    return item->flags & TL_ITEM_CALL ? branch_call(cs, item) : branch_return(cs, item);
}

/* ---- other items ----------------------------------------------------------------------------- */

/*
 * Without an instruction since the last exception return, its handler has ended: what it
 * interrupted is interrupted again, at an address that is often not told (tail-chaining). Without
 * one since an exception, that one's handler has not begun: it begins later, by another exception.
 */
static int take_exception(struct tl_callstack *cs, const struct tl_item *item)
{
    const bool told = item->flags & TL_ITEM_HAS_PC;
    uint64_t pc = told ? item->pc : 0;
    int rc = TL_OK;
    if (cs->how == TL_LEAVE_EXCEPTION && (!told || pc == cs->exception_pc))
        pc = cs->exception_pc;
    else if (cs->how == TL_LEAVE_EXCEPTION_RETURN && !told)
        rc = tl_callstack_end_handler(cs, &pc);
    else if (cs->how != TL_LEAVE_STRAIGHT && told) /* reached, but not executed */
        rc = tl_callstack_go(cs, pc, function_at(cs, pc));
    cs->how = TL_LEAVE_EXCEPTION;
    cs->exception = item->sub;
    cs->exception_pc = pc;
    return rc;
}

/* ---- exceptions without flow ----------------------------------------------------------------- */

static bool is_reported(const struct tl_callstack *cs)
{
    return cs->depth > 0 && cs->frames[cs->depth - 1].flags & TL_FRAME_REPORTED;
}

/* The program, in which all that is reported happens. */
static int begin_reported(struct tl_callstack *cs)
{
    if (is_reported(cs))
        return TL_OK;
    const int rc = tl_callstack_unwind(cs, 0);
    cs->how = TL_LEAVE_STRAIGHT;
    return rc < 0 ? rc
                  : tl_callstack_enter(cs, &(struct tl_frame){.function = TL_NO_FUNCTION,
                                                              .kind = TL_FRAME_ROOT,
                                                              .flags = TL_FRAME_REPORTED});
}

static int enter_handler(struct tl_callstack *cs, uint16_t number, unsigned flags)
{
    const uint64_t pc = tl_image_handler(cs->image, number);
    const int rc = begin_reported(cs);
    return rc < 0
               ? rc
               : tl_callstack_enter(
                     cs, &(struct tl_frame){.pc = pc,
                                            .function = pc ? function_at(cs, pc) : TL_NO_FUNCTION,
                                            .exception = number,
                                            .kind = TL_FRAME_EXCEPTION,
                                            .flags = (uint8_t)(TL_FRAME_REPORTED | flags)});
}

/* Depth of the innermost frame of the handler; 0: it is not known to be active. */
static uint32_t find_handler(const struct tl_callstack *cs, uint16_t number)
{
    for (uint32_t i = is_reported(cs) ? cs->depth : 0; i > 1; i--)
        if (cs->frames[i - 1].exception == number)
            return i;
    return 0;
}

/* Frames from `depth` on have ended, which nobody told. */
static void lose_frames(struct tl_callstack *cs, uint32_t depth)
{
    for (uint32_t i = depth; i < cs->depth; i++)
        cs->frames[i].flags |= TL_FRAME_LOST;
}

/* A handler that ends takes those with it that it was interrupted by: their ends were not told. One
 * that is returned to, and not known, began before the trace did. */
static int take_hardware(struct tl_callstack *cs, const struct tl_item *item)
{
    if (!tl_is_hardware(item, TL_HARDWARE_EXCEPTION))
        return TL_OK;
    const uint16_t number = (uint16_t)item->value;
    const uint32_t active = find_handler(cs, number);
    int rc;
    switch (tl_hardware_action(item)) {
    case TL_ACTION_ENTER:
        return enter_handler(cs, number, 0);
    case TL_ACTION_EXIT:
        lose_frames(cs, active ? active : cs->depth);
        return active ? tl_callstack_unwind(cs, active - 1) : TL_OK;
    default:
        rc = begin_reported(cs);
        lose_frames(cs, active ? active : 1);
        if (rc >= 0)
            rc = tl_callstack_unwind(cs, active ? active : 1);
        return rc < 0 || active || number == 0 ? rc : enter_handler(cs, number, TL_FRAME_RESUMED);
    }
}

/*
 * A trace of user code goes off when the operating system takes over, and the program's stack
 * remains. Otherwise anything may happen while tracing is off.
 */
static int take_gap(struct tl_callstack *cs, const struct tl_item *item)
{
    const bool off = item->kind == TL_ITEM_GAP && tl_gap_is_off(item->sub);
    const bool on = item->kind == TL_ITEM_TRACE_ON;
    if (is_reported(cs))
        lose_frames(cs, 0);
    const int rc = is_reported(cs)           ? tl_callstack_unwind(cs, 0)
                   : tl_item_is_branch(item) ? take_branch(cs, item)
                                             : TL_OK;
    if (cs->how == TL_LEAVE_OFF && (off || on))
        return rc;
    if (cs->user && cs->how != TL_LEAVE_LOST && (off || (on && cs->how == TL_LEAVE_EXCEPTION))) {
        cs->left = cs->how;
        cs->active = tl_callstack_who(cs);
        cs->how = TL_LEAVE_OFF;
    } else {
        cs->how = TL_LEAVE_LOST;
    }
    return rc;
}

/* A hash that is not 0. */
static uint64_t hash(uint64_t a, uint64_t b)
{
    const uint64_t mixed = tl_mix64(tl_mix64(a) + b);
    return mixed ? mixed : 1;
}

static void take_context(struct tl_callstack *cs, const struct tl_item *item)
{
    const unsigned has = item->flags & (TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE);
    cs->process = has ? hash(has & TL_ITEM_HAS_PC ? item->pc : 0,
                             has & TL_ITEM_HAS_VALUE ? item->value + 1 : 0)
                      : 0;
}

/* "switch PID TID NAME" */
static void take_note(struct tl_callstack *cs, const char *note)
{
    static const char begin[] = "switch ";
    if (!note || strncmp(note, begin, sizeof begin - 1) != 0)
        return;
    uint64_t numbers[2] = {0};
    const char *p = note + sizeof begin - 1;
    for (size_t i = 0; i < 2; i++) {
        for (; *p >= '0' && *p <= '9'; p++)
            numbers[i] = numbers[i] * 10 + (uint64_t)(*p - '0');
        p += *p == ' ';
    }
    cs->thread = hash(numbers[0], numbers[1]);
}

/* Are programs under an operating system in this mode? The user mode of M-profile cores, which have
 * nothing but T32, is no sign of one. */
static bool is_user(uint64_t mode)
{
    switch (tl_mode_arch(mode)) {
    case TL_ARCH_ARM:
        return tl_mode_privilege(mode) == 0 && tl_mode_isa(mode) != TL_ISA_T32;
    case TL_ARCH_X86:
        return tl_mode_privilege(mode) == 3;
    case TL_ARCH_RISCV:
        return tl_mode_privilege(mode) == 0;
    default:
        return false;
    }
}

static int take(struct tl_callstack *cs, const struct tl_item *item)
{
    int rc = TL_OK;
    switch (item->kind) {
    case TL_ITEM_UNKNOWN:
        rc = tl_callstack_go(cs, item->pc, function_at(cs, item->pc));
        cs->insns++;
        cs->how = TL_LEAVE_STRAIGHT;
        cs->next_pc = 0;
        return rc;
    case TL_ITEM_BRANCH:
        return take_branch(cs, item);
    case TL_ITEM_TARGET:
        return tl_callstack_go(cs, item->value, function_at(cs, item->value));
    case TL_ITEM_EXCEPTION:
        return take_exception(cs, item);
    case TL_ITEM_ERET:
        cs->how = TL_LEAVE_EXCEPTION_RETURN;
        return TL_OK;
    case TL_ITEM_GAP:
    case TL_ITEM_TRACE_ON:
        return take_gap(cs, item);
    case TL_ITEM_CONTEXT:
        take_context(cs, item);
        return TL_OK;
    case TL_ITEM_NOTE:
        take_note(cs, item->text);
        return TL_OK;
    case TL_ITEM_HARDWARE:
        return take_hardware(cs, item);
    case TL_ITEM_MODE:
        cs->user = is_user(item->value);
        return TL_OK;
    default:
        return TL_OK;
    }
}

static inline int take_block(struct tl_callstack *cs, const struct tl_item *item)
{
    const struct tl_block *const block = item->block;
    const int rc = tl_callstack_arrive(cs, block, cs->insns);
    tl_callstack_leave(cs, block, tl_block_bytes(block, item->n), item->flags & TL_ITEM_TAKEN);
    cs->insns += item->n;
    return rc;
}

int tl_callstack_push(struct tl_callstack *cs, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int rc =
            items[i].kind == TL_ITEM_BLOCK ? take_block(cs, &items[i]) : take(cs, &items[i]);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}
