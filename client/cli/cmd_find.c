/* SPDX-License-Identifier: MIT */
/*
 * `tracelake find`: finds occurrences of an address, a function, an event or a text. As with grep,
 * the exit status is 1 if there are none, so that scripts can ask.
 */
#include "cli/cli.h"
#include "terminal/plain.h"
#include "terminal/progress.h"
#include "terminal/span.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HITS_DEFAULT = 100 };

static int parse_addresses(const char *text, struct tracelake_query *query)
{
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    if (tl_pc_parse(text, n, &query->pc_from) < 0 ||
        (colon && tl_pc_parse(colon + 1, strlen(colon + 1), &query->pc_to) < 0))
        return tl_cli_usage("find", "--pc %s: give ADDR or ADDR:ADDR, hexadecimal", text);
    if (!colon)
        query->pc_to = query->pc_from + 1;
    if (query->pc_from >= query->pc_to)
        return tl_cli_usage("find", "--pc %s: the range is empty", text);
    return TL_ARGS_GO;
}

static void print_text(const struct tracelake_found *found, bool streams)
{
    if (found->n)
        puts(streams ? "# stream insn time byte pc what" : "# insn time byte pc what");
    for (size_t i = 0; i < found->n; i++) {
        const struct tracelake_hit *h = &found->hits[i];
        char time[24] = "-";
        if (h->at.has_time)
            snprintf(time, sizeof time, "%" PRIu64, h->at.time);
        if (streams)
            printf("%s ", h->stream);
        printf("%" PRIu64 " %s %" PRIu64 " %016" PRIx64 " ", h->at.insn, time, h->at.byte, h->pc);
        tl_print_plain(stdout, h->text, 0);
        putchar('\n');
    }
}

static void print_json(const struct tracelake_found *found, bool counted)
{
    printf("{\"what\":");
    tl_print_json_text(found->what);
    printf(",\"hits\":[");
    for (size_t i = 0; i < found->n; i++) {
        const struct tracelake_hit *h = &found->hits[i];
        fputs(i ? ",\n {\"insn\":" : "{\"insn\":", stdout);
        tl_print_json_number(h->at.insn);
        tl_print_json_member("byte", h->at.byte);
        printf(",\"has_time\":%s", h->at.has_time ? "true" : "false");
        if (h->at.has_time)
            tl_print_json_member("time", h->at.time);
        printf(",\"pc\":\"0x%" PRIx64 "\",\"stream\":\"%s\",\"text\":", h->pc, h->stream);
        tl_print_json_text(h->text);
        putchar('}');
    }
    printf("],\"more\":%s", found->more ? "true" : "false");
    if (found->more)
        tl_print_json_member("skip", found->skip);
    if (found->functions)
        tl_print_json_member("functions", found->functions);
    if (found->behind_from != TRACELAKE_END) {
        printf(",\"behind_stream\":\"%s\"", found->behind_stream);
        tl_print_json_member("behind_from", found->behind_from);
    }
    if (counted) {
        tl_print_json_member("total", found->total);
        tl_print_json_member("before", found->before);
    }
    printf("}\n");
}

static void say_more(const struct tracelake_found *found, const struct tracelake_query *query)
{
    const struct tracelake_hit *const last = &found->hits[found->n - 1];
    tl_cli_warn(
        query->trace,
        "there are more than %zu; raise --limit, or continue with %s %s%s%" PRIu64 "+%" PRIu64,
        found->n, query->backward ? "--before" : "--after", *query->stream ? "" : last->stream,
        *query->stream ? "" : ":", last->at.insn, found->skip);
}

/* As grep: nothing found is an answer that scripts see, and people too. */
static int say_none(const struct tl_remote_name *name, const struct tracelake_query *query)
{
    const bool begins = query->from == 0 && query->to == TRACELAKE_END;
    char where[256];
    snprintf(where, sizeof where, "%s%s%s", name->trace, *name->stream ? "/" : "", name->stream);
    tl_cli_warn(where, "nothing matches \"%s\"%s%s", query->text,
                query->at == TRACELAKE_END ? ""
                : query->backward          ? " before that place"
                                           : " after that place",
                begins ? "" : " in this range");
    return TL_CLI_BAD;
}

