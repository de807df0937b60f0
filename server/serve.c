/* SPDX-License-Identifier: MIT */
/*
 * Starts the parts of the server in order, waits for signals, and stops them. Signals are blocked
 * in all threads and waited for by one, so that a handler never interrupts code that holds a lock.
 */
#include "serve.h"

#include "lake.h"
#include "lake_rows.h"
#include "lake_upkeep.h"
#include "net/tls.h"
#include "notify.h"
#include "osdhost/host.h"
#include "process.h"
#include "rpc/raw.h"
#include "rpc/rpc.h"
#include "serve_options.h"
#include "web/assets.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct server {
    const struct tl_serve_options *options; /* the initial options */
    const struct tl_serve_options *fresh;   /* those of the last SIGHUP, NULL: none */
    const struct tl_serve_source *source;
    struct tl_lake *lake;
    struct tl_rpc *rpc;
    struct tl_net *net;
    struct tl_raw *raw;
    struct tl_osd_host *osd;
    struct tl_serve_net where;
    sigset_t signals;
};

static int choose_certificate(struct server *s, struct tl_fail *fail)
{
    int rc = tl_serve_certificate(&s->where, s->options, fail);
    if (rc == TL_OK && !s->options->tls_cert)
        rc = tl_tls_make_certificate(s->where.cert, s->where.key, fail);
    return rc < 0 ? rc : TL_OK;
}

/* ---- life ------------------------------------------------------------------------------- */

static void block_signals(struct server *s)
{
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &s->signals,
                    NULL); /* inherited by threads: only sigwait receives them */
}

/* Apply the command line's retention to the existing rule. */
static int set_retention(struct server *s, const struct tl_serve_options *o, struct tl_fail *fail)
{
    struct tl_retention rule = {0};
    struct tl_retention_row *rows;
    size_t n;
    uint64_t seal_s = 0, stf_s = 0;
    int rc = tl_serve_age("--seal-after", o->seal_after, &seal_s, fail);
    if (rc < 0)
        return rc;
    if (o->seal_after)
        tl_lake_set_seal_after(s->lake, seal_s);
    rc = tl_serve_age("--retain-stf", o->retain_stf, &stf_s, fail);
    if (rc < 0)
        return rc;
    if (o->retain_stf)
        tl_lake_set_retain_stf(s->lake, stf_s);
    if (!o->retain_raw && !o->retain_decoded)
        return TL_OK;
    rc = tl_lake_retention(s->lake, &rows, &n);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (!rows[i].scope[0])
            rule = rows[i].rule;
    free(rows);
    rc = tl_serve_lifetime("--retain-raw", o->retain_raw, &rule.raw_age_s, &rule.raw_bytes, fail);
    if (rc == TL_OK)
        rc = tl_serve_lifetime("--retain-decoded", o->retain_decoded, &rule.decoded_age_s,
                               &rule.decoded_bytes, fail);
    return rc < 0 ? rc : tl_lake_set_retention(s->lake, "", &rule, fail);
}

static int open_lake(struct server *s, struct tl_fail *fail)
{
    const struct tl_serve_options *const o = s->options;
    const struct tl_lake_options options = {
        .dir = o->data,
        .store = o->store,
        .shard_insns = o->shard_insns,
        .min_free_bytes = o->min_free_bytes,
        .decode_threads = o->decode_threads,
        .decode_memory = o->decode_memory,
        .sql_memory = o->sql_memory,
        .rebuild_catalog = o->rebuild_catalog,
        .virtual_shards = o->shards && !strcmp(o->shards, "virtual"),
        .index_behind = tl_index_named(o->index ? o->index : "") == TL_INDEX_BEHIND,
        .index_auto = tl_index_named(o->index ? o->index : "") == TL_INDEX_AUTO,
    };
    const int known = tl_serve_store(o, fail);
    if (known < 0)
        return known;
    if (mkdir(o->data, 0777) && errno != EEXIST)
        return tl_fail_set(fail, TL_IO, "--data %.100s: %s", o->data, strerror(errno));
    const int rc = tl_lake_open(&s->lake, &options, fail);
    return rc < 0 ? rc : set_retention(s, o, fail);
}

