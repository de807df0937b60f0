/* SPDX-License-Identifier: MIT */
/*
 * Meters of rigs and of the holders of tokens. A meter counts its traces in the lake when its last
 * count is some seconds old: exact enough, since pushes are added at once, and removed traces may
 * be missed for as long.
 */
#include "rpc/quotas.h"

#include "base/now.h"
#include "base/prometheus.h"
#include "rpc/scoped.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_EVERY_MS 5000
#define COUNT_FULL_MS  500  /* at the limit; not less: what is pushed must first be durable */
#define PAUSE_MAX_MS   1000 /* then the push looks again whether it goes on */

struct tl_meter {
    struct tl_meter *next;
    char name[96]; /* "rig bench3", "token lab"; with its kind first */
    struct tl_scope *scope;
    struct tl_pace pace;
    pthread_mutex_t lock; /* guards the rest */
    struct tl_quota quota;
    uint64_t bytes, traces; /* it has */
    int64_t counted_ms;     /* 0: never */
    uint64_t refused, paused_ms;
};

/* ---- rules ----------------------------------------------------------------------------------- */

static int read_item(struct tl_quota_rule *out, const char *item)
{
    if (strncmp(item, "rig=", 4) != 0)
        return tl_quota_add(&out->quota, item) < 0 ? TL_USAGE : TL_OK;
    const size_t n = strlen(item + 4);
    if (n == 0 || n >= sizeof out->rig)
        return TL_USAGE;
    memcpy(out->rig, item + 4, n + 1);
    return TL_OK;
}

int tl_quota_rule_parse(struct tl_quota_rule *out, const char *text, struct tl_fail *fail)
{
    *out = (struct tl_quota_rule){.rig = ""};
    char *const copy = strdup(text);
    char *save = NULL;
    int rc = copy ? TL_OK : TL_NOMEM;
    for (char *item = copy ? strtok_r(copy, ",", &save) : NULL; item && rc == TL_OK;
         item = strtok_r(NULL, ",", &save))
        rc = read_item(out, item);
    free(copy);
    if (rc == TL_OK && (!*out->rig || !tl_quota_any(&out->quota) || out->quota.calls))
        rc = TL_USAGE;
    return rc == TL_USAGE ? tl_fail_set(fail, rc,
                                        "--quota %.80s: write rig=GLOB and some of bytes=200G, "
                                        "traces=1000, rate=50M, separated by commas",
                                        text)
                          : rc;
}

int tl_quotas_set(struct tl_quotas *quotas, const struct tl_quota_rule *rules, size_t n)
{
    struct tl_quota_rule *const copy = calloc(n + 1, sizeof *copy);
    if (!copy)
        return TL_NOMEM;
    if (n)
        memcpy(copy, rules, n * sizeof *copy);
    pthread_mutex_lock(&quotas->lock);
    free(quotas->rules);
    quotas->rules = copy;
    quotas->n_rules = n;
    pthread_mutex_unlock(&quotas->lock);
    return TL_OK;
}

static struct tl_quota rule_of_locked(const struct tl_quotas *quotas, const char *rig)
{
    for (size_t i = 0; i < quotas->n_rules; i++)
        if (!fnmatch(quotas->rules[i].rig, rig, 0))
            return quotas->rules[i].quota;
    return (struct tl_quota){0};
}

/* ---- meters ---------------------------------------------------------------------------------- */

static void free_meter(struct tl_meter *meter)
{
    pthread_mutex_destroy(&meter->lock);
    tl_scope_put(meter->scope);
    free(meter);
}

/* The meter of this name, with the quota as it is now; takes over `scope`. NULL: out of memory. */
static struct tl_meter *meter_locked(struct tl_quotas *quotas, const char *kind, const char *name,
                                     const struct tl_quota *quota, struct tl_scope *scope)
{
    char full[sizeof quotas->meters->name];
    snprintf(full, sizeof full, "%s %s", kind, name);
    struct tl_meter *meter = quotas->meters;
    while (meter && strcmp(meter->name, full) != 0)
        meter = meter->next;
    if (!meter && (meter = calloc(1, sizeof *meter))) {
        memcpy(meter->name, full, sizeof full);
        pthread_mutex_init(&meter->lock, NULL);
        meter->next = quotas->meters;
        quotas->meters = meter;
    }
    if (!meter) {
        tl_scope_put(scope);
        return NULL;
    }
    pthread_mutex_lock(&meter->lock);
    meter->quota = *quota;
    tl_scope_put(meter->scope);
    meter->scope = scope;
    pthread_mutex_unlock(&meter->lock);
    return meter;
}

