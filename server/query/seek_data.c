/* SPDX-License-Identifier: MIT */
/*
 * Finds accesses to memory by the lines that tell them. The three kinds of sources are read into
 * one struct, so that what is wanted is decided, and described, once for all of them.
 */
#include "query/seek_data.h"

#include "flow/hardware.h"
#include "image/variables.h"
#include "stf/operands.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 160 };

struct access {
    const char *verb; /* "read", "write"; others where it is not known */
    uint64_t address; /* if `has_address` */
    uint64_t bytes;   /* 0: unknown */
    uint64_t value;   /* if `has_value` */
    uint64_t pc;      /* of the instruction, if `has_pc` */
    bool has_address, has_value, has_pc;
    bool bus;        /* by another bus master than the core */
    char part[16];   /* of an address that is not completely known; "": nothing of it */
    char name[NAME]; /* of what was accessed, and its typed value, if the source knows it; or "" */
};

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
static bool is_named(const struct access *a, const char *variable)
{
    const size_t n = variable ? strlen(variable) : 0;
    return n > 0 && strncmp(a->name, variable, n) == 0 && !isalnum((unsigned char)a->name[n]) &&
           a->name[n] != '_' && a->name[n] != ':';
}

static bool is_wanted(const struct tl_sought *w, const struct access *a)
{
    if (w->written && strcmp(a->verb, "read") == 0)
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

/* ---- reading --------------------------------------------------------------------------------- */

/* The number behind `key` in a note. */
static bool number_in(const char *note, const char *key, uint64_t *out)
{
    const char *const at = strstr(note, key);
    if (at)
        *out = strtoull(at + strlen(key), NULL, 0);
    return at != NULL;
}

static const char *verb_of(uint64_t type)
{
    return type == TL_STF_READ ? "read" : type == TL_STF_WRITE ? "write" : "access";
}

/* A note of data trace (docs/flow-text.md), and the one behind it, which may have its contents.
 * False: it is no such note. */
static bool read_note(const char *note, const char *next, struct access *out)
{
    static const char whole[] = "INST_MEM_ACCESS ", content[] = "INST_MEM_CONTENT ",
                      other[] = "data ";
    static const char *const verbs[] = {"read ", "write ", "late ", "not-traced ", "access "};
    uint64_t type = 0;
    *out = (struct access){.verb = "access"};
    out->has_address = number_in(note, "addr=", &out->address);
    if (strncmp(note, whole, sizeof whole - 1) == 0) {
        number_in(note, " size=", &out->bytes);
        number_in(note, " access=", &type);
        out->verb = verb_of(type);
        out->has_value = strncmp(next, content, sizeof content - 1) == 0 &&
                         number_in(next, "data=", &out->value);
        return out->has_address;
    }
    if (strncmp(note, other, sizeof other - 1) != 0)
        return false;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strncmp(note + sizeof other - 1, verbs[i], strlen(verbs[i])) == 0)
            out->verb = (const char *[]){"read", "write", "late access", "access, not traced,",
                                         "access"}[i];
    out->has_value = number_in(note, " value=", &out->value);
    return out->has_address;
}

static void take_field(struct access *out, const struct tl_line_field *field)
{
    const char *const text = (const char *)field->text.p;
    const int n = (int)field->text.n;
    if (strcmp(field->name, "access") == 0)
        out->verb = n == 4 ? "read" : n == 5 ? "write" : "access";
    else if (strcmp(field->name, "address") == 0 && !memchr(text, 'x', field->text.n))
        out->has_address = sscanf(text, "%" SCNx64, &out->address) == 1;
    else if (strcmp(field->name, "address") == 0)
        snprintf(out->part, sizeof out->part, "%.*s", n, text);
    else if (strcmp(field->name, "value") == 0) {
        out->has_value = sscanf(text, "%" SCNx64, &out->value) == 1;
        out->bytes = field->text.n / 2;
    } else if (strcmp(field->name, "name") == 0) /* with all that is behind it */
        snprintf(out->name, sizeof out->name, "%s", text);
}

