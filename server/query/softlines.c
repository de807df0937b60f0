/* SPDX-License-Identifier: MIT */
/*
 * Software trace for people: printed characters form lines, any other record is an entry of its
 * own. Whether records are characters is decided when the line has ended: it must be UTF-8 without
 * other records in between; otherwise each record is a value. Where the setup tells what a channel
 * is for, all of it is shown as that. To find begins and ends of lines, records before and after
 * the range are read as well.
 */
#include "query/softlines.h"

#include "base/cancel.h"
#include "base/utf8.h"
#include "flow/hardware.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX  1024 /* maximum bytes of a line; longer ones are split */
#define VALUE_MAX 64   /* maximum bytes of a value shown */
#define AROUND    4096 /* positions before and after the range */
#define OPEN_MAX  32   /* lines open at the same time */
#define PRINT_ID  4    /* channel of Open SoC Debug's software trace that prints */

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

struct lines {
    const struct tl_softlines *wanted;
    const struct tl_image *image;
    struct line open[OPEN_MAX];
    tl_softline_sink *sink;
    void *context;
};

/* ---- entries --------------------------------------------------------------------------------- */

static int add_entry(struct lines *l, const struct tl_soft_entry *entry, struct tl_bytes text)
{
    if (entry->at < l->wanted->from || entry->at >= l->wanted->to)
        return TL_OK;
    return l->sink(l->context, entry, text);
}

/* A record's payload in digits, as in flow text: a number, or bytes in order. */
static size_t put_payload(const struct record *record, char *out, size_t room)
{
    const uint32_t size = record->size, told = size < VALUE_MAX ? size : VALUE_MAX;
    if (size == 0)
        return (size_t)snprintf(out, room, "(no payload)");
    size_t n = (size_t)snprintf(out, room, "0x");
    for (uint32_t i = 0; i < told; i++)
        n +=
            (size_t)snprintf(out + n, room - n, "%02x", record->data[size <= 8 ? size - 1 - i : i]);
    if (size > told)
        n += (size_t)snprintf(out + n, room - n, "…");
    return n;
}

static int add_value(struct lines *l, const struct tl_soft_entry *of, const struct record *record)
{
    char text[2 * VALUE_MAX + 8];
    struct tl_soft_entry entry = *of;
    const struct tl_item item = {.n = record->size, .data = record->data};
    entry.at = entry.last = record->at;
    entry.is_text = false;
    entry.records = 1;
    entry.size = record->size;
    const bool valued =
        record->size <= 8 && tl_port_value(of->form, tl_item_payload(&item), record->size, text);
    const size_t n = valued ? strlen(text) : put_payload(record, text, sizeof text);
    return add_entry(l, &entry, (struct tl_bytes){(const uint8_t *)text, n});
}

/* Terminate the text, and make it UTF-8 if it must be text. */
static bool is_utf8(struct tl_buf *text, bool must)
{
    if (tl_buf_add(text, "", 1) < 0)
        return false;
    if (must)
        tl_utf8_clean((char *)text->p);
    text->n = strlen((char *)text->p);
    const char *p = (const char *)text->p;
    for (size_t n = 1; *p && n > 0; p += n)
        n = tl_utf8_length(p);
    return *p == 0;
}

