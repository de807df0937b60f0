/* SPDX-License-Identifier: MIT */
/*
 * `tracelake serve`: reads options from the command line and from a file, and reads the file again
 * on SIGHUP. Both are parsed by one table, so that each option exists in both and errors name the
 * line.
 */
#include "base/buf.h"
#include "cli/cli.h"
#include "serve.h"
#include "setup/ini_text.h"
#include "terminal/args.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parsed options; what they point to is stored here and in argv. */
struct config {
    struct tl_serve_options out;
    const char *file;
    bool check, rebuild_catalog;
    struct tl_arg_list listen, listen_tls, raw, source, quota;
    uint64_t threads;
    struct kept {
        char *name, *value;
        unsigned line;
    } kept[TL_ARG_LIST_MAX]; /* what is in the file */
    size_t n_kept;
    char restart[256];
};

/* The options that only the command line has come first. */
enum { ONLY_HERE = 3, MAX_KEYS = 48 };

/* The texts of those that SIGHUP reloads begin with a star. */
static void make_table(struct config *c, struct tl_option table[static MAX_KEYS])
{
    struct tl_serve_options *const o = &c->out;
    const struct tl_option keys[] = {
        {"config", 0, TL_ARG_TEXT, &c->file, "FILE",
         "options as lines \"name = value\", without the dashes; # and ; begin comments. The "
         "command line takes precedence; repeatable options accumulate"},
        {"check-config", 0, TL_ARG_FLAG, &c->check, NULL,
         "check the configuration and exit: status 0 if valid, else 1 or 2"},
        {"rebuild-catalog", 0, TL_ARG_FLAG, &o->rebuild_catalog, NULL,
         "set a damaged catalog aside and rebuild it from the stored objects"},
        {"data", 0, TL_ARG_TEXT, &o->data, "DIR", "folder in which everything is stored"},
        {.help = "listening:"},
        {"listen", 0, TL_ARG_LIST, &c->listen, "ADDR:PORT",
         "plain HTTP/1.1 and HTTP/2 (default 127.0.0.1:7070); may be repeated"},
        {"listen-tls", 0, TL_ARG_LIST, &c->listen_tls, "ADDR:PORT",
         "the same with TLS (default 127.0.0.1:7443); may be repeated"},
        {"tls-cert", 0, TL_ARG_TEXT, &o->tls_cert, "FILE",
         "* certificate, PEM, with its chain (default: a self-signed one is created in the data "
         "folder)"},
        {"tls-key", 0, TL_ARG_TEXT, &o->tls_key, "FILE", "* its key, PEM"},
        {"tokens", 0, TL_ARG_TEXT, &o->tokens, "FILE",
         "* access tokens, see 'token'; without it everyone may do everything"},
        {"tls-client-ca", 0, TL_ARG_TEXT, &o->client_ca, "FILE",
         "* CA certificates, PEM, for client certificates; a client with one needs no token if the "
         "token file lists its name"},
        {"insecure", 0, TL_ARG_FLAG, &o->insecure, NULL,
         "listen beyond this machine without TLS or tokens, accept any host name"},
        {.help = "trace that is not pushed:"},
        {"raw", 0, TL_ARG_LIST, &c->raw,
         "ADDR:PORT,format=FMT,rig=NAME[,config=F][,shards=stored|virtual][,index=now|behind|auto]"
         "[,rejoin=AGE]",
         "receive raw trace bytes over TCP; a rig that connects again within AGE continues its "
         "trace "
         "(default: never); may be repeated"},
        {"source", 0, TL_ARG_LIST, &c->source,
         "tcp://HOST:PORT,format=FMT,rig=NAME[,config=F][,shards=…][,index=…][,rejoin=AGE|no]",
         "fetch raw trace bytes over TCP; a connection that is lost for less than AGE (default: "
         "10s) continues its trace, with a gap; osd://HOST[:PORT],rig=NAME[,subnet=N] joins a host "
         "controller of Open SoC Debug as a host module; may be repeated"},
        {"osd-host-controller", 0, TL_ARG_TEXT, &o->osd_controller,
         "ADDR[:PORT][,rig=NAME][,config=F][,start=KINDS][,reset=yes]",
         "be the host controller of Open SoC Debug devices"},
        {"seal-after", 0, TL_ARG_TEXT, &o->seal_after, "AGE",
         "* complete captures that have not been pushed to for this long, e.g. 1h (s m h d w; "
         "default: never, they can always be resumed)"},
        {.help = "storage:"},
        {"retain-raw", 0, TL_ARG_TEXT, &o->retain_raw, "LIMIT",
         "* remove raw bytes by age and size, e.g. 30d,200G (see 'retain')"},
        {"retain-decoded", 0, TL_ARG_TEXT, &o->retain_decoded, "LIMIT",
         "* the same for decoded data"},
        {"retain-stf", 0, TL_ARG_TEXT, &o->retain_stf, "AGE",
         "* make the shards of traces virtual that have not changed for this long, e.g. 7d"},
        {"min-free", 0, TL_ARG_SIZE, &o->min_free_bytes, "SIZE",
         "* accept no more trace when less space is free (default 256M)"},
        {"store", 0, TL_ARG_TEXT, &o->store, "URL",
         "store everything in a Ceph cluster instead of the data folder: "
         "rados:POOL[?conf=FILE&id=NAME&namespace=NS&lease=SECONDS]"},
        {"shard-insns", 0, TL_ARG_SIZE, &o->shard_insns, "N",
         "instructions of a shard (default 1M)"},
        {"shards", 0, TL_ARG_TEXT, &o->shards, "stored|virtual",
         "for new traces: stored (default), or virtual: only index and tiles are stored, "
         "instructions are decoded from the raw bytes when read"},
        {"index", 0, TL_ARG_TEXT, &o->index, "now|behind|auto",
         "for new traces: indexed while they are decoded (default), behind it, for rigs that send "
         "faster: instructions can be read at once, tiles and statistics follow; or behind it once "
         "the index lags"},
        {"threads", 0, TL_ARG_U64, &c->threads, "N",
         "decode jobs that compute at a time (default: one per processor; of live captures thrice "
         "as many)"},
        {"decode-memory", 0, TL_ARG_SIZE, &o->decode_memory, "SIZE",
         "memory for all decoding, half of it for one trace (default: half of the machine's, or of "
         "the cgroup's)"},
        {"sql-memory", 0, TL_ARG_SIZE, &o->sql_memory, "SIZE",
         "memory for large questions in SQL, which wait for 256 MiB each (default: an eighth of "
         "the "
         "machine's)"},
        {.help = "log, on standard error:"},
        {"log-format", 0, TL_ARG_TEXT, &o->log_format, "text|json",
         "form of its lines (default text)"},
        {"log-level", 0, TL_ARG_TEXT, &o->log_level, "error|warning|info|debug",
         "least important lines written (default info)"},
        {.help = "limits (of most of these a client gets what is free of them, one alone half: "
                 "docs/admin.md):"},
        {"max-connections", 0, TL_ARG_U64, &o->max_connections, "N", "* total (default 4096)"},
        {"max-per-address", 0, TL_ARG_U64, &o->max_per_address, "N",
         "* from one address or IPv6 /64 (default: a quarter of the total)"},
        {"max-http1", 0, TL_ARG_U64, &o->max_http1, "N", "* over HTTP/1.1 (default 512)"},
        {"quota", 0, TL_ARG_LIST, &c->quota, "RULE",
         "* of a rig: rig=GLOB,bytes=200G,traces=1000,rate=50M; may be repeated"},
        {"max-guests", 0, TL_ARG_U64, &o->max_guests, "N",
         "* requests without a valid token, an eighth of them from one address (default 1024)"},
        {"max-streaming", 0, TL_ARG_U64, &o->max_streaming, "N",
         "* concurrent streaming calls of readers, and as many pushes (default 512)"},
        {"max-message", 0, TL_ARG_SIZE, &o->max_message, "SIZE",
         "* of each received message (default 4M)"},
        {"max-inbound", 0, TL_ARG_SIZE, &o->max_inbound, "SIZE",
         "* memory for received messages (default 1G)"},
        {"max-outbound", 0, TL_ARG_SIZE, &o->max_outbound, "SIZE",
         "* memory for answers that clients have not taken (default 512M)"},
        {0},
    };
    _Static_assert(sizeof keys / sizeof *keys <= MAX_KEYS, "more keys than room");
    memcpy(table, keys, sizeof keys);
}

