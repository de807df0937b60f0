/* SPDX-License-Identifier: MIT */
/*
 * Decodes raw bytes again from a mark and keeps the parts that were asked for. Decoders are kept
 * for the next request, because readers go forward and most of the work is in reaching the first
 * part.
 */
#include "virtual/remake.h"

#include "base/cancel.h"
#include "decoding/marks.h"
#include "decoding/resume.h"
#include "lake/lakeint.h"
#include "shard/missing.h"
#include "shard/walk.h"
#include "stf/close.h"
#include "virtual/find_marks.h"
#include "virtual/rerun.h"

#include <stdlib.h>

#define SLICE_FIRST (2u << 10)  /* raw bytes between two checks of the result */
#define SLICE_MAX   (32u << 10) /* the same if much is wanted */
/* Parts beyond the wanted ones after which a decoder that outputs much at once is abandoned, as
 * with perf.data, which does so after a lot of trace: if one chunk is wanted, or a whole shard. */
#define AFTER_CHUNK (8u << 20)
#define AFTER_SHARD (64u << 20)

struct job;

/* Decodes a lane's stream and regenerates parts of its shards: from `run.shard` and `run.frame` on
 * they are in `parts`, or will be. */
struct remaker {
    struct tl_maker maker; /* of the lake: it is kept while it can continue */
    struct tl_rerun run;
    bool given_up;     /* abandoned during output: it cannot continue */
    struct job *job;   /* the job it works for */
    size_t part_bytes; /* size of the parts added since the last check */
    struct tl_build_part *parts;
    size_t n_parts, cap_parts;
};

/* A regeneration request. */
struct job {
    struct tl_gen *gen;
    struct tl_lane *lane;
    struct tl_view *base, *made;
    size_t from, to;          /* range of frames */
    size_t chunk, chunk_end;  /* chunks: the next missing one, and the end */
    size_t frame;             /* the next missing frame */
    struct tl_packer *packer; /* of the frames; NULL: they stay uncompressed */
    struct remaker *remaker;
    bool others;   /* a mark is from another server version */
    bool no_image; /* the program's images cannot be read, which `fail` says */
    bool differs;  /* the result is inconsistent with the index */
};

/* ---- remakers ------------------------------------------------------------------------------- */

static void drop_parts(struct remaker *m)
{
    for (size_t i = 0; i < m->n_parts; i++)
        tl_blob_put(m->parts[i].blob);
    m->n_parts = 0;
}

static void free_remaker(struct tl_maker *maker)
{
    struct remaker *const m = (struct remaker *)maker;
    drop_parts(m);
    free(m->parts);
    tl_rerun_fini(&m->run);
    free(m);
}

static void drop_remaker(struct remaker *m)
{
    if (m)
        free_remaker(&m->maker);
}

static int collect(struct job *job);
static bool is_done(const struct job *job);

/* Is more than one chunk requested? */
static bool is_many(const struct job *job)
{
    return job->to - job->from > 1;
}

/* Many parts were added at once: are there enough? */
static int look(struct remaker *m)
{
    const int r = collect(m->job);
    m->part_bytes = 0;
    m->given_up = r >= 0 && (is_done(m->job) || m->job->differs);
    return m->given_up ? TL_EOF : r;
}

static int on_part(void *context, struct tl_build_part *part)
{
    struct remaker *const m = context;
    const bool wanted =
        part->shard > m->run.shard || (part->shard == m->run.shard && part->frame >= m->run.frame);
    if (!wanted || tl_grow(&m->parts, &m->cap_parts, m->n_parts + 1, sizeof(*part)) < 0) {
        tl_blob_put(part->blob);
        return wanted ? TL_NOMEM : TL_OK;
    }
    m->parts[m->n_parts++] = *part;
    m->part_bytes += part->is_log ? part->chunk.items_plain : part->stf.plain;
    return m->part_bytes > (is_many(m->job) ? AFTER_SHARD : AFTER_CHUNK) ? look(m) : TL_OK;
}

