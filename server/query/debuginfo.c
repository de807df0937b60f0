/* SPDX-License-Identifier: MIT */
/*
 * Loads debug information once per image and keeps it up to a limit; entries in use are never
 * evicted. It is keyed by content, so that traces of the same program share it.
 */
#include "query/debuginfo.h"

#include <stdio.h>
#include <stdlib.h>

#define KEEP_FILES 8
#define KEEP_BYTES (512ull << 20)

/* ---- what is kept ---------------------------------------------------------------------------- */

static void destroy(struct tl_debuginfo *info)
{
    tl_dwarf_close(info->dwarf);
    free(info);
}

static size_t size_of(const struct tl_debuginfo *info)
{
    return info->dwarf ? tl_dwarf_size(info->dwarf) : 0;
}

/* Evict entries that are not in use and, beyond the size limit, least recently used. */
static struct tl_debuginfo *evict_locked(struct tl_lake *lake)
{
    struct tl_debuginfo *gone = NULL;
    size_t files = 0;
    uint64_t bytes = 0;
    for (struct tl_debuginfo **p = &lake->debuginfos; *p;) {
        struct tl_debuginfo *const info = *p;
        files++;
        bytes += size_of(info);
        if (info->refs > 0 || (files <= KEEP_FILES && bytes <= KEEP_BYTES)) {
            p = &info->next;
            continue;
        }
        *p = info->next;
        info->next = gone;
        gone = info;
    }
    return gone;
}

static void destroy_all(struct tl_debuginfo *gone)
{
    while (gone) {
        struct tl_debuginfo *const next = gone->next;
        destroy(gone);
        gone = next;
    }
}

/* Find the entry with this hash, with a reference, and move it to the front; or NULL. */
static struct tl_debuginfo *find_locked(struct tl_lake *lake, const char *hash)
{
    for (struct tl_debuginfo **p = &lake->debuginfos; *p; p = &(*p)->next) {
        struct tl_debuginfo *const info = *p;
        if (strcmp(info->hash, hash) != 0)
            continue;
        *p = info->next;
        info->next = lake->debuginfos;
        lake->debuginfos = info;
        info->refs++;
        return info;
    }
    return NULL;
}

static int read_info(struct tl_lake *lake, struct tl_debuginfo *info, struct tl_fail *fail)
{
    char key[128];
    struct tl_buf content = {0};
    snprintf(key, sizeof key, "i/%s", info->hash + 7);
    int r = tl_backend_get_all(lake->backend, key, &content, fail);
    if (r >= 0)
        r = tl_dwarf_open(&info->dwarf, (struct tl_bytes){content.p, content.n}, fail);
    tl_buf_fini(&content);
    if (r == TL_BAD) {
        snprintf(info->lacks, sizeof info->lacks, "no debug information: it is no ELF file");
        return TL_OK;
    }
    if (r >= 0)
        snprintf(info->lacks, sizeof info->lacks, "%s", tl_dwarf_lacks(info->dwarf));
    return r;
}

/* Get an image's debug information, with a reference. Content that is not an ELF file has none, and
 * `lacks` says so. TL_NOTFOUND: it is not stored; TL_NOMEM, TL_IO. */
static int get_info(struct tl_debuginfo **out, struct tl_lake *lake, const char *file,
                    struct tl_fail *fail)
{
    char hash[72];
    if (tl_lake_image_hash(lake, file, hash) < 0)
        return tl_fail_set(fail, TL_NOTFOUND, "image %.100s was not uploaded", file);
    pthread_mutex_lock(&lake->debuginfo_lock);
    *out = find_locked(lake, hash);
    pthread_mutex_unlock(&lake->debuginfo_lock);
    if (*out)
        return TL_OK;
    struct tl_debuginfo *const info = calloc(1, sizeof *info);
    if (!info)
        return tl_fail_set(fail, TL_NOMEM, "no memory for debug information");
    memcpy(info->hash, hash, sizeof info->hash);
    info->refs = 1;
    const int r = read_info(lake, info, fail);
    if (r < 0) {
        destroy(info);
        return r;
    }
    pthread_mutex_lock(&lake->debuginfo_lock);
    *out = find_locked(lake, hash); /* loaded by another thread meanwhile */
    if (!*out) {
        info->next = lake->debuginfos;
        lake->debuginfos = info;
    }
    struct tl_debuginfo *const gone = evict_locked(lake);
    pthread_mutex_unlock(&lake->debuginfo_lock);
    destroy_all(gone);
    if (*out)
        destroy(info);
    else
        *out = info;
    return TL_OK;
}

