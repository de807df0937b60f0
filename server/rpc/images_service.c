/* SPDX-License-Identifier: MIT */
/*
 * tracelake.v1.Images: receives, sends, lists and removes program images. A client gives the hash
 * first and is told at once if the image is there.
 */
#include "base/utf8.h"
#include "rpc/lookups.h"
#include "rpc/lookups_service.h"

#include <stdlib.h>
#include <string.h>

#define PIECE        (256u << 10)
#define MAX_IMAGE    (256u << 20)
#define MAX_TOGETHER (1024ull << 20) /* total size of images being transferred at the same time */

void tl_fill_image(struct tl_image_row *row, Tracelake__V1__Image *out)
{
    tracelake__v1__image__init(out);
    tl_utf8_clean(row->name);
    out->sha256 = row->hash;
    out->name = row->name;
    out->build_id = row->build_id;
    out->size = row->size;
}

static void fill_row(struct tl_reply *reply, void *message, const void *row)
{
    (void)reply; /* has the row */
    tl_fill_image((struct tl_image_row *)(uintptr_t)row, message);
}

static int send_row(struct tl_call *call, struct tl_image_row *row)
{
    Tracelake__V1__Image reply = TRACELAKE__V1__IMAGE__INIT;
    tl_fill_image(row, &reply);
    return tl_call_send(call, &reply.base);
}

/* Content that is stored whole need not be sent. TL_NOTFOUND: it must. */
static int send_stored(struct tl_call *call, const char *hash)
{
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    struct tl_image_row *rows = NULL;
    size_t n = 0;
    if (!*hash)
        return TL_NOTFOUND;
    tl_lake_want_image(lake, hash);
    if (!tl_lake_keeps_image(lake, hash))
        return TL_NOTFOUND;
    int rc = tl_lake_images(lake, &rows, &n);
    if (rc < 0)
        return rc;
    rc = TL_NOTFOUND;
    for (size_t i = 0; i < n && rc == TL_NOTFOUND; i++)
        if (!strcmp(rows[i].hash, hash))
            rc = send_row(call, &rows[i]);
    free(rows);
    return rc;
}

struct upload {
    struct tl_buf content;
    char name[128];
    char hash[72];
    size_t counted;
};

static int take(struct tl_call *call, struct upload *u, const Tracelake__V1__PutImageRequest *r)
{
    struct tl_rpc *const rpc = tl_call_rpc(call);
    struct tl_fail *const fail = tl_call_fail(call);
    const size_t n = r->data.len;
    if (n > MAX_IMAGE - u->content.n)
        return tl_fail_set(fail, TL_LIMIT, "an image is larger than %u MiB", MAX_IMAGE >> 20);
    u->counted += n;
    if (atomic_fetch_add(&rpc->image_bytes, n) + n > MAX_TOGETHER)
        return tl_fail_set(fail, TL_NOMEM, "too many images are being sent; retry later");
    return tl_buf_add(&u->content, r->data.data, n);
}

static int begin_upload(struct tl_call *call, struct upload *u,
                        const Tracelake__V1__PutImageRequest *r)
{
    struct tl_fail *const fail = tl_call_fail(call);
    if (strlen(r->name) >= sizeof u->name)
        return tl_fail_set(fail, TL_USAGE, "an image's name has at most %zu bytes",
                           sizeof u->name - 1);
    if (*r->sha256 && (strlen(r->sha256) != 71 || strncmp(r->sha256, "sha256:", 7) ||
                       strspn(r->sha256 + 7, "0123456789abcdef") != 64))
        return tl_fail_set(fail, TL_USAGE, "sha256 is \"sha256:\" and 64 hex digits");
    strcpy(u->name, r->name);
    strcpy(u->hash, r->sha256);
    return TL_OK;
}

/* Returns TL_EOF when the client has sent everything, TL_OK if it has already been answered. */
static int receive(struct tl_call *call, struct upload *u)
{
    for (bool first = true;;) {
        ProtobufCMessage *message;
        int rc = tl_call_recv(call, &message, -1);
        if (rc == TL_AGAIN && tl_call_draining(call))
            return tl_call_stop(call);
        if (rc == TL_AGAIN)
            continue;
        if (rc < 0)
            return rc;
        const Tracelake__V1__PutImageRequest *const r = (Tracelake__V1__PutImageRequest *)message;
        if (first) {
            first = false;
            rc = begin_upload(call, u, r);
            if (rc == TL_OK && send_stored(call, u->hash) == TL_OK) {
                tl_call_free_request(message);
                return TL_OK;
            }
        }
        if (rc == TL_OK)
            rc = take(call, u, r);
        tl_call_free_request(message);
        if (rc < 0)
            return rc;
    }
}

static int store(struct tl_call *call, const struct upload *u)
{
    struct tl_image_row row = {0};
    const struct tl_bytes content = {u->content.p, u->content.n};
    if (!content.n)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "the image is empty");
    const int rc =
        tl_lake_put_image(tl_call_rpc(call)->lake, u->name, content, &row, tl_call_fail(call));
    if (rc < 0)
        return rc;
    if (*u->hash && strcmp(u->hash, row.hash))
        return tl_fail_set(tl_call_fail(call), TL_BAD, "the content is %s, not %s", row.hash,
                           u->hash);
    return send_row(call, &row);
}

