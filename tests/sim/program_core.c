/* SPDX-License-Identifier: MIT */
#include "sim/program_core.h"

#include "sim/program_rng.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH           256 /* frames; no function is recursive, not even indirectly */
#define CYCLES_A_TICK   10
#define EXCEPTION_CALL  2
#define EXCEPTION_FAULT 12
#define EXCEPTION_IRQ   14
#define IDLE            (TL_SIM_TASKS - 1)

struct frame {
    uint32_t back;  /* the instruction to return to */
    bool exception; /* a frame of an exception: the ERET returns to exception level `el` */
    uint8_t el;
};

struct task {
    struct frame frames[DEPTH];
    unsigned depth;
    uint32_t *trips; /* by loop: iterations left; 0: not in the loop */
};

struct tl_sim_core {
    const struct tl_sim_program *program;
    struct tl_sim_core_options options;
    struct tl_sim_rng rng;
    struct tl_sim_etm4 *etm;
    struct task tasks[TL_SIM_TASKS];
    unsigned current; /* task */
    uint32_t pc;      /* instruction */
    uint8_t el;
    bool handling;  /* interrupts are masked */
    bool switching; /* the next ERET goes to another task */
    bool tracing;
    uint32_t resume_in; /* instructions until tracing begins again */
    uint64_t cycles;
    uint64_t insns;
    uint64_t next_irq;
    uint64_t next_off, next_overflow, next_event, next_fault; /* in instructions */
};

static uint64_t address_of(const struct tl_sim_core *core, uint32_t index)
{
    return tl_sim_program_address(core->program, index);
}

static struct tl_sim_context context_of(const struct tl_sim_core *core)
{
    return (struct tl_sim_context){
        .el = core->el, .ns = true, .context_id = 0x100 + core->current, .vmid = 1};
}

/* The position of the next event, which has a period of `every` instructions. */
static uint64_t next(struct tl_sim_core *core, uint32_t every)
{
    return every == 0 ? UINT64_MAX : core->insns + tl_sim_between(&core->rng, 1, 2 * every);
}

int tl_sim_core_new(struct tl_sim_core **out, const struct tl_sim_program *program,
                    const struct tl_sim_core_options *options, struct tl_buf *trace,
                    tl_sim_truth_sink *truth, void *context)
{
    struct tl_sim_core *core = calloc(1, sizeof *core);
    *out = NULL;
    if (core == NULL)
        return TL_NOMEM;
    core->program = program;
    core->options = *options;
    if (core->options.irq_every == 0)
        core->options.irq_every = 200000;
    core->rng.state = options->seed;
    int result = tl_sim_etm4_new(&core->etm, &core->options.etm, trace, truth, context);
    for (unsigned t = 0; t < TL_SIM_TASKS && result == 0; t++) {
        struct task *task = &core->tasks[t];
        task->trips = calloc(program->n_loops + 1, sizeof *task->trips);
        if (task->trips == NULL)
            result = TL_NOMEM;
        task->frames[0] = (struct frame){program->tasks[t], true, t == IDLE ? 1 : 0};
        task->depth = 1;
    }
    if (result < 0) {
        tl_sim_core_free(core);
        return result;
    }
    core->pc = program->reset;
    core->el = 1;
    core->handling = true;
    core->next_irq = core->options.irq_every;
    core->next_off = next(core, options->off_every);
    core->next_overflow = next(core, options->overflow_every);
    core->next_event = next(core, options->event_every);
    core->next_fault = next(core, options->fault_every);
    *out = core;
    return TL_OK;
}

void tl_sim_core_free(struct tl_sim_core *core)
{
    if (core == NULL)
        return;
    for (unsigned t = 0; t < TL_SIM_TASKS; t++)
        free(core->tasks[t].trips);
    tl_sim_etm4_free(core->etm);
    free(core);
}

static void push(struct tl_sim_core *core, uint32_t back, bool exception)
{
    struct task *task = &core->tasks[core->current];
    if (task->depth < DEPTH)
        task->frames[task->depth++] = (struct frame){back, exception, core->el};
}

static struct frame pop(struct tl_sim_core *core)
{
    struct task *task = &core->tasks[core->current];
    if (task->depth > 0)
        task->depth--;
    return task->frames[task->depth];
}

static int take_exception(struct tl_sim_core *core, unsigned type, enum tl_sim_vector vector,
                          uint32_t back)
{
    const uint32_t target = core->program->vectors[vector];

    push(core, back, true);
    core->el = 1;
    core->handling = true;
    core->pc = target;
    const struct tl_sim_context after = context_of(core);
    return tl_sim_etm4_exception(core->etm, type, address_of(core, back), address_of(core, target),
                                 &after);
}

/* Choose another task; occasionally the idle one. */
static unsigned choose_task(struct tl_sim_core *core)
{
    if (core->current != IDLE && tl_sim_percent(&core->rng, 15))
        return IDLE;
    const unsigned other = tl_sim_below(&core->rng, IDLE);
    return other == core->current ? (other + 1) % IDLE : other;
}

static bool is_taken(struct tl_sim_core *core, const struct tl_sim_insn *insn)
{
    if (!insn->conditional)
        return true;
    if (insn->loop == 0)
        return tl_sim_percent(&core->rng, insn->percent);
    const struct tl_sim_loop *loop = &core->program->loops[insn->loop - 1];
    uint32_t *trips = &core->tasks[core->current].trips[insn->loop - 1];
    if (*trips == 0)
        *trips = tl_sim_between(&core->rng, loop->min, loop->most);
    return --*trips > 0;
}

