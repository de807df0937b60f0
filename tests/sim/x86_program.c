/* SPDX-License-Identifier: MIT */
#include "sim/x86_program.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    uint64_t base;
    enum tl_isa isa;
} zones[TL_SIM_X86_ZONES] = {
    [TL_SIM_X86_KERNEL] = {0xffffffff81000000, TL_ISA_X64},
    [TL_SIM_X86_USER] = {0x555555554000, TL_ISA_X64},
    [TL_SIM_X86_COMPAT] = {0x8048000, TL_ISA_X32},
    [TL_SIM_X86_REAL] = {0x1000, TL_ISA_X16},
};

enum tl_isa tl_sim_x86_isa(unsigned zone)
{
    return zones[zone].isa;
}

static void add(struct tl_buf *buf, const void *p, size_t n)
{
    if (tl_buf_add(buf, p, n) < 0)
        abort();
}

static struct tl_sim_x86_insn *insn_at(struct tl_sim_x86_program *program, uint32_t index)
{
    return (struct tl_sim_x86_insn *)(void *)program->insns.p + index;
}

static uint32_t function_at(const struct tl_sim_x86_program *program, uint32_t k)
{
    return ((const uint32_t *)(const void *)program->functions.p)[k];
}

/* ---- building -------------------------------------------------------------------------------- */

/* The frequency of each kind within a function, per 1000; the rest is OTHER. */
static const uint8_t weights[TL_SIM_X86_KINDS] = {
    [TL_SIM_X86_COND] = 150,     [TL_SIM_X86_JUMP] = 30,          [TL_SIM_X86_JUMP_INDIRECT] = 10,
    [TL_SIM_X86_CALL] = 60,      [TL_SIM_X86_CALL_INDIRECT] = 25, [TL_SIM_X86_RETURN] = 10,
    [TL_SIM_X86_TRAP] = 10,      [TL_SIM_X86_FAR_CALL] = 3,       [TL_SIM_X86_FAR_JUMP] = 3,
    [TL_SIM_X86_FAR_RETURN] = 3, [TL_SIM_X86_PTWRITE] = 20,       [TL_SIM_X86_MOV_CR3] = 10,
    [TL_SIM_X86_VMPTRLD] = 3,    [TL_SIM_X86_MWAIT] = 5,          [TL_SIM_X86_XBEGIN] = 10,
    [TL_SIM_X86_XEND] = 20,      [TL_SIM_X86_XABORT] = 3,
};

static enum tl_sim_x86_kind kind_within(struct tl_sim_rng *rng, unsigned zone)
{
    uint32_t k = tl_sim_below(rng, 1000);
    for (unsigned kind = TL_SIM_X86_COND; kind < TL_SIM_X86_KINDS; kind++) {
        const bool privileged = kind >= TL_SIM_X86_MOV_CR3 && kind <= TL_SIM_X86_MWAIT;
        if (k >= weights[kind]) {
            k -= weights[kind];
            continue;
        }
        if ((kind > TL_SIM_X86_PTWRITE && tl_sim_x86_isa(zone) != TL_ISA_X64) ||
            (privileged && zone != TL_SIM_X86_KERNEL))
            break;
        return (enum tl_sim_x86_kind)kind;
    }
    return TL_SIM_X86_OTHER;
}

/* The kind of a function's last instruction, after which control does not continue. */
static enum tl_sim_x86_kind kind_at_end(struct tl_sim_rng *rng, bool last_function)
{
    const uint32_t k = tl_sim_below(rng, 100);
    return k < 75                    ? TL_SIM_X86_RETURN
           : k < 85                  ? TL_SIM_X86_FAR_RETURN
           : k < 90 || last_function ? TL_SIM_X86_JUMP_INDIRECT
                                     : TL_SIM_X86_JUMP;
}

static void add_insn(struct tl_sim_x86_program *program, struct tl_sim_rng *rng, unsigned zone,
                     enum tl_sim_x86_kind kind)
{
    struct tl_sim_x86_bytes bytes;
    tl_sim_x86_make(&bytes, rng, tl_sim_x86_isa(zone), kind);
    struct tl_buf *const code = &program->parts[zone].code;
    const struct tl_sim_x86_insn insn = {.pc = program->parts[zone].base + code->n,
                                         .size = bytes.n,
                                         .kind = (uint8_t)kind,
                                         .zone = (uint8_t)zone,
                                         .relative = bytes.relative};
    add(code, bytes.p, bytes.n);
    add(&program->insns, &insn, sizeof insn);
}

