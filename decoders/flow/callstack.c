/* SPDX-License-Identifier: MIT */
#include "flow/callstack.h"

#define SEARCH 64 /* number of frames searched if the innermost one does not match */

void tl_callstack_init(struct tl_callstack *cs, const struct tl_image *image, uint64_t first_insn,
                       tl_frame_sink *sink, void *context)
{
    memset(cs, 0, sizeof *cs);
    cs->image = image;
    cs->insns = first_insn;
    cs->sink = sink;
    cs->context = context;
    cs->function = TL_NO_FUNCTION;
    cs->how = TL_LEAVE_LOST;
}

/* ---- frames ------------------------------------------------------------------------------ */

static struct tl_frame *top(struct tl_callstack *cs)
{
    return &cs->frames[cs->depth - 1];
}

static int report(const struct tl_callstack *cs, enum tl_frame_change change,
                  const struct tl_frame *frame)
{
    return cs->sink ? cs->sink(cs->context, change, frame, cs->depth - (change == TL_FRAME_PUSH),
                               cs->insns)
                    : TL_OK;
}

static inline int push(struct tl_callstack *cs, struct tl_frame frame)
{
    cs->function = frame.function;
    if (cs->depth == TL_CALLSTACK_MAX) {
        cs->deeper++;
        return TL_OK;
    }
    frame.insn = cs->insns;
    cs->frames[cs->depth++] = frame;
    return cs->sink ? report(cs, TL_FRAME_PUSH, top(cs)) : TL_OK;
}

/* Pop until `depth` frames are left. */
static int pop_to(struct tl_callstack *cs, uint32_t depth)
{
    cs->deeper = 0;
    if (!cs->sink && cs->depth > depth)
        cs->depth = depth;
    while (cs->depth > depth) {
        const struct tl_frame frame = *top(cs);
        cs->depth--;
        const int rc = report(cs, TL_FRAME_POP, &frame);
        if (rc < 0)
            return rc;
    }
    cs->function = cs->depth ? top(cs)->function : TL_NO_FUNCTION;
    return TL_OK;
}

static int restart(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    const int rc = pop_to(cs, 0);
    return rc < 0
               ? rc
               : push(cs, (struct tl_frame){.pc = pc, .function = function, .kind = TL_FRAME_ROOT});
}

/* Replace the innermost frame's function; its return address stays. */
static int replace(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (cs->deeper) { /* the frame is not stored */
        cs->function = function;
        return TL_OK;
    }
    struct tl_frame next = *top(cs);
    next.pc = pc;
    next.function = function;
    if (next.kind == TL_FRAME_CALL)
        next.kind = TL_FRAME_TAIL;
    const int rc = pop_to(cs, cs->depth - 1);
    return rc < 0 ? rc : push(cs, next);
}

/* ---- matching ---------------------------------------------------------------------------- */

/* Depth of the innermost frame that returns to `pc`; 0: none. `*end`: depth at which the search
 * stopped. */
static uint32_t find_return(const struct tl_callstack *cs, uint64_t pc, bool past_exceptions,
                            uint32_t *end)
{
    const uint32_t min = cs->depth > SEARCH ? cs->depth - SEARCH : 0;
    for (*end = cs->depth; *end > min; --*end) {
        const struct tl_frame *f = &cs->frames[*end - 1];
        if (f->return_pc == pc && f->kind != TL_FRAME_ROOT)
            return *end;
        if (f->kind == TL_FRAME_EXCEPTION && !past_exceptions)
            return 0; /* a return cannot leave an exception handler */
    }
    return 0;
}

static uint32_t find_function(const struct tl_callstack *cs, uint32_t function)
{
    for (uint32_t i = cs->depth, looked = 0; i > 0 && looked < SEARCH; i--, looked++)
        if (cs->frames[i - 1].function == function)
            return i;
    return 0;
}

/* Depth of the innermost exception frame, at most `depth`; 0: none. */
static uint32_t find_exception(const struct tl_callstack *cs, uint32_t depth)
{
    for (uint32_t i = depth; i > 0; i--)
        if (cs->frames[i - 1].kind == TL_FRAME_EXCEPTION)
            return i;
    return 0;
}

