/* SPDX-License-Identifier: MIT */
/*
 * Checks the stored shards of a lane, and the rows about them. A damaged shard is mended from
 * itself only if it cannot be decoded again.
 */
#include "builder/mend.h"
#include "lake/cut.h"
#include "upkeep/checkup.h"

#include <stdlib.h>

static bool same_now(const struct tl_flow_now *a, const struct tl_flow_now *b)
{
    return a->mode == b->mode && a->context == b->context && a->vmid == b->vmid &&
           a->time == b->time && a->offset == b->offset && a->depth == b->depth &&
           a->isa == b->isa && a->has_mode == b->has_mode && a->has_context == b->has_context &&
           a->has_vmid == b->has_vmid && a->has_time == b->has_time && a->axis == b->axis &&
           a->shift == b->shift && a->restarts == b->restarts;
}

static bool same_anchor(const struct tl_anchor *a, const struct tl_anchor *b)
{
    return a->position == b->position && a->time == b->time;
}

static bool same_row(const struct tl_shard_row *a, const struct tl_shard_row *b)
{
    return a->number == b->number && a->first == b->first && a->n == b->n &&
           a->markers == b->markers && a->byte_first == b->byte_first &&
           a->byte_last == b->byte_last && a->events == b->events && a->gaps == b->gaps &&
           a->anchors == b->anchors && a->size == b->size && same_now(&a->at, &b->at) &&
           (a->anchors == 0 || (same_anchor(&a->anchor_first, &b->anchor_first) &&
                                same_anchor(&a->anchor_last, &b->anchor_last)));
}

/* Write the values of an intact shard to the catalog and to memory. */
static int mend_row(struct tl_checkup *c, struct tl_lane *lane, const struct tl_shard_row *row,
                    const struct tl_buf *summary)
{
    struct tl_gen *gen = lane->gen;
    const struct tl_catalog_shard shard = {
        .stream = lane->index, .row = *row, .summary = {summary->p, summary->n}};
    const int r = c->lake->catalog->ops->add_shards(c->lake->catalog, gen->trace, gen->number,
                                                    &shard, 1, c->fail);
    if (r < 0)
        return r;
    pthread_mutex_lock(&lane->lock);
    tl_rows_replace(&lane->rows, row);
    tl_lane_forget_stats_locked(lane);
    tl_lane_forget_calltrees_locked(lane);
    tl_lane_forget_summary_locked(lane);
    pthread_mutex_unlock(&lane->lock);
    tl_time_summary_forget(&lane->time_summary);
    return TL_OK;
}

/* Check the catalog's row for an intact shard. `row`: the catalog's, NULL: none. */
static int check_row(struct tl_checkup *c, struct tl_lane *lane, const char *key, uint64_t number,
                     const struct tl_shard_row *row)
{
    struct tl_view *view;
    struct tl_buf summary = {0};
    bool intact = false;
    struct tl_gen *gen = lane->gen;
    int r = tl_view_open(&view, c->lake->backend, key, c->fail);
    if (r < 0)
        return r;
    r = c->lake->catalog->ops->check_summary(c->lake->catalog, gen->trace, gen->number, lane->index,
                                             number, &intact, c->fail);
    if (r >= 0 && (!intact || !row || !same_row(row, &view->index.row))) {
        c->findings++;
        r = tl_checkup_line(c, "catalog: the row of %s contradicts it%s", key,
                            c->repair ? "; written anew" : "");
        if (r >= 0 && c->repair)
            r = tl_shard_summary_encode(&view->index, &summary);
        if (r >= 0 && c->repair)
            r = mend_row(c, lane, &view->index.row, &summary);
    }
    tl_buf_fini(&summary);
    tl_view_put(view);
    return r;
}

struct stored_rows {
    struct tl_shard_row *rows;
    size_t n, cap;
};

static int add_stored(void *context, const struct tl_shard_row *row)
{
    struct stored_rows *stored = context;
    const int r = tl_grow(&stored->rows, &stored->cap, stored->n + 1, sizeof(*row));
    if (r >= 0)
        stored->rows[stored->n++] = *row;
    return r;
}

