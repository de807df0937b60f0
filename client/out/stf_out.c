/* SPDX-License-Identifier: MIT */
/*
 * Writes an STF file whose chunks are compressed by a pool of threads. Chunks finish in any order,
 * so each is written when all before it were, and markers are kept until the index is written.
 */
#include "out/stf_out.h"

#include "base/pages.h"
#include "base/whole.h"
#include "out/outfile.h"
#include "stf/flow/flow_writer.h"
#include "stf/zstf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK TL_HUGE_PAGE /* bytes that nearly every chunk fits in */
#define FEW   (64u << 10)  /* bytes of a buffer for those that do not need a large page */
#define MORE  (FEW / 2)    /* a chunk that has more gets one */

struct tl_cli_stf {
    struct tl_outfile to;
    struct tl_fail *fail; /* owned by the caller */
    struct tl_stf_flow *flow;
    struct tl_zstf_writer *writer;
    struct tl_zstf_pool *pool;
    struct tl_zstf_job job; /* the next chunk */
    struct tl_buf bytes;
    uint64_t done; /* markers in chunks that are in the pool, or written */
    bool begun;    /* a chunk has been begun */
};

static int put(struct tl_cli_stf *out)
{
    const size_t n = out->bytes.n;
    const bool ok = tl_write_all(out->to.file, out->bytes.p, n);
    tl_buf_reset(&out->bytes);
    if (!ok)
        tl_fail_set(out->fail, TL_IO, "%.150s: cannot write: %s", out->to.path, strerror(errno));
    return ok ? TL_OK : TL_IO;
}

static int write_frame(const struct tl_zstf_job *job)
{
    struct tl_cli_stf *const out = job->context;
    const struct tl_bytes frame = {job->frame.p, job->frame.n};
    const int rc = tl_zstf_writer_frame(out->writer, frame, job->stf.n, job->markers, job->start_pc,
                                        &out->bytes);
    return rc < 0 ? rc : put(out);
}

int tl_cli_stf_pool(struct tl_zstf_pool **out, unsigned threads)
{
    return tl_zstf_pool_new(out, TL_ZSTF_LEVEL, threads, write_frame);
}

void tl_cli_stf_free(struct tl_cli_stf *out)
{
    if (!out)
        return;
    tl_outfile_drop(&out->to);
    tl_stf_flow_free(out->flow);
    tl_zstf_writer_free(out->writer);
    tl_buf_fini(&out->job.stf);
    tl_buf_fini(&out->bytes);
    free(out);
}

/* Exchange the chunk in the flow's hands, and job.stf. */
static void swap(struct tl_cli_stf *out)
{
    struct tl_stf_piece piece = {.stf = out->job.stf};
    tl_stf_flow_swap(out->flow, &piece);
    out->job.stf = piece.stf;
}

/* Give the flow room for a chunk, if possible that of an earlier one, whose pages are in the cache.
 */
static int begin_chunk(struct tl_cli_stf *out)
{
    if (!out->job.stf.p) {
        const size_t size = out->begun ? CHUNK : FEW;
        uint8_t *const p = out->begun ? tl_pages(CHUNK) : malloc(FEW);
        out->begun = true;
        if (!p)
            return TL_NOMEM;
        out->job.stf = (struct tl_buf){.p = p, .cap = size};
    }
    swap(out);
    return TL_OK;
}

/* Many streams fill only a small part of their first chunk; as soon as it has more, a large page
 * takes its place, instead of hundreds of small ones, each of which is a page fault. */
static int make_room(struct tl_cli_stf *out)
{
    const struct tl_buf chunk = tl_stf_flow_piece(out->flow).stf;
    if (chunk.n <= MORE || chunk.cap >= CHUNK)
        return TL_OK;
    struct tl_buf room = {.p = tl_pages(CHUNK), .cap = CHUNK};
    if (!room.p)
        return TL_NOMEM;
    tl_stf_flow_move(out->flow, &room);
    tl_buf_fini(&room);
    return TL_OK;
}

int tl_cli_stf_new(struct tl_cli_stf **result, const char *path, const char *input, enum tl_isa isa,
                   struct tl_zstf_pool *pool, struct tl_fail *fail)
{
    *result = NULL;
    struct tl_cli_stf *const out = calloc(1, sizeof *out);
    if (!out)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    out->pool = pool;
    out->fail = fail;
    out->job.context = out;
    const struct tl_stf_flow_options options = {.isa = isa, .comments = true};
    int rc = tl_stf_flow_new(&out->flow, &options, NULL);
    if (rc == TL_OK)
        rc = begin_chunk(out);
    if (rc == TL_OK)
        rc = tl_zstf_writer_new(&out->writer, 0, 0);
    if (rc == TL_OK)
        rc = tl_zstf_writer_begin(out->writer, &out->bytes);
    if (rc < 0)
        tl_fail_set(fail, (enum tl_err)rc, "out of memory");
    if (rc == TL_OK)
        rc = tl_outfile_begin(&out->to, path, input, fail);
    if (rc == TL_OK)
        rc = put(out);
    if (rc < 0)
        tl_cli_stf_free(out);
    else
        *result = out;
    return rc;
}

static int add_chunk(struct tl_cli_stf *out)
{
    const uint64_t markers = tl_stf_flow_markers(out->flow);
    out->job.markers = markers - out->done;
    out->job.start_pc = tl_stf_flow_chunk_pc(out->flow);
    out->done = markers;
    swap(out);
    const int rc = tl_zstf_pool_add(out->pool, &out->job);
    return rc < 0 ? rc : begin_chunk(out);
}

int tl_cli_stf_items(struct tl_cli_stf *out, const struct tl_item *items, size_t n)
{
    struct tl_stf_flow_at at = {0};
    int rc = make_room(out);
    if (rc < 0)
        return rc;
    while ((rc = tl_stf_flow_items(out->flow, items, n, out->done + TL_ZSTF_MARKERS, &at)) ==
           TL_AGAIN) {
        rc = add_chunk(out);
        if (rc < 0)
            return rc;
    }
    return rc;
}

int tl_cli_stf_finish(struct tl_cli_stf *out, uint64_t *insns)
{
    uint8_t head[TL_ZSTF_HEAD];
    int rc = tl_stf_flow_finish(out->flow);
    if (rc == TL_OK && (tl_stf_flow_bytes(out->flow).n || out->done == 0))
        rc = add_chunk(out);
    if (rc == TL_OK)
        rc = tl_zstf_pool_drain(out->pool);
    if (rc == TL_OK)
        rc = tl_zstf_writer_finish(out->writer, (struct tl_bytes){0}, &out->bytes, head);
    if (rc == TL_OK)
        rc = put(out);
    if (rc == TL_OK && fseek(out->to.file, 0, SEEK_SET) == 0)
        (void)fwrite(head, 1, sizeof head, out->to.file); /* commit detects failures */
    if (rc == TL_OK)
        rc = tl_outfile_commit(&out->to, out->fail);
    else if (rc != TL_IO)
        tl_fail_set(out->fail, (enum tl_err)rc, "cannot write: %s", tl_err_name(rc));
    *insns = out->done;
    return rc;
}
