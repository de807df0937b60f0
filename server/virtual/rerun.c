/* SPDX-License-Identifier: MIT */
/*
 * Decodes raw bytes again from a mark, for one stream. What becomes of its items is the builder's:
 * parts of virtual shards (remake.c), or an index ahead of its turn (early.c).
 */
#include "virtual/rerun.h"

#include "base/cancel.h"
#include "decoding/resume.h"
#include "lake/lakeint.h"
#include "stf/close.h"
#include "virtual/find_marks.h"

#include <string.h>

void tl_rerun_fini(struct tl_rerun *run)
{
    tl_decode_free(run->decode);
    tl_build_free(run->build);
    tl_spool_reader_free(run->reader);
    tl_buf_fini(&run->bytes);
    if (run->lane)
        tl_program_put(run->lane->gen->lake, run->program);
    *run = (struct tl_rerun){0};
}

/* ---- from the decoder ----------------------------------------------------------------------- */

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct tl_rerun *const run = context;
    if (strcmp(stream->name, run->lane->name) != 0)
        return TL_OK;
    const struct tl_lake *const lake = run->lane->gen->lake;
    struct tl_build_options options = run->how;
    options.protocol = stream->protocol;
    options.isa = stream->isa;
    options.shard_insns = lake->options.shard_insns;
    options.image = run->program->image;
    options.packing = lake->packing;
    run->stream = stream->index;
    tl_build_free(run->build);
    run->build = NULL;
    const int r = tl_build_new(&run->build, &options);
    if (r >= 0 && options.part)
        tl_build_want(run->build, run->shard, run->frame);
    return r;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct tl_rerun *const run = context;
    return run->build && stream->index == run->stream ? tl_build_items(run->build, items, n)
                                                      : TL_OK;
}

/* Where raw bytes are damaged, decoding ends: whether what comes after them belongs to the wanted
 * positions would not be known. */
static int meet_damage(struct tl_rerun *run, uint64_t from, uint64_t to)
{
    run->damaged = true;
    run->missing.from = from;
    run->missing.to = to;
    return TL_BAD;
}

/* A tl_decode_read(). */
static int read_again(void *context, uint64_t offset, uint8_t *out, size_t n)
{
    struct tl_rerun *const run = context;
    const int r = tl_spool_read_again(run->reader, offset, out, n);
    return r == TL_BAD ? meet_damage(run, offset, offset + n) : r;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    return TL_OK;
}

/* ---- its begin ------------------------------------------------------------------------------ */

/* Create at the first raw byte. */
static int create(struct tl_rerun *run, struct tl_fail *fail)
{
    struct tl_gen *const gen = run->lane->gen;
    const struct tl_decode_sink sink = {
        .context = run, .stream = on_stream, .items = on_items, .loss = on_loss};
    const struct tl_image *image;
    int r = tl_gen_load_image(gen, &image, fail);
    run->no_image = r < 0;
    if (r >= 0)
        run->program = tl_program_share(gen->lake, gen->program);
    if (r >= 0)
        r = tl_spool_reader_new(&run->reader, gen->lake->backend, gen->trace);
    if (r >= 0)
        r = tl_decode_new(&run->decode, &gen->setup, image, &sink, fail);
    if (r < 0)
        return r;
    tl_decode_set_reader(run->decode, read_again, run);
    tl_decode_allow_paths(run->decode);
    tl_decode_set_code(run->decode, tl_stf_block_code);
    return TL_OK;
}

/* The same in place of one that was created before. */
static int create_anew(struct tl_rerun *run, struct tl_fail *fail)
{
    const struct tl_rerun before = *run;
    tl_rerun_fini(run);
    *run = (struct tl_rerun){.lane = before.lane,
                             .how = before.how,
                             .shard = before.shard,
                             .frame = before.frame,
                             .others = before.others};
    return create(run, fail);
}

bool tl_rerun_is_before(const struct tl_rerun *run, uint64_t shard, uint32_t frame)
{
    uint64_t at_shard;
    uint32_t at_frame;
    if (!run->build)
        return true;
    tl_build_place(run->build, &at_shard, &at_frame);
    return at_shard < shard || (at_shard == shard && at_frame < frame);
}

/* Restore a mark. TL_BAD: it is damaged, from another server version, or not before what is
 * wanted. */
