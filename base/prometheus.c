/* SPDX-License-Identifier: MIT */
/*
 * A histogram counts each value in one bucket only and adds them up when it is read, since values
 * are added by many threads far more often than they are read. A sample may therefore lack a value
 * that is being added, which the next one has.
 */
#include "base/prometheus.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LABELS_MAX 128

int tl_metric_begin(struct tl_buf *out, const char *name, const char *help)
{
    static const char total[] = "_total";
    const size_t n = strlen(name), end = sizeof total - 1;
    const bool counter = n > end && strcmp(name + n - end, total) == 0;
    return tl_buf_printf(out, "# HELP tracelake_%s %s\n# TYPE tracelake_%s %s\n", name, help, name,
                         counter ? "counter" : "gauge");
}

int tl_metric_sample(struct tl_buf *out, const char *name, uint64_t value, const char *labels, ...)
{
    char text[LABELS_MAX];
    va_list list;
    va_start(list, labels);
    vsnprintf(text, sizeof text, labels, list);
    va_end(list);
    return tl_buf_printf(out, "tracelake_%s{%s} %" PRIu64 "\n", name, text, value);
}

int tl_metrics_add(struct tl_buf *out, const struct tl_metric *metrics, size_t n)
{
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = tl_metric_begin(out, metrics[i].name, metrics[i].help);
        if (r >= 0)
            r = tl_buf_printf(out, "tracelake_%s %" PRIu64 "\n", metrics[i].name, metrics[i].value);
    }
    return r;
}

/* ---- histograms ----------------------------------------------------------------------------- */

static const struct {
    uint64_t ns;
    const char *text;
} bounds[TL_HISTOGRAM_BOUNDS] = {
    {500000, "0.0005"},  {1000000, "0.001"},  {2500000, "0.0025"}, {5000000, "0.005"},
    {10000000, "0.01"},  {25000000, "0.025"}, {50000000, "0.05"},  {100000000, "0.1"},
    {250000000, "0.25"}, {500000000, "0.5"},  {1000000000, "1"},   {2500000000, "2.5"},
    {5000000000, "5"},   {10000000000, "10"}, {30000000000, "30"},
};

void tl_histogram_add(struct tl_histogram *histogram, uint64_t ns)
{
    size_t i = 0;
    while (i < TL_HISTOGRAM_BOUNDS && ns > bounds[i].ns)
        i++;
    atomic_fetch_add_explicit(&histogram->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ns, ns, memory_order_relaxed);
}

bool tl_histogram_used(const struct tl_histogram *histogram)
{
    for (size_t i = 0; i <= TL_HISTOGRAM_BOUNDS; i++)
        if (atomic_load_explicit(&histogram->counts[i], memory_order_relaxed))
            return true;
    return false;
}

int tl_histogram_begin(struct tl_buf *out, const char *name, const char *help)
{
    return tl_buf_printf(out, "# HELP tracelake_%s %s\n# TYPE tracelake_%s histogram\n", name, help,
                         name);
}

int tl_histogram_series(struct tl_buf *out, const char *name, const struct tl_histogram *histogram,
                        const char *label, const char *value)
{
    char pair[LABELS_MAX] = "";
    uint64_t n = 0;
    int r = TL_OK;
    if (label)
        snprintf(pair, sizeof pair, "%s=\"%s\"", label, value);
    for (size_t i = 0; i <= TL_HISTOGRAM_BOUNDS && r >= 0; i++) {
        n += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        r = tl_buf_printf(out, "tracelake_%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, pair,
                          label ? "," : "", i < TL_HISTOGRAM_BOUNDS ? bounds[i].text : "+Inf", n);
    }
    const char *const open = label ? "{" : "";
    const char *const close = label ? "}" : "";
    const uint64_t sum = atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
    if (r >= 0)
        r = tl_buf_printf(out, "tracelake_%s_sum%s%s%s %" PRIu64 ".%09u\n", name, open, pair, close,
                          sum / 1000000000, (unsigned)(sum % 1000000000));
    if (r >= 0)
        r = tl_buf_printf(out, "tracelake_%s_count%s%s%s %" PRIu64 "\n", name, open, pair, close,
                          n);
    return r;
}