static const struct tl_shard_row *find_stored(const struct stored_rows *stored, uint64_t number)
{
    for (size_t i = 0; i < stored->n; i++)
        if (stored->rows[i].number == number)
            return &stored->rows[i];
    return NULL;
}

/* Nothing else can restore it, so that what is lost is lost. */
static bool is_last_resort(const struct tl_checkup *c)
{
    return c->raw_removed || c->raw_lost > 0;
}

/*
 * Repair a damaged shard from itself: at once if nothing is lost, otherwise only if decoding again
 * is not possible. The new object replaces the old one in one step. 1: it is repaired, 0: it is
 * not.
 */
static int mend_shard(struct tl_checkup *c, struct tl_lane *lane, const char *key, uint64_t number,
                      bool follows)
{
    struct tl_buf file = {0}, mended = {0};
    struct tl_fail why = {0};
    int r = c->packer ? TL_OK : tl_packer_new(&c->packer);
    if (r >= 0)
        r = tl_backend_get_all(c->lake->backend, key, &file, c->fail);
    if (r == TL_NOTFOUND)
        return 0;
    const struct tl_mend mend = {.number = number,
                                 .follows = follows,
                                 .protocol = lane->protocol,
                                 .image = tl_gen_image(lane->gen),
                                 .packer = c->packer};
    int lost = 0;
    if (r >= 0)
        r = lost = tl_shard_mend((struct tl_bytes){file.p, file.n}, &mend, &mended, &why);
    tl_buf_fini(&file);
    bool whole = r == 0 || (r > 0 && is_last_resort(c));
    if (whole)
        r = tl_backend_put(c->lake->backend, key, (struct tl_bytes){mended.p, mended.n}, c->fail);
    if (r >= 0 && whole) {
        tl_lake_forget_views(c->lake, key);
        r = lost == 0 ? tl_checkup_line(c, "%s: made whole from itself", key)
                      : tl_checkup_line(
                            c,
                            "%s: made whole from its STF; times, events and notes of %d chunk%s "
                            "are lost",
                            key, lost, lost == 1 ? "" : "s");
    } else if (r == TL_BAD) {
        r = tl_checkup_line(c, "%s: cannot be made whole from itself: %s", key, why.text);
    }
    tl_buf_fini(&mended);
    return r < 0 ? r : whole;
}

/* Check a shard in its stored form. Returns the number of findings. */
static int verify_shard(struct tl_checkup *c, struct tl_lane *lane, uint64_t number,
                        char key[static 192], bool *virtual)
{
    const struct tl_gen *gen = lane->gen;
    struct tl_backend *backend = c->lake->backend;
    struct tl_fail why = {0};
    struct tl_view *view;
    uint64_t size;
    tl_virtual_key(key, gen->trace, gen->number, lane->name, number);
    int r = backend->ops->size(backend, key, &size, c->fail);
    *virtual = r != TL_NOTFOUND;
    if (r == TL_NOTFOUND)
        return tl_view_verify(backend,
                              tl_shard_key(key, gen->trace, gen->number, lane->name, number),
                              c->report, c->fail);
    if (r >= 0)
        r = tl_view_open(&view, backend, key, &why);
    if (r >= 0)
        tl_view_put(view);
    if (r != TL_BAD)
        return r;
    r = tl_checkup_line(c, "%s: offset 0x0: the index of a virtual shard is damaged", key);
    return r < 0 ? r : 1;
}

/* Data stored along with a shard is derived from it. An older version is recomputed at the next
 * query. `r`: result of reading it. */
static int reported_kept(struct tl_checkup *c, const char *key, const char *what, int r)
{
    if (r != TL_NOTFOUND)
        return r == TL_UNSUPPORTED ? TL_OK : r;
    c->findings++;
    r = tl_checkup_line(c, "%s: offset 0x0: %s are damaged%s", key, what,
                        c->repair ? "; removed, they are made anew" : "");
    return r < 0 || !c->repair ? r : c->lake->backend->ops->remove(c->lake->backend, key, c->fail);
}

