/* SPDX-License-Identifier: MIT */
/*
 * Checks the server's options and derives from them what the parts need. A listener that others can
 * reach without TLS or tokens is refused, since its owner would not notice that it is open.
 */
#include "serve_options.h"

#include "base/lifetime.h"
#include "rpc/raw.h"
#include "rpc/rpc.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PLAIN "127.0.0.1:7070"
#define DEFAULT_TLS   "127.0.0.1:7443"

/* ---- listeners -------------------------------------------------------------------------- */

void tl_serve_net_fini(struct tl_serve_net *net)
{
    free(net->listen);
    free(net->cert);
    free(net->key);
    *net = (struct tl_serve_net){0};
}

static int add_listeners(struct tl_serve_net *net, const struct tl_serve_list *list, bool tls)
{
    struct tl_listen *const grown =
        realloc(net->listen, (net->n_listen + list->n) * sizeof *net->listen + 1);
    if (!grown)
        return TL_NOMEM;
    net->listen = grown;
    for (size_t i = 0; i < list->n; i++)
        net->listen[net->n_listen++] = (struct tl_listen){list->at[i], tls};
    return TL_OK;
}

/* Listeners reachable from other hosts must be encrypted and require tokens. */
static int check_exposure(const struct tl_serve_net *net, const struct tl_serve_options *o,
                          struct tl_fail *fail)
{
    for (size_t i = 0; i < net->n_listen; i++) {
        const struct tl_listen *const l = &net->listen[i];
        const int local = tl_address_is_loopback(l->address, fail);
        if (local < 0)
            return local;
        if (local || o->insecure)
            continue;
        if (!l->tls)
            return tl_fail_set(fail, TL_USAGE,
                               "--listen %.60s is open to the network without TLS; use "
                               "--listen-tls, or --insecure if that is meant",
                               l->address);
        if (!o->tokens)
            return tl_fail_set(fail, TL_USAGE,
                               "--listen-tls %.60s is open to the network; give --tokens FILE, or "
                               "--insecure if everyone may do everything",
                               l->address);
    }
    return TL_OK;
}

/* The index of a listener that has the connections of listener `i`, too; n_listen: none. */
static size_t covering(const struct tl_serve_net *net, size_t i)
{
    for (size_t k = 0; k < net->n_listen; k++) {
        const char *const a = net->listen[k].address, *const b = net->listen[i].address;
        /* Of two equal ones the first stays. */
        if (k != i && tl_address_covers(a, b) && (k < i || !tl_address_covers(b, a)))
            return k;
    }
    return net->n_listen;
}

/* Leave out listeners that another one covers: the socket would not be there for both. */
static int merge_listeners(struct tl_serve_net *net, struct tl_fail *fail)
{
    for (size_t i = 0; i < net->n_listen;) {
        const struct tl_listen *const l = &net->listen[i];
        const size_t k = covering(net, i);
        if (k == net->n_listen) {
            i++;
            continue;
        }
        if (net->listen[k].tls != l->tls)
            return tl_fail_set(fail, TL_USAGE, "--%s %.60s: --%s %.60s has this port already",
                               l->tls ? "listen-tls" : "listen", l->address,
                               l->tls ? "listen" : "listen-tls", net->listen[k].address);
        memmove(&net->listen[i], &net->listen[i + 1], (--net->n_listen - i) * sizeof *net->listen);
    }
    return TL_OK;
}

int tl_serve_listeners(struct tl_serve_net *net, const struct tl_serve_options *o,
                       struct tl_fail *fail)
{
    static const char *const plain[] = {DEFAULT_PLAIN};
    static const char *const tls[] = {DEFAULT_TLS};
    const struct tl_serve_list default_plain = {plain, 1};
    const struct tl_serve_list default_tls = {tls, 1};
    const bool none = !o->listen.n && !o->listen_tls.n;
    int rc = add_listeners(net, none ? &default_plain : &o->listen, false);
    if (rc == TL_OK)
        rc = add_listeners(net, none ? &default_tls : &o->listen_tls, true);
    if (rc == TL_OK)
        rc = check_exposure(net, o, fail);
    return rc == TL_OK ? merge_listeners(net, fail) : rc;
}

/* ---- TLS -------------------------------------------------------------------------------- */

static char *in_data(const struct tl_serve_options *o, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", o->data, name) < 0 ? NULL : path;
}

int tl_serve_certificate(struct tl_serve_net *net, const struct tl_serve_options *o,
                         struct tl_fail *fail)
{
    if (!o->tls_cert != !o->tls_key)
        return tl_fail_set(fail, TL_USAGE, "--%s %.100s: --tls-cert and --tls-key belong together",
                           o->tls_cert ? "tls-cert" : "tls-key",
                           o->tls_cert ? o->tls_cert : o->tls_key);
    net->cert = o->tls_cert ? strdup(o->tls_cert) : in_data(o, "tls-cert.pem");
    net->key = o->tls_key ? strdup(o->tls_key) : in_data(o, "tls-key.pem");
    return net->cert && net->key ? TL_OK : TL_NOMEM;
}

