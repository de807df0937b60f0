/* SPDX-License-Identifier: MIT */
/* Atoms: from block to block. */
#include "etm4/flow_walk_parts.h"
#include "etm4/headers.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

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
 * the block has not been looked up, or only an address tells; returns how many. Each is a step;
 * `*insns` counts on. `*at` is the block that comes next, or NULL if the walk has to find it. The
 * loop that everything else is there for: where it goes on is looked up, since no processor
 * foresees which branches are taken.
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
        if (turn >= TL_TURN_OTHER) {
            if (turn < TL_TURN_RETURN)
                break;
            if (done + 1 == n) {
                steps[done] = (uintptr_t)b | (turn & TL_STEP_FLAGS);
                *insns += b->n;
                w->pc = b->pc;
                tl_walk_await_address(w, b);
                *at = NULL;
                return n;
            }
            /* The next atom proves that there is no address. */
            next = turn < TL_TURN_INDIRECT ? return_known(w) : NULL;
            if (!next)
                break;
        }
        if (turn >= TL_TURN_CALL && turn < TL_TURN_OTHER) {
            tl_walk_push_return(w, tl_walk_next_pc(w, b));
            tl_walk_note_caller(w, b);
        }
        steps[done] = (uintptr_t)b | (turn & TL_STEP_FLAGS);
        *insns += b->n;
        if (!next) {
            const uint64_t pc = turn < TL_TURN_BRANCH ? tl_walk_next_pc(w, b) : b->target;
            tl_walk_step(w, pc, &b->go[atoms & 1]);
            *at = NULL;
            return done + 1;
        }
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
        const struct tl_block *const b = tl_walk_here(w);
        if (!b)
            return;
        if (b->n == 0) {
            no_image(w, offset);
            return;
        }
        const unsigned done = walk_on(w, atoms, n, offset);
        n -= done;
        if (n == 0)
            return;
        atoms >>= done;
        if (w->block) {
            one_atom(w, w->block, atoms & 1, offset);
            atoms >>= 1;
            n--;
        }
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

/* ---- stretches ----------------------------------------------------------------------------- */

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

/* ---- a tape -------------------------------------------------------------------------------- */

static ALWAYS_INLINE size_t join(struct tl_etm4_joined *j, const struct tl_etm4_tape *tape,
                                 size_t k, size_t end)
{
    if (j->n == 0) {
        j->atoms = 0;
        j->offset = tl_run_offset(&tape->run, tape->at[k]);
    }
    for (; k < end; k++) {
        const uint32_t atoms = tl_etm4_atoms[tape->header[k] - TL_ETM4_ATOM_FIRST];
        const unsigned more = atoms >> 24;
        if (j->n + more > 64)
            break;
        j->atoms |= (uint64_t)(atoms & 0xffffff) << j->n;
        j->n += more;
    }
    return k;
}

size_t tl_etm4_join(struct tl_etm4_joined *joined, const struct tl_etm4_tape *tape, size_t k,
                    size_t end)
{
    return join(joined, tape, k, end);
}

/* Atoms at block `*b`, NULL: where the walk stands without one. */
static ALWAYS_INLINE void walk_joined(struct tl_etm4_walk *w, struct tl_block **b,
                                      struct stretch *s, struct tl_etm4_joined *j)
{
    unsigned done = 0;
    next_stretch(w, s, j->offset);
    if (*b) {
        done = walk_known(w, b, j->atoms, j->n, s->end, &s->insns);
        s->end += done;
    }
    if (done < j->n) {
        w->block = *b;
        end_stretch(w, s);
        stuck_atoms(w, *b, j->atoms >> done, j->n - done, j->offset);
        *b = w->block;
    }
    j->n = 0;
}

/* Without a block: do atoms say nothing until the next address? As for the first ones. */
static inline bool passes_over(struct tl_etm4_walk *w, struct tl_block **b, struct stretch *s,
                               const struct tl_run *run, size_t at)
{
    if (!w->cache || w->need_context)
        return true;
    if (w->need_address)
        return w->told && !w->stack.pending;
    *b = tl_walk_here(w);
    if (!*b || (*b)->n > 0)
        return false;
    end_stretch(w, s);
    no_image(w, tl_run_offset(run, at));
    *b = NULL;
    return true;
}

