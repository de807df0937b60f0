/* SPDX-License-Identifier: MIT */
/*
 * Each process has a tree of what is mapped now, and one of when addresses became free, both by
 * address; what was mapped before is a list. A capture may describe any number of processes and
 * maps, so each record takes time with the logarithm of these: the trees are those of tsearch(3),
 * in which ranges that overlap count as equal, so that a search finds one that is in the way.
 */
#include "import/maps.h"

#include "perf/map.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define THERE UINT64_MAX /* `until` of a current piece */

struct range {
    uint64_t first, last; /* addresses */
};

struct piece {
    struct range at;
    uint64_t offset;   /* file offset of the first byte */
    const char *file;  /* owned by the maps */
    uint64_t reported; /* when it was mapped; its validity may begin earlier */
    uint64_t from, until;
    uint64_t number; /* in the order of the records */
};

/* Addresses that were mapped before. */
struct gap {
    struct range at;
    uint64_t since;
};

struct process {
    uint64_t id;
    void *current; /* tree of struct piece */
    void *gaps;    /* tree of struct gap */
    struct piece *past;
    size_t n_past, cap_past, n_current;
};

/* `id` is the process's own, or a thread's. */
struct name {
    uint64_t id, process;
    uint64_t from, until;
    size_t next; /* of the same process, in a ring */
};

struct tl_maps {
    struct process *processes;
    size_t n_processes, cap_processes;
    struct tl_perf_map by_id; /* index of a process */
    struct name *names;       /* names of threads */
    size_t n_names, cap_names;
    struct tl_perf_map by_thread; /* index of the last name with an ID */
    struct tl_perf_map by_owner;  /* index of the last name of a process */
    void *files;                  /* tree of names */
    size_t n_pieces;
    uint64_t number;
};

int tl_maps_new(struct tl_maps **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? TL_OK : TL_NOMEM;
}

void tl_maps_free(struct tl_maps *maps)
{
    if (!maps)
        return;
    for (size_t i = 0; i < maps->n_processes; i++) {
        tdestroy(maps->processes[i].current, free);
        tdestroy(maps->processes[i].gaps, free);
        free(maps->processes[i].past);
    }
    tdestroy(maps->files, free);
    tl_perf_map_fini(&maps->by_id);
    tl_perf_map_fini(&maps->by_thread);
    tl_perf_map_fini(&maps->by_owner);
    free(maps->processes);
    free(maps->names);
    free(maps);
}

