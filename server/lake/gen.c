/* SPDX-License-Identifier: MIT */
/*
 * Generations and their lanes: lifetime, rows in the catalog, image. Readers hold references, so
 * that a generation that was replaced goes once its last reader has ended.
 */
#include "lake/away.h"
#include "lake/lakeint.h"
#include "setup/timestamps.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- lanes --------------------------------------------------------------------------------- */

uint64_t tl_lane_sealed_locked(const struct tl_lane *lane)
{
    if (lane->rows.n == 0)
        return 0;
    const struct tl_shard_row *last = &lane->rows.v[lane->rows.n - 1];
    return last->first + last->n;
}

bool tl_lane_is_incomplete(struct tl_lane *lane, uint64_t shard)
{
    pthread_mutex_lock(&lane->lock);
    const bool is = tl_numbers_find(&lane->incomplete, shard) != TL_NO_NUMBER;
    pthread_mutex_unlock(&lane->lock);
    return is;
}

/* Best effort. */
void tl_lane_note_incomplete(struct tl_lane *lane, uint64_t shard)
{
    pthread_mutex_lock(&lane->lock);
    if (tl_numbers_find(&lane->incomplete, shard) == TL_NO_NUMBER)
        (void)!tl_numbers_add(&lane->incomplete, shard);
    pthread_mutex_unlock(&lane->lock);
}

static void free_stats(struct tl_shard_stats *stats)
{
    if (stats)
        tl_shard_stats_fini(stats);
    free(stats);
}

void tl_lane_forget_stats_locked(struct tl_lane *lane)
{
    for (size_t i = 0; i < lane->n_stats; i++)
        free_stats(lane->stats[i]);
    free(lane->stats);
    lane->stats = NULL;
    lane->n_stats = lane->cap_stats = lane->stats_bytes = 0;
}

static void free_calltree(struct tl_calltree *tree)
{
    if (tree)
        tl_calltree_fini(tree);
    free(tree);
}

void tl_lane_forget_calltrees_locked(struct tl_lane *lane)
{
    for (size_t i = 0; i < lane->n_calltrees; i++)
        free_calltree(lane->calltrees[i]);
    free(lane->calltrees);
    lane->calltrees = NULL;
    lane->n_calltrees = lane->cap_calltrees = lane->calltree_bytes = 0;
}

void tl_lane_drop_pending_locked(struct tl_lane *lane, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tl_view_put(lane->pending[i]);
    lane->n_pending -= n;
    if (n > 0)
        memmove(lane->pending, lane->pending + n, lane->n_pending * sizeof *lane->pending);
}

int tl_lane_stored_locked(struct tl_lane *lane, const struct tl_shard_row *row)
{
    const int r = tl_rows_add(&lane->rows, row, lane->gen->lake->backend);
    if (r >= 0)
        tl_lane_drop_pending_locked(lane, 1);
    return r;
}

static void lane_free(struct tl_lane *lane)
{
    tl_build_free(lane->build);
    tl_lane_drop_pending_locked(lane, lane->n_pending);
    free(lane->pending);
    for (size_t i = 0; i < lane->n_away; i++)
        tl_away_put(lane->away[i]);
    free(lane->away);
    tl_rows_fini(&lane->rows);
    free(lane->fit);
    tl_buckets_fini(&lane->summary);
    tl_time_summary_forget(&lane->time_summary);
    tl_time_summary_forget(&lane->function_summary);
    pthread_mutex_destroy(&lane->time_summary.lock);
    pthread_mutex_destroy(&lane->function_summary.lock);
    tl_lane_forget_stats_locked(lane);
    tl_numbers_fini(&lane->incomplete);
    tl_lane_forget_calltrees_locked(lane);
    pthread_mutex_destroy(&lane->lock);
    pthread_mutex_destroy(&lane->make_lock);
    free(lane);
}

