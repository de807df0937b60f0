/* SPDX-License-Identifier: MIT */
/*
 * The table of traces: active traces, and the most recently used others. The rest is in the
 * catalog.
 */
#include "base/hash.h"
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- entries -------------------------------------------------------------------------------- */

static struct tl_trace **bucket_of(struct tl_lake *lake, const char *id)
{
    return &lake->by_id[tl_fnv_text(id) % TL_TRACE_BUCKETS];
}

static struct tl_trace *find_locked(struct tl_lake *lake, const char *id)
{
    struct tl_trace *t = *bucket_of(lake, id);
    while (t && strcmp(t->id, id) != 0)
        t = t->next_by_id;
    return t;
}

static void insert_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    struct tl_trace **const bucket = bucket_of(lake, trace->id);
    trace->next_by_id = *bucket;
    *bucket = trace;
    trace->next = lake->traces;
    lake->traces = trace;
    lake->n_traces++;
}

bool tl_lake_unlink_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    struct tl_trace **p = &lake->traces, **q = bucket_of(lake, trace->id);
    lake->unlinked++;
    while (*p && *p != trace)
        p = &(*p)->next;
    if (!*p)
        return false;
    *p = trace->next;
    while (*q != trace)
        q = &(*q)->next_by_id;
    *q = trace->next_by_id;
    lake->n_traces--;
    return true;
}

void tl_lake_unlink(struct tl_lake *lake, struct tl_trace *trace)
{
    pthread_mutex_lock(&lake->lock);
    const bool was_there = tl_lake_unlink_locked(lake, trace);
    pthread_mutex_unlock(&lake->lock);
    if (was_there)
        tl_trace_put(trace); /* reference of the table */
}

static struct tl_trace *look(struct tl_lake *lake, const char *id, bool uses)
{
    pthread_mutex_lock(&lake->lock);
    struct tl_trace *const there = find_locked(lake, id);
    struct tl_trace *const found = there ? tl_trace_get(there) : NULL;
    if (found && uses)
        found->used = ++lake->uses;
    pthread_mutex_unlock(&lake->lock);
    return found;
}

struct tl_trace *tl_lake_resident(struct tl_lake *lake, const char *id)
{
    return look(lake, id, true);
}

struct tl_trace *tl_lake_peek(struct tl_lake *lake, const char *id)
{
    return look(lake, id, false);
}

int tl_lake_all_resident(struct tl_lake *lake, struct tl_trace ***out, size_t *n)
{
    size_t cap = 0;
    int r = TL_OK;
    *out = NULL;
    *n = 0;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t && r >= 0; t = t->next) {
        r = tl_grow(out, &cap, *n + 1, sizeof(struct tl_trace *));
        if (r >= 0)
            (*out)[(*n)++] = tl_trace_get(t);
    }
    pthread_mutex_unlock(&lake->lock);
    return r;
}

struct tl_trace *tl_lake_find_due(struct tl_lake *lake,
                                  bool (*is_due_locked)(const struct tl_trace *trace), bool *soon)
{
    struct tl_trace *found = NULL;
    if (soon)
        *soon = false;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t && !found; t = t->next) {
        pthread_mutex_lock(&t->lock);
        const bool due = is_due_locked(t);
        if (due && soon && tl_trace_is_fresh_locked(t))
            *soon = true;
        else if (due)
            found = tl_trace_get(t);
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return found;
}

/* ---- eviction ------------------------------------------------------------------------------- */

static bool is_used_locked(const struct tl_trace *t)
{
    return atomic_load(&t->refs) > 1 || atomic_load(&t->serving->refs) > 1 ||
           t->job.state != TL_JOB_NONE || t->lease || t->pins > 0;
}

/* Does its row say all that is known of it? */
static bool is_in_row_locked(const struct tl_trace *t)
{
    return t->content_state != TL_CONTENT_DAMAGED || t->raw_removed;
}

/* Is it unused, and can it be reloaded unchanged? */
static bool may_leave_locked(struct tl_trace *t)
{
    pthread_mutex_lock(&t->lock);
    const bool may = tl_trace_phase_locked(t) == TL_PHASE_AT_REST && !tl_trace_owed_locked(t) &&
                     !is_used_locked(t) && is_in_row_locked(t);
    pthread_mutex_unlock(&t->lock);
    return may;
}

