/* SPDX-License-Identifier: MIT */
/*
 * Checks that the flow of a stream is possible: between two instructions told one after the other,
 * the second is where the first one goes, or an item stands between them that says why not.
 *
 * An instruction goes to the next one (on Arm, where unconditional branches have an outcome in the
 * trace, also one of these that was not taken), to the target of a direct branch, or, by an
 * indirect branch, to any address; if `given` is set, only to one that the trace gave, or behind a
 * call that was told since the flow was last lost and has not returned yet. Gaps, exceptions,
 * exception returns, branches, instructions without an encoding and starts of tracing stand
 * between.
 *
 *     struct steps steps = {0};
 *     steps_take(&steps, items, n);   // each batch of one stream's items, in order
 *     steps.impossible, steps.what    // how many, and the first
 *
 * steps_demand() ends the program at an impossible step instead: for sinks of tests and fuzz
 * targets, which get a struct steps, or steps_streams, beside what else they collect. Header only;
 * not thread-safe. If memory runs out, the program ends.
 */
#ifndef TL_TESTS_STEPS_H
#define TL_TESTS_STEPS_H

#include "flow/item.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What supports the target of an indirect branch. */
struct steps_given {
    /* Addresses that the trace gave; of some, only the lowest bits. */
    struct {
        uint64_t address, mask;
    } * p;
    size_t n, cap;
    uint64_t *calls; /* return addresses of calls, the newest last */
    size_t n_calls, cap_calls;
};

struct steps {
    struct steps_given *given; /* borrowed; NULL: indirect branches may go anywhere */
    uint64_t insns, impossible;
    char what[200]; /* the first impossible step */
    /* Where the last instruction goes, if nothing stands behind it. */
    bool stands;
    bool anywhere; /* to any address, of which `predicted` ones must have a basis */
    bool predicted;
    bool nowhere; /* it cannot go on as it was told */
    uint64_t from, to;
};

static inline void steps_given_fini(struct steps_given *given)
{
    free(given->p);
    free(given->calls);
    *given = (struct steps_given){0};
}

static inline void steps_give(struct steps_given *given, uint64_t address, unsigned bits)
{
    const uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    for (size_t i = 0; i < given->n; i++)
        if (given->p[i].mask == mask && given->p[i].address == (address & mask))
            return;
    if (tl_grow(&given->p, &given->cap, given->n + 1, sizeof *given->p) < 0)
        abort();
    given->p[given->n].address = address & mask;
    given->p[given->n++].mask = mask;
}

/* Add the address in a line of a packet listing of ETMv4, ETE or Intel PT, if it has one. */
static inline void steps_give_line(struct steps_given *given, const char *line)
{
    static const uint8_t bits[] = {0, 16, 32, 48, 48, 0, 64, 0}; /* by IPBytes */
    const char *const address = strstr(line, " addr=0x"), *const ip = strstr(line, " ipc=");
    if (address)
        steps_give(given, strtoull(address + 8, NULL, 16), 64);
    else if (ip && bits[ip[5] & 7] > 0)
        steps_give(given, strtoull(strchr(ip, 'x') + 1, NULL, 16), bits[ip[5] & 7]);
}

static inline bool steps_is_given(const struct steps_given *given, uint64_t pc)
{
    for (size_t i = 0; i < given->n; i++)
        if ((pc & given->p[i].mask) == given->p[i].address)
            return true;
    return false;
}

static inline void steps_fail(struct steps *s, uint64_t pc, uint64_t offset, const char *why)
{
    if (s->impossible++ == 0)
        snprintf(s->what, sizeof s->what,
                 "%" PRIx64 " goes to %" PRIx64 ", not to %" PRIx64 ": %s; offset %" PRIu64,
                 s->from, s->to, pc, why, offset);
}

/* Is there a call that returns to `pc`? It and those inside it have returned then. */
static inline bool steps_returns(struct steps_given *given, uint64_t pc)
{
    size_t i = given->n_calls;
    while (i > 0 && given->calls[i - 1] != pc)
        i--;
    if (i == 0)
        return false;
    given->n_calls = i - 1;
    return true;
}

/* The next instruction is at `pc`. */
static inline void steps_arrive(struct steps *s, uint64_t pc, uint64_t offset)
{
    if (!s->stands)
        return;
    if (s->nowhere)
        steps_fail(s, pc, offset, "it always branches, and was told not to");
    else if (!s->anywhere && pc != s->to)
        steps_fail(s, pc, offset, "another place");
    else if (s->predicted && s->given && !steps_is_given(s->given, pc) &&
             !steps_returns(s->given, pc))
        steps_fail(s, pc, offset, "neither given nor behind a call");
}

