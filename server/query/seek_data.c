/* SPDX-License-Identifier: MIT */
/*
 * Finds accesses to memory by what tells them. The three kinds of sources are one struct
 * (query/accesses.h), so that what is wanted is decided, and described, once for all of them.
 */
#include "query/seek_data.h"

#include "query/accesses.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is wanted -------------------------------------------------------------------------- */

int tl_sought_data(struct tl_sought *s, const char *text, bool written, struct tl_fail *fail)
{
    const size_t named = tl_image_variables_named(s->image, text, NULL, 0);
    const size_t n = named > 0 ? named : 1;
    struct tl_image_range *const ranges = calloc(n, sizeof *ranges);
    free(s->memory);
    s->memory = ranges;
    if (!ranges)
        return TL_NOMEM;
    if (named > 0)
        tl_image_variables_named(s->image, text, ranges, named);
    else if (!tl_sought_addresses(text, &ranges->from, &ranges->to))
        return tl_fail_set(fail, TL_USAGE,
                           "\"%.60s\" is no address, and no variable of the trace's images; give "
                           "its name, or e.g. 20001000 or 20001000:20001100",
                           text);
    ranges->to += ranges->to == ranges->from;
    s->n_memory = n;
    s->variable = named > 0 ? text : NULL;
    s->written = written;
    s->kind = TL_FIND_EVENT;
    s->gap = -1;
    s->kinds = 1u << TL_ITEM_NOTE | 1u << TL_ITEM_HARDWARE;
    return TL_OK;
}

bool tl_seek_is_of_records(const struct tl_seek *s)
{
    return s->sought->memory && s->cut->lane->protocol == TL_PROTO_STF;
}

/* Does the name of what was accessed begin with that of the wanted variable, as a whole? */
static bool is_named(const struct tl_told_access *a, const char *variable)
{
    const size_t n = variable ? strlen(variable) : 0;
    return n > 0 && strncmp(a->name, variable, n) == 0 && !isalnum((unsigned char)a->name[n]) &&
           a->name[n] != '_' && a->name[n] != ':';
}

static bool is_wanted(const struct tl_sought *w, const struct tl_told_access *a)
{
    if (w->written && a->kind == TL_TOLD_READ)
        return false;
    if (!a->has_address)
        return is_named(a, w->variable);
    for (size_t i = 0; i < w->n_memory; i++) {
        const struct tl_image_range *const m = &w->memory[i];
        const uint64_t bytes = a->bytes ? a->bytes : 1;
        if (a->address < m->to && (a->address >= m->from || m->from - a->address < bytes))
            return true;
    }
    return false;
}

/* ---- reporting ------------------------------------------------------------------------------- */

struct line {
    char text[TL_HIT_TEXT];
    size_t n;
};

TL_PRINTF(2, 3)
static void put(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line->text + line->n, sizeof line->text - line->n, format, args);
    va_end(args);
    const size_t room = sizeof line->text - 1 - line->n;
    line->n += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
}

static void describe(const struct tl_seek *s, const struct tl_told_access *a, struct line *line)
{
    static const char *const verbs[] = {[TL_TOLD_ACCESS] = "access",
                                        [TL_TOLD_READ] = "read",
                                        [TL_TOLD_WRITE] = "write",
                                        [TL_TOLD_LATE] = "late access",
                                        [TL_TOLD_NOT_TRACED] = "access, not traced,"};
    char text[TL_TOLD_NAME];
    put(line, "%s%s", a->bus ? "bus " : "", verbs[a->kind]);
    if (a->has_value)
        put(line, " 0x%" PRIx64, a->value);
    if (a->has_pc && *tl_function_text(s->sought->image, &s->now, a->pc, text, sizeof text))
        put(line, " by %s", text);
    if (a->has_address)
        put(line, " at 0x%" PRIx64, a->address);
    else if (*a->part)
        put(line, " at 0x%s", a->part);
    if (a->bytes)
        put(line, ", %" PRIu64 " byte%s", a->bytes, a->bytes > 1 ? "s" : "");
    if (tl_told_name(a, s->sought->image, text))
        put(line, ": %s", text);
}

static int report(struct tl_seek *s, uint64_t position, const struct tl_told_access *a)
{
    struct line line = {.text = ""};
    if (!is_wanted(s->sought, a))
        return TL_OK;
    if (!s->count)
        describe(s, a, &line);
    return s->sink(s->context, position, a->has_pc ? a->pc : 0, line.text);
}

/* Find the instruction of a note: in this walk, or behind which this walk begins. */
static int find_instruction(struct tl_seek *s, size_t i, struct tl_told_access *out,
                            struct tl_fail *fail)
{
    const bool none =
        out->kind == TL_TOLD_LATE || !tl_protocol_has(s->cut->lane->protocol, TL_TRAIT_FLOW);
    int r = none ? TL_NOTFOUND : tl_told_last(&s->walk, i, &out->pc);
    if (r == TL_OK && s->walk.positions[i] > 0) {
        r = tl_seek_before(s, s->walk.positions[i], fail);
        r = r > 0 ? tl_told_last(&s->before, s->before.n, &out->pc) : r;
    }
    out->has_pc = r > 0;
    return r == TL_NOTFOUND ? TL_OK : r;
}

static int seek_note(struct tl_seek *s, size_t i, struct tl_fail *fail)
{
    const struct tl_walk *const walk = &s->walk;
    const char *const next =
        i + 1 < walk->n && walk->items[i + 1].kind == TL_ITEM_NOTE ? walk->items[i + 1].text : "";
    struct tl_told_access access;
    if (!tl_told_note(walk->items[i].text, next, &access) || !is_wanted(s->sought, &access))
        return TL_OK;
    const int r = s->count ? TL_OK : find_instruction(s, i, &access, fail);
    return r < 0 ? r : report(s, walk->positions[i], &access);
}

/* The accesses of a block's instructions. */
static int seek_records(struct tl_seek *s, const struct tl_item *item, uint64_t position)
{
    struct tl_walk_step insn = {.next = item->block->pc};
    size_t at = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0 && s->walk.whole; i++) {
        struct tl_stf_access record;
        r = tl_walk_insn(&s->walk, item->block, &at, insn.next, &insn);
        struct tl_stf_group group = {.rest = insn.group, .layout = s->walk.groups.layout};
        while (r >= 0 && tl_stf_group_access(&group, &record) == TL_OK) {
            const struct tl_told_access access = tl_told_record(&record, insn.pc);
            r = report(s, position + i, &access);
        }
    }
    return r;
}

int tl_seek_data(struct tl_seek *s, size_t i, struct tl_fail *fail)
{
    const struct tl_item *const item = &s->walk.items[i];
    const uint64_t position = s->walk.positions[i];
    struct tl_told_access access;
    switch (item->kind) {
    case TL_ITEM_BLOCK:
        return tl_seek_is_of_records(s) ? seek_records(s, item, position) : TL_OK;
    case TL_ITEM_NOTE:
        return seek_note(s, i, fail);
    case TL_ITEM_HARDWARE:
        return tl_told_event(item, &access) ? report(s, position, &access) : TL_OK;
    default:
        return TL_OK;
    }
}
