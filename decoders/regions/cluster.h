/* SPDX-License-Identifier: MIT */
/*
 * Points in few dimensions taken together by k-means, the number of clusters chosen by the Bayesian
 * information criterion, as SimPoint 3.2 does it (Hamerly, Perelman, Lau, Calder: "SimPoint 3.0:
 * Faster and More Flexible Program Analysis"). Seeds are fixed: the same points give the same
 * clusters, on any machine. Pure functions.
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
};

struct tl_clusters {
    uint32_t *of; /* cluster of each point, 0 to k - 1 */
    double *centres;
    uint32_t k; /* none is empty */
    double bic;
};

/*
 * The best of several starts for exactly `k` clusters, or fewer where there are not as many
 * different points. TL_NOMEM; TL_CANCELLED (base/cancel.h). Free with tl_clusters_fini(), also
 * after an error.
 */
TL_MUST_USE int tl_cluster(const struct tl_points *points, uint32_t k, struct tl_clusters *out);

/*
 * The fewest clusters, of 1 to `most`, whose criterion reaches nine tenths of the way from the
 * least to the best one. Errors as above.
 */
TL_MUST_USE int tl_cluster_best(const struct tl_points *points, uint32_t most,
                                struct tl_clusters *out);
void tl_clusters_fini(struct tl_clusters *clusters);

#endif