static int run_put(struct tl_call *call, const void *none)
{
    struct upload u = {0};
    int rc = receive(call, &u);
    if (rc == TL_EOF)
        rc = store(call, &u);
    tl_buf_fini(&u.content);
    atomic_fetch_sub(&tl_call_rpc(call)->image_bytes, u.counted);
    return rc;
}

static int run_get(struct tl_call *call, const void *message)
{
    const Tracelake__V1__GetImageRequest *const r = message;
    Tracelake__V1__GetImageReply reply = TRACELAKE__V1__GET_IMAGE_REPLY__INIT;
    Tracelake__V1__Image image = TRACELAKE__V1__IMAGE__INIT;
    struct tl_image_row row = {0};
    struct tl_buf content = {0};
    int rc =
        tl_lake_get_image(tl_call_rpc(call)->lake, r->sha256, &row, &content, tl_call_fail(call));
    tl_fill_image(&row, &image);
    reply.image = &image;
    for (size_t at = 0; rc >= 0 && (at < content.n || reply.image); reply.image = NULL) {
        reply.data.data = content.p + at;
        reply.data.len = content.n - at < PIECE ? content.n - at : PIECE;
        at += reply.data.len;
        rc = tl_call_send(call, &reply.base);
    }
    tl_buf_fini(&content);
    return rc;
}

void tl_binding_of(const Tracelake__V1__BindImageRequest *r, struct tl_lake_binding *out)
{
    *out = (struct tl_lake_binding){.hash = r->sha256,
                                    .address = r->address,
                                    .offset = r->offset,
                                    .length = r->length,
                                    .space = r->space,
                                    .context = {.context_id = r->context_id,
                                                .vmid = r->vmid,
                                                .has_context_id = r->in_process_case != 0,
                                                .has_vmid = r->in_machine_case != 0},
                                    .span = {r->begin, r->until}};
}

int tl_answer_images(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                     struct tl_fail *fail)
{
    struct tl_image_row *rows = NULL;
    size_t n = 0;
    (void)request;
    (void)fail;
    Tracelake__V1__ListImagesReply *const m =
        tl_reply_begin(reply, &tracelake__v1__list_images_reply__descriptor);
    const int rc = m ? tl_lake_images(asker->lake, &rows, &n) : TL_NOMEM;
    tl_reply_keep(reply, rows);
    if (rc >= 0 && !reply->failed)
        TL_REPLY_ROWS(reply, m, images, image, rows, n, fill_row);
    return tl_reply_done(reply, rc);
}

static int run_list(struct tl_call *call, const void *message)
{
    return tl_call_answer(call, message, tl_answer_images);
}

static int run_bind(struct tl_call *call, const void *message)
{
    const Tracelake__V1__BindImageRequest *const r = message;
    struct tl_lake_binding binding;
    tl_binding_of(r, &binding);
    const int rc =
        tl_lake_bind_image(tl_call_rpc(call)->lake, r->trace, &binding, tl_call_fail(call));
    if (rc < 0)
        return rc;
    const Tracelake__V1__BindImageReply reply = TRACELAKE__V1__BIND_IMAGE_REPLY__INIT;
    return tl_call_send(call, &reply.base);
}

static int run_remove(struct tl_call *call, const void *message)
{
    const Tracelake__V1__RemoveImageRequest *const r = message;
    struct tl_image_row row;
    const int rc =
        tl_lake_remove_image(tl_call_rpc(call)->lake, r->image, r->force, &row, tl_call_fail(call));
    return rc < 0 ? rc : send_row(call, &row);
}

const struct tl_method tl_images_methods[] = {
    {"/tracelake.v1.Images/PutImage", &tracelake__v1__put_image_request__descriptor,
     TL_CLIENT_STREAM, TL_ROLE_PUSH, run_put, TL_LASTING, TL_REACH_NONE},
    {"/tracelake.v1.Images/GetImage", &tracelake__v1__get_image_request__descriptor,
     TL_SERVER_STREAM, TL_ROLE_READ, run_get, TL_LONG, TL_REACH_ALL},
    {"/tracelake.v1.Images/ListImages", &tracelake__v1__list_images_request__descriptor, TL_UNARY,
     TL_ROLE_READ, run_list, TL_SHORT, TL_REACH_ALL},
    {"/tracelake.v1.Images/BindImage", &tracelake__v1__bind_image_request__descriptor, TL_UNARY,
     TL_ROLE_PUSH, run_bind},
    {"/tracelake.v1.Images/RemoveImage", &tracelake__v1__remove_image_request__descriptor, TL_UNARY,
     TL_ROLE_ADMIN, run_remove, TL_LONG, TL_REACH_ALL},
    {NULL, NULL, 0, 0, NULL},
};
