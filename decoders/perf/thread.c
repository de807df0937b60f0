/* SPDX-License-Identifier: MIT */
/*
 * Streams of threads: items that a CPU's decoder delivers while a thread runs there are also
 * delivered to the thread's stream. If the thread moves to another CPU, or resumes after it was
 * switched out, its stream tells that, even if trace ended before, and then the current mode and
 * process as far as they changed: the CPU's stream reports these only where they change there.
 */
#include "perf/container.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_THREADS 512

/* "thread.TID.NAME" */
static void name_stream(char *out, size_t size, int32_t tid, const char *name)
{
    snprintf(out, size, TL_STREAM_THREAD "%" PRId32 "%s%s", tid, name[0] ? "." : "", name);
    tl_perf_clean_name(out);
}

/* Get the stream of this thread; NULL and TL_OK: too many. */
static int stream_of(struct tl_perf_stream *cpu, int32_t tid, const char *called,
                     struct tl_perf_stream **out)
{
    struct tl_perf_decode *const d = cpu->owner;
    const int64_t known = tl_perf_map_get(&d->by_tid, (uint32_t)tid);
    char name[sizeof cpu->source.name];
    *out = known < 0 ? NULL : d->streams[known];
    if (*out)
        return TL_OK;
    if (d->n_threads >= MAX_THREADS)
        return d->n_threads++ > MAX_THREADS
                   ? TL_OK
                   : tl_perf_report_loss(d, NULL,
                                         "there are more than 512 threads: others have no stream",
                                         0, 0, true);
    name_stream(name, sizeof name, tid, called);
    struct tl_perf_stream *const s = tl_perf_stream_of(d, name);
    if (!s || tl_perf_map_set(&d->by_tid, (uint32_t)tid, s->out.stream.index) < 0)
        return TL_NOMEM;
    d->n_threads++;
    s->source = cpu->source;
    s->source.id = 0;
    snprintf(s->source.name, sizeof s->source.name, "%s", name);
    *out = s;
    return tl_perf_stream_announce(s);
}

/* Must the context of the CPU be repeated for the thread, since no item will report it? */
static bool needs_context(const struct tl_perf_stream *cpu, const struct tl_perf_stream *thread,
                          int32_t pid)
{
    const uint64_t process = (uint32_t)pid; /* a guest's context has it in the VMID */
    const uint64_t current = cpu->context_flags & TL_ITEM_HAS_VALUE ? cpu->vmid : cpu->context;
    return cpu->context_flags && (pid < 0 || process == current) &&
           (cpu->context_flags != thread->context_flags || cpu->context != thread->context ||
            cpu->vmid != thread->vmid);
}

static struct tl_item gap_at(uint64_t offset, enum tl_gap why)
{
    return (struct tl_item){.kind = TL_ITEM_GAP, .sub = why, .offset = offset};
}

int tl_perf_thread_return(struct tl_perf_stream *s, uint64_t offset)
{
    const struct tl_item gap = gap_at(offset, TL_GAP_SWITCHED_OUT);
    return s->here ? tl_stream_out_items(&s->out, &gap, 1) : TL_OK;
}

/* The thread goes on here: behind a gap for this reason, TL_GAP_KINDS: none. */
static int go_on(struct tl_perf_stream *cpu, struct tl_perf_stream *s, enum tl_gap why,
                 uint64_t offset)
{
    struct tl_item items[3];
    size_t n = 0;
    if (why != TL_GAP_KINDS)
        items[n++] = gap_at(offset, why);
    if (cpu->has_mode && !(s->has_mode && s->mode == cpu->mode))
        items[n++] = (struct tl_item){.kind = TL_ITEM_MODE, .value = cpu->mode, .offset = offset};
    if (needs_context(cpu, s, cpu->entered_pid))
        items[n++] = (struct tl_item){.kind = TL_ITEM_CONTEXT,
                                      .flags = cpu->context_flags,
                                      .pc = cpu->context,
                                      .value = cpu->vmid,
                                      .offset = offset};
    s->from = cpu;
    return n > 0 ? tl_stream_out_items(&s->out, items, n) : TL_OK;
}

int tl_perf_thread_enter(struct tl_perf_stream *cpu, const struct tl_perf_run *run,
                         const char *name, bool was_out, uint64_t offset)
{
    struct tl_perf_stream *s = NULL;
    /* Else it has another name, or another buffer. */
    const bool anew = was_out || run->tid != cpu->entered;
    cpu->thread = NULL;
    cpu->entered = run->tid;
    cpu->entered_pid = run->pid;
    const int rc = run->tid > 0 ? stream_of(cpu, run->tid, name, &s) : TL_OK;
    if (rc < 0 || !s)
        return rc;
    cpu->thread = s;
    const bool gap = anew ? s->here : s->runs;
    return go_on(cpu, s, !gap ? TL_GAP_KINDS : anew ? TL_GAP_SWITCHED_OUT : TL_GAP_OFF, offset);
}

/* By the records a thread may begin to run on a CPU before it has left another, whose last items
 * come later: the gap is where items of the one are followed by those of the other. */
int tl_perf_thread_alternate(struct tl_perf_stream *cpu, uint64_t offset)
{
    struct tl_perf_stream *const s = cpu->thread;
    if (!s || s->from == cpu)
        return TL_OK;
    return go_on(cpu, s, s->here ? TL_GAP_SWITCHED_OUT : TL_GAP_KINDS, offset);
}

void tl_perf_thread_keep(struct tl_perf_stream *s, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (items[i].kind) {
        case TL_ITEM_MODE:
            s->mode = items[i].value;
            s->has_mode = true;
            break;
        case TL_ITEM_CONTEXT:
            s->context_flags = items[i].flags & (TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE);
            s->context = items[i].flags & TL_ITEM_HAS_PC ? items[i].pc : 0;
            s->vmid = items[i].flags & TL_ITEM_HAS_VALUE ? items[i].value : 0;
            break;
        case TL_ITEM_GAP:
            s->runs = false;
            s->here &= items[i].sub != TL_GAP_SWITCHED_OUT;
            break;
        case TL_ITEM_BLOCK:
        case TL_ITEM_PATH:
        case TL_ITEM_UNKNOWN:
        case TL_ITEM_BRANCH:
            s->runs = s->here = true;
            break;
        default:
            break;
        }
}
