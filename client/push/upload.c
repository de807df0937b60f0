/* SPDX-License-Identifier: MIT */
/*
 * Uploads the image files of a setup and names them by content hash. The server cannot read this
 * machine's files, and a path may have other contents by the time the trace is decoded.
 */
#include "push/upload.h"

#include "base/filekind.h"
#include "terminal/progress.h"
#include "terminal/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Refuse a file that is no program, before it has a name on the server. What cannot be read is
 * reported by the upload. */
static int check_image(const struct tl_setup_image *image)
{
    uint8_t bytes[TL_FILE_KIND_BYTES];
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    FILE *const file = fopen(image->file, "re");
    if (!file)
        return TL_ARGS_GO;
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    const bool failed = ferror(file);
    fclose(file);
    if (failed || tl_setup_check_image(image, (struct tl_bytes){bytes, n}, &fail) == TL_OK)
        return TL_ARGS_GO;
    return tl_cli_fail(NULL, &fail);
}

int tl_cli_check_image(const char *path)
{
    const struct tl_setup_image image = {.file = (char *)(uintptr_t)path};
    return check_image(&image);
}

static int upload_image(struct tracelake *lake, struct tl_setup *setup, size_t i, unsigned most)
{
    struct tracelake_image stored;
    struct tracelake_error error;
    char *const path = setup->images[i].file;
    unsigned tries = 0;
    int result;
    const struct tl_buf *const made = tl_setup_made(setup, path);
    const int status = made ? TL_ARGS_GO : check_image(&setup->images[i]);
    if (status != TL_ARGS_GO)
        return status;
    tl_progress_wait(path);
    do
        result = made ? tracelake_put_image(lake, path, made->p, made->n, &stored, &error)
                      : tracelake_put_image_file(lake, path, &stored, &error);
    while (tl_remote_again(result, &tries, most));
    tl_progress_end();
    if (result < 0)
        return tl_remote_fail(NULL, &error);
    char *const hash = strdup(stored.sha256);
    if (!hash)
        return TL_CLI_BAD;
    /* The same file is often mapped at several addresses. */
    for (size_t k = i + 1; k < setup->n_images; k++) {
        char *const other = setup->images[k].file;
        char *const same = strcmp(other, path) == 0 ? strdup(hash) : NULL;
        if (same) {
            setup->images[k].file = same;
            free(other);
        }
    }
    setup->images[i].file = hash;
    free(path);
    return TL_ARGS_GO;
}

int tl_cli_upload_images(struct tracelake *lake, struct tl_setup *setup, unsigned tries)
{
    for (size_t i = 0; i < setup->n_images; i++) {
        if (tl_setup_is_stored(setup->images[i].file))
            continue;
        const int status = upload_image(lake, setup, i, tries);
        if (status != TL_ARGS_GO)
            return status;
    }
    return TL_ARGS_GO;
}
