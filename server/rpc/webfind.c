/* SPDX-License-Identifier: MIT */
/*
 * Searching over HTTP, in a stream or in all streams of a trace, described in docs/http.md. The
 * kind of search follows from the argument that is present.
 */
#include "rpc/rpcint.h"
#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HITS 10000

/* Addresses are always hexadecimal, with or without 0x. */
static int parse_address(const char *text, uint64_t *out, struct tl_fail *fail)
{
    const char *const digits =
        text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 2 : text;
    const size_t n = strspn(digits, "0123456789abcdefABCDEF");
    if (n == 0 || digits[n] || n > 16)
        return tl_fail_set(fail, TL_USAGE, "pc=%.40s is no address; write hexadecimal digits",
                           text);
    *out = strtoull(digits, NULL, 16);
    return TL_OK;
}

/* Parse "ADDR" or "FROM:TO" (or "FROM-TO"), end exclusive. */
static int parse_pc(const char *text, struct tl_find_request *find, struct tl_fail *fail)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    char *const colon = strpbrk(copy, ":-");
    if (colon)
        *colon = 0;
    int rc = parse_address(copy, &find->pc_from, fail);
    if (rc == TL_OK && colon)
        rc = parse_address(colon + 1, &find->pc_to, fail);
    else
        find->pc_to = find->pc_from == UINT64_MAX ? UINT64_MAX : find->pc_from + 1;
    return rc;
}

/* Determine the kind from the first such argument present. */
static int parse_kind(const struct tl_http_request *request, struct tl_find_request *find,
                      struct tl_fail *fail)
{
    static const struct {
        const char *name;
        enum tl_find_kind kind;
    } kinds[] = {
        {"pc", TL_FIND_PC},
        {"symbol", TL_FIND_SYMBOL},
        {"event", TL_FIND_EVENT},
        {"call", TL_FIND_CALL},
        {"mnemonic", TL_FIND_MNEMONIC},
        {"opcode", TL_FIND_OPCODE},
        {"text", TL_FIND_LINE},
        {"q", TL_FIND_TEXT},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        find->text = tl_http_query(request, kinds[i].name);
        find->kind = kinds[i].kind;
        if (find->text)
            return find->kind == TL_FIND_PC ? parse_pc(find->text, find, fail) : TL_OK;
    }
    return tl_fail_set(fail, TL_USAGE,
                       "find what? Give pc=ADDR[:ADDR], symbol=NAME, event=KIND, call=NAME, "
                       "mnemonic=TEXT, opcode=DIGITS, text=WORD or q=TEXT");
}

static int parse_find(const struct tl_http_request *request, struct tl_find_request *find,
                      struct tl_fail *fail)
{
    const struct tl_http_arg args[] = {
        {"limit", TL_HTTP_U64, &find->limit},  {"at", TL_HTTP_U64, &find->at},
        {"skip", TL_HTTP_U64, &find->skip},    {"backward", TL_HTTP_FLAG, &find->backward},
        {"count", TL_HTTP_FLAG, &find->count}, {0}};
    *find = (struct tl_find_request){.trace = request->part[0], .limit = 100};
    int rc = parse_kind(request, find, fail);
    if (rc == TL_OK)
        rc = tl_http_args(request, args, fail);
    if (find->limit > MAX_HITS)
        find->limit = MAX_HITS;
    return rc;
}

static int respond(const struct tl_http_request *request, const struct tl_find_request *find,
                   struct tl_http_response *response)
{
    struct tl_lake *const lake = tl_web_lake(request);
    struct tl_found found;
    int rc = tl_lake_find(lake, find, &found, &response->fail);
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    if (rc >= 0)
        tl_webjson_found(&json, &found, find->count);
    if (rc >= 0)
        rc = tl_webjson_respond(response, &json);
    else if (!response->fail.text[0])
        rc = tl_fail_set(&response->fail, (enum tl_err)rc, "%.63s: %s", request->part[0],
                         tl_err_name(rc));
    tl_found_fini(&found);
    return rc;
}

int tl_web_find(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_find_request find;
    int rc = parse_find(request, &find, &response->fail);
    find.stream = request->part[1];
    find.near = tl_http_query(request, "at") ? find.stream : NULL;
    if (rc == TL_OK)
        rc = tl_web_insns_span(request, &find.from, &find.to, &response->fail);
    return rc < 0 ? tl_web_explain(request, response, rc) : respond(request, &find, response);
}

int tl_web_trace_find(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_find_request find;
    const int rc = parse_find(request, &find, &response->fail);
    find.near = tl_http_query(request, "near");
    return rc < 0 ? rc : respond(request, &find, response);
}
