/* SPDX-License-Identifier: MIT */
/*
 * `tracelake raw`: writes the raw bytes of a capture, its configuration and its images. Written
 * together they are what `push` takes, so that a capture can be handed on: with the places where
 * its rig's connection was lost, which only the reading of the bytes tells.
 */
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/setupimages.h"
#include "out/jsonwrite.h"
#include "out/outfile.h"
#include "setup/losses.h"
#include "terminal/progress.h"
#include "terminal/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct options {
    struct tl_remote remote;
    struct tl_arg_range byte;
    const char *out, *config, *images;
    bool json;
    uint64_t written;
    struct tl_buf lost; /* lines of a setup: where the connection was lost */
    unsigned n_lost;
};

/* The rig's connection was lost in front of byte `offset` of what is written. */
static int tell_loss(struct options *o, const char *trace, uint64_t offset, uint64_t before,
                     uint64_t behind)
{
    char when[TL_LOSS_WHEN];
    tl_loss_when(when, before, behind);
    tl_cli_warn(trace, "the rig's connection was lost in front of byte %" PRIu64 ": %s", offset,
                when);
    o->n_lost++;
    if (tl_buf_printf(&o->lost, "lost=%" PRIu64 " %s\n", offset, when) == TL_OK)
        return TL_CLI_DONE;
    tl_cli_warn(trace, "out of memory");
    return TL_CLI_BAD;
}

static int copy(struct options *o, struct tracelake *lake, const char *trace, FILE *file)
{
    struct tracelake_raw *raw;
    struct tracelake_error error;
    const uint64_t to = o->byte.given ? o->byte.to : TRACELAKE_END;
    if (o->byte.given && o->byte.from == to)
        return TL_CLI_DONE;
    int result = tracelake_raw_open(&raw, lake, trace, o->byte.from, to, &error);
    if (result < 0)
        return tl_remote_fail_query(trace, &error);
    uint64_t done = 0;
    for (;;) {
        const void *p;
        size_t n;
        uint64_t before, behind;
        int status = TL_CLI_DONE;
        result = tracelake_raw_next(raw, &p, &n, &error);
        if (result < 0)
            break;
        if (tracelake_raw_lost(raw, &before, &behind) && done > 0)
            status = tell_loss(o, trace, done, before, behind);
        if (status == TL_CLI_DONE && !tl_write_all(file, p, n)) {
            tl_cli_warn(o->out, "cannot write: %s", strerror(errno));
            status = TL_CLI_BAD;
        }
        if (status != TL_CLI_DONE) {
            tracelake_raw_close(raw);
            return status;
        }
        done += n;
        o->written = done;
        tl_progress_step(done, to == TRACELAKE_END ? 0 : to - o->byte.from, NULL);
    }
    tracelake_raw_close(raw);
    return result == TRACELAKE_EOF ? TL_CLI_DONE : tl_remote_fail_query(trace, &error);
}

static int write_bytes(struct options *o, struct tracelake *lake, const char *trace)
{
    struct tl_outfile out;
    int status = tl_outfile_open(&out, o->out);
    if (status != TL_ARGS_GO)
        return status;
    tl_progress_begin(trace, "B");
    status = copy(o, lake, trace, out.file);
    tl_progress_end();
    return tl_outfile_close(&out, status);
}

static int out_of_memory(const char *what)
{
    tl_cli_warn(what, "out of memory");
    return TL_CLI_BAD;
}

/* Write a stored image to a file in `dir`; returns its path, to be freed. A missing image stays
 * named by its hash. */
