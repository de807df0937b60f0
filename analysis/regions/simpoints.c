/* SPDX-License-Identifier: MIT */
/*
 * The projection's elements are hashes of key and dimension, so that no matrix is stored and parts
 * of a trace analysed on different machines can be joined. A shorter interval, as at the end of the
 * trace, represents a phase only if there is no other.
 */
#include "regions/simpoints.h"

#include "base/hash.h"
#include "regions/cluster.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define DIMS (2 * (size_t)TL_SIMPOINT_DIMS)

static_assert(DIMS * sizeof(double) + 2 * sizeof(uint64_t) == 256, "as the header says");

void tl_simpoints_init(struct tl_simpoints *points)
{
    *points = (struct tl_simpoints){0};
}

void tl_simpoints_fini(struct tl_simpoints *points)
{
    free(points->at);
    free(points->firsts);
    free(points->insns);
    tl_simpoints_init(points);
}

/* Element [key, dim] of the random projection, uniform in [-1, 1). */
static double projection(uint64_t key, unsigned dim)
{
    uint64_t state = key * DIMS + dim;
    return (double)(int64_t)tl_random64(&state) * 0x1p-63;
}

/* Project a vector, normalised to a sum of 1. */
static void project(const struct tl_vector_part *parts, size_t n, unsigned from, double *out)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += parts[i].n;
    for (unsigned d = 0; d < TL_SIMPOINT_DIMS; d++) {
        double at = 0;
        for (size_t i = 0; i < n; i++)
            at += parts[i].n / sum * projection(parts[i].key, from + d);
        out[d] = at;
    }
}

/* Ensure capacity for `n` more intervals. */
static int grow(struct tl_simpoints *points, size_t n)
{
    n += points->n;
    int r = tl_grow(&points->at, &points->cap_at, n * DIMS, sizeof *points->at);
    if (r >= 0)
        r = tl_grow(&points->firsts, &points->cap_firsts, n, sizeof *points->firsts);
    if (r >= 0)
        r = tl_grow(&points->insns, &points->cap_insns, n, sizeof *points->insns);
    return r;
}

int tl_simpoints_add(void *context, const struct tl_vector *vector)
{
    struct tl_simpoints *const points = context;
    const size_t n = points->n;
    const int r = grow(points, 1);
    if (r < 0)
        return r;
    double *const at = points->at + n * DIMS;
    project(vector->blocks, vector->n_blocks, 0, at);
    project(vector->pages, vector->n_pages, TL_SIMPOINT_DIMS, at + TL_SIMPOINT_DIMS);
    points->firsts[n] = points->total;
    points->insns[n] = vector->insns;
    points->has_memory |= vector->n_pages != 0;
    points->total += vector->insns;
    points->n++;
    return TL_OK;
}

int tl_simpoints_join(struct tl_simpoints *points, const struct tl_simpoints *more)
{
    const int r = grow(points, more->n);
    if (r < 0 || more->n == 0)
        return r;
    memcpy(points->at + points->n * DIMS, more->at, more->n * DIMS * sizeof *more->at);
    for (size_t i = 0; i < more->n; i++) {
        points->firsts[points->n + i] = points->total + more->firsts[i];
        points->insns[points->n + i] = more->insns[i];
    }
    points->has_memory |= more->has_memory;
    points->total += more->total;
    points->n += more->n;
    return TL_OK;
}

/* The interval of a cluster that is closest to its centre; a shorter one only if there is no
 * other. */
static size_t representative(const struct tl_simpoints *points, const struct tl_clusters *clusters,
                             const double *at, size_t dims, uint32_t k)
{
    size_t best = points->n;
    double min = HUGE_VAL;
    for (size_t i = 0; i < points->n; i++) {
        if (clusters->of[i] != k)
            continue;
        double d = 0;
        for (size_t j = 0; j < dims; j++) {
            const double x = at[i * dims + j] - clusters->centres[k * dims + j];
            d += x * x;
        }
        const bool shorter = best < points->n && points->insns[i] < points->insns[best];
        if (best == points->n || (d < min && !shorter)) {
            min = d;
            best = i;
        }
    }
    return best;
}

static int by_first(const void *a, const void *b)
{
    const uint64_t x = ((const struct tl_simpoint *)a)->first;
    const uint64_t y = ((const struct tl_simpoint *)b)->first;
    return (x > y) - (x < y);
}

static int choose(const struct tl_simpoints *points, const struct tl_points *space, uint32_t most,
                  struct tl_simpoint **chosen, size_t *n)
{
    struct tl_clusters clusters;
    int r = tl_cluster_best(space, most, &clusters);
    struct tl_simpoint *const out = r >= 0 ? calloc(clusters.k + (size_t)1, sizeof *out) : NULL;
    if (r >= 0 && !out)
        r = TL_NOMEM;
    for (uint32_t k = 0; r >= 0 && k < clusters.k; k++) {
        const size_t i = representative(points, &clusters, space->at, space->dims, k);
        out[k] = (struct tl_simpoint){
            .first = points->firsts[i], .insns = points->insns[i], .interval = i};
    }
    for (size_t i = 0; r >= 0 && i < points->n; i++) {
        out[clusters.of[i]].weight += (double)points->insns[i] / (double)points->total;
        out[clusters.of[i]].intervals++;
    }
    if (r >= 0) {
        qsort(out, clusters.k, sizeof *out, by_first);
        *chosen = out;
        *n = clusters.k;
    }
    tl_clusters_fini(&clusters);
    return r;
}

int tl_simpoints_choose(const struct tl_simpoints *points, uint32_t most, uint64_t *effort,
                        struct tl_simpoint **chosen, size_t *n)
{
    const size_t dims = points->has_memory ? DIMS : TL_SIMPOINT_DIMS;
    *chosen = NULL;
    *n = 0;
    if (points->n == 0)
        return TL_OK;
    double *const at = malloc(points->n * dims * sizeof *at);
    double *const weights = malloc(points->n * sizeof *weights);
    int r = at && weights ? TL_OK : TL_NOMEM;
    for (size_t i = 0; r >= 0 && i < points->n; i++) {
        memcpy(at + i * dims, points->at + i * DIMS, dims * sizeof *at);
        weights[i] = (double)points->insns[i];
    }
    const struct tl_points space = {at, weights, points->n, dims, effort};
    if (r >= 0)
        r = choose(points, &space, most ? most : 1, chosen, n);
    free(at);
    free(weights);
    return r;
}
