/* SPDX-License-Identifier: MIT */
/*
 * Retention: which rule applies to which trace, and what must be removed.
 *
 * A rule's traces form a pool. From a pool, everything older than the rule's age is removed, and
 * then the oldest until the rest is within the rule's size; separately for raw and decoded data.
 */
#include "upkeep/retain.h"
#include "base/journal.h"
#include "base/labels.h"
#include "lake/lakeint.h"
#include "share/share.h"
#include "virtual/virtual.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- rules ---------------------------------------------------------------------------------- */

static bool scope_valid(const char *scope)
{
    if (strlen(scope) >= sizeof(((struct tl_retention_row *)0)->scope))
        return false;
    if (strncmp(scope, "label ", 6) == 0) {
        const char *equals = strchr(scope + 6, '=');
        return equals && equals != scope + 6 && !strchr(scope, '\n');
    }
    return !*scope || strcmp(scope, TL_SCOPE_IMAGES) == 0 ||
           (strncmp(scope, "trace ", 6) == 0 && scope[6]);
}

static void rules_changed(struct tl_lake *lake)
{
    atomic_store(&lake->rules_changed, true);
    tl_housekeeper_wake(lake);
}

int tl_lake_set_retention(struct tl_lake *lake, const char *scope, const struct tl_retention *rule,
                          struct tl_fail *fail)
{
    if (!scope_valid(scope))
        return tl_fail_set(
            fail, TL_USAGE,
            "\"%.80s\" is no scope: it is empty, \"label KEY=VALUE\", \"trace ID\" or \"images\"",
            scope);
    const struct tl_retention none = {0};
    const bool empty = rule && memcmp(rule, &none, sizeof(none)) == 0 && !*scope;
    const int r =
        lake->catalog->ops->set_retention(lake->catalog, scope, empty ? NULL : rule, fail);
    if (r >= 0)
        rules_changed(lake);
    return r;
}

struct rules {
    struct tl_retention_row *rows;
    size_t n, cap;
};

static int add_rule(void *context, const char *scope, const struct tl_retention *rule)
{
    struct rules *rules = context;
    const int r = tl_grow(&rules->rows, &rules->cap, rules->n + 1, sizeof(*rules->rows));
    if (r < 0)
        return r;
    struct tl_retention_row *row = &rules->rows[rules->n++];
    row->rule = *rule;
    snprintf(row->scope, sizeof(row->scope), "%s", scope);
    return TL_OK;
}

int tl_lake_retention(struct tl_lake *lake, struct tl_retention_row **rows, size_t *n)
{
    struct rules rules = {0};
    const int r = lake->catalog->ops->retention(lake->catalog, add_rule, &rules, NULL);
    if (r < 0) {
        free(rules.rows);
        return r;
    }
    *rows = rules.rows;
    *n = rules.n;
    return TL_OK;
}

static bool kept_by_label(const char *labels)
{
    return tl_label_value(labels, "keep") && !tl_label_is(labels, "keep=no");
}

/* ---- traces --------------------------------------------------------------------------------- */

/* What retention needs to know of a trace. */
struct kept {
    char id[64];
    size_t rule; /* index of the rule that applies to it; number of rules: none */
    int64_t updated_ns;
    uint64_t raw_bytes, decoded_bytes;
    bool raw_removed, decoded_removed, sealed;
    bool rests;             /* is neither live nor being decoded */
    bool stays, is_virtual; /* from its labels */
};

struct all_kept {
    const struct rules *rules;
    struct kept *p;
    size_t n, cap;
};

/* The index of the rule that applies to a trace; n: none. */
static size_t rule_of(const struct rules *rules, const struct tl_catalog_trace *trace)
{
    size_t found = rules->n, label = rules->n;
    for (size_t i = 0; i < rules->n; i++) {
        const char *scope = rules->rows[i].scope;
        if (!*scope)
            found = i;
        else if (strncmp(scope, "trace ", 6) == 0 && strcmp(scope + 6, trace->id) == 0)
            return i;
        else if (label == rules->n && strncmp(scope, "label ", 6) == 0 &&
                 tl_label_is(trace->labels, scope + 6))
            label = i;
    }
    return label < rules->n ? label : found;
}

