/* SPDX-License-Identifier: MIT */
/*
 * Decodes raw bytes again from a mark and keeps the parts that were asked for. Decoders are kept
 * for the next request, because readers go forward and most of the work is in reaching the first
 * part.
 */
#include "virtual/remake.h"

#include "base/cancel.h"
#include "base/recent.h"
#include "decoding/marks.h"
#include "decoding/resume.h"
#include "lake/lakeint.h"
#include "shard/missing.h"
#include "shard/walk.h"
#include "stf/close.h"
#include "virtual/find_marks.h"

#include <stdlib.h>

#define SLICE_FIRST (2u << 10)  /* raw bytes between two checks of the result */
#define SLICE_MAX   (32u << 10) /* the same if much is wanted */
/* Parts beyond the wanted ones after which a decoder that outputs much at once is abandoned, as
 * with perf.data, which does so after a lot of trace: if one chunk is wanted, or a whole shard. */
#define AFTER_CHUNK (8u << 20)
#define AFTER_SHARD (64u << 20)

struct job;

/* Decodes a lane's stream and regenerates parts of its shards. */
struct tl_remaker {
    struct tl_lane *lane;
    struct tl_program *program; /* the decoder's */
    struct tl_decode *decode;
    struct tl_build *build; /* NULL: its stream has not appeared yet */
    struct tl_spool_reader *reader;
    struct tl_buf bytes; /* read; those from `used` on are not decoded yet */
    size_t used;
    size_t stream;
    uint64_t at;               /* raw bytes decoded */
    bool damaged;              /* raw bytes that are needed next are damaged: it cannot continue */
    struct tl_missing missing; /* if damaged */
    bool finished;
    bool given_up;     /* abandoned during output: it cannot continue */
    struct job *job;   /* the job it works for */
    size_t part_bytes; /* size of the parts added since the last check */
    /* Parts from this shard and frame on are in `parts`, or will be. */
    uint64_t have_shard;
    uint32_t have_frame;
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
    struct tl_remaker *remaker;
    bool others;   /* a mark is from another program version */
    bool no_image; /* the program's images cannot be read, which `fail` says */
    bool differs;  /* the result is inconsistent with the index */
};

/* ---- remakers ------------------------------------------------------------------------------- */

static void drop_parts(struct tl_remaker *m)
{
    for (size_t i = 0; i < m->n_parts; i++)
        tl_blob_put(m->parts[i].blob);
    m->n_parts = 0;
}

static void remaker_free(struct tl_remaker *m)
{
    if (!m)
        return;
    drop_parts(m);
    free(m->parts);
    tl_decode_free(m->decode);
    tl_build_free(m->build);
    tl_spool_reader_free(m->reader);
    tl_buf_fini(&m->bytes);
    tl_program_put(m->lane->gen->lake, m->program);
    free(m);
}

static int collect(struct job *job);
static bool is_done(const struct job *job);

/* Is more than one chunk requested? */
static bool is_many(const struct job *job)
{
    return job->to - job->from > 1;
}

/* Many parts were added at once: are there enough? */
static int look(struct tl_remaker *m)
{
    const int r = collect(m->job);
    m->part_bytes = 0;
    m->given_up = r >= 0 && (is_done(m->job) || m->job->differs);
    return m->given_up ? TL_EOF : r;
}

static int on_part(void *context, struct tl_build_part *part)
{
    struct tl_remaker *const m = context;
    const bool wanted = part->shard > m->have_shard ||
                        (part->shard == m->have_shard && part->frame >= m->have_frame);
    if (!wanted || tl_grow(&m->parts, &m->cap_parts, m->n_parts + 1, sizeof(*part)) < 0) {
        tl_blob_put(part->blob);
        return wanted ? TL_NOMEM : TL_OK;
    }
    m->parts[m->n_parts++] = *part;
    m->part_bytes += part->is_log ? part->chunk.items_plain : part->stf.plain;
    return m->part_bytes > (is_many(m->job) ? AFTER_SHARD : AFTER_CHUNK) ? look(m) : TL_OK;
}

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct tl_remaker *const m = context;
    if (strcmp(stream->name, m->lane->name) != 0)
        return TL_OK;
    const struct tl_lake *const lake = m->lane->gen->lake;
    const struct tl_build_options options = {.protocol = stream->protocol,
                                             .isa = stream->isa,
                                             .shard_insns = lake->options.shard_insns,
                                             .image = m->program->image,
                                             .packing = lake->packing,
                                             .part = on_part,
                                             .context = m};
    m->stream = stream->index;
    tl_build_free(m->build);
    m->build = NULL;
    const int r = tl_build_new(&m->build, &options);
    if (r >= 0)
        tl_build_want(m->build, m->have_shard, m->have_frame);
    return r;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct tl_remaker *const m = context;
    return m->build && stream->index == m->stream ? tl_build_items(m->build, items, n) : TL_OK;
}