/* An event of a DWT. False: it is of another kind. */
static bool read_event(const struct tl_item *item, struct access *out)
{
    struct tl_line_field fields[TL_LINE_FIELDS];
    if (!tl_is_hardware(item, TL_HARDWARE_DATA))
        return false;
    *out =
        (struct access){.verb = "access", .has_pc = item->flags & TL_ITEM_HAS_PC, .pc = item->pc};
    const struct tl_bytes text = {(const uint8_t *)item->text, strlen(item->text)};
    const size_t n = tl_hardware_fields(text, fields);
    for (size_t i = 0; i < n; i++)
        take_field(out, &fields[i]);
    return true;
}

/* A record's size is in bytes, or with some producers in bits: nothing wider than the contents, and
 * 8 is bytes where the address allows it. */
static struct access read_record(const struct tl_stf_access *record, uint64_t pc)
{
    const uint64_t contents = 8 * (uint64_t)(record->n_data ? record->n_data : 1);
    struct access a = {.verb = verb_of(record->type),
                       .bus = record->bus,
                       .has_address = true,
                       .address = record->address,
                       .bytes = record->size < contents ? record->size : contents,
                       .has_value = record->n_data > 0,
                       .has_pc = true,
                       .pc = pc};
    if (record->size == 8 && record->address % 8)
        a.bytes = 1;
    if (a.has_value)
        a.value = tl_stf_access_data(record, 0);
    return a;
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

static void describe(const struct tl_seek *s, const struct access *a, struct line *line)
{
    char text[NAME];
    put(line, "%s%s", a->bus ? "bus " : "", a->verb);
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
    const struct tl_image_access access = {a->address, a->value,
                                           a->has_value ? (unsigned)a->bytes : 0};
    if (*a->name)
        put(line, ": %s", a->name);
    else if (a->has_address && tl_image_variable_text(s->sought->image, &access, text, sizeof text))
        put(line, ": %s", text);
}

static int report(struct tl_seek *s, uint64_t position, const struct access *a)
{
    struct line line = {.text = ""};
    if (!is_wanted(s->sought, a))
        return TL_OK;
    if (!s->count)
        describe(s, a, &line);
    return s->sink(s->context, position, a->has_pc ? a->pc : 0, line.text);
}

/* The address of the last instruction of a block. */
static int last_of(const struct tl_walk *walk, const struct tl_item *item, struct access *out)
{
    struct tl_walk_step insn = {.next = item->block->pc};
    size_t at = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0; i++)
        r = tl_walk_insn(walk, item->block, &at, insn.next, &insn);
    out->has_pc = r >= 0;
    out->pc = insn.pc;
    return r < 0 ? r : TL_OK;
}

/* Find the instruction of a note, which is the last one before it, in this walk, or behind which
 * this walk begins. */
static int find_instruction(struct tl_seek *s, size_t i, struct access *out, struct tl_fail *fail)
{
    const struct tl_walk *const walk = &s->walk;
    for (size_t k = i; k > 0; k--)
        if (walk->items[k - 1].kind == TL_ITEM_BLOCK)
            return last_of(walk, &walk->items[k - 1], out);
    if (walk->positions[i] == 0)
        return TL_OK;
    const int r = tl_seek_before(s, walk->positions[i], fail);
    if (r > 0 && s->before.items[s->before.n - 1].kind == TL_ITEM_BLOCK)
        return last_of(&s->before, &s->before.items[s->before.n - 1], out);
    return r < 0 ? r : TL_OK;
}

static int seek_note(struct tl_seek *s, size_t i, struct tl_fail *fail)
{
    const struct tl_walk *const walk = &s->walk;
    const char *const next =
        i + 1 < walk->n && walk->items[i + 1].kind == TL_ITEM_NOTE ? walk->items[i + 1].text : "";
    struct access access;
    if (!read_note(walk->items[i].text, next, &access) || !is_wanted(s->sought, &access))
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
            const struct access access = read_record(&record, insn.pc);
            r = report(s, position + i, &access);
        }
    }
    return r;
}

int tl_seek_data(struct tl_seek *s, size_t i, struct tl_fail *fail)
{
    const struct tl_item *const item = &s->walk.items[i];
    const uint64_t position = s->walk.positions[i];
    struct access access;
    switch (item->kind) {
    case TL_ITEM_BLOCK:
        return tl_seek_is_of_records(s) ? seek_records(s, item, position) : TL_OK;
    case TL_ITEM_NOTE:
        return seek_note(s, i, fail);
    case TL_ITEM_HARDWARE:
        return read_event(item, &access) ? report(s, position, &access) : TL_OK;
    default:
        return TL_OK;
    }
}