/* Make the innermost frame one of `function`. */
static int settle(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (cs->depth == 0)
        return restart(cs, pc, function);
    return cs->function == function ? TL_OK : replace(cs, pc, function);
}

/* Is `function` the innermost frame's, and does no frame return to `pc`? This is the usual case
 * after lost flow, and nothing changes. */
static bool stays(const struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    const struct tl_frame *end = cs->frames + cs->depth;
    const struct tl_frame *const low = cs->depth > SEARCH ? end - SEARCH : cs->frames;
    if (cs->depth == 0 || cs->deeper > 0 || end[-1].function != function)
        return false;
    while (end > low)
        if ((--end)->return_pc == pc)
            return false;
    return true;
}

/* Continue after lost flow: unwind to a frame that expects `pc`, or restart. */
static int resume(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (stays(cs, pc, function)) {
        cs->function = function;
        return TL_OK;
    }
    uint32_t end;
    const uint32_t returned = find_return(cs, pc, true, &end);
    if (returned) {
        const int rc = pop_to(cs, returned - 1);
        return rc < 0 ? rc : settle(cs, pc, function);
    }
    const uint32_t known = find_function(cs, function);
    return known ? pop_to(cs, known) : restart(cs, pc, function);
}

/*
 * A return that no frame matches: into a caller from before the trace began. Everything up to the
 * current handler or root has returned; above `depth` there is no handler.
 */
static int return_unknown(struct tl_callstack *cs, uint64_t pc, uint32_t function, uint32_t depth)
{
    const uint32_t exception = find_exception(cs, depth);
    if (exception == 0)
        return restart(cs, pc, function);
    const int rc = pop_to(cs, exception);
    return rc < 0 ? rc : settle(cs, pc, function);
}

static inline int do_return(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (cs->deeper) { /* a frame that is only counted */
        cs->deeper--;
        cs->function = cs->deeper ? TL_NO_FUNCTION : top(cs)->function;
        return TL_OK;
    }
    /* Usual case: the innermost frame returns to the function of the next one. */
    if (cs->depth > 1 && top(cs)->return_pc == pc && top(cs)[-1].function == function) {
        cs->depth--;
        cs->function = function;
        return cs->sink ? report(cs, TL_FRAME_POP, &cs->frames[cs->depth]) : TL_OK;
    }
    uint32_t end;
    const uint32_t returned = find_return(cs, pc, false, &end);
    if (!returned)
        return return_unknown(cs, pc, function, end);
    const int rc = pop_to(cs, returned - 1);
    return rc < 0 ? rc : settle(cs, pc, function);
}

/* Return to the interrupted code, or, if the address differs (a task switch, a fixed-up fault),
 * match by function. */
static int do_exception_return(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    for (uint32_t i = cs->depth; i > 0; i--) {
        const struct tl_frame *f = &cs->frames[i - 1];
        if (f->kind != TL_FRAME_EXCEPTION)
            continue;
        const bool same_function =
            i > 1 && function != TL_NO_FUNCTION && f[-1].function == function;
        if (f->return_pc == pc || same_function) {
            const int rc = pop_to(cs, i - 1);
            return rc < 0 ? rc : settle(cs, pc, function);
        }
    }
    return restart(cs, pc, function);
}

static int do_jump(struct tl_callstack *cs, uint64_t pc, uint32_t function, bool indirect)
{
    if (indirect && cs->depth && !cs->deeper && top(cs)->kind != TL_FRAME_ROOT &&
        top(cs)->return_pc == pc)
        return do_return(cs, pc, function); /* a return encoded as another indirect branch */
    return settle(cs, pc, function);
}