/* An address without a context: nothing comes out where the flow goes there anyway. */
static ALWAYS_INLINE struct tl_block *walk_address(struct tl_etm4_walk *w, struct tl_block *b,
                                                   struct stretch *s, uint64_t address,
                                                   const struct tl_run *run, size_t at)
{
    const uint64_t pc = address & ~1ull;
    const bool is1 = address & 1;
    if ((w->need_address || w->pc == pc) && (w->isa == TL_ISA_T32) == is1 && w->cache) {
        w->stack.wait_address = false;
        w->is1 = is1;
        if (b) { /* branch broadcasting tells what we know */
            w->told = false;
            w->by_address = true;
            return b;
        }
        w->stack.pending = false;
        tl_walk_jump(w, pc, (enum tl_isa)w->isa);
        return w->block;
    }
    const struct tl_etm4_packet packet = {.type = TL_ETM4_ADDRESS,
                                          .flags = is1 ? TL_ETM4_IS1 : 0,
                                          .value = pc,
                                          .offset = tl_run_offset(run, at)};
    w->block = b;
    end_stretch(w, s);
    tl_etm4_walk_address(w, &packet);
    return w->block;
}

/* Another packet that only has to do with where the core is. False: it is none. */
static bool walk_other(struct tl_etm4_walk *w, const struct tl_etm4_tape *tape,
                       struct tl_etm4_tape_place *place)
{
    struct tl_etm4_packet packet, address;
    const size_t k = place->packet;
    switch (tape->forms->class_of[tape->header[k]]) {
    case TL_CLASS_ADDR_CTX32:
    case TL_CLASS_ADDR_CTX64:
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_walk_address(w, &packet);
        return true;
    case TL_CLASS_CONTEXT:
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_walk_context(w, &packet);
        return true;
    case TL_CLASS_CYCLES_F1:
    case TL_CLASS_CYCLES_F2:
    case TL_CLASS_CYCLES_F3:
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_walk_cycles(w, &packet);
        return true;
    case TL_CLASS_EXCEPTION: /* nearly always with its address behind it */
        if (k + 1 == tape->n || !tl_etm4_is_address(tape->header[k + 1]))
            return false;
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_tape_next(tape, place, &address);
        tl_etm4_walk_exception(w, &packet, &address);
        return true;
    case TL_CLASS_EXCEPTION_RETURN:
        tl_item_batch_add(w->out, TL_ITEM_ERET, tl_run_offset(&tape->run, tape->at[k]));
        place->packet++;
        return true;
    default:
        return false;
    }
}

/* Is it an address without a context? Under every configuration. */
static inline bool is_mere_address(uint8_t header)
{
    return header >> 4 == 9;
}

/* pass_hole(), once for each value of `linear`: offsets are those of adjacent bytes. */
static ALWAYS_INLINE size_t pass_addresses(struct tl_etm4_walk *w, const struct tl_etm4_tape *tape,
                                           const struct tl_etm4_tape_marks *marks,
                                           struct tl_etm4_tape_place *place, size_t k,
                                           const struct tl_block_hole *hole, bool linear)
{
    const uint64_t *const from = tape->address + place->address, *address = from;
    const uint64_t first = hole->first, size = hole->last - first, base = tape->run.base;
    const uint8_t *const header = tape->header;
    const uint16_t *const at = tape->at;
    const size_t end = tape->n;
    const unsigned is1 = w->isa == TL_ISA_T32;
    struct tl_item_batch *const out = w->out;
    struct tl_item *item = out->room->items + out->n;
    const struct tl_item *last = out->room->items + TL_BATCH_ITEMS - 2;
    const uint64_t *word = &marks->words[k / 64];
    uint64_t left = *word & ~0ull << k % 64; /* marks from `k` on */
    size_t lowest = k & ~(size_t)63;         /* packet of the word */

    do {
        const uint64_t to = *address - is1;
        left &= left - 1;
        for (; left == 0; lowest += 64)
            left = *++word;
        const size_t next = lowest + (size_t)__builtin_ctzll(left);
        if (to - first > size || to & 1 || next == k + 1) /* another instruction set; no atoms */
            break;
        if (item > last) {
            out->n = (size_t)(item - out->room->items);
            tl_item_batch_flush(out);
            item = out->room->items;
            last = item + TL_BATCH_ITEMS - 2;
        }
        const uint64_t offset = linear ? base + at[k + 1] : tl_run_offset(&tape->run, at[k + 1]);
        item[0] = (struct tl_item){
            .kind = TL_ITEM_BRANCH, .flags = TL_ITEM_HAS_VALUE, .value = to, .offset = offset};
        item[1] = (struct tl_item){.kind = TL_ITEM_GAP, .sub = TL_GAP_NO_IMAGE, .offset = offset};
        item += 2;
        address++;
        k = next;
    } while (k < end && is_mere_address(header[k]));
    out->n = (size_t)(item - out->room->items);
    if (address == from)
        return k;
    out->run = 0;
    w->pc = address[-1] & ~1ull;
    w->is1 = is1;
    w->by_address = true;
    w->stack.wait_address = false;
    place->address += (size_t)(address - from);
    return k;
}