static bool is_live(const struct tl_option *option)
{
    return option->help[0] == '*';
}

/* ---- the configuration file --------------------------------------------------------------- */

struct reader {
    struct config *config;
    const struct tl_option *known;
    unsigned line;
};

static bool is_list(const struct tl_option *option)
{
    return option->kind == TL_ARG_LIST;
}

static int on_entry(void *user, const char *section, bool begins, const char *name,
                    const char *value, struct tl_fail *fail)
{
    const struct reader *const r = user;
    struct config *const c = r->config;
    const struct tl_option *const option = tl_option_find(r->known, name);
    if (!option)
        return tl_fail_set(fail, TL_BAD, "there is no option \"%.40s\"; docs/admin.md lists them",
                           name);
    if (c->n_kept == TL_ARG_LIST_MAX)
        return tl_fail_set(fail, TL_BAD, "too many options");
    struct kept *const kept = &c->kept[c->n_kept++];
    *kept = (struct kept){strdup(name), strdup(value), r->line};
    if (!kept->name || !kept->value)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    const char *const wanted = tl_option_set(option, kept->value);
    return wanted ? tl_fail_set(fail, TL_BAD, "%.40s = %.80s: must be %s", name, value, wanted)
                  : TL_OK;
}

static int read_file(struct config *c, const char *path, const struct tl_option *known,
                     struct tl_fail *fail)
{
    struct reader reader = {.config = c, .known = known};
    struct tl_buf text = {0};
    int rc = tl_buf_read_file(&text, path, 1 << 20, fail);
    if (rc == TL_OK) {
        struct tl_fail why = {0};
        rc = tl_ini_parse((const char *)text.p, text.n, TL_INI_FLAT, on_entry, &reader,
                          &reader.line, &why);
        if (rc < 0)
            tl_fail_set(fail, (enum tl_err)rc, "%.90s: %.130s", path, why.text);
    }
    tl_buf_fini(&text);
    return rc;
}

