/* SPDX-License-Identifier: MIT */
/*
 * Files of a limited number of shards, so that those of which the index has all are removed while
 * readers still use their own. A place in the file is written once, and never changes.
 */
#include "lake/away.h"

#include "base/whole.h"
#include "store/backend.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct tl_away {
    atomic_uint refs;
    int file;
    uint64_t first;
    uint64_t end; /* of the file */
    uint32_t n;
    uint64_t begins[TL_AWAY_MOST + 1]; /* where chunks begin */
};

struct tl_away *tl_away_new(struct tl_backend *backend, uint64_t first)
{
    struct tl_away *const away = malloc(sizeof *away);
    if (!away)
        return NULL;
    away->file = backend->ops->scratch(backend, NULL);
    if (away->file < 0) {
        free(away);
        return NULL;
    }
    atomic_init(&away->refs, 1);
    away->first = first;
    away->n = 0;
    away->begins[0] = away->end = TL_AWAY_MOST * sizeof(struct tl_shard_row);
    return away;
}

static struct tl_away *hold(struct tl_away *away)
{
    atomic_fetch_add(&away->refs, 1);
    return away;
}

void tl_away_put(struct tl_away *away)
{
    if (!away || atomic_fetch_sub(&away->refs, 1) > 1)
        return;
    close(away->file);
    free(away);
}

uint64_t tl_away_first(const struct tl_away *away)
{
    return away->first;
}

uint32_t tl_away_n(const struct tl_away *away)
{
    return away->n;
}

static int put(int file, const void *p, size_t n, uint64_t offset)
{
    const int r = tl_write_at(file, p, n, offset);
    return r < 0 && (errno == ENOSPC || errno == EDQUOT) ? TL_NOSPACE : r;
}

static int take(int file, void *p, size_t n, uint64_t offset)
{
    const int r = tl_read_at(file, p, n, offset);
    return r == TL_EOF ? TL_IO : r;
}

int tl_away_add(struct tl_away *away, const struct tl_view *view)
{
    struct tl_buf lists = {0};
    const struct tl_shard_row *const row = &view->index.row;
    if (away->n == TL_AWAY_MOST || row->number != away->first + away->n)
        return TL_LIMIT;
    int r = tl_shard_lists_encode(&view->index, &lists);
    if (r >= 0)
        r = put(away->file, row, sizeof *row, away->n * sizeof *row);
    if (r >= 0)
        r = put(away->file, lists.p, lists.n, away->end);
    if (r >= 0) {
        away->end += lists.n;
        away->begins[++away->n] = away->end;
    }
    tl_buf_fini(&lists);
    return r;
}

/* ---- for readers ---------------------------------------------------------------------------- */

int tl_away_take(struct tl_away_taken *out, struct tl_away *const *all, size_t n)
{
    *out = (struct tl_away_taken){0};
    if (n == 0)
        return TL_OK;
    out->v = calloc(n, sizeof *out->v);
    if (!out->v)
        return TL_NOMEM;
    for (; out->n < n; out->n++) {
        out->v[out->n] = (struct tl_away_part){hold(all[out->n]), all[out->n]->n};
        out->shards += all[out->n]->n;
    }
    return TL_OK;
}

void tl_away_taken_fini(struct tl_away_taken *taken)
{
    for (size_t i = 0; i < taken->n; i++)
        tl_away_put(taken->v[i].away);
    free(taken->v);
    *taken = (struct tl_away_taken){0};
}

int tl_away_taken_rows(const struct tl_away_taken *taken, struct tl_shard_row *out)
{
    int r = TL_OK;
    for (size_t i = 0; i < taken->n && r >= 0; i++) {
        r = take(taken->v[i].away->file, out, taken->v[i].n * sizeof *out, 0);
        out += taken->v[i].n;
    }
    return r;
}

static int read_index(const struct tl_away *away, size_t i, struct tl_shard_index *out)
{
    const size_t n = (size_t)(away->begins[i + 1] - away->begins[i]);
    uint8_t *const bytes = malloc(n + 1);
    int r = bytes ? take(away->file, bytes, n, away->begins[i]) : TL_NOMEM;
    if (r >= 0)
        r = tl_shard_lists_decode(out, (struct tl_bytes){bytes, n});
    if (r >= 0)
        r = take(away->file, &out->row, sizeof out->row, i * sizeof out->row);
    free(bytes);
    return r;
}

int tl_away_taken_open(const struct tl_away_taken *taken, uint64_t number, struct tl_view **out,
                       struct tl_fail *fail)
{
    const struct tl_away_part *part = taken->v;
    while (part < taken->v + taken->n && number - part->away->first >= part->n)
        part++;
    if (part == taken->v + taken->n)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no outline %llu",
                           (unsigned long long)number);
    struct tl_view *const view = tl_view_new();
    const int r = view ? read_index(part->away, (size_t)(number - part->away->first), &view->index)
                       : TL_NOMEM;
    if (r < 0) {
        tl_view_put(view);
        return tl_fail_set(fail, (enum tl_err)r, "an outline cannot be read");
    }
    *out = view;
    return TL_OK;
}
