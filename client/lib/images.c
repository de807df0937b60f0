/* SPDX-License-Identifier: MIT */
/*
 * Sends and fetches program images. An image is named by its hash first, so that one that the
 * server already has is not sent.
 */
#include "ask.h"
#include "tracelake/v1/images.pb-c.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 256 << 10, QUEUE = 1 << 20 };

static void copy_image(struct tracelake_image *out, const Tracelake__V1__Image *from)
{
    snprintf(out->sha256, sizeof out->sha256, "%s", from->sha256);
    snprintf(out->name, sizeof out->name, "%s", from->name);
    snprintf(out->build_id, sizeof out->build_id, "%s", from->build_id);
    out->size = from->size;
}

static int hash(const void *data, size_t n, char out[static 72], struct tracelake_error *error)
{
    uint8_t digest[32];
    if (EVP_Digest(data, n, digest, NULL, EVP_sha256(), NULL) != 1)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    strcpy(out, "sha256:");
    for (int i = 0; i < 32; i++)
        snprintf(out + 7 + 2 * i, 3, "%02x", digest[i]);
    return TRACELAKE_OK;
}

/* Send the content, unless the server answers early because it already has it. */
static int send_image(struct tl_ask *ask, const char *name, char *sha256, const uint8_t *p,
                      size_t n, struct tracelake_error *error)
{
    Tracelake__V1__PutImageRequest request = TRACELAKE__V1__PUT_IMAGE_REQUEST__INIT;
    request.name = tl_ask_text(name);
    request.sha256 = sha256;
    int result = tl_ask_send(ask, &request.base, error);
    for (size_t at = 0; at < n && result == TRACELAKE_OK && !ask->io.ended;) {
        const size_t now = n - at < PIECE ? n - at : PIECE;
        Tracelake__V1__PutImageRequest piece = TRACELAKE__V1__PUT_IMAGE_REQUEST__INIT;
        piece.data.data = (uint8_t *)(uintptr_t)p + at;
        piece.data.len = now;
        result = tl_ask_send(ask, &piece.base, error);
        if (result == TRACELAKE_OK)
            result = tl_ask_drain(ask, QUEUE, error);
        at += now;
    }
    tl_ask_end(ask);
    return result;
}

static int put_once(struct tracelake *lake, const char *name, char sha256[static 72],
                    const void *data, size_t n, struct tracelake_image *image,
                    struct tracelake_error *error)
{
    struct tl_ask *ask;
    struct tl_bytes bytes = {0};
    Tracelake__V1__Image *reply = NULL;
    int result = tl_ask_open(&ask, lake, "/tracelake.v1.Images/PutImage", 0, error);
    if (result < 0)
        return result;
    result = send_image(ask, name, sha256, data, n, error);
    if (result == TRACELAKE_OK)
        result = tl_ask_recv(ask, &bytes, error);
    if (result == TRACELAKE_EOF)
        result = tl_client_fail(error, TRACELAKE_BAD, "the server gave no answer to an image");
    if (result == TRACELAKE_OK)
        result = tl_ask_unpack(ask, &tracelake__v1__image__descriptor, bytes, &reply, error);
    if (result == TRACELAKE_OK && strcmp(reply->sha256, sha256) != 0)
        result = tl_client_fail(error, TRACELAKE_BAD, "%s arrived damaged at the server",
                                name ? name : "the image");
    if (result == TRACELAKE_OK && image)
        copy_image(image, reply);
    if (reply)
        tracelake__v1__image__free_unpacked(reply, NULL);
    tl_ask_close(ask);
    return result;
}

int tracelake_put_image(struct tracelake *lake, const char *name, const void *data, size_t n,
                        struct tracelake_image *image, struct tracelake_error *error)
{
    char sha256[72];
    struct tl_again again = {0};
    int result = hash(data, n, sha256, error);
    if (result < 0)
        return result;
    do
        result = put_once(lake, name, sha256, data, n, image, error);
    while (result < 0 && tl_client_again(lake, &again, result));
    return result;
}

int tracelake_put_source(struct tracelake *lake, const char *image, const char *path,
                         const void *source, size_t n, struct tracelake_error *error)
{
    char prefix[32] = "source:", name[sizeof(((struct tracelake_image *)0)->name)];
    struct tl_buf content = {0};
    if (image && strlen(image) == 71)
        snprintf(prefix, sizeof prefix, "source:%.12s:", image + 7);
    const size_t room = sizeof name - 1 - strlen(prefix), length = strlen(path);
    snprintf(name, sizeof name, "%s%s", prefix, path + (length > room ? length - room : 0));
    int result = tl_buf_printf(&content, "%s%s\n", prefix, path);
    if (result >= 0)
        result = tl_buf_add(&content, source, n);
    result = result < 0 ? tl_client_fail(error, TRACELAKE_NOMEM, "out of memory")
                        : tracelake_put_image(lake, name, content.p, content.n, NULL, error);
    tl_buf_fini(&content);
    return result;
}

