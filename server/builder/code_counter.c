/* SPDX-License-Identifier: MIT */
/*
 * Counts executions of whole blocks and resolves them to runs and branches when the shard ends.
 * Blocks repeat so often that work for each executed branch would slow down decoding.
 */
#include "builder/code_counter.h"

#include <stdlib.h>

void tl_code_counter_fini(struct tl_code_counter *c)
{
    tl_codecount_fini(&c->counts);
    free(c->turns);
    *c = (struct tl_code_counter){0};
}

/* The number of a run; 0 if counting was given up. */
static uint32_t run_of(struct tl_code_counter *c, uint64_t first, uint64_t last)
{
    uint32_t number = TL_NO_NUMBER;
    const uint32_t before = c->counts.runs.n;
    if (tl_codecount_number(&c->counts, c->program, first, last, &number) < 0 ||
        number >= TL_CODE_COUNTER_RUNS ||
        tl_grow(&c->turns, &c->cap_turns, number + (size_t)1, sizeof *c->turns) < 0) {
        tl_code_counter_fini(c);
        return 0;
    }
    if (number == before)
        c->turns[number] = (struct tl_code_turn){0};
    return number;
}

static uint64_t last_of(const struct tl_block *block)
{
    return block->pc + block->size - block->last_size;
}

uint32_t tl_code_counter_block(struct tl_code_counter *c, const struct tl_block *block)
{
    const uint32_t run = c->counting ? run_of(c, block->pc, last_of(block)) : 0;
    if (c->counting && tl_code_is_direct(block)) {
        struct tl_code_turn *const turn = &c->turns[run];
        /* Self-modified code may have another branch target. */
        if (turn->next != 0 && turn->target != block->target)
            return tl_code_counter_fini(c), 0;
        turn->target = block->target;
        turn->next = block->pc + block->size;
    }
    return c->counting ? run : 0;
}

static void put_edge(struct tl_code_counter *c, const struct tl_code_edge *edge)
{
    if (edge->n > 0 &&
        (tl_codecount_branch(&c->counts, edge->program, edge->from, edge->to, edge->n) < 0 ||
         c->counts.branches.n > TL_CODE_COUNTER_RUNS))
        tl_code_counter_fini(c);
}

static void add_edge(struct tl_code_counter *c, uint32_t program, uint64_t from, uint64_t to)
{
    struct tl_code_edge *const edge =
        &c->edges[tl_numbers_hash(from ^ to << 7) % TL_CODE_EDGES_KEPT];
    if (edge->from != from || edge->to != to || edge->program != program) {
        put_edge(c, edge);
        *edge = (struct tl_code_edge){from, to, 0, program};
    }
    edge->n++;
}

void tl_code_counter_edge(struct tl_code_counter *c, const struct tl_block *from, uint64_t pc)
{
    if (c->counting && pc != from->pc + from->size)
        add_edge(c, c->program, last_of(from), pc);
}

void tl_code_counter_arrive(struct tl_code_counter *c, uint64_t pc)
{
    bool other = c->left == TL_CODE_LEFT_OTHER;
    if (c->left == TL_CODE_LEFT_DIRECT && pc != c->turns[c->left_run].target) {
        c->turns[c->left_run].taken--; /* the trace shows that it was not taken */
        other = true;
    }
    /* If the branch target is the next instruction, it is unknown whether it was taken. */
    if (other && pc != c->left_next)
        add_edge(c, c->left_program, c->left_last, pc);
    c->left = TL_CODE_LEFT_STRAIGHT;
}

void tl_code_counter_left(struct tl_code_counter *c, const struct tl_block *block, uint32_t run,
                          bool taken)
{
    c->left = !taken                     ? TL_CODE_LEFT_STRAIGHT
              : tl_code_is_direct(block) ? TL_CODE_LEFT_DIRECT
                                         : TL_CODE_LEFT_OTHER;
    c->left_run = run;
    c->left_last = last_of(block);
    c->left_next = block->pc + block->size;
    c->left_program = c->program;
}

/* End the current run: returns its number, 0 if counting was given up. */
static uint32_t end_run(struct tl_code_counter *c)
{
    const uint32_t run = c->open ? run_of(c, c->first, c->last) : 0;
    if (c->open && c->counting)
        c->turns[run].times++;
    c->open = false;
    return run;
}

void tl_code_counter_part(struct tl_code_counter *c, const struct tl_block *block, uint32_t from,
                          uint32_t to, uint32_t last, bool ends, bool taken)
{
    const uint64_t pc = block->pc + from;
    if (c->open && c->next != pc)
        end_run(c);
    if (!c->open)
        c->first = pc;
    c->open = true;
    c->last = block->pc + last;
    c->next = block->pc + to;
    c->left = TL_CODE_LEFT_STRAIGHT;
    if (!ends || !(taken || block->last_kind != TL_INSN_PLAIN))
        return;
    (void)end_run(c);
    if (!c->counting)
        return;
    /* Its branch is counted at its destination, like one of another kind. */
    c->left = taken ? TL_CODE_LEFT_OTHER : TL_CODE_LEFT_STRAIGHT;
    c->left_last = c->last;
    c->left_next = c->next;
    c->left_program = c->program;
}

void tl_code_counter_stop(struct tl_code_counter *c)
{
    c->interrupted |= c->counts.runs.n == 0 && !c->open;
    if (!c->counting)
        return;
    end_run(c);
    if (c->left == TL_CODE_LEFT_DIRECT)
        c->turns[c->left_run].taken--;
    c->left = TL_CODE_LEFT_STRAIGHT;
}

bool tl_code_counter_program(struct tl_code_counter *c, const struct tl_image *image,
                             const struct tl_flow_now *now, uint64_t insns)
{
    const struct tl_code_program program = tl_code_program_of(image, now, &c->until);
    const bool any = c->counts.n_programs > 0;
    uint32_t number;
    if (!c->counting)
        return false;
    if (tl_codecount_program(&c->counts, &program, &number) < 0 || number == TL_NO_NUMBER) {
        tl_code_counter_fini(c);
        return false;
    }
    if (any && number == c->program)
        return false;
    if (any) {
        end_run(c);
        if (!c->counting)
            return false;
        c->counts.programs[c->program].insns += insns - c->since;
    }
    c->program = number;
    c->since = insns;
    return any;
}

void tl_code_counter_end(struct tl_code_counter *c, uint64_t insns, uint64_t next)
{
    if (!c->counting)
        return;
    if (next != 0)
        tl_code_counter_arrive(c, next);
    tl_code_counter_stop(c);
    for (uint32_t i = 0; c->counting && i < TL_CODE_EDGES_KEPT; i++)
        put_edge(c, &c->edges[i]);
    for (uint32_t i = 0; c->counting && i < c->counts.runs.n; i++) {
        const struct tl_code_turn *const turn = &c->turns[i];
        const struct tl_code_pair run = tl_code_pair(&c->counts, c->counts.runs.keys[i]);
        c->counts.run_counts[i] = turn->times;
        if (turn->taken > 0 && turn->target != turn->next && turn->next != 0 &&
            tl_codecount_branch(&c->counts, run.program, run.to, turn->target, turn->taken) < 0)
            tl_code_counter_fini(c);
    }
    if (!c->counting)
        return;
    c->counts.programs[c->program].insns += insns - c->since;
    c->counts.insns = insns;
}
