/* SPDX-License-Identifier: MIT */
/* `tracelake retain`: sets how long raw and decoded data are kept. */
#include "base/lifetime.h"
#include "cli/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct retain {
    const char *label, *trace, *raw, *decoded;
    bool remove, json;
};

static void show_json(const struct tracelake_retention *rules, size_t n)
{
    putchar('[');
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",{\"scope\":" : "{\"scope\":", stdout);
        tl_print_json_text(rules[i].scope);
        tl_print_json_member("raw_age_s", rules[i].raw_age_s);
        tl_print_json_member("raw_bytes", rules[i].raw_bytes);
        tl_print_json_member("decoded_age_s", rules[i].decoded_age_s);
        tl_print_json_member("decoded_bytes", rules[i].decoded_bytes);
        putchar('}');
    }
    puts("]");
}

static void show_table(const struct tracelake_retention *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char raw[64], decoded[64];
        printf("%-24s raw %s decoded %s\n", rules[i].scope[0] ? rules[i].scope : "all",
               tl_lifetime_text(rules[i].raw_age_s, rules[i].raw_bytes, raw),
               tl_lifetime_text(rules[i].decoded_age_s, rules[i].decoded_bytes, decoded));
    }
    if (n == 0)
        puts("no rules: everything is kept");
}

static int show(struct tracelake *lake, bool json)
{
    struct tracelake_retention *rules;
    struct tracelake_error error;
    size_t n;
    if (tracelake_list_retention(lake, &rules, &n, &error) < 0)
        return tl_remote_fail(NULL, &error);
    if (json)
        show_json(rules, n);
    else
        show_table(rules, n);
    free(rules);
    return TL_CLI_DONE;
}

/* Members that are not given keep their old values. */
static int read_old(struct tracelake *lake, struct tracelake_retention *rule)
{
    struct tracelake_retention *rules;
    struct tracelake_error error;
    size_t n;
    if (tracelake_list_retention(lake, &rules, &n, &error) < 0)
        return tl_remote_fail(NULL, &error);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rules[i].scope, rule->scope) == 0)
            *rule = rules[i];
    free(rules);
    return TL_CLI_DONE;
}

static int change(struct tracelake *lake, const struct retain *r, struct tracelake_retention *rule)
{
    struct tracelake_error error;
    int status = read_old(lake, rule);
    if (status != TL_CLI_DONE)
        return status;
    if (r->raw && tl_lifetime_parse(r->raw, &rule->raw_age_s, &rule->raw_bytes) < 0)
        return tl_cli_usage("retain", "--raw %s: write e.g. 30d,200G or none", r->raw);
    if (r->decoded && tl_lifetime_parse(r->decoded, &rule->decoded_age_s, &rule->decoded_bytes) < 0)
        return tl_cli_usage("retain", "--decoded %s: write e.g. 90d,1T or none", r->decoded);
    if (tracelake_set_retention(lake, rule, r->remove, &error) < 0)
        return tl_remote_fail(NULL, &error);
    return show(lake, r->json);
}

int tl_cmd_retain(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct retain r = {0};
    const struct tl_arg args[] = {
        {"label", 0, TL_ARG_TEXT, &r.label},
        {"trace", 0, TL_ARG_TEXT, &r.trace},
        {"raw", 0, TL_ARG_TEXT, &r.raw},
        {"decoded", 0, TL_ARG_TEXT, &r.decoded},
        {"remove", 0, TL_ARG_FLAG, &r.remove},
        {"json", 0, TL_ARG_FLAG, &r.json},
        TL_REMOTE_ARGS(remote),
        {0},
    };
    struct tracelake_retention rule = {0};
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    const bool changes = r.raw || r.decoded || r.remove;
    if (first < argc)
        return tl_cli_usage("retain", "\"%s\" is no option", argv[first]);
    if ((r.label && r.trace) || (r.remove && (r.raw || r.decoded)) ||
        (!changes && (r.label || r.trace)))
        return tl_cli_usage("retain", "give one scope, and --raw and --decoded, or --remove");
    if (r.label && !strchr(r.label, '='))
        return tl_cli_usage("retain", "--label %s: write KEY=VALUE", r.label);
    if (r.label || r.trace)
        snprintf(rule.scope, sizeof rule.scope, "%s %s", r.label ? "label" : "trace",
                 r.label ? r.label : r.trace);
    status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = changes ? change(lake, &r, &rule) : show(lake, r.json);
    tracelake_close(lake);
    return status;
}