/* Does the message begin with "--NAME "? */
static bool names(const char *text, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(text, "--", 2) && !strncmp(text + 2, name, n) && text[2 + n] == ' ';
}

/* The entry of the file that a message is about, which names the option, or quotes a value long
 * enough not to be in any message. NULL: it is about none. */
static const struct kept *subject(const struct config *c, const char *text)
{
    const struct kept *found = NULL;
    size_t most = 3;
    for (size_t i = 0; i < c->n_kept; i++) {
        const struct kept *const kept = &c->kept[i];
        const size_t n = strlen(kept->value);
        if (!strstr(text, kept->value))
            continue;
        if (names(text, kept->name))
            return kept;
        if (n > most) {
            found = kept;
            most = n;
        }
    }
    return found;
}

/* Say in which line of the file the fault is, if it is in the file. */
static void locate(const struct config *c, struct tl_fail *fail)
{
    const struct kept *const kept = c->file ? subject(c, fail->text) : NULL;
    char text[sizeof fail->text];
    if (!kept)
        return;
    memcpy(text, fail->text, sizeof text);
    tl_fail_set(fail, fail->code, "%.90s: line %u: %s", c->file, kept->line,
                text + (strncmp(text, "--", 2) ? 0 : 2));
}

/* ---- reading the options -------------------------------------------------------------------- */

static struct tl_serve_list list_of(const struct tl_arg_list *list)
{
    return (struct tl_serve_list){list->v, list->n};
}

static void config_free(struct config *c)
{
    for (size_t i = 0; c && i < c->n_kept; i++) {
        free(c->kept[i].name);
        free(c->kept[i].value);
    }
    free(c);
}

/*
 * Returns TL_ARGS_GO with a new config, or the exit status; `fail` has an error not yet reported.
 */
