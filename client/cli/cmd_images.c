/* SPDX-License-Identifier: MIT */
/*
 * `tracelake images`: uploads program images and sources before, during or after a capture, lists
 * and removes them. A trace that lacked an image is decoded again with it, so that the order does
 * not matter.
 */
#include "cli/cli.h"
#include "push/upload.h"
#include "terminal/plain.h"
#include "terminal/progress.h"
#include "terminal/remote.h"

#include "base/buf.h"

#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_MAX (4u << 20)

static void show_json(const struct tracelake_image *images, size_t n)
{
    putchar('[');
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",{\"sha256\":" : "{\"sha256\":", stdout);
        tl_print_json_text(images[i].sha256);
        fputs(",\"name\":", stdout);
        tl_print_json_text(images[i].name);
        fputs(",\"build_id\":", stdout);
        tl_print_json_text(images[i].build_id);
        tl_print_json_member("size", images[i].size);
        putchar('}');
    }
    puts("]");
}

static void show_table(const struct tracelake_image *images, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s %10" PRIu64 " %s%s ", images[i].sha256, images[i].size,
               images[i].build_id[0] ? "build-id:" : "-", images[i].build_id);
        tl_print_plain(stdout, images[i].name, 0);
        putchar('\n');
    }
}

static int show(struct tracelake *lake, bool json)
{
    struct tracelake_image *images;
    struct tracelake_error error;
    size_t n;
    if (tracelake_list_images(lake, &images, &n, &error) < 0)
        return tl_remote_fail(NULL, &error);
    if (json)
        show_json(images, n);
    else
        show_table(images, n);
    free(images);
    return TL_CLI_DONE;
}

static bool is_source(const char *name)
{
    static const char *const suffixes[] = {"c",   "h",   "cc",  "hh",  "cpp", "hpp", "cxx", "hxx",
                                           "c++", "h++", "inl", "inc", "ipp", "tcc", "S",   "s",
                                           "asm", "rs",  "go",  "zig", "adb", "ads", "d",   "swift",
                                           "m",   "mm",  "f",   "f90", "nim", "py",  "java"};
    const char *const dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(dot + 1, suffixes[i]) == 0)
            return true;
    return false;
}

static int put_source(struct tracelake *lake, const char *image, const char *path)
{
    struct tracelake_error error;
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    int status = TL_CLI_DONE;
    if (tl_buf_read_file(&text, path, SOURCE_MAX, &fail) < 0) {
        fprintf(stderr, "tracelake: %s\n", fail.text);
        status = TL_CLI_BAD;
    } else if (tracelake_put_source(lake, image, path, text.p ? (const char *)text.p : "", text.n,
                                    &error) < 0) {
        status = tl_remote_fail(path, &error);
    }
    tl_buf_fini(&text);
    return status;
}

/* Upload all source files below a folder. Links are not followed, hidden files are skipped. */
static int put_sources(struct tracelake *lake, const char *image, const char *dir)
{
    char *const root = realpath(dir, NULL);
    char *roots[] = {root, NULL};
    FTS *const tree = root ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
    int status = TL_CLI_DONE;
    size_t n = 0;
    if (!tree) {
        fprintf(stderr, "tracelake: %s: there is no such folder\n", dir);
        free(root);
        return TL_CLI_BAD;
    }
    for (FTSENT *entry; (entry = fts_read(tree)) && status <= TL_CLI_BAD;) {
        if (entry->fts_info == FTS_D && entry->fts_level > 0 && entry->fts_name[0] == '.')
            (void)fts_set(tree, entry, FTS_SKIP);
        if (entry->fts_info != FTS_F || !is_source(entry->fts_name))
            continue;
        const int put = put_source(lake, image, entry->fts_path);
        status = put > status ? put : status;
        n += put == TL_CLI_DONE;
    }
    fts_close(tree);
    free(root);
    fprintf(stderr, "tracelake: %s: %zu source files\n", dir, n);
    return status;
}

/* Remove images, one after another. */
static int remove_all(struct tracelake *lake, char *const *names, size_t n, bool force, bool json)
{
    int status = TL_CLI_DONE;
    for (size_t i = 0; i < n; i++) {
        struct tracelake_image image;
        struct tracelake_error error;
        const int result = tracelake_remove_image(lake, names[i], force, &image, &error);
        const int now = result < 0 ? tl_remote_fail(names[i], &error) : TL_CLI_DONE;
        status = now > status ? now : status;
        if (now == TL_CLI_DONE)
            (json ? show_json : show_table)(&image, 1);
    }
    return status;
}

static int check_words(bool removes, int n, const char *source, bool force)
{
    if (removes && n == 0)
        return tl_cli_usage("images", "rm: give the images to be removed: sha256:…, build-id:… or "
                                      "a name");
    if (removes && source)
        return tl_cli_usage("images", "--source uploads; it does not go with rm");
    return force && !removes ? tl_cli_usage("images", "--force goes with rm") : TL_ARGS_GO;
}

int tl_cmd_images(int argc, char **argv)
{
    const char *source = NULL;
    bool json = false, force = false;
    struct tl_remote remote = {0};
    const struct tl_option args[] = {
        {"source", 0, TL_ARG_TEXT, &source, "DIR",
         "also upload the source files below DIR for the timeline: C, C++, assembly, Rust and the "
         "like, up to 4 MiB each. They belong to the FILEs; without FILEs, to all images that have "
         "no sources yet"},
        {"json", 0, TL_ARG_FLAG, &json, NULL, "the list, or each removed image, as JSON"},
        {"force", 0, TL_ARG_FLAG, &force, NULL,
         "with rm: also an image that traces refer to; until it is uploaded again, decoding these "
         "has gaps ('retain --images': remove those that no trace refers to by themselves)"},
        TL_REMOTE_ARGS(remote),
        {0}};
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    const bool removes = first < argc && strcmp(argv[first], "rm") == 0;
    status = check_words(removes, argc - first - 1, source, force);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    if (removes) {
        status = remove_all(lake, argv + first + 1, (size_t)(argc - first - 1), force, json);
        tracelake_close(lake);
        return status;
    }
    status = TL_CLI_DONE;
    for (int i = first; i < argc; i++) {
        struct tracelake_error error;
        struct tracelake_image image;
        (void)tl_cli_check_image(argv[i]); /* a dump may be anything where its address is known */
        tl_progress_wait(argv[i]);
        const int result = tracelake_put_image_file(lake, argv[i], &image, &error);
        tl_progress_end();
        const int put = result < 0 ? tl_remote_fail(argv[i], &error)
                        : source   ? put_sources(lake, image.sha256, source)
                                   : TL_CLI_DONE;
        status = put > status ? put : status;
    }
    if (source && first == argc)
        status = put_sources(lake, NULL, source);
    const int shown = show(lake, json);
    tracelake_close(lake);
    return shown > status ? shown : status;
}