static int open_network(struct server *s, struct tl_fail *fail)
{
    struct tl_net_options options = tl_serve_net_options(&s->where, s->options);
    options.app = tl_rpc_app(s->rpc);
    return tl_net_new(&s->net, &options, fail);
}

/* ---- messages ----------------------------------------------------------------------------- */

static bool speaks_json(const struct server *s)
{
    return s->options->log_format && !strcmp(s->options->log_format, "json");
}

/* On stdout, for people and scripts: "http://127.0.0.1:7070 raw bytes of rig a". */
static void announce(const struct server *s, const char *event, const char *name, const char *value,
                     const char *more)
{
    struct tl_journal_line line;
    if (!speaks_json(s)) {
        printf("%s%s%s\n", value ? value : event, *more ? " " : "", more);
        fflush(stdout);
        return;
    }
    tl_journal_begin(&line, TL_JOURNAL_INFO, event);
    tl_journal_text(&line, name, value);
    tl_journal_text(&line, "for", more);
    tl_journal_end(&line);
}

static void log_line(const char *line)
{
    tl_journal_say(TL_JOURNAL_INFO, line);
}

/* ---- SIGHUP ------------------------------------------------------------------------------- */

static void release(struct server *s, const struct tl_serve_options *options)
{
    if (options && s->source && s->source->release)
        s->source->release(s->source->context, options);
}

/* Apply all reloadable options, or none. */
static int adopt(struct server *s, const struct tl_serve_options *o, struct tl_fail *fail)
{
    int rc = tl_serve_limits(o, fail);
    if (rc == TL_OK)
        rc = tl_serve_retention(o, fail);
    if (rc == TL_OK)
        rc = tl_serve_quotas(o, NULL, fail);
    if (rc == TL_OK && !o->tls_cert != !o->tls_key)
        rc = tl_fail_set(fail, TL_USAGE, "tls-cert and tls-key belong together");
    if (rc == TL_OK && !o->tokens != !s->options->tokens)
        rc = tl_fail_set(fail, TL_USAGE, "to begin or end with tokens, restart the server");
    if (rc < 0)
        return rc;
    const struct tl_net_options options = tl_serve_net_options(&s->where, o);
    rc = tl_net_reload(s->net, &options, fail);
    if (rc < 0)
        return rc;
    rc = tl_serve_quotas(o, s->rpc, fail);
    if (rc < 0)
        return rc;
    tl_lake_set_min_free(s->lake, o->min_free_bytes);
    return set_retention(s, o, fail);
}

static void report_reloaded(const struct tl_serve_options *o)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, o->restart ? TL_JOURNAL_WARNING : TL_JOURNAL_INFO, "reloaded");
    tl_journal_text(&line, "needs_restart", o->restart);
    tl_journal_end(&line);
}

static void reload(struct server *s)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    const struct tl_serve_options *o = s->options;
    tl_notify_reloading();
    const bool reads = s->source && s->source->read;
    int rc = reads ? s->source->read(s->source->context, &o, &fail) : TL_OK;
    if (rc == TL_OK) {
        rc = adopt(s, o, &fail);
        if (rc < 0 && reads && s->source->explain)
            s->source->explain(s->source->context, o, &fail);
        const struct tl_serve_options *const gone = rc < 0 ? o : s->fresh;
        if (rc == TL_OK)
            report_reloaded(o);
        if (rc == TL_OK && reads)
            s->fresh = o;
        if (reads)
            release(s, gone);
    }
    if (rc < 0)
        tl_journal_why(TL_JOURNAL_ERROR, "not reloaded, all stays as it was",
                       fail.text[0] ? fail.text : tl_err_name(rc));
    tl_notify("READY=1");
}

