/* SPDX-License-Identifier: MIT */
/*
 * Program images over HTTP: those of the server, and which of them a trace uses or lacks, described
 * in docs/http.md. A trace's list joins the images of one file, since a program may be mapped in
 * many pieces.
 */
#include "rpc/lookups.h"
#include "rpc/rpcint.h"
#include "rpc/webapi.h"
#include "rpc/webargs.h"
#include "rpc/webjson.h"

#include <stdlib.h>
#include <string.h>

/* ---- images of the server ---------------------------------------------------------------- */

static int respond_image(const struct tl_http_request *request, struct tl_http_response *response,
                         struct tl_image_row *row)
{
    Tracelake__V1__Image reply;
    tl_fill_image(row, &reply);
    return tl_web_respond(request, response, &reply.base, false);
}

int tl_web_put_image(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__PutImageRequest r = TRACELAKE__V1__PUT_IMAGE_REQUEST__INIT;
    struct tl_fail *const fail = &response->fail;
    struct tl_image_row row;
    int rc = tl_web_fill(request, &r, fail);
    if (rc >= 0 && !request->body.n)
        rc = tl_fail_set(fail, TL_USAGE, "the body is the image, and it is empty");
    if (rc >= 0 && strlen(r.name) >= sizeof row.name)
        rc = tl_fail_set(fail, TL_USAGE, "an image's name has at most %zu bytes",
                         sizeof row.name - 1);
    if (rc >= 0)
        rc = tl_lake_put_image(tl_web_lake(request), r.name, request->body, &row, fail);
    return rc < 0 ? rc : respond_image(request, response, &row);
}

int tl_web_remove_image(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__RemoveImageRequest r = TRACELAKE__V1__REMOVE_IMAGE_REQUEST__INIT;
    struct tl_image_row row;
    int rc = tl_web_fill(request, &r, &response->fail);
    if (rc >= 0)
        rc = tl_lake_remove_image(tl_web_lake(request), r.image, r.force, &row, &response->fail);
    return rc < 0 ? rc : respond_image(request, response, &row);
}

/* ---- images of a trace ------------------------------------------------------------------- */

enum { PLACES = 16 }; /* maximum mappings returned per image */

/* Images of one file together, in the order of the setup. */
struct entry {
    const struct tl_setup_image *image;
    bool there;
};

static int by_file(const void *a, const void *b)
{
    const struct entry *const x = a, *const y = b;
    const int order = strcmp(x->image->file, y->image->file);
    return order ? order : (x->image > y->image) - (x->image < y->image);
}

static void write_place(struct tl_jsonout *j, const struct tl_setup *setup,
                        const struct tl_setup_image *m)
{
    const struct tl_image_context *const c = &m->context;
    const char *name =
        c->has_context_id ? tl_setup_context_name(setup, false, c->context_id) : NULL;
    if (!name && c->has_vmid)
        name = tl_setup_context_name(setup, true, c->vmid);
    tl_jsonout_open(j, '{');
    tl_webjson_address(j, "address", m->address);
    if (m->length != UINT64_MAX)
        tl_webjson_address(j, "length", m->length);
    if (c->has_context_id)
        tl_webjson_address(j, "context", c->context_id);
    if (c->has_vmid)
        tl_webjson_address(j, "vmid", c->vmid);
    if (name)
        tl_webjson_text(j, "name", name);
    tl_jsonout_close(j, '}');
}

/* Is it the same mapping at another time, or of another part of the file? */
static bool is_reported(const struct tl_setup_image *const *reported, size_t n,
                        const struct tl_setup_image *m)
{
    for (size_t i = 0; i < n; i++)
        if (reported[i]->address == m->address &&
            reported[i]->context.has_context_id == m->context.has_context_id &&
            reported[i]->context.context_id == m->context.context_id &&
            reported[i]->context.has_vmid == m->context.has_vmid &&
            reported[i]->context.vmid == m->context.vmid)
            return true;
    return false;
}

/* Write `n` entries of one file. */
static void write_file(struct tl_jsonout *j, const struct tl_setup *setup, const struct entry *all,
                       size_t n)
{
    const struct tl_setup_image *const first = all[0].image;
    const bool by_id = strncmp(first->file, "build-id:", 9) == 0;
    tl_jsonout_open(j, '{');
    tl_webjson_text(j, "file", first->file);
    tl_webjson_bool(j, "there", all[0].there);
    if (first->path)
        tl_webjson_text(j, "path", first->path);
    if (by_id)
        tl_webjson_text(j, "build_id", first->file + 9);
    tl_webjson_open(j, "places", '[');
    const struct tl_setup_image *reported[PLACES];
    size_t n_reported = 0, more = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tl_setup_image *const m = all[i].image;
        if (is_reported(reported, n_reported, m))
            continue;
        if (n_reported == PLACES) {
            more++;
            continue;
        }
        reported[n_reported++] = m;
        write_place(j, setup, m);
    }
    tl_jsonout_close(j, ']');
    tl_webjson_u64(j, "more", more);
    tl_jsonout_close(j, '}');
}

int tl_web_trace_images(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_trace_images images;
    const int rc =
        tl_lake_trace_images(tl_web_lake(request), request->part[0], &images, &response->fail);
    if (rc < 0) {
        tl_trace_images_fini(&images);
        return tl_web_explain(request, response, rc);
    }
    const size_t n = images.setup.n_images;
    struct entry *const all = calloc(n + 1, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = (struct entry){&images.setup.images[i], images.there[i]};
    if (all && n > 0)
        qsort(all, n, sizeof *all, by_file);
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text, .rc = all ? TL_OK : TL_NOMEM};
    tl_jsonout_open(&json, '[');
    for (size_t i = 0, k; all && i < n; i = k) {
        for (k = i + 1; k < n && strcmp(all[k].image->file, all[i].image->file) == 0;)
            k++;
        write_file(&json, &images.setup, &all[i], k - i);
    }
    tl_jsonout_close(&json, ']');
    free(all);
    tl_trace_images_fini(&images);
    return tl_webjson_respond(response, &json);
}

int tl_web_bind_image(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__BindImageRequest r = TRACELAKE__V1__BIND_IMAGE_REQUEST__INIT;
    struct tl_fail *const fail = &response->fail;
    struct tl_lake_binding binding;
    int rc = tl_http_query(request, "sha256")
                 ? tl_web_fill(request, &r, fail)
                 : tl_fail_set(fail, TL_USAGE, "sha256= is missing; PUT /api/v1/images tells it");
    tl_binding_of(&r, &binding);
    if (rc == TL_OK)
        rc = tl_lake_bind_image(tl_web_lake(request), r.trace, &binding, fail);
    return rc < 0 ? tl_web_explain(request, response, rc) : tl_web_trace(request, response);
}

int tl_web_setup(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_buf *const text = &response->body;
    int rc = tl_lake_setup(tl_web_lake(request), request->part[0], text, &response->fail);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    while (text->n && !text->p[text->n - 1])
        text->n--;
    response->compress = true;
    rc = tl_http_type(response, "text/plain; charset=utf-8");
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}
