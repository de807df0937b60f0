/* SPDX-License-Identifier: MIT */
/*
 * `tracelake token`: manages the file of access tokens, on the server's machine. A secret is
 * printed once and only its digest is stored, so that the file alone gives no access.
 */
#include "cli/cli.h"
#include "net/tokens.h"
#include "terminal/args.h"
#include "terminal/plain.h"
#include "terminal/remote.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECRET 24 /* random bytes of a token */

struct options {
    const char *file, *role, *name, *expires, *cert;
    struct tl_arg_list rigs, labels, quotas;
    bool json;
};

static bool is_word(const char *text)
{
    return *text && !text[strcspn(text, " \t\r\n")];
}

/* `secret`: the token itself, NULL if it is no longer known. */
static void print_json(const struct tl_token *token, const char *secret)
{
    char id[TL_TOKEN_ID + 1];
    char date[24] = "";
    char *const scope = tl_scope_text(token->scope);
    tl_token_id(token, id);
    if (token->expires)
        tl_token_expiry_text(token->expires, date);
    printf("{\"id\":\"%s\",\"name\":", id);
    tl_print_json_text(token->name);
    printf(",\"role\":\"%s\",\"cert\":", token->role);
    tl_print_json_text(token->cert);
    printf(",\"expires\":\"%s\",\"plain\":%s,\"scope\":", date, token->plain ? "true" : "false");
    tl_print_json_text(scope ? scope : "");
    if (secret)
        printf(",\"token\":\"%s\"", secret);
    free(scope);
    putchar('}');
}

/* ---- add ---------------------------------------------------------------------------------- */

static int make_secret(char out[static 2 * SECRET + 1])
{
    uint8_t bytes[SECRET];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return TL_IO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return TL_OK;
}

static int add_who(struct tl_buf *line, const struct options *o, const char *secret)
{
    uint8_t digest[TL_TOKEN_DIGEST];
    if (o->cert)
        return tl_buf_printf(line, "cert:%s", o->cert);
    int rc = tl_token_digest(secret, strlen(secret), digest);
    if (rc >= 0)
        rc = tl_buf_printf(line, "sha256:");
    for (size_t i = 0; i < sizeof digest && rc >= 0; i++)
        rc = tl_buf_printf(line, "%02x", digest[i]);
    return rc;
}

static int add_words(struct tl_buf *line, const struct options *o, int64_t expires)
{
    char date[24];
    int rc = tl_buf_printf(line, " %s", o->role);
    if (rc >= 0 && o->name)
        rc = tl_buf_printf(line, " name=%s", o->name);
    if (rc >= 0 && expires)
        rc = tl_buf_printf(line, " expires=%s", tl_token_expiry_text(expires, date));
    for (size_t i = 0; i < o->rigs.n && rc >= 0; i++)
        rc = tl_buf_printf(line, " rig=%s", o->rigs.v[i]);
    for (size_t i = 0; i < o->labels.n && rc >= 0; i++)
        rc = tl_buf_printf(line, " label=%s", o->labels.v[i]);
    for (size_t i = 0; i < o->quotas.n && rc >= 0; i++)
        rc = tl_buf_printf(line, " %s", o->quotas.v[i]);
    return rc < 0 ? rc : tl_buf_add(line, "", 1);
}

/* A blank would start another word of the line. */
static int check_words(const struct options *o)
{
    const char *const one[] = {o->name ? o->name : "x", o->cert ? o->cert : "x"};
    for (size_t i = 0; i < 2; i++)
        if (!is_word(one[i]))
            return tl_cli_usage("token", "\"%s\" must be one word", one[i]);
    for (size_t i = 0; i < o->rigs.n; i++)
        if (!is_word(o->rigs.v[i]))
            return tl_cli_usage("token", "--rig \"%s\" must be one word", o->rigs.v[i]);
    for (size_t i = 0; i < o->labels.n; i++)
        if (!is_word(o->labels.v[i]))
            return tl_cli_usage("token", "--label \"%s\" must be one word", o->labels.v[i]);
    for (size_t i = 0; i < o->quotas.n; i++) {
        struct tl_quota quota = {0};
        if (!is_word(o->quotas.v[i]) || tl_quota_add(&quota, o->quotas.v[i]) < 0)
            return tl_cli_usage("token",
                                "--quota \"%s\": write bytes=200G, traces=1000, rate=50M or "
                                "calls=100",
                                o->quotas.v[i]);
    }
    return TL_ARGS_GO;
}

/* Modifies the line while parsing it. */
static int added_json(char *line, const char *secret, struct tl_fail *fail)
{
    struct tl_token token;
    const int rc = tl_token_parse(&token, line, fail);
    if (rc < 0)
        return rc;
    print_json(&token, secret);
    putchar('\n');
    tl_token_fini(&token);
    return TL_OK;
}