static void add_function(struct tl_sim_x86_program *program, struct tl_sim_rng *rng, unsigned zone,
                         bool last)
{
    static const uint8_t zeros[16];
    struct tl_buf *const code = &program->parts[zone].code;
    const uint32_t first = (uint32_t)(program->insns.n / sizeof(struct tl_sim_x86_insn));
    add(code, zeros, -code->n & 15);
    add(&program->functions, &first, sizeof first);
    for (uint32_t n = tl_sim_between(rng, 2, 50); n > 0; n--) {
        const enum tl_sim_x86_kind kind = kind_within(rng, zone);
        add_insn(program, rng, zone, kind);
        if (kind == TL_SIM_X86_MOV_CR3) /* otherwise a TIP.PGD without an IP could be its own */
            add_insn(program, rng, zone, TL_SIM_X86_COND);
    }
    add_insn(program, rng, zone, kind_at_end(rng, last));
}

static bool reaches(const struct tl_sim_x86_program *program, const struct tl_sim_x86_insn *from,
                    uint32_t to)
{
    const int64_t distance = (int64_t)(tl_sim_x86_insn(program, to)->pc - from->pc - from->size);
    return from->relative != 1 || (distance >= INT8_MIN && distance <= INT8_MAX);
}

/* The target of direct branch `index` in function `k`. */
static uint32_t choose_target(const struct tl_sim_x86_program *program, struct tl_sim_rng *rng,
                              uint32_t index, uint32_t k)
{
    const struct tl_sim_x86_insn *const from = tl_sim_x86_insn(program, index);
    const uint32_t last_function =
        program->parts[from->zone].function + program->parts[from->zone].functions - 1;
    const uint32_t first = function_at(program, k), end = function_at(program, k + 1);
    const bool is_last = index + 1 == end;
    const bool leaves =
        from->kind == TL_SIM_X86_CALL || is_last || (from->relative > 1 && tl_sim_percent(rng, 20));
    if (leaves && k < last_function) {
        for (unsigned attempts = 0; attempts < 4; attempts++) {
            const uint32_t to = function_at(program, tl_sim_between(rng, k + 1, last_function));
            if (reaches(program, from, to))
                return to;
        }
        return is_last ? function_at(program, k + 1) : index + 1;
    }
    for (unsigned attempts = 0; attempts < 8 && from->kind != TL_SIM_X86_CALL; attempts++) {
        const uint32_t min = from->kind == TL_SIM_X86_COND ? first : index + 1;
        const uint32_t to = tl_sim_between(rng, min, end - 1);
        if (reaches(program, from, to))
            return to;
    }
    return index + 1;
}

static void aim(struct tl_sim_x86_program *program, struct tl_sim_rng *rng, uint32_t index,
                uint32_t k)
{
    struct tl_sim_x86_insn *const insn = insn_at(program, index);
    if (!insn->relative)
        return;
    insn->target = choose_target(program, rng, index, k);
    const uint64_t after = insn->pc + insn->size;
    const uint64_t distance = tl_sim_x86_insn(program, insn->target)->pc - after;
    uint8_t *const code = program->parts[insn->zone].code.p;
    for (unsigned i = 0; i < insn->relative; i++)
        code[after - program->parts[insn->zone].base - insn->relative + i] =
            (uint8_t)(distance >> 8 * i);
}

void tl_sim_x86_program_init(struct tl_sim_x86_program *program, uint64_t seed, unsigned functions)
{
    struct tl_sim_rng rng = {seed};
    *program = (struct tl_sim_x86_program){0};
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++) {
        program->parts[zone].base = zones[zone].base;
        program->parts[zone].function = zone * functions;
        program->parts[zone].functions = functions;
        for (unsigned k = 1; k <= functions; k++)
            add_function(program, &rng, zone, k == functions);
    }
    const uint32_t end = (uint32_t)(program->insns.n / sizeof(struct tl_sim_x86_insn));
    add(&program->functions, &end, sizeof end);
    for (uint32_t k = 0; k < TL_SIM_X86_ZONES * functions; k++)
        for (uint32_t i = function_at(program, k); i < function_at(program, k + 1); i++)
            aim(program, &rng, i, k);
}

void tl_sim_x86_program_fini(struct tl_sim_x86_program *program)
{
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++)
        tl_buf_fini(&program->parts[zone].code);
    tl_buf_fini(&program->insns);
    tl_buf_fini(&program->functions);
}

size_t tl_sim_x86_read(const struct tl_sim_x86_program *program, uint64_t pc, uint8_t *out,
                       size_t size)
{
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++) {
        const uint64_t base = program->parts[zone].base;
        const size_t n = program->parts[zone].code.n;
        if (pc < base || pc - base >= n)
            continue;
        if (size > n - (size_t)(pc - base))
            size = n - (size_t)(pc - base);
        memcpy(out, program->parts[zone].code.p + (pc - base), size);
        return size;
    }
    return 0;
}

/* ---- running -------------------------------------------------------------------------------- */

static void push(struct tl_sim_x86_stack *stack, uint32_t to)
{
    const unsigned most = sizeof stack->to / sizeof *stack->to;
    if (stack->n == most)
        memmove(stack->to, stack->to + 1, --stack->n * sizeof *stack->to);
    stack->to[stack->n++] = to;
}