/*
 * Lost, and at packet `k`, an address in `hole`: on as long as all that comes are addresses of that
 * hole with atoms behind them. Of each, where it went and that the flow is lost there. Returns the
 * first packet that is neither.
 */
static __attribute__((noinline)) size_t pass_hole(struct tl_etm4_walk *w,
                                                  const struct tl_etm4_tape *tape,
                                                  const struct tl_etm4_tape_marks *marks,
                                                  struct tl_etm4_tape_place *place, size_t k,
                                                  const struct tl_block_hole *hole)
{
    return !tape->run.place ? pass_addresses(w, tape, marks, place, k, hole, true)
                            : pass_addresses(w, tape, marks, place, k, hole, false);
}

/* Lost, and at packet `k`, which is no atom: the first packet that does not lead to a hole. */
static size_t pass_holes(struct tl_etm4_walk *w, const struct tl_etm4_tape *tape,
                         const struct tl_etm4_tape_marks *marks, struct tl_etm4_tape_place *place,
                         size_t k)
{
    for (size_t from = tape->n; k != from && k < tape->n && is_mere_address(tape->header[k]);) {
        const struct tl_block_hole *const hole =
            tl_block_hole_at(w->cache, w->space, tape->address[place->address] & ~1ull);
        if (!hole)
            break;
        from = k;
        k = pass_hole(w, tape, marks, place, k, hole);
    }
    return k;
}

void tl_etm4_walk_tape(struct tl_etm4_walk *w, const struct tl_etm4_tape *tape,
                       const struct tl_etm4_tape_marks *marks, struct tl_etm4_tape_place *place,
                       struct tl_etm4_joined *joined)
{
    const uint8_t *const fill = tape->forms->fill;
    struct tl_etm4_joined j = *joined;
    struct tl_block *b = w->block;
    struct stretch s = {0};
    size_t k = place->packet;

    for (;;) {
        const size_t end = tl_etm4_tape_marked(marks, k);
        if (k < end) {
            if (j.n == 0 && !b && passes_over(w, &b, &s, &tape->run, tape->at[k]))
                k = end;
            else
                k = join(&j, tape, k, end);
        }
        if (k == tape->n) /* more may follow on the next one */
            break;
        if (j.n > 0)
            walk_joined(w, &b, &s, &j);
        if (k < end)
            continue;
        if (!b && w->need_address && w->told && !w->stack.pending && w->cache && !w->need_context) {
            k = pass_holes(w, tape, marks, place, k);
            if (k == tape->n)
                break;
        }
        const unsigned how = fill[tape->header[k]];
        if (how == TL_FILL_ADDRESS || how == TL_FILL_SHORT) {
            b = walk_address(w, b, &s, tape->address[place->address++], &tape->run, tape->at[k]);
            k++;
        } else if (how == TL_FILL_CYCLES) {
            end_stretch(w, &s);
            tl_item_batch_value(w->out, TL_ITEM_CYCLES,
                                tape->forms->fixed[tape->header[k]].value + tape->threshold,
                                tl_run_offset(&tape->run, tape->at[k]));
            k++;
        } else {
            w->block = b;
            end_stretch(w, &s);
            place->packet = k;
            if (!walk_other(w, tape, place))
                break;
            b = w->block;
            k = place->packet;
        }
    }
    end_stretch(w, &s);
    w->block = b;
    place->packet = k;
    *joined = j;
}