static int find_meters(struct tl_quotas *quotas, const char *rig, struct tl_holder *holder,
                       struct tl_scope *scope, struct tl_quota_push *out)
{
    struct tl_scope *of_rig = NULL;
    char word[80];
    int rc = TL_OK;
    pthread_mutex_lock(&quotas->lock);
    const struct tl_quota rule = rule_of_locked(quotas, rig);
    snprintf(word, sizeof word, "rig=%s", rig);
    if (tl_quota_any(&rule)) {
        rc = tl_scope_add(&of_rig, word);
        out->of[0] = rc < 0 ? NULL : meter_locked(quotas, "rig", rig, &rule, of_rig);
        rc = out->of[0] ? TL_OK : TL_NOMEM;
    }
    if (rc == TL_OK && holder) {
        out->of[1] =
            meter_locked(quotas, "token", holder->name, &holder->quota, tl_scope_get(scope));
        rc = out->of[1] ? TL_OK : TL_NOMEM;
    }
    pthread_mutex_unlock(&quotas->lock);
    return rc;
}

/* Count what it has, if the last count is so old. While the lake cannot be read, that stays. */
static void count_locked(struct tl_meter *meter, struct tl_lake *lake, int64_t age_ms)
{
    struct tl_trace_list list = {0};
    const int64_t now = tl_monotonic_ms();
    const bool recent = meter->counted_ms && now - meter->counted_ms < age_ms;
    if (recent || !(meter->quota.bytes || meter->quota.traces))
        return;
    if (tl_scoped_traces(lake, meter->scope, &list) >= 0) {
        meter->bytes = 0;
        meter->traces = list.n;
        meter->counted_ms = now ? now : 1;
        for (size_t i = 0; i < list.n; i++)
            meter->bytes += list.rows[i].raw_removed ? 0 : list.rows[i].raw_bytes;
    }
    tl_trace_list_free(&list);
}

/* ---- pushes ---------------------------------------------------------------------------------- */

/* `n`: bytes that would be added. */
static int refuse_bytes(struct tl_meter *meter, uint64_t n, struct tl_fail *fail)
{
    meter->refused++;
    char more[48] = "";
    if (n)
        snprintf(more, sizeof more, ", and pushes %llu more", (unsigned long long)n);
    return tl_fail_set(
        fail, TL_LIMIT,
        "quota: %.80s has %llu of at most %llu bytes (bytes=)%s: remove traces, or let "
        "the administrator raise it",
        meter->name, (unsigned long long)meter->bytes, (unsigned long long)meter->quota.bytes,
        more);
}

static int refuse_trace(struct tl_meter *meter, struct tl_fail *fail)
{
    meter->refused++;
    return tl_fail_set(
        fail, TL_LIMIT,
        "quota: %.80s has %llu of at most %llu traces (traces=): remove some, or let "
        "the administrator raise it",
        meter->name, (unsigned long long)meter->traces, (unsigned long long)meter->quota.traces);
}

static int begin_on(struct tl_meter *meter, struct tl_lake *lake, bool fresh, struct tl_fail *fail)
{
    int rc = TL_OK;
    pthread_mutex_lock(&meter->lock);
    const struct tl_quota *const q = &meter->quota;
    count_locked(meter, lake, COUNT_EVERY_MS);
    const bool full = q->bytes && meter->bytes >= q->bytes;
    const bool many = fresh && q->traces && meter->traces >= q->traces;
    if (full || many) /* something may have been removed since */
        count_locked(meter, lake, COUNT_FULL_MS);
    if (q->bytes && meter->bytes >= q->bytes)
        rc = refuse_bytes(meter, 0, fail);
    else if (fresh && q->traces && meter->traces >= q->traces)
        rc = refuse_trace(meter, fail);
    else
        meter->traces += fresh;
    pthread_mutex_unlock(&meter->lock);
    return rc;
}

int tl_quota_begin(struct tl_quotas *quotas, struct tl_lake *lake, const char *rig,
                   const char *trace, struct tl_holder *holder, struct tl_scope *scope,
                   struct tl_quota_push *out, struct tl_fail *fail)
{
    struct tl_trace_list list = {0};
    *out = (struct tl_quota_push){0};
    int rc = find_meters(quotas, rig, holder, scope, out);
    if (rc < 0 || (!out->of[0] && !out->of[1]))
        return rc;
    const bool fresh = !*trace || tl_lake_trace(lake, trace, &list) == TL_NOTFOUND;
    tl_trace_list_free(&list);
    for (int i = 0; i < 2 && rc == TL_OK; i++)
        if (out->of[i])
            rc = begin_on(out->of[i], lake, fresh, fail);
    return rc;
}

static int grow_on(struct tl_meter *meter, struct tl_lake *lake, uint64_t n, struct tl_fail *fail)
{
    int rc = TL_OK;
    pthread_mutex_lock(&meter->lock);
    const uint64_t most = meter->quota.bytes;
    if (most && (meter->bytes > most || n > most - meter->bytes)) {
        count_locked(meter, lake, COUNT_FULL_MS);
        if (meter->bytes > most || n > most - meter->bytes)
            rc = refuse_bytes(meter, n, fail);
    }
    if (rc == TL_OK)
        meter->bytes += n;
    pthread_mutex_unlock(&meter->lock);
    return rc;
}

