/* SPDX-License-Identifier: MIT */
/* Descends from a variable to the part of it that was accessed. Of the members of a union the one
 * as wide as the access is the most likely one. */
#include "image/types.h"

#include "base/buf.h"
#include "base/portform.h"
#include "base/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16, ENTRIES_MAX = 1 << 20 };

void tl_types_fini(struct tl_types *t)
{
    free(t->types);
    free(t->members);
    free(t->enumerators);
    free(t->variables);
    *t = (struct tl_types){0};
}

/* Make room for another entry of an array, whose index is returned. */
static int64_t one_more(void *array, size_t *cap, size_t *n, size_t size)
{
    if (*n >= ENTRIES_MAX)
        return TL_LIMIT;
    if (tl_grow(array, cap, *n + 1, size) < 0)
        return TL_NOMEM;
    return (int64_t)(*n)++;
}

int64_t tl_types_add(struct tl_types *t, const struct tl_type *type)
{
    int64_t i = 0;
    if (t->n_types == 0) {
        i = one_more(&t->types, &t->cap_types, &t->n_types, sizeof *t->types);
        if (i < 0)
            return i;
        t->types[0] = (struct tl_type){.name = ""};
    }
    i = one_more(&t->types, &t->cap_types, &t->n_types, sizeof *t->types);
    if (i >= 0)
        t->types[i] = *type;
    return i;
}

int64_t tl_types_add_member(struct tl_types *t, const struct tl_type_member *member)
{
    const int64_t i = one_more(&t->members, &t->cap_members, &t->n_members, sizeof *t->members);
    if (i >= 0)
        t->members[i] = *member;
    return i;
}

int64_t tl_types_add_enumerator(struct tl_types *t, int64_t value, const char *name)
{
    const int64_t i =
        one_more(&t->enumerators, &t->cap_enumerators, &t->n_enumerators, sizeof *t->enumerators);
    if (i >= 0)
        t->enumerators[i] = (struct tl_type_enumerator){value, name};
    return i;
}

int64_t tl_types_add_variable(struct tl_types *t, uint64_t address, uint32_t type)
{
    const int64_t i =
        one_more(&t->variables, &t->cap_variables, &t->n_variables, sizeof *t->variables);
    if (i >= 0)
        t->variables[i] = (struct tl_typed_variable){address, type};
    return i;
}

static int by_address(const void *a, const void *b)
{
    const struct tl_typed_variable *const x = a, *const y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (x->type > y->type) - (x->type < y->type);
}

void tl_types_sort(struct tl_types *t)
{
    if (t->n_variables > 1)
        qsort(t->variables, t->n_variables, sizeof *t->variables, by_address);
}

