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
    const char *data, *store, *cert, *key, *tokens, *osd_controller;
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
    const struct tl_arg *known;
    struct tl_fail *fail;
};

static int on_entry(void *user, const char *section, const char *name, const char *value)
{
    struct reader *const r = user;
    struct options *const o = r->options;
    char *const copy = o->n_kept < TL_ARG_LIST_MAX ? strdup(value) : NULL;
    if (!copy)
        return 0;
    o->kept[o->n_kept++] = copy;
    const struct tl_arg *const arg = tl_arg_find(r->known, name, strlen(name));
    const char *const wanted = arg ? tl_arg_set(arg, copy) : NULL;
    if (!arg)
        tl_fail_set(r->fail, TL_BAD, "there is no option \"%.40s\"", name);
    else if (wanted)
        tl_fail_set(r->fail, TL_BAD, "%.40s = %.80s: must be %s", name, value, wanted);
    return arg && !wanted;
}

static int read_config(struct options *o, const char *path, const struct tl_arg *known,
                       struct tl_fail *fail)
{
    struct reader reader = {o, known, fail};
    const int line = ini_parse(path, on_entry, &reader);
    if (line == 0)
        return TL_OK;
    if (line < 0)
        return tl_fail_set(fail, TL_IO, "cannot be read");
    char why[sizeof fail->text];
    snprintf(why, sizeof why, "%s", fail->text[0] ? fail->text : "no \"name = value\"");
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
    const char *config = NULL;
    const struct tl_arg args[] = {
        {"config", 0, TL_ARG_TEXT, &config},
        {"rebuild-catalog", 0, TL_ARG_FLAG, &o.rebuild_catalog},
        /* The file may have these: */
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
        {"insecure", 0, TL_ARG_FLAG, &o.insecure},
        {"shard-insns", 0, TL_ARG_SIZE, &o.shard_insns},
        {"min-free", 0, TL_ARG_SIZE, &o.min_free},
        {"threads", 0, TL_ARG_U64, &o.threads},
        {"retain-raw", 0, TL_ARG_TEXT, &o.retain_raw},
        {"retain-decoded", 0, TL_ARG_TEXT, &o.retain_decoded},
        {NULL, 0, 0, NULL},
    };
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    int first, rc = TL_OK;
    o = (struct options){0};
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && config) { /* the command line wins over it; lists grow by it */
        o = (struct options){0};
        rc = read_config(&o, config, args + 2, &fail);
        status = tl_args_parse(argc, argv, args, &first);
    }
    if (status == TL_ARGS_GO && first < argc)
        status = tl_cli_usage("serve", "\"%s\" is no option", argv[first]);
    if (status == TL_ARGS_GO && rc < 0)
        status = tl_cli_fail(config, &fail);
    if (status == TL_ARGS_GO && !o.data)
        status = tl_cli_usage("serve", "say where to keep everything: --data DIR");
    if (status == TL_ARGS_GO) {
        rc = run(&o, &fail);
        if (rc < 0 && !fail.text[0])
            tl_fail_set(&fail, (enum tl_err)rc, "%s", tl_err_name(rc));
        status = rc < 0 ? tl_cli_fail(NULL, &fail) : TL_CLI_DONE;
    }
    for (size_t i = 0; i < o.n_kept; i++)
        free(o.kept[i]);
    return status;
}