/* The process with this ID, created on first use; NULL: out of memory. */
static struct process *process_of(struct tl_maps *maps, uint64_t id)
{
    const int64_t known = tl_perf_map_get(&maps->by_id, id);
    if (known >= 0)
        return &maps->processes[known];
    if (tl_grow(&maps->processes, &maps->cap_processes, maps->n_processes + 1,
                sizeof *maps->processes) < 0 ||
        tl_perf_map_set(&maps->by_id, id, maps->n_processes) < 0)
        return NULL;
    struct process *const p = &maps->processes[maps->n_processes++];
    *p = (struct process){.id = id};
    return p;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Store a file name without duplicates; NULL: out of memory. */
static const char *keep_file(struct tl_maps *maps, const char *file)
{
    char *const *const known = tfind(file, &maps->files, by_text);
    if (known)
        return *known;
    char *const copy = strdup(file);
    if (!copy || tsearch(copy, &maps->files, by_text))
        return copy;
    free(copy);
    return NULL;
}

/* ---- trees of ranges ------------------------------------------------------------------------- */

/* Ranges that overlap are equal; those in a tree do not overlap. */
static int by_address(const void *a, const void *b)
{
    const struct range *const x = a, *const y = b;
    return x->last < y->first ? -1 : x->first > y->last;
}

/* Take a range that overlaps `at` out of a tree; NULL: there is none. The caller frees it. */
static void *take(void **tree, const struct range *at)
{
    void *const *const node = tfind(at, tree, by_address);
    void *const found = node ? *node : NULL;
    if (found)
        tdelete(found, tree, by_address);
    return found;
}

/* Add a copy of a structure that begins with its range. */
static int put(void **tree, const void *one, size_t size)
{
    void *const copy = malloc(size);
    if (!copy)
        return TL_NOMEM;
    memcpy(copy, one, size);
    if (tsearch(copy, tree, by_address))
        return TL_OK;
    free(copy);
    return TL_NOMEM;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct range common(struct range a, struct range b)
{
    return (struct range){larger(a.first, b.first), a.last < b.last ? a.last : b.last};
}

/* ---- addresses that are free ----------------------------------------------------------------- */

static int put_gap(struct process *p, uint64_t first, uint64_t last, uint64_t since)
{
    const struct gap gap = {{first, last}, since};
    return put(&p->gaps, &gap, sizeof gap);
}

/* What is in the way of the range is cut. Returns in `since` the latest time of it. */
static int cut_gaps(struct process *p, struct range at, uint64_t *since)
{
    struct gap *gap;
    int rc = TL_OK;
    *since = 0;
    while (rc == TL_OK && (gap = take(&p->gaps, &at))) {
        *since = larger(*since, gap->since);
        if (gap->at.first < at.first)
            rc = put_gap(p, gap->at.first, at.first - 1, gap->since);
        if (rc == TL_OK && gap->at.last > at.last)
            rc = put_gap(p, at.last + 1, gap->at.last, gap->since);
        free(gap);
    }
    return rc;
}

/* The addresses are free since `time`, if not since a later one. */
static int make_gap(struct process *p, struct range at, uint64_t time)
{
    uint64_t since;
    const int rc = cut_gaps(p, at, &since);
    return rc < 0 ? rc : put_gap(p, at.first, at.last, larger(since, time));
}

/* Time since which the range, currently unmapped, has been unmapped; 0: always. It is going to be
 * mapped: that all of it counts as free since then is soon forgotten. */
static int free_since(struct process *p, struct range at, uint64_t *since)
{
    const int rc = cut_gaps(p, at, since);
    return rc < 0 || *since == 0 ? rc : put_gap(p, at.first, at.last, *since);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int add_piece(struct tl_maps *maps, struct process *p, const struct piece *piece)
{
    if (maps->n_pieces >= TL_MAPS_MOST)
        return TL_LIMIT;
    const int rc = put(&p->current, piece, sizeof *piece);
    maps->n_pieces += rc == TL_OK;
    p->n_current += rc == TL_OK;
    return rc;
}

/* The part of a piece within the range, which it overlaps. */
static struct piece part_of(const struct piece *piece, struct range at)
{
    struct piece part = *piece;
    part.at = common(piece->at, at);
    part.offset += part.at.first - piece->at.first;
    return part;
}

/* A part of a piece has ended, at a time when it had been valid. */
static int end_part(struct process *p, struct piece part, uint64_t time)
{
    if (tl_grow(&p->past, &p->cap_past, p->n_past + 1, sizeof *p->past) < 0)
        return TL_NOMEM;
    part.until = time;
    p->past[p->n_past++] = part;
    return make_gap(p, part.at, time);
}

/* Add what a piece has outside the range. */
static int add_rest(struct tl_maps *maps, struct process *p, const struct piece *piece,
                    struct range at)
{
    int rc = TL_OK;
    struct piece rest;
    if (piece->at.first < at.first) {
        rest = part_of(piece, (struct range){piece->at.first, at.first - 1});
        rc = add_piece(maps, p, &rest);
    }
    if (rc == TL_OK && piece->at.last > at.last) {
        rest = part_of(piece, (struct range){at.last + 1, piece->at.last});
        rc = add_piece(maps, p, &rest);
    }
    return rc;
}

/*
 * End current pieces in the range at `time`; those mapped at the same time were never valid.
 * Returns whether there were any, or an error.
 */
static int cut(struct tl_maps *maps, struct process *p, struct range at, uint64_t time)
{
    struct piece *piece;
    bool any = false;
    int rc = TL_OK;
    while (rc == TL_OK && (piece = take(&p->current, &at))) {
        p->n_current--;
        rc = add_rest(maps, p, piece, at);
        if (rc == TL_OK && piece->reported < time) {
            any = true;
            rc = end_part(p, part_of(piece, at), time);
        }
        free(piece);
    }
    return rc < 0 ? rc : any;
}

int tl_maps_add(struct tl_maps *maps, const struct tl_map *map)
{
    if (map->length == 0)
        return TL_OK;
    struct process *const p = process_of(maps, map->process);
    const char *const file = map->file ? keep_file(maps, map->file) : NULL;
    if (!p || (map->file && !file))
        return TL_NOMEM;
    const bool wraps = map->length - 1 > UINT64_MAX - map->address;
    const struct range at = {map->address, wraps ? UINT64_MAX : map->address + (map->length - 1)};
    const int replaces = cut(maps, p, at, map->time);
    if (replaces < 0 || !file)
        return replaces < 0 ? replaces : TL_OK;
    struct piece piece = {.at = at,
                          .offset = map->offset,
                          .file = file,
                          .reported = map->time,
                          .from = map->time,
                          .until = THERE,
                          .number = maps->number++};
    const int rc = replaces ? TL_OK : free_since(p, at, &piece.from);
    return rc < 0 ? rc : add_piece(maps, p, &piece);
}

int tl_maps_clear(struct tl_maps *maps, uint64_t process, uint64_t time)
{
    struct process *const p = process_of(maps, process);
    const int rc = p ? cut(maps, p, (struct range){0, UINT64_MAX}, time) : TL_NOMEM;
    return rc < 0 ? rc : TL_OK;
}

struct fork {
    struct tl_maps *maps;
    struct process *child;
    uint64_t time;
    int rc;
};

static void inherit(const void *node, VISIT visit, void *context)
{
    struct fork *const f = context;
    if (f->rc < 0 || (visit != postorder && visit != leaf))
        return;
    struct piece piece = **(struct piece *const *)node;
    piece.reported = f->time;
    piece.number = f->maps->number++;
    f->rc = free_since(f->child, piece.at, &piece.from);
    if (f->rc == TL_OK)
        f->rc = add_piece(f->maps, f->child, &piece);
}

int tl_maps_fork(struct tl_maps *maps, uint64_t process, uint64_t parent, uint64_t time)
{
    const int rc = tl_maps_clear(maps, process, time);
    if (rc < 0 || process == parent || !process_of(maps, parent))
        return rc;
    struct fork f = {maps, process_of(maps, process), time, TL_OK};
    twalk_r(process_of(maps, parent)->current, inherit, &f);
    return f.rc;
}

/* Append a name to the ring of its process, of which the last one is known. */
static int add_name(struct tl_maps *maps, struct name name)
{
    const size_t i = maps->n_names;
    if (tl_grow(&maps->names, &maps->cap_names, i + 1, sizeof *maps->names) < 0)
        return TL_NOMEM;
    const int64_t last = tl_perf_map_get(&maps->by_owner, name.process);
    name.next = last < 0 ? i : maps->names[last].next;
    if (tl_perf_map_set(&maps->by_owner, name.process, i) < 0 ||
        tl_perf_map_set(&maps->by_thread, name.id, i) < 0)
        return TL_NOMEM;
    maps->names[i] = name;
    if (last >= 0)
        maps->names[last].next = i;
    maps->n_names++;
    return TL_OK;
}

int tl_maps_thread(struct tl_maps *maps, uint64_t process, uint64_t thread, uint64_t time)
{
    const int64_t last = tl_perf_map_get(&maps->by_thread, thread);
    uint64_t from = 0; /* or when it stopped belonging to another process */
    if (last >= 0) {
        struct name *const name = &maps->names[last];
        if (name->until == THERE && name->process == process)
            return TL_OK;
        name->until = name->until == THERE ? larger(time, name->from) : name->until;
        from = name->until;
    }
    return thread == process ? TL_OK
                             : add_name(maps, (struct name){thread, process, from, THERE, 0});
}

/* ---- images ---------------------------------------------------------------------------------- */

struct pieces {
    const struct piece **v;
    size_t n;
};

static void collect(const void *node, VISIT visit, void *context)
{
    struct pieces *const all = context;
    if (visit == postorder || visit == leaf)
        all->v[all->n++] = *(const struct piece *const *)node;
}

static int by_number(const void *a, const void *b)
{
    const struct piece *const x = *(const struct piece *const *)a;
    const struct piece *const y = *(const struct piece *const *)b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->at.first > y->at.first) - (x->at.first < y->at.first);
}

/* All pieces of a process, in the order of the records. The caller frees the list. */
static int list_pieces(const struct process *p, struct pieces *out)
{
    *out = (struct pieces){calloc(p->n_past + p->n_current + 1, sizeof *out->v), 0};
    if (!out->v)
        return TL_NOMEM;
    for (size_t i = 0; i < p->n_past; i++)
        out->v[out->n++] = &p->past[i];
    twalk_r(p->current, collect, out);
    qsort(out->v, out->n, sizeof *out->v, by_number);
    return TL_OK;
}

static int put_image(const struct process *p, const struct piece *piece, const struct name *name,
                     struct tl_setup *setup)
{
    const uint64_t from = larger(piece->from, name->from);
    const uint64_t until = piece->until < name->until ? piece->until : name->until;
    if (from >= until)
        return TL_OK;
    if (setup->n_images >= TL_MAPS_MOST)
        return TL_LIMIT;
    const int rc = tl_setup_add_image_at(setup, piece->file, piece->at.first, piece->offset,
                                         piece->at.last - piece->at.first + 1, TL_SPACE_ANY);
    if (rc < 0)
        return rc;
    struct tl_setup_image *const image = &setup->images[setup->n_images - 1];
    image->span = (struct tl_image_span){from, until == THERE ? 0 : until};
    image->context.has_context_id = p->id != TL_MAPS_KERNEL;
    image->context.context_id = image->context.has_context_id ? name->id : 0;
    return TL_OK;
}

/* Append the process's pieces as images, for the time it had this name. */
static int put_images(const struct process *p, const struct pieces *pieces, const struct name *name,
                      struct tl_setup *setup)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < pieces->n; i++)
        rc = put_image(p, pieces->v[i], name, setup);
    return rc;
}

static int put_process(const struct tl_maps *maps, const struct process *p, struct tl_setup *setup)
{
    const struct name own = {p->id, p->id, 0, THERE, 0};
    const int64_t last = tl_perf_map_get(&maps->by_owner, p->id);
    struct pieces pieces;
    int rc = list_pieces(p, &pieces);
    if (rc == TL_OK)
        rc = put_images(p, &pieces, &own, setup);
    for (size_t i = (size_t)last; rc == TL_OK && last >= 0 && pieces.n > 0;) {
        i = maps->names[i].next;
        rc = put_images(p, &pieces, &maps->names[i], setup);
        if (i == (size_t)last)
            break;
    }
    free(pieces.v);
    return rc;
}

int tl_maps_images(const struct tl_maps *maps, struct tl_setup *setup)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < maps->n_processes; i++)
        rc = put_process(maps, &maps->processes[i], setup);
    return rc;
}