/* Where raw bytes are damaged, decoding ends: whether what comes after them belongs to the wanted
 * positions would not be known. */
static int meet_damage(struct tl_remaker *m, uint64_t from, uint64_t to)
{
    m->damaged = true;
    m->missing.from = from;
    m->missing.to = to;
    return TL_BAD;
}

/* A tl_decode_read(). */
static int read_again(void *context, uint64_t offset, uint8_t *out, size_t n)
{
    struct tl_remaker *const m = context;
    const int r = tl_spool_read_again(m->reader, offset, out, n);
    return r == TL_BAD ? meet_damage(m, offset, offset + n) : r;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    return TL_OK;
}

/* Create at the first raw byte. */
static int remaker_new(struct tl_remaker **out, struct job *job, struct tl_fail *fail)
{
    struct tl_remaker *const m = calloc(1, sizeof(*m));
    if (!m)
        return TL_NOMEM;
    m->lane = job->lane;
    m->job = job;
    m->have_shard = job->base->index.row.number;
    m->have_frame = (uint32_t)job->from;
    const struct tl_decode_sink sink = {
        .context = m, .stream = on_stream, .items = on_items, .loss = on_loss};
    const struct tl_image *image;
    int r = tl_gen_load_image(job->gen, &image, fail);
    job->no_image = r < 0;
    if (r >= 0)
        m->program = tl_program_share(job->gen->lake, job->gen->program);
    if (r >= 0)
        r = tl_spool_reader_new(&m->reader, job->gen->lake->backend, job->gen->trace);
    if (r >= 0)
        r = tl_decode_new(&m->decode, &job->gen->setup, image, &sink, fail);
    if (r < 0) {
        remaker_free(m);
        return r;
    }
    tl_decode_set_reader(m->decode, read_again, m);
    tl_decode_allow_paths(m->decode);
    tl_decode_set_code(m->decode, tl_stf_block_code);
    *out = m;
    return TL_OK;
}

/* Has logging of the wanted part not begun yet? */
static bool before(const struct tl_remaker *m, uint64_t shard, uint32_t frame)
{
    uint64_t at_shard;
    uint32_t at_frame;
    if (!m->build)
        return true;
    tl_build_place(m->build, &at_shard, &at_frame);
    return at_shard < shard || (at_shard == shard && at_frame < frame);
}

/* Restore a mark. TL_BAD: it is damaged, from another program version, or not before what is
 * wanted. */
static int load(struct job *job, struct tl_remaker *m, struct tl_bytes bytes)
{
    struct tl_checkpoint c = {0};
    int r = tl_checkpoint_decode(&c, job->gen->whose, bytes);
    job->others = job->others || (r == TL_BAD && tl_checkpoint_sound(bytes));
    if (r >= 0)
        r = tl_decode_load(m->decode, (struct tl_bytes){c.decode.p, c.decode.n});
    for (size_t i = 0; r >= 0 && m->build && i < c.n_lanes; i++)
        if (strcmp(c.lanes[i].name, m->lane->name) == 0) {
            struct tl_state state = {.in = {c.lanes[i].build.p, c.lanes[i].build.n}};
            tl_build_mark(m->build, &state);
            tl_state_check(&state, state.in.n == 0);
            r = state.rc;
        }
    m->at = c.offset;
    tl_checkpoint_fini(&c);
    return r >= 0 && !before(m, m->have_shard, m->have_frame) ? TL_BAD : r;
}

