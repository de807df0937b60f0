/* SPDX-License-Identifier: MIT */
/*
 * Software trace for people: printed characters form lines, any other record is an entry of its
 * own. Whether records are characters is decided when the line has ended: it must be UTF-8 without
 * other records in between; otherwise each record is a value. Lines that begin in the range are
 * returned; to find their begins and ends, records before and after the range are read as well.
 */
#include "base/cancel.h"
#include "base/utf8.h"
#include "query/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_DEFAULT 200
#define ENTRIES_MAX     10000
#define LINE_MAX        1024 /* maximum bytes of a line; longer ones are split */
#define VALUE_MAX       64   /* maximum bytes of a value shown */
#define AROUND          4096 /* positions before and after the range */
#define OPEN_MAX        32   /* lines open at the same time */

struct record {
    uint64_t at;
    uint32_t size;
    uint8_t data[VALUE_MAX];
};

struct line {
    struct tl_soft_entry entry; /* `text` is not set */
    struct tl_buf text;
    struct record *records; /* [entry.records] of them */
    size_t cap;
    bool used;
};

struct log {
    uint64_t from, to; /* positions at which entries begin */
    bool last;         /* return the last entries */
    size_t limit;
    struct line open[OPEN_MAX];
    struct tl_soft_entry *entries;
    size_t n, cap;
    bool more;
};

/* ---- entries --------------------------------------------------------------------------------- */

static void drop_first(struct log *log, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(log->entries[i].text);
    log->n -= n;
    memmove(log->entries, log->entries + n, log->n * sizeof *log->entries);
    log->more = true;
}

/* TL_LIMIT: there are enough. */
static int add_entry(struct log *log, const struct tl_soft_entry *entry, struct tl_bytes text)
{
    if (entry->at < log->from || entry->at >= log->to)
        return TL_OK;
    if (!log->last && log->n >= log->limit) {
        log->more = true;
        return TL_LIMIT;
    }
    if (log->last && log->n >= 2 * log->limit)
        drop_first(log, log->n - log->limit);
    if (tl_grow(&log->entries, &log->cap, log->n + 1, sizeof *log->entries) < 0)
        return TL_NOMEM;
    struct tl_soft_entry *const to = &log->entries[log->n];
    *to = *entry;
    to->text = strndup((const char *)text.p, text.n);
    if (!to->text)
        return TL_NOMEM;
    log->n++;
    return TL_OK;
}

static int add_value(struct log *log, const struct tl_soft_entry *of, const struct record *record)
{
    char text[2 * VALUE_MAX + 8] = "0x";
    const uint32_t size = record->size;
    const uint32_t reported = size < VALUE_MAX ? size : VALUE_MAX;
    struct tl_soft_entry entry = *of;
    size_t n = 2;
    /* As in flow text: a number, or bytes in order. */
    for (uint32_t i = 0; i < reported; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%02x",
                              record->data[size <= 8 ? size - 1 - i : i]);
    if (size == 0)
        n = (size_t)snprintf(text, sizeof text, "(no payload)");
    if (size > reported)
        n += (size_t)snprintf(text + n, sizeof text - n, "…");
    entry.at = entry.last = record->at;
    entry.is_text = false;
    entry.records = 1;
    entry.size = size;
    return add_entry(log, &entry, (struct tl_bytes){(const uint8_t *)text, n});
}

static bool is_utf8(struct tl_buf *text)
{
    if (tl_buf_add(text, "", 1) < 0)
        return false;
    text->n--;
    const char *p = (const char *)text->p;
    for (size_t n = 1; *p && n > 0; p += n)
        n = tl_utf8_length(p);
    return *p == 0;
}

