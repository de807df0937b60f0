/* SPDX-License-Identifier: MIT */
#include "serve.h"

#include "base/lifetime.h"
#include "net/tls.h"
#include "osdhost/host.h"
#include "rpc/raw.h"
#include "rpc/rpc.h"
#include "web/assets.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_PLAIN "127.0.0.1:7070"
#define DEFAULT_TLS   "127.0.0.1:7443"

struct server {
    const struct tl_serve_options *options;
    struct tl_lake *lake;
    struct tl_rpc *rpc;
    struct tl_net *net;
    struct tl_raw *raw;
    struct tl_osd_host *osd;
    struct tl_listen *listen;
    size_t n_listen;
    char *cert;
    char *key;
    sigset_t signals;
};

/* ---- listeners -------------------------------------------------------------------------- */

static int add_listeners(struct server *s, const struct tl_serve_list *list, bool tls)
{
    struct tl_listen *const grown =
        realloc(s->listen, (s->n_listen + list->n) * sizeof *s->listen + 1);
    if (!grown)
        return TL_NOMEM;
    s->listen = grown;
    for (size_t i = 0; i < list->n; i++)
        s->listen[s->n_listen++] = (struct tl_listen){list->at[i], tls};
    return TL_OK;
}

/* Who can be reached from elsewhere shall be encrypted and ask for a token. */
static int check_exposure(const struct server *s, struct tl_fail *fail)
{
    for (size_t i = 0; i < s->n_listen; i++) {
        const struct tl_listen *const l = &s->listen[i];
        const int local = tl_address_is_loopback(l->address, fail);
        if (local < 0)
            return local;
        if (local || s->options->insecure)
            continue;
        if (!l->tls)
            return tl_fail_set(fail, TL_USAGE,
                               "--listen %.60s is open to the network without TLS; use "
                               "--listen-tls, or --insecure if that is meant",
                               l->address);
        if (!s->options->tokens)
            return tl_fail_set(fail, TL_USAGE,
                               "--listen-tls %.60s is open to the network; give --tokens FILE, or "
                               "--insecure if everyone may do everything",
                               l->address);
    }
    return TL_OK;
}

static int choose_listeners(struct server *s, struct tl_fail *fail)
{
    static const char *const plain[] = {DEFAULT_PLAIN};
    static const char *const tls[] = {DEFAULT_TLS};
    const struct tl_serve_list default_plain = {plain, 1};
    const struct tl_serve_list default_tls = {tls, 1};
    const struct tl_serve_options *const o = s->options;
    const bool none = !o->listen.n && !o->listen_tls.n;
    int rc = add_listeners(s, none ? &default_plain : &o->listen, false);
    if (rc == TL_OK)
        rc = add_listeners(s, none ? &default_tls : &o->listen_tls, true);
    return rc == TL_OK ? check_exposure(s, fail) : rc;
}

/* ---- TLS -------------------------------------------------------------------------------- */

static char *in_data(const struct server *s, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", s->options->data, name) < 0 ? NULL : path;
}

static int choose_certificate(struct server *s, struct tl_fail *fail)
{
    const struct tl_serve_options *const o = s->options;
    if (!o->tls_cert != !o->tls_key)
        return tl_fail_set(fail, TL_USAGE, "--tls-cert and --tls-key belong together");
    s->cert = o->tls_cert ? strdup(o->tls_cert) : in_data(s, "tls-cert.pem");
    s->key = o->tls_key ? strdup(o->tls_key) : in_data(s, "tls-key.pem");
    if (!s->cert || !s->key)
        return TL_NOMEM;
    const int rc = o->tls_cert ? 0 : tl_tls_make_certificate(s->cert, s->key, fail);
    return rc < 0 ? rc : TL_OK;
}

/* ---- life ------------------------------------------------------------------------------- */

static void block_signals(struct server *s)
{
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &s->signals, NULL); /* threads inherit it: only sigwait sees them */
}

/* A limit of the command line; what it does not say stays as it was. */
static int parse_limit(const char *name, const char *text, uint64_t *age_s, uint64_t *bytes,
                       struct tl_fail *fail)
{
    if (!text || tl_lifetime_parse(text, age_s, bytes) == TL_OK)
        return TL_OK;
    return tl_fail_set(fail, TL_USAGE, "%s %.40s: write e.g. 30d,200G, 90d, 1T or none", name,
                       text);
}