static int write_image(const struct options *o, struct tracelake *lake, const char *name,
                       const char *dir, char **path)
{
    struct tracelake_error error;
    struct tracelake_image image;
    struct tl_outfile out;
    void *data;
    size_t n;
    const int r = tracelake_get_image(lake, name, &data, &n, &image, &error);
    if (r == TRACELAKE_NOTFOUND) {
        tl_cli_warn(o->config, "%s", error.text);
        *path = strdup(name);
        return *path ? TL_CLI_DONE : out_of_memory(o->images);
    }
    if (r < 0)
        return tl_remote_fail_query(name, &error);
    /* Its original name, prefixed with enough of its hash to distinguish equal names. */
    const char *const slash = strrchr(image.name, '/');
    const char *const base = slash ? slash + 1 : image.name;
    const char *const digits = strchr(image.sha256, ':');
    int status = TL_ARGS_GO;
    if (asprintf(path, "%s/%.12s-%s", dir, digits ? digits + 1 : "", base) < 0) {
        *path = NULL;
        status = out_of_memory(o->images);
    }
    if (status == TL_ARGS_GO)
        status = tl_outfile_open(&out, *path);
    if (status == TL_ARGS_GO) {
        fwrite(data, 1, n, out.file); /* close reports write errors */
        status = tl_outfile_close(&out, TL_CLI_DONE);
    }
    free(data);
    return status;
}

/* The path of `dir` as seen from the configuration's folder, ended by a slash: that may be handed
 * on as a whole. Both in one tree below the root, else, and on standard output, it is absolute.
 * NULL: out of memory. */
static char *seen_from(const char *config, const char *dir)
{
    char *const copy = strdup(config);
    char *const base = copy ? realpath(dirname(copy), NULL) : NULL;
    char *out = NULL;
    size_t n = 0, common = 0, ups = 0;
    free(copy);
    while (base && base[n] && base[n] == dir[n]) {
        common = base[n] == '/' ? n : common;
        n++;
    }
    if (base && (!base[n] || base[n] == '/') && (!dir[n] || dir[n] == '/'))
        common = n;
    for (const char *p = base && common ? base + common : ""; *p; p++)
        ups += *p == '/';
    if (!base || !common || !strcmp(config, "-"))
        ups = common = 0;
    const char *const rest = dir + common + (common && dir[common] == '/');
    if (asprintf(&out, "%*s%s%s", (int)ups * 3, "", rest, *rest ? "/" : "") < 0)
        out = NULL;
    for (size_t i = 0; out && i < ups; i++)
        memcpy(out + 3 * i, "../", 3);
    free(base);
    return out;
}

/* Print the setup with the images' paths in place of their hashes: those in `dir` with `seen` in
 * its place. */
static void print_local(const char *setup, const struct tl_setup_images *images, char *const *paths,
                        const char *dir, const char *seen, FILE *file)
{
    const size_t n = strlen(dir);
    char name[TL_IMAGE_NAME];
    for (const char *end; (end = tl_setup_next_image(setup, name)); setup = end) {
        const char *const path = paths[tl_setup_images_find(images, name)];
        const bool within = !strncmp(path, dir, n) && path[n] == '/';
        fprintf(file, "%.*s%s%s", (int)((size_t)(end - setup) - strlen(name)), setup,
                within ? seen : "", within ? path + n + 1 : path);
    }
    fputs(setup, file);
}

/* Write the images as files. */
static int write_local(const struct options *o, struct tracelake *lake, const char *setup,
                       FILE *file)
{
    struct tl_setup_images images = {0};
    char **paths = NULL;
    char *dir = NULL, *seen = NULL;
    int status = TL_CLI_DONE;
    if ((mkdir(o->images, 0777) != 0 && errno != EEXIST) || !(dir = realpath(o->images, NULL))) {
        tl_cli_warn(o->images, "%s", strerror(errno));
        status = TL_CLI_BAD;
    } else if (tl_setup_images_init(&images, setup) < 0 || !(seen = seen_from(o->config, dir)) ||
               !(paths = calloc(images.n + 1, sizeof *paths))) {
        status = out_of_memory(o->images);
    }
    for (size_t i = 0; i < images.n && status == TL_CLI_DONE; i++)
        status = write_image(o, lake, images.names[i], dir, &paths[i]);
    if (status == TL_CLI_DONE)
        print_local(setup, &images, paths, dir, seen, file);
    for (size_t i = 0; paths && i < images.n; i++)
        free(paths[i]);
    free(paths);
    free(dir);
    free(seen);
    tl_setup_images_fini(&images);
    return status;
}