int tracelake_put_image_file(struct tracelake *lake, const char *path,
                             struct tracelake_image *image, struct tracelake_error *error)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        const int why = errno;
        if (fd >= 0)
            close(fd);
        return tl_client_fail(error, TRACELAKE_IO, "%s: %s", path, strerror(why));
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return tl_client_fail(error, TRACELAKE_IO, "%s: not a file", path);
    }
    void *p = NULL;
    const size_t n = (size_t)st.st_size;
    if (n > 0)
        p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    const int why = errno;
    close(fd);
    if (p == MAP_FAILED)
        return tl_client_fail(error, TRACELAKE_IO, "%s: %s", path, strerror(why));
    const int result =
        tracelake_put_image(lake, slash ? slash + 1 : path, p ? p : "", n, image, error);
    if (p)
        munmap(p, n);
    return result;
}

/* An image being received. */
struct coming {
    struct tracelake_image *image; /* NULL: not requested */
    struct tl_buf content;
};

static int take_piece(void *context, const void *message)
{
    struct coming *const coming = context;
    const Tracelake__V1__GetImageReply *const reply = message;
    if (reply->image && coming->image)
        copy_image(coming->image, reply->image);
    return tl_buf_add(&coming->content, reply->data.data, reply->data.len) < 0 ? TRACELAKE_NOMEM
                                                                               : TRACELAKE_OK;
}

int tracelake_get_image(struct tracelake *lake, const char *name, void **data, size_t *n,
                        struct tracelake_image *image, struct tracelake_error *error)
{
    Tracelake__V1__GetImageRequest request = TRACELAKE__V1__GET_IMAGE_REQUEST__INIT;
    struct coming coming = {.image = image};
    request.sha256 = tl_ask_text(name);
    const int r =
        tl_ask_each(lake, "/tracelake.v1.Images/GetImage", 0, &request.base,
                    &tracelake__v1__get_image_reply__descriptor, take_piece, &coming, error);
    if (r < 0) {
        tl_buf_fini(&coming.content);
        return r;
    }
    *data = coming.content.p;
    *n = coming.content.n;
    return TRACELAKE_OK;
}

int tracelake_remove_image(struct tracelake *lake, const char *name, bool force,
                           struct tracelake_image *image, struct tracelake_error *error)
{
    Tracelake__V1__RemoveImageRequest request = TRACELAKE__V1__REMOVE_IMAGE_REQUEST__INIT;
    Tracelake__V1__Image *reply;
    request.image = tl_ask_text(name);
    request.force = force;
    const int result = tl_ask_once(lake, "/tracelake.v1.Images/RemoveImage", 0, &request.base,
                                   &tracelake__v1__image__descriptor, &reply, error);
    if (result < 0)
        return result;
    if (image)
        copy_image(image, reply);
    tracelake__v1__image__free_unpacked(reply, NULL);
    return TRACELAKE_OK;
}

int tracelake_list_images(struct tracelake *lake, struct tracelake_image **images, size_t *n,
                          struct tracelake_error *error)
{
    Tracelake__V1__ListImagesRequest request = TRACELAKE__V1__LIST_IMAGES_REQUEST__INIT;
    Tracelake__V1__ListImagesReply *reply;
    const int result = tl_ask_once(lake, "/tracelake.v1.Images/ListImages", 0, &request.base,
                                   &tracelake__v1__list_images_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    struct tracelake_image *list = calloc(reply->n_images + 1, sizeof *list);
    for (size_t i = 0; list && i < reply->n_images; i++)
        copy_image(&list[i], reply->images[i]);
    *n = reply->n_images;
    *images = list;
    tracelake__v1__list_images_reply__free_unpacked(reply, NULL);
    return list ? TRACELAKE_OK : tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}

int tracelake_bind_image(struct tracelake *lake, const char *trace,
                         const struct tracelake_binding *binding, struct tracelake_error *error)
{
    Tracelake__V1__BindImageRequest request = TRACELAKE__V1__BIND_IMAGE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.sha256 = tl_ask_text(binding->sha256);
    request.address = binding->address;
    request.offset = binding->offset;
    request.length = binding->length;
    request.space = tl_ask_text(binding->space);
    request.begin = binding->from;
    request.until = binding->until;
    if (binding->has_context_id) {
        request.in_process_case = TRACELAKE__V1__BIND_IMAGE_REQUEST__IN_PROCESS_CONTEXT_ID;
        request.context_id = binding->context_id;
    }
    if (binding->has_vmid) {
        request.in_machine_case = TRACELAKE__V1__BIND_IMAGE_REQUEST__IN_MACHINE_VMID;
        request.vmid = binding->vmid;
    }
    return tl_ask_done(lake, "/tracelake.v1.Images/BindImage", &request.base,
                       &tracelake__v1__bind_image_reply__descriptor, error);
}