/* What the command line says of retention, over the rule that is there. */
static int set_retention(struct server *s, struct tl_fail *fail)
{
    const struct tl_serve_options *const o = s->options;
    struct tl_retention rule = {0};
    struct tl_retention_row *rows;
    size_t n;
    if (!o->retain_raw && !o->retain_decoded)
        return TL_OK;
    int rc = tl_lake_retention(s->lake, &rows, &n);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (!rows[i].scope[0])
            rule = rows[i].rule;
    free(rows);
    rc = parse_limit("--retain-raw", o->retain_raw, &rule.raw_age_s, &rule.raw_bytes, fail);
    if (rc == TL_OK)
        rc = parse_limit("--retain-decoded", o->retain_decoded, &rule.decoded_age_s,
                         &rule.decoded_bytes, fail);
    return rc < 0 ? rc : tl_lake_set_retention(s->lake, "", &rule, fail);
}

static int open_lake(struct server *s, struct tl_fail *fail)
{
    const struct tl_serve_options *const o = s->options;
    const struct tl_lake_options options = {
        .dir = o->data,
        .shard_insns = o->shard_insns,
        .min_free_bytes = o->min_free_bytes,
        .decode_threads = o->decode_threads,
        .rebuild_catalog = o->rebuild_catalog,
    };
    if (o->store)
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "--store %.80s: this build keeps everything in --data DIR only",
                           o->store);
    if (mkdir(o->data, 0777) && errno != EEXIST)
        return tl_fail_set(fail, TL_IO, "--data %.100s: %s", o->data, strerror(errno));
    const int rc = tl_lake_open(&s->lake, &options, fail);
    return rc < 0 ? rc : set_retention(s, fail);
}

static int open_network(struct server *s, struct tl_fail *fail)
{
    bool tls = false;
    for (size_t i = 0; i < s->n_listen; i++)
        tls |= s->listen[i].tls;
    const struct tl_net_options options = {
        .app = tl_rpc_app(s->rpc),
        .listen = s->listen,
        .n_listen = s->n_listen,
        .tls_cert = tls ? s->cert : NULL,
        .tls_key = tls ? s->key : NULL,
        .tokens = s->options->tokens,
        .any_host = s->options->insecure,
    };
    return tl_net_new(&s->net, &options, fail);
}

static void log_line(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

static void reload(struct server *s)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    char line[400];
    const int rc = tl_net_reload(s->net, &fail);
    if (rc == TL_OK)
        snprintf(line, sizeof line, "reloaded tokens and certificate");
    else
        snprintf(line, sizeof line, "not reloaded, the old tokens and certificate stay: %s",
                 fail.text[0] ? fail.text : tl_err_name(rc));
    log_line(line);
}

/* SIGHUP reads the files of tokens and of the certificate again; the others end the server. */
static void wait_for_end(struct server *s)
{
    int number = SIGHUP;
    while (!sigwait(&s->signals, &number) && number == SIGHUP)
        reload(s);
}

/* ---- raw bytes -------------------------------------------------------------------------- */

/* Neither raw TCP nor ZeroMQ asks who is there. */
static int check_local(const struct server *s, const char *option, const char *address,
                       struct tl_fail *fail)
{
    const int local = s->options->insecure ? 1 : tl_address_is_loopback(address, fail);
    if (local != 0)
        return local < 0 ? local : TL_OK;
    return tl_fail_set(fail, TL_USAGE,
                       "%s %.60s is open to the network, and knows no tokens; give --insecure if "
                       "that is meant",
                       option, address);
}

static int add_raw(struct server *s, const char *text, struct tl_fail *fail)
{
    struct tl_raw_spec spec;
    char url[96];
    int rc = tl_raw_parse(&spec, s->lake, text, fail);
    if (rc == TL_OK)
        rc = check_local(s, "--raw", spec.address, fail);
    if (rc == TL_OK)
        rc = tl_raw_listen(s->raw, &spec, url, fail);
    if (rc >= 0)
        printf("%s raw bytes of rig %s\n", url, spec.rig);
    tl_raw_spec_fini(&spec);
    return rc;
}