/* Begin at the last suitable mark, or at the first byte. */
static int begin_remaker(struct job *job, struct tl_remaker **out, struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &job->base->index;
    struct tl_marks marks;
    const uint64_t offset =
        job->chunk < index->n_chunks ? index->chunks[job->chunk].at.offset : index->row.byte_first;
    const struct tl_image *image;
    *out = NULL;
    int r = tl_gen_load_image(job->gen, &image, fail);
    job->no_image = r < 0;
    if (r >= 0)
        r = tl_resume_identity(job->gen);
    if (r < 0)
        return r;
    r = tl_marks_begin(&marks, job->gen, offset, fail);
    while (r >= 0 && !job->others && (r = tl_marks_next(&marks)) >= 0) {
        r = remaker_new(out, job, fail);
        if (r < 0)
            break;
        if (load(job, *out, (struct tl_bytes){marks.bytes.p, marks.bytes.n}) >= 0)
            break;
        remaker_free(*out);
        *out = NULL;
        r = tl_cancel_check();
    }
    tl_marks_fini(&marks);
    return (r >= 0 || r == TL_EOF) && !*out ? remaker_new(out, job, fail) : r == TL_EOF ? TL_OK : r;
}

/* ---- cached decoders ------------------------------------------------------------------------ */

static struct tl_remaker *take(struct tl_lake *lake, const struct tl_lane *lane)
{
    struct tl_remaker *found = NULL;
    pthread_mutex_lock(&lake->cache_lock);
    for (size_t i = 0; i < TL_REMAKERS && !found; i++)
        if (lake->remakers[i] && lake->remakers[i]->lane == lane)
            tl_recent_take(lake->remakers, sizeof found, TL_REMAKERS, i, &found);
    pthread_mutex_unlock(&lake->cache_lock);
    return found;
}

static void keep(struct tl_lake *lake, struct tl_remaker *m)
{
    struct tl_remaker *oldest;
    pthread_mutex_lock(&lake->cache_lock);
    tl_recent_put(lake->remakers, sizeof m, TL_REMAKERS, &m, &oldest);
    pthread_mutex_unlock(&lake->cache_lock);
    remaker_free(oldest);
}

void tl_remakers_forget(struct tl_lake *lake, const char *prefix)
{
    struct tl_remaker *gone[TL_REMAKERS];
    size_t n = 0, kept = 0;
    char key[192];
    pthread_mutex_lock(&lake->cache_lock);
    for (size_t i = 0; i < TL_REMAKERS; i++) {
        struct tl_remaker *const m = lake->remakers[i];
        lake->remakers[i] = NULL;
        if (!m)
            continue;
        const struct tl_gen *const gen = m->lane->gen;
        tl_shard_key(key, gen->trace, gen->number, m->lane->name, 0);
        if (strncmp(key, prefix, strlen(prefix)) == 0)
            gone[n++] = m;
        else
            lake->remakers[kept++] = m;
    }
    pthread_mutex_unlock(&lake->cache_lock);
    while (n > 0)
        remaker_free(gone[--n]);
}