static unsigned cost(struct tl_sim_core *core, const struct tl_sim_insn *insn)
{
    if (insn->kind == TL_SIM_PLAIN && (insn->encoding & 0xffc00000u) == 0xf9400000u &&
        tl_sim_below(&core->rng, 256) == 0)
        return 120; /* a load that misses the caches */
    return 1;
}

/* Execute a branch of any kind. */
static int branch(struct tl_sim_core *core, const struct tl_sim_insn *insn, unsigned cycles)
{
    const uint32_t at = core->pc;
    struct tl_sim_branch b = {.pc = address_of(core, at), .encoding = insn->encoding};

    b.taken = true;
    b.link = insn->link;
    switch (insn->kind) {
    case TL_SIM_BRANCH:
        b.taken = is_taken(core, insn);
        core->pc = b.taken ? insn->target : at + 1;
        break;
    case TL_SIM_INDIRECT:
        b.indirect = true;
        core->pc = core->program->targets[insn->target + tl_sim_below(&core->rng, insn->n_targets)];
        break;
    case TL_SIM_RET:
        b.indirect = true;
        b.is_return = true;
        core->pc = pop(core).back;
        break;
    case TL_SIM_ERET: {
        if (core->switching)
            core->current = choose_task(core);
        const struct frame frame = pop(core);
        b.indirect = true;
        b.eret = true;
        core->switching = false;
        core->handling = false;
        core->el = frame.el;
        core->pc = frame.back;
        break;
    }
    default: /* ISB */
        core->pc = at + 1;
        break;
    }
    if (b.link)
        push(core, at + 1, false);
    if (core->pc == core->program->switcher)
        core->switching = true;
    b.target = b.taken ? address_of(core, core->pc) : 0;
    b.after = context_of(core);
    return tl_sim_etm4_branch(core->etm, &b, cycles);
}

static int execute(struct tl_sim_core *core)
{
    const uint32_t at = core->pc;
    const struct tl_sim_insn *insn = &core->program->insns[at];
    const unsigned cycles = cost(core, insn);
    int result;

    core->insns++;
    core->cycles += cycles;
    switch (insn->kind) {
    case TL_SIM_PLAIN:
    case TL_SIM_WFI:
    case TL_SIM_SVC:
    case TL_SIM_TRACE_ITE:
        core->pc = at + 1;
        result = tl_sim_etm4_insn(core->etm, address_of(core, at), insn->encoding, cycles);
        break;
    default:
        return branch(core, insn, cycles);
    }
    if (insn->kind == TL_SIM_WFI && core->cycles < core->next_irq)
        core->cycles = core->next_irq;
    if (result == 0 && insn->kind == TL_SIM_TRACE_ITE)
        result = tl_sim_etm4_ite(core->etm, core->el, tl_sim_rand(&core->rng) >> 32);
    if (result == 0 && insn->kind == TL_SIM_SVC)
        result = take_exception(core, EXCEPTION_CALL, TL_SIM_VECTOR_SYNC_EL0, at + 1);
    return result;
}

/* Simulate filters and overflows, which affect the trace but not the core. */
static int disturb(struct tl_sim_core *core)
{
    int result = 0;
    if (core->tracing && core->insns >= core->next_off) {
        result = tl_sim_etm4_off(core->etm);
        core->tracing = false;
        core->resume_in = tl_sim_between(&core->rng, 1, 400);
        core->next_off = next(core, core->options.off_every);
    } else if (core->tracing && core->insns >= core->next_overflow) {
        result = tl_sim_etm4_overflow(core->etm);
        core->tracing = false;
        core->resume_in = tl_sim_between(&core->rng, 20, 2000);
        core->next_overflow = next(core, core->options.overflow_every);
    } else if (core->insns >= core->next_event) {
        result = tl_sim_etm4_event(core->etm, tl_sim_between(&core->rng, 1, 15));
        core->next_event = next(core, core->options.event_every);
    }
    if (!core->tracing && result == 0) {
        if (core->resume_in > 0) {
            core->resume_in--;
            return 0;
        }
        const struct tl_sim_context context = context_of(core);
        core->tracing = true;
        result = tl_sim_etm4_on(core->etm, address_of(core, core->pc), &context);
    }
    return result;
}

static int interrupt(struct tl_sim_core *core)
{
    if (core->handling)
        return 0;
    if (core->cycles >= core->next_irq) {
        core->next_irq = core->cycles + core->options.irq_every -
                         tl_sim_below(&core->rng, core->options.irq_every / 16 + 1);
        return take_exception(core, EXCEPTION_IRQ,
                              core->el == 0 ? TL_SIM_VECTOR_IRQ_EL0 : TL_SIM_VECTOR_IRQ_EL1,
                              core->pc);
    }
    if (core->insns >= core->next_fault && core->el == 0) {
        core->next_fault = next(core, core->options.fault_every);
        return take_exception(core, EXCEPTION_FAULT, TL_SIM_VECTOR_SYNC_EL0, core->pc);
    }
    return 0;
}

int tl_sim_core_step(struct tl_sim_core *core, uint64_t n)
{
    int result = 0;
    for (; n > 0 && result == 0; n--) {
        tl_sim_etm4_time(core->etm, core->cycles / CYCLES_A_TICK);
        result = disturb(core);
        if (result == 0)
            result = interrupt(core);
        if (result == 0)
            result = execute(core);
    }
    return result;
}

int tl_sim_core_flush(struct tl_sim_core *core)
{
    return tl_sim_etm4_flush(core->etm);
}

uint64_t tl_sim_core_cycles(const struct tl_sim_core *core)
{
    return core->cycles;
}

uint64_t tl_sim_core_insns(const struct tl_sim_core *core)
{
    return core->insns;
}