static int write_setup(const struct options *o, struct tracelake *lake, const char *trace)
{
    struct tracelake_error error;
    struct tl_outfile out;
    char *setup;
    if (tracelake_get_setup(lake, trace, &setup, &error) < 0)
        return tl_remote_fail_query(trace, &error);
    int status = tl_outfile_open(&out, o->config);
    if (status == TL_ARGS_GO) {
        status = TL_CLI_DONE;
        if (o->images)
            status = write_local(o, lake, setup, out.file);
        else
            fputs(setup, out.file);
        if (o->n_lost > 0)
            fprintf(out.file, "\n[trace]\n%.*s", (int)o->lost.n, (const char *)o->lost.p);
        status = tl_outfile_close(&out, status);
    }
    free(setup);
    return status;
}

/* {"trace":…,"file":…,"first":…,"count":…,"lost":…,"config":…} */
static int print_json(const struct options *o, const char *trace)
{
    struct tl_json json = tl_json_begin();
    tl_json_put_text(&json, "trace", trace);
    if (o->out) {
        tl_json_put_text(&json, "file", o->out);
        tl_json_put_u64(&json, "first", o->byte.given ? o->byte.from : 0);
        tl_json_put_u64(&json, "count", o->written);
        if (o->n_lost > 0)
            tl_json_put_u64(&json, "lost", o->n_lost);
    }
    if (o->config)
        tl_json_put_text(&json, "config", o->config);
    if (tl_json_print(&json) == TL_OK)
        return TL_CLI_DONE;
    tl_cli_warn("raw", "cannot write: %s", strerror(errno));
    return TL_CLI_BAD;
}

int tl_cmd_raw(int argc, char **argv)
{
    struct options o = {0};
    const struct tl_option args[] = {
        {"byte", 0, TL_ARG_BYTES, &o.byte, "A:B",
         "bytes A to B-1 (A: to the end, :B from the start)"},
        TL_OUTPUT_ARGS(o.out, "FILE", "output file; - is stdout, unless that is a terminal"),
        {"config", 0, TL_ARG_TEXT, &o.config, "FILE",
         "also write the trace's setup, for push --config"},
        {"images", 0, TL_ARG_TEXT, &o.images, "DIR",
         "… and the program images it names, so that decode needs no server; named relative to "
         "FILE"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "print the files written and their sizes as JSON"},
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (argc - first == 2 && strcmp(argv[first + 1], "-") == 0 && !o.out) {
        o.out = "-";
        argc--;
    }
    if (argc - first != 1 || (!o.out && !o.config))
        return tl_cli_usage("raw", "give one TRACE, and -o FILE or - for the bytes, "
                                   "--config FILE for the setup");
    if (o.images && !o.config)
        return tl_cli_usage("raw", "--images goes with --config, which names them");
    if (o.json && ((o.out && !strcmp(o.out, "-")) || (o.config && !strcmp(o.config, "-"))))
        return tl_cli_usage("raw", "--json tells of files, - is standard output itself");
    struct tracelake *lake;
    status = tl_remote_connect(&lake, &o.remote);
    if (status != TL_ARGS_GO)
        return status;
    status = TL_CLI_DONE;
    if (o.out)
        status = write_bytes(&o, lake, argv[first]);
    if (o.config && status == TL_CLI_DONE)
        status = write_setup(&o, lake, argv[first]);
    if (o.json && status == TL_CLI_DONE)
        status = print_json(&o, argv[first]);
    tl_buf_fini(&o.lost);
    tracelake_close(lake);
    return status;
}
