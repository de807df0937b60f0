/* SPDX-License-Identifier: MIT */
/*
 * Piece by piece, each in two passes: a bucket has several, so that the second pass finds the
 * blocks in the nearest cache, and offsets are noted. The first one goes over all blocks, and finds
 * those at which anything changes but the number of instructions: the function, the page, or the
 * frame. Their predecessors know it. About every sixth does, and which ones nobody can predict: so
 * each is written down, and the next one over it unless it counts. The second pass follows the
 * calls and counts what lies between.
 */
#include "store/count.h"

#include <assert.h>

/* At most in one piece: as many as it has instructions. */
#define EVENTS (1u << TL_PART_OFFSETS)
static_assert(TL_PART_OFFSETS <= 2 * TL_LEVEL_STORED, "a bucket consists of pieces");

/*
 * Each by itself in its array: the next one is written at every step. Where instructions are
 * counted, it is from the first one on that this call was given.
 */
struct events {
    size_t n;
    const uintptr_t
        *step[EVENTS + 1];   /* where it changes; in front of it: the step that led there */
    uint32_t at[EVENTS + 1]; /* instructions in front of it; behind the last: of the piece */
    /* The first of each path, with the one in front of it; 0: none is known. */
    uintptr_t heads[EVENTS][2];
    size_t n_heads;
};

/* The first pass. */
struct scan {
    struct events *events;
    uint64_t room; /* instructions that may be counted */
    uint64_t end;  /* … up to the piece's end: the block in which it lies comes along */
    uint64_t n;    /* … that were */
    uint64_t taken;
    uintptr_t from; /* the last step; 0: none yet */
    struct tl_part *part;
    uint8_t isa;
    /* Where we are. */
    size_t item, step;
    uint64_t item_at; /* instructions in front of the item */
    uint64_t offset;  /* of the last item that had any */
};

/* What there may not be room for in front of the last step of a path. */
enum ends { NOTHING, PIECE, ALL };

/* Does the block that begins at `at` lie behind the piece's end, or the room's? */
static inline bool is_out(const struct scan *s, uint64_t at, const struct tl_block *block,
                          enum ends ends)
{
    return (ends >= PIECE && at >= s->end) || (ends == ALL && block->n > s->room - at);
}

/* The chunk has not had this block yet. */
static __attribute__((noinline, cold)) void meet(struct tl_part *part, uintptr_t step)
{
    struct tl_block *const block = (struct tl_block *)(step & ~(uintptr_t)1);
    tl_code_set_add(&part->code, block->pc, block->size);
    block->met = part->stamp;
}

/* Go over the steps [i, n), of one path; returns the first that is not counted. */
static inline __attribute__((always_inline)) size_t
scan_steps(struct scan *scan, const uintptr_t *path, size_t i, size_t n, enum ends ends)
{
    struct events *const events = scan->events;
    const struct tl_block *block = tl_path_block(path[i]);
    uint64_t at = scan->n;
    if (is_out(scan, at, block, ends))
        return i;
    /* The step in front of the first one is somewhere else. */
    uintptr_t *const head = events->heads[events->n_heads++];
    head[0] = scan->from;
    head[1] = path[i];
    const size_t first = i;
    size_t k = events->n;
    events->step[k] = &head[1];
    events->at[k++] = (uint32_t)at;
    uint64_t taken = path[i] & 1;
    unsigned alike = block->alike[path[i] & 1];
    uint64_t always = alike >> 1;
    const uint32_t stamp = scan->part->stamp;
    if (block->met != stamp)
        meet(scan->part, path[i]);
    at += block->n;
    for (i++; i < n; i++) {
        const uintptr_t turn = path[i] & 1;
        block = (const struct tl_block *)(path[i] - turn);
        if (is_out(scan, at, block, ends))
            break;
        if (block->met != stamp)
            meet(scan->part, path[i]);
        events->step[k] = &path[i];
        events->at[k] = (uint32_t)at;
        k++;
        k -= alike & TL_ALIKE_NEXT;
        alike = block->alike[turn];
        always += alike >> 1;
        taken += turn;
        at += block->n;
    }
    events->n = k;
    scan->n = at;
    scan->taken += taken;
    scan->part->tallying.always += always;
    scan->part->tallying.steps += i - first;
    scan->from = path[i - 1];
    return i;
}

__attribute__((noinline)) static size_t scan_path(struct scan *s, const uintptr_t *path, size_t i,
                                                  size_t n, uint64_t insns)
{
    if (tl_path_block(path[i])->isa != s->isa)
        return i;
    if (insns > s->room - s->n)
        return scan_steps(s, path, i, n, ALL);
    return insns > s->end - s->n ? scan_steps(s, path, i, n, PIECE)
                                 : scan_steps(s, path, i, n, NOTHING);
}

/* As many whole blocks as can be, up to the one in which the piece ends. Returns 1 if it does. The
 * first one's offset is noted, where that is due: a piece ends as often. */
