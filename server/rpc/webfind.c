/* SPDX-License-Identifier: MIT */
/*
 * What a search over HTTP has that its message has not: addresses as text, a smaller limit, and
 * places within the stream of the path. Described in docs/http.md.
 */
#include "rpc/weblookups.h"

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
static int parse_pc(const char *text, Tracelake__V1__PcRange *out, struct tl_fail *fail)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    char *const colon = strpbrk(copy, ":-");
    if (colon)
        *colon = 0;
    int rc = parse_address(copy, &out->begin, fail);
    if (rc == TL_OK && colon)
        rc = parse_address(colon + 1, &out->to, fail);
    if (rc == TL_OK && colon && out->to <= out->begin)
        rc = tl_fail_set(fail, TL_USAGE, "pc=%.40s ends before it begins; the end is excluded",
                         text);
    if (!colon)
        out->to = out->begin == UINT64_MAX ? UINT64_MAX : out->begin + 1;
    return rc;
}

/* Addresses come before anything else that is searched. */
static void begin_find(const struct tl_http_request *request, struct tl_reply *memory,
                       void *message)
{
    Tracelake__V1__FindRequest *const r = message;
    r->limit = 100;
    if (!tl_http_query(request, "pc"))
        return;
    r->what_case = TRACELAKE__V1__FIND_REQUEST__WHAT_PC;
    r->pc = tl_reply_new(memory, &tracelake__v1__pc_range__descriptor);
}

static int take_find(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__FindRequest *const r = message;
    if (r->limit > MAX_HITS)
        r->limit = MAX_HITS;
    if (r->what_case == 0)
        return tl_fail_set(fail, TL_USAGE,
                           "find what? Give pc=ADDR[:ADDR], symbol=NAME, event=KIND, call=NAME, "
                           "mnemonic=TEXT, opcode=DIGITS, text=WORD or q=TEXT");
    return r->what_case == TRACELAKE__V1__FIND_REQUEST__WHAT_PC
               ? parse_pc(tl_http_query(request, "pc"), r->pc, fail)
               : TL_OK;
}

/* Hits before or after `at` are those of this stream. */
static int take_find_here(const struct tl_http_request *request, void *message,
                          struct tl_fail *fail)
{
    Tracelake__V1__FindRequest *const r = message;
    if (tl_http_query(request, "at"))
        r->near = r->stream;
    return take_find(request, message, fail);
}

const struct tl_web_question tl_question_find = {
    .answer = tl_answer_find, .begin = begin_find, .take = take_find_here};
const struct tl_web_question tl_question_find_all = {
    .answer = tl_answer_find, .begin = begin_find, .take = take_find};