static int keep(void *context, const struct tl_catalog_trace *row)
{
    struct all_kept *const all = context;
    const int r = tl_grow(&all->p, &all->cap, all->n + 1, sizeof *all->p);
    if (r < 0)
        return r;
    struct kept *const kept = &all->p[all->n++];
    *kept = (struct kept){.rule = rule_of(all->rules, row),
                          .updated_ns = row->updated_ns,
                          .raw_bytes = row->raw_bytes,
                          .decoded_bytes = row->stored_bytes,
                          .raw_removed = row->raw_removed,
                          .decoded_removed = row->decoded_removed,
                          .sealed = row->state == TL_TRACE_SEALED,
                          .rests = row->state >= TL_TRACE_SEALED,
                          .stays = kept_by_label(row->labels),
                          .is_virtual = tl_label_is(row->labels, TL_LABEL_SHARDS "=virtual")};
    snprintf(kept->id, sizeof kept->id, "%s", row->id);
    return TL_OK;
}

/* The catalog is updated only from time to time while a trace grows. */
static void take_resident(struct tl_lake *lake, struct kept *kept)
{
    struct tl_trace *const t = tl_lake_peek(lake, kept->id);
    uint64_t insns;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    kept->updated_ns = t->updated_ns;
    kept->raw_bytes = t->raw_bytes;
    tl_gen_totals(t->serving, &insns, &kept->decoded_bytes);
    pthread_mutex_unlock(&t->lock);
    tl_trace_put(t);
}

static int list_kept(struct tl_lake *lake, struct all_kept *all, struct tl_fail *fail)
{
    const int r = lake->catalog->ops->traces(lake->catalog, keep, all, fail);
    for (size_t i = 0; i < all->n; i++)
        take_resident(lake, &all->p[i]);
    return r;
}

/* ---- removing ------------------------------------------------------------------------------- */

/* Is it idle, so that none of its data is needed? */
static bool at_rest_locked(const struct tl_trace *trace)
{
    return tl_trace_phase_locked(trace) == TL_PHASE_AT_REST &&
           (trace->state == TL_TRACE_SEALED || trace->state == TL_TRACE_FAILED);
}

/* A virtual shard cannot be read without raw bytes: they are removed after the decoded data. */
static int are_needed(struct tl_trace *trace, bool *needed, struct tl_fail *fail)
{
    struct tl_gen *gen = tl_trace_serving(trace);
    const int r = tl_gen_has_virtual(gen, needed, fail);
    tl_gen_put(gen);
    return r;
}

static int remove_raw(struct tl_trace *trace, struct tl_fail *fail)
{
    char prefix[128];
    bool needed;
    const int asked = are_needed(trace, &needed, fail);
    if (asked < 0 || needed)
        return asked;
    pthread_mutex_lock(&trace->lock);
    const bool may = at_rest_locked(trace) && !trace->raw_removed;
    if (may)
        trace->raw_removed = true;
    pthread_mutex_unlock(&trace->lock);
    if (!may)
        return TL_OK;
    const int r = tl_trace_save_quietly(trace, fail);
    if (r < 0) {
        pthread_mutex_lock(&trace->lock);
        trace->raw_removed = false;
        pthread_mutex_unlock(&trace->lock);
        return r;
    }
    snprintf(prefix, sizeof(prefix), "r/%s", trace->id);
    pthread_mutex_lock(&trace->lake->garbage_lock); /* none of its segments is being packed */
    tl_lake_discard(trace->lake, prefix);
    pthread_mutex_unlock(&trace->lake->garbage_lock);
    return 1;
}

