/* SPDX-License-Identifier: MIT */
/*
 * Paths are numbered for each shard alone. So what goes on in the next shard, or in another run of
 * the server, has functions instead, of which the paths are found again.
 */
#include "builder/call_times.h"

#include <stdlib.h>

/* ---- paths ---------------------------------------------------------------------------------- */

/* The log has functions instead of paths: find the paths again, and those of the frames. Those that
 * are new are numbered now, which does not depend on when the log is settled. */
int tl_call_times_find_paths(struct tl_call_times *t)
{
    uint32_t *const paths = malloc((TL_CALLSTACK_MAX + 1) * sizeof *paths);
    int64_t path = paths ? 0 : TL_NOMEM;
    uint32_t depth = 0;
    for (; depth < t->depth && path >= 0; depth++) {
        paths[depth] = (uint32_t)path;
        path = tl_call_paths_find(t->counts, (uint32_t)path, t->frames[depth].function);
        t->frames[depth].path = (uint32_t)path;
    }
    t->path = (uint32_t)path;
    for (size_t i = 0; i < t->n && path >= 0; i++) {
        const unsigned kind = t->log[i].at & 3;
        if (kind == TL_CALL_POP && depth > 0)
            path = paths[--depth];
        if (kind != TL_CALL_PUSH && kind != TL_CALL_LEAF)
            continue;
        const int64_t found = tl_call_paths_find(t->counts, (uint32_t)path, t->log[i].path);
        t->log[i].path = (uint32_t)found;
        if (kind == TL_CALL_PUSH && depth < TL_CALLSTACK_MAX)
            paths[depth++] = (uint32_t)path;
        if (kind == TL_CALL_PUSH || found < 0)
            path = found;
    }
    free(paths);
    return path < 0 ? TL_NOMEM : TL_OK;
}

/* Paths of the log become functions, and those of frames have theirs. */
void tl_call_times_name_paths(struct tl_call_times *t)
{
    for (uint32_t i = 0; i < t->depth; i++)
        t->frames[i].function = t->counts->tree.nodes[t->frames[i].path].function;
    for (size_t i = 0; i < t->n; i++)
        if ((t->log[i].at & 3) == TL_CALL_PUSH || (t->log[i].at & 3) == TL_CALL_LEAF)
            t->log[i].path = t->counts->tree.nodes[t->log[i].path].function;
}

/* ---- saved state ---------------------------------------------------------------------------- */

/* Is the log in the order of positions, from what is settled on? */
static bool is_ordered(const struct tl_call_times *t)
{
    uint64_t position = t->position;
    for (size_t i = 0; i < t->n; i++) {
        if ((t->log[i].at >> 2) < position)
            return false;
        position = (t->log[i].at >> 2);
    }
    return t->depth <= TL_CALLSTACK_MAX;
}

static void frames_state(struct tl_call_times *t, struct tl_state *s)
{
    tl_state_u32(s, &t->depth);
    tl_state_check(s, t->depth <= TL_CALLSTACK_MAX);
    if (tl_state_loads(s) && s->rc >= 0 && t->known && !t->frames &&
        !(t->frames = calloc(TL_CALLSTACK_MAX, sizeof *t->frames)))
        tl_state_fail(s, TL_NOMEM);
    tl_state_check(s, t->frames || t->depth == 0);
    for (uint32_t i = 0; i < t->depth && s->rc >= 0; i++) {
        tl_state_u64(s, &t->frames[i].position);
        tl_state_u64(s, &t->frames[i].time);
        tl_state_u32(s, &t->frames[i].function);
        tl_state_u32(s, &t->frames[i].detail);
    }
}

void tl_call_times_state(struct tl_call_times *t, struct tl_state *s)
{
    struct tl_call_paths *const counts = t->counts;
    if (!tl_state_loads(s) && t->known && counts) {
        tl_call_times_report(t);
        tl_call_times_name_paths(t);
    }
    tl_state_bool(s, &t->known);
    tl_state_bool(s, &t->dropped);
    tl_state_u8(s, &t->privilege, UINT8_MAX);
    tl_state_u64(s, &t->position);
    tl_state_u64(s, &t->time);
    tl_state_u64(s, &t->reported);
    tl_state_u64(s, &t->gap);
    tl_state_u8(s, &t->gap_kind, TL_TIMED_KINDS - 1);
    tl_state_u64(s, &t->before);
    tl_time_knots_state(&t->knots, s);
    tl_state_check(s, !t->known || t->knots.n > 0);
    tl_state_array(s, &t->log, &t->n, &t->cap, sizeof *t->log);
    frames_state(t, s);
    tl_exception_times_state(&t->exceptions, s);
    tl_state_check(s, is_ordered(t));
    if (!tl_state_loads(s) && t->known && counts && tl_call_times_find_paths(t) < 0)
        tl_state_fail(s, TL_NOMEM);
    t->reported_time = t->time;
    if (tl_state_loads(s) && s->rc < 0)
        tl_call_times_fini(t);
}