/* Execution continues at pc, in `function`. */
static inline __attribute__((always_inline)) int arrive(struct tl_callstack *cs, uint64_t pc,
                                                        uint32_t function)
{
    const enum tl_leave how = cs->how;
    cs->how = TL_LEAVE_STRAIGHT;
    switch (how) {
    case TL_LEAVE_STRAIGHT:
    case TL_LEAVE_JUMP:
    case TL_LEAVE_INDIRECT:
        return do_jump(cs, pc, function, how == TL_LEAVE_INDIRECT);
    case TL_LEAVE_CALL:
        return push(cs, (struct tl_frame){.pc = pc,
                                          .return_pc = cs->next_pc,
                                          .function = function,
                                          .kind = TL_FRAME_CALL});
    case TL_LEAVE_RETURN:
        return do_return(cs, pc, function);
    case TL_LEAVE_EXCEPTION:
        return push(cs, (struct tl_frame){.pc = pc,
                                          .return_pc = cs->exception_pc,
                                          .function = function,
                                          .exception = cs->exception,
                                          .kind = TL_FRAME_EXCEPTION});
    case TL_LEAVE_EXCEPTION_RETURN:
        return do_exception_return(cs, pc, function);
    default:
        return resume(cs, pc, function);
    }
}

/* ---- items ------------------------------------------------------------------------------- */

int tl_callstack_arrive(struct tl_callstack *cs, const struct tl_block *block, uint64_t insn)
{
    cs->insns = insn;
    /* Most blocks follow a jump inside a function. */
    return cs->how > TL_LEAVE_JUMP || block->function != cs->function || cs->depth == 0
               ? arrive(cs, block->pc, block->function)
               : TL_OK;
}

/* After a call that returns to cs->next_pc: does it return there at steps[i], to the function of
 * the innermost frame? */
static inline bool returns_at(const struct tl_callstack *cs, const uintptr_t *steps, unsigned i)
{
    const struct tl_block *const from = tl_path_block(steps[i - 1]), *const to =
                                                                         tl_path_block(steps[i]);
    return from->leave == TL_LEAVE_RETURN && tl_path_taken(steps[i - 1]) && to->pc == cs->next_pc &&
           to->function == cs->frames[cs->depth - 1].function;
}

/* Calls that return without another change of the stack need no frame: sealed shards of Intel PT
 * are built 5 % faster. */
void tl_callstack_steps(struct tl_callstack *cs, const uintptr_t *steps, uint32_t n, uint64_t turns,
                        const uint64_t *begins, uint32_t *low, uint32_t *high)
{
    const uintptr_t last = steps[n - 1];
    const bool leaves = cs->leaf || !cs->sink;
    uint32_t min = *low, most = *high;
    while (turns != 0) {
        const unsigned i = (unsigned)__builtin_ctzll(turns);
        const struct tl_block *const block = tl_path_block(steps[i]);
        turns &= turns - 1;
        if (i > 0)
            tl_callstack_leave(cs, tl_path_block(steps[i - 1]), tl_path_taken(steps[i - 1]));
        const bool stored = cs->depth > 0 && cs->depth < TL_CALLSTACK_MAX;
        if (cs->how == TL_LEAVE_CALL && leaves && stored && turns != 0) {
            const unsigned next = (unsigned)__builtin_ctzll(turns);
            if (returns_at(cs, steps, next)) {
                if (cs->leaf)
                    cs->leaf(cs->context, block->function, cs->depth, begins[i], begins[next]);
                min = cs->depth < min ? cs->depth : min;
                most = cs->depth + 1 > most ? cs->depth + 1 : most;
                turns &= turns - 1;
                continue;
            }
        }
        cs->insns = begins[i];
        (void)arrive(cs, block->pc, block->function);
        const uint32_t depth = tl_callstack_depth(cs);
        min = depth < min ? depth : min;
        most = depth > most ? depth : most;
        /* For frames that are only counted, the function is not known. */
        if (cs->function != block->function && i + 1 < n)
            turns |= UINT64_C(2) << i;
    }
    tl_callstack_leave(cs, tl_path_block(last), tl_path_taken(last));
    *low = min;
    *high = most;
}