int tl_gen_add_lane(struct tl_gen *gen, const char *name, enum tl_protocol protocol,
                    struct tl_lane **out)
{
    struct tl_lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        return TL_NOMEM;
    lane->gen = gen;
    lane->protocol = protocol;
    lane->clock_hz = tl_setup_clock(&gen->setup, name);
    lane->summary.level = TL_LEVEL_SUMMARY;
    snprintf(lane->name, sizeof(lane->name), "%s", name);
    pthread_mutex_init(&lane->lock, NULL);
    pthread_mutex_init(&lane->make_lock, NULL);
    pthread_mutex_init(&lane->time_summary.lock, NULL);
    pthread_mutex_init(&lane->function_summary.lock, NULL);
    lane->function_summary.by_position = true;
    pthread_mutex_lock(&gen->lock);
    int r = tl_grow(&gen->lanes, &gen->cap_lanes, gen->n_lanes + 1, sizeof(struct tl_lane *));
    if (r >= 0) {
        lane->index = (uint32_t)gen->n_lanes;
        gen->lanes[gen->n_lanes++] = lane;
    }
    pthread_mutex_unlock(&gen->lock);
    if (r < 0) {
        lane_free(lane);
        return r;
    }
    *out = lane;
    return TL_OK;
}

struct tl_lane *tl_gen_lane(struct tl_gen *gen, const char *name)
{
    struct tl_lane *lane = NULL;
    pthread_mutex_lock(&gen->lock);
    for (size_t i = 0; i < gen->n_lanes && !lane; i++)
        if (strcmp(gen->lanes[i]->name, name) == 0)
            lane = gen->lanes[i];
    pthread_mutex_unlock(&gen->lock);
    return lane;
}

struct tl_lane *tl_gen_lane_at(struct tl_gen *gen, size_t index)
{
    pthread_mutex_lock(&gen->lock);
    struct tl_lane *lane = index < gen->n_lanes ? gen->lanes[index] : NULL;
    pthread_mutex_unlock(&gen->lock);
    return lane;
}

/* ---- life ---------------------------------------------------------------------------------- */

int tl_gen_new(struct tl_gen **out, struct tl_lake *lake, const char *trace, uint64_t number,
               const char *setup, struct tl_fail *fail)
{
    struct tl_gen *gen = calloc(1, sizeof(*gen));
    if (!gen)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    atomic_init(&gen->refs, 1);
    gen->lake = lake;
    gen->number = number;
    snprintf(gen->trace, sizeof(gen->trace), "%s", trace);
    tl_setup_init(&gen->setup);
    pthread_mutex_init(&gen->lock, NULL);
    pthread_mutex_init(&gen->marks_lock, NULL);
    const int r = tl_setup_parse(&gen->setup, setup, strlen(setup), fail);
    if (r < 0) {
        tl_gen_put(gen);
        return r;
    }
    *out = gen;
    return TL_OK;
}

struct tl_gen *tl_gen_get(struct tl_gen *gen)
{
    atomic_fetch_add(&gen->refs, 1);
    return gen;
}

/* Views of virtual shards refer to their lane. */
static void forget_views(struct tl_gen *gen)
{
    char prefix[192];
    snprintf(prefix, sizeof(prefix), "t/%s/%llu/", gen->trace, (unsigned long long)gen->number);
    tl_lake_forget_views(gen->lake, prefix);
}

/* The last reference is gone: remove its shards. The housekeeper retries failures. */
static void remove_shards(struct tl_gen *gen)
{
    char prefix[192];
    void (*const discard)(struct tl_lake *, const char *) =
        atomic_load(&gen->buried) || gen->lake->shared ? tl_lake_discard_later : tl_lake_discard;
    snprintf(prefix, sizeof(prefix), "t/%s/%llu", gen->trace, (unsigned long long)gen->number);
    discard(gen->lake, prefix);
    discard(gen->lake, tl_checkpoint_key(prefix, gen->trace, gen->number, NULL));
}

void tl_gen_put(struct tl_gen *gen)
{
    if (!gen || atomic_fetch_sub(&gen->refs, 1) != 1)
        return;
    forget_views(gen);
    if (atomic_load(&gen->obsolete))
        remove_shards(gen);
    if (gen->job)
        gen->free_job(gen->job);
    for (size_t i = 0; i < gen->n_lanes; i++)
        lane_free(gen->lanes[i]);
    free(gen->lanes);
    free(gen->marks);
    pthread_mutex_destroy(&gen->marks_lock);
    tl_program_put(gen->lake, gen->program);
    tl_setup_fini(&gen->setup);
    pthread_mutex_destroy(&gen->lock);
    free(gen);
}

void tl_gen_say(struct tl_gen *gen, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&gen->lock);
    vsnprintf(gen->message, sizeof(gen->message), format, args);
    pthread_mutex_unlock(&gen->lock);
    va_end(args);
}

