/* SPDX-License-Identifier: MIT */
/*
 * Metrics in Prometheus text format; "tracelake_" is prepended to each name. Names that end in
 * "_total" are counters, all others gauges. Thread-safe.
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

/* Append metrics with one sample each. Returns TL_NOMEM. */
TL_MUST_USE int tl_metrics_add(struct tl_buf *out, const struct tl_metric *metrics, size_t n);

/* Append HELP and TYPE of a metric whose samples follow. Returns TL_NOMEM. */
TL_MUST_USE int tl_metric_begin(struct tl_buf *out, const char *name, const char *help);
/*
 * Append a sample; `labels` is a printf format for the labels, e.g. `code="2"`. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_metric_sample(struct tl_buf *out, const char *name, uint64_t value,
                                 const char *labels, ...) TL_PRINTF(4, 5);

/*
 * A histogram of durations, with upper bounds from 0.5 ms to 30 s. Initialise to zero; any thread
 * may add to it.
 */
#define TL_HISTOGRAM_BOUNDS 15
struct tl_histogram {
    /* The last one counts durations above all bounds */
    atomic_ullong counts[TL_HISTOGRAM_BOUNDS + 1];
    atomic_ullong sum_ns;
};
void tl_histogram_add(struct tl_histogram *histogram, uint64_t ns);
/* Has anything been added? */
bool tl_histogram_used(const struct tl_histogram *histogram);

/* Append HELP and TYPE of a histogram whose series follow. `name` ends in "_seconds". Returns
 * TL_NOMEM. */
TL_MUST_USE int tl_histogram_begin(struct tl_buf *out, const char *name, const char *help);
/* Append a series with one label, or none if `label` is NULL. Returns TL_NOMEM. */
TL_MUST_USE int tl_histogram_series(struct tl_buf *out, const char *name,
                                    const struct tl_histogram *histogram, const char *label,
                                    const char *value);

#endif
