/* SPDX-License-Identifier: MIT */
/*
 * `tracelake retain`: sets how long raw and decoded data, and unused images, are kept. Values that
 * are not given stay as they are; --dry-run lists what a rule would remove.
 */
#include "base/lifetime.h"
#include "cli/cli.h"
#include "terminal/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES "images" /* scope of the rule for images that no trace refers to */

struct retain {
    const char *label, *trace, *raw, *decoded, *images;
    bool remove, json, dry;
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
        if (strcmp(rules[i].scope, IMAGES) == 0)
            printf("%-24s %s\n", "unused images",
                   tl_lifetime_text(rules[i].raw_age_s, rules[i].raw_bytes, raw));
        else
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

static void show_victim(const struct tracelake_victim *v)
{
    char age[64], limit[64];
    printf("%-24s %-8s %12" PRIu64 " bytes, %s old; rule %s: %s\n", v->trace, v->what, v->bytes,
           tl_lifetime_text(v->age_s ? v->age_s : 1, 0, age), v->scope[0] ? v->scope : "all",
           tl_lifetime_text(v->by_age ? v->limit : 0, v->by_age ? 0 : v->limit, limit));
}

static void show_victim_json(const struct tracelake_victim *v)
{
    fputs("{\"trace\":", stdout);
    tl_print_json_text(v->trace);
    fputs(",\"what\":", stdout);
    tl_print_json_text(v->what);
    fputs(",\"scope\":", stdout);
    tl_print_json_text(v->scope);
    printf(",\"by\":\"%s\"", v->by_age ? "age" : "size");
    tl_print_json_member("age_s", v->age_s);
    tl_print_json_member("limit", v->limit);
    tl_print_json_member("bytes", v->bytes);
    putchar('}');
}

/* What would go now, with `rule` (NULL: the rules as they are). */
static int plan(struct tracelake *lake, const struct tracelake_retention *rule, bool json)
{
    struct tracelake_victim *victims;
    struct tracelake_error error;
    size_t n;
    bool paused;
    if (tracelake_plan_retention(lake, rule, &victims, &n, &paused, &error) < 0)
        return tl_remote_fail_query(NULL, &error);
    if (json)
        printf("{\"paused\":%s,\"victims\":[", paused ? "true" : "false");
    for (size_t i = 0; i < n; i++) {
        if (json && i)
            putchar(',');
        (json ? show_victim_json : show_victim)(&victims[i]);
    }
    if (json)
        puts("]}");
    else if (n == 0)
        puts("nothing would be removed now");
    if (paused)
        tl_cli_warn(NULL, "the server's clock is in doubt: nothing is removed because of its age");
    free(victims);
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
    if (r->images && tl_lifetime_parse(r->images, &rule->raw_age_s, &rule->raw_bytes) < 0)
        return tl_cli_usage("retain", "--images %s: write e.g. 30d,20G or none", r->images);
    if (r->decoded && tl_lifetime_parse(r->decoded, &rule->decoded_age_s, &rule->decoded_bytes) < 0)
        return tl_cli_usage("retain", "--decoded %s: write e.g. 90d,1T or none", r->decoded);
    if (r->dry)
        return plan(lake, rule, r->json);
    const bool none = r->images && !rule->raw_age_s && !rule->raw_bytes;
    if (tracelake_set_retention(lake, rule, r->remove || none, &error) < 0)
        return tl_remote_fail(NULL, &error);
    return show(lake, r->json);
}

int tl_cmd_retain(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct retain r = {0};
    const struct tl_option args[] = {
        {"label", 0, TL_ARG_TEXT, &r.label, "KEY=VALUE", "the rule of traces with this label"},
        {"trace", 0, TL_ARG_TEXT, &r.trace, "ID", "the rule of this trace"},
        {"raw", 0, TL_ARG_TEXT, &r.raw, "LIMIT", "of raw bytes"},
        {"decoded", 0, TL_ARG_TEXT, &r.decoded, "LIMIT", "of decoded data"},
        {"images", 0, TL_ARG_TEXT, &r.images, "LIMIT",
         "for program images that no trace refers to: the age counts from when that became so, the "
         "size is of all of them"},
        {"remove", 0, TL_ARG_FLAG, &r.remove, NULL, "remove the rule"},
        {"json", 0, TL_ARG_FLAG, &r.json, NULL, "the rules as JSON; a limit of 0 means none"},
        {"dry-run", 0, TL_ARG_FLAG, &r.dry, NULL,
         "tell what would be removed now, and change nothing"},
        TL_REMOTE_ARGS(remote),
        {0},
    };
    struct tracelake_retention rule = {0};
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    const bool changes = r.raw || r.decoded || r.images || r.remove;
    if (first < argc)
        return tl_cli_usage("retain", "\"%s\" is no option", argv[first]);
    if ((r.label && r.trace) || (r.remove && (r.raw || r.decoded)) ||
        (!changes && (r.label || r.trace)))
        return tl_cli_usage("retain", "give one scope, and --raw and --decoded, or --remove");
    if (r.images && (r.label || r.trace || r.raw || r.decoded || r.remove))
        return tl_cli_usage("retain", "--images is a rule of its own; none removes it");
    if (r.remove && r.dry)
        return tl_cli_usage("retain", "--dry-run tells what limits would remove, not --remove");
    if (r.label && !strchr(r.label, '='))
        return tl_cli_usage("retain", "--label %s: write KEY=VALUE", r.label);
    if (r.images)
        snprintf(rule.scope, sizeof rule.scope, "%s", IMAGES);
    if (r.label || r.trace)
        snprintf(rule.scope, sizeof rule.scope, "%s %s", r.label ? "label" : "trace",
                 r.label ? r.label : r.trace);
    status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = changes ? change(lake, &r, &rule)
             : r.dry ? plan(lake, NULL, r.json)
                     : show(lake, r.json);
    tracelake_close(lake);
    return status;
}
