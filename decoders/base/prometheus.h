/* SPDX-License-Identifier: MIT */
/*
 * Counters as text for Prometheus, with "tracelake_" in front of each name. A name that ends in
 * "_total" is a counter's, any other a gauge's. Thread-safe.
 *
 * Source: Prometheus exposition formats, text format 0.0.4.
 */
#ifndef TL_BASE_PROMETHEUS_H
#define TL_BASE_PROMETHEUS_H

#include "base/buf.h"

#include <stdatomic.h>

struct tl_metric {
    const char *name, *help;
    uint64_t value;
};

/* Append metrics of one sample each. TL_NOMEM. */
TL_MUST_USE int tl_metrics_add(struct tl_buf *out, const struct tl_metric *metrics, size_t n);

/* Append help and type of a metric whose samples follow. TL_NOMEM. */
TL_MUST_USE int tl_metric_begin(struct tl_buf *out, const char *name, const char *help);
/* A sample; the labels, e.g. `code="2"`, are what `labels` prints. TL_NOMEM. */
TL_MUST_USE int tl_metric_sample(struct tl_buf *out, const char *name, uint64_t value,
                                 const char *labels, ...) TL_PRINTF(4, 5);

/*
 * How long something takes: counts by upper bounds from 0.5 ms to 30 s. Zeroed at first; any thread
 * may add to it.
 */
#define TL_HISTOGRAM_BOUNDS 15
struct tl_histogram {
    atomic_ullong counts[TL_HISTOGRAM_BOUNDS + 1]; /* the last is of what took longer than all */
    atomic_ullong sum_ns;
};
void tl_histogram_add(struct tl_histogram *histogram, uint64_t ns);
/* Has anything been added? */
bool tl_histogram_used(const struct tl_histogram *histogram);

/* Append help and type of a histogram whose series follow. `name` ends in "_seconds". TL_NOMEM. */
TL_MUST_USE int tl_histogram_begin(struct tl_buf *out, const char *name, const char *help);
/* A series with a label, `label` NULL: without one. TL_NOMEM. */
TL_MUST_USE int tl_histogram_series(struct tl_buf *out, const char *name,
                                    const struct tl_histogram *histogram, const char *label,
                                    const char *value);

#endif
