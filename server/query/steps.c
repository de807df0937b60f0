/* SPDX-License-Identifier: MIT */
/*
 * Reads a stream as steps with keys that are hashes of function name and offset. Two builds or
 * loads of a program have other addresses, so that only names make their executions comparable.
 */
#include "query/steps.h"

#include "base/cancel.h"
#include "base/hash.h"
#include "lake/locate.h"
#include "shard/savedstack.h"

#include <stdlib.h>

static int hash_names(struct tl_steps *s)
{
    size_t n = 0;
    const struct tl_symbol *const symbols = s->image ? tl_image_symbols(s->image, &n) : NULL;
    s->has_symbols = n > 0;
    s->names = malloc((n + 1) * sizeof *s->names);
    for (size_t i = 0; s->names && i < n; i++)
        s->names[i] = tl_mix64(tl_fnv_text(symbols[i].name));
    return s->names ? TL_OK : TL_NOMEM;
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn);

int tl_steps_init(struct tl_steps *s, const struct tl_cut *cut, uint64_t from, uint64_t to,
                  bool calls, struct tl_fail *fail)
{
    *s = (struct tl_steps){.cut = cut, .calls = calls, .image = tl_gen_image(cut->gen)};
    int r = tl_cut_resolve(cut, TL_UNIT_INSN, from, to, &s->from, &s->to, fail);
    if (r < 0)
        return r;
    tl_cut_walk_begin(&s->walk, cut, s->from, s->to);
    s->walk.range.tail = false;
    s->walk.walk.detail = calls ? TL_WALK_FLOW : TL_WALK_SPANS;
    s->walk.walk.image = s->image;
    r = hash_names(s);
    if (r < 0 || !calls)
        return r;
    s->stack = malloc(sizeof *s->stack);
    if (!s->stack)
        return TL_NOMEM;
    tl_callstack_init(s->stack, s->image, s->from, on_frame, s);
    return tl_cut_walk_calls(&s->walk, s->stack, fail);
}

void tl_steps_fini(struct tl_steps *s)
{
    if (s->cut)
        tl_cut_walk_end(&s->walk);
    free(s->steps);
    free(s->stack);
    free(s->names);
}

uint64_t tl_steps_end(const struct tl_steps *s, size_t i)
{
    return s->at + i + 1 < s->n ? s->steps[s->at + i + 1].position : s->to;
}

static int add_step(struct tl_steps *s, uint64_t key, uint64_t position)
{
    const int r = tl_grow(&s->steps, &s->cap, s->n + 1, sizeof *s->steps);
    if (r >= 0)
        s->steps[s->n++] = (struct tl_step){key, position};
    return r;
}

static bool is_by_address(const struct tl_steps *s, uint32_t function)
{
    return s->by_address || function == TL_NO_FUNCTION;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct tl_steps *const s = context;
    if (change != TL_FRAME_PUSH || insn < s->from)
        return TL_OK;
    const uint64_t name =
        is_by_address(s, frame->function) ? tl_mix64(frame->pc) : s->names[frame->function];
    /* Depths depend on where the range begins; that one call is deeper than the last does not. */
    const uint32_t deeper = s->n == 0 ? 0 : depth - s->depth;
    s->depth = depth;
    return add_step(s, tl_mix64(name + deeper), insn);
}

/* Add the calls of what the walk has read. */
static int add_calls(struct tl_steps *s)
{
    const struct tl_walk *const walk = &s->walk.walk;
    int r = TL_OK;
    for (size_t i = 0; i < walk->n && r >= 0; i++)
        r = tl_walk_follow(&s->walk.walk, s->stack, i);
    return r;
}

/* ---- changes of flow ------------------------------------------------------------------------- */

/* The key of an address: of its function and the offset in it. */
static uint64_t place_key(const struct tl_steps *s, uint32_t function, uint64_t pc)
{
    size_t n = 0;
    if (is_by_address(s, function))
        return tl_mix64(pc);
    return tl_mix64(s->names[function] + pc - tl_image_symbols(s->image, &n)[function].address);
}

/* Blocks that do not begin where the one before ended, and items that are places themselves. */
static int add_changes(struct tl_steps *s)
{
    const struct tl_walk *const walk = &s->walk.walk;
    struct tl_flow_now now = walk->now;
    int r = TL_OK;
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        const struct tl_item *const item = &walk->items[i];
        if (item->kind == TL_ITEM_BLOCK) {
            const struct tl_block *const b = item->block;
            if (b->pc != s->next_pc || s->n == 0)
                r = add_step(s, place_key(s, b->function, b->pc), walk->positions[i]);
            s->next_pc = b->pc + b->size;
            continue;
        }
        tl_flow_now_item(&now, item);
        if (!tl_item_is_point(s->cut->lane->protocol, item->kind))
            continue;
        const uint64_t pc = tl_item_address(item);
        r = add_step(s, place_key(s, tl_flow_now_function(&now, s->image, pc), pc),
                     walk->positions[i]);
        s->next_pc = 0;
    }
    return r;
}

int tl_steps_want(struct tl_steps *s, size_t n, struct tl_fail *fail)
{
    while (s->n - s->at < n && !s->over) {
        if (s->at > 65536 && s->at > s->n / 2) {
            /* Keep one consumed step: to add_calls() and add_changes() an empty list is the begin.
             */
            memmove(s->steps, s->steps + s->at - 1, (s->n - s->at + 1) * sizeof *s->steps);
            s->n -= s->at - 1;
            s->at = 1;
        }
        int r = tl_cancel_check();
        if (r >= 0)
            r = tl_cut_walk_next(&s->walk, fail);
        if (r == TL_EOF) {
            s->over = true;
            break;
        }
        if (r < 0)
            return r;
        r = s->calls ? add_calls(s) : add_changes(s);
        if (r < 0)
            return r;
    }
    return TL_OK;
}