static int add_source(struct server *s, const char *text, struct tl_fail *fail)
{
    struct tl_raw_spec spec;
    int rc = tl_raw_parse(&spec, s->lake, text, fail);
    if (rc == TL_OK)
        rc = tl_raw_dial(s->raw, &spec, fail);
    tl_raw_spec_fini(&spec);
    return rc;
}

static int open_raw(struct server *s, struct tl_fail *fail)
{
    const struct tl_serve_options *const o = s->options;
    if (!o->raw.n && !o->source.n)
        return TL_OK;
    int rc = tl_raw_new(&s->raw, s->lake, log_line);
    for (size_t i = 0; i < o->raw.n && rc >= 0; i++)
        rc = add_raw(s, o->raw.at[i], fail);
    for (size_t i = 0; i < o->source.n && rc >= 0; i++)
        rc = add_source(s, o->source.at[i], fail);
    return rc < 0 ? rc : TL_OK;
}

/* ---- Open SoC Debug ----------------------------------------------------------------------- */

static int osd_metrics(void *context, struct tl_buf *out)
{
    return tl_osd_host_metrics(context, out);
}

/* Bound before the network is open, so that an address in use is told at once. */
static int open_osd(struct server *s, struct tl_fail *fail)
{
    struct tl_raw_spec spec;
    if (!s->options->osd_controller)
        return TL_OK;
    int rc = tl_raw_parse_controller(&spec, s->lake, s->options->osd_controller, fail);
    if (rc == TL_OK)
        rc = check_local(s, "--osd-host-controller", spec.address, fail);
    if (rc == TL_OK) {
        const struct tl_osd_host_options options = {.address = spec.address,
                                                    .rig = spec.rig,
                                                    .setup = spec.setup,
                                                    .start = spec.start,
                                                    .reset = spec.reset};
        rc = tl_osd_host_new(&s->osd, s->lake, &options, log_line, fail);
    }
    if (rc == TL_OK)
        tl_rpc_add_metrics(s->rpc, osd_metrics, s->osd);
    tl_raw_spec_fini(&spec);
    return rc;
}

static int start_osd(struct server *s, struct tl_fail *fail)
{
    if (!s->osd)
        return TL_OK;
    printf("%s Open SoC Debug host controller\n", tl_osd_host_url(s->osd));
    return tl_osd_host_start(s->osd, fail);
}

static void announce(const struct server *s)
{
    for (size_t i = 0; i < s->n_listen; i++)
        printf("%s\n", tl_net_url(s->net, i));
    if (*tl_net_fingerprint(s->net))
        printf("certificate SHA-256 %s\n", tl_net_fingerprint(s->net));
    fflush(stdout);
}

int tl_serve(const struct tl_serve_options *options, struct tl_fail *fail)
{
    struct server s = {.options = options};
    tl_lake_share_heaps();
    int rc = choose_listeners(&s, fail);
    if (rc < 0)
        goto done;
    block_signals(&s);
    rc = open_lake(&s, fail);
    if (rc == TL_OK)
        rc = choose_certificate(&s, fail);
    if (rc == TL_OK)
        rc = tl_rpc_new(&s.rpc, s.lake, tl_assets, tl_assets_n, fail);
    if (rc == TL_OK)
        rc = open_osd(&s, fail);
    if (rc == TL_OK)
        rc = open_network(&s, fail);
    if (rc == TL_OK) {
        announce(&s); /* these lines first: scripts take the URL from there */
        rc = tl_raw_end_orphans(s.lake, log_line);
    }
    if (rc == TL_OK)
        rc = open_raw(&s, fail);
    if (rc == TL_OK)
        rc = start_osd(&s, fail);
    if (rc == TL_OK) {
        log_line("ready");
        wait_for_end(&s);
        printf("stopping\n");
        fflush(stdout);
    }
    tl_raw_free(s.raw);
    tl_net_free(s.net); /* it may be asked for metrics until then */
    tl_osd_host_free(s.osd);
    tl_rpc_free(s.rpc);
    if (s.lake)
        tl_lake_close(s.lake);
done:
    free(s.cert);
    free(s.key);
    free(s.listen);
    return rc;
}