/* Evict the least recently used traces, a quarter of the table at once. */
static void make_room(struct tl_lake *lake)
{
    struct tl_trace *leaving = NULL;
    pthread_mutex_lock(&lake->lock);
    if (lake->n_traces > TL_TRACES_RESIDENT) {
        const uint64_t recent = lake->uses - (TL_TRACES_RESIDENT - TL_TRACES_RESIDENT / 4);
        for (struct tl_trace *t = lake->traces, *next; t; t = next) {
            next = t->next;
            if (t->used > recent || !may_leave_locked(t) || !tl_lake_unlink_locked(lake, t))
                continue;
            t->next = leaving;
            leaving = t;
        }
    }
    pthread_mutex_unlock(&lake->lock);
    for (struct tl_trace *next; leaving; leaving = next) {
        next = leaving->next;
        tl_trace_put(leaving);
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Whoever calls holds the trace's lock, or is the only one who knows the trace: the catalog, whose
 * lock is a leaf, hands out rows while it is held. */
static int fill(struct tl_trace *t, const struct tl_catalog_trace *row, struct tl_fail *fail)
{
    const bool has_earlier = row->earlier && *row->earlier;
    char *setup = strdup(row->setup), *labels = strdup(row->labels);
    char *earlier = has_earlier ? strdup(row->earlier) : NULL;
    const bool whole = setup && labels && (earlier || !has_earlier);
    if (whole) {
        char *const before[] = {t->setup, t->labels, t->earlier};
        t->setup = setup;
        t->labels = labels;
        t->earlier = earlier;
        setup = before[0];
        labels = before[1];
        earlier = before[2];
        snprintf(t->format, sizeof(t->format), "%s", row->format);
        snprintf(t->message, sizeof(t->message), "%s", row->message);
        t->updated_ns = row->updated_ns;
        t->state = (uint8_t)row->state;
        t->complete = row->complete;
        t->raw_bytes = row->raw_bytes;
        t->wanted = row->wanted;
        t->raw_removed = row->raw_removed;
        t->decoded_removed = row->decoded_removed;
        tl_trace_set_content_locked(t, row->content ? row->content : "");
        t->notes = row->notes;
        const bool over = row->state >= TL_TRACE_SEALED;
        t->counted = (struct tl_digest){.state = t->state & 3,
                                        .raw_bytes = over && !row->raw_removed ? row->raw_bytes : 0,
                                        .stored_bytes = over ? row->stored_bytes : 0,
                                        .insns = over ? row->insns : 0};
    }
    free(setup);
    free(labels);
    free(earlier);
    return whole ? TL_OK : tl_fail_set(fail, TL_NOMEM, "no memory");
}

int tl_trace_take_row(struct tl_trace *t, const struct tl_catalog_trace *row, struct tl_fail *fail)
{
    pthread_mutex_lock(&t->lock);
    const int r = fill(t, row, fail);
    pthread_mutex_unlock(&t->lock);
    return r;
}

/* Create a trace object with its first generation, in no table yet. */
int tl_trace_make(struct tl_lake *lake, const struct tl_catalog_trace *row, struct tl_trace **out,
                  struct tl_fail *fail)
{
    struct tl_trace *t = calloc(1, sizeof(*t));
    if (!t)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    atomic_init(&t->refs, 1);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->mirrored, NULL);
    pthread_mutex_init(&t->opening, NULL);
    pthread_mutex_init(&t->owning, NULL);
    t->lake = lake;
    snprintf(t->id, sizeof(t->id), "%s", row->id);
    snprintf(t->rig, sizeof(t->rig), "%s", row->rig);
    t->created_ns = row->created_ns;
    t->idle_ns = tl_monotonic_ns();
    int r = fill(t, row, fail);
    if (r >= 0)
        r = tl_gen_new(&t->serving, lake, t->id, row->generation,
                       row->wanted != row->generation && t->earlier ? t->earlier : row->setup,
                       fail);
    if (r < 0) {
        tl_trace_put(t);
        return r;
    }
    *out = t;
    return TL_OK;
}

/* A trace whose setup this program cannot read still has its raw bytes: keep it, as failed. */
static int load_unreadable(struct tl_lake *lake, const struct tl_catalog_trace *row,
                           const struct tl_fail *why, struct tl_trace **out, struct tl_fail *fail)
{
    struct tl_catalog_trace bare = *row;
    bare.setup = "";
    bare.state = TL_TRACE_FAILED;
    bare.message = why->text;
    int r = tl_trace_make(lake, &bare, out, fail);
    if (r < 0)
        return r;
    free((*out)->setup);
    (*out)->setup = strdup(row->setup);
    return (*out)->setup ? TL_OK : TL_NOMEM;
}

int tl_trace_of_row(struct tl_lake *lake, const struct tl_catalog_trace *row, struct tl_trace **out)
{
    struct tl_fail why = {0};
    atomic_fetch_add(&lake->traces_read, 1);
    int r = tl_trace_make(lake, row, out, &why);
    if (r == TL_BAD || r == TL_USAGE)
        r = load_unreadable(lake, row, &why, out, NULL);
    if (r >= 0)
        atomic_store(&(*out)->serving->decoded, row->decoded_bytes);
    return r;
}

void tl_lake_insert(struct tl_lake *lake, struct tl_trace *trace)
{
    pthread_mutex_lock(&lake->lock);
    struct tl_trace *const shown = find_locked(lake, trace->id);
    if (shown)
        (void)tl_lake_unlink_locked(lake, shown);
    trace->used = ++lake->uses;
    insert_locked(lake, trace);
    pthread_mutex_unlock(&lake->lock);
    tl_trace_put(shown); /* reference of the table */
}

/* ---- finding -------------------------------------------------------------------------------- */

struct reading {
    struct tl_lake *lake;
    struct tl_trace *trace;
};

static int keep_row(void *context, const struct tl_catalog_trace *row)
{
    struct reading *const reading = context;
    return tl_trace_of_row(reading->lake, row, &reading->trace);
}

/* Load from the catalog, in no table yet. */
static int read_trace(struct tl_lake *lake, const char *id, struct tl_trace **out)
{
    struct reading reading = {.lake = lake};
    int r = lake->catalog->ops->find(lake->catalog, id, keep_row, &reading, NULL);
    struct tl_trace *const t = reading.trace;
    /* Leftovers of other generations after a crash: nobody works on the trace, otherwise it would
     * be in the table. */
    if (r >= 0 && !lake->shared)
        r = lake->catalog->ops->drop_others(lake->catalog, id, t->serving->number, t->wanted, NULL);
    if (r >= 0)
        r = tl_gen_load(t->serving, NULL);
    if (r < 0) {
        tl_trace_put(t);
        return r;
    }
    if (!lake->shared && t->complete)
        t->repacked = t->raw_bytes; /* otherwise set by orphans.c */
    *out = t;
    return TL_OK;
}

/* Put a loaded trace into the table, unless it is there or anything was removed since, which may
 * have been this trace. Returns the entry, with a reference. */
static struct tl_trace *settle_in(struct tl_lake *lake, struct tl_trace *trace, uint64_t unlinked)
{
    struct tl_trace *found = NULL;
    pthread_mutex_lock(&lake->lock);
    if (lake->unlinked == unlinked) {
        found = find_locked(lake, trace->id);
        if (!found) {
            insert_locked(lake, trace);
            found = trace;
        }
        found->used = ++lake->uses;
        tl_trace_get(found);
    }
    pthread_mutex_unlock(&lake->lock);
    if (found != trace)
        tl_trace_put(trace);
    return found;
}

static uint64_t unlinked_so_far(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    const uint64_t n = lake->unlinked;
    pthread_mutex_unlock(&lake->lock);
    return n;
}

struct tl_trace *tl_lake_find_trace(struct tl_lake *lake, const char *id)
{
    struct tl_trace *found = tl_lake_resident(lake, id);
    if (found || !*id)
        return found;
    pthread_mutex_lock(&lake->reading);
    int r = TL_OK;
    while (r >= 0 && !(found = tl_lake_resident(lake, id))) {
        const uint64_t unlinked = unlinked_so_far(lake);
        struct tl_trace *trace;
        r = read_trace(lake, id, &trace);
        if (r >= 0 && (found = settle_in(lake, trace, unlinked)))
            break;
    }
    pthread_mutex_unlock(&lake->reading);
    make_room(lake);
    return found;
}

void tl_lake_overtaken(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    lake->unlinked++;
    pthread_mutex_unlock(&lake->lock);
}

int tl_lake_show(void *context, const struct tl_catalog_trace *row)
{
    struct tl_lake *const lake = context;
    const uint64_t unlinked = unlinked_so_far(lake);
    struct tl_trace *trace;
    int r = tl_trace_of_row(lake, row, &trace);
    if (r < 0)
        return r;
    r = tl_gen_load(trace->serving, NULL);
    if (r < 0)
        tl_trace_put(trace);
    else
        tl_trace_put(settle_in(lake, trace, unlinked));
    return r;
}

static bool is_content(const char *name)
{
    return strncmp(name, "sha256:", 7) == 0;
}

/* Ask the catalog again why a trace was not found. */
static int explain(struct tl_lake *lake, struct tl_fail *fail, const char *name, bool content)
{
    struct tl_fail why = {0};
    struct reading reading = {.lake = lake};
    int r = tl_lake_usable(lake, &why);
    if (r >= 0)
        r = content ? lake->catalog->ops->by_content(lake->catalog, name, keep_row, &reading, &why)
                    : lake->catalog->ops->find(lake->catalog, name, keep_row, &reading, &why);
    if (r >= 0)
        r = tl_gen_load(reading.trace->serving, &why);
    tl_trace_put(reading.trace);
    if (r >= 0) /* it exists: reading it failed a moment ago, or it has just been created */
        return tl_fail_set(fail, TL_AGAIN, "trace %.64s could not be read; try again", name);
    if (r == TL_NOTFOUND)
        return tl_fail_set(fail, r, "there is no trace %.64s", name);
    return tl_fail_set(fail, r == TL_IO ? TL_UNREACHABLE : (enum tl_err)r,
                       "the store does not tell of trace %.64s: %.120s", name,
                       why.text[0] ? why.text : tl_err_name(r));
}

int tl_no_trace(struct tl_lake *lake, struct tl_fail *fail, const char *id)
{
    return explain(lake, fail, id, false);
}

int tl_no_content(struct tl_lake *lake, struct tl_fail *fail, const char *name)
{
    return explain(lake, fail, name, is_content(name));
}

static bool has_content(struct tl_trace *t, const char *content)
{
    pthread_mutex_lock(&t->lock);
    const bool has = strcmp(t->content, content) == 0;
    pthread_mutex_unlock(&t->lock);
    return has;
}

static int keep_id(void *context, const struct tl_catalog_trace *row)
{
    snprintf(context, 64, "%s", row->id);
    return TL_OK;
}

struct tl_trace *tl_lake_find_content(struct tl_lake *lake, const char *name)
{
    char id[64];
    struct tl_trace *found = NULL;
    if (!is_content(name))
        return tl_lake_find_trace(lake, name);
    if (lake->catalog->ops->by_content(lake->catalog, name, keep_id, id, NULL) >= 0)
        return tl_lake_find_trace(lake, id);
    /* A trace whose row could not be written after hashing. */
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t && !found; t = t->next)
        if (has_content(t, name))
            found = tl_trace_get(t);
    pthread_mutex_unlock(&lake->lock);
    return found;
}

int tl_lake_gen(struct tl_lake *lake, const char *name, struct tl_gen **out, struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_content(lake, name);
    if (!trace)
        return tl_no_content(lake, fail, name);
    tl_edge_read(trace);
    *out = tl_trace_serving(trace);
    tl_trace_put(trace);
    return TL_OK;
}

/* ---- all traces ----------------------------------------------------------------------------- */

static int add_name(void *context, const struct tl_catalog_trace *row)
{
    struct tl_names *const names = context;
    names->n++;
    names->last.created_ns = row->created_ns;
    snprintf(names->last.id, sizeof names->last.id, "%s", row->id);
    return tl_buf_add(&names->text, row->id, strlen(row->id) + 1);
}

int tl_lake_names(struct tl_lake *lake, size_t most, struct tl_names *names, struct tl_fail *fail)
{
    return lake->catalog->ops->page(lake->catalog, names->n ? &names->last : NULL, most, add_name,
                                    names, fail);
}