/* Can it continue to what is wanted faster than from a mark? Nothing in between is regenerated. */
static bool serves(struct job *job, struct tl_remaker *m)
{
    const struct tl_shard_index *const index = &job->base->index;
    const uint64_t shard = index->row.number;
    const uint32_t frame = (uint32_t)job->from;
    const bool has = m->have_shard < shard || (m->have_shard == shard && m->have_frame <= frame);
    if (!has || !m->build || m->finished || job->chunk == index->n_chunks)
        return false;
    if (!before(m, shard, frame))
        return true;
    const uint64_t here = tl_build_position(m->build), there = index->chunks[job->chunk].first;
    if (there - here > job->gen->lake->options.shard_insns / 4)
        return false;
    tl_build_want(m->build, shard, frame);
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
    struct tl_remaker *const m = job->remaker;
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
    if (!job->base->open || !job->remaker->build || is_done(job))
        return TL_OK;
    tl_build_totals(job->remaker->build, &totals);
    if (totals.position < row->first + row->n)
        return TL_OK;
    int r = tl_build_open_parts(job->remaker->build, parts, &n);
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

/* The next raw bytes cannot be read. */
static int at_damage(struct tl_remaker *m, uint64_t end, struct tl_fail *fail)
{
    uint64_t next;
    const int r = tl_spool_skip(m->reader, m->at, end, &next, fail);
    if (r >= 0 && next == m->at)
        return tl_fail_set(fail, TL_IO, "raw bytes cannot be read reliably");
    return r < 0 ? r : meet_damage(m, m->at, next);
}

/* Decode at most `most` bytes. */
static int step(struct tl_remaker *m, uint64_t end, size_t most, struct tl_fail *fail)
{
    int r = tl_cancel_check();
    if (r >= 0 && m->used == m->bytes.n) {
        tl_buf_reset(&m->bytes);
        m->used = 0;
        r = tl_spool_read(m->reader, m->at, end, &m->bytes, fail);
        if (r == TL_BAD)
            return at_damage(m, end, fail);
        if (r >= 0)
            tl_decode_set_arrival(m->decode, tl_spool_reader_arrival(m->reader));
    }
    if (r < 0)
        return r;
    const size_t left = m->bytes.n - m->used, n = left < most ? left : most;
    r = tl_decode_push(m->decode, m->bytes.p + m->used, n);
    m->used += n;
    m->at += n;
    return r < 0 ? r : tl_decode_flush(m->decode);
}

/* End of the available raw bytes; for a generation that is being made more than its decoder has
 * processed, also for a complete shard: one that an earlier run stored after its last checkpoint.
 */
static uint64_t raw_end(const struct job *job)
{
    struct tl_trace *const trace = tl_lake_resident(job->gen->lake, job->gen->trace);
    uint64_t end = atomic_load(&job->gen->decoded);
    if (!trace)
        return end;
    pthread_mutex_lock(&trace->lock);
    const bool grows = job->base->open || trace->making == job->gen || trace->outline == job->gen;
    if (grows && trace->raw_bytes > end)
        end = trace->raw_bytes;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    return end;
}

/* The last shard of a stream ends with the capture. */
static int finish(struct tl_remaker *m)
{
    m->finished = true;
    const int r = tl_decode_finish(m->decode);
    return r >= 0 && m->build ? tl_build_finish(m->build) : r;
}

static int decode(struct job *job, struct tl_fail *fail)
{
    struct tl_remaker *const m = job->remaker;
    const uint64_t end = raw_end(job);
    size_t slice = SLICE_FIRST;
    m->job = job;
    m->part_bytes = 0;
    int r = collect(job);
    while (r >= 0 && !is_done(job) && !job->differs && !m->finished) {
        r = m->at < end ? step(m, end, slice, fail) : finish(m);
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
    struct tl_lake *const lake = job->gen->lake;
    int r = start(job);
    if (r < 0)
        return r;
    job->remaker = take(lake, job->lane);
    if (job->remaker && serves(job, job->remaker)) {
        r = decode(job, NULL);
        if ((r >= 0 && is_done(job)) || r == TL_CANCELLED || r == TL_NOMEM)
            return r;
        r = start(job); /* raw bytes may have been moved since then, or have grown */
    }
    remaker_free(job->remaker);
    job->remaker = NULL;
    if (r >= 0)
        r = begin_remaker(job, &job->remaker, fail);
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
        r = tl_missing_log(&job->remaker->missing, &index->chunks[job->chunk],
                           (struct tl_bytes){plain.p, plain.n}, position, &made->items[job->chunk]);
    tl_buf_fini(&plain);
    return r;
}

/* The builder gets the items of the missing range, which end the last instruction's records. */
static int end_parts(struct job *job)
{
    struct tl_remaker *const m = job->remaker;
    const struct tl_shard_index *const index = &job->base->index;
    struct tl_build_part parts[2];
    struct tl_item items[2];
    size_t n = 0;
    int r = collect(job);
    if (r < 0 || !m->build || index->n_chunks == 0)
        return r;
    const size_t open = job->chunk < index->n_chunks ? job->chunk : index->n_chunks - 1;
    const uint64_t position = tl_build_position(m->build);
    const size_t n_items = tl_missing_items(&m->missing, &index->chunks[open], position, items);
    r = tl_build_items(m->build, items, n_items);
    if (r >= 0)
        r = collect(job);
    if (r >= 0)
        r = tl_build_open_parts(m->build, parts, &n);
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
            r = tl_missing_log(&job->remaker->missing, &index->chunks[i], (struct tl_bytes){0},
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
    job->remaker->missing.protocol = job->lane->protocol;
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
    const bool damaged = job.remaker && job.remaker->damaged;
    if (r == TL_BAD && damaged && !job.differs)
        r = around_damage(&job, fail);
    const bool done = r >= 0 && !job.differs && (damaged || is_done(&job));
    const bool other = !damaged && !done && !job.no_image && (r >= 0 || r == TL_BAD);
    if (done && !damaged && !job.remaker->finished && !job.remaker->given_up)
        keep(gen->lake, job.remaker);
    else
        remaker_free(job.remaker);
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
