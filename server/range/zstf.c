/* SPDX-License-Identifier: MIT */
/*
 * A .zstf contains the position of its index in its first bytes. If the range begins with a stored
 * frame, and all frames except the last are full, these are copied: their sizes are known, so the
 * index's position is too, and output can begin immediately. Otherwise the file is written to a
 * scratch file first and then read back; frames with the right alignment are still copied.
 */
#include "range/zstf.h"

#include "base/cancel.h"
#include "base/crc32c.h"
#include "stf/zstf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PLAN_MAX (1u << 20) /* maximum frames copied without a scratch file */

/* A frame in the plan of a file. */
struct planned {
    uint64_t offset; /* in its shard */
    uint64_t id;     /* of its shard: tl_verified_shard() */
    uint32_t shard, frame;
    uint32_t size; /* as stored */
    uint32_t crc;
    uint32_t head, head_n; /* in plan.heads: replacement for its own head, unless `own` */
    uint32_t old;          /* size of the replaced head */
    uint32_t plain;        /* plain size with its new head */
    bool own;              /* it keeps its own head */
};

/* The whole file except for what is copied. */
struct plan {
    struct tl_buf begin, end; /* including the first and the last chunk */
    struct planned *frames;
    size_t n, cap;
    struct tl_buf heads;
    struct tl_buf large;               /* a frame that is larger than a piece */
    size_t begin_at, end_at, large_at; /* number of bytes of each already returned */
    size_t next;
};

struct tl_range_zstf {
    struct tl_range_copy *copy;
    struct tl_range_flow *flow;
    struct tl_backend *backend;
    struct tl_verified *verified;
    struct tl_zstf_writer *writer;
    struct tl_packer *packer;
    bool begun, planned;
    struct plan plan;
    int scratch; /* the finished .zstf, or -1 */
    uint64_t scratch_size, scratch_at;
};

int tl_range_zstf_new(struct tl_range_zstf **out, struct tl_range_copy *copy,
                      struct tl_range_flow *flow, struct tl_lake *lake)
{
    struct tl_range_zstf *const z = calloc(1, sizeof(*z));
    if (!z)
        return TL_NOMEM;
    z->copy = copy;
    z->flow = flow;
    z->backend = lake->backend;
    z->verified = &lake->verified;
    z->scratch = -1;
    if (copy) /* whose marker is the one after the head's */
        copy->packed = (copy->marker - 1) % TL_CHUNK_MARKERS == 0;
    int r = tl_packer_new(&z->packer);
    if (r >= 0)
        r = tl_zstf_writer_new(&z->writer, TL_CHUNK_MARKERS, 0);
    if (r < 0)
        tl_range_zstf_free(z);
    else
        *out = z;
    return r;
}

static void plan_fini(struct plan *plan)
{
    tl_buf_fini(&plan->begin);
    tl_buf_fini(&plan->end);
    tl_buf_fini(&plan->heads);
    tl_buf_fini(&plan->large);
    free(plan->frames);
    *plan = (struct plan){0};
}

void tl_range_zstf_free(struct tl_range_zstf *zstf)
{
    if (!zstf)
        return;
    plan_fini(&zstf->plan);
    tl_packer_free(zstf->packer);
    tl_zstf_writer_free(zstf->writer);
    if (zstf->scratch >= 0)
        close(zstf->scratch);
    free(zstf);
}

/* ---- the scratch file ------------------------------------------------------------------------ */