static uint32_t any_function(struct tl_sim_x86_run *run, unsigned zone)
{
    return function_at(run->program,
                       run->program->parts[zone].function +
                           tl_sim_below(&run->rng, run->program->parts[zone].functions));
}

static uint32_t pop(struct tl_sim_x86_run *run, struct tl_sim_x86_stack *stack, unsigned zone)
{
    return stack->n && !tl_sim_percent(&run->rng, 3) ? stack->to[--stack->n]
                                                     : any_function(run, zone);
}

static unsigned any_zone(struct tl_sim_x86_run *run)
{
    return tl_sim_below(&run->rng, TL_SIM_X86_ZONES);
}

void tl_sim_x86_run_init(struct tl_sim_x86_run *run, const struct tl_sim_x86_program *program,
                         uint64_t seed)
{
    *run =
        (struct tl_sim_x86_run){.program = program, .rng = {seed}, .cr3 = 0x1000, .interrupts = 10};
    run->pc = any_function(run, TL_SIM_X86_USER);
}

static void change_cr3(struct tl_sim_x86_run *run)
{
    run->cr3 = (uint64_t)tl_sim_between(&run->rng, 1, 16) << 12;
}

static uint32_t next_of(struct tl_sim_x86_run *run, const struct tl_sim_x86_insn *insn,
                        struct tl_sim_x86_step *step)
{
    const uint32_t after = step->insn + 1;
    uint32_t to;
    switch (insn->kind) {
    case TL_SIM_X86_COND:
        step->taken = tl_sim_percent(&run->rng, 50);
        return step->taken ? insn->target : after;
    case TL_SIM_X86_JUMP:
        return insn->target;
    case TL_SIM_X86_CALL:
        if (insn->target != after)
            push(&run->calls, after);
        return insn->target;
    case TL_SIM_X86_CALL_INDIRECT:
        push(&run->calls, after);
        return any_function(run, insn->zone);
    case TL_SIM_X86_JUMP_INDIRECT:
        return any_function(run, insn->zone);
    case TL_SIM_X86_RETURN:
        to = pop(run, &run->calls, insn->zone);
        return tl_sim_x86_insn(run->program, to)->zone == insn->zone
                   ? to
                   : any_function(run, insn->zone);
    case TL_SIM_X86_TRAP:
        push(&run->frames, after);
        return any_function(run, TL_SIM_X86_KERNEL);
    case TL_SIM_X86_FAR_CALL:
        push(&run->frames, after);
        return any_function(run, any_zone(run));
    case TL_SIM_X86_FAR_JUMP:
        return any_function(run, any_zone(run));
    case TL_SIM_X86_FAR_RETURN:
        return pop(run, &run->frames, any_zone(run));
    case TL_SIM_X86_MOV_CR3:
        change_cr3(run);
        return after;
    case TL_SIM_X86_XBEGIN:
        run->in_transaction = true;
        run->fallback = insn->target;
        return after;
    case TL_SIM_X86_XEND:
        run->in_transaction = false;
        return after;
    default:
        return after;
    }
}

/* Does this instruction abort the transaction it is executed in, without any other effect? */
static bool aborts(const struct tl_sim_x86_insn *insn)
{
    return insn->kind >= TL_SIM_X86_TRAP && insn->kind != TL_SIM_X86_XEND;
}

static void interrupt(struct tl_sim_x86_run *run, struct tl_sim_x86_step *out, uint32_t back)
{
    out->event = TL_SIM_X86_INTERRUPTED;
    push(&run->frames, back);
    if (tl_sim_percent(&run->rng, 10))
        change_cr3(run);
    out->to = any_function(run, TL_SIM_X86_KERNEL);
}

void tl_sim_x86_step(struct tl_sim_x86_run *run, struct tl_sim_x86_step *out)
{
    const struct tl_sim_x86_insn *const insn = tl_sim_x86_insn(run->program, run->pc);
    *out = (struct tl_sim_x86_step){.insn = run->pc, .in_transaction = run->in_transaction};
    if (run->in_transaction && (aborts(insn) || tl_sim_percent(&run->rng, 3))) {
        out->event = TL_SIM_X86_ABORTED;
        out->to = run->fallback;
        run->in_transaction = false;
    } else if (insn->kind == TL_SIM_X86_XEND && !run->in_transaction) {
        interrupt(run, out, run->pc + 1); /* a fault */
    } else if (!run->in_transaction && tl_sim_below(&run->rng, 1000) < run->interrupts) {
        interrupt(run, out, run->pc);
    } else {
        out->event = TL_SIM_X86_EXECUTED;
        if (insn->kind >= TL_SIM_X86_TRAP && insn->kind <= TL_SIM_X86_FAR_RETURN &&
            tl_sim_percent(&run->rng, 5))
            change_cr3(run);
        out->to = next_of(run, insn, out);
    }
    run->pc = out->to;
}