int tl_quota_grow(struct tl_quota_push *push, struct tl_lake *lake, uint64_t n,
                  struct tl_fail *fail)
{
    int rc = TL_OK;
    for (int i = 0; i < 2 && rc == TL_OK; i++)
        if (push->of[i])
            rc = grow_on(push->of[i], lake, n, fail);
    return rc;
}

static uint64_t rate_of(struct tl_meter *meter)
{
    pthread_mutex_lock(&meter->lock);
    const uint64_t rate = meter->quota.rate;
    pthread_mutex_unlock(&meter->lock);
    return rate;
}

int64_t tl_quota_pause_ms(struct tl_quota_push *push, uint64_t n)
{
    int64_t most = 0;
    for (int i = 0; i < 2; i++) {
        struct tl_meter *const meter = push->of[i];
        const uint64_t rate = meter ? rate_of(meter) : 0;
        int64_t ms = rate ? tl_pace_owe(&meter->pace, rate, n) / TL_NS_PER_MS : 0;
        ms = ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
        if (ms <= 0)
            continue;
        pthread_mutex_lock(&meter->lock);
        meter->paused_ms += (uint64_t)ms;
        pthread_mutex_unlock(&meter->lock);
        most = ms > most ? ms : most;
    }
    return most;
}

int tl_quota_now(struct tl_quota_push *push, struct tl_fail *fail)
{
    for (int i = 0; i < 2; i++) {
        struct tl_meter *const meter = push->of[i];
        const uint64_t rate = meter ? rate_of(meter) : 0;
        const int64_t ns = rate ? tl_pace_owe(&meter->pace, rate, 0) : 0;
        if (ns <= 0)
            continue;
        pthread_mutex_lock(&meter->lock);
        meter->refused++;
        pthread_mutex_unlock(&meter->lock);
        return tl_fail_set(fail, TL_LIMIT,
                           "quota: %.80s may send %llu bytes a second (rate=); wait %lld ms, then "
                           "retry",
                           meter->name, (unsigned long long)rate,
                           (long long)(ns / TL_NS_PER_MS + 1));
    }
    return TL_OK;
}

/* ---- metrics --------------------------------------------------------------------------------- */

static int add_meters(const struct tl_quotas *quotas, struct tl_buf *out, const char *name,
                      const char *help, uint64_t (*value)(const struct tl_meter *meter))
{
    int rc = tl_metric_begin(out, name, help);
    for (struct tl_meter *m = quotas->meters; m && rc == TL_OK; m = m->next) {
        pthread_mutex_lock(&m->lock);
        const uint64_t now = value(m);
        pthread_mutex_unlock(&m->lock);
        rc = tl_metric_sample(out, name, now, "of=\"%s\"", m->name);
    }
    return rc;
}

static uint64_t bytes(const struct tl_meter *meter)
{
    return meter->bytes;
}

static uint64_t bytes_limit(const struct tl_meter *meter)
{
    return meter->quota.bytes;
}

static uint64_t traces(const struct tl_meter *meter)
{
    return meter->traces;
}

static uint64_t traces_limit(const struct tl_meter *meter)
{
    return meter->quota.traces;
}

static uint64_t rate_limit(const struct tl_meter *meter)
{
    return meter->quota.rate;
}

static uint64_t refused(const struct tl_meter *meter)
{
    return meter->refused;
}

static uint64_t paused(const struct tl_meter *meter)
{
    return meter->paused_ms;
}

int tl_quotas_metrics(struct tl_quotas *quotas, struct tl_buf *out)
{
    static const struct {
        const char *name, *help;
        uint64_t (*value)(const struct tl_meter *meter);
    } all[] = {
        {"quota_bytes", "Raw bytes of a rig, or of a token's traces, that has a quota.", bytes},
        {"quota_bytes_limit", "Its quota of raw bytes, 0: none.", bytes_limit},
        {"quota_traces", "Its traces.", traces},
        {"quota_traces_limit", "Its quota of traces, 0: none.", traces_limit},
        {"quota_rate_limit", "Its bytes a second, 0: any.", rate_limit},
        {"quota_refused_total", "Pushes and pieces refused because of it.", refused},
        {"quota_paused_ms_total", "For how long pushes were slowed down.", paused},
    };
    int rc = TL_OK;
    pthread_mutex_lock(&quotas->lock);
    for (size_t i = 0; quotas->meters && i < sizeof all / sizeof *all && rc == TL_OK; i++)
        rc = add_meters(quotas, out, all[i].name, all[i].help, all[i].value);
    pthread_mutex_unlock(&quotas->lock);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

void tl_quotas_init(struct tl_quotas *quotas)
{
    *quotas = (struct tl_quotas){0};
    pthread_mutex_init(&quotas->lock, NULL);
}

void tl_quotas_fini(struct tl_quotas *quotas)
{
    while (quotas->meters) {
        struct tl_meter *const meter = quotas->meters;
        quotas->meters = meter->next;
        free_meter(meter);
    }
    free(quotas->rules);
    pthread_mutex_destroy(&quotas->lock);
}