static int write_scratch(struct tl_range_zstf *z, struct tl_buf *bytes, struct tl_fail *fail)
{
    for (size_t at = 0; at < bytes->n;) {
        const ssize_t n =
            pwrite(z->scratch, bytes->p + at, bytes->n - at, (off_t)(z->scratch_size + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return tl_fail_set(fail, errno == ENOSPC ? TL_NOSPACE : TL_IO,
                               "cannot write a scratch file: %s", strerror(errno));
        at += (size_t)n;
    }
    z->scratch_size += bytes->n;
    tl_buf_reset(bytes);
    return TL_OK;
}

static int flow_chunk(struct tl_range_zstf *z, uint64_t *begun, struct tl_buf *bytes,
                      struct tl_fail *fail)
{
    struct tl_stf_flow *const flow = z->flow->flow;
    const uint64_t markers = tl_stf_flow_markers(flow);
    const int r = tl_zstf_writer_chunk(z->writer, tl_stf_flow_bytes(flow), markers - *begun,
                                       *begun > 0 ? tl_stf_flow_chunk_pc(flow) : 0, bytes);
    tl_stf_flow_take(flow);
    *begun = markers;
    return r < 0 ? r : write_scratch(z, bytes, fail);
}

/* All chunks, rewritten. */
static int flow_chunks(struct tl_range_zstf *z, struct tl_buf *bytes, struct tl_fail *fail)
{
    uint64_t begun = 0;
    for (;;) {
        int r = tl_range_flow_feed(z->flow, begun + TL_CHUNK_MARKERS, fail);
        if (r == TL_AGAIN)
            r = flow_chunk(z, &begun, bytes, fail);
        if (r == TL_EOF)
            break;
        if (r < 0)
            return r;
    }
    /* Records after a full last chunk contain no instruction, and are not part of a .zstf. */
    if (tl_stf_flow_markers(z->flow->flow) > begun || begun == 0)
        return flow_chunk(z, &begun, bytes, fail);
    return TL_OK;
}

/* Records to be put into chunks. */
struct pending {
    struct tl_buf stf;
    uint64_t markers;
    uint64_t pc; /* of the first instruction */
    uint64_t chunks;
};

/* Make a chunk of the first `n` bytes. */
static int put_chunk(struct tl_range_zstf *z, struct pending *p, size_t n, uint64_t markers,
                     struct tl_buf *bytes, struct tl_fail *fail)
{
    int r = tl_zstf_writer_chunk(z->writer, (struct tl_bytes){p->stf.p, n}, markers,
                                 p->chunks++ > 0 ? p->pc : 0, bytes);
    tl_buf_drop(&p->stf, n);
    p->markers -= markers;
    return r < 0 ? r : write_scratch(z, bytes, fail);
}

/* Add a run, and write chunks as they become full. */
static int add_run(struct tl_range_zstf *z, struct pending *p, const struct tl_range_piece *run,
                   struct tl_buf *bytes, struct tl_fail *fail)
{
    size_t at = p->stf.n; /* begin of the run */
    uint64_t pc = run->pc;
    if (p->markers == 0 && p->stf.n == 0)
        p->pc = run->pc;
    int r = tl_buf_add(&p->stf, run->stf.p, run->stf.n);
    uint64_t before = p->markers;
    p->markers += run->markers;
    while (r >= 0 && p->markers >= TL_CHUNK_MARKERS) {
        const size_t size =
            tl_splice_pass(&z->copy->layout, (struct tl_bytes){p->stf.p + at, p->stf.n - at},
                           TL_CHUNK_MARKERS - before, &pc);
        if (size == SIZE_MAX)
            return tl_fail_set(fail, TL_BAD, "a chunk contradicts its index; decode again");
        r = put_chunk(z, p, at + size, TL_CHUNK_MARKERS, bytes, fail);
        p->pc = pc;
        at = 0;
        before = 0;
    }
    return r;
}

/* Copy the next packed frame, if nothing is pending. TL_AGAIN: it must be unpacked. */
static int copy_frame(struct tl_range_zstf *z, struct pending *p, struct tl_buf *bytes,
                      struct tl_fail *fail)
{
    struct tl_range_frame frame;
    struct tl_buf packed = {0};
    if (p->stf.n > 0)
        return TL_AGAIN;
    int r = tl_range_copy_frame(z->copy, TL_CHUNK_MARKERS, z->packer, &frame, fail);
    if (r < 0)
        return r;
    const struct tl_bytes head = {frame.head.p, frame.head.n};
    r = tl_range_frame_read(frame.view, frame.frame, frame.old > 0 ? &head : NULL, z->packer,
                            &packed, fail);
    if (r >= 0)
        r = tl_zstf_writer_frame(z->writer, (struct tl_bytes){packed.p, packed.n}, frame.plain,
                                 TL_CHUNK_MARKERS, frame.pc, bytes);
    if (r >= 0)
        r = write_scratch(z, bytes, fail);
    p->chunks++;
    tl_range_frame_end(&frame);
    tl_buf_fini(&packed);
    return r;
}

static int copy_chunks(struct tl_range_zstf *z, struct tl_buf *bytes, struct tl_fail *fail)
{
    struct tl_range_copy *const copy = z->copy;
    struct pending p = {.markers = 1};
    int r = tl_buf_add(&p.stf, copy->head.p, copy->head.n);
    while (r >= 0) {
        struct tl_range_piece run;
        r = copy_frame(z, &p, bytes, fail);
        if (r != TL_AGAIN)
            continue;
        r = tl_range_copy_next(copy, &run, fail);
        if (r >= 0)
            r = add_run(z, &p, &run, bytes, fail);
    }
    if (r == TL_EOF)
        r = tl_buf_add(&p.stf, copy->trail.p, copy->trail.n);
    /* As above: a last chunk has an instruction. */
    if (r >= 0 && p.markers > 0)
        r = put_chunk(z, &p, p.stf.n, p.markers, bytes, fail);
    tl_buf_fini(&p.stf);
    return r;
}

static int make_scratch(struct tl_range_zstf *z, struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    uint8_t head[TL_ZSTF_HEAD];
    z->scratch = z->backend->ops->scratch(z->backend, fail);
    if (z->scratch < 0)
        return z->scratch;
    int r = tl_zstf_writer_begin(z->writer, &bytes);
    if (r >= 0)
        r = write_scratch(z, &bytes, fail);
    if (r >= 0)
        r = z->copy ? copy_chunks(z, &bytes, fail) : flow_chunks(z, &bytes, fail);
    if (r >= 0)
        r = tl_zstf_writer_finish(z->writer, (struct tl_bytes){0}, &bytes, head);
    if (r >= 0)
        r = write_scratch(z, &bytes, fail);
    if (r >= 0 && pwrite(z->scratch, head, sizeof(head), 0) != (ssize_t)sizeof(head))
        r = tl_fail_set(fail, TL_IO, "cannot write a scratch file: %s", strerror(errno));
    tl_buf_fini(&bytes);
    return r;
}

static int read_scratch(struct tl_range_zstf *z, struct tl_buf *out, struct tl_fail *fail)
{
    if (z->scratch_at >= z->scratch_size)
        return TL_EOF;
    if (tl_buf_reserve(out, TL_RANGE_PIECE) < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    const ssize_t n = pread(z->scratch, out->p + out->n, TL_RANGE_PIECE, (off_t)z->scratch_at);
    if (n <= 0)
        return tl_fail_set(fail, TL_IO, "cannot read a scratch file: %s", strerror(errno));
    out->n += (size_t)n;
    z->scratch_at += (uint64_t)n;
    return TL_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int plan_frame(struct tl_range_zstf *z, const struct tl_range_frame *f)
{
    struct plan *const plan = &z->plan;
    const struct tl_shard_frame *const stored = &f->view->index.frames[f->frame];
    const bool same = plan->n > 0 && plan->frames[plan->n - 1].shard == f->shard;
    if (tl_grow(&plan->frames, &plan->cap, plan->n + 1, sizeof(*plan->frames)) < 0)
        return TL_NOMEM;
    const uint64_t id =
        same ? plan->frames[plan->n - 1].id : tl_verified_shard(f->view->key, &f->view->index);
    plan->frames[plan->n++] = (struct planned){.offset = stored->offset,
                                               .id = id,
                                               .shard = (uint32_t)f->shard,
                                               .frame = (uint32_t)f->frame,
                                               .size = stored->size,
                                               .crc = stored->crc,
                                               .head = (uint32_t)plan->heads.n,
                                               .head_n = (uint32_t)f->head.n,
                                               .old = (uint32_t)f->old,
                                               .plain = (uint32_t)f->plain,
                                               .own = f->old == 0};
    const int r = tl_buf_add(&plan->heads, f->head.p, f->head.n);
    return r < 0 ? r : tl_zstf_writer_skip(z->writer, f->size, f->plain, TL_CHUNK_MARKERS, f->pc);
}

/* Plan the first chunk: the head, and the rest of its frame. TL_AGAIN: it is not a full one. */
static int plan_first(struct tl_range_zstf *z, struct tl_fail *fail)
{
    struct tl_range_copy *const copy = z->copy;
    struct tl_range_piece run;
    struct tl_buf stf = {0};
    int r = tl_range_copy_next(copy, &run, fail);
    if (r == TL_EOF || (r >= 0 && run.markers != TL_CHUNK_MARKERS - 1))
        return TL_AGAIN;
    if (r >= 0)
        r = tl_buf_add(&stf, copy->head.p, copy->head.n);
    if (r >= 0)
        r = tl_buf_add(&stf, run.stf.p, run.stf.n);
    if (r >= 0)
        r = tl_zstf_writer_chunk(z->writer, (struct tl_bytes){stf.p, stf.n}, TL_CHUNK_MARKERS, 0,
                                 &z->plan.begin);
    tl_buf_fini(&stf);
    return r;
}

/* Plan the last chunk. TL_AGAIN: it is not the last. */
static int plan_last(struct tl_range_zstf *z, struct tl_fail *fail)
{
    struct tl_range_copy *const copy = z->copy;
    struct tl_range_piece run, more;
    struct tl_buf stf = {0};
    int r = tl_range_copy_next(copy, &run, fail);
    if (r >= 0)
        r = tl_buf_add(&stf, run.stf.p, run.stf.n);
    if (r >= 0)
        r = tl_range_copy_next(copy, &more, fail) == TL_EOF ? TL_OK : TL_AGAIN;
    if (r == TL_OK)
        r = tl_buf_add(&stf, copy->trail.p, copy->trail.n);
    if (r == TL_OK)
        r = tl_zstf_writer_chunk(z->writer, (struct tl_bytes){stf.p, stf.n}, run.markers, run.pc,
                                 &z->plan.end);
    tl_buf_fini(&stf);
    return r;
}

/* Is a frame's shard virtual? */
static bool is_made(const struct tl_cut *cut, const struct tl_range_frame *frame)
{
    const struct tl_view *const tail =
        frame->shard < cut->n_stored ? NULL : cut->tail[frame->shard - cut->n_stored];
    if (frame->shard < cut->n_stored)
        return !frame->view->backend;
    return !tail || tail->make != NULL; /* those that are put away are */
}

/* TL_AGAIN: the file cannot be planned. */
static int try_plan(struct tl_range_zstf *z, struct tl_fail *fail)
{
    uint8_t head[TL_ZSTF_HEAD];
    bool made = false;
    int r = tl_zstf_writer_begin(z->writer, &z->plan.begin);
    if (r >= 0)
        r = plan_first(z, fail);
    while (r == TL_OK && z->plan.n < PLAN_MAX) {
        struct tl_range_frame frame;
        r = tl_range_copy_frame(z->copy, TL_CHUNK_MARKERS, z->packer, &frame, fail);
        if (r == TL_OK) {
            /* Regenerated shards may be evicted before the file is read: write it at once. */
            made = is_made(z->copy->cut, &frame);
            r = made ? TL_AGAIN : plan_frame(z, &frame);
            tl_range_frame_end(&frame);
        }
    }
    if (r == TL_AGAIN && z->plan.n > 0 && !made)
        r = plan_last(z, fail);
    else if (r == TL_EOF)
        r = TL_OK;
    else if (r == TL_OK)
        r = TL_AGAIN; /* it is too long */
    if (r == TL_OK)
        r = tl_zstf_writer_finish(z->writer, (struct tl_bytes){0}, &z->plan.end, head);
    if (r == TL_OK)
        memcpy(z->plan.begin.p, head, sizeof(head));
    return r;
}

static int plan_file(struct tl_range_zstf *z, struct tl_fail *fail)
{
    const struct tl_range_copy begin = *z->copy;
    const int r = try_plan(z, fail);
    z->planned = r == TL_OK;
    if (r != TL_AGAIN)
        return r;
    z->copy->shard = begin.shard;
    z->copy->marker = begin.marker;
    z->copy->pc = begin.pc;
    plan_fini(&z->plan);
    return TL_OK;
}

/* Is the frame in the store? */
static bool is_stored(const struct tl_range_zstf *z, const struct planned *p)
{
    return p->shard < z->copy->cut->n_stored;
}

/* Read a frame that is in memory, gets another head, or is long. */
static int read_one(struct tl_range_zstf *z, const struct planned *p, struct tl_buf *out,
                    struct tl_fail *fail)
{
    const struct tl_bytes head = {p->head_n > 0 ? z->plan.heads.p + p->head : NULL, p->head_n};
    struct tl_view *view;
    int r = tl_cut_view(z->copy->cut, p->shard, &view, fail);
    if (r < 0)
        return r;
    r = tl_range_frame_read(view, p->frame, p->own ? NULL : &head, z->packer, out, fail);
    if (r >= 0 && is_stored(z, p))
        tl_verified_add(z->verified, p->id, p->frame, 1);
    tl_view_put(view);
    return r;
}

/* Read consecutive frames of a stored shard, up to `most` bytes unless it is one frame. */
static int read_run(struct tl_range_zstf *z, size_t most, struct tl_buf *out, struct tl_fail *fail)
{
    struct plan *const plan = &z->plan;
    const struct planned *const first = &plan->frames[plan->next];
    size_t n = 1, bytes = first->size;
    while (plan->next + n < plan->n && first[n].shard == first->shard && first[n].own &&
           first[n].offset == first->offset + bytes && bytes + first[n].size <= most)
        bytes += first[n++].size;
    const struct tl_cut *const cut = z->copy->cut;
    char key[192];
    tl_shard_key(key, cut->gen->trace, cut->gen->number, cut->lane->name,
                 cut->rows[first->shard].number);
    const size_t before = out->n;
    int r = tl_cancel_check();
    if (r >= 0)
        r = z->backend->ops->get(z->backend, key, first->offset, bytes, out, fail);
    bool good = r >= 0 && out->n - before == bytes;
    for (size_t i = 0, at = before; good && i < n; at += first[i++].size)
        good = tl_crc32c(0, out->p + at, first[i].size) == first[i].crc;
    if (r >= 0 && !good)
        r = tl_fail_at(fail, TL_BAD, first->offset,
                       "%s: a block is damaged; decode the trace again", key);
    if (r >= 0)
        tl_verified_add(z->verified, first->id, first->frame, n);
    plan->next += n;
    return r;
}

/* Append the rest of `from`, as far as it fits the piece. */
static int give(const struct tl_buf *from, size_t *at, size_t room, struct tl_buf *out)
{
    const size_t n = from->n - *at < room ? from->n - *at : room;
    const int r = tl_buf_add(out, from->p + *at, n);
    *at += n;
    return r;
}

static int read_plan(struct tl_range_zstf *z, struct tl_buf *out, struct tl_fail *fail)
{
    struct plan *const plan = &z->plan;
    const size_t before = out->n;
    int r = tl_buf_reserve(out, TL_RANGE_PIECE); /* never more, so that read data is not moved */
    while (r >= 0 && out->n - before < TL_RANGE_PIECE) {
        const struct planned *const p = &plan->frames[plan->next];
        const size_t room = TL_RANGE_PIECE - (out->n - before);
        if (plan->begin_at < plan->begin.n) {
            r = give(&plan->begin, &plan->begin_at, room, out);
            if (r >= 0 && plan->n > 0)
                break; /* the frames after it may not have to be read */
        } else if (plan->large_at < plan->large.n) {
            r = give(&plan->large, &plan->large_at, room, out);
        } else if (plan->next == plan->n) {
            if (plan->end_at == plan->end.n)
                return out->n > before ? TL_OK : TL_EOF;
            r = give(&plan->end, &plan->end_at, room, out);
        } else if (is_stored(z, p) && p->own && p->size <= TL_RANGE_PIECE) {
            if (p->size > room)
                break;
            r = read_run(z, room, out, fail);
        } else {
            tl_buf_reset(&plan->large);
            plan->large_at = 0;
            plan->next++;
            r = read_one(z, p, &plan->large, fail);
        }
    }
    return r;
}

static void put_view(void *view)
{
    tl_view_put(view);
}

/* Number of consecutive frames from the next one on that need not be read, up to TL_RANGE_STORED
 * bytes; `*size` receives theirs, of the first one without its own head if that is replaced. */
static size_t stored_run(const struct tl_range_zstf *z, size_t *size)
{
    const struct plan *const plan = &z->plan;
    const struct planned *const first = &plan->frames[plan->next];
    size_t n = 1;
    *size = first->size - (first->own ? 0 : tl_pack_rest(first->old));
    while (plan->next + n < plan->n && first[n].shard == first->shard && first[n].own &&
           first[n].offset == first[n - 1].offset + first[n - 1].size &&
           *size + first[n].size <= TL_RANGE_STORED)
        *size += first[n++].size;
    return n;
}

int tl_range_zstf_stored(struct tl_range_zstf *z, struct tl_range_stored *out, struct tl_fail *fail)
{
    struct plan *const plan = &z->plan;
    const struct planned *const p = &plan->frames[plan->next];
    size_t size;
    if (!z->planned || plan->begin_at < plan->begin.n || plan->large_at < plan->large.n ||
        plan->next == plan->n || !is_stored(z, p))
        return TL_AGAIN;
    const size_t n = stored_run(z, &size);
    if (tl_verified_run(z->verified, p->id, p->frame, n) < n)
        return TL_AGAIN;
    struct tl_view *view;
    int r = tl_cancel_check();
    if (r >= 0)
        r = tl_cut_view(z->copy->cut, p->shard, &view, fail);
    if (r < 0)
        return r;
    out->bytes = tl_view_map(view, p->offset + (p->own ? 0 : tl_pack_rest(p->old)), size);
    if (out->bytes.n == 0)
        r = TL_AGAIN;
    else if (!p->own)
        r = tl_pack_rehead((struct tl_bytes){plan->heads.p + p->head, p->head_n}, p->plain,
                           &out->before);
    if (r < 0) {
        tl_view_put(view);
        return r;
    }
    out->let_go = put_view;
    out->owner = view;
    plan->next += n;
    return TL_OK;
}

int tl_range_zstf_next(struct tl_range_zstf *zstf, struct tl_buf *out, struct tl_fail *fail)
{
    int r = TL_OK;
    if (!zstf->begun) {
        zstf->begun = true;
        if (zstf->copy)
            r = plan_file(zstf, fail);
        if (r >= 0 && !zstf->planned)
            r = make_scratch(zstf, fail);
    }
    if (r < 0)
        return r;
    return zstf->planned ? read_plan(zstf, out, fail) : read_scratch(zstf, out, fail);
}
