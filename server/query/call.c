/* SPDX-License-Identifier: MIT */
/*
 * Details of a call. The stack is made again at the instruction asked for; what is known of the
 * function's other calls is added to it.
 */
#include "lake_analysis.h"
#include "query/calltree.h"
#include "query/seek.h"
#include "query/stacks.h"
#include "query/timing_answer.h"

#include <stdlib.h>

struct asking {
    const struct tl_cut *cut;
    const struct tl_image *image;
    struct tl_callstack calls; /* at the requested position */
    struct tl_callstack scratch;
};

/* ---- the previous and the next call ---------------------------------------------------------- */

struct nearest {
    bool backward;
    bool found;
    uint64_t position;
};

static int take_hit(void *context, uint64_t position, uint64_t pc, const char *text)
{
    struct nearest *const n = context;
    (void)pc;
    (void)text;
    n->position = position; /* going backward, the last one of a window is the nearest */
    n->found = true;
    return n->backward ? TL_OK : TL_LIMIT;
}

static int end_window(void *context)
{
    const struct nearest *const n = context;
    return n->found ? TL_LIMIT : TL_OK;
}

static int find_nearest(const struct tl_cut *cut, const struct tl_sought *sought, uint32_t function,
                        const struct tl_seek_range *range, bool *found, uint64_t *position,
                        struct tl_fail *fail)
{
    struct nearest nearest = {.backward = range->backward};
    struct tl_seek seek;
    size_t first, end;
    int r = tl_seek_init(&seek, sought, cut);
    seek.sink = take_hit;
    seek.context = &nearest;
    tl_seek_shards(cut, range, &first, &end);
    for (size_t i = first; i < end && r >= 0; i++) {
        const size_t shard = range->backward ? end - 1 - (i - first) : i;
        if (!tl_calltree_none(cut, shard, function))
            r = tl_seek_shard(&seek, shard, range, end_window, fail);
    }
    tl_seek_fini(&seek);
    *found = nearest.found;
    *position = nearest.position;
    return r == TL_LIMIT ? TL_OK : r;
}

static int find_others(const struct asking *a, uint32_t function, struct tl_call_info *out,
                       struct tl_fail *fail)
{
    struct tl_sought sought;
    struct tl_seek_range range = {.from = out->from + 1, .to = a->cut->end};
    int r = tl_sought_function(&sought, a->cut->gen, function);
    if (r >= 0 && range.from < range.to)
        r = find_nearest(a->cut, &sought, function, &range, &out->has_next, &out->next, fail);
    range = (struct tl_seek_range){.to = out->from, .backward = true};
    if (r >= 0 && range.to > 0)
        r = find_nearest(a->cut, &sought, function, &range, &out->has_previous, &out->previous,
                         fail);
    tl_sought_fini(&sought);
    return r;
}

/* ---- cost of a call -------------------------------------------------------------------------- */

/* Instructions of the frame itself. Its path consists of the frames at its begin. */
static int count_self(const struct asking *a, uint32_t depth, struct tl_call_info *out,
                      struct tl_fail *fail)
{
    struct tl_calltree tree = {0};
    int r = tl_calltree_add(&tree, a->cut, out->from, out->to, fail);
    int64_t path = 0;
    for (uint32_t i = 0; i <= depth && r >= 0; i++)
        r = (path = tl_calltree_path(&tree, (uint32_t)path, a->calls.frames[i].function)) < 0
                ? TL_NOMEM
                : TL_OK;
    if (r >= 0)
        out->self = tree.nodes[path].self;
    tl_calltree_fini(&tree);
    return r;
}

static int report_others(const struct asking *a, const struct tl_frame *frame,
                         struct tl_call_info *out, struct tl_fail *fail)
{
    struct tl_calltree tree = {0};
    if (frame->function == TL_NO_FUNCTION)
        return TL_OK;
    int r = tl_calltree_add(&tree, a->cut, 0, UINT64_MAX, fail);
    const struct tl_calltree_function *const f =
        r >= 0 ? tl_calltree_find(&tree, frame->function) : NULL;
    if (f) {
        out->calls = f->calls;
        out->finished = f->ended;
        out->total = f->total;
        out->min = f->ended > 0 ? f->min : 0;
        out->max = f->max;
        out->longest = f->longest;
    }
    tl_calltree_fini(&tree);
    if (r >= 0 && tl_frame_is_call(frame)) {
        r = tl_calltree_calls_before(a->cut, frame->function, frame->insn, &out->number, fail);
        out->number++;
    }
    return r < 0 ? r : find_others(a, frame->function, out, fail);
}