uint32_t tl_types_of(const struct tl_types *t, uint64_t address)
{
    const size_t begun = tl_count_upto(TL_KEYS(t->variables, address), t->n_variables, address);
    const struct tl_typed_variable *const v = begun > 0 ? &t->variables[begun - 1] : NULL;
    return v && v->address == address ? v->type : 0;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* What is sought, and the best that is found so far. */
struct search {
    const struct tl_types *types;
    unsigned size;
    char *path; /* of what is found */
    size_t room;
    uint32_t type; /* 0: none */
    uint64_t rest;
};

static bool fits(const struct search *s)
{
    return s->type != 0 && s->rest == 0 && s->types->types[s->type].size == s->size;
}

static void search_in(struct search *s, uint32_t type, uint64_t offset, const char *path,
                      unsigned depth);

static void search_array(struct search *s, const struct tl_type *array, uint64_t offset,
                         const char *path, unsigned depth)
{
    char longer[128];
    const uint64_t size = s->types->types[array->element].size;
    if (size == 0)
        return;
    snprintf(longer, sizeof longer, "%s[%" PRIu64 "]", path, offset / size);
    search_in(s, array->element, offset % size, longer, depth + 1);
}

static void search_members(struct search *s, const struct tl_type *of, uint64_t offset,
                           const char *path, unsigned depth)
{
    for (uint32_t i = 0; i < of->n && !fits(s); i++) {
        const struct tl_type_member *const m = &s->types->members[of->first + i];
        char longer[128];
        if (offset < m->offset || offset - m->offset >= s->types->types[m->type].size)
            continue;
        snprintf(longer, sizeof longer, "%s%s%s", path, *m->name ? "." : "", m->name);
        search_in(s, m->type, offset - m->offset, longer, depth + 1);
    }
}

static void search_in(struct search *s, uint32_t type, uint64_t offset, const char *path,
                      unsigned depth)
{
    const struct tl_type *const t = &s->types->types[type];
    const bool whole = offset == 0 && t->size == s->size;
    if (depth < DEPTH_MAX && t->kind == TL_TYPE_ARRAY)
        search_array(s, t, offset, path, depth);
    else if (depth < DEPTH_MAX && t->kind == TL_TYPE_STRUCT)
        search_members(s, t, offset, path, depth);
    if (fits(s) || (s->type != 0 && !whole))
        return;
    s->type = type;
    s->rest = offset;
    snprintf(s->path, s->room, "%s", path);
}

uint32_t tl_types_find(const struct tl_types *t, uint32_t type, uint64_t offset, unsigned size,
                       char *path, size_t room, uint64_t *rest)
{
    struct search s = {.types = t, .size = size, .path = path, .room = room, .rest = offset};
    *path = '\0';
    if (type != 0 && offset < t->types[type].size)
        search_in(&s, type, offset, "", 0);
    *rest = s.rest;
    return s.type;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool enumerator_text(const struct tl_types *t, const struct tl_type *type, int64_t value,
                            char *out, size_t room)
{
    const uint64_t mask = type->size < 8 ? (UINT64_C(1) << 8 * type->size) - 1 : UINT64_MAX;
    for (uint32_t i = 0; i < type->n; i++) {
        const struct tl_type_enumerator *const e = &t->enumerators[type->first + i];
        if (((uint64_t)e->value & mask) == ((uint64_t)value & mask)) {
            snprintf(out, room, "%s", e->name);
            return true;
        }
    }
    snprintf(out, room, "%" PRId64, value);
    return true;
}

static bool char_text(int64_t number, char *out, size_t room)
{
    if (number >= ' ' && number <= '~')
        snprintf(out, room, "'%c'", (char)number);
    else
        snprintf(out, room, "%" PRId64, number);
    return true;
}

bool tl_types_value(const struct tl_types *t, uint32_t type, uint64_t value, unsigned size,
                    char *out, size_t room)
{
    const struct tl_type *const of = &t->types[type];
    char number[TL_PORT_VALUE];
    if (type == 0 || of->size != size || size == 0 || size > 8)
        return false;
    const unsigned unused = 64 - 8 * size;
    const int64_t extended = (int64_t)(value << unused) >> unused;
    switch ((enum tl_type_kind)of->kind) {
    case TL_TYPE_SIGNED:
        return snprintf(out, room, "%" PRId64, extended) > 0;
    case TL_TYPE_UNSIGNED:
        return snprintf(out, room, "%" PRIu64, value) > 0;
    case TL_TYPE_POINTER:
        return snprintf(out, room, "0x%0*" PRIx64, (int)(2 * size), value) > 0;
    case TL_TYPE_BOOL:
        return snprintf(out, room, "%s", value ? "true" : "false") > 0;
    case TL_TYPE_CHAR:
        return char_text(extended, out, room);
    case TL_TYPE_ENUM:
        return enumerator_text(t, of, extended, out, room);
    case TL_TYPE_FLOAT:
        return tl_port_value(TL_PORT_FLOAT, value, size, number) &&
               snprintf(out, room, "%s", number) > 0;
    default:
        return false;
    }
}