/* `whole`: it contained nothing but its characters. */
static int close_line(struct log *log, struct line *line, bool whole)
{
    int r = TL_OK;
    if (!line->used)
        return r;
    line->used = false;
    if (whole && is_utf8(&line->text))
        r = add_entry(log, &line->entry, (struct tl_bytes){line->text.p, line->text.n});
    else
        for (uint32_t i = 0; i < line->entry.records && r >= 0; i++)
            r = add_value(log, &line->entry, &line->records[i]);
    tl_buf_reset(&line->text);
    return r;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool is_letter(uint8_t c)
{
    return (c >= ' ' && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

/* Does the record's channel print: is each value a character? That is channel 4 of Open SoC Debug's
 * software trace. */
static bool prints(const struct tl_item *item)
{
    return item->flags & TL_ITEM_HAS_PC && item->pc == 4 && item->name &&
           strcmp(item->name, "osd-stm") == 0;
}

/* The number of a record's characters; 0: it is a number, since not all its bytes can be some. */
static size_t letters(const struct tl_item *item)
{
    size_t n = item->n;
    while (n > 1 && prints(item) && item->data[n - 1] == 0)
        n--;
    for (size_t i = 0; i < n; i++)
        if (!is_letter(item->data[i]))
            return 0;
    return n;
}

static struct line *line_of(struct log *log, const struct tl_soft_entry *entry)
{
    for (size_t i = 0; i < OPEN_MAX; i++)
        if (log->open[i].used && log->open[i].entry.channel == entry->channel &&
            log->open[i].entry.has_channel == entry->has_channel &&
            strcmp(log->open[i].entry.source, entry->source) == 0)
            return &log->open[i];
    return NULL;
}

/* A free slot, or the oldest line, which is ended. */
static int begin_line(struct log *log, const struct tl_soft_entry *entry, struct line **out)
{
    struct line *chosen = &log->open[0];
    for (size_t i = 0; i < OPEN_MAX && chosen->used; i++)
        if (!log->open[i].used || log->open[i].entry.at < chosen->entry.at)
            chosen = &log->open[i];
    const int r = close_line(log, chosen, true);
    chosen->entry = *entry;
    chosen->entry.is_text = true;
    chosen->entry.records = 0;
    chosen->used = true;
    *out = chosen;
    return r;
}

static int note_record(struct line *line, const struct record *record)
{
    const size_t n = line->entry.records;
    if (tl_grow(&line->records, &line->cap, n + 1, sizeof *line->records) < 0)
        return TL_NOMEM;
    line->records[n] = *record;
    line->entry.last = record->at;
    line->entry.records++;
    return TL_OK;
}

/* Is the line too long for another character, which begins with `c`? */
static bool is_full(const struct line *line, uint8_t c)
{
    const bool within = (c & 0xc0) == 0x80 && line->text.n < LINE_MAX + 4;
    return line->text.n >= LINE_MAX && !within;
}

/* Add the first `n` bytes of a record, which may be characters. */
static int add_letters(struct log *log, const struct tl_soft_entry *entry,
                       const struct record *record, const uint8_t *p, size_t n)
{
    struct line *line = line_of(log, entry);
    bool noted = false; /* recorded in this line */
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++) {
        if (line && (is_full(line, p[i]) || entry->at - line->entry.last > AROUND)) {
            r = close_line(log, line, true);
            line = NULL;
        }
        if (r >= 0 && !line) {
            r = begin_line(log, entry, &line);
            noted = false;
        }
        if (r >= 0 && !noted)
            r = note_record(line, record);
        noted = true;
        if (r < 0)
            break;
        if (p[i] == '\n') {
            r = close_line(log, line, true);
            line = NULL;
        } else if (p[i] != '\r') {
            r = tl_buf_add(&line->text, p + i, 1);
        }
    }
    return r;
}

static int add_record(struct log *log, const struct tl_item *item, uint64_t position)
{
    struct tl_soft_entry entry = {.at = position, .last = position, .records = 1};
    const char *const name = item->name ? item->name : "";
    snprintf(entry.source, sizeof entry.source, "%s", name);
    entry.has_channel = item->flags & TL_ITEM_HAS_PC;
    entry.channel = entry.has_channel ? item->pc : 0;
    struct record record = {.at = position, .size = item->n};
    if (item->n > 0)
        memcpy(record.data, item->data, item->n < VALUE_MAX ? item->n : VALUE_MAX);
    const size_t n = letters(item);
    if (n > 0)
        return add_letters(log, &entry, &record, item->data, n);
    struct line *const line = line_of(log, &entry);
    const int r = line ? close_line(log, line, item->n == 0) : TL_OK;
    return r < 0 ? r : add_value(log, &entry, &record);
}

/* ---- the range ------------------------------------------------------------------------------- */

/* Is a line with records in the range still open? */
static bool any_open(const struct log *log)
{
    for (size_t i = 0; i < OPEN_MAX; i++)
        if (log->open[i].used && log->open[i].entry.last >= log->from &&
            log->open[i].entry.at < log->to)
            return true;
    return false;
}

/* What hardware reports is an entry of its own. */
static int add_event(struct log *log, const struct tl_item *item, uint64_t position)
{
    const struct tl_soft_entry entry = {
        .at = position, .last = position, .records = 1, .source = "dwt", .is_text = true};
    return add_entry(log, &entry,
                     (struct tl_bytes){(const uint8_t *)item->text, strlen(item->text)});
}

static int add_items(struct log *log, const struct tl_walk *walk)
{
    int r = tl_cancel_check();
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        const struct tl_item *const item = &walk->items[i];
        if (walk->positions[i] >= log->to && !any_open(log))
            return TL_EOF;
        if (item->kind == TL_ITEM_SOFTWARE)
            r = add_record(log, item, walk->positions[i]);
        else if (item->kind == TL_ITEM_HARDWARE)
            r = add_event(log, item, walk->positions[i]);
    }
    return r;
}

/* Chunks without software trace are not read. */
static int walk_range(struct log *log, const struct tl_cut *cut, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    const uint64_t from = log->from > AROUND ? log->from - AROUND : 0;
    const uint64_t to = log->to < UINT64_MAX - AROUND ? log->to + AROUND : UINT64_MAX;
    const struct tl_chunk *chunk;
    tl_cut_walk_begin(&walk, cut, from, to);
    walk.walk.detail = TL_WALK_ITEMS;
    int r = TL_OK;
    while (r >= 0 && (r = tl_cut_walk_peek(&walk, &chunk, fail)) >= 0 && chunk) {
        if (!(chunk->kinds & (1u << TL_ITEM_SOFTWARE | 1u << TL_ITEM_HARDWARE))) {
            tl_cut_walk_skip(&walk);
            r = tl_cancel_check();
            continue;
        }
        r = tl_cut_walk_next(&walk, fail);
        if (r >= 0)
            r = add_items(log, &walk.walk);
    }
    tl_cut_walk_end(&walk);
    /* Close the unfinished lines, in order of their begin. */
    for (size_t i = 0; i < OPEN_MAX && (r >= 0 || r == TL_EOF); i++)
        r = close_line(log, &log->open[i], true);
    return r == TL_EOF || r == TL_LIMIT ? TL_OK : r;
}

static int by_position(const void *a, const void *b)
{
    const struct tl_soft_entry *const one = a, *const two = b;
    return one->at < two->at ? -1 : one->at > two->at;
}

static int give_times(struct log *log, const struct tl_cut *cut, struct tl_fail *fail)
{
    struct tl_scale scale;
    if (log->n == 0)
        return TL_OK;
    qsort(log->entries, log->n, sizeof *log->entries, by_position);
    if (log->n > log->limit)
        drop_first(log, log->n - log->limit);
    const int r = tl_scale_open(&scale, cut, TL_SCALE_TIME, false, log->entries[0].at,
                                log->entries[log->n - 1].at, fail);
    for (size_t i = 0; i < log->n && r >= 0; i++)
        log->entries[i].has_time =
            tl_scale_value(&scale, log->entries[i].at, &log->entries[i].time);
    tl_scale_close(&scale);
    return r;
}

int tl_lake_log(struct tl_lake *lake, const struct tl_soft_request *request,
                struct tl_soft_log *out, struct tl_fail *fail)
{
    struct tl_cut cut;
    struct log log = {.last = request->last,
                      .limit = request->limit ? request->limit : ENTRIES_DEFAULT};
    *out = (struct tl_soft_log){0};
    if (log.limit > ENTRIES_MAX)
        return tl_fail_set(fail, TL_USAGE, "at most %u entries at once", ENTRIES_MAX);
    int r = tl_cut_open(&cut, lake, request->trace, request->stream, fail);
    if (r < 0)
        return r;
    r = tl_cut_resolve(&cut, request->unit, request->from, request->to, &log.from, &log.to, fail);
    if (r >= 0 && request->to == UINT64_MAX)
        log.to = UINT64_MAX; /* including items after the last instruction */
    if (r >= 0)
        r = walk_range(&log, &cut, fail);
    if (r >= 0)
        r = give_times(&log, &cut, fail);
    for (size_t i = 0; i < OPEN_MAX; i++) {
        tl_buf_fini(&log.open[i].text);
        free(log.open[i].records);
    }
    tl_cut_close(&cut);
    *out = (struct tl_soft_log){log.entries, log.n, log.more};
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

void tl_soft_log_fini(struct tl_soft_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->entries[i].text);
    free(log->entries);
    *log = (struct tl_soft_log){0};
}