static int load(struct tl_rerun *run, struct tl_bytes bytes)
{
    struct tl_checkpoint c = {0};
    int r = tl_checkpoint_decode(&c, run->lane->gen->whose, bytes);
    run->others = run->others || (r == TL_BAD && tl_checkpoint_sound(bytes));
    if (r >= 0)
        r = tl_decode_load(run->decode, (struct tl_bytes){c.decode.p, c.decode.n});
    for (size_t i = 0; r >= 0 && run->build && i < c.n_lanes; i++)
        if (strcmp(c.lanes[i].name, run->lane->name) == 0) {
            struct tl_state state = {.in = {c.lanes[i].build.p, c.lanes[i].build.n}};
            tl_build_mark(run->build, &state);
            tl_state_check(&state, state.in.n == 0);
            r = state.rc;
        }
    run->at = c.offset;
    tl_checkpoint_fini(&c);
    return r >= 0 && !tl_rerun_is_before(run, run->shard, run->frame) ? TL_BAD : r;
}

/* TL_OK: it stands at a mark; TL_EOF: none is suitable. */
static int begin_at_mark(struct tl_rerun *run, uint64_t offset, struct tl_fail *fail)
{
    struct tl_marks marks;
    int r = tl_marks_begin(&marks, run->lane->gen, offset, fail);
    while (r >= 0) {
        r = run->others ? TL_EOF : tl_marks_next(&marks);
        if (r >= 0)
            r = create_anew(run, fail);
        if (r < 0 || load(run, (struct tl_bytes){marks.bytes.p, marks.bytes.n}) >= 0)
            break;
        r = tl_cancel_check();
    }
    tl_marks_fini(&marks);
    return r;
}

int tl_rerun_begin(struct tl_rerun *run, struct tl_lane *lane, const struct tl_build_options *how,
                   const struct tl_rerun_place *place, struct tl_fail *fail)
{
    const struct tl_image *image;
    *run =
        (struct tl_rerun){.lane = lane, .how = *how, .shard = place->shard, .frame = place->frame};
    int r = tl_gen_load_image(lane->gen, &image, fail);
    run->no_image = r < 0;
    if (r >= 0)
        r = tl_resume_identity(lane->gen);
    if (r >= 0)
        r = begin_at_mark(run, place->offset, fail);
    return r == TL_EOF ? create_anew(run, fail) : r;
}

/* ---- decoding ------------------------------------------------------------------------------- */

uint64_t tl_rerun_end(struct tl_gen *gen, bool open)
{
    struct tl_trace *const trace = tl_lake_resident(gen->lake, gen->trace);
    uint64_t end = atomic_load(&gen->decoded);
    if (!trace)
        return end;
    pthread_mutex_lock(&trace->lock);
    const bool grows = open || trace->making == gen || trace->outline == gen;
    if (grows && trace->raw_bytes > end)
        end = trace->raw_bytes;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    return end;
}

/* The next raw bytes cannot be read. */
static int at_damage(struct tl_rerun *run, uint64_t end, struct tl_fail *fail)
{
    uint64_t next;
    const int r = tl_spool_skip(run->reader, run->at, end, &next, fail);
    if (r >= 0 && next == run->at)
        return tl_fail_set(fail, TL_IO, "raw bytes cannot be read reliably");
    return r < 0 ? r : meet_damage(run, run->at, next);
}

int tl_rerun_step(struct tl_rerun *run, uint64_t end, size_t most, struct tl_fail *fail)
{
    int r = tl_cancel_check();
    if (r >= 0 && run->used == run->bytes.n) {
        tl_buf_reset(&run->bytes);
        run->used = 0;
        r = tl_spool_read(run->reader, run->at, end, &run->bytes, fail);
        if (r == TL_BAD)
            return at_damage(run, end, fail);
        if (r >= 0 && tl_spool_reader_rejoined(run->reader))
            r = tl_decode_reconnect(run->decode, tl_spool_reader_arrival(run->reader));
        if (r >= 0)
            tl_decode_set_arrival(run->decode, tl_spool_reader_arrival(run->reader));
    }
    if (r < 0)
        return r;
    const size_t left = run->bytes.n - run->used, n = left < most ? left : most;
    r = tl_decode_push(run->decode, run->bytes.p + run->used, n);
    run->used += n;
    run->at += n;
    return r < 0 ? r : tl_decode_flush(run->decode);
}

int tl_rerun_finish(struct tl_rerun *run)
{
    run->finished = true;
    const int r = tl_decode_finish(run->decode);
    return r >= 0 && run->build ? tl_build_finish(run->build) : r;
}