/* Let a new, empty generation serve. Readers of the old one continue. */
static int remove_decoded(struct tl_trace *trace, struct tl_fail *fail)
{
    struct tl_gen *empty, *old = NULL;
    pthread_mutex_lock(&trace->lock);
    const uint64_t number = trace->wanted + 1;
    char *setup = strdup(trace->setup);
    pthread_mutex_unlock(&trace->lock);
    if (!setup)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    int r = tl_gen_new(&empty, trace->lake, trace->id, number, setup, fail);
    free(setup);
    if (r < 0)
        return r;
    atomic_store(&empty->decoded, 0);
    pthread_mutex_lock(&trace->lock);
    if (at_rest_locked(trace) && !trace->decoded_removed && trace->wanted + 1 == number) {
        old = trace->serving;
        trace->serving = empty;
        trace->wanted = number;
        trace->decoded_removed = true;
    }
    pthread_mutex_unlock(&trace->lock);
    if (!old) {
        tl_gen_put(empty);
        return TL_OK;
    }
    r = tl_trace_save_quietly(trace, fail);
    if (r < 0) {
        pthread_mutex_lock(&trace->lock);
        const bool mine = trace->serving == empty;
        if (mine) {
            trace->serving = old;
            trace->decoded_removed = false;
        }
        pthread_mutex_unlock(&trace->lock);
        tl_gen_put(mine ? empty : old);
        return r;
    }
    tl_trace_retire(trace, old);
    tl_gen_put(old);
    return 1;
}

static int remove_of(struct tl_lake *lake, const struct kept *row, bool raw, struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, row->id);
    if (!trace)
        return TL_OK;
    int r = tl_trace_pin(trace, TL_PIN_TRY, fail);
    if (r < 0) {
        tl_trace_put(trace);
        return r == TL_AGAIN || r == TL_NOTFOUND ? TL_OK : r; /* another server is working on it */
    }
    r = raw ? remove_raw(trace, fail) : remove_decoded(trace, fail);
    tl_trace_unpin(trace);
    pthread_mutex_lock(&trace->lock);
    const bool nothing = trace->raw_removed && trace->decoded_removed;
    pthread_mutex_unlock(&trace->lock);
    if (r > 0) {
        atomic_fetch_add(&lake->retained_out, 1);
        tl_lake_notify(lake);
    }
    tl_trace_put(trace);
    if (r > 0 && nothing && tl_lake_delete(lake, row->id, fail) == TL_IO)
        return TL_IO;
    return r;
}

/* ---- a round -------------------------------------------------------------------------------- */

static int64_t age_of(const struct tl_retain_round *round, const struct kept *row)
{
    const int64_t age = tl_lake_age(round->lake, row->updated_ns, round->now_ns);
    /* Written under a clock that was before 2020: nobody knows when. */
    const bool is_unknown =
        row->updated_ns < TL_AGE_EARLIEST && age >= round->now_ns - TL_AGE_EARLIEST;
    return is_unknown ? 0 : age / TL_NS_PER_S;
}

void tl_retain_report(const struct tl_retention_victim *v)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_INFO, "removed by retention");
    tl_journal_text(&line, strcmp(v->what, "image") == 0 ? "image" : "trace", v->trace);
    tl_journal_text(&line, "what", v->what);
    tl_journal_text(&line, "rule", *v->scope ? v->scope : "all");
    tl_journal_text(&line, "because", v->by_age ? "age" : "size");
    tl_journal_number(&line, "age_seconds", v->age_s);
    tl_journal_number(&line, "limit", v->limit);
    tl_journal_number(&line, "bytes", v->bytes);
    tl_journal_end(&line);
}

/* Remove what belongs to a victim, or tell it. 1: done. */
static int take_victim(const struct tl_retain_round *round, const struct kept *row, bool raw,
                       const struct tl_retention_victim *victim)
{
    if (round->each) {
        const int r = round->each(round->context, victim);
        return r < 0 ? r : 1;
    }
    if (victim->by_age && !tl_lake_may_age_out(round->lake, round->n, round->now_ns))
        return 0;
    const int r = remove_of(round->lake, row, raw, round->fail);
    if (r > 0)
        tl_retain_report(victim);
    if (r > 0 && victim->by_age)
        tl_lake_aged_out(round->lake);
    return r;
}

/* ---- pools ---------------------------------------------------------------------------------- */

struct member {
    const struct kept *row;
    uint64_t bytes;
};

static int older_first(const void *a, const void *b)
{
    const int64_t x = ((const struct member *)a)->row->updated_ns;
    const int64_t y = ((const struct member *)b)->row->updated_ns;
    return x < y ? -1 : x > y;
}

