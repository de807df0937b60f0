/* SPDX-License-Identifier: MIT */
/*
 * Statistical profiles. Samples say where the processor was, not how it got there: all that is
 * known of their callers are the handlers of exceptions, if the stream reports these, too.
 */
#include "query/samples.h"

#include "flow/hardware.h"

#include <stdlib.h>

struct sampling {
    struct tl_callstack calls;
    struct tl_calltree *tree;
    const struct tl_image *image;
    uint64_t from, to, *asleep;
    struct tl_flow_now now;      /* before the item */
    struct tl_codecount *counts; /* instead of `tree` */
    uint64_t until;              /* time at which another program begins */
    int rc;                      /* first failure */
};

static int path_of(struct sampling *s, uint32_t function)
{
    int64_t path = 0;
    uint32_t last = TL_NO_FUNCTION;
    for (uint32_t i = 0; i < s->calls.depth && path >= 0; i++) {
        if (s->calls.frames[i].kind != TL_FRAME_EXCEPTION)
            continue;
        last = s->calls.frames[i].function;
        path = tl_calltree_path(s->tree, (uint32_t)path, last);
    }
    if (path >= 0 && (path == 0 || function != last))
        path = tl_calltree_path(s->tree, (uint32_t)path, function);
    return (int)path;
}

/* Count the code of a sample. */
static int add_code(struct sampling *s, const struct tl_item *item)
{
    uint64_t pc, target, back;
    uint32_t program = TL_NO_NUMBER;
    const bool is_sample = tl_hardware_sample(item->text, &pc, &target, &back);
    if (!is_sample || (!target && !back))
        return TL_OK;
    const struct tl_code_program of = tl_code_program_of(s->image, &s->now, &s->until);
    int r = tl_codecount_program(s->counts, &of, &program);
    if (r >= 0 && program == TL_NO_NUMBER)
        return TL_OK;
    if (r >= 0 && target)
        r = tl_codecount_branch(s->counts, program, pc, target, 1);
    if (r >= 0 && back && back <= pc)
        r = tl_codecount_run(s->counts, program, back, pc, 1);
    s->counts->insns += r >= 0;
    s->counts->programs[program].insns += r >= 0;
    return r;
}

static void take_item(void *context, const struct tl_walk *walk, size_t at)
{
    struct sampling *const s = context;
    const struct tl_item *const item = &walk->items[at];
    if (at == 0)
        s->now = walk->now;
    tl_flow_now_item(&s->now, item);
    if (s->rc < 0 || walk->positions[at] < s->from || walk->positions[at] >= s->to)
        return;
    if (s->counts) {
        s->rc = tl_is_hardware(item, TL_HARDWARE_SAMPLE) ? add_code(s, item) : TL_OK;
        return;
    }
    if (tl_is_hardware(item, TL_HARDWARE_SLEEP))
        ++*s->asleep;
    if (!tl_is_hardware(item, TL_HARDWARE_PC) && !tl_is_hardware(item, TL_HARDWARE_SAMPLE))
        return;
    const int path =
        path_of(s, s->image ? tl_flow_now_function(&s->now, s->image, item->pc) : TL_NO_FUNCTION);
    if (path < 0)
        s->rc = path;
    else
        s->tree->nodes[path].self++;
}

static int walk_samples(struct sampling *s, const struct tl_cut *cut, uint64_t from, uint64_t to,
                        struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    s->image = tl_gen_image(cut->gen);
    s->from = from;
    s->to = to;
    tl_cut_walk_begin(&walk, cut, from, to);
    const int r = tl_cut_walk_follow(&walk, &s->calls, NULL, take_item, s, fail);
    tl_cut_walk_end(&walk);
    return r < 0 ? r : s->rc;
}

int tl_samples_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from, uint64_t to,
                   uint64_t *asleep, struct tl_fail *fail)
{
    struct sampling *const s = calloc(1, sizeof *s);
    if (!s || tl_calltree_root(tree) < 0) {
        free(s);
        return TL_NOMEM;
    }
    s->tree = tree;
    s->asleep = asleep;
    const int r = walk_samples(s, cut, from, to, fail);
    free(s);
    return r;
}

int tl_samples_code(struct tl_codecount *counts, const struct tl_cut *cut, uint64_t from,
                    uint64_t to, struct tl_fail *fail)
{
    struct sampling *const s = calloc(1, sizeof *s);
    if (!s)
        return TL_NOMEM;
    s->counts = counts;
    const int r = walk_samples(s, cut, from, to, fail);
    free(s);
    return r;
}
