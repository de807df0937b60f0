/* SPDX-License-Identifier: MIT */
/* The images of the fake lake: a part of fake_lake.c, which includes it at its end. */
#ifndef TL_TESTS_FAKE_IMAGES_H
#define TL_TESTS_FAKE_IMAGES_H

#include "lake_images.h"
#include "lake_traces.h"
#include "setup/setup.h"

#include <inttypes.h>

bool tl_lake_has_image(struct tl_lake *lake, const char *hash)
{
    bool there = false;
    pthread_mutex_lock(&lake->lock);
    for (size_t i = 0; i < lake->n_images; i++)
        there |= !strcmp(lake->images[i].hash, hash);
    pthread_mutex_unlock(&lake->lock);
    return there;
}

bool tl_lake_keeps_image(struct tl_lake *lake, const char *hash)
{
    return tl_lake_has_image(lake, hash);
}

/* Not SHA-256, but different for different contents. */
static void name_of(struct tl_bytes content, char out[static 72])
{
    uint64_t h[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < content.n; i++)
        h[i % 4] = (h[i % 4] ^ content.p[i]) * UINT64_C(0x100000001b3);
    snprintf(out, 72, "sha256:%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, h[0], h[1],
             h[2], h[3]);
}

int tl_lake_put_image(struct tl_lake *lake, const char *name, struct tl_bytes content,
                      struct tl_image_row *row, struct tl_fail *fail)
{
    *row = (struct tl_image_row){.size = content.n};
    name_of(content, row->hash);
    snprintf(row->name, sizeof row->name, "%s", name);
    if (tl_lake_has_image(lake, row->hash))
        return TL_OK;
    pthread_mutex_lock(&lake->lock);
    const bool room = lake->n_images < 8;
    if (room)
        lake->images[lake->n_images++] = *row;
    pthread_mutex_unlock(&lake->lock);
    return room ? TL_OK : TL_NOSPACE;
}

int tl_lake_get_image(struct tl_lake *lake, const char *name, struct tl_image_row *row,
                      struct tl_buf *out, struct tl_fail *fail)
{
    (void)lake;
    (void)row;
    (void)out;
    return tl_fail_set(fail, TL_NOTFOUND, "there is no image %.80s", name);
}

int tl_lake_images(struct tl_lake *lake, struct tl_image_row **rows, size_t *n)
{
    pthread_mutex_lock(&lake->lock);
    *n = lake->n_images;
    *rows = malloc(sizeof lake->images);
    memcpy(*rows, lake->images, sizeof lake->images);
    pthread_mutex_unlock(&lake->lock);
    return TL_OK;
}

void tl_lake_want_image(struct tl_lake *lake, const char *hash)
{
    (void)lake;
    (void)hash;
}

/* The only trace refers to all of them. */
int tl_lake_remove_image(struct tl_lake *lake, const char *name, bool force,
                         struct tl_image_row *row, struct tl_fail *fail)
{
    int r = tl_fail_set(fail, TL_NOTFOUND, "there is no image %.80s", name);
    pthread_mutex_lock(&lake->lock);
    for (size_t i = 0; i < lake->n_images && r == TL_NOTFOUND; i++) {
        if (strcmp(lake->images[i].hash, name) != 0)
            continue;
        *row = lake->images[i];
        r = force ? TL_OK : tl_fail_set(fail, TL_DENIED, "1 trace is decoded with it");
        if (force)
            lake->images[i] = lake->images[--lake->n_images];
    }
    pthread_mutex_unlock(&lake->lock);
    return r;
}

int tl_lake_trace_images(struct tl_lake *lake, const char *trace, struct tl_trace_images *out,
                         struct tl_fail *fail)
{
    static const char text[] =
        "[image 0]\nfile=build-id:0c9a\npath=/bin/w\naddress=0x1000\n"
        "length=0x1000\ncontext=0x7\n[image 1]\nfile=sha256:1\n"
        "[image 2]\nfile=build-id:0c9a\npath=/bin/w\naddress=0x1000\n"
        "length=0x1000\ncontext=0x7\nfrom=4\n[image 3]\nfile=build-id:2\n"
        "path=[kernel]\naddress=0x5000\nanchor=_stext\n[context 7]\nname=httpd\n";
    struct tl_buf ignored = {0};
    *out = (struct tl_trace_images){0};
    int rc = tl_lake_setup(lake, trace, &ignored, fail);
    tl_buf_fini(&ignored);
    if (rc == TL_OK)
        rc = tl_setup_parse(&out->setup, text, sizeof text - 1, fail);
    out->there = calloc(4, sizeof *out->there);
    if (rc == TL_OK && !out->there)
        return TL_NOMEM;
    if (rc == TL_OK)
        out->there[1] = true;
    return rc;
}

void tl_trace_images_fini(struct tl_trace_images *images)
{
    tl_setup_fini(&images->setup);
    free(images->there);
    images->there = NULL;
}

int tl_lake_bind_image(struct tl_lake *lake, const char *trace,
                       const struct tl_lake_binding *binding, struct tl_fail *fail)
{
    if (!tl_lake_has_image(lake, binding->hash))
        return tl_fail_set(fail, TL_NOTFOUND, "no image %s", binding->hash);
    return tl_lake_redecode(lake, trace, NULL, fail);
}

#endif
