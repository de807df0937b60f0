/* SPDX-License-Identifier: MIT */
/* `tracelake serve`. */
#include "cli/args.h"
#include "cli/cli.h"
#include "serve.h"

#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *data, *store, *cert, *key, *tokens, *osd_controller, *config;
    struct tl_arg_list listen, listen_tls, raw, source;
    const char *retain_raw, *retain_decoded;
    bool insecure, rebuild_catalog;
    uint64_t shard_insns, min_free, threads;
    char *kept[TL_ARG_LIST_MAX]; /* values of the file */
    size_t n_kept;
};

/* ---- the configuration file --------------------------------------------------------------- */

struct reader {
    struct options *options;
    struct tl_fail *fail;
    int rc;
};

static bool add(struct tl_arg_list *list, const char *value)
{
    if (list->n == TL_ARG_LIST_MAX)
        return false;
    list->v[list->n++] = value;
    return true;
}

static bool is_yes(const char *value)
{
    return !strcmp(value, "yes") || !strcmp(value, "true") || !strcmp(value, "1");
}

/* The command line wins over the file; lists grow by it. */
static int take(struct options *o, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **text;
        struct tl_arg_list *list;
        uint64_t *size;
    } known[] = {
        {"data", &o->data, NULL, NULL},
        {"store", &o->store, NULL, NULL},
        {"tls-cert", &o->cert, NULL, NULL},
        {"tls-key", &o->key, NULL, NULL},
        {"tokens", &o->tokens, NULL, NULL},
        {"osd-host-controller", &o->osd_controller, NULL, NULL},
        {"listen", NULL, &o->listen, NULL},
        {"listen-tls", NULL, &o->listen_tls, NULL},
        {"raw", NULL, &o->raw, NULL},
        {"source", NULL, &o->source, NULL},
        {"shard-insns", NULL, NULL, &o->shard_insns},
        {"min-free", NULL, NULL, &o->min_free},
        {"threads", NULL, NULL, &o->threads},
        {"retain-raw", &o->retain_raw, NULL, NULL},
        {"retain-decoded", &o->retain_decoded, NULL, NULL},
    };
    if (!strcmp(name, "insecure")) {
        o->insecure |= is_yes(value);
        return TL_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name))
            continue;
        if (known[i].size)
            return *known[i].size ? TL_OK : tl_arg_size(value, known[i].size);
        if (known[i].list)
            return add(known[i].list, value) ? TL_OK : TL_LIMIT;
        if (!*known[i].text)
            *known[i].text = value;
        return TL_OK;
    }
    return TL_NOTFOUND;
}

static int on_entry(void *user, const char *section, const char *name, const char *value)
{
    struct reader *const r = user;
    struct options *const o = r->options;
    char *const copy = o->n_kept < TL_ARG_LIST_MAX ? strdup(value) : NULL;
    if (!copy)
        return 0;
    o->kept[o->n_kept++] = copy;
    r->rc = take(o, name, copy);
    if (r->rc == TL_NOTFOUND)
        tl_fail_set(r->fail, TL_BAD, "there is no option \"%.40s\"", name);
    else if (r->rc < 0)
        tl_fail_set(r->fail, TL_BAD, "%.40s = %.80s: no such value", name, value);
    return r->rc == TL_OK;
}

static int read_config(struct options *o, struct tl_fail *fail)
{
    struct reader reader = {o, fail, TL_OK};
    const int line = ini_parse(o->config, on_entry, &reader);
    if (line == 0)
        return TL_OK;
    if (line < 0)
        return tl_fail_set(fail, TL_IO, "cannot be read");
    char why[sizeof fail->text];
    snprintf(why, sizeof why, "%s", reader.rc < 0 ? fail->text : "no \"name = value\"");
    return tl_fail_set(fail, TL_BAD, "line %d: %.180s", line, why);
}

/* ---- the command -------------------------------------------------------------------------- */

static struct tl_serve_list list_of(const struct tl_arg_list *list)
{
    return (struct tl_serve_list){list->v, list->n};
}

static int run(const struct options *o, struct tl_fail *fail)
{
    const struct tl_serve_options options = {
        .data = o->data,
        .store = o->store,
        .listen = list_of(&o->listen),
        .listen_tls = list_of(&o->listen_tls),
        .tls_cert = o->cert,
        .tls_key = o->key,
        .tokens = o->tokens,
        .raw = list_of(&o->raw),
        .source = list_of(&o->source),
        .osd_controller = o->osd_controller,
        .insecure = o->insecure,
        .shard_insns = o->shard_insns,
        .min_free_bytes = o->min_free,
        .decode_threads = (unsigned)o->threads,
        .retain_raw = o->retain_raw,
        .retain_decoded = o->retain_decoded,
        .rebuild_catalog = o->rebuild_catalog,
    };
    return tl_serve(&options, fail);
}

int tl_cmd_serve(int argc, char **argv)
{
    static struct options o; /* lists make it large */
    const struct tl_arg args[] = {
        {"data", 0, TL_ARG_TEXT, &o.data},
        {"store", 0, TL_ARG_TEXT, &o.store},
        {"listen", 0, TL_ARG_LIST, &o.listen},
        {"listen-tls", 0, TL_ARG_LIST, &o.listen_tls},
        {"tls-cert", 0, TL_ARG_TEXT, &o.cert},
        {"tls-key", 0, TL_ARG_TEXT, &o.key},
        {"tokens", 0, TL_ARG_TEXT, &o.tokens},
        {"raw", 0, TL_ARG_LIST, &o.raw},
        {"source", 0, TL_ARG_LIST, &o.source},
        {"osd-host-controller", 0, TL_ARG_TEXT, &o.osd_controller},
        {"config", 0, TL_ARG_TEXT, &o.config},
        {"insecure", 0, TL_ARG_FLAG, &o.insecure},
        {"shard-insns", 0, TL_ARG_SIZE, &o.shard_insns},
        {"min-free", 0, TL_ARG_SIZE, &o.min_free},
        {"threads", 0, TL_ARG_U64, &o.threads},
        {"retain-raw", 0, TL_ARG_TEXT, &o.retain_raw},
        {"retain-decoded", 0, TL_ARG_TEXT, &o.retain_decoded},
        {"rebuild-catalog", 0, TL_ARG_FLAG, &o.rebuild_catalog},
        {NULL, 0, 0, NULL},
    };
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    int first;
    o = (struct options){0};
    const int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (first < argc)
        return tl_cli_usage("serve", "\"%s\" is no option", argv[first]);
    const char *where = o.config;
    int rc = o.config ? read_config(&o, &fail) : TL_OK;
    if (rc == TL_OK && !o.data)
        return tl_cli_usage("serve", "say where to keep everything: --data DIR");
    if (rc == TL_OK) {
        where = NULL;
        rc = run(&o, &fail);
    }
    if (rc < 0 && !fail.text[0])
        tl_fail_set(&fail, (enum tl_err)rc, "%s", tl_err_name(rc));
    for (size_t i = 0; i < o.n_kept; i++)
        free(o.kept[i]);
    return rc < 0 ? tl_cli_fail(where, &fail) : TL_CLI_DONE;
}
