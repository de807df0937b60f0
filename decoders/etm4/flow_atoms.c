/* SPDX-License-Identifier: MIT */
/* Atoms: from block to block. */
#include "etm4/flow_walk_parts.h"

/* One atom at block `b`, whatever the block is. */
static void one_atom(struct tl_etm4_walk *w, struct tl_block *b, bool taken, uint64_t offset)
{
    while (b->end == TL_BLOCK_FULL) {
        tl_item_batch_whole(w->out, b, false, offset);
        tl_walk_step(w, tl_walk_next_pc(w, b), &b->go[0]);
        b = tl_walk_here(w);
        if (!b)
            return;
    }
    if (b->end == TL_BLOCK_WAYPOINT) {
        tl_item_batch_whole(w->out, b, taken && tl_walk_turns(b), offset);
        tl_walk_leave(w, b, taken, offset);
        return;
    }
    if (b->n > 0)
        tl_item_batch_whole(w->out, b, false, offset);
    tl_walk_lose(w, TL_GAP_NO_IMAGE, offset);
}

/*
 * Where a return leads, if the trace unit's return stack predicts it and the block behind the
 * call is known; else NULL, and nothing is changed.
 */
static inline struct tl_block *return_known(struct tl_etm4_walk *w)
{
    struct tl_etm4_return_stack *const s = &w->stack;
    const uint32_t top = w->callers.top & (TL_ETM4_CALLERS - 1);
    const struct tl_block *const caller = w->callers.v[top].block;
    if (!s->active || s->n == 0 || !caller || !caller->go[0] || s->v[s->top].isa != w->isa ||
        caller->isa != w->isa || caller->pc + caller->size != s->v[s->top].pc ||
        w->callers.v[top].space != w->space)
        return NULL;
    s->top = (s->top - 1) & (TL_ETM4_RETURN_STACK - 1);
    s->n--;
    w->callers.v[top].block = NULL;
    w->callers.top--;
    return caller->go[0];
}

/*
 * As many atoms as lead from block `*at` on to blocks that are known, and one that leads to where
 * only an address tells; returns how many. Each is a step; `*insns` counts on. `*at` is the block
 * that comes next, or NULL if it is to be told. The loop that everything else is there for: where
 * it goes on is looked up, since no processor foresees which branches are taken.
 */
static inline __attribute__((always_inline)) unsigned walk_known(struct tl_etm4_walk *w,
                                                                 struct tl_block **at,
                                                                 uint64_t atoms, unsigned n,
                                                                 uintptr_t *steps, uint64_t *insns)
{
    struct tl_block *b = *at;
    unsigned done = 0;
    for (; done < n; done++, atoms >>= 1) {
        const unsigned turn = b->turn[atoms & 1];
        struct tl_block *next = b->go[atoms & 1];
        if (turn >= TL_TURN_RETURN) {
            if (done + 1 == n) {
                steps[done] = (uintptr_t)b | 1;
                *insns += b->n;
                w->pc = b->pc;
                tl_walk_await_address(w, b);
                *at = NULL;
                return n;
            }
            /* The next atom proves that there is no address. */
            next = turn == TL_TURN_RETURN ? return_known(w) : NULL;
        }
        if (!next || turn == TL_TURN_OTHER)
            break;
        if (turn == TL_TURN_CALL) {
            tl_walk_push_return(w, tl_walk_next_pc(w, b));
            tl_walk_note_caller(w, b);
        }
        steps[done] = (uintptr_t)b | (turn & 1);
        *insns += b->n;
        b = next;
    }
    w->pc = b->pc;
    *at = b;
    return done;
}

/* The same at the block where we are, with all that comes out. */
static unsigned walk_on(struct tl_etm4_walk *w, uint64_t atoms, unsigned n, uint64_t offset)
{
    uintptr_t own[64];
    uintptr_t *const steps = w->out->paths ? tl_item_batch_steps(w->out, n) : own;
    uint64_t insns = 0;
    const unsigned done = walk_known(w, &w->block, atoms, n, steps, &insns);
    if (w->out->paths && done > 0)
        tl_item_batch_path(w->out, done, insns, offset);
    for (unsigned i = 0; !w->out->paths && i < done; i++) {
        const struct tl_block *const b = tl_path_block(own[i]);
        tl_item_batch_block(w->out, b, b->n, tl_path_taken(own[i]), offset);
    }
    return done;
}

/* Atoms at a place that the image does not hold: as without one, at least where it went. */
static void no_image(struct tl_etm4_walk *w, uint64_t offset)
{
    if (w->by_address)
        tl_walk_tell_branch(w, w->pc, offset);
    tl_walk_lose(w, TL_GAP_NO_IMAGE, offset);
}

