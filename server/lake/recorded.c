/* SPDX-License-Identifier: MIT */
/*
 * Makes a setup from the mappings that the capture's own bytes record. Files of this machine are
 * not looked at: a path means another file here than on the traced one.
 */
#include "lake/recorded.h"

#include "import/perf.h"
#include "lake_raw.h"

#include <stdlib.h>
#include <string.h>

static int read_all(const struct tl_gen *gen, struct tl_perf_import *import, struct tl_fail *fail)
{
    struct tl_raw_range *raw;
    struct tl_buf piece = {0};
    uint64_t offset;
    int r = tl_raw_open(gen->lake, gen->trace, 0, UINT64_MAX, &raw, fail);
    if (r < 0)
        return r;
    while (r >= 0) {
        tl_buf_reset(&piece);
        r = atomic_load(&gen->abandoned) ? TL_CANCELLED : tl_raw_next(raw, &offset, &piece, fail);
        if (r == TL_EOF)
            break;
        if (r >= 0)
            r = tl_perf_import_push(import, (struct tl_bytes){piece.p, piece.n});
    }
    tl_raw_close(raw);
    tl_buf_fini(&piece);
    return r == TL_EOF ? tl_perf_import_finish(import) : r;
}

/* Code that only exists in the capture is stored like any other image. */
static int store_made(struct tl_lake *lake, struct tl_setup *setup, struct tl_fail *fail)
{
    struct tl_image_row row;
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < setup->n_images; i++) {
        struct tl_setup_image *const image = &setup->images[i];
        const struct tl_buf *const made = tl_setup_made(setup, image->file);
        if (!made)
            continue;
        r = lake->rooms->put_image(lake, image->file, (struct tl_bytes){made->p, made->n}, &row,
                                   fail);
        char *const hash = r >= 0 ? strdup(row.hash) : NULL;
        if (r >= 0 && !hash)
            return TL_NOMEM;
        if (hash) {
            free(image->file);
            image->file = hash;
        }
    }
    return r;
}

/* A copy, to which images are added. */
static int copy_setup(const struct tl_setup *from, struct tl_setup *to, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    int r = tl_setup_write(from, &text);
    if (r >= 0)
        r = tl_setup_parse(to, (const char *)text.p, text.n, fail);
    tl_buf_fini(&text);
    return r;
}

int tl_recorded_setup(const struct tl_gen *gen, struct tl_buf *text, struct tl_fail *fail)
{
    static const struct tl_code_places nowhere = {.symfs = "/dev/null", .buildid_dir = "/dev/null"};
    struct tl_perf_import *import;
    struct tl_setup setup;
    if (gen->setup.container != TL_CONTAINER_PERF || gen->setup.n_images > 0)
        return TL_NOTFOUND;
    if (tl_perf_import_new(&import, &nowhere, NULL, NULL) < 0)
        return TL_NOMEM;
    tl_setup_init(&setup);
    int r = read_all(gen, import, fail);
    if (r >= 0)
        r = copy_setup(&gen->setup, &setup, fail);
    if (r >= 0)
        r = tl_perf_import_setup(import, &setup);
    if (r >= 0 && setup.n_images == 0)
        r = TL_NOTFOUND;
    if (r >= 0)
        r = store_made(gen->lake, &setup, fail);
    if (r >= 0)
        r = tl_setup_write(&setup, text);
    if (r >= 0)
        r = tl_buf_add(text, "", 1);
    tl_setup_fini(&setup);
    tl_perf_import_free(import);
    return r < 0 ? r : TL_OK;
}
