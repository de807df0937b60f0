/* SPDX-License-Identifier: MIT */
/*
 * k-means runs several times for each k, from different seeds, because it only finds a local
 * optimum. Variance has a lower bound: without it, the criterion would reward splitting phases that
 * differ by noise alone.
 */
#include "regions/cluster.h"

#include "base/cancel.h"
#include "base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STARTS    5   /* runs for each k, of which the best counts */
#define ROUNDS    100 /* maximum rounds of k-means */
#define BIC_SHARE 0.9
/* Variance of a coordinate within a cluster. Intervals of one phase whose shares of code differ by
 * about 2 % have this variance: splitting them would explain nothing. */
#define MIN_VARIANCE 1e-4

struct random {
    uint64_t state;
};

/* Uniform in [0, 1). */
static double uniform(struct random *random)
{
    return (double)(tl_random64(&random->state) >> 11) * 0x1p-53;
}

static double distance(const double *a, const double *b, size_t dims)
{
    double sum = 0;
    for (size_t i = 0; i < dims; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* State of one run of k-means. */
struct means {
    const struct tl_points *points;
    double *centres, *sums; /* k * dims */
    double *weights;        /* of each cluster */
    double *nearest;        /* squared distance of each point to its centre */
    uint32_t *of;
    uint32_t k;
};

static const double *point(const struct means *m, size_t i)
{
    return m->points->at + i * m->points->dims;
}

/*
 * Choose initial centres as k-means++ (Arthur, Vassilvitskii): points, with a probability
 * proportional to the squared distance to the centres chosen so far. Fewer than k if points
 * coincide.
 */
static void start(struct means *m, struct random *random)
{
    const size_t n = m->points->n, dims = m->points->dims;
    size_t chosen = (size_t)(uniform(random) * (double)n);
    for (size_t i = 0; i < n; i++)
        m->nearest[i] = HUGE_VAL;
    for (uint32_t k = 0; k < m->k; k++) {
        double total = 0;
        memcpy(m->centres + k * dims, point(m, chosen), dims * sizeof *m->centres);
        for (size_t i = 0; i < n; i++) {
            const double d = distance(point(m, i), point(m, chosen), dims);
            m->nearest[i] = d < m->nearest[i] ? d : m->nearest[i];
            total += m->nearest[i] * m->points->weights[i];
        }
        if (total <= 0) {
            m->k = k + 1;
            return;
        }
        double at = uniform(random) * total;
        chosen = n;
        for (size_t i = 0; i < n; i++) {
            const double d = m->nearest[i] * m->points->weights[i];
            if (d > 0)
                chosen = i;
            if ((at -= d) < 0 && d > 0)
                break;
        }
    }
}

/* Assign each point to the nearest centre. Returns whether any assignment changed. */
static bool assign(struct means *m)
{
    const size_t dims = m->points->dims;
    bool changed = false;
    for (size_t i = 0; i < m->points->n; i++) {
        uint32_t best = 0;
        double min = HUGE_VAL;
        for (uint32_t k = 0; k < m->k; k++) {
            const double d = distance(point(m, i), m->centres + k * dims, dims);
            if (d < min) {
                min = d;
                best = k;
            }
        }
        changed |= m->of[i] != best;
        m->of[i] = best;
        m->nearest[i] = min;
    }
    return changed;
}

/* Move each centre to the mean of its points; centres without points are removed. */
static void move(struct means *m)
{
    const size_t dims = m->points->dims;
    memset(m->sums, 0, m->k * dims * sizeof *m->sums);
    memset(m->weights, 0, m->k * sizeof *m->weights);
    for (size_t i = 0; i < m->points->n; i++) {
        const double w = m->points->weights[i];
        m->weights[m->of[i]] += w;
        for (size_t d = 0; d < dims; d++)
            m->sums[m->of[i] * dims + d] += w * point(m, i)[d];
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < m->k; k++) {
        if (m->weights[k] <= 0)
            continue;
        for (size_t d = 0; d < dims; d++)
            m->centres[kept * dims + d] = m->sums[k * dims + d] / m->weights[k];
        kept++;
    }
    m->k = kept;
}

/*
 * How well the clusters explain the points, minus a penalty for their number: Pelleg and Moore,
 * "X-means", for spherical clusters with one variance. Points count by their weights.
 */
static double criterion(struct means *m)
{
    const double dims = (double)m->points->dims;
    double total = 0, spread = 0, likelihood = 0;
    memset(m->weights, 0, m->k * sizeof *m->weights);
    for (size_t i = 0; i < m->points->n; i++) {
        m->weights[m->of[i]] += m->points->weights[i];
        total += m->points->weights[i];
        spread += m->nearest[i] * m->points->weights[i];
    }
    /* Weights are scaled so that their sum is the number of points. */
    const double n = (double)m->points->n, scale = n / total;
    const double freedom = n - m->k > 1 ? n - m->k : 1;
    double variance = spread * scale / (freedom * dims);
    variance = variance > MIN_VARIANCE ? variance : MIN_VARIANCE;
    for (uint32_t k = 0; k < m->k; k++) {
        const double r = m->weights[k] * scale;
        likelihood += r * log(r / n) - r / 2 * log(2 * M_PI) - r * dims / 2 * log(variance);
    }
    likelihood -= spread * scale / (2 * variance);
    const double parameters = (m->k - 1) + m->k * dims + 1;
    return likelihood - parameters / 2 * log(n);
}

/* Take the effort of comparing all points with all centres. */
static int spend(const struct means *m)
{
    const uint64_t needed = (uint64_t)m->points->n * m->points->dims * m->k;
    uint64_t *const effort = m->points->effort;
    if (effort && *effort < needed)
        return TL_LIMIT;
    if (effort)
        *effort -= needed;
    return tl_cancel_check();
}

static int run(struct means *m, struct random *random, uint32_t k)
{
    m->k = k;
    int r = spend(m);
    if (r < 0)
        return r;
    start(m, random);
    memset(m->of, 0xff, m->points->n * sizeof *m->of);
    for (int round = 0; round < ROUNDS && (r = spend(m)) >= 0; round++) {
        if (!assign(m))
            break;
        move(m);
    }
    if (r < 0)
        return r;
    /* Centres may have been removed: renumber the clusters by the remaining ones. */
    assign(m);
    return r;
}

void tl_clusters_fini(struct tl_clusters *clusters)
{
    free(clusters->of);
    free(clusters->centres);
    *clusters = (struct tl_clusters){0};
}

static int keep(const struct means *m, double bic, struct tl_clusters *out)
{
    const size_t n = m->points->n, dims = m->points->dims;
    struct tl_clusters next = {.of = malloc((n + 1) * sizeof *next.of),
                               .centres = malloc((m->k * dims + 1) * sizeof *next.centres),
                               .k = m->k,
                               .bic = bic};
    if (!next.of || !next.centres) {
        tl_clusters_fini(&next);
        return TL_NOMEM;
    }
    memcpy(next.of, m->of, n * sizeof *next.of);
    memcpy(next.centres, m->centres, m->k * dims * sizeof *next.centres);
    tl_clusters_fini(out);
    *out = next;
    return TL_OK;
}

int tl_cluster(const struct tl_points *points, uint32_t k, struct tl_clusters *out)
{
    *out = (struct tl_clusters){0};
    if (points->n == 0)
        return TL_OK;
    if (k > points->n)
        k = (uint32_t)points->n;
    const size_t room = (k * points->dims + 1) * sizeof(double);
    struct means m = {.points = points,
                      .centres = malloc(room),
                      .sums = malloc(room),
                      .weights = malloc(k * sizeof *m.weights),
                      .nearest = malloc(points->n * sizeof *m.nearest),
                      .of = malloc(points->n * sizeof *m.of)};
    struct random random = {.state = k};
    int r = m.centres && m.sums && m.weights && m.nearest && m.of ? TL_OK : TL_NOMEM;
    for (int i = 0; i < STARTS && r >= 0; i++) {
        r = run(&m, &random, k);
        const double bic = r >= 0 ? criterion(&m) : 0;
        if (r >= 0 && (!out->of || bic > out->bic))
            r = keep(&m, bic, out);
    }
    free(m.centres);
    free(m.sums);
    free(m.weights);
    free(m.nearest);
    free(m.of);
    return r;
}

uint64_t tl_cluster_best_least(size_t n, size_t dims, uint32_t most)
{
    const uint64_t k = most < n ? most : n;
    return (uint64_t)n * dims * STARTS * (k * (k + 1) / 2);
}

int tl_cluster_best(const struct tl_points *points, uint32_t most, struct tl_clusters *out)
{
    *out = (struct tl_clusters){0};
    if (most > points->n)
        most = (uint32_t)points->n;
    struct tl_clusters *const all = calloc(most + (size_t)1, sizeof *all);
    if (!all)
        return TL_NOMEM;
    double min = HUGE_VAL, best = -HUGE_VAL;
    int r = TL_OK;
    for (uint32_t k = 0; k < most && r >= 0; k++) {
        r = tl_cluster(points, k + 1, &all[k]);
        min = all[k].bic < min ? all[k].bic : min;
        best = all[k].bic > best ? all[k].bic : best;
    }
    bool found = false;
    for (uint32_t k = 0; k < most; k++) {
        if (r >= 0 && !found && all[k].bic >= min + BIC_SHARE * (best - min)) {
            *out = all[k];
            found = true;
        } else {
            tl_clusters_fini(&all[k]);
        }
    }
    free(all);
    return r;
}
