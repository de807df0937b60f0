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
    int rc; /* first failure */
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

static void take_item(void *context, const struct tl_walk *walk, size_t at)
{
    struct sampling *const s = context;
    const struct tl_item *const item = &walk->items[at];
    if (s->rc < 0 || walk->positions[at] < s->from || walk->positions[at] >= s->to)
        return;
    if (tl_is_hardware(item, TL_HARDWARE_SLEEP))
        ++*s->asleep;
    if (!tl_is_hardware(item, TL_HARDWARE_PC))
        return;
    const int64_t symbol = s->image ? tl_image_symbol_index(s->image, item->pc) : -1;
    const int path = path_of(s, symbol < 0 ? TL_NO_FUNCTION : (uint32_t)symbol);
    if (path < 0)
        s->rc = path;
    else
        s->tree->nodes[path].self++;
}

int tl_samples_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from, uint64_t to,
                   uint64_t *asleep, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    struct sampling *const s = calloc(1, sizeof *s);
    if (!s || tl_calltree_root(tree) < 0) {
        free(s);
        return TL_NOMEM;
    }
    s->tree = tree;
    s->image = tl_gen_image(cut->gen);
    s->from = from;
    s->to = to;
    s->asleep = asleep;
    tl_cut_walk_begin(&walk, cut, from, to);
    int r = tl_cut_walk_follow(&walk, &s->calls, NULL, take_item, s, fail);
    tl_cut_walk_end(&walk);
    r = r < 0 ? r : s->rc;
    free(s);
    return r;
}
