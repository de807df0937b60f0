/* SPDX-License-Identifier: MIT */
/* An iterator over a range's instructions: compressed STF from the server, read as it comes. */
#include "stf/insns.h"
#include "error.h"
#include "stf/file.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 256 };

struct tracelake_insns {
    struct tracelake_fetch *fetch;
    struct tl_stf_unpack *unpack;
    struct tl_stf_insns *reader;
    struct tl_bytes in;  /* of the fetched piece, not yet unpacked */
    struct tl_buf plain; /* given to the reader */
    bool any;            /* there was a piece */
    bool fetched;        /* there are no more pieces */
    uint64_t first;
    uint64_t index;
    uint64_t count;
    struct tl_stf_insn batch[BATCH];
    size_t n, at;
};

static int more_plain(struct tracelake_insns *insns, struct tracelake_error *error);

int tracelake_insns_open(struct tracelake_insns **out, struct tracelake *lake,
                         const struct tracelake_range *range, struct tracelake_error *error)
{
    struct tracelake_insns *insns = calloc(1, sizeof *insns);
    if (!insns)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    int result = TRACELAKE_NOMEM;
    if (tl_stf_unpack_new(&insns->unpack) < 0 || tl_stf_insns_new(&insns->reader) < 0)
        tl_client_fail(error, result, "out of memory");
    else
        result = tracelake_fetch_open(&insns->fetch, lake, range, TRACELAKE_ZSTF, error);
    /* The first piece tells whether the stream is there, and how long the range is. */
    if (result == TRACELAKE_OK)
        result = more_plain(insns, error);
    if (result < 0 && result != TRACELAKE_EOF) {
        tracelake_insns_close(insns);
        return result;
    }
    tracelake_fetch_extent(insns->fetch, &insns->first, &insns->count);
    insns->index = insns->first;
    *out = insns;
    return TRACELAKE_OK;
}

void tracelake_insns_close(struct tracelake_insns *insns)
{
    if (!insns)
        return;
    tracelake_fetch_close(insns->fetch);
    tl_stf_unpack_free(insns->unpack);
    tl_stf_insns_free(insns->reader);
    tl_buf_fini(&insns->plain);
    free(insns);
}

void tracelake_insns_extent(const struct tracelake_insns *insns, uint64_t *first, uint64_t *count)
{
    *first = insns->first;
    *count = insns->count;
}

static int bad(struct tracelake_error *error, int result, const struct tl_fail *fail)
{
    return tl_client_fail_from(error, result, fail);
}

/* Fetch and unpack until there are plain bytes. EOF: there are no more. */
static int more_plain(struct tracelake_insns *insns, struct tracelake_error *error)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    tl_buf_reset(&insns->plain);
    for (;;) {
        int result = tl_stf_unpack_push(insns->unpack, &insns->in, &insns->plain, &fail);
        if (result < 0)
            return bad(error, result, &fail);
        if (insns->plain.n)
            return TRACELAKE_OK;
        if (insns->in.n)
            continue;
        if (insns->fetched)
            return TRACELAKE_EOF;
        const void *p;
        size_t n;
        result = tracelake_fetch_next(insns->fetch, &p, &n, error);
        if (result == TRACELAKE_OK) {
            insns->in = (struct tl_bytes){p, n};
            insns->any = true;
            continue;
        }
        if (result != TRACELAKE_EOF)
            return result;
        insns->fetched = true;
        if (!insns->any)
            return TRACELAKE_EOF;
        result = tl_stf_unpack_finish(insns->unpack, &fail);
        if (result < 0)
            return bad(error, result, &fail);
    }
}

/* All was read: was it all that was promised? */
static int end_of_range(const struct tracelake_insns *insns, struct tracelake_error *error)
{
    const uint64_t got = insns->index - insns->first;
    if (got == insns->count)
        return TRACELAKE_EOF;
    return tl_client_fail(error, TRACELAKE_BAD,
                          "the server sent %llu instructions where it had promised %llu",
                          (unsigned long long)got, (unsigned long long)insns->count);
}

static int next_batch(struct tracelake_insns *insns, struct tracelake_error *error)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    for (;;) {
        if (insns->plain.n) {
            tl_stf_insns_push(insns->reader, (struct tl_bytes){insns->plain.p, insns->plain.n});
            insns->plain.n = 0; /* the bytes stay in place until the reader wants more */
        }
        int result = tl_stf_insns_read(insns->reader, insns->batch, BATCH, &fail);
        if (result > 0) {
            insns->n = (size_t)result;
            insns->at = 0;
            return TRACELAKE_OK;
        }
        if (result == TL_EOF || (insns->fetched && !insns->any))
            return end_of_range(insns, error);
        if (result != TL_AGAIN)
            return bad(error, result, &fail);
        result = more_plain(insns, error);
        if (result == TRACELAKE_EOF)
            tl_stf_insns_finish(insns->reader);
        else if (result < 0)
            return result;
    }
}

int tracelake_insns_next(struct tracelake_insns *insns, struct tracelake_insn *out,
                         struct tracelake_error *error)
{
    if (insns->at == insns->n) {
        insns->at = insns->n = 0;
        const int result = next_batch(insns, error);
        if (result < 0)
            return result;
    }
    const struct tl_stf_insn *from = &insns->batch[insns->at++];
    uint8_t bytes[16];
    const uint32_t size = tl_stf_insn_bytes(insns->reader, from, bytes);
    *out = (struct tracelake_insn){.index = insns->index++, .pc = from->pc};
    if (size == from->size)
        out->opcode = from->opcode;
    out->size = (uint8_t)(size < sizeof out->bytes ? size : sizeof out->bytes);
    memcpy(out->bytes, bytes, out->size);
    return TRACELAKE_OK;
}
