/* SPDX-License-Identifier: MIT */
/*
 * Checks and sets labels of traces, "key=value" lines. New ones are checked strictly, and anything
 * can be removed, since older stores may hold what is not allowed.
 */
#include "lake/lakeint.h"
#include "lake/mirror.h"
#include "share/share.h"

#include <stdlib.h>
#include <string.h>

/* One "key=value" line. */
struct label {
    struct tl_bytes key, value;
};

/* Parse the label at `*at`, and advance to the next line. False: the line has no key. */
static bool next_label(const char **at, struct label *out)
{
    const char *const line = *at;
    const size_t n = strcspn(line, "\n");
    const size_t key = strcspn(line, "=\n");
    *at += n + (line[n] == '\n');
    if (key == 0 || key == n)
        return false;
    out->key = (struct tl_bytes){(const uint8_t *)line, key};
    out->value = (struct tl_bytes){(const uint8_t *)line + key + 1, n - key - 1};
    return true;
}

/* C0, DEL, and C1 in UTF-8: control characters that a terminal would interpret. */
static bool has_control(struct tl_bytes text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < 0x20 || text.p[i] == 0x7f ||
            (text.p[i] == 0xc2 && i + 1 < text.n && text.p[i + 1] >= 0x80 && text.p[i + 1] < 0xa0))
            return true;
    return false;
}

static int check_label(const struct label *label, struct tl_fail *fail)
{
    if (label->key.n > TL_LABEL_KEY_BYTES)
        return tl_fail_set(fail, TL_USAGE, "a label's key of %zu bytes; at most %d", label->key.n,
                           TL_LABEL_KEY_BYTES);
    if (label->value.n > TL_LABEL_VALUE_BYTES)
        return tl_fail_set(fail, TL_USAGE, "a label's value of %zu bytes; at most %d",
                           label->value.n, TL_LABEL_VALUE_BYTES);
    if (has_control(label->key) || has_control(label->value))
        return tl_fail_set(fail, TL_USAGE, "a label with a control character");
    return TL_OK;
}

static bool names(const char *labels, struct tl_bytes key)
{
    struct label label;
    while (*labels)
        if (next_label(&labels, &label) && label.key.n == key.n &&
            !memcmp(label.key.p, key.p, key.n))
            return true;
    return false;
}

/* Removals are not checked: anything from an older store can be removed. */
static int check_labels(const char *old, const char *labels, struct tl_fail *fail)
{
    struct label label;
    size_t n = 0, bytes = 0;
    bool sets = false;
    for (const char *at = labels; *at;) {
        const char *const line = at;
        if (!next_label(&at, &label) && *line != '\n')
            return tl_fail_set(fail, TL_USAGE, "a label is key=value on one line, and has a key");
        if (*line == '\n' || !label.value.n)
            continue;
        const int r = check_label(&label, fail);
        if (r < 0)
            return r;
        sets = true;
        n++;
        bytes += label.key.n + label.value.n;
    }
    for (const char *at = old; *at && sets;)
        if (next_label(&at, &label) && !names(labels, label.key)) {
            n++;
            bytes += label.key.n + label.value.n;
        }
    if (sets && (n > TL_LABELS_MAX || bytes > TL_LABELS_BYTES))
        return tl_fail_set(fail, TL_USAGE,
                           "%zu labels of %zu bytes; a trace has at most %d of %d; remove some", n,
                           bytes, TL_LABELS_MAX, TL_LABELS_BYTES);
    return TL_OK;
}

static int check_new_labels(struct tl_trace *trace, const char *labels, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    const int r = check_labels(trace->labels, labels, fail);
    pthread_mutex_unlock(&trace->lock);
    return r;
}

static int set_line(struct tl_lake *lake, const char *trace, const char *line, size_t n,
                    struct tl_fail *fail)
{
    const char *equals = memchr(line, '=', n);
    if (n == 0)
        return TL_OK;
    char *key = strndup(line, (size_t)(equals - line));
    char *value = strndup(equals + 1, n - (size_t)(equals + 1 - line));
    const int r = key && value
                      ? lake->catalog->ops->set_label(lake->catalog, trace, key, value, fail)
                      : tl_fail_set(fail, TL_NOMEM, "no memory");
    free(key);
    free(value);
    return r;
}

static int reload_labels(struct tl_lake *lake, struct tl_trace *trace, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    int r = lake->catalog->ops->labels(lake->catalog, trace->id, &text, fail);
    if (r >= 0)
        r = tl_buf_add(&text, "", 1);
    if (r >= 0) {
        pthread_mutex_lock(&trace->lock);
        char *old = trace->labels;
        trace->labels = (char *)text.p;
        pthread_mutex_unlock(&trace->lock);
        free(old);
        return TL_OK;
    }
    tl_buf_fini(&text);
    return r;
}

int tl_lake_set_labels(struct tl_lake *lake, const char *id, const char *labels,
                       struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_no_trace(lake, fail, id);
    /* The holder of the trace writes the object that repeats its row; the catalog accepts labels
     * from all servers. */
    const bool pinned = tl_trace_pin(trace, TL_PIN_TRY, NULL) >= 0;
    int r = check_new_labels(trace, labels, fail);
    for (const char *line = labels; *line && r >= 0;) {
        const size_t n = strcspn(line, "\n");
        r = set_line(lake, id, line, n, fail);
        line += n + (line[n] == '\n');
    }
    if (r >= 0)
        r = reload_labels(lake, trace, fail);
    if (r >= 0)
        tl_trace_mirror(trace);
    if (pinned)
        tl_trace_unpin(trace);
    tl_trace_changed(trace);
    tl_trace_put(trace);
    return r;
}