static int add(const struct options *o, int argc, char **argv, int first)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_buf line = {0};
    char secret[2 * SECRET + 1] = "";
    int64_t expires = 0;
    if (first < argc)
        return tl_cli_usage("token", "\"%s\" is no option", argv[first]);
    if (!o->role ||
        (strcmp(o->role, "read") && strcmp(o->role, "push") && strcmp(o->role, "admin")))
        return tl_cli_usage("token", "name its role: --role read, push or admin");
    if (o->expires && tl_token_expiry_parse(o->expires, &expires) < 0)
        return tl_cli_usage("token", "--expires %s: write 2027-01-31, or 90d", o->expires);
    if (expires && expires <= (int64_t)time(NULL))
        return tl_cli_usage("token", "--expires %s is in the past", o->expires);
    int rc = check_words(o);
    if (rc != TL_ARGS_GO)
        return rc;
    rc = o->cert ? TL_OK : make_secret(secret);
    if (rc >= 0)
        rc = add_who(&line, o, secret);
    if (rc >= 0)
        rc = add_words(&line, o, expires);
    if (rc < 0)
        tl_fail_set(&fail, (enum tl_err)rc, "%s", tl_err_name(rc));
    else
        rc = tl_tokens_add(o->file, (const char *)line.p, &fail);
    if (rc >= 0 && o->json)
        rc = added_json((char *)line.p, o->cert ? NULL : secret, &fail);
    else if (rc >= 0 && !o->cert)
        puts(secret);
    tl_buf_fini(&line);
    return rc < 0 ? tl_cli_fail(o->file, &fail) : TL_CLI_DONE;
}

/* ---- list --------------------------------------------------------------------------------- */

static void list_text(const struct tl_token *token)
{
    char id[TL_TOKEN_ID + 1];
    char expires[24] = "";
    tl_token_id(token, id);
    if (token->expires)
        tl_token_expiry_text(token->expires, expires);
    char *const scope = tl_scope_text(token->scope);
    const bool over = token->expires && token->expires <= (int64_t)time(NULL);
    tl_print_plain(stdout, id, TL_TOKEN_ID + 2);
    tl_print_plain(stdout, *token->name ? token->name : "-", 20);
    putchar(' ');
    tl_print_plain(stdout, token->role, 7);
    tl_print_plain(stdout, over ? "expired" : *expires ? expires : "never", 21);
    if (*token->cert) {
        fputs(" cert:", stdout);
        tl_print_plain(stdout, token->cert, 0);
    }
    if (scope && *scope) {
        putchar(' ');
        tl_print_plain(stdout, scope, 0);
    }
    if (token->plain)
        fputs(" (stands in the file as it is)", stdout);
    putchar('\n');
    free(scope);
}

static int list(const struct options *o, int argc, char **argv, int first)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_token *tokens = NULL;
    size_t n = 0;
    if (first < argc)
        return tl_cli_usage("token", "\"%s\" is no option", argv[first]);
    if (tl_tokens_read(&tokens, &n, o->file, &fail) < 0)
        return tl_cli_fail(o->file, &fail);
    for (size_t i = 0; i < n; i++) {
        if (o->json) {
            fputs(i ? ",\n" : "[", stdout);
            print_json(&tokens[i], NULL);
        } else {
            list_text(&tokens[i]);
        }
    }
    if (o->json)
        puts(n ? "]" : "[]");
    tl_tokens_free(tokens, n);
    return TL_CLI_DONE;
}

/* ---- revoke ------------------------------------------------------------------------------- */

static int revoke(const struct options *o, int argc, char **argv, int first)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    if (first == argc)
        return tl_cli_usage("token", "say which: a name or an id of `tracelake token list`");
    for (; first < argc; first++)
        if (tl_tokens_remove(o->file, argv[first], &fail) < 0)
            return tl_cli_fail(o->file, &fail);
    return TL_CLI_DONE;
}

int tl_cmd_token(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct options *o, int argc, char **argv, int first);
    } verbs[] = {{"add", add}, {"list", list}, {"revoke", revoke}};
    static struct options o; /* large because of its lists */
    const struct tl_option args[] = {
        {"tokens", 0, TL_ARG_TEXT, &o.file, "FILE",
         "the file (default: $TRACELAKE_TOKENS); 'add' creates it"},
        {"role", 0, TL_ARG_TEXT, &o.role, "read|push|admin",
         "read; push: also add traces; admin: also change and remove them"},
        {"name", 0, TL_ARG_TEXT, &o.name, "NAME", "name for people"},
        {"expires", 0, TL_ARG_TEXT, &o.expires, "WHEN",
         "2027-01-31, or a time from now: 90d, 12h (default: never)"},
        {"rig", 0, TL_ARG_LIST, &o.rigs, "GLOB", "only traces of matching rigs; may be repeated"},
        {"label", 0, TL_ARG_LIST, &o.labels, "KEY=VALUE",
         "only traces with this label; may be repeated"},
        {"quota", 0, TL_ARG_LIST, &o.quotas, "WORD",
         "bytes=200G, traces=1000 (of its traces), rate=50M (pushed bytes a second) or calls=100 "
         "(a second); may be repeated"},
        {"cert", 0, TL_ARG_TEXT, &o.cert, "NAME",
         "instead of a token: for clients with a certificate of this name (see 'serve "
         "--tls-client-ca')"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "print the list, or what 'add' created, as JSON"},
        {0},
    };
    int first;
    o = (struct options){.file = getenv("TRACELAKE_TOKENS")};
    const int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    for (size_t i = 0; first < argc && i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(argv[first], verbs[i].name)) {
            if (!o.file || !*o.file)
                return tl_cli_usage("token", "say which file: --tokens FILE");
            return verbs[i].run(&o, argc, argv, first + 1);
        }
    return tl_cli_usage("token", "say add, list or revoke");
}