/* ---- life --------------------------------------------------------------------------------- */

/* A server that hangs does not return from here, and its manager restarts it. */
static void report_alive(const struct server *s)
{
    uint64_t durable;
    bool complete;
    tl_net_round(s->net);
    (void)!tl_lake_offset(s->lake, "", &durable, &complete);
    tl_notify("WATCHDOG=1");
}

/* Returns the signal that ends the server. */
static int wait_for_end(struct server *s)
{
    const int64_t period = tl_notify_watchdog_ms();
    const struct timespec timeout = {period / 1000, period % 1000 * 1000000};
    for (;;) {
        const int number = sigtimedwait(&s->signals, NULL, period ? &timeout : NULL);
        if (number == SIGHUP)
            reload(s);
        else if (number > 0)
            return number;
        else if (period && errno == EAGAIN)
            report_alive(s);
    }
}

/* ---- raw bytes -------------------------------------------------------------------------- */

static int add_raw(struct server *s, struct tl_raw_spec *spec, struct tl_fail *fail)
{
    char url[96];
    char what[80];
    if (spec->dials)
        return tl_raw_dial(s->raw, spec, fail);
    int rc = tl_serve_local(s->options, "--raw", spec->address, fail);
    if (rc == TL_OK)
        rc = tl_raw_listen(s->raw, spec, url, fail);
    if (rc >= 0) {
        snprintf(what, sizeof what, "raw bytes of rig %.60s", spec->rig);
        announce(s, "listening", "url", url, what);
    }
    return rc;
}

/* `specs` has room for all of them. */
static int parse_raw(const struct server *s, struct tl_raw_spec *specs, size_t *n,
                     struct tl_fail *fail)
{
    const struct tl_serve_options *const o = s->options;
    int rc = TL_OK;
    for (size_t i = 0; i < o->raw.n && rc >= 0; i++)
        rc = tl_raw_parse(&specs[(*n)++], s->lake, o->raw.at[i], fail);
    for (size_t i = 0; i < o->source.n && rc >= 0; i++)
        rc = tl_raw_parse_source(&specs[(*n)++], s->lake, o->source.at[i], fail);
    return rc;
}

static int open_raw(struct server *s, struct tl_fail *fail)
{
    const size_t all = s->options->raw.n + s->options->source.n;
    struct tl_raw_spec *const specs = calloc(all + 1, sizeof *specs);
    size_t n = 0;
    if (!specs)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    int rc = parse_raw(s, specs, &n, fail);
    if (rc >= 0)
        rc = tl_raw_assign_orphans(s->lake, specs, n, log_line);
    if (rc >= 0 && n > 0)
        rc = tl_raw_new(&s->raw, s->lake, log_line);
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = add_raw(s, &specs[i], fail);
    for (size_t i = 0; i < n; i++)
        tl_raw_spec_fini(&specs[i]);
    free(specs);
    return rc < 0 ? rc : TL_OK;
}

/* ---- Open SoC Debug ----------------------------------------------------------------------- */

/* Bound before the network is open, so that an address in use is reported at once. */
static int open_osd(struct server *s, struct tl_fail *fail)
{
    struct tl_raw_spec spec;
    if (!s->options->osd_controller)
        return TL_OK;
    int rc = tl_raw_parse_controller(&spec, s->lake, s->options->osd_controller, fail);
    if (rc == TL_OK)
        rc = tl_serve_local(s->options, "--osd-host-controller", spec.address, fail);
    if (rc == TL_OK) {
        const struct tl_osd_host_options options = {.address = spec.address,
                                                    .rig = spec.rig,
                                                    .setup = spec.setup,
                                                    .shards = spec.shards,
                                                    .index = spec.index,
                                                    .start = spec.start,
                                                    .reset = spec.reset};
        rc = tl_osd_host_new(&s->osd, s->lake, &options, log_line, fail);
    }
    tl_raw_spec_fini(&spec);
    return rc;
}