static inline void steps_call(struct steps_given *given, uint64_t back)
{
    if (tl_grow(&given->calls, &given->cap_calls, given->n_calls + 1, sizeof *given->calls) < 0)
        abort();
    given->calls[given->n_calls++] = back;
}

static inline uint64_t steps_wrap(uint8_t isa, uint64_t pc)
{
    return isa == TL_ISA_A64 || isa == TL_ISA_X64 || isa == TL_ISA_RV64 ? pc : (uint32_t)pc;
}

/* The first `n` instructions of `b` were executed; `taken`: the last one changed the flow. */
static inline void steps_block(struct steps *s, const struct tl_block *b, uint32_t n, bool taken,
                               uint64_t offset)
{
    steps_arrive(s, b->pc, offset);
    if (n == 0)
        return;
    const bool whole = n == b->n;
    const uint8_t kind = whole ? b->last_kind : TL_INSN_PLAIN;
    const bool direct = kind == TL_INSN_BRANCH;
    const bool turns = direct || kind == TL_INSN_INDIRECT || kind == TL_INSN_RETURN_EX;
    const bool arm = b->isa == TL_ISA_A64 || b->isa == TL_ISA_A32 || b->isa == TL_ISA_T32;
    const bool always = turns && !b->conditional && !arm;
    const uint64_t after = steps_wrap(b->isa, b->pc + tl_block_bytes(b, n));
    s->insns += n;
    s->from = n > 1 ? b->pc + tl_block_bytes(b, n - 1) : b->pc;
    s->stands = true;
    s->nowhere = always && !taken;
    s->to = direct && taken ? b->target : after;
    s->anywhere = (turns && !direct && taken) || (kind == TL_INSN_TRAP && tl_isa_is_x86(b->isa));
    s->predicted = s->anywhere && kind == TL_INSN_INDIRECT && !b->link;
    if (turns && taken && b->link && s->given)
        steps_call(s->given, after);
}

/* Something stands behind the last instruction. `lost`: the flow was lost there. */
static inline void steps_stop(struct steps *s, bool lost)
{
    s->stands = false;
    if (lost && s->given)
        s->given->n_calls = 0;
}

/* Each step behind which frames may change says so. */
static inline void steps_check_out(const struct tl_item *path)
{
    for (uint32_t i = 0; i + 1 < path->n; i++) {
        const struct tl_block *const b = tl_path_block(path->path[i]);
        const bool out = (tl_path_taken(path->path[i]) && b->leave > TL_LEAVE_JUMP) ||
                         b->function != tl_path_block(path->path[i + 1])->function;
        if (out && !(path->path[i] & TL_STEP_OUT)) {
            fprintf(stderr, "a step out of 0x%" PRIx64 " is not told\n", b->pc);
            abort();
        }
    }
}

static inline void steps_take_one(struct steps *s, const struct tl_item *item)
{
    switch (item->kind) {
    case TL_ITEM_BLOCK:
        steps_block(s, item->block, item->n, item->flags & TL_ITEM_TAKEN, item->offset);
        break;
    case TL_ITEM_PATH:
        steps_check_out(item);
        for (uint32_t i = 0; i < item->n; i++) {
            const struct tl_block *const b = tl_path_block(item->path[i]);
            steps_block(s, b, b->n, tl_path_taken(item->path[i]), item->offset);
        }
        break;
    case TL_ITEM_GAP:
        steps_stop(s, item->sub != TL_GAP_OFF);
        break;
    case TL_ITEM_UNKNOWN:
    case TL_ITEM_BRANCH:
    case TL_ITEM_TARGET:
    case TL_ITEM_EXCEPTION:
    case TL_ITEM_ERET:
    case TL_ITEM_TRACE_ON:
        steps_stop(s, false);
        break;
    default:
        break;
    }
}

static inline void steps_take(struct steps *s, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        steps_take_one(s, &items[i]);
}

/* The same, and end the program at an impossible step. */
static inline void steps_demand(struct steps *s, const struct tl_item *items, size_t n)
{
    steps_take(s, items, n);
    if (s->impossible == 0)
        return;
    fprintf(stderr, "impossible step: %s\n", s->what);
    abort();
}

/* Of several streams, by their number; those with higher ones are not checked. */
struct steps_streams {
    struct steps v[64];
};

static inline void steps_demand_of(struct steps_streams *all, size_t stream,
                                   const struct tl_item *items, size_t n)
{
    if (stream < sizeof all->v / sizeof *all->v)
        steps_demand(&all->v[stream], items, n);
}

#endif