/* Atoms of a packet, or what is left of them. */
static void some_atoms(struct tl_etm4_walk *w, uint64_t atoms, unsigned n, uint64_t offset)
{
    while (n > 0) {
        tl_walk_pop_pending(w, offset);
        if (w->need_address) { /* and none of the atoms can bring it */
            tl_walk_is_known(w, offset);
            return;
        }
        struct tl_block *const b = tl_walk_here(w);
        if (!b)
            return;
        if (b->n == 0) {
            no_image(w, offset);
            return;
        }
        const unsigned done = walk_on(w, atoms, n, offset);
        if (done < n) {
            atoms >>= done;
            one_atom(w, w->block ? w->block : b, atoms & 1, offset);
            atoms >>= 1;
        }
        n -= done < n ? done + 1 : done;
    }
}

/* The same where walk_known() has just stopped at block `b`, NULL: there is none. */
static void stuck_atoms(struct tl_etm4_walk *w, struct tl_block *b, uint64_t atoms, unsigned n,
                        uint64_t offset)
{
    if (b) {
        one_atom(w, b, atoms & 1, offset);
        atoms >>= 1;
        n--;
    }
    some_atoms(w, atoms, n, offset);
}

void tl_etm4_walk_atoms(struct tl_etm4_walk *w, uint64_t atoms, unsigned n, uint64_t offset)
{
    if (!w->cache || w->need_context)
        return;
    tl_item_batch_pause(w->out);
    some_atoms(w, atoms, n, offset);
}

/* ---- many packets -------------------------------------------------------------------------- */

/* Steps that are not in the batch yet. */
struct stretch {
    uintptr_t *begin, *end;
    uint64_t insns;
    uint64_t offset;
};

/* Into the batch, before anything else goes there. */
static inline void end_stretch(struct tl_etm4_walk *w, struct stretch *s)
{
    if (s->end > s->begin)
        tl_item_batch_path(w->out, (size_t)(s->end - s->begin), s->insns, s->offset);
    s->begin = s->end = NULL;
}

/* Room for the steps of one more packet. */
static inline void next_stretch(struct tl_etm4_walk *w, struct stretch *s, uint64_t offset)
{
    if (s->begin && w->out->run + (size_t)(s->end - s->begin) < TL_BATCH_RUN)
        return;
    end_stretch(w, s);
    tl_item_batch_pause(w->out);
    s->begin = s->end = tl_item_batch_steps(w->out, TL_BATCH_RUN + 64);
    s->insns = 0;
    s->offset = offset;
}

/*
 * An address that nothing comes out for, nor ends the run: in the same context, and where the flow
 * is known to go or an indirect branch went.
 */
static inline bool is_quick(const struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    return !(p->flags & TL_ETM4_HAS_CONTEXT) && (w->need_address || w->pc == p->value) &&
           (w->isa == TL_ISA_T32) == !!(p->flags & TL_ETM4_IS1);
}

static inline struct tl_block *quick_address(struct tl_etm4_walk *w, struct tl_block *b,
                                             uint64_t pc)
{
    w->stack.wait_address = false;
    w->is1 = w->isa == TL_ISA_T32;
    if (b) { /* branch broadcasting tells what we know */
        w->told = false;
        w->by_address = true;
        return b;
    }
    w->stack.pending = false;
    tl_walk_jump(w, pc, (enum tl_isa)w->isa);
    return w->block;
}

size_t tl_etm4_walk_packets(struct tl_etm4_walk *w, const struct tl_etm4_packet *packets, size_t n)
{
    struct tl_block *b = w->block;
    struct stretch s = {0};
    size_t i = 0;
    if (!w->out->paths || !w->cache || w->need_context)
        return 0;
    for (; i < n; i++) {
        const struct tl_etm4_packet *const p = &packets[i];
        if (p->type == TL_ETM4_ATOM) {
            unsigned done = 0;
            if (!b && w->need_address && w->told && !w->stack.pending)
                continue; /* lost until the next address */
            if (!b && !w->need_address && (b = tl_walk_here(w)) && b->n == 0) {
                end_stretch(w, &s);
                no_image(w, p->offset);
                b = NULL;
                continue;
            }
            next_stretch(w, &s, p->offset);
            if (b) {
                done = walk_known(w, &b, p->value, p->n, s.end, &s.insns);
                s.end += done;
            }
            if (done == p->n)
                continue;
            w->block = b;
            end_stretch(w, &s);
            stuck_atoms(w, b, p->value >> done, p->n - done, p->offset);
            b = w->block;
        } else if (p->type == TL_ETM4_ADDRESS && is_quick(w, p)) {
            b = quick_address(w, b, p->value);
        } else if (p->type == TL_ETM4_CYCLE_COUNT) {
            end_stretch(w, &s);
            tl_etm4_walk_cycles(w, p);
        } else {
            break;
        }
    }
    end_stretch(w, &s);
    w->block = b;
    return i;
}