static int config_read(struct config **out, int argc, char **argv, struct tl_fail *fail)
{
    struct config *const c = calloc(1, sizeof *c);
    struct tl_option table[MAX_KEYS];
    int first;
    *out = c;
    if (!c)
        return tl_fail_set(fail, TL_NOMEM, "no memory"), TL_CLI_BAD;
    make_table(c, table);
    int status = tl_args_parse(argc, argv, table, &first);
    if (status == TL_ARGS_GO && first < argc)
        status = tl_cli_usage("serve", "\"%s\" is no option", argv[first]);
    if (status == TL_ARGS_GO && c->file) { /* the command line has precedence; lists are extended */
        const char *const file = c->file;
        *c = (struct config){.file = file};
        if (read_file(c, file, table + ONLY_HERE, fail) < 0)
            status = TL_CLI_BAD;
        else
            status = tl_args_parse(argc, argv, table, &first);
    }
    c->out.listen = list_of(&c->listen);
    c->out.listen_tls = list_of(&c->listen_tls);
    c->out.raw = list_of(&c->raw);
    c->out.source = list_of(&c->source);
    c->out.quota = list_of(&c->quota);
    c->out.decode_threads = c->threads > 4096 ? 4096 : (unsigned)c->threads;
    return status;
}

/* ---- SIGHUP --------------------------------------------------------------------------------- */

struct again {
    int argc;
    char **argv;
    struct config *first;
};

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_value(const struct tl_option *a, const struct tl_option *b)
{
    if (is_list(a)) {
        const struct tl_arg_list *const x = a->value, *const y = b->value;
        for (size_t i = 0; i < x->n && i < y->n; i++)
            if (strcmp(x->v[i], y->v[i]) != 0)
                return false;
        return x->n == y->n;
    }
    if (a->kind == TL_ARG_TEXT)
        return same_text(*(const char **)a->value, *(const char **)b->value);
    if (a->kind == TL_ARG_FLAG)
        return *(bool *)a->value == *(bool *)b->value;
    return *(uint64_t *)a->value == *(uint64_t *)b->value;
}

/* Determine the changed keys that SIGHUP does not reload. */
static void name_changes(struct config *c, struct config *before)
{
    struct tl_option now[MAX_KEYS], then[MAX_KEYS];
    make_table(c, now);
    make_table(before, then);
    size_t n = 0;
    for (size_t i = ONLY_HERE; !tl_option_ends(&now[i]); i++)
        if (now[i].name && !is_live(&now[i]) && !same_value(&now[i], &then[i]) &&
            n < sizeof c->restart)
            n += (size_t)snprintf(c->restart + n, sizeof c->restart - n, "%s%s", n ? ", " : "",
                                  now[i].name);
    c->out.restart = n ? c->restart : NULL;
}

static int read_again(void *context, const struct tl_serve_options **out, struct tl_fail *fail)
{
    const struct again *const again = context;
    struct config *c;
    if (config_read(&c, again->argc, again->argv, fail) != TL_ARGS_GO) {
        config_free(c);
        return fail->code < 0 ? (int)fail->code : TL_BAD;
    }
    name_changes(c, again->first);
    *out = &c->out;
    return TL_OK;
}

static struct config *config_of(const struct tl_serve_options *options)
{
    return (struct config *)((const char *)options - offsetof(struct config, out));
}

static void release(void *context, const struct tl_serve_options *options)
{
    config_free(config_of(options));
}

static void explain(void *context, const struct tl_serve_options *options, struct tl_fail *fail)
{
    locate(config_of(options), fail);
}

/* ---- the command ---------------------------------------------------------------------------- */

static int run(struct config *c, struct again *again, struct tl_fail *fail)
{
    const struct tl_serve_source source = {again, read_again, explain, release};
    if (!c->out.data)
        return tl_cli_usage("serve", "give the data folder: --data DIR");
    const int rc = c->check ? tl_serve_check(&c->out, fail) : tl_serve(&c->out, &source, fail);
    if (rc < 0 && !fail->text[0])
        tl_fail_set(fail, (enum tl_err)rc, "%s", tl_err_name(rc));
    if (rc < 0) {
        locate(c, fail);
        return tl_cli_fail(NULL, fail);
    }
    if (c->check)
        puts("the configuration is fine");
    return TL_CLI_DONE;
}

int tl_cmd_serve(int argc, char **argv)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct config *c;
    int status = config_read(&c, argc, argv, &fail);
    struct again again = {argc, argv, c};
    if (status == TL_ARGS_GO)
        status = run(c, &again, &fail);
    else if (fail.text[0])
        status = tl_cli_fail(NULL, &fail);
    config_free(c);
    return status;
}
