/* SPDX-License-Identifier: MIT */
/*
 * What a server has of a capture, and whether it is this one. The checksum is always computed,
 * since it is needed while the capture is incomplete, and costs little beside the SHA-256.
 */
#include "stored.h"

#include "ask.h"
#include "base/crc32c.h"
#include "tracelake/v1/ingest.pb-c.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tracelake_content {
    uint32_t sum;
    EVP_MD_CTX *sha; /* NULL: not needed */
    bool failed;
};

static int get_offset(struct tracelake *lake, const char *trace, bool identify,
                      struct tracelake_stored *out, struct tracelake_error *error)
{
    Tracelake__V1__GetOffsetRequest request = TRACELAKE__V1__GET_OFFSET_REQUEST__INIT;
    Tracelake__V1__GetOffsetReply *reply;
    request.trace = tl_ask_text(trace);
    request.identify = identify;
    const int result = tl_ask_once(lake, "/tracelake.v1.Ingest/GetOffset", 0, &request.base,
                                   &tracelake__v1__get_offset_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    *out = (struct tracelake_stored){.durable = reply->durable, .complete = reply->complete};
    snprintf(out->content, sizeof out->content, "%s", reply->content);
    tracelake__v1__get_offset_reply__free_unpacked(reply, NULL);
    return TRACELAKE_OK;
}

int tracelake_offset(struct tracelake *lake, const char *trace, uint64_t *durable, bool *complete,
                     struct tracelake_error *error)
{
    struct tracelake_stored stored;
    const int result = get_offset(lake, trace, false, &stored, error);
    if (result < 0)
        return result;
    *durable = stored.durable;
    if (complete)
        *complete = stored.complete;
    return TRACELAKE_OK;
}

int tracelake_get_stored(struct tracelake *lake, const char *trace, struct tracelake_stored *out,
                         struct tracelake_error *error)
{
    struct tracelake_trace *row;
    const int result = get_offset(lake, trace, true, out, error);
    if (result < 0 || out->content[0] || !out->complete)
        return result;
    /* An earlier server does not say it there. */
    if (tracelake_get_trace(lake, trace, &row, NULL) == TRACELAKE_OK) {
        snprintf(out->content, sizeof out->content, "%s", row->content ? row->content : "");
        tracelake_trace_free(row);
    }
    return TRACELAKE_OK;
}

/* ---- comparing ---------------------------------------------------------------------------- */

bool tl_content_sum(const char *content, uint32_t *sum)
{
    static const char kind[] = "crc32c:";
    char *end;
    if (strncmp(content, kind, sizeof kind - 1) != 0 || strlen(content) != sizeof kind - 1 + 8)
        return false;
    *sum = (uint32_t)strtoul(content + sizeof kind - 1, &end, 16);
    return !*end;
}

static bool is_sha(const char *hash)
{
    return strncmp(hash, "sha256:", 7) == 0;
}

int tracelake_content_new(struct tracelake_content **out, const char *hash,
                          struct tracelake_error *error)
{
    struct tracelake_content *const content = calloc(1, sizeof *content);
    bool ok = content != NULL;
    if (ok && is_sha(hash)) {
        content->sha = EVP_MD_CTX_new();
        ok = content->sha && EVP_DigestInit_ex(content->sha, EVP_sha256(), NULL);
    }
    if (!ok) {
        tracelake_content_free(content);
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    }
    *out = content;
    return TRACELAKE_OK;
}

void tracelake_content_free(struct tracelake_content *content)
{
    if (content)
        EVP_MD_CTX_free(content->sha);
    free(content);
}

void tracelake_content_add(struct tracelake_content *content, const void *data, size_t n)
{
    content->sum = tl_crc32c(content->sum, data, n);
    if (content->sha && !EVP_DigestUpdate(content->sha, data, n))
        content->failed = true;
}

/* The SHA-256 of what was added so far. */
static bool format_sha(const struct tracelake_content *content, char out[static 72])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    EVP_MD_CTX *const copy = EVP_MD_CTX_new();
    const bool ok = copy && EVP_MD_CTX_copy_ex(copy, content->sha) &&
                    EVP_DigestFinal_ex(copy, digest, &n) && n == 32;
    EVP_MD_CTX_free(copy);
    snprintf(out, 72, "sha256:");
    for (unsigned i = 0; i < n; i++)
        snprintf(out + 7 + 2 * (size_t)i, 3, "%02x", digest[i]);
    return ok;
}

int tracelake_content_same(const struct tracelake_content *content, const char *hash,
                           struct tracelake_error *error)
{
    char sha[72];
    uint32_t sum;
    bool same;
    if (tl_content_sum(hash, &sum))
        same = sum == content->sum;
    else if (!is_sha(hash) || !content->sha)
        return tl_client_fail(error, TRACELAKE_UNSUPPORTED,
                              "the server cannot tell whether it has these bytes");
    else if (content->failed || !format_sha(content, sha))
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    else
        same = strcmp(sha, hash) == 0;
    return same ? TRACELAKE_OK
                : tl_client_fail(error, TRACELAKE_EXISTS,
                                 "the server has other bytes: another capture");
}