static int run(struct tracelake *lake, struct tl_remote_name *name, struct tracelake_query *query,
               const struct tl_span *span, bool all, bool json)
{
    struct tracelake_error error;
    struct tracelake_found *found;
    int status = all ? TL_ARGS_GO : tl_remote_one_stream(lake, name);
    if (status == TL_CLI_USAGE)
        tl_cli_warn(name->trace, "or --all: in all of its streams, by time");
    if (status == TL_ARGS_GO)
        status = tl_span_insns(span, lake, name, &query->from, &query->to);
    if (status != TL_ARGS_GO)
        return status;
    query->trace = name->trace;
    query->stream = name->stream;
    if (!query->near && query->at != TRACELAKE_END)
        query->near = query->stream;
    tl_progress_wait(name->trace);
    const int result = tracelake_search(lake, query, &found, &error);
    tl_progress_end();
    if (result < 0)
        return tl_remote_fail_query(name->trace, &error);
    if (json)
        print_json(found, query->count);
    else
        print_text(found, all);
    if (query->count && !json)
        printf("# %" PRIu64 " in all, %" PRIu64 " in front of these: %s\n", found->total,
               found->before, found->what);
    else if (found->functions > 1 && !json) {
        fputs("# ", stdout);
        tl_print_plain(stdout, found->what, 0);
        putchar('\n');
    }
    if (found->more && found->n && !json)
        say_more(found, query);
    if (found->behind_from != TRACELAKE_END && !json)
        tl_cli_behind(found->behind_stream, found->behind_from);
    const bool none = found->n == 0 && !found->more;
    tracelake_found_free(found);
    return none ? say_none(name, query) : TL_CLI_DONE;
}

/* --after and --before: "INSN", or "STREAM:INSN" when searching all streams; a trailing "+N" skips
 * the first N hits there. */
static int parse_place(const char *text, char near[static 64], struct tracelake_query *query)
{
    const char *const colon = strrchr(text, ':');
    const char *const digits = colon ? colon + 1 : text;
    char *end;
    errno = 0;
    query->at = strtoull(digits, &end, 0);
    const bool given = end > digits && isdigit((unsigned char)*digits);
    if (given && *end == '+' && isdigit((unsigned char)end[1]))
        query->skip = strtoull(end + 1, &end, 0);
    if (errno || *end || !given || (colon && colon - text > 63))
        return tl_cli_usage("find", "\"%s\" is no place; give INSN or STREAM:INSN", text);
    if (colon) {
        snprintf(near, 64, "%.*s", (int)(colon - text), text);
        query->near = near;
    }
    return TL_ARGS_GO;
}

/* Options for searches that TEXT can name: what stands in front of it there. */
enum { DATA, WRITTEN, WORDED };
static const char *const words[WORDED] = {"data:", "written:"};

struct find_args {
    const char *worded[WORDED];
    char *joined;                              /* owned */
    const char *text[TRACELAKE_FIND_LINE + 1]; /* indexed by enum tracelake_find_kind */
    const char *after, *before;
    char near[64];
    bool all;
};

static int read_args(struct find_args *a, struct tracelake_query *query)
{
    int kinds = 0;
    for (int i = 0; i < WORDED; i++) {
        if (!a->worded[i])
            continue;
        const size_t n = strlen(words[i]) + strlen(a->worded[i]) + 1;
        free(a->joined);
        a->joined = malloc(n);
        if (!a->joined) {
            tl_cli_warn("find", "out of memory");
            return TL_CLI_BAD;
        }
        snprintf(a->joined, n, "%s%s", words[i], a->worded[i]);
        query->kind = TRACELAKE_FIND_TEXT;
        query->text = a->joined;
        kinds++;
    }
    for (int i = 0; i <= TRACELAKE_FIND_LINE; i++)
        if (a->text[i]) {
            query->kind = (enum tracelake_find_kind)i;
            query->text = a->text[i];
            kinds++;
        }
    if (kinds != 1)
        return tl_cli_usage("find", "say what: one of TEXT, --pc, --symbol, --event, --call, "
                                    "--mnemonic, --opcode, --text, --data, --written");
    if (a->after && a->before)
        return tl_cli_usage("find", "say one of --after, --before");
    query->at = TRACELAKE_END;
    query->backward = a->before != NULL;
    if (a->after || a->before) {
        const int status = parse_place(a->after ? a->after : a->before, a->near, query);
        if (status != TL_ARGS_GO)
            return status;
    }
    if (a->all && query->at != TRACELAKE_END && !query->near)
        return tl_cli_usage("find", "in all streams a place is STREAM:INSN");
    return query->kind == TRACELAKE_FIND_PC ? parse_addresses(query->text, query) : TL_ARGS_GO;
}