static int scan_piece(struct scan *s, uint64_t position, const struct tl_item *items, size_t n)
{
    const uint64_t begin = s->n;
    s->events->n = s->events->n_heads = 0;
    for (; s->item < n && s->n < s->end; s->item++) {
        const struct tl_item *const item = &items[s->item];
        const uintptr_t one = (uintptr_t)item->block | (item->flags & TL_ITEM_TAKEN);
        const bool path = item->kind == TL_ITEM_PATH;
        if (!path && (item->kind != TL_ITEM_BLOCK || item->n != item->block->n || item->n == 0))
            break;
        const uintptr_t *const steps = path ? item->path : &one;
        const size_t n_steps = path ? item->n : 1, first = s->step;
        const uint64_t before = s->n;
        s->step = scan_path(s, steps, first, n_steps, path ? item->value : item->n);
        if (s->n > before)
            s->offset = item->offset;
        const int r = before == begin && s->n > before
                          ? tl_part_offset_at(s->part, position + begin, item->offset)
                          : TL_OK;
        if (r < 0)
            return r;
        if (s->step < n_steps)
            break;
        s->step = 0;
        s->item_at = s->n;
    }
    return s->n >= s->end;
}

/* An event that is not a call, its return, or a jump; or the first one of a piece. */
__attribute__((noinline)) static int look_closer(struct tl_callstack *calls,
                                                 struct tl_callstack_top *top, uintptr_t from,
                                                 const struct tl_block *block, uint64_t insn)
{
    tl_callstack_give(calls, top);
    if (from)
        tl_callstack_leave(calls, tl_path_block(from), tl_path_taken(from), insn);
    const int r = tl_callstack_arrive(calls, block, insn);
    *top = tl_callstack_take(calls, top->low, top->high);
    return r;
}

/* 1 + enum tl_leave of a block that was left so; 0: nothing is known. */
static inline uint8_t left_of(const struct tl_block *block, uintptr_t turn)
{
    const uint8_t most = turn ? UINT8_MAX : 1 + TL_LEAVE_STRAIGHT;
    return block->left < most ? block->left : most;
}

/* The second pass: count all that the scan found. */
__attribute__((noinline)) static int count_spans(struct tl_part *part, struct tl_callstack *calls,
                                                 uint64_t position, const struct events *events)
{
    struct tl_part_run *const run = &part->run;
    struct tl_callstack_top top = {calls->depth, calls->function, run->depth_min, run->depth_max};
    bool quick = false;
    for (size_t k = 0; k < events->n; k++) {
        const struct tl_block *const block = tl_path_block(*events->step[k]);
        const uintptr_t step = events->step[k][-1], turn = step & 1;
        const struct tl_block *const from = (const struct tl_block *)(step - turn);
        const uint64_t insn = position + events->at[k];
        const uint64_t page = block->pc >> 12;
        if (!(quick && tl_callstack_follow(calls, &top, left_of(from, turn), from->pc + from->size,
                                           block, insn))) {
            struct tl_callstack_top copy = top; /* so that the other one has no address */
            const int r = look_closer(calls, &copy, step, block, insn);
            if (r < 0)
                return r;
            top = copy;
            quick = calls->deeper == 0;
        }
        if (step)
            tl_tallying_left(&part->tallying, from);
        if (!tl_part_run_has(run, block->function, page)) {
            const int r = tl_part_slots(part, block->function, page, insn);
            if (r < 0)
                return r;
        }
        tl_part_run_add(run, block->function, page, events->at[k + 1] - events->at[k],
                        block->entry);
    }
    tl_callstack_give(calls, &top);
    run->depth_min = top.low;
    run->depth_max = top.high;
    return TL_OK;
}

/*
 * Count what the scan found from instruction `begin` on, and what of its last block lies in the
 * next piece.
 */
static int count_piece(struct tl_part *part, struct tl_callstack *calls,
                       const struct tl_count *count, const struct scan *s, uint64_t begin)
{
    struct tl_part_run *const run = &part->run;
    const struct tl_block *const last = tl_path_block(s->from);
    const uint64_t end = s->n < s->end ? s->n : s->end;
    const bool over = s->n > end, last_taken = over && tl_path_taken(s->from);
    s->events->at[s->events->n] = (uint32_t)end;
    int r = count_spans(part, calls, count->position, s->events);
    if (r < 0)
        return r;
    run->n += end - begin;
    run->position += end - begin;
    run->taken += s->taken - last_taken;
    if (count->privilege < 4)
        run->privilege[count->privilege] += end - begin;
    if (!over)
        return TL_OK;
    r = tl_part_count(part, s->n - end, last->function, last->pc >> 12, count->privilege,
                      tl_callstack_depth(calls));
    run->taken += last_taken;
    return r;
}

int tl_count_blocks(struct tl_part *part, struct tl_callstack *calls, const struct tl_item *items,
                    size_t n, struct tl_count *count)
{
    struct events events;
    const uint64_t position = count->position;
    struct scan s = {
        .events = &events,
        .part = part,
        .room = count->room,
        .isa = count->isa,
        .step = count->steps,
    };
    for (int more = 1; more;) {
        int r = tl_part_run_room(&part->run) == 0 ? tl_part_settle(part) : TL_OK;
        if (r < 0)
            return r;
        const uint64_t begin = s.n;
        s.end = begin + EVENTS - (position + begin) % EVENTS;
        s.taken = 0;
        more = scan_piece(&s, position, items, n);
        if (more < 0)
            return more;
        r = s.n > begin ? count_piece(part, calls, count, &s, begin) : TL_OK;
        if (r < 0)
            return r;
    }
    if (s.n > 0)
        tl_tallying_left(&part->tallying, tl_path_block(s.from));
    if (s.n > 0)
        tl_callstack_leave(calls, tl_path_block(s.from), tl_path_taken(s.from), position + s.n);
    count->items = s.item;
    count->steps = s.step;
    count->n = s.n;
    count->within = s.n - s.item_at;
    count->offset = s.offset;
    return TL_OK;
}