static int report_times(const struct tl_cut *cut, struct tl_call_info *out, struct tl_fail *fail)
{
    struct tl_moment from = {0}, to = {0};
    int r = tl_timing_moment(cut, out->from, false, &from, fail);
    if (r == TL_OK)
        r = tl_timing_moment(cut, out->to, true, &to, fail);
    if (r != TL_OK)
        return r == TL_EOF ? TL_OK : r; /* it has no times */
    const struct tl_duration bounds = tl_timing_duration(cut->lane, tl_timing_length(&from, &to));
    out->has_time = true;
    out->time_unit_ns = tl_lane_is_in_ns(cut->lane);
    out->time_from = tl_lane_time(cut->lane, from.time);
    out->time_to = tl_lane_time(cut->lane, to.time);
    out->time_least = bounds.least;
    out->time_most = bounds.most;
    return TL_OK;
}

static int report(struct asking *a, uint64_t insn, uint32_t depth, struct tl_call_info *out,
                  struct tl_fail *fail)
{
    if (insn >= a->cut->end && a->cut->behind)
        return tl_fail_set(fail, TL_NOTFOUND,
                           "stream %s is indexed up to instruction %llu so far: ask again later",
                           a->cut->lane->name, (unsigned long long)a->cut->end);
    if (insn >= a->cut->end)
        return tl_fail_set(fail, TL_NOTFOUND, "stream %s ends at instruction %llu",
                           a->cut->lane->name, (unsigned long long)a->cut->end);
    int r = tl_stack_at(a->cut, insn, &a->calls, fail);
    if (r < 0)
        return r;
    const uint32_t depths = a->calls.depth;
    if (depth == TL_CALL_INNERMOST && depths > 0)
        depth = depths - 1;
    if (depth >= depths)
        return tl_fail_set(fail, TL_NOTFOUND, "no call%s is under way at %llu",
                           depth == TL_CALL_INNERMOST ? "" : " of that depth",
                           (unsigned long long)insn);
    const struct tl_frame *const frame = &a->calls.frames[depth];
    *out = (struct tl_call_info){
        .name = tl_function_name(a->image, frame->function),
        .kind = (enum tl_call_kind)frame->kind, /* the enums have the same values */
        .exception = tl_exception_number(frame->exception),
        .interrupt = frame->exception & TL_EXCEPTION_INTERRUPT,
        .depth = depth,
        .deepest = depths - 1,
        .pc = frame->pc,
        .return_pc = frame->return_pc,
        .caller = depth > 0 ? tl_function_name(a->image, frame[-1].function) : "",
        .caller_from = depth > 0 ? frame[-1].insn : 0,
        .from = frame->insn,
        .behind = a->cut->behind,
        .behind_from = a->cut->end,
        .gen = tl_gen_get(a->cut->gen),
    };
    r = tl_stack_end(a->cut, frame, depth, insn, &out->to, &a->scratch, fail);
    out->ended = out->to < a->cut->end;
    if (r >= 0)
        r = report_times(a->cut, out, fail);
    if (r >= 0)
        r = count_self(a, depth, out, fail);
    return r < 0 ? r : report_others(a, frame, out, fail);
}

void tl_call_info_fini(struct tl_call_info *call)
{
    tl_gen_put(call->gen);
    *call = (struct tl_call_info){0};
}

int tl_lake_call(struct tl_lake *lake, const char *trace, const char *stream, uint64_t insn,
                 uint32_t depth, struct tl_call_info *out, struct tl_fail *fail)
{
    struct tl_cut cut;
    *out = (struct tl_call_info){0};
    int r = tl_cut_open_range(&cut, lake, trace, stream, &TL_CUT_ALL, fail);
    if (r < 0)
        return r;
    struct asking *const a = calloc(1, sizeof *a);
    if (a) {
        a->cut = &cut;
        a->image = tl_gen_image(cut.gen);
        r = report(a, insn, depth, out, fail);
    } else {
        r = TL_NOMEM;
    }
    free(a);
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
