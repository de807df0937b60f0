/* SPDX-License-Identifier: MIT */
/*
 * Iterator over a range's instructions: compressed STF from the server, decompressed and parsed
 * into flow items as it arrives. Instructions get an index; everything else is ignored: it can be
 * fetched as text.
 */
#include "error.h"
#include "stf/file.h"
#include "stf/flow/flow_reader.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 1024 };

struct tracelake_insns {
    struct tracelake_fetch *fetch;
    struct tl_stf_unpack *unpack;
    struct tl_stf_reader *reader;
    struct tl_stf_flow_reader *flow;
    struct tl_bytes in;  /* received piece, not yet decompressed */
    struct tl_buf plain; /* passed to the parser */
    bool any;            /* a piece was received */
    bool fetched;        /* no more pieces */
    bool ended;          /* no more records */
    bool branches;       /* the stream's positions are branches */
    uint64_t first;
    uint64_t count;
    uint64_t index;
    struct tracelake_insn *list; /* parsed, not yet returned from `at` on */
    size_t n, cap, at;
};

/* ---- items to instructions ---------------------------------------------------------------- */

static struct tracelake_insn *add(struct tracelake_insns *insns, enum tracelake_insn_kind kind,
                                  uint64_t pc)
{
    if (tl_grow(&insns->list, &insns->cap, insns->n + 1, sizeof *insns->list) < 0)
        return NULL;
    struct tracelake_insn *insn = &insns->list[insns->n++];
    *insn = (struct tracelake_insn){.index = insns->index++, .pc = pc, .kind = (uint8_t)kind};
    return insn;
}

static int add_block(struct tracelake_insns *insns, const struct tl_block *block, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct tracelake_insn *insn = add(insns, TRACELAKE_EXECUTED, block->pc + at);
        struct tl_insn one;
        if (!insn)
            return TL_NOMEM;
        tl_block_insn(block, at, &one);
        if (one.size == 2 || one.size == 4)
            insn->opcode = one.encoding;
        insn->size = (uint8_t)(one.size < sizeof insn->bytes ? one.size : sizeof insn->bytes);
        memcpy(insn->bytes, block->code + at, insn->size);
        at += insn->size;
    }
    return TL_OK;
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct tracelake_insns *insns = context;
    int result = TL_OK;
    for (size_t i = 0; i < n && result == TL_OK; i++) {
        const struct tl_item *item = &items[i];
        struct tracelake_insn *insn;
        if (item->kind == TL_ITEM_BLOCK) {
            result = add_block(insns, item->block, item->n);
        } else if (item->kind == TL_ITEM_UNKNOWN) {
            result = add(insns, TRACELAKE_UNKNOWN, item->pc) ? TL_OK : TL_NOMEM;
        } else if (tl_item_is_branch(item) && insns->branches) {
            const bool from = item->kind == TL_ITEM_BRANCH && item->flags & TL_ITEM_HAS_PC;
            insn = add(insns, TRACELAKE_BRANCH, from ? item->pc : 0);
            result = insn ? TL_OK : TL_NOMEM;
            if (insn)
                insn->target = tl_item_address(item);
        }
    }
    return result;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static int bad(struct tracelake_error *error, int result, const struct tl_fail *fail)
{
    return tl_client_fail_from(error, result, fail);
}

/* Receive and decompress until there are plain bytes. EOF: there are no more. */
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

/* Pass available plain bytes to the parser, or receive more, or signal the end. */
static int feed(struct tracelake_insns *insns, struct tracelake_error *error)
{
    const int result = more_plain(insns, error);
    if (result == TRACELAKE_OK)
        tl_stf_reader_push(insns->reader, (struct tl_bytes){insns->plain.p, insns->plain.n});
    else if (result == TRACELAKE_EOF)
        tl_stf_reader_finish(insns->reader);
    return result == TRACELAKE_EOF ? TRACELAKE_OK : result;
}

/* Everything was read: check the count against the announced one. */
static int end_of_range(const struct tracelake_insns *insns, struct tracelake_error *error)
{
    const uint64_t got = insns->index - insns->first;
    /* Positions of software trace are not instructions. */
    if (got == insns->count || got == 0)
        return TRACELAKE_EOF;
    return tl_client_fail(error, TRACELAKE_BAD,
                          "the server sent %llu instructions where it had promised %llu",
                          (unsigned long long)got, (unsigned long long)insns->count);
}

/* Read records until there are instructions again. */
static int next_batch(struct tracelake_insns *insns, struct tracelake_error *error)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    insns->n = insns->at = 0;
    while (insns->n < BATCH && !insns->ended) {
        struct tl_stf_record record;
        int result = tl_stf_reader_next(insns->reader, &record, &fail);
        if (result == TL_OK) {
            result = tl_stf_flow_reader_add(insns->flow, &record);
        } else if (result == TL_EOF || (result != TL_AGAIN && insns->fetched && !insns->any)) {
            insns->ended = true;
            result = tl_stf_flow_reader_finish(insns->flow);
        } else if (result == TL_AGAIN) {
            result = feed(insns, error);
            if (result < 0)
                return result;
        }
        if (result < 0)
            return bad(error, result, &fail);
    }
    return insns->n ? TRACELAKE_OK : end_of_range(insns, error);
}

/* ---- the iterator ------------------------------------------------------------------------- */

int tracelake_insns_open(struct tracelake_insns **out, struct tracelake *lake,
                         const struct tracelake_range *range, struct tracelake_error *error)
{
    struct tracelake_insns *insns = calloc(1, sizeof *insns);
    if (!insns)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    /* Streams of Open SoC Debug are counted in branches. */
    insns->branches = strncmp(range->stream, "di.", 3) == 0;
    int result = TRACELAKE_NOMEM;
    if (tl_stf_unpack_new(&insns->unpack) < 0 || tl_stf_reader_new(&insns->reader) < 0 ||
        tl_stf_flow_reader_new(&insns->flow, on_items, insns) < 0)
        tl_client_fail(error, result, "out of memory");
    else
        result = tracelake_fetch_open(&insns->fetch, lake, range, TRACELAKE_ZSTF, error);
    /* The first piece shows whether the stream exists, and how long the range is. */
    if (result == TRACELAKE_OK)
        result = feed(insns, error);
    if (result < 0) {
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
    tl_stf_reader_free(insns->reader);
    tl_stf_flow_reader_free(insns->flow);
    tl_buf_fini(&insns->plain);
    free(insns->list);
    free(insns);
}

void tracelake_insns_extent(const struct tracelake_insns *insns, uint64_t *first, uint64_t *count)
{
    *first = insns->first;
    *count = insns->count;
}

int tracelake_insns_next(struct tracelake_insns *insns, struct tracelake_insn *out,
                         struct tracelake_error *error)
{
    if (insns->at == insns->n) {
        const int result = next_batch(insns, error);
        if (result < 0)
            return result;
    }
    *out = insns->list[insns->at++];
    return TRACELAKE_OK;
}