/* Begin at the last suitable mark, or at the first byte. */
static int begin_remaker(struct job *job, struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &job->base->index;
    const uint64_t offset =
        job->chunk < index->n_chunks ? index->chunks[job->chunk].at.offset : index->row.byte_first;
    struct remaker *const m = calloc(1, sizeof *m);
    if (!m)
        return TL_NOMEM;
    m->maker = (struct tl_maker){.lane = job->lane, .free = free_remaker};
    m->job = job;
    job->remaker = m;
    const struct tl_build_options how = {.part = on_part, .context = m};
    const struct tl_rerun_place place = {index->row.number, (uint32_t)job->from, offset};
    const int r = tl_rerun_begin(&m->run, job->lane, &how, &place, fail);
    job->others = job->others || m->run.others;
    job->no_image = m->run.no_image;
    return r;
}

/* Can it continue to what is wanted faster than from a mark? Nothing in between is regenerated. */
static bool serves(struct job *job, struct remaker *m)
{
    const struct tl_shard_index *const index = &job->base->index;
    const uint64_t shard = index->row.number;
    const uint32_t frame = (uint32_t)job->from;
    const bool has = m->run.shard < shard || (m->run.shard == shard && m->run.frame <= frame);
    if (!has || !m->run.build || m->run.finished || job->chunk == index->n_chunks)
        return false;
    if (!tl_rerun_is_before(&m->run, shard, frame))
        return true;
    const uint64_t here = tl_build_position(m->run.build), there = index->chunks[job->chunk].first;
    if (there - here > job->gen->lake->options.shard_insns / 4)
        return false;
    tl_build_want(m->run.build, shard, frame);
    return true;
}

/* ---- parts ---------------------------------------------------------------------------------- */

/* The index frame that a part belongs to. */
static size_t frame_of(const struct job *job, const struct tl_build_part *part)
{
    const size_t n = job->base->index.n_frames;
    /* After the last frame there may be items, whose chunks are assigned to it once all
     * are known. */
    return part->frame < n ? part->frame : n > 0 && !job->base->open ? n - 1 : n;
}

static bool same_chunk(const struct job *job, const struct tl_chunk *a, const struct tl_chunk *b)
{
    if (a->first != b->first || a->marker != b->marker)
        return false;
    if (job->base->open) /* which may have grown */
        return a->items_plain >= b->items_plain;
    return a->n == b->n && a->events == b->events && a->gaps == b->gaps && a->kinds == b->kinds &&
           a->anchors == b->anchors && a->items_plain == b->items_plain;
}

/* Have it packed by the crew in parallel, if there is more to do. */
static int pack(struct job *job, struct tl_blob *blob)
{
    struct tl_packing *const packing = job->gen->lake->packing;
    return job->packer && packing && blob ? tl_packing_add(packing, blob, job->packer) : TL_OK;
}

/* Add a part, taking over its blob. */
static int add_part(struct job *job, struct tl_build_part *part)
{
    struct tl_shard_index *const index = &job->made->index;
    const size_t frame = frame_of(job, part);
    struct tl_blob *const blob = part->blob;
    part->blob = NULL;
    if (part->is_log && job->chunk < job->chunk_end &&
        same_chunk(job, &part->chunk, &index->chunks[job->chunk])) {
        job->made->items[job->chunk++] =
            blob; /* which stays uncompressed: it is small, and seldom read */
        return TL_OK;
    }
    if (!part->is_log && frame == job->frame && job->frame < job->to &&
        index->frames[frame].marker == part->stf.marker &&
        (frame == 0 || index->frames[frame].pc == part->stf.pc)) {
        index->frames[frame].plain = part->stf.plain;
        job->made->frames[job->frame++] = blob;
        return pack(job, blob);
    }
    tl_blob_put(blob);
    job->differs = true;
    return TL_OK;
}

static bool is_done(const struct job *job)
{
    const size_t n = job->base->index.n_frames;
    return job->chunk == job->chunk_end && job->frame == (job->to < n ? job->to : n);
}

/* Take the parts that belong to the job; earlier ones are dropped. */
static int collect(struct job *job)
{
    struct remaker *const m = job->remaker;
    const uint64_t shard = job->base->index.row.number;
    size_t kept = 0;
    int r = TL_OK;
    for (size_t i = 0; i < m->n_parts; i++) {
        struct tl_build_part *const part = &m->parts[i];
        const bool after =
            part->shard > shard || (part->shard == shard && frame_of(job, part) >= job->to);
        if (after) {
            /* Chunks and frames are in order; but a frame's records follow the log. */
            job->differs =
                job->differs || (!is_done(job) && (part->shard > shard + 1 || !part->is_log));
            m->parts[kept++] = *part;
        } else if (part->shard == shard && frame_of(job, part) >= job->from && r >= 0) {
            r = add_part(job, part);
        } else {
            tl_blob_put(part->blob);
        }
    }
    m->n_parts = kept;
    return r;
}

