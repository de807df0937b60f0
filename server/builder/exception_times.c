/* SPDX-License-Identifier: MIT */
/*
 * Measures the exceptions of a shard in the making. Only exceptions cost anything here: their own
 * part is what is left of their length without that of what they called, so that nothing has to be
 * counted while it runs.
 */
#include "builder/exception_times.h"

#include <stdlib.h>

void tl_exception_times_fini(struct tl_exception_times *x)
{
    free(x->open);
    *x = (struct tl_exception_times){0};
}

void tl_exception_times_begin(struct tl_exception_times *x, struct tl_timed_rows *rows,
                              uint64_t from, uint64_t begin)
{
    x->rows = rows;
    x->from = from;
    x->begin = begin;
    for (size_t i = 0; i < x->n; i++)
        x->open[i].inner = x->open[i].inner_time = 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct tl_exception_span row_of(const struct tl_exception_times *x,
                                       const struct tl_open_exception *one, size_t level,
                                       uint64_t position, uint64_t time)
{
    return (struct tl_exception_span){
        .begin = one->position,
        .end = position,
        .time = one->time,
        .end_time = time,
        .self = position - later(one->position, x->from) - one->inner,
        .self_time = time - later(one->time, x->begin) - one->inner_time,
        .function = one->function,
        .level = (uint32_t)level,
        .number = one->number,
        .flags = one->flags,
    };
}

static int flush(struct tl_exception_times *x)
{
    const bool has = x->has_ended && x->rows;
    x->has_ended = false;
    return has ? tl_timed_rows_exception(x->rows, &x->ended) : TL_OK;
}

int tl_exception_times_enter(struct tl_exception_times *x, const struct tl_open_exception *one,
                             bool goes_on)
{
    goes_on = goes_on && x->has_ended && x->left.number == one->number;
    if (goes_on)
        x->has_ended = false;
    int r = flush(x);
    if (r >= 0)
        r = tl_grow(&x->open, &x->cap, x->n + 1, sizeof *x->open);
    if (r < 0)
        return r;
    struct tl_open_exception *const next = &x->open[x->n++];
    *next = goes_on ? x->left : *one;
    next->function = one->function;
    return TL_OK;
}

void tl_exception_times_called(struct tl_exception_times *x, size_t i, uint64_t position,
                               uint64_t time, uint64_t end, uint64_t end_time)
{
    if (i >= x->n)
        return;
    struct tl_open_exception *const by = &x->open[i];
    by->inner += end - later(position, x->from);
    by->inner_time += end_time - later(time, x->begin);
}

int tl_exception_times_leave(struct tl_exception_times *x, uint64_t position, uint64_t time,
                             uint64_t end_time, bool lost)
{
    if (x->n == 0)
        return TL_OK;
    const int r = flush(x);
    x->left = x->open[x->n - 1];
    x->ended = row_of(x, &x->left, x->n, position, time);
    x->ended.end_time = end_time;
    x->ended.flags |= lost ? TL_EXCEPTION_UNSEEN : 0;
    x->has_ended = true;
    x->n--;
    return r;
}

int tl_exception_times_unseen(struct tl_exception_times *x, uint16_t number, uint64_t position,
                              uint64_t time)
{
    const struct tl_exception_span row = {.begin = position,
                                          .end = position,
                                          .time = time,
                                          .end_time = time,
                                          .function = TL_NO_FUNCTION,
                                          .level = (uint32_t)x->n + 1,
                                          .number = number,
                                          .flags = TL_EXCEPTION_UNSEEN};
    const int r = flush(x);
    return r < 0 || !x->rows ? r : tl_timed_rows_exception(x->rows, &row);
}

int tl_exception_times_end(struct tl_exception_times *x, uint64_t position, uint64_t time)
{
    int r = flush(x);
    for (size_t i = 0; i < x->n && x->rows && r >= 0; i++) {
        struct tl_exception_span row = row_of(x, &x->open[i], i + 1, position, time);
        row.flags |= TL_EXCEPTION_OPEN;
        r = tl_timed_rows_exception(x->rows, &row);
    }
    x->rows = NULL;
    return r;
}

void tl_exception_times_state(struct tl_exception_times *x, struct tl_state *s)
{
    tl_state_array(s, &x->open, &x->n, &x->cap, sizeof *x->open);
}
