/* SPDX-License-Identifier: MIT */
/*
 * Parses the tokens file line by line, and reports the line that is wrong. A file that others can
 * read or write is refused, since it grants what the server permits.
 */
#include "net/tokens.h"

#include "base/digits.h"
#include "base/lifetime.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MIN 16 /* minimum characters of a token */

/* ---- parts of a line ------------------------------------------------------------------------ */

int tl_token_digest(const char *token, size_t n, uint8_t out[static TL_TOKEN_DIGEST])
{
    return EVP_Digest(token, n, out, NULL, EVP_sha256(), NULL) == 1 ? TL_OK : TL_NOMEM;
}

void tl_token_id(const struct tl_token *token, char out[static TL_TOKEN_ID + 1])
{
    for (size_t i = 0; i < TL_TOKEN_ID / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", token->digest[i]);
}

static bool parse_hex(const char *text, uint8_t out[static TL_TOKEN_DIGEST])
{
    for (size_t i = 0; i < 2 * TL_TOKEN_DIGEST; i++) {
        const int digit = tl_hex_digit(text[i]);
        if (digit < 0)
            return false;
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | digit);
    }
    return text[2 * TL_TOKEN_DIGEST] == 0;
}

static bool parse_role(struct tl_token *token, const char *name)
{
    static const struct {
        const char *name;
        unsigned roles;
    } known[] = {
        {"read", TL_ROLE_READ}, {"push", TL_ROLE_READ | TL_ROLE_PUSH}, {"admin", TL_ROLE_ALL}};
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) {
            token->role = known[i].name;
            token->roles = known[i].roles;
            return true;
        }
    return false;
}

/* Does it match `pattern`, in which 0 stands for a digit? */
static bool has_form(const char *text, const char *pattern)
{
    for (; *pattern; text++, pattern++)
        if (*pattern == '0' ? *text < '0' || *text > '9' : *text != *pattern)
            return false;
    return !*text;
}

int tl_token_expiry_parse(const char *text, int64_t *out)
{
    struct tm tm = {0};
    uint64_t age_s, bytes;
    if (tl_lifetime_parse(text, &age_s, &bytes) == TL_OK && age_s && !bytes) {
        *out = (int64_t)time(NULL) + (int64_t)age_s;
        return TL_OK;
    }
    if (!has_form(text, "0000-00-00") && !has_form(text, "0000-00-00T00:00:00Z"))
        return TL_USAGE;
    (void)!sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                  &tm.tm_hour, &tm.tm_min, &tm.tm_sec);
    if (tm.tm_year < 1970 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
        tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 59)
        return TL_USAGE;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *out = timegm(&tm);
    return *out > 0 && tm.tm_year < 8100 ? TL_OK : TL_USAGE;
}

char *tl_token_expiry_text(int64_t expires, char out[static 24])
{
    const time_t at = (time_t)expires;
    struct tm tm;
    gmtime_r(&at, &tm);
    strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return out;
}

static int parse_who(struct tl_token *token, const char *who, struct tl_fail *fail)
{
    const size_t n = strlen(who);
    if (!strncmp(who, "sha256:", 7))
        return parse_hex(who + 7, token->digest)
                   ? TL_OK
                   : tl_fail_set(fail, TL_BAD, "sha256: and 64 hex digits are wanted");
    if (!strncmp(who, "cert:", 5)) {
        if (n - 5 < 1 || n - 5 >= sizeof token->cert)
            return tl_fail_set(fail, TL_BAD, "cert: and a name of 1 to %zu characters are wanted",
                               sizeof token->cert - 1);
        strcpy(token->cert, who + 5);
        return tl_token_digest(who, n, token->digest);
    }
    if (n < MIN || n > TL_TOKEN_MAX)
        return tl_fail_set(fail, TL_BAD,
                           "a token has %d to %d characters; `tracelake token add` makes a good "
                           "one",
                           MIN, TL_TOKEN_MAX);
    token->plain = true;
    return tl_token_digest(who, n, token->digest);
}

static int parse_word(struct tl_token *token, const char *word, struct tl_fail *fail)
{
    if (!strncmp(word, "name=", 5)) {
        if (!word[5] || strlen(word + 5) >= sizeof token->name)
            return tl_fail_set(fail, TL_BAD, "name= and 1 to %zu characters are wanted",
                               sizeof token->name - 1);
        strcpy(token->name, word + 5);
        return TL_OK;
    }
    if (!strncmp(word, "expires=", 8))
        return !strchr(word, '-') || tl_token_expiry_parse(word + 8, &token->expires) < 0
                   ? tl_fail_set(fail, TL_BAD, "\"%.40s\" is no date: write 2027-01-31T00:00:00Z",
                                 word + 8)
                   : TL_OK;
    const int quota = tl_quota_add(&token->quota, word);
    if (quota != TL_USAGE)
        return quota == TL_OK
                   ? TL_OK
                   : tl_fail_set(
                         fail, TL_BAD,
                         "\"%.40s\" is no quota: write bytes=200G, traces=1000, rate=50M or "
                         "calls=100",
                         word);
    const int rc = tl_scope_add(&token->scope, word);
    return rc != TL_USAGE ? rc
                          : tl_fail_set(fail, TL_BAD,
                                        "\"%.40s\" is no scope: write rig=GLOB[,GLOB…] or "
                                        "label=KEY=VALUE",
                                        word);
}