struct tl_net_options tl_serve_net_options(const struct tl_serve_net *net,
                                           const struct tl_serve_options *o)
{
    bool tls = false;
    for (size_t i = 0; i < net->n_listen; i++)
        tls |= net->listen[i].tls;
    return (struct tl_net_options){
        .listen = net->listen,
        .n_listen = net->n_listen,
        .tls_cert = !tls          ? NULL
                    : o->tls_cert ? o->tls_cert
                                  : net->cert,
        .tls_key = !tls         ? NULL
                   : o->tls_key ? o->tls_key
                                : net->key,
        .client_ca = o->client_ca,
        .tokens = o->tokens,
        .any_host = o->insecure,
        .max_connections = (unsigned)o->max_connections,
        .max_per_address = (unsigned)o->max_per_address,
        .max_http1 = (unsigned)o->max_http1,
        .max_streaming = (unsigned)o->max_streaming,
        .max_message = o->max_message,
        .max_guests = (unsigned)o->max_guests,
        .max_inbound = o->max_inbound,
        .max_outbound = o->max_outbound,
    };
}

/* ---- limits and lifetimes ------------------------------------------------------------------ */

int tl_serve_limits(const struct tl_serve_options *o, struct tl_fail *fail)
{
    const struct {
        const char *name;
        uint64_t value, min, most;
    } limits[] = {
        {"max-connections", o->max_connections, 8, 1u << 20},
        {"max-per-address", o->max_per_address, 1, 1u << 20},
        {"max-http1", o->max_http1, 2, 1u << 16},
        {"max-streaming", o->max_streaming, 1, 1u << 16},
        {"max-message", o->max_message, 64u << 10, 1u << 30},
        {"max-guests", o->max_guests, 8, 1u << 20},
        {"max-inbound", o->max_inbound, 1u << 20, UINT64_C(1) << 40},
        {"decode-memory", o->decode_memory, 64u << 20, UINT64_C(1) << 44},
        {"sql-memory", o->sql_memory, 256u << 20, UINT64_C(1) << 44},
        {"max-outbound", o->max_outbound, 1u << 20, UINT64_C(1) << 40},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value &&
            (limits[i].value < limits[i].min || limits[i].value > limits[i].most))
            return tl_fail_set(fail, TL_USAGE, "--%s %llu: must be from %llu to %llu",
                               limits[i].name, (unsigned long long)limits[i].value,
                               (unsigned long long)limits[i].min,
                               (unsigned long long)limits[i].most);
    return TL_OK;
}

int tl_serve_lifetime(const char *option, const char *text, uint64_t *age_s, uint64_t *bytes,
                      struct tl_fail *fail)
{
    if (!text || tl_lifetime_parse(text, age_s, bytes) == TL_OK)
        return TL_OK;
    return tl_fail_set(fail, TL_USAGE, "%s %.40s: write e.g. 30d,200G, 90d, 1T or none", option,
                       text);
}

int tl_serve_age(const char *option, const char *text, uint64_t *age_s, struct tl_fail *fail)
{
    uint64_t bytes = 0;
    if (!text || (tl_lifetime_parse(text, age_s, &bytes) == TL_OK && bytes == 0))
        return TL_OK;
    return tl_fail_set(fail, TL_USAGE, "%s %.40s: write e.g. 30m, 1h, 7d or none", option, text);
}

int tl_serve_retention(const struct tl_serve_options *o, struct tl_fail *fail)
{
    uint64_t age_s, bytes;
    int rc = tl_serve_age("--seal-after", o->seal_after, &age_s, fail);
    if (rc == TL_OK)
        rc = tl_serve_age("--retain-stf", o->retain_stf, &age_s, fail);
    if (rc == TL_OK && o->shards && strcmp(o->shards, "stored") != 0 &&
        strcmp(o->shards, "virtual") != 0)
        rc = tl_fail_set(fail, TL_USAGE, "--shards %.40s: stored or virtual", o->shards);
    if (rc == TL_OK && o->index && tl_index_named(o->index) == TL_INDEX_AS_LAKE)
        rc = tl_fail_set(fail, TL_USAGE, "--index %.40s: now, behind or auto", o->index);
    if (rc == TL_OK)
        rc = tl_serve_lifetime("--retain-raw", o->retain_raw, &age_s, &bytes, fail);
    return rc < 0 ? rc
                  : tl_serve_lifetime("--retain-decoded", o->retain_decoded, &age_s, &bytes, fail);
}

/* ---- the rest ------------------------------------------------------------------------------ */

int tl_serve_store(const struct tl_serve_options *o, struct tl_fail *fail)
{
    return !o->store || strncmp(o->store, "rados:", 6) == 0
               ? TL_OK
               : tl_fail_set(fail, TL_USAGE, "--store %.80s: write rados:POOL[?conf=FILE&…]",
                             o->store);
}