/* `whole`: it contained nothing but its characters. */
static int close_line(struct lines *l, struct line *line, bool whole)
{
    int r = TL_OK;
    if (!line->used)
        return r;
    line->used = false;
    if (whole && is_utf8(&line->text, line->entry.form == TL_PORT_TEXT))
        r = add_entry(l, &line->entry, (struct tl_bytes){line->text.p, line->text.n});
    else
        for (uint32_t i = 0; i < line->entry.records && r >= 0; i++)
            r = add_value(l, &line->entry, &line->records[i]);
    tl_buf_reset(&line->text);
    return r;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool is_letter(uint8_t c)
{
    return (c >= ' ' && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

bool tl_soft_prints(const struct tl_item *item)
{
    return item->flags & TL_ITEM_HAS_PC && item->pc == PRINT_ID && item->name &&
           strcmp(item->name, "osd-stm") == 0;
}

/* The number of a record's characters; 0: it is a number, since not all its bytes can be some, or
 * since its channel has numbers. */
static size_t letters(const struct tl_item *item)
{
    size_t n = item->n;
    if (item->sub != TL_PORT_UNKNOWN)
        return item->sub == TL_PORT_TEXT ? n : 0;
    while (n > 1 && tl_soft_prints(item) && item->data[n - 1] == 0)
        n--;
    for (size_t i = 0; i < n; i++)
        if (!is_letter(item->data[i]))
            return 0;
    return n;
}

static struct line *line_of(struct lines *l, const struct tl_soft_entry *entry)
{
    for (size_t i = 0; i < OPEN_MAX; i++)
        if (l->open[i].used && l->open[i].entry.channel == entry->channel &&
            l->open[i].entry.has_channel == entry->has_channel &&
            strcmp(l->open[i].entry.source, entry->source) == 0)
            return &l->open[i];
    return NULL;
}

/* A free slot, or the oldest line, which is ended. */
static int begin_line(struct lines *l, const struct tl_soft_entry *entry, struct line **out)
{
    struct line *chosen = &l->open[0];
    for (size_t i = 0; i < OPEN_MAX && chosen->used; i++)
        if (!l->open[i].used || l->open[i].entry.at < chosen->entry.at)
            chosen = &l->open[i];
    const int r = close_line(l, chosen, true);
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

/* A byte of a text. What is no letter is there only where the channel is for text: "\x1b"; NULs
 * fill words. */
static int add_letter(struct line *line, uint8_t c)
{
    if (c == '\r' || c == '\0')
        return TL_OK;
    return is_letter(c) ? tl_buf_add(&line->text, &c, 1) : tl_buf_printf(&line->text, "\\x%02x", c);
}

/* Add the first `n` bytes of a record, which may be characters. */
static int add_letters(struct lines *l, const struct tl_soft_entry *entry,
                       const struct record *record, const uint8_t *p, size_t n)
{
    struct line *line = line_of(l, entry);
    bool noted = false; /* recorded in this line */
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++) {
        if (line && (is_full(line, p[i]) || entry->at - line->entry.last > AROUND)) {
            r = close_line(l, line, true);
            line = NULL;
        }
        if (r >= 0 && !line) {
            r = begin_line(l, entry, &line);
            noted = false;
        }
        if (r >= 0 && !noted)
            r = note_record(line, record);
        noted = true;
        if (r < 0)
            break;
        if (p[i] == '\n') {
            r = close_line(l, line, true);
            line = NULL;
        } else {
            r = add_letter(line, p[i]);
        }
    }
    return r;
}

static bool is_wanted(const struct tl_softlines *wanted, const struct tl_item *item)
{
    return !wanted->one_channel ||
           (item->flags & TL_ITEM_HAS_PC && (uint32_t)item->pc == wanted->channel);
}

static int add_record(struct lines *l, const struct tl_item *item, uint64_t position)
{
    struct tl_soft_entry entry = {
        .at = position, .last = position, .records = 1, .form = (uint8_t)item->sub};
    const char *const name = item->name ? item->name : "";
    if (!is_wanted(l->wanted, item))
        return TL_OK;
    snprintf(entry.source, sizeof entry.source, "%s", name);
    entry.has_channel = item->flags & TL_ITEM_HAS_PC;
    entry.channel = entry.has_channel ? item->pc : 0;
    struct record record = {.at = position, .size = item->n};
    if (item->n > 0)
        memcpy(record.data, item->data, item->n < VALUE_MAX ? item->n : VALUE_MAX);
    const size_t n = letters(item);
    if (n > 0)
        return add_letters(l, &entry, &record, item->data, n);
    struct line *const line = line_of(l, &entry);
    const int r = line ? close_line(l, line, item->n == 0) : TL_OK;
    return r < 0 ? r : add_value(l, &entry, &record);
}

/* What hardware reports is an entry of its own, with the function of the instruction it tells. */
static int add_event(struct lines *l, const struct tl_item *item, uint64_t position)
{
    static const struct tl_flow_now now;
    char function[TL_HARDWARE_TEXT] = "", text[2 * TL_HARDWARE_TEXT + 8];
    const struct tl_soft_entry entry = {
        .at = position, .last = position, .records = 1, .source = "dwt", .is_text = true};
    if (l->wanted->one_channel)
        return TL_OK;
    if (item->flags & TL_ITEM_HAS_PC && l->image)
        tl_function_text(l->image, &now, item->pc, function, sizeof function);
    const int n =
        *function ? snprintf(text, sizeof text, "%.*s <%s>", TL_HARDWARE_TEXT, item->text, function)
                  : snprintf(text, sizeof text, "%.*s", TL_HARDWARE_TEXT, item->text);
    return add_entry(l, &entry, (struct tl_bytes){(const uint8_t *)text, (size_t)n});
}

/* ---- the range ------------------------------------------------------------------------------- */

/* Is a line with records in the range still open? */
static bool any_open(const struct lines *l)
{
    for (size_t i = 0; i < OPEN_MAX; i++)
        if (l->open[i].used && l->open[i].entry.last >= l->wanted->from &&
            l->open[i].entry.at < l->wanted->to)
            return true;
    return false;
}

static int add_items(struct lines *l, const struct tl_walk *walk)
{
    int r = tl_cancel_check();
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        const struct tl_item *const item = &walk->items[i];
        if (walk->positions[i] >= l->wanted->to && !any_open(l))
            return TL_EOF;
        if (item->kind == TL_ITEM_SOFTWARE)
            r = add_record(l, item, walk->positions[i]);
        else if (item->kind == TL_ITEM_HARDWARE)
            r = add_event(l, item, walk->positions[i]);
    }
    return r;
}

static int walk_chunks(struct lines *l, const struct tl_cut *cut, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    const uint64_t from = l->wanted->from > AROUND ? l->wanted->from - AROUND : 0;
    const uint64_t to = l->wanted->to < UINT64_MAX - AROUND ? l->wanted->to + AROUND : UINT64_MAX;
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
            r = add_items(l, &walk.walk);
    }
    tl_cut_walk_end(&walk);
    return r;
}

int tl_softlines_walk(const struct tl_softlines *wanted, const struct tl_cut *cut,
                      tl_softline_sink *sink, void *context, struct tl_fail *fail)
{
    struct lines *const l = calloc(1, sizeof *l);
    if (!l)
        return TL_NOMEM;
    l->wanted = wanted;
    l->image = tl_gen_image(cut->gen);
    l->sink = sink;
    l->context = context;
    int r = walk_chunks(l, cut, fail);
    r = r == TL_EOF ? TL_OK : r;
    for (size_t i = 0; i < OPEN_MAX; i++) {
        if (r >= 0)
            r = close_line(l, &l->open[i], true);
        tl_buf_fini(&l->open[i].text);
        free(l->open[i].records);
    }
    free(l);
    return r;
}