/* For a growing shard: has decoding reached the state seen by the reader? Then this is
 * sufficient. */
static int collect_open(struct job *job)
{
    const struct tl_shard_row *const row = &job->base->index.row;
    struct tl_build_totals totals;
    struct tl_build_part parts[2];
    size_t n;
    if (!job->base->open || !job->remaker->run.build || is_done(job))
        return TL_OK;
    tl_build_totals(job->remaker->run.build, &totals);
    if (totals.position < row->first + row->n)
        return TL_OK;
    int r = tl_build_open_parts(job->remaker->run.build, parts, &n);
    for (size_t i = 0; i < n; i++) {
        const bool mine = r >= 0 && parts[i].shard == row->number &&
                          (parts[i].is_log ? job->chunk + 1 == job->chunk_end &&
                                                 parts[i].chunk.items_plain >=
                                                     job->base->index.chunks[job->chunk].items_plain
                                           : parts[i].frame == job->frame);
        if (mine)
            r = add_part(job, &parts[i]);
        else
            tl_blob_put(parts[i].blob);
    }
    return r;
}

/* ---- decoding ------------------------------------------------------------------------------- */

static int decode(struct job *job, struct tl_fail *fail)
{
    struct remaker *const m = job->remaker;
    const uint64_t end = tl_rerun_end(job->gen, job->base->open);
    size_t slice = SLICE_FIRST;
    m->job = job;
    m->part_bytes = 0;
    int r = collect(job);
    while (r >= 0 && !is_done(job) && !job->differs && !m->run.finished) {
        r = m->run.at < end ? tl_rerun_step(&m->run, end, slice, fail) : tl_rerun_finish(&m->run);
        if (m->given_up)
            return TL_OK;
        if (r >= 0)
            r = collect(job);
        m->part_bytes = 0;
        if (r >= 0)
            r = collect_open(job);
        if (slice < SLICE_MAX && is_many(job))
            slice *= 2;
    }
    return r;
}

/* ---- a request ------------------------------------------------------------------------------ */

/* Find the chunks of the frames. */
static void find_chunks(struct job *job)
{
    const size_t n = job->base->index.n_chunks;
    size_t i = 0;
    while (i < n && tl_view_frame_of(job->base, i) < job->from)
        i++;
    job->chunk = i;
    while (i < n && tl_view_frame_of(job->base, i) < job->to)
        i++;
    job->chunk_end = i;
    job->frame = job->from;
}

/* Begin with an empty result. */
static int start(struct job *job)
{
    tl_view_put(job->made);
    job->made = NULL;
    job->differs = false;
    find_chunks(job);
    return tl_view_over(&job->made, job->base);
}

static int make(struct job *job, struct tl_fail *fail)
{
    int r = start(job);
    if (r < 0)
        return r;
    job->remaker = (struct remaker *)tl_lane_take_maker(job->lane);
    if (job->remaker && serves(job, job->remaker)) {
        r = decode(job, NULL);
        if ((r >= 0 && is_done(job)) || r == TL_CANCELLED || r == TL_NOMEM)
            return r;
        r = start(job); /* raw bytes may have been moved since then, or have grown */
    }
    drop_remaker(job->remaker);
    job->remaker = NULL;
    if (r >= 0)
        r = begin_remaker(job, fail);
    return r < 0 ? r : decode(job, fail);
}

/* ---- missing ranges ---------------------------------------------------------------------- */