static void put_info(struct tl_lake *lake, struct tl_debuginfo *info)
{
    if (!info)
        return;
    pthread_mutex_lock(&lake->debuginfo_lock);
    info->refs--;
    struct tl_debuginfo *const gone = evict_locked(lake);
    pthread_mutex_unlock(&lake->debuginfo_lock);
    destroy_all(gone);
}

void tl_debuginfo_drop(struct tl_lake *lake)
{
    destroy_all(lake->debuginfos);
    lake->debuginfos = NULL;
}

/* ---- addresses of a trace -------------------------------------------------------------------- */

int tl_places_init(struct tl_places *places, struct tl_gen *gen)
{
    const size_t n = gen->setup.n_images;
    *places = (struct tl_places){.gen = gen, .lacks = "", .image = ""};
    places->infos = calloc(n + 1, sizeof(struct tl_debuginfo *));
    places->tried = calloc(n + 1, sizeof *places->tried);
    return places->infos && places->tried ? TL_OK : TL_NOMEM;
}

void tl_places_fini(struct tl_places *places)
{
    for (size_t i = 0; places->infos && i < places->gen->setup.n_images; i++)
        put_info(places->gen->lake, places->infos[i]);
    free(places->infos);
    free(places->tried);
    *places = (struct tl_places){0};
}

/*
 * Is the image mapped in this state? Returns the quality of the match, > 0, as in tl_image_view().
 */
static unsigned fits(const struct tl_setup_image *image, const struct tl_flow_now *now)
{
    const uint64_t time = now->has_time ? now->time : 0;
    const struct tl_image_context *const c = &image->context;
    if (time < image->span.from || (image->span.until && time >= image->span.until))
        return 0;
    if (now->has_mode && !(image->space & tl_mode_space(now->mode)))
        return 0;
    if (c->has_context_id && !(now->has_context && now->context == c->context_id))
        return 0;
    if (c->has_vmid && !(now->has_vmid && now->vmid == c->vmid))
        return 0;
    return 1 + (c->has_vmid ? 1u : 0) + (c->has_context_id ? 2u : 0);
}

/* Debug information of the setup's image `i`, or NULL. */
static int info_of(struct tl_places *places, size_t i, struct tl_debuginfo **out)
{
    const char *const file = places->gen->setup.images[i].file;
    int r = TL_OK;
    if (!places->tried[i])
        r = get_info(&places->infos[i], places->gen->lake, file, NULL);
    places->tried[i] = true;
    *out = places->infos[i];
    return r == TL_NOMEM || r == TL_CANCELLED ? r : TL_OK;
}

/* The file's own address for `pc`. False: the image is not mapped there. */
static bool own_address(const struct tl_setup_image *image, const struct tl_debuginfo *info,
                        uint64_t pc, uint64_t *address)
{
    const uint64_t at = pc - image->address;
    if (!info || !info->dwarf)
        return false;
    if (image->offset == 0 && image->length == UINT64_MAX) {
        *address = at;
        return tl_dwarf_covers(info->dwarf, at);
    }
    return at < image->length && at <= UINT64_MAX - image->offset &&
           tl_dwarf_address(info->dwarf, image->offset + at, address) == TL_OK;
}

int tl_places_own(struct tl_places *places, const struct tl_flow_now *now, uint64_t pc,
                  size_t *found, uint64_t *address)
{
    const struct tl_setup *const setup = &places->gen->setup;
    unsigned best = 0;
    places->lacks = setup->n_images ? "" : "no image";
    for (size_t i = setup->n_images; i-- > 0;) { /* the last one of equal quality wins */
        const struct tl_setup_image *const image = &setup->images[i];
        const unsigned fit = fits(image, now);
        struct tl_debuginfo *info;
        uint64_t at;
        if (fit <= best || (image->length != UINT64_MAX && pc - image->address >= image->length))
            continue;
        const int r = info_of(places, i, &info);
        if (r < 0)
            return r;
        if (!own_address(image, info, pc, &at)) {
            if (info && !info->dwarf && best == 0)
                places->lacks = info->lacks;
            continue;
        }
        best = fit;
        *found = i;
        *address = at;
    }
    return best > 0 ? TL_OK : TL_NOTFOUND;
}

int tl_places_at(struct tl_places *places, const struct tl_flow_now *now, uint64_t pc)
{
    size_t image;
    uint64_t address;
    places->place = (struct tl_dwarf_place){.file = ""};
    places->image = "";
    int r = tl_places_own(places, now, pc, &image, &address);
    if (r < 0)
        return r == TL_NOTFOUND ? TL_OK : r;
    const struct tl_debuginfo *const found = places->infos[image];
    places->lacks = found->lacks;
    places->image = found->hash;
    r = tl_dwarf_at(found->dwarf, address, &places->place);
    return r == TL_NOTFOUND ? TL_OK : r;
}