static inline int take_block(struct tl_callstack *cs, const struct tl_item *item)
{
    const int rc = tl_callstack_arrive(cs, item->block, cs->insns);
    tl_callstack_leave(cs, item->block, item->flags & TL_ITEM_TAKEN);
    cs->insns += item->n;
    return rc;
}

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
    return push(cs, (struct tl_frame){.pc = item->value,
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
        const struct tl_frame *const f = top(cs);
        return f->pc == pc && f->return_pc == item->pc ? TL_OK : enter(cs, item, function);
    }
    return is_entry(cs, pc) ? enter(cs, item, function) : settle(cs, pc, function);
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
        return cs->depth ? pop_to(cs, cs->depth - 1) : TL_OK;
    const uint32_t function = function_at(cs, pc);
    const uint32_t returned = find_site(cs, pc);
    if (returned) {
        const int rc = pop_to(cs, returned - 1);
        return rc < 0 ? rc : settle(cs, pc, function);
    }
    if (is_entry(cs, pc) || (function == TL_NO_FUNCTION && cs->depth > 1))
        return enter(cs, item, function);
    if (function == cs->function)
        return TL_OK; /* a jump within a function, or a return of the outermost one */
    return return_unknown(cs, pc, function, cs->depth);
}

/* The instruction at pc was executed: update the current function. */
static int branch_from(struct tl_callstack *cs, uint64_t pc)
{
    const uint32_t function = function_at(cs, pc);
    const enum tl_leave how = cs->how;
    cs->how = TL_LEAVE_STRAIGHT;
    if (how == TL_LEAVE_LOST)
        return resume(cs, pc, function);
    return function == TL_NO_FUNCTION && cs->depth ? TL_OK : settle(cs, pc, function);
}

/* Flow without instructions: the source itself classifies calls and returns. */
static int take_branch(struct tl_callstack *cs, const struct tl_item *item)
{
    if (!(item->flags & (TL_ITEM_CALL | TL_ITEM_RETURN))) {
        const uint64_t pc = tl_item_address(item);
        if (cs->how == TL_LEAVE_EXCEPTION || cs->how == TL_LEAVE_EXCEPTION_RETURN)
            return arrive(cs, pc, function_at(cs, pc));
        return TL_OK; /* unknown whether it is a call, return or jump */
    }
    const int rc = item->flags & TL_ITEM_HAS_PC ? branch_from(cs, item->pc) : TL_OK;
    if (rc < 0)
        return rc;
    return item->flags & TL_ITEM_CALL ? branch_call(cs, item) : branch_return(cs, item);
}

static int take(struct tl_callstack *cs, const struct tl_item *item)
{
    int rc = TL_OK;
    switch (item->kind) {
    case TL_ITEM_UNKNOWN:
        rc = arrive(cs, item->pc, function_at(cs, item->pc));
        cs->insns++;
        cs->how = TL_LEAVE_STRAIGHT;
        break;
    case TL_ITEM_BRANCH:
        rc = take_branch(cs, item);
        break;
    case TL_ITEM_TARGET:
        rc = arrive(cs, item->value, function_at(cs, item->value));
        break;
    case TL_ITEM_EXCEPTION:
        if (cs->how != TL_LEAVE_STRAIGHT &&
            item->flags & TL_ITEM_HAS_PC) /* reached, but not executed */
            rc = arrive(cs, item->pc, function_at(cs, item->pc));
        cs->how = TL_LEAVE_EXCEPTION;
        cs->exception = item->sub;
        cs->exception_pc = item->pc;
        break;
    case TL_ITEM_ERET:
        cs->how = TL_LEAVE_EXCEPTION_RETURN;
        break;
    case TL_ITEM_GAP:
    case TL_ITEM_TRACE_ON:
        if (tl_item_is_branch(item))
            rc = take_branch(cs, item);
        cs->how = TL_LEAVE_LOST;
        break;
    default:
        break;
    }
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

int tl_callstack_finish(struct tl_callstack *cs)
{
    cs->how = TL_LEAVE_LOST;
    return pop_to(cs, 0);
}
