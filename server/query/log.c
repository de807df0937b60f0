/* SPDX-License-Identifier: MIT */
/*
 * The log of a range: the entries of software trace that begin there, in order and with times, the
 * first or the last ones if there are many. Its texts are put together from single characters, as
 * programs send them.
 */
#include "lake/locate.h"
#include "query/softlines.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_DEFAULT 200
#define ENTRIES_MAX     10000

struct log {
    bool last; /* keep the last entries */
    size_t limit;
    struct tl_soft_entry *entries;
    size_t n, cap;
    bool more;
};

static void drop_first(struct log *log, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(log->entries[i].text);
    log->n -= n;
    memmove(log->entries, log->entries + n, log->n * sizeof *log->entries);
    log->more = true;
}

/* TL_LIMIT: there are enough. */
static int add_entry(void *context, const struct tl_soft_entry *entry, struct tl_bytes text)
{
    struct log *const log = context;
    if (!log->last && log->n >= log->limit) {
        log->more = true;
        return TL_LIMIT;
    }
    if (log->last && log->n >= 2 * log->limit)
        drop_first(log, log->n - log->limit);
    if (tl_grow(&log->entries, &log->cap, log->n + 1, sizeof *log->entries) < 0)
        return TL_NOMEM;
    struct tl_soft_entry *const to = &log->entries[log->n];
    *to = *entry;
    to->text = strndup((const char *)text.p, text.n);
    if (!to->text)
        return TL_NOMEM;
    log->n++;
    return TL_OK;
}

static int by_position(const void *a, const void *b)
{
    const struct tl_soft_entry *const one = a, *const two = b;
    return one->at < two->at ? -1 : one->at > two->at;
}

static int give_times(struct log *log, const struct tl_cut *cut, struct tl_fail *fail)
{
    struct tl_scale scale;
    if (log->n == 0)
        return TL_OK;
    qsort(log->entries, log->n, sizeof *log->entries, by_position);
    if (log->n > log->limit)
        drop_first(log, log->n - log->limit);
    const int r = tl_scale_open(&scale, cut, TL_SCALE_TIME, false, log->entries[0].at,
                                log->entries[log->n - 1].at, fail);
    for (size_t i = 0; i < log->n && r >= 0; i++)
        log->entries[i].has_time =
            tl_scale_value(&scale, log->entries[i].at, &log->entries[i].time);
    tl_scale_close(&scale);
    return r;
}

static int walk_range(const struct tl_soft_request *request, const struct tl_cut *cut,
                      struct log *log, struct tl_fail *fail)
{
    struct tl_softlines wanted = {.one_channel = request->one_channel, .channel = request->channel};
    int r = tl_cut_resolve(cut, request->unit, request->from, request->to, &wanted.from, &wanted.to,
                           fail);
    if (r < 0)
        return r;
    if (request->to == UINT64_MAX)
        wanted.to = UINT64_MAX; /* including items after the last instruction */
    r = tl_softlines_walk(&wanted, cut, add_entry, log, fail);
    return r == TL_LIMIT ? TL_OK : r;
}

int tl_lake_log(struct tl_lake *lake, const struct tl_soft_request *request,
                struct tl_soft_log *out, struct tl_fail *fail)
{
    struct tl_cut cut;
    struct log log = {.last = request->last,
                      .limit = request->limit ? request->limit : ENTRIES_DEFAULT};
    *out = (struct tl_soft_log){0};
    if (log.limit > ENTRIES_MAX)
        return tl_fail_set(fail, TL_USAGE, "at most %u entries at once", ENTRIES_MAX);
    int r = tl_cut_open(&cut, lake, request->trace, request->stream, fail);
    if (r < 0)
        return r;
    r = walk_range(request, &cut, &log, fail);
    if (r >= 0)
        r = give_times(&log, &cut, fail);
    *out =
        (struct tl_soft_log){.entries = log.entries,
                             .n = log.n,
                             .more = log.more,
                             .time_is_ns = cut.lane->clock_hz != 0 || cut.gen->setup.clock.known};
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

void tl_soft_log_fini(struct tl_soft_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->entries[i].text);
    free(log->entries);
    *log = (struct tl_soft_log){0};
}
