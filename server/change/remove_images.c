/* SPDX-License-Identifier: MIT */
/*
 * Removing images by name. One that traces are decoded with is only removed if the user insists,
 * since what is decoded from then on has gaps where it was.
 */
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is it what a user named so? */
static bool is_named(const struct tl_image_row *row, const char *name)
{
    enum { SHORTEST = 7 + 8 }; /* of the beginning of a hash */
    const size_t n = strlen(name);
    if (strncmp(name, "sha256:", 7) == 0)
        return n >= SHORTEST && strncmp(row->hash, name, n) == 0;
    return strncmp(name, "build-id:", 9) == 0 ? strcmp(row->build_id, name + 9) == 0
                                              : *name && strcmp(row->name, name) == 0;
}

/* The only image of this name. */
static int find_named(const struct tl_image_uses *uses, const char *name,
                      const struct tl_image_use **out, struct tl_fail *fail)
{
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < uses->n; i++) {
        if (!is_named(&uses->v[i].row, name))
            continue;
        if (n++ == 0)
            *out = &uses->v[i];
    }
    if (n == 0)
        return tl_fail_set(fail, TL_NOTFOUND,
                           "there is no image %.80s; `tracelake images` lists them", name);
    return n == 1 ? TL_OK
                  : tl_fail_set(fail, TL_USAGE,
                                "%zu images are named %.64s; give the sha256:… of one", n, name);
}

static int remove_named(struct tl_lake *lake, const struct tl_image_use *use, bool force,
                        struct tl_fail *fail)
{
    const bool is_source = tl_is_source(use->row.name); /* of which only the timeline's text is */
    if (use->traces > 0 && !force && !is_source)
        return tl_fail_set(fail, TL_DENIED,
                           "%zu trace%s with it, %.64s%s; remove %s first, or give --force: until "
                           "it is uploaded again decoding has gaps",
                           use->traces, use->traces == 1 ? " is decoded" : "s are decoded",
                           use->trace, use->traces == 1 ? "" : " for one",
                           use->traces == 1 ? "that trace" : "them");
    pthread_mutex_lock(&lake->images_lock);
    const int r = tl_image_discard(lake, use->row.hash, fail);
    pthread_mutex_unlock(&lake->images_lock);
    if (r >= 0)
        tl_lake_want_image(lake, use->row.hash); /* not in the list of unused ones any more */
    return r;
}

int tl_lake_remove_image(struct tl_lake *lake, const char *name, bool force,
                         struct tl_image_row *row, struct tl_fail *fail)
{
    struct tl_image_uses uses;
    const struct tl_image_use *use;
    int r = tl_image_uses_read(&uses, lake, fail);
    if (r >= 0)
        r = find_named(&uses, name, &use, fail);
    if (r >= 0)
        *row = use->row;
    if (r >= 0)
        r = remove_named(lake, use, force, fail);
    free(uses.v);
    return r < 0 ? r : TL_OK;
}