/* Apply the limits of one kind of data to a pool. Returns the number of removals. */
static int limit_pool(const struct tl_retain_round *round, struct member *members, size_t n,
                      bool raw, const struct tl_retention_row *rule)
{
    const uint64_t age_s = raw ? rule->rule.raw_age_s : rule->rule.decoded_age_s;
    const uint64_t bytes = raw ? rule->rule.raw_bytes : rule->rule.decoded_bytes;
    uint64_t total = 0;
    int removed = 0;
    for (size_t i = 0; i < n; i++)
        total += members[i].bytes;
    qsort(members, n, sizeof(*members), older_first);
    for (size_t i = 0; i < n; i++) {
        const struct kept *row = members[i].row;
        const uint64_t age = (uint64_t)age_of(round, row);
        const bool old = round->ages && age_s > 0 && age > age_s;
        const bool large = bytes > 0 && total > bytes;
        if ((!old && !large) || row->stays || (round->each && !row->rests))
            continue;
        const int r = take_victim(round, row, raw,
                                  &(struct tl_retention_victim){.trace = row->id,
                                                                .what = raw ? "raw" : "decoded",
                                                                .scope = rule->scope,
                                                                .by_age = !large,
                                                                .age_s = age,
                                                                .limit = large ? bytes : age_s,
                                                                .bytes = members[i].bytes});
        if (r < 0)
            return r;
        if (r > 0)
            total -= members[i].bytes;
        removed += r;
    }
    return removed;
}

static int retain_rule(const struct tl_retain_round *round, const struct all_kept *all, size_t rule)
{
    struct member *members = calloc(all->n + 1, sizeof(*members));
    int removed = 0;
    if (!members)
        return tl_fail_set(round->fail, TL_NOMEM, "no memory");
    for (int raw = 0; raw < 2 && removed >= 0; raw++) {
        size_t n = 0;
        for (size_t i = 0; i < all->n; i++) {
            const struct kept *row = &all->p[i];
            if ((raw ? row->raw_removed : row->decoded_removed) || row->rule != rule)
                continue;
            members[n++] = (struct member){row, raw ? row->raw_bytes : row->decoded_bytes};
        }
        const int r = limit_pool(round, members, n, raw, &all->rules->rows[rule]);
        removed = r < 0 ? r : removed + r;
    }
    free(members);
    return removed;
}

void tl_lake_set_retain_stf(struct tl_lake *lake, uint64_t seconds)
{
    atomic_store(&lake->retain_stf_s, seconds);
    rules_changed(lake);
}

/* Have its stored shards exceeded the age? */
static bool is_old(const struct tl_retain_round *round, const struct kept *kept, uint64_t seconds)
{
    struct tl_lake *const lake = round->lake;
    const int64_t age = age_of(round, kept);
    if (!kept->sealed || kept->raw_removed || kept->decoded_removed || age <= 0 ||
        (uint64_t)age <= seconds || kept->stays || kept->is_virtual)
        return false;
    struct tl_trace *const t = tl_lake_find_trace(lake, kept->id);
    if (!t)
        return false;
    pthread_mutex_lock(&t->lock);
    const bool old = at_rest_locked(t) && !t->raw_removed && !t->decoded_removed &&
                     !kept_by_label(t->labels) &&
                     !tl_label_is(t->labels, TL_LABEL_SHARDS "=virtual");
    pthread_mutex_unlock(&t->lock);
    tl_trace_put(t);
    return old;
}

/* 1; 0: another server is working on it, or has done it. */
static int make_one_virtual(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return 0;
    int r = tl_trace_pin(trace, TL_PIN_TRY, fail);
    if (r < 0) {
        tl_trace_put(trace);
        return r == TL_AGAIN || r == TL_NOTFOUND ? 0 : r;
    }
    const bool is_done = tl_trace_is_virtual(trace);
    if (!is_done)
        r = tl_lake_set_labels(lake, id, TL_LABEL_SHARDS "=virtual", fail);
    if (!is_done && r >= 0)
        r = tl_lake_redecode(lake, id, NULL, fail);
    tl_trace_unpin(trace);
    tl_trace_put(trace);
    return r < 0 ? r : !is_done;
}