void tl_gen_wait(struct tl_gen *gen, const char *why)
{
    pthread_mutex_lock(&gen->lock);
    snprintf(gen->waits, sizeof(gen->waits), "%s%s", why ? "decoding waits: " : "", why ? why : "");
    pthread_mutex_unlock(&gen->lock);
}

bool tl_gen_has_said(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    const bool said = gen->message[0] != '\0';
    pthread_mutex_unlock(&gen->lock);
    return said;
}

bool tl_lane_has_own_clock(const struct tl_lane *lane)
{
    return tl_protocol_has_own_clock(lane->protocol);
}

bool tl_lane_is_timed(const struct tl_lane *lane)
{
    const struct tl_setup *const setup = &lane->gen->setup;
    const struct tl_source otherwise = {.protocol = (uint8_t)lane->protocol};
    const struct tl_source *source = &otherwise;
    for (size_t i = 0; i < setup->n_sources; i++)
        if (strcmp(setup->sources[i].name, lane->name) == 0)
            source = &setup->sources[i];
    return tl_source_is_timed(setup, source);
}

bool tl_lane_is_in_ns(const struct tl_lane *lane)
{
    return lane->clock_hz != 0 || lane->gen->setup.clock.known;
}

struct tl_axis tl_lane_axis(const struct tl_lane *lane)
{
    return (struct tl_axis){.clock = lane->gen->setup.clock, .hz = lane->clock_hz};
}

uint64_t tl_lane_time(const struct tl_lane *lane, uint64_t ticks)
{
    const struct tl_axis axis = tl_lane_axis(lane);
    return tl_axis_shown(&axis, ticks);
}

/* ---- from the catalog ----------------------------------------------------------------------- */

static int load_stream(void *context, const struct tl_catalog_stream *stream)
{
    struct tl_lane *lane;
    const int r = tl_gen_add_lane(context, stream->name, (enum tl_protocol)stream->protocol, &lane);
    if (r >= 0) {
        lane->lost_bytes = stream->lost_bytes;
        lane->clock = stream->clock;
    }
    return r;
}

static int load_shard(void *context, const struct tl_shard_row *row)
{
    struct tl_lane *lane = context;
    return tl_rows_add(&lane->rows, row, lane->gen->lake->backend);
}

int tl_gen_load(struct tl_gen *gen, struct tl_fail *fail)
{
    struct tl_catalog *catalog = gen->lake->catalog;
    int r = catalog->ops->streams(catalog, gen->trace, gen->number, load_stream, gen, fail);
    for (size_t i = 0; r >= 0 && i < gen->n_lanes; i++)
        r = catalog->ops->shards(catalog, gen->trace, gen->number, i, load_shard, gen->lanes[i],
                                 fail);
    return r;
}

void tl_gen_totals(struct tl_gen *gen, uint64_t *insns, uint64_t *stored_bytes)
{
    *insns = *stored_bytes = 0;
    pthread_mutex_lock(&gen->lock);
    for (size_t i = 0; i < gen->n_lanes; i++) {
        struct tl_lane *const lane = gen->lanes[i];
        pthread_mutex_lock(&lane->lock);
        if (!tl_stream_is_derived(lane->name))
            *insns += tl_lane_sealed_locked(lane);
        *stored_bytes += lane->rows.totals.bytes;
        pthread_mutex_unlock(&lane->lock);
    }
    pthread_mutex_unlock(&gen->lock);
}

/* ---- the image ------------------------------------------------------------------------------ */

int tl_gen_load_image(struct tl_gen *gen, const struct tl_image **out, struct tl_fail *fail)
{
    pthread_mutex_lock(&gen->lock);
    const int r =
        gen->program ? TL_OK : tl_program_get(&gen->program, gen->lake, &gen->setup, fail);
    if (r >= 0 && gen->program->message[0])
        snprintf(gen->message, sizeof(gen->message), "%s", gen->program->message);
    *out = r >= 0 ? gen->program->image : NULL;
    gen->image_used_ns = tl_monotonic_ns();
    pthread_mutex_unlock(&gen->lock);
    return r;
}

const struct tl_image *tl_gen_image(struct tl_gen *gen)
{
    const struct tl_image *image;
    return tl_gen_load_image(gen, &image, NULL) < 0 ? NULL : image;
}

bool tl_gen_keeps_counts(const struct tl_gen *gen, bool is_virtual, const struct tl_shard_row *row)
{
    return !is_virtual || row->number > 0 || row->n >= gen->lake->options.shard_insns / 2;
}
