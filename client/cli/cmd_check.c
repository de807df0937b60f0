/* SPDX-License-Identifier: MIT */
/*
 * `tracelake check`: checks STF files against the specification. Findings are limited for each
 * rule, so that a frequent one does not hide a rare one.
 */
#include "cli/cli.h"
#include "stf/tools/check.h"
#include "terminal/args.h"
#include "terminal/progress.h"
#include "terminal/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RULES_MAX 64

struct report {
    const char *path;
    uint64_t limit; /* findings printed per rule, 0: all */
    bool summary;   /* print only the count and first finding of each rule */
    bool json;
    uint64_t printed; /* number of findings */
    uint64_t total[3];
    struct {
        uint64_t n;
        struct tl_stf_finding first;
    } rules[RULES_MAX];
    size_t n_rules;
};

/* Number of findings of this one's rule so far, including it. */
static uint64_t count_rule(struct report *r, const struct tl_stf_finding *finding)
{
    for (size_t i = 0; i < r->n_rules; i++) {
        if (strcmp(r->rules[i].first.rule, finding->rule) == 0)
            return ++r->rules[i].n;
    }
    if (r->n_rules == RULES_MAX)
        return 1;
    r->rules[r->n_rules].first = *finding;
    return r->rules[r->n_rules++].n = 1;
}

/* ---- as text ------------------------------------------------------------------------------ */

static void print_text(const struct report *r, const struct tl_stf_finding *finding, uint64_t n)
{
    printf("%s: offset 0x%" PRIx64 ": ", r->path, finding->offset);
    if (finding->record != UINT64_MAX)
        printf("record %" PRIu64 ": ", finding->record);
    printf("%s: %s: %s", tl_stf_severity_name((enum tl_stf_severity)finding->severity),
           finding->rule, finding->text);
    if (n > 1)
        printf(" (the first of %" PRIu64 ")", n);
    putchar('\n');
}

static void print_total_text(const struct report *r, const struct tl_stf_checker *checker)
{
    for (size_t i = 0; i < r->n_rules && !r->summary; i++) {
        if (r->limit && r->rules[i].n > r->limit)
            printf("%s: %s: %" PRIu64 " more (--limit 0 prints all)\n", r->path,
                   r->rules[i].first.rule, r->rules[i].n - r->limit);
    }
    printf("%s: %" PRIu64 " errors, %" PRIu64 " warnings, %" PRIu64 " notes; %" PRIu64
           " records, %" PRIu64 " instructions\n",
           r->path, r->total[TL_STF_ERROR], r->total[TL_STF_WARNING], r->total[TL_STF_NOTE],
           tl_stf_checker_records(checker), tl_stf_checker_insns(checker));
}

/* ---- as JSON: an object for each file, a line ----------------------------------------------- */

static void begin_json(const struct report *r)
{
    fputs("{\"file\":", stdout);
    tl_print_json_text(r->path);
    fputs(",\"findings\":[", stdout);
}

static void print_json(const struct report *r, const struct tl_stf_finding *finding)
{
    fputs(r->printed ? ",{\"offset\":" : "{\"offset\":", stdout);
    tl_print_json_number(finding->offset);
    if (finding->record != UINT64_MAX)
        tl_print_json_member("record", finding->record);
    printf(",\"severity\":\"%s\",\"rule\":\"%s\",\"text\":",
           tl_stf_severity_name((enum tl_stf_severity)finding->severity), finding->rule);
    tl_print_json_text(finding->text);
    putchar('}');
}

static void print_total_json(const struct report *r, const struct tl_stf_checker *checker)
{
    fputs("],\"rules\":{", stdout);
    for (size_t i = 0; i < r->n_rules; i++) {
        printf("%s\"%s\":", i ? "," : "", r->rules[i].first.rule);
        tl_print_json_number(r->rules[i].n);
    }
    putchar('}');
    tl_print_json_member("errors", r->total[TL_STF_ERROR]);
    tl_print_json_member("warnings", r->total[TL_STF_WARNING]);
    tl_print_json_member("notes", r->total[TL_STF_NOTE]);
    tl_print_json_member("records", tl_stf_checker_records(checker));
    tl_print_json_member("insns", tl_stf_checker_insns(checker));
    puts("}");
}

/* ------------------------------------------------------------------------------------------- */

/* `n`: total findings of its rule, of which this is the first. */
static void print_one(struct report *r, const struct tl_stf_finding *finding, uint64_t n)
{
    tl_progress_hide();
    if (r->json)
        print_json(r, finding);
    else
        print_text(r, finding, n);
    r->printed++;
}

static int print_finding(void *context, const struct tl_stf_finding *finding)
{
    struct report *const r = context;
    r->total[finding->severity]++;
    const uint64_t n = count_rule(r, finding);
    if (r->summary || (r->limit && n > r->limit))
        return TL_OK;
    print_one(r, finding, 1);
    return ferror(stdout) ? TL_IO : TL_OK;
}

static void print_total(struct report *r, const struct tl_stf_checker *checker)
{
    for (size_t i = 0; i < r->n_rules && r->summary; i++)
        print_one(r, &r->rules[i].first, r->rules[i].n);
    if (r->json)
        print_total_json(r, checker);
    else
        print_total_text(r, checker);
}

static int check_file(const struct report *how, const char *path)
{
    struct report report = *how;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct tl_stf_file *file;
    struct tl_stf_checker *checker;
    report.path = path;
    if (tl_stf_file_open(&file, path, &fail) < 0)
        return tl_cli_fail(path, &fail);
    if (tl_stf_checker_new(&checker, print_finding, &report) < 0) {
        tl_stf_file_close(file);
        tl_fail_set(&fail, TL_NOMEM, "out of memory");
        return tl_cli_fail(path, &fail);
    }
    int status = TL_CLI_DONE;
    if (report.json)
        begin_json(&report);
    tl_progress_wait(path);
    const int result = tl_stf_check_file(file, checker, print_finding, &report, &fail);
    tl_progress_end();
    if (result < 0)
        status = tl_cli_fail(path, &fail);
    print_total(&report, checker);
    if (report.total[TL_STF_ERROR])
        status = TL_CLI_BAD;
    tl_stf_checker_free(checker);
    tl_stf_file_close(file);
    return status;
}

int tl_cmd_check(int argc, char **argv)
{
    struct report how = {.limit = 100};
    const struct tl_option args[] = {
        {"limit", 0, TL_ARG_U64, &how.limit, "N",
         "maximum printed for each rule (default 100, 0: all)"},
        {"summary", 0, TL_ARG_FLAG, &how.summary, NULL,
         "print the first violation of each rule, and their number"},
        {"json", 0, TL_ARG_FLAG, &how.json, NULL,
         "an object for each file, one per line: findings (offset, record, severity, rule, text), "
         "their number by rule, totals"},
        {0}};
    int first;
    const int parsed = tl_args_parse(argc, argv, args, &first);
    if (parsed != TL_ARGS_GO)
        return parsed;
    if (first == argc)
        return tl_cli_usage("check", "a file is wanted");
    int status = TL_CLI_DONE;
    for (int i = first; i < argc; i++) {
        const int one = check_file(&how, argv[i]);
        status = one > status ? one : status;
    }
    return status;
}