/* Returns the number of traces being decoded again for this. */
static int make_virtual(const struct tl_retain_round *round, const struct all_kept *all,
                        uint64_t seconds)
{
    int n = 0, r = TL_OK;
    for (size_t i = 0; r >= 0 && i < all->n && round->ages; i++) {
        if (!is_old(round, &all->p[i], seconds))
            continue;
        const struct tl_retention_victim victim = {.trace = all->p[i].id,
                                                   .what = "shards",
                                                   .scope = "retain-stf",
                                                   .by_age = true,
                                                   .age_s = (uint64_t)age_of(round, &all->p[i]),
                                                   .limit = seconds,
                                                   .bytes = all->p[i].decoded_bytes};
        r = round->each ? round->each(round->context, &victim)
                        : make_one_virtual(round->lake, all->p[i].id, round->fail);
        if (r > 0 && !round->each)
            tl_retain_report(&victim);
        n += r > 0;
    }
    return r < 0 ? r : n;
}

/* Use `tried` instead of the rule of its scope, or in addition. */
static int add_tried(struct rules *rules, const struct tl_retention_row *tried)
{
    for (size_t i = 0; i < rules->n; i++)
        if (strcmp(rules->rows[i].scope, tried->scope) == 0) {
            rules->rows[i].rule = tried->rule;
            return TL_OK;
        }
    return add_rule(rules, tried->scope, &tried->rule);
}

static int carry_out(struct tl_retain_round *round, const struct tl_retention_row *tried)
{
    struct tl_lake *const lake = round->lake;
    struct rules rules = {0};
    struct all_kept all = {.rules = &rules};
    const uint64_t seconds = atomic_load(&lake->retain_stf_s);
    int removed = 0;
    pthread_mutex_lock(&lake->retain_lock);
    int r = lake->catalog->ops->retention(lake->catalog, add_rule, &rules, round->fail);
    if (r >= 0 && tried)
        r = add_tried(&rules, tried);
    if (r >= 0 && (rules.n > 0 || seconds > 0))
        r = list_kept(lake, &all, round->fail);
    round->n = all.n;
    for (size_t i = 0; r >= 0 && i < rules.n; i++) {
        r = retain_rule(round, &all, i);
        removed += r > 0 ? r : 0;
    }
    if (r >= 0 && seconds > 0) {
        r = make_virtual(round, &all, seconds);
        removed += r > 0 ? r : 0;
    }
    if (r >= 0) {
        r = tl_retain_images(round, rules.rows, rules.n);
        removed += r > 0 ? r : 0;
    }
    pthread_mutex_unlock(&lake->retain_lock);
    free(all.p);
    free(rules.rows);
    return r < 0 ? r : removed;
}

int tl_lake_retain(struct tl_lake *lake, int64_t now_ns, struct tl_fail *fail)
{
    return carry_out(
        &(struct tl_retain_round){.lake = lake, .now_ns = now_ns, .ages = true, .fail = fail},
        NULL);
}

int tl_lake_retain_now(struct tl_lake *lake, struct tl_fail *fail)
{
    return carry_out(&(struct tl_retain_round){.lake = lake,
                                               .now_ns = tl_lake_now(lake),
                                               .ages = tl_lake_clock_settled(lake),
                                               .fail = fail},
                     NULL);
}

int tl_lake_plan_retention(struct tl_lake *lake, const struct tl_retention_row *tried,
                           int (*each)(void *context, const struct tl_retention_victim *victim),
                           void *context, bool *paused, struct tl_fail *fail)
{
    if (tried && !scope_valid(tried->scope))
        return tl_fail_set(fail, TL_USAGE, "\"%.80s\" is no scope", tried->scope);
    *paused = !tl_lake_clock_settled(lake);
    return carry_out(&(struct tl_retain_round){.lake = lake,
                                               .now_ns = tl_lake_now(lake),
                                               .ages = true,
                                               .each = each,
                                               .context = context,
                                               .fail = fail},
                     tried);
}
