/* SPDX-License-Identifier: MIT */
/*
 * Memory of programs follows what is in use: traces that nobody reads let go of their images, the
 * least recently used first, once all loaded programs together exceed a limit. They are loaded
 * again when they are needed.
 */
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

/* Let go of the image until it is needed again. The caller holds the trace's lock, and nobody but
 * the trace refers to the generation. */
static void drop_image(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    struct tl_program *const program = gen->program;
    gen->program = NULL;
    gen->whose[0] = '\0'; /* it depends on the images that are there */
    pthread_mutex_unlock(&gen->lock);
    tl_program_put(gen->lake, program);
}

/* When the trace's idle program was used last; INT64_MAX: it has none, or it is in use. */
static int64_t idle_since(struct tl_lake *lake, struct tl_trace *trace, bool drop)
{
    pthread_mutex_lock(&lake->lock);
    const bool busy = trace->job.state != TL_JOB_NONE;
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *const gen = trace->serving;
    /* References are only taken under the trace's lock, or by those that have one. */
    const bool idle = !busy && !trace->making && trace->state >= TL_TRACE_SEALED && gen &&
                      atomic_load(&gen->refs) == 1;
    int64_t since = INT64_MAX;
    if (idle) {
        pthread_mutex_lock(&gen->lock);
        since = gen->program ? gen->image_used_ns : INT64_MAX;
        pthread_mutex_unlock(&gen->lock);
    }
    if (drop && since != INT64_MAX)
        drop_image(gen);
    pthread_mutex_unlock(&trace->lock);
    pthread_mutex_unlock(&lake->lock);
    return since;
}

/* Decoders that could continue regenerating the trace's shards have its program, too. */
static void forget_makers(struct tl_lake *lake, const char *id)
{
    char prefix[80];
    snprintf(prefix, sizeof prefix, "t/%s/", id);
    tl_lake_forget_makers(lake, prefix);
}

struct idle {
    struct tl_trace *trace;
    int64_t since;
};

static int by_use(const void *a, const void *b)
{
    const int64_t x = ((const struct idle *)a)->since, y = ((const struct idle *)b)->since;
    return (x > y) - (x < y);
}

static size_t find_idle(struct tl_lake *lake, struct tl_trace *const *traces, size_t n,
                        struct idle *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t since = idle_since(lake, traces[i], false);
        if (since != INT64_MAX)
            out[found++] = (struct idle){traces[i], since};
    }
    qsort(out, found, sizeof *out, by_use);
    return found;
}

void tl_lake_trim_programs(struct tl_lake *lake, uint64_t most)
{
    struct tl_trace **traces = NULL;
    size_t n = 0;
    if (tl_programs_bytes(lake) <= most || tl_lake_all_resident(lake, &traces, &n) < 0) {
        free(traces);
        return;
    }
    struct idle *const idle = calloc(n + 1, sizeof *idle);
    const size_t n_idle = idle ? find_idle(lake, traces, n, idle) : 0;
    for (size_t i = 0; i < n_idle && tl_programs_bytes(lake) > most; i++) {
        if (idle_since(lake, idle[i].trace, true) != INT64_MAX)
            forget_makers(lake, idle[i].trace->id);
    }
    for (size_t i = 0; i < n; i++)
        tl_trace_put(traces[i]);
    free(idle);
    free(traces);
}