static int add_holder(struct tl_token *token)
{
    char id[TL_TOKEN_ID + 1];
    tl_token_id(token, id);
    if (!tl_quota_any(&token->quota))
        return TL_OK;
    token->holder = tl_holder_new(*token->name   ? token->name
                                  : *token->cert ? token->cert
                                                 : id,
                                  &token->quota);
    return token->holder ? TL_OK : TL_NOMEM;
}

int tl_token_parse(struct tl_token *out, char *line, struct tl_fail *fail)
{
    static const char blank[] = " \t\r\n";
    char *save = NULL;
    *out = (struct tl_token){0};
    const char *const who = strtok_r(line, blank, &save);
    if (!who || *who == '#')
        return TL_EOF;
    if (!parse_role(out, strtok_r(NULL, blank, &save)))
        return tl_fail_set(fail, TL_BAD, "write \"token role\", the role is read, push or admin");
    int rc = parse_who(out, who, fail);
    for (const char *word; rc == TL_OK && (word = strtok_r(NULL, blank, &save));)
        rc = parse_word(out, word, fail);
    if (rc == TL_OK)
        rc = add_holder(out);
    if (rc < 0)
        tl_token_fini(out);
    return rc;
}

void tl_token_fini(struct tl_token *token)
{
    tl_scope_put(token->scope);
    token->scope = NULL;
    tl_holder_put(token->holder);
    token->holder = NULL;
}

/* ---- the file ------------------------------------------------------------------------------- */

static bool is_there(const struct tl_token *tokens, size_t n, const struct tl_token *token)
{
    for (size_t i = 0; i < n; i++)
        if (!memcmp(tokens[i].digest, token->digest, TL_TOKEN_DIGEST))
            return true;
    return false;
}

/* Whoever can read it may find tokens in it; whoever can write it may add some. */
static int check_mode(FILE *file, const char *path, struct tl_fail *fail)
{
    struct stat st;
    if (fstat(fileno(file), &st))
        return tl_fail_set(fail, TL_IO, "%.120s: %s", path, strerror(errno));
    if (st.st_mode & S_IRWXO)
        return tl_fail_set(fail, TL_BAD,
                           "%.120s: everyone on this machine may use it (mode %03o); chmod o= it",
                           path, (unsigned)(st.st_mode & 0777));
    return TL_OK;
}

struct list {
    struct tl_token *at;
    size_t n, cap;
};

static int add_line(struct list *list, char *line, unsigned number, const char *path,
                    struct tl_fail *fail)
{
    struct tl_token token;
    struct tl_fail why = {.offset = TL_NO_OFFSET};
    int rc = tl_token_parse(&token, line, &why);
    if (rc == TL_EOF)
        return TL_OK;
    if (rc == TL_BAD)
        return tl_fail_set(fail, rc, "%.80s: line %u: %.120s", path, number, why.text);
    if (rc < 0)
        return rc;
    if (is_there(list->at, list->n, &token))
        rc = tl_fail_set(fail, TL_BAD, "%.100s: line %u: this token is on an earlier line", path,
                         number);
    if (rc == TL_OK)
        rc = tl_grow(&list->at, &list->cap, list->n + 1, sizeof *list->at);
    if (rc < 0)
        tl_token_fini(&token);
    else
        list->at[list->n++] = token;
    return rc;
}

int tl_tokens_read(struct tl_token **out, size_t *n, const char *path, struct tl_fail *fail)
{
    FILE *const file = fopen(path, "re");
    if (!file)
        return tl_fail_set(fail, TL_IO, "%.120s: %s", path, strerror(errno));
    struct list list = {0};
    char *line = NULL;
    size_t cap = 0;
    int rc = check_mode(file, path, fail);
    for (unsigned number = 1; rc == TL_OK && getline(&line, &cap, file) >= 0; number++)
        rc = add_line(&list, line, number, path, fail);
    free(line);
    fclose(file);
    if (rc < 0) {
        tl_tokens_free(list.at, list.n);
        return rc;
    }
    *out = list.at;
    *n = list.n;
    return TL_OK;
}

void tl_tokens_free(struct tl_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tl_token_fini(&tokens[i]);
    free(tokens);
}
