/* SPDX-License-Identifier: MIT */
/*
 * Clusters points of few dimensions by k-means; the Bayesian information criterion selects the
 * number of clusters, as in SimPoint 3.2 (Hamerly, Perelman, Lau, Calder: "SimPoint 3.0: Faster and
 * More Flexible Program Analysis"). Seeds are fixed: the same points give the same clusters on
 * every machine. Pure functions.
 */
#ifndef TL_REGIONS_CLUSTER_H
#define TL_REGIONS_CLUSTER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct tl_points {
    const double *at;      /* n * dims coordinates, point by point */
    const double *weights; /* of each point, > 0 */
    size_t n, dims;
    uint64_t *effort; /* coordinates that may still be compared, counted down; NULL: any number */
};

struct tl_clusters {
    uint32_t *of; /* cluster of each point, 0 to k - 1 */
    double *centres;
    uint32_t k; /* none is empty */
    double bic;
};

/*
 * Find the best of several runs for exactly `k` clusters, fewer if there are fewer different
 * points. TL_NOMEM; TL_LIMIT: there is no effort left; TL_CANCELLED (base/cancel.h). Free with
 * tl_clusters_fini(), also after an error.
 */
TL_MUST_USE int tl_cluster(const struct tl_points *points, uint32_t k, struct tl_clusters *out);

/*
 * Find the smallest number of clusters, 1 to `most`, whose criterion reaches nine tenths of the
 * range from the lowest to the highest. Errors as above.
 */
TL_MUST_USE int tl_cluster_best(const struct tl_points *points, uint32_t most,
                                struct tl_clusters *out);
/* The least effort that it takes; mostly it is ten to twenty times as much. */
uint64_t tl_cluster_best_least(size_t n, size_t dims, uint32_t most);
void tl_clusters_fini(struct tl_clusters *clusters);

#endif