int tl_serve_journal(const struct tl_serve_options *o, struct tl_fail *fail)
{
    enum tl_journal_format format = TL_JOURNAL_TEXT;
    enum tl_journal_level level = TL_JOURNAL_INFO;
    if (o->log_format && tl_journal_format_parse(o->log_format, &format) < 0)
        return tl_fail_set(fail, TL_USAGE, "--log-format %.40s: text or json", o->log_format);
    if (o->log_level && tl_journal_level_parse(o->log_level, &level) < 0)
        return tl_fail_set(fail, TL_USAGE, "--log-level %.40s: error, warning, info or debug",
                           o->log_level);
    tl_journal_open(STDERR_FILENO, format, level);
    return TL_OK;
}

int tl_serve_local(const struct tl_serve_options *o, const char *option, const char *address,
                   struct tl_fail *fail)
{
    const int local = o->insecure ? 1 : tl_address_is_loopback(address, fail);
    if (local != 0)
        return local < 0 ? local : TL_OK;
    return tl_fail_set(fail, TL_USAGE,
                       "%s %.60s is open to the network without tokens; give --insecure if "
                       "that is meant",
                       option, address);
}

int tl_serve_quotas(const struct tl_serve_options *o, struct tl_rpc *rpc, struct tl_fail *fail)
{
    struct tl_quota_rule *const rules = calloc(o->quota.n + 1, sizeof *rules);
    int rc = rules ? TL_OK : TL_NOMEM;
    for (size_t i = 0; i < o->quota.n && rc == TL_OK; i++)
        rc = tl_quota_rule_parse(&rules[i], o->quota.at[i], fail);
    if (rc == TL_OK && rpc)
        rc = tl_rpc_set_quotas(rpc, rules, o->quota.n);
    free(rules);
    return rc;
}

/* ---- checking ------------------------------------------------------------------------------- */

static int check_raw(const struct tl_serve_options *o, const char *option, const char *text,
                     struct tl_fail *fail)
{
    struct tl_raw_spec spec;
    const bool listens = strcmp(option, "--source") != 0;
    int rc = !listens                   ? tl_raw_parse_source(&spec, NULL, text, fail)
             : !strcmp(option, "--raw") ? tl_raw_parse(&spec, NULL, text, fail)
                                        : tl_raw_parse_controller(&spec, NULL, text, fail);
    if (rc == TL_OK && listens)
        rc = tl_serve_local(o, option, spec.address, fail);
    tl_raw_spec_fini(&spec);
    return rc;
}

static int check_all_raw(const struct tl_serve_options *o, struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t i = 0; i < o->raw.n && rc == TL_OK; i++)
        rc = check_raw(o, "--raw", o->raw.at[i], fail);
    for (size_t i = 0; i < o->source.n && rc == TL_OK; i++)
        rc = check_raw(o, "--source", o->source.at[i], fail);
    if (rc == TL_OK && o->osd_controller)
        rc = check_raw(o, "--osd-host-controller", o->osd_controller, fail);
    return rc;
}

/* Does it exist, or can it be created? */
static int check_data(const char *data, struct tl_fail *fail)
{
    struct stat st;
    char parent[PATH_MAX];
    if (!stat(data, &st)) {
        if (!S_ISDIR(st.st_mode))
            errno = ENOTDIR;
        else if (!access(data, R_OK | W_OK | X_OK))
            return TL_OK;
        return tl_fail_set(fail, TL_IO, "--data %.100s: %s", data, strerror(errno));
    }
    snprintf(parent, sizeof parent, "%s", data);
    if (errno == ENOENT && !access(dirname(parent), W_OK | X_OK))
        return TL_OK;
    return tl_fail_set(fail, TL_IO, "--data %.100s: %s", data, strerror(errno));
}

static int check_files(const struct tl_serve_net *net, const struct tl_serve_options *o,
                       struct tl_fail *fail)
{
    struct tl_net_options options = tl_serve_net_options(net, o);
    if (!o->tls_cert && access(net->cert, F_OK)) /* it will be created */
        options.tls_cert = options.tls_key = NULL;
    return tl_net_check(&options, fail);
}

int tl_serve_check(const struct tl_serve_options *options, struct tl_fail *fail)
{
    struct tl_serve_net net = {0};
    int rc = tl_serve_journal(options, fail);
    tl_journal_open(-1, TL_JOURNAL_TEXT, TL_JOURNAL_INFO);
    if (rc == TL_OK)
        rc = tl_serve_limits(options, fail);
    if (rc == TL_OK)
        rc = tl_serve_listeners(&net, options, fail);
    if (rc == TL_OK)
        rc = tl_serve_store(options, fail);
    if (rc == TL_OK)
        rc = tl_serve_quotas(options, NULL, fail);
    if (rc == TL_OK)
        rc = check_data(options->data, fail);
    if (rc == TL_OK)
        rc = tl_serve_retention(options, fail);
    if (rc == TL_OK)
        rc = tl_serve_certificate(&net, options, fail);
    if (rc == TL_OK)
        rc = check_files(&net, options, fail);
    if (rc == TL_OK)
        rc = check_all_raw(options, fail);
    tl_serve_net_fini(&net);
    return rc;
}
