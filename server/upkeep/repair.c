/* SPDX-License-Identifier: MIT */
/*
 * Checks every stored byte, and rebuilds what can be derived from intact data. A damaged shard is
 * mended from itself only if it cannot be decoded again.
 */
#include "lake/cut.h"
#include "lake/mirror.h"
#include "lake_upkeep.h"

#include "base/cancel.h"
#include "builder/mend.h"
#include "share/share.h"
#include "store/hash.h"
#include "upkeep/backfill.h"
#include "upkeep/rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NAMES        256 /* traces read at once */
#define MIRROR_LOOKS 25  /* checks of an outdated copy of a catalog row, 20 ms apart */

/* ---- checking ------------------------------------------------------------------------------- */

struct checkup {
    struct tl_lake *lake;
    struct tl_trace *trace;
    struct tl_buf *report;
    struct tl_fail *fail;
    int findings;
    int raw_lost;       /* lost spans of raw bytes */
    struct tl_buf lost; /* these spans: pairs of uint64_t, the offset and the end */
    int raw_heads;      /* damage of raw objects that loses no bytes */
    int shards;         /* damaged, and not repaired */
    int images;         /* damaged or missing */
    bool raw_removed;
    bool repair;
    struct tl_packer *packer; /* created when needed */
};

TL_PRINTF(2, 3) static int add_line(struct checkup *c, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    return tl_buf_printf(c->report, "%s\n", line);
}