static int check_kept(struct tl_checkup *c, const struct tl_cut *cut, size_t i, bool calls)
{
    struct tl_buf bytes = {0};
    struct tl_codecount counts = {0};
    struct tl_shard_calls kept = {0};
    char key[192];
    tl_shard_object_key(key, cut->gen->trace, cut->gen->number, cut->lane->name,
                        cut->rows[i].number, calls ? TL_CALLTREE_KIND : TL_CODECOUNT_KIND);
    int r = tl_backend_get_all(c->lake->backend, key, &bytes, c->fail);
    const bool there = r >= 0;
    const struct tl_bytes object = {bytes.p, bytes.n};
    if (there)
        r = calls ? tl_shard_calls_decode(&kept.tree, &kept.index, object)
                  : tl_codecount_decode(&counts, NULL, object);
    tl_shard_calls_fini(&kept);
    tl_codecount_fini(&counts);
    tl_buf_fini(&bytes);
    if (!there)
        return r == TL_NOTFOUND ? TL_OK : r;
    return reported_kept(c, key, calls ? "a shard's call paths" : "counts of a shard's code", r);
}

/* Do instructions of a shard come from lost raw bytes? */
static bool is_raw_lost(const struct tl_checkup *c, const struct tl_shard_row *row)
{
    for (size_t at = 0; at < c->lost.n; at += 2 * sizeof(uint64_t)) {
        uint64_t span[2];
        memcpy(span, c->lost.p + at, sizeof(span));
        if (row->byte_first < span[1] && row->byte_last >= span[0])
            return true;
    }
    return false;
}

/* Report virtual shards with a missing range, consecutive ones together: `incomplete` are their
 * positions, and become empty. */
static int report_missing(struct tl_checkup *c, const struct tl_lane *lane,
                          uint64_t incomplete[static 2])
{
    const uint64_t from = incomplete[0], to = incomplete[1];
    incomplete[0] = incomplete[1] = 0;
    if (from == to)
        return TL_OK;
    return tl_checkup_line(
        c,
        "%s/%s: instructions %llu:%llu are regenerated from damaged raw bytes: those that "
        "cannot be are read as a gap",
        c->trace->id, lane->name, (unsigned long long)from, (unsigned long long)to);
}

static int check_shards(struct tl_checkup *c, struct tl_lane *lane, const struct tl_cut *cut,
                        const struct stored_rows *stored)
{
    uint64_t incomplete[2] = {0};
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < cut->n_stored; i++) {
        const struct tl_shard_row *const row = &cut->rows[i];
        const uint64_t number = row->number;
        const bool follows = i + 1 < cut->n_rows || cut->open;
        char key[192];
        bool virtual;
        r = verify_shard(c, lane, number, key, &virtual);
        if (r >= 0 && virtual && is_raw_lost(c, row)) {
            incomplete[0] = incomplete[0] == incomplete[1] ? row->first : incomplete[0];
            incomplete[1] = row->first + row->n;
            tl_lane_note_incomplete(lane, number);
        } else if (r >= 0) {
            const int reported = report_missing(c, lane, incomplete);
            r = reported < 0 ? reported : r;
        }
        bool whole = r == 0;
        if (r > 0) {
            c->findings += r;
            r = c->repair && !virtual ? mend_shard(c, lane, key, number, follows) : 0;
            whole = r > 0;
            c->shards += r == 0;
        }
        if (whole)
            r = check_row(c, lane, key, number, find_stored(stored, number));
        if (r >= 0)
            r = check_kept(c, cut, i, false);
        if (r >= 0)
            r = check_kept(c, cut, i, true);
    }
    if (r >= 0)
        r = report_missing(c, lane, incomplete);
    return r < 0 ? r : TL_OK;
}

int tl_check_lane(struct tl_checkup *c, struct tl_gen *gen, struct tl_lane *lane)
{
    struct tl_cut cut;
    struct stored_rows stored = {0};
    int r = tl_cut_of_lane(&cut, gen, lane);
    if (r < 0)
        return r;
    r = c->lake->catalog->ops->shards(c->lake->catalog, gen->trace, gen->number, lane->index,
                                      add_stored, &stored, c->fail);
    if (r == TL_BAD) { /* an unreadable row is reported as missing */
        stored.n = 0;
        r = TL_OK;
    }
    if (r >= 0)
        r = check_shards(c, lane, &cut, &stored);
    free(stored.rows);
    tl_cut_close(&cut);
    return r;
}