static int more_metrics(void *context, struct tl_buf *out)
{
    const struct server *const s = context;
    const int rc = tl_process_metrics(out);
    return rc == TL_OK && s->osd ? tl_osd_host_metrics(s->osd, out) : rc;
}

static int start_osd(struct server *s, struct tl_fail *fail)
{
    if (!s->osd)
        return TL_OK;
    announce(s, "listening", "url", tl_osd_host_url(s->osd), "Open SoC Debug host controller");
    return tl_osd_host_start(s->osd, fail);
}

static void announce_listeners(const struct server *s)
{
    for (size_t i = 0; i < s->where.n_listen; i++)
        announce(s, "listening", "url", tl_net_url(s->net, i), "");
    const char *const fingerprint = tl_net_fingerprint(s->net);
    if (!*fingerprint)
        return;
    if (speaks_json(s))
        announce(s, "certificate", "sha256", fingerprint, "");
    else
        announce(s, "certificate SHA-256", NULL, NULL, fingerprint);
}

static void run_until_stopped(struct server *s)
{
    struct tl_journal_line line;
    announce(s, "ready", NULL, NULL, "");
    tl_notify("READY=1\nSTATUS=serving");
    const int number = wait_for_end(s);
    tl_notify("STOPPING=1");
    tl_journal_begin(&line, TL_JOURNAL_INFO, "stopping");
    tl_journal_text(&line, "why", number == SIGINT ? "SIGINT" : "SIGTERM");
    tl_journal_end(&line);
}

static void report_start(const struct tl_serve_options *o)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_INFO, "starting");
    tl_journal_text(&line, "version", TL_VERSION);
    tl_journal_text(&line, "data", o->data);
    tl_journal_end(&line);
}

int tl_serve(const struct tl_serve_options *options, const struct tl_serve_source *source,
             struct tl_fail *fail)
{
    struct server s = {.options = options, .source = source};
    tl_lake_share_heaps();
    tl_lake_watch_crashes();
    int rc = tl_serve_journal(options, fail);
    if (rc == TL_OK)
        rc = tl_serve_limits(options, fail);
    if (rc == TL_OK)
        rc = tl_serve_listeners(&s.where, options, fail);
    if (rc < 0)
        goto done;
    report_start(options);
    block_signals(&s);
    rc = open_lake(&s, fail);
    if (rc == TL_OK)
        rc = choose_certificate(&s, fail);
    if (rc == TL_OK)
        rc = tl_rpc_new(&s.rpc, s.lake, tl_assets, tl_assets_n, fail);
    if (rc == TL_OK)
        rc = tl_serve_quotas(options, s.rpc, fail);
    if (rc == TL_OK)
        rc = open_osd(&s, fail);
    if (rc == TL_OK) {
        tl_rpc_add_metrics(s.rpc, more_metrics, &s);
        rc = open_network(&s, fail);
    }
    if (rc == TL_OK) {
        announce_listeners(&s); /* these lines first: scripts read the URL from them */
        rc = open_raw(&s, fail);
    }
    if (rc == TL_OK)
        rc = start_osd(&s, fail);
    if (rc == TL_OK)
        run_until_stopped(&s);
    tl_raw_free(s.raw);
    tl_net_free(s.net); /* metrics may be requested until then */
    tl_osd_host_free(s.osd);
    tl_rpc_free(s.rpc);
    if (s.lake)
        tl_lake_close(s.lake);
    if (rc == TL_OK)
        tl_journal_say(TL_JOURNAL_INFO, "stopped");
    else if (speaks_json(&s)) /* in text format the command reports it */
        tl_journal_why(TL_JOURNAL_ERROR, "not started", fail ? fail->text : NULL);
    release(&s, s.fresh);
done:
    tl_serve_net_fini(&s.where);
    return rc;
}