static int on_raw(void *context, const struct tl_spool_damage *d)
{
    struct checkup *c = context;
    c->findings++;
    if (d->n == 0) {
        c->raw_heads++;
        return add_line(c, "%s: offset 0x%llx: the segment's head is damaged", d->key,
                        (unsigned long long)d->at);
    }
    c->raw_lost++;
    const uint64_t span[2] = {d->offset, d->offset + d->n};
    if (tl_buf_add(&c->lost, span, sizeof(span)) < 0)
        return TL_NOMEM;
    return add_line(c, "%s: offset 0x%llx: raw bytes 0x%llx to 0x%llx are damaged or missing",
                    d->key, (unsigned long long)d->at, (unsigned long long)d->offset,
                    (unsigned long long)(d->offset + d->n - 1));
}

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
static int mend_row(struct checkup *c, struct tl_lane *lane, const struct tl_shard_row *row,
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
static int check_row(struct checkup *c, struct tl_lane *lane, const char *key, uint64_t number,
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
        r = add_line(c, "catalog: the row of %s contradicts it%s", key,
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
static bool is_last_resort(const struct checkup *c)
{
    return c->raw_removed || c->raw_lost > 0;
}

/*
 * Repair a damaged shard from itself: at once if nothing is lost, otherwise only if decoding again
 * is not possible. The new object replaces the old one in one step. 1: it is repaired, 0: it is
 * not.
 */
static int mend_shard(struct checkup *c, struct tl_lane *lane, const char *key, uint64_t number,
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
        r = lost == 0
                ? add_line(c, "%s: made whole from itself", key)
                : add_line(c,
                           "%s: made whole from its STF; times, events and notes of %d chunk%s "
                           "are lost",
                           key, lost, lost == 1 ? "" : "s");
    } else if (r == TL_BAD) {
        r = add_line(c, "%s: cannot be made whole from itself: %s", key, why.text);
    }
    tl_buf_fini(&mended);
    return r < 0 ? r : whole;
}

/* Check a shard in its stored form. Returns the number of findings. */
static int verify_shard(struct checkup *c, struct tl_lane *lane, uint64_t number,
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
    r = add_line(c, "%s: offset 0x0: the index of a virtual shard is damaged", key);
    return r < 0 ? r : 1;
}

/* Data stored along with a shard is derived from it. An older version is recomputed at the next
 * query. `r`: result of reading it. */
static int reported_kept(struct checkup *c, const char *key, const char *what, int r)
{
    if (r != TL_NOTFOUND)
        return r == TL_UNSUPPORTED ? TL_OK : r;
    c->findings++;
    r = add_line(c, "%s: offset 0x0: %s are damaged%s", key, what,
                 c->repair ? "; removed, they are made anew" : "");
    return r < 0 || !c->repair ? r : c->lake->backend->ops->remove(c->lake->backend, key, c->fail);
}

static int check_kept(struct checkup *c, const struct tl_cut *cut, size_t i, bool calls)
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
static bool is_raw_lost(const struct checkup *c, const struct tl_shard_row *row)
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
static int report_missing(struct checkup *c, const struct tl_lane *lane,
                          uint64_t incomplete[static 2])
{
    const uint64_t from = incomplete[0], to = incomplete[1];
    incomplete[0] = incomplete[1] = 0;
    if (from == to)
        return TL_OK;
    return add_line(
        c,
        "%s/%s: instructions %llu:%llu are regenerated from damaged raw bytes: those that "
        "cannot be are read as a gap",
        c->trace->id, lane->name, (unsigned long long)from, (unsigned long long)to);
}

static int check_shards(struct checkup *c, struct tl_lane *lane, const struct tl_cut *cut,
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

static int check_lane(struct checkup *c, struct tl_gen *gen, struct tl_lane *lane)
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

/* ---- images --------------------------------------------------------------------------------- */

/* Check one image by its hash; with repair, a damaged one is removed, to be uploaded again. */
static int check_image(struct checkup *c, const char *hash)
{
    struct tl_buf content = {0};
    char key[96], found[TL_HASH_TEXT];
    snprintf(key, sizeof(key), "i/%.64s", hash + 7);
    int r = tl_cancel_rest();
    if (r >= 0)
        r = tl_backend_get_all(c->lake->backend, key, &content, c->fail);
    const bool missing = r == TL_NOTFOUND;
    if (r >= 0)
        r = tl_hash_text((struct tl_bytes){content.p, content.n}, found);
    tl_buf_fini(&content);
    if (missing || (r >= 0 && strcmp(found, hash) != 0)) {
        c->findings++;
        c->images++;
        r = add_line(c, "%s: offset 0x0: the image is %s; upload it again", key,
                     missing ? "missing" : "damaged");
        if (r >= 0 && c->repair && !missing)
            r = c->lake->backend->ops->remove(c->lake->backend, key, c->fail);
        if (r >= 0 && c->repair)
            r = c->lake->catalog->ops->remove_image(c->lake->catalog, hash, c->fail);
    }
    return r;
}

/* Check the copy of an image's name, which only the catalog has otherwise. */
static int check_name(struct checkup *c, const struct tl_image_row *row)
{
    struct tl_buf name = {0};
    char key[96];
    snprintf(key, sizeof(key), "n/%.64s", row->hash + 7);
    int r = tl_backend_get_all(c->lake->backend, key, &name, c->fail);
    const bool same =
        r >= 0 && name.n == strlen(row->name) && memcmp(name.p, row->name, name.n) == 0;
    tl_buf_fini(&name);
    if (same || (r < 0 && r != TL_NOTFOUND))
        return same ? TL_OK : r;
    c->findings++;
    r = add_line(c, "%s: offset 0x0: the name of an image is damaged or missing%s", key,
                 c->repair ? "; written anew" : "");
    const struct tl_bytes text = {(const uint8_t *)row->name, strlen(row->name)};
    return r < 0 || !c->repair ? r : tl_backend_put(c->lake->backend, key, text, c->fail);
}

/* Check the uploaded images that `setup` names (NULL: all). */
static int check_images(struct checkup *c, const char *setup)
{
    struct tl_image_row *rows;
    size_t n;
    int r = tl_lake_images(c->lake, &rows, &n);
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        char build_id[80];
        snprintf(build_id, sizeof(build_id), "build-id:%s", rows[i].build_id);
        const bool used = !setup || strstr(setup, rows[i].hash) ||
                          (rows[i].build_id[0] && strstr(setup, build_id));
        if (!used || !tl_hash_valid(rows[i].hash))
            continue;
        r = check_name(c, &rows[i]);
        if (r >= 0)
            r = check_image(c, rows[i].hash);
    }
    free(rows);
    return r;
}

/* ---- a trace -------------------------------------------------------------------------------- */

static int check_mirror(struct checkup *c)
{
    enum tl_mirror_state state;
    int r = tl_trace_mirror_check(c->trace, &state, c->fail);
    /* If the row was changed a moment ago, its copy is about to be written. */
    for (int i = 0; r >= 0 && state == TL_MIRROR_OLD && i < MIRROR_LOOKS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        r = tl_trace_mirror_check(c->trace, &state, c->fail);
    }
    if (r == TL_NOTFOUND) /* the trace may have just begun */
        state = c->trace->complete ? TL_MIRROR_DAMAGED : TL_MIRROR_SAME;
    else if (r < 0)
        return r;
    if (state == TL_MIRROR_SAME)
        return TL_OK;
    c->findings++;
    r = add_line(c, "m/%s: offset 0x0: the copy of its catalog row is damaged or old%s",
                 c->trace->id, c->repair ? "; written anew" : "");
    if (r >= 0 && c->repair)
        tl_trace_mirror(c->trace);
    return r;
}

/* Report what is lost with a shard that cannot be restored. */
static int report_lost_shards(struct checkup *c, const char *why)
{
    return add_line(c,
                    "%s: %d damaged shard%s cannot be made again: %s; all other shards are served",
                    c->trace->id, c->shards, c->shards == 1 ? "" : "s", why);
}

/* `gen`: the generation that was checked. */
static int repair_trace(struct checkup *c, const struct tl_gen *gen)
{
    int r = TL_OK;
    if (c->raw_heads > 0) {
        r = tl_spool_mend(c->lake->backend, c->trace->id, c->fail);
        if (r >= 0)
            r = add_line(c, "%s: heads of segments were written anew", c->trace->id);
    }
    if (r >= 0 && c->raw_lost > 0)
        r = add_line(c,
                     "%s: damaged raw bytes are lost, nothing else holds them; decoded anew there "
                     "will be a gap, all other bytes are served",
                     c->trace->id);
    if (r < 0 || c->shards == 0)
        return r;
    if (c->raw_removed)
        return report_lost_shards(c, "the raw bytes were removed by retention");
    if (c->raw_lost > 0)
        return report_lost_shards(c,
                                  "raw bytes are damaged, too; `redecode` makes them anew, with a "
                                  "gap where raw bytes are lost");
    if (c->images > 0)
        return report_lost_shards(c, "its images are damaged; upload them again");
    pthread_mutex_lock(&c->trace->lock);
    const bool making = c->trace->making && c->trace->making != c->trace->serving;
    const bool made = c->trace->serving != gen;
    pthread_mutex_unlock(&c->trace->lock);
    if (made)
        return add_line(c, "%s: the raw bytes have been decoded again meanwhile", c->trace->id);
    if (making)
        return add_line(c, "%s: the raw bytes are being decoded already", c->trace->id);
    r = add_line(c, "%s: decoding the raw bytes again", c->trace->id);
    return r < 0 ? r : tl_lake_redecode(c->lake, c->trace->id, NULL, c->fail);
}

static int check_trace(struct checkup *c, const char *id)
{
    int r = tl_cancel_rest();
    if (r < 0)
        return r;
    c->trace = tl_lake_find_trace(c->lake, id);
    if (!c->trace)
        return tl_no_trace(c->lake, c->fail, id);
    if (c->repair) {
        r = tl_trace_pin(c->trace, TL_PIN_ASK, c->fail);
        if (r < 0) {
            tl_trace_put(c->trace);
            return r;
        }
    }
    pthread_mutex_lock(&c->trace->lock);
    struct tl_gen *gen = tl_gen_get(c->trace->serving);
    const uint64_t raw_bytes = c->trace->raw_bytes;
    const bool raw_removed = c->trace->raw_removed;
    char *setup = strdup(c->trace->setup);
    pthread_mutex_unlock(&c->trace->lock);
    c->raw_lost = c->raw_heads = c->shards = c->images = 0;
    tl_buf_reset(&c->lost);
    c->raw_removed = raw_removed;
    r = setup ? TL_OK : TL_NOMEM;
    if (r >= 0 && !raw_removed)
        r = tl_spool_audit(c->lake->backend, id, raw_bytes, on_raw, c, c->fail);
    struct tl_lane *lane;
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++)
        r = check_lane(c, gen, lane);
    if (r >= 0)
        r = check_mirror(c);
    if (r >= 0)
        r = check_images(c, setup);
    if (r >= 0 && c->repair)
        r = repair_trace(c, gen);
    free(setup);
    tl_gen_put(gen);
    if (c->repair)
        tl_trace_unpin(c->trace);
    tl_trace_put(c->trace);
    return r;
}

/* One of all traces. A trace of another server, that does not release it, is checked only. */
static int check_one_of_all(struct checkup *c, const char *id)
{
    const bool repair = c->repair;
    int r = check_trace(c, id);
    if (r == TL_AGAIN && repair) {
        c->repair = false;
        r = add_line(c, "%s: another server works on it; it is checked, not repaired", id);
        if (r >= 0)
            r = check_trace(c, id);
        c->repair = repair;
    }
    /* Deleted meanwhile; or its rows are damaged, which has been reported. */
    return r == TL_NOTFOUND || r == TL_BAD ? TL_OK : r;
}

static int on_catalog(void *context, const char *finding)
{
    struct checkup *c = context;
    c->findings++;
    return add_line(c, "catalog: %.400s", finding);
}

/* Report an object of the lake's own, of which `r` is the check's result. */
static int report_own(struct checkup *c, int r, const char *finding, const char *mended)
{
    if (r != TL_BAD)
        return r;
    c->findings++;
    return add_line(c, "%s%s", finding, c->repair ? mended : "");
}

static int check_own(struct checkup *c)
{
    const int r = report_own(c, tl_lake_clock_check(c->lake, c->repair),
                             "k/clock: offset 0x0: the lake's clock is damaged", "; written anew");
    return r < 0 ? r
                 : report_own(c, tl_backfill_check(c->lake, c->repair),
                              "k/calls: offset 0x0: what is known of counts of calls is damaged",
                              "; the next start looks at all of them");
}

static int check_all(struct checkup *c)
{
    struct tl_names names = {0};
    int r = c->lake->catalog->ops->check(c->lake->catalog, true, on_catalog, c, c->fail);
    if (r >= 0)
        r = check_own(c);
    if (r < 0)
        return r;
    for (int more = 1; r >= 0 && more > 0;) {
        tl_buf_reset(&names.text);
        more = tl_lake_names(c->lake, NAMES, &names, c->fail);
        r = more < 0 ? more : r;
        for (size_t at = 0; r >= 0 && at < names.text.n;) {
            const char *const id = (const char *)names.text.p + at;
            at += strlen(id) + 1;
            r = check_one_of_all(c, id);
        }
    }
    tl_buf_fini(&names.text);
    return r < 0 ? r : check_images(c, NULL);
}

int tl_lake_verify(struct tl_lake *lake, const char *id, bool repair, struct tl_buf *report,
                   struct tl_fail *fail)
{
    struct checkup c = {.lake = lake, .report = report, .fail = fail, .repair = repair};
    int r = tl_rows_verify(lake, id, repair, report, fail);
    c.findings = r > 0 ? r : 0;
    /* Nothing else can be read of a trace whose rows are damaged. */
    if (r >= 0)
        r = !*id ? check_all(&c) : r == 0 || repair ? check_trace(&c, id) : TL_OK;
    tl_packer_free(c.packer);
    tl_buf_fini(&c.lost);
    return r < 0 ? r : c.findings;
}
