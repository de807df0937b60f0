/* SPDX-License-Identifier: MIT */
/* `tracelake serve`: options from the command line and from a file. */
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
    char *kept[TL_ARG_LIST_MAX]; /* values from the file */
    size_t n_kept;
    char restart[256];
};

/* The options that only the command line has come first. */
enum { ONLY_HERE = 3, MAX_KEYS = 40 };

static void make_table(struct config *c, struct tl_arg table[static MAX_KEYS])
{
    struct tl_serve_options *const o = &c->out;
    const struct tl_arg keys[] = {
        {"config", 0, TL_ARG_TEXT, &c->file},
        {"check-config", 0, TL_ARG_FLAG, &c->check},
        {"rebuild-catalog", 0, TL_ARG_FLAG, &o->rebuild_catalog},
        {"data", 0, TL_ARG_TEXT, &o->data},
        {"store", 0, TL_ARG_TEXT, &o->store},
        {"listen", 0, TL_ARG_LIST, &c->listen},
        {"listen-tls", 0, TL_ARG_LIST, &c->listen_tls},
        {"raw", 0, TL_ARG_LIST, &c->raw},
        {"source", 0, TL_ARG_LIST, &c->source},
        {"osd-host-controller", 0, TL_ARG_TEXT, &o->osd_controller},
        {"insecure", 0, TL_ARG_FLAG, &o->insecure},
        {"shard-insns", 0, TL_ARG_SIZE, &o->shard_insns},
        {"shards", 0, TL_ARG_TEXT, &o->shards},
        {"threads", 0, TL_ARG_U64, &c->threads},
        {"decode-memory", 0, TL_ARG_SIZE, &o->decode_memory},
        {"log-format", 0, TL_ARG_TEXT, &o->log_format},
        {"log-level", 0, TL_ARG_TEXT, &o->log_level},
        /* The following ones are reloaded by SIGHUP. */
        {"tls-cert", 0, TL_ARG_TEXT, &o->tls_cert},
        {"tls-key", 0, TL_ARG_TEXT, &o->tls_key},
        {"tokens", 0, TL_ARG_TEXT, &o->tokens},
        {"tls-client-ca", 0, TL_ARG_TEXT, &o->client_ca},
        {"min-free", 0, TL_ARG_SIZE, &o->min_free_bytes},
        {"seal-after", 0, TL_ARG_TEXT, &o->seal_after},
        {"retain-raw", 0, TL_ARG_TEXT, &o->retain_raw},
        {"retain-decoded", 0, TL_ARG_TEXT, &o->retain_decoded},
        {"retain-stf", 0, TL_ARG_TEXT, &o->retain_stf},
        {"max-connections", 0, TL_ARG_U64, &o->max_connections},
        {"max-per-address", 0, TL_ARG_U64, &o->max_per_address},
        {"max-http1", 0, TL_ARG_U64, &o->max_http1},
        {"max-streaming", 0, TL_ARG_U64, &o->max_streaming},
        {"max-message", 0, TL_ARG_SIZE, &o->max_message},
        {"quota", 0, TL_ARG_LIST, &c->quota},
        {"max-guests", 0, TL_ARG_U64, &o->max_guests},
        {"max-inbound", 0, TL_ARG_SIZE, &o->max_inbound},
        {"max-outbound", 0, TL_ARG_SIZE, &o->max_outbound},
        {NULL, 0, 0, NULL},
    };
    _Static_assert(sizeof keys / sizeof *keys <= MAX_KEYS, "more keys than room");
    memcpy(table, keys, sizeof keys);
}

static const char first_live[] = "tls-cert";

/* ---- the configuration file --------------------------------------------------------------- */

struct reader {
    struct config *config;
    const struct tl_arg *known;
};

static bool is_list(const struct tl_arg *arg)
{
    return arg->kind == TL_ARG_LIST;
}

static int on_entry(void *user, const char *section, bool begins, const char *name,
                    const char *value, struct tl_fail *fail)
{
    const struct reader *const r = user;
    struct config *const c = r->config;
    const struct tl_arg *const arg = tl_arg_find(r->known, name, strlen(name));
    if (*section)
        return tl_fail_set(fail, TL_BAD, "there are no sections, \"[%.40s]\" is none", section);
    if (!arg)
        return tl_fail_set(fail, TL_BAD, "there is no option \"%.40s\"; docs/admin.md lists them",
                           name);
    char *const copy = c->n_kept < TL_ARG_LIST_MAX ? strdup(value) : NULL;
    if (!copy)
        return tl_fail_set(fail, TL_BAD, "too many options");
    c->kept[c->n_kept++] = copy;
    const char *const wanted = tl_arg_set(arg, copy);
    return wanted ? tl_fail_set(fail, TL_BAD, "%.40s = %.80s: must be %s", name, value, wanted)
                  : TL_OK;
}

static int read_file(struct config *c, const char *path, const struct tl_arg *known,
                     struct tl_fail *fail)
{
    struct reader reader = {.config = c, .known = known};
    struct tl_buf text = {0};
    int rc = tl_buf_read_file(&text, path, 1 << 20, fail);
    if (rc == TL_OK) {
        struct tl_fail why = {0};
        rc = tl_ini_parse((const char *)text.p, text.n, on_entry, &reader, &why);
        if (rc < 0)
            tl_fail_set(fail, (enum tl_err)rc, "%.90s: %.130s", path, why.text);
    }
    tl_buf_fini(&text);
    return rc;
}

/* ---- reading the options -------------------------------------------------------------------- */

static struct tl_serve_list list_of(const struct tl_arg_list *list)
{
    return (struct tl_serve_list){list->v, list->n};
}

static void config_free(struct config *c)
{
    for (size_t i = 0; c && i < c->n_kept; i++)
        free(c->kept[i]);
    free(c);
}

/*
 * Returns TL_ARGS_GO with a new config, or the exit status; `fail` has an error not yet reported.
 */
static int config_read(struct config **out, int argc, char **argv, struct tl_fail *fail)
{
    struct config *const c = calloc(1, sizeof *c);
    struct tl_arg table[MAX_KEYS];
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
        *c = (struct config){0};
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

static bool same_value(const struct tl_arg *a, const struct tl_arg *b)
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
    struct tl_arg now[MAX_KEYS], then[MAX_KEYS];
    make_table(c, now);
    make_table(before, then);
    size_t n = 0;
    for (size_t i = ONLY_HERE; strcmp(now[i].name, first_live) != 0; i++)
        if (!same_value(&now[i], &then[i]) && n < sizeof c->restart)
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

static void release(void *context, const struct tl_serve_options *options)
{
    config_free((struct config *)((const char *)options - offsetof(struct config, out)));
}

/* ---- the command ---------------------------------------------------------------------------- */

static int run(struct config *c, struct again *again, struct tl_fail *fail)
{
    const struct tl_serve_source source = {again, read_again, release};
    if (!c->out.data)
        return tl_cli_usage("serve", "give the data folder: --data DIR");
    const int rc = c->check ? tl_serve_check(&c->out, fail) : tl_serve(&c->out, &source, fail);
    if (rc < 0 && !fail->text[0])
        tl_fail_set(fail, (enum tl_err)rc, "%s", tl_err_name(rc));
    if (rc < 0)
        return tl_cli_fail(NULL, fail);
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
