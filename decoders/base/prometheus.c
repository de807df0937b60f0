/* SPDX-License-Identifier: MIT */
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