int tl_cmd_find(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct tracelake_query query = {.to = TRACELAKE_END, .limit = HITS_DEFAULT};
    struct tl_span span = {0};
    struct find_args a = {0};
    bool json = false;
    const struct tl_option args[] = {
        {"pc", 0, TL_ARG_TEXT, &a.text[TRACELAKE_FIND_PC], "ADDR[:ADDR]",
         "executions of an address (hexadecimal), or of a range (end excluded)"},
        {"symbol", 0, TL_ARG_TEXT, &a.text[TRACELAKE_FIND_SYMBOL], "S",
         "where execution enters a function, including by a return; if several have this name, any "
         "of them"},
        {"event", 0, TL_ARG_TEXT, &a.text[TRACELAKE_FIND_EVENT], "KIND",
         "exception, gap, event, hardware (DWT), software, mode, context, return, trace-on, note; "
         "or gaps for one reason: overflow, sync, bad-packet, no-image, no-path, discard, off, "
         "transport, switched-out. Several with commas"},
        {"call", 0, TL_ARG_TEXT, &a.text[TRACELAKE_FIND_CALL], "NAME",
         "calls of a function: its name, part of it, or a pattern (*, ?). Names of C++ and Rust: "
         "mangled or not, with or without arguments"},
        {"mnemonic", 0, TL_ARG_TEXT, &a.text[TRACELAKE_FIND_MNEMONIC], "M",
         "instructions by mnemonic (*, ?); with a space: part of the assembly text"},
        {"opcode", 0, TL_ARG_TEXT, &a.text[TRACELAKE_FIND_OPCODE], "DIGITS",
         "instructions by encoding, as in flow text, x for any digit"},
        {"text", 0, TL_ARG_TEXT, &a.text[TRACELAKE_FIND_LINE], "WORD",
         "what programs print by software trace, or hardware reports: lines that contain it (*, "
         "?)"},
        {"data", 0, TL_ARG_TEXT, &a.worded[DATA], "VAR",
         "accesses to a variable, address or range ADDR:ADDR, as trace of data tells (ETMv3, DWT, "
         "STF)"},
        {"written", 0, TL_ARG_TEXT, &a.worded[WRITTEN], "VAR", "… only those that write"},
        {"after", 0, TL_ARG_TEXT, &a.after, "PLACE",
         "only after instruction PLACE (with --all: STREAM:INSN); PLACE+N: after the first N hits "
         "there"},
        {"before", 0, TL_ARG_TEXT, &a.before, "PLACE", "… or before it, nearest first"},
        {"all", 0, TL_ARG_FLAG, &a.all, NULL, "in all streams, by time"},
        {"count", 0, TL_ARG_FLAG, &query.count, NULL, "also count all hits"},
        TL_SPAN_ARGS(span),
        {"limit", 0, TL_ARG_COUNT, &query.limit, "N",
         "maximum number of hits printed (default 100, 0: the server's limit)"},
        {"json", 0, TL_ARG_FLAG, &json, NULL, "as JSON"},
        TL_NAMES_ARG(remote),
        TL_REMOTE_ARGS(remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1 && argc - first != 2)
        status = tl_cli_usage("find", "give one TRACE/STREAM, and perhaps what to look for");
    if (status == TL_ARGS_GO && argc - first == 2)
        a.text[TRACELAKE_FIND_TEXT] = argv[first + 1];
    if (status == TL_ARGS_GO)
        status = tl_remote_name("find", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = tl_span_check("find", &span);
    if (status == TL_ARGS_GO)
        status = read_args(&a, &query);
    if (status == TL_ARGS_GO && a.all && *name.stream)
        status = tl_cli_usage("find", "--all is of a whole TRACE");
    if (status == TL_ARGS_GO && a.all && span.time.given)
        status = tl_cli_usage("find", "--time is of one stream: give TRACE/STREAM");
    if (query.limit == 0)
        query.limit = UINT64_MAX;
    struct tracelake *lake;
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &remote);
    if (status == TL_ARGS_GO) {
        status = run(lake, &name, &query, &span, a.all, json);
        tracelake_close(lake);
    }
    free(a.joined);
    return status;
}