/* Take an unfinished part of the frame that has the missing range, which begins at `position`. */
static int take_open(struct job *job, const struct tl_build_part *part, uint64_t position)
{
    const struct tl_shard_index *const index = &job->base->index;
    struct tl_view *const made = job->made;
    struct tl_buf plain = {0};
    int r = TL_OK;
    if (part->shard != index->row.number || !part->blob)
        return TL_OK;
    if (!part->is_log) {
        if (job->frame < job->to && job->frame < index->n_frames &&
            part->stf.marker == index->frames[job->frame].marker)
            made->frames[job->frame] = tl_blob_get(part->blob);
        return TL_OK;
    }
    if (job->chunk == job->chunk_end || part->chunk.first != index->chunks[job->chunk].first ||
        part->chunk.marker != index->chunks[job->chunk].marker)
        return TL_OK;
    r = tl_blob_plain(part->blob, &plain);
    if (r >= 0)
        r = tl_missing_log(&job->remaker->run.missing, &index->chunks[job->chunk],
                           (struct tl_bytes){plain.p, plain.n}, position, &made->items[job->chunk]);
    tl_buf_fini(&plain);
    return r;
}

/* The builder gets the items of the missing range, which end the last instruction's records. */
static int end_parts(struct job *job)
{
    struct remaker *const m = job->remaker;
    const struct tl_shard_index *const index = &job->base->index;
    struct tl_build_part parts[2];
    struct tl_item items[2];
    size_t n = 0;
    int r = collect(job);
    if (r < 0 || !m->run.build || index->n_chunks == 0)
        return r;
    const size_t open = job->chunk < index->n_chunks ? job->chunk : index->n_chunks - 1;
    const uint64_t position = tl_build_position(m->run.build);
    const size_t n_items = tl_missing_items(&m->run.missing, &index->chunks[open], position, items);
    r = tl_build_items(m->run.build, items, n_items);
    if (r >= 0)
        r = collect(job);
    if (r >= 0)
        r = tl_build_open_parts(m->run.build, parts, &n);
    for (size_t i = 0; i < n; i++) {
        if (r >= 0)
            r = take_open(job, &parts[i], position);
        tl_blob_put(parts[i].blob);
    }
    return r;
}

/* Chunks that cannot be regenerated become missing ranges, frames of them have no records. */
static int fill(struct job *job)
{
    const struct tl_shard_index *const index = &job->base->index;
    struct tl_view *const made = job->made;
    int r = TL_OK;
    for (size_t i = job->chunk; i < job->chunk_end && r >= 0; i++)
        if (!made->items[i])
            r = tl_missing_log(&job->remaker->run.missing, &index->chunks[i], (struct tl_bytes){0},
                               index->chunks[i].first, &made->items[i]);
    for (size_t i = job->frame; i < job->to && i < index->n_frames && r >= 0; i++)
        if (!made->frames[i] && !(made->frames[i] = tl_blob_new((struct tl_bytes){0})))
            r = TL_NOMEM;
    made->incomplete = true;
    return r;
}

/* Can all chunks of the frame be read? */
static int read_all(const struct job *job)
{
    const struct tl_walk_range range = {
        .to = UINT64_MAX, .tail = true, .protocol = job->lane->protocol};
    struct tl_walk *const walk = calloc(1, sizeof(*walk));
    struct job all = *job;
    int r = walk ? TL_OK : TL_NOMEM;
    find_chunks(&all);
    for (size_t i = all.chunk; i < all.chunk_end && r >= 0; i++)
        r = tl_walk_chunk(walk, job->made, i, &range, NULL);
    if (walk)
        tl_walk_fini(walk);
    free(walk);
    return r;
}

/* The missing range begins at the damage, or at the frame's begin if what precedes the damage
 * cannot be read by itself. */
static int regenerate_around(struct job *job)
{
    job->remaker->run.missing.protocol = job->lane->protocol;
    int r = end_parts(job);
    job->differs = false; /* a part that ends in the missing range is dropped, and filled */
    if (r >= 0)
        r = fill(job);
    if (r >= 0)
        r = read_all(job);
    if (r != TL_BAD)
        return r;
    r = start(job);
    return r < 0 ? r : fill(job);
}

/* Regenerate frame by frame: those after a missing range begin at a mark after it. */
static int regenerate_each(struct job *job, struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &job->base->index;
    int r = start(job);
    for (size_t f = job->from; f < job->to && r >= 0; f++) {
        struct tl_view *part = NULL;
        r = tl_remake_shard(job->lane, job->base, f, f + 1, false, &part, fail);
        if (r < 0)
            break;
        if (f < index->n_frames && part->frames[f]) {
            job->made->frames[f] = tl_blob_get(part->frames[f]);
            job->made->index.frames[f] = part->index.frames[f];
        }
        for (; job->chunk < job->chunk_end && tl_view_frame_of(job->base, job->chunk) <= f;
             job->chunk++)
            if (part->items[job->chunk])
                job->made->items[job->chunk] = tl_blob_get(part->items[job->chunk]);
        job->made->incomplete = job->made->incomplete || part->incomplete;
        tl_view_put(part);
    }
    return r;
}

