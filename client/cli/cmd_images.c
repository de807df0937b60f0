/* SPDX-License-Identifier: MIT */
/* `tracelake images`: upload program images before, during or after a capture, and list them. */
#include "cli/plain.h"
#include "cli/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int show(struct tracelake *lake)
{
    struct tracelake_image *images;
    struct tracelake_error error;
    size_t n;
    if (tracelake_list_images(lake, &images, &n, &error) < 0)
        return tl_remote_fail(NULL, &error);
    for (size_t i = 0; i < n; i++) {
        printf("%s %10" PRIu64 " %s%s ", images[i].sha256, images[i].size,
               images[i].build_id[0] ? "build-id:" : "-", images[i].build_id);
        tl_print_plain(stdout, images[i].name, 0);
        putchar('\n');
    }
    free(images);
    return TL_CLI_DONE;
}

int tl_cmd_images(int argc, char **argv)
{
    struct tl_remote remote = {0};
    const struct tl_arg args[] = {TL_REMOTE_ARGS(remote), {0}};
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = TL_CLI_DONE;
    for (int i = first; i < argc; i++) {
        struct tracelake_error error;
        if (tracelake_put_image_file(lake, argv[i], NULL, &error) < 0) {
            const int failed = tl_remote_fail(argv[i], &error);
            status = failed > status ? failed : status;
        }
    }
    const int shown = show(lake);
    tracelake_close(lake);
    return shown > status ? shown : status;
}
