/* SPDX-License-Identifier: MIT */
/*
 * Each process has a list of pieces: current ones, whose addresses do not overlap, and past ones.
 * Lists are searched linearly: a process has hundreds of maps, of which few replace others.
 */
#include "import/maps.h"

#include <stdlib.h>
#include <string.h>

#define THERE UINT64_MAX /* `until` of a current piece */

struct piece {
    uint64_t first, last; /* addresses */
    uint64_t offset;      /* file offset of `first` */
    const char *file;     /* owned by the maps */
    uint64_t reported;    /* when it was mapped; its validity may begin earlier */
    uint64_t from, until; /* until 0: never valid */
};

struct process {
    uint64_t id;
    struct piece *v;
    size_t n, cap;
};

/* `id` is the process's own, or a thread's. */
struct name {
    uint64_t id, process;
    uint64_t from, until;
};

struct tl_maps {
    struct process *processes;
    size_t n_processes, cap_processes;
    struct name *names; /* names of threads */
    size_t n_names, cap_names;
    char **files;
    size_t n_files, cap_files;
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
    for (size_t i = 0; i < maps->n_processes; i++)
        free(maps->processes[i].v);
    for (size_t i = 0; i < maps->n_files; i++)
        free(maps->files[i]);
    free(maps->processes);
    free(maps->names);
    free(maps->files);
    free(maps);
}

/* The process with this ID, created on first use; NULL: out of memory. */
static struct process *process_of(struct tl_maps *maps, uint64_t id)
{
    for (size_t i = maps->n_processes; i-- > 0;)
        if (maps->processes[i].id == id)
            return &maps->processes[i];
    if (tl_grow(&maps->processes, &maps->cap_processes, maps->n_processes + 1,
                sizeof *maps->processes) < 0)
        return NULL;
    struct process *const p = &maps->processes[maps->n_processes++];
    *p = (struct process){.id = id};
    return p;
}

/* Store a file name without duplicates; NULL: out of memory. */
static const char *keep_file(struct tl_maps *maps, const char *file)
{
    for (size_t i = maps->n_files; i-- > 0;)
        if (strcmp(maps->files[i], file) == 0)
            return maps->files[i];
    if (tl_grow(&maps->files, &maps->cap_files, maps->n_files + 1, sizeof *maps->files) < 0)
        return NULL;
    char *const copy = strdup(file);
    if (copy)
        maps->files[maps->n_files++] = copy;
    return copy;
}

static int add_piece(struct process *p, struct piece piece)
{
    if (tl_grow(&p->v, &p->cap, p->n + 1, sizeof *p->v) < 0)
        return TL_NOMEM;
    p->v[p->n++] = piece;
    return TL_OK;
}

/* The part of a piece within first..last. */
static struct piece part_of(const struct piece *piece, uint64_t first, uint64_t last)
{
    struct piece part = *piece;
    part.first = first > piece->first ? first : piece->first;
    part.last = last < piece->last ? last : piece->last;
    part.offset += part.first - piece->first;
    return part;
}

static bool overlaps(const struct piece *piece, uint64_t first, uint64_t last)
{
    return piece->first <= last && first <= piece->last;
}

/*
 * End current pieces in first..last at `time`; those mapped at the same time were never valid.
 * Returns whether there were any, or TL_NOMEM.
 */
static int cut(struct process *p, uint64_t first, uint64_t last, uint64_t time)
{
    bool any = false;
    for (size_t i = 0, n = p->n; i < n; i++) {
        const struct piece old = p->v[i];
        if (old.until != THERE || !overlaps(&old, first, last))
            continue;
        any |= old.reported < time;
        p->v[i] = part_of(&old, first, last);
        p->v[i].until = old.reported < time ? time : 0;
        if ((old.first < first && add_piece(p, part_of(&old, old.first, first - 1)) < 0) ||
            (old.last > last && add_piece(p, part_of(&old, last + 1, old.last)) < 0))
            return TL_NOMEM;
    }
    return any;
}