static int around_damage(struct job *job, struct tl_fail *fail)
{
    if (fail)
        *fail = (struct tl_fail){0};
    return is_many(job) ? regenerate_each(job, fail) : regenerate_around(job);
}

#define READ_AFTER (64u << 10) /* raw bytes that decoding may read after the last position's */

int tl_remake_check(struct tl_lane *lane, const struct tl_view *view, size_t chunk,
                    uint64_t byte_last, struct tl_fail *fail)
{
    struct tl_gen *const gen = lane->gen;
    struct tl_spool_reader *reader = NULL;
    struct tl_marks marks;
    struct tl_buf bytes = {0};
    const uint64_t decoded = atomic_load(&gen->decoded);
    const uint64_t end =
        byte_last < decoded && decoded - byte_last > READ_AFTER ? byte_last + READ_AFTER : decoded;
    uint64_t at = 0;
    int r = tl_marks_begin(&marks, gen, view->index.chunks[chunk].at.offset, fail);
    if (r >= 0 && (r = tl_marks_next(&marks)) >= 0)
        at = tl_checkpoint_offset((struct tl_bytes){marks.bytes.p, marks.bytes.n});
    if (r >= 0 || r == TL_EOF)
        r = tl_spool_reader_new(&reader, gen->lake->backend, gen->trace);
    while (r >= 0 && at < end && (r = tl_cancel_check()) >= 0) {
        tl_buf_reset(&bytes);
        r = tl_spool_read(reader, at, end, &bytes, fail);
        at += bytes.n;
    }
    tl_marks_fini(&marks);
    tl_spool_reader_free(reader);
    tl_buf_fini(&bytes);
    return r;
}

/* ---- a request, with its result ------------------------------------------------------------- */

int tl_remake_shard(struct tl_lane *lane, struct tl_view *view, size_t from, size_t to, bool packed,
                    struct tl_view **out, struct tl_fail *fail)
{
    struct tl_gen *const gen = lane->gen;
    struct job job = {.gen = gen, .lane = lane, .base = view, .from = from, .to = to};
    *out = NULL;
    int r = packed && is_many(&job) ? tl_packer_new(&job.packer) : TL_OK;
    if (r >= 0)
        r = make(&job, fail);
    const struct tl_shard_row *const row = &view->index.row;
    const bool damaged = job.remaker && job.remaker->run.damaged;
    if (r == TL_BAD && damaged && !job.differs)
        r = around_damage(&job, fail);
    const bool done = r >= 0 && !job.differs && (damaged || is_done(&job));
    const bool other = !damaged && !done && !job.no_image && (r >= 0 || r == TL_BAD);
    if (done && !damaged && !job.remaker->run.finished && !job.remaker->given_up)
        tl_lane_keep_maker(&job.remaker->maker);
    else
        drop_remaker(job.remaker);
    tl_packer_free(job.packer);
    const int renewed = job.others || other ? tl_gen_renew(gen, other ? fail : NULL) : TL_OK;
    if (other && renewed < 0)
        r = renewed;
    else if (other)
        r = tl_fail_set(
            fail, TL_AGAIN,
            "%s is being decoded anew, since this server decodes otherwise than the one "
            "before it; try again",
            gen->trace);
    else if (!job.no_image && (r == TL_BAD || (r >= 0 && !done)))
        r = tl_fail_set(fail, TL_BAD,
                        "%s/%s: the raw bytes 0x%llx to 0x%llx do not give this shard any more; "
                        "`tracelake verify --repair %s` says what is damaged",
                        gen->trace, lane->name, (unsigned long long)row->byte_first,
                        (unsigned long long)row->byte_last, gen->trace);
    else if (r < 0 && fail && fail->code == TL_OK)
        tl_fail_set(fail, (enum tl_err)r, "%s/%s: a shard cannot be made: %s", gen->trace,
                    lane->name, tl_err_name(r));
    if (r < 0)
        tl_view_put(job.made);
    else
        *out = job.made;
    return r < 0 ? r : TL_OK;
}
