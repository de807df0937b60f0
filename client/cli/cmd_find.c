/* SPDX-License-Identifier: MIT */
/* `tracelake find`: where an address, a function or an event occurs. */
#include "cli/plain.h"
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An address: hexadecimal, with or without 0x, as flow text has it. */
static int parse_address(const char *text, size_t n, uint64_t *out)
{
    char digits[24];
    char *end;
    if (n == 0 || n >= sizeof digits || text[0] == '-' || text[0] == '+' || text[0] == ' ')
        return TL_USAGE;
    memcpy(digits, text, n);
    digits[n] = 0;
    errno = 0;
    *out = strtoull(digits, &end, 16);
    return errno || *end ? TL_USAGE : TL_OK;
}

static int parse_addresses(const char *text, struct tracelake_query *query)
{
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    if (parse_address(text, n, &query->pc_from) < 0 ||
        (colon && parse_address(colon + 1, strlen(colon + 1), &query->pc_to) < 0))
        return tl_cli_usage("find", "--pc %s: give ADDR or ADDR:ADDR, hexadecimal", text);
    if (!colon)
        query->pc_to = query->pc_from + 1;
    if (query->pc_from >= query->pc_to)
        return tl_cli_usage("find", "--pc %s: the range is empty", text);
    return TL_ARGS_GO;
}

static void print_text(const struct tracelake_hit *hits, size_t n)
{
    if (n)
        puts("# insn time byte pc what");
    for (size_t i = 0; i < n; i++) {
        const struct tracelake_hit *h = &hits[i];
        char time[24] = "-";
        if (h->at.has_time)
            snprintf(time, sizeof time, "%" PRIu64, h->at.time);
        printf("%" PRIu64 " %s %" PRIu64 " %016" PRIx64 " ", h->at.insn, time, h->at.byte, h->pc);
        tl_print_plain(stdout, h->text, 0);
        putchar('\n');
    }
}

static void print_json(const struct tracelake_hit *hits, size_t n, bool more)
{
    printf("{\"hits\":[");
    for (size_t i = 0; i < n; i++) {
        const struct tracelake_hit *h = &hits[i];
        printf("%s{\"insn\":%" PRIu64 ",", i ? ",\n " : "", h->at.insn);
        if (h->at.has_time)
            printf("\"time\":%" PRIu64 ",", h->at.time);
        printf("\"byte\":%" PRIu64 ",\"pc\":\"0x%" PRIx64 "\",\"text\":", h->at.byte, h->pc);
        tl_print_json_text(h->text);
        putchar('}');
    }
    printf("],\"more\":%s}\n", more ? "true" : "false");
}

static int run(struct tracelake *lake, struct tl_remote_name *name, struct tracelake_query *query,
               bool json)
{
    struct tracelake_error error;
    struct tracelake_hit *hits;
    size_t n;
    bool more;
    const int status = tl_remote_one_stream(lake, name);
    if (status != TL_ARGS_GO)
        return status;
    query->trace = name->trace;
    query->stream = name->stream;
    if (tracelake_find(lake, query, &hits, &n, &more, &error) < 0)
        return tl_remote_fail_query(name->trace, &error);
    if (json)
        print_json(hits, n, more);
    else
        print_text(hits, n);
    if (more && !json)
        tl_cli_warn(name->trace,
                    "there are more than %zu; raise --limit, or go on with --insn %" PRIu64 ":", n,
                    n ? hits[n - 1].at.insn + 1 : query->from);
    free(hits);
    return TL_CLI_DONE;
}

int tl_cmd_find(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct tracelake_query query = {.to = TRACELAKE_END};
    struct tl_arg_range insn = {0, TRACELAKE_END, false};
    const char *pc = NULL, *symbol = NULL, *event = NULL;
    bool json = false;
    const struct tl_arg args[] = {
        {"pc", 0, TL_ARG_TEXT, &pc},
        {"symbol", 0, TL_ARG_TEXT, &symbol},
        {"event", 0, TL_ARG_TEXT, &event},
        {"insn", 0, TL_ARG_RANGE, &insn},
        {"limit", 0, TL_ARG_U64, &query.limit},
        {"json", 0, TL_ARG_FLAG, &json},
        TL_REMOTE_ARGS(remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("find", "give one TRACE/STREAM");
    if (status == TL_ARGS_GO)
        status = tl_remote_name("find", argv[first], &name);
    if (status == TL_ARGS_GO && !pc + !symbol + !event != 2)
        status = tl_cli_usage("find", "say one of --pc, --symbol, --event");
    if (status == TL_ARGS_GO && pc)
        status = parse_addresses(pc, &query);
    query.kind = pc ? TRACELAKE_FIND_PC : symbol ? TRACELAKE_FIND_SYMBOL : TRACELAKE_FIND_EVENT;
    query.text = symbol ? symbol : event;
    query.from = insn.from;
    query.to = insn.to;
    struct tracelake *lake;
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = run(lake, &name, &query, json);
    tracelake_close(lake);
    return status;
}