/* Time since which first..last, currently unmapped, has been unmapped; 0: always. */
static uint64_t free_since(const struct process *p, uint64_t first, uint64_t last)
{
    uint64_t time = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].until != THERE && p->v[i].until > time && overlaps(&p->v[i], first, last))
            time = p->v[i].until;
    return time;
}

int tl_maps_add(struct tl_maps *maps, const struct tl_map *map)
{
    if (map->length == 0)
        return TL_OK;
    struct process *const p = process_of(maps, map->process);
    const char *const file = map->file ? keep_file(maps, map->file) : NULL;
    if (!p || (map->file && !file))
        return TL_NOMEM;
    const uint64_t last =
        map->length - 1 > UINT64_MAX - map->address ? UINT64_MAX : map->address + (map->length - 1);
    const int replaces = cut(p, map->address, last, map->time);
    if (replaces < 0 || !file)
        return replaces < 0 ? replaces : TL_OK;
    const uint64_t from = replaces ? map->time : free_since(p, map->address, last);
    return add_piece(p,
                     (struct piece){map->address, last, map->offset, file, map->time, from, THERE});
}

int tl_maps_clear(struct tl_maps *maps, uint64_t process, uint64_t time)
{
    struct process *const p = process_of(maps, process);
    const int rc = p ? cut(p, 0, UINT64_MAX, time) : TL_NOMEM;
    return rc < 0 ? rc : TL_OK;
}

int tl_maps_fork(struct tl_maps *maps, uint64_t process, uint64_t parent, uint64_t time)
{
    int rc = tl_maps_clear(maps, process, time);
    if (rc < 0 || process == parent || !process_of(maps, parent))
        return rc;
    struct process *const child = process_of(maps, process), *const from = process_of(maps, parent);
    for (size_t i = 0; rc == TL_OK && i < from->n; i++) {
        struct piece piece = from->v[i];
        if (piece.until != THERE)
            continue;
        piece.reported = time;
        piece.from = free_since(child, piece.first, piece.last);
        rc = add_piece(child, piece);
    }
    return rc;
}

int tl_maps_thread(struct tl_maps *maps, uint64_t process, uint64_t thread, uint64_t time)
{
    uint64_t from = 0; /* or when it stopped belonging to another process */
    for (size_t i = 0; i < maps->n_names; i++) {
        struct name *const name = &maps->names[i];
        if (name->id != thread)
            continue;
        if (name->until == THERE && name->process == process)
            return TL_OK;
        name->until = name->until == THERE ? time : name->until;
        from = name->until > from ? name->until : from;
    }
    if (thread == process)
        return TL_OK;
    if (tl_grow(&maps->names, &maps->cap_names, maps->n_names + 1, sizeof *maps->names) < 0)
        return TL_NOMEM;
    maps->names[maps->n_names++] = (struct name){thread, process, from, THERE};
    return TL_OK;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Append the process's pieces as images, for the time it had this name. */
static int put_images(const struct process *p, const struct name *name, struct tl_setup *setup)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct piece *const piece = &p->v[i];
        const uint64_t from = piece->from > name->from ? piece->from : name->from;
        const uint64_t until = piece->until < name->until ? piece->until : name->until;
        if (from >= until)
            continue;
        const int rc = tl_setup_add_image_at(setup, piece->file, piece->first, piece->offset,
                                             piece->last - piece->first + 1, TL_SPACE_ANY);
        if (rc < 0)
            return rc;
        struct tl_setup_image *const image = &setup->images[setup->n_images - 1];
        image->span = (struct tl_image_span){from, until == THERE ? 0 : until};
        image->context.has_context_id = p->id != TL_MAPS_KERNEL;
        image->context.context_id = image->context.has_context_id ? name->id : 0;
    }
    return TL_OK;
}

int tl_maps_images(const struct tl_maps *maps, struct tl_setup *setup)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < maps->n_processes; i++) {
        const struct process *const p = &maps->processes[i];
        const struct name own = {p->id, p->id, 0, THERE};
        rc = put_images(p, &own, setup);
        for (size_t k = 0; rc == TL_OK && k < maps->n_names; k++)
            if (maps->names[k].process == p->id)
                rc = put_images(p, &maps->names[k], setup);
    }
    return rc;
}
