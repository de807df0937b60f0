/* SPDX-License-Identifier: MIT */
/*
 * Writes the files of a set of regions, and a description with their weights and hashes. A
 * simulator's result depends on weights and files that belong together, which the hashes make
 * checkable.
 */
#include "out/regionset.h"

#include "terminal/filehash.h"

#include "base/buf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Path of a file in the folder. */
static const char *path_of(const struct tl_regionset *set, const char *name, char out[static 4096])
{
    snprintf(out, 4096, "%s/%s", set->folder, name);
    return out;
}

/* Path of a region's file; the first has number 0. */
static const char *region_path(const struct tl_regionset *set, size_t i, char out[static 4096])
{
    char name[64];
    snprintf(name, sizeof name, "region-%zu.zstf", i + 1);
    return path_of(set, name, out);
}

int tl_regionset_begin(struct tl_regionset *set, const char *folder, const char *source,
                       uint64_t interval, uint64_t warm_up)
{
    char path[4096];
    *set = (struct tl_regionset){
        .interval = interval, .warm_up = warm_up, .folder = folder, .source = source};
    if (!folder)
        return TL_ARGS_GO;
    if (strlen(folder) > sizeof path - 64)
        return tl_cli_usage("simpoints", "-o: the name is too long");
    set->made = mkdir(folder, 0777) == 0;
    if (!set->made && errno != EEXIST) {
        tl_cli_warn(folder, "cannot make the folder: %s", strerror(errno));
        return TL_CLI_BAD;
    }
    const int status = tl_outfile_open(&set->vectors, path_of(set, "vectors.bb.gz", path));
    if (status != TL_ARGS_GO)
        return status;
    const int fd = dup(fileno(set->vectors.file));
    set->gzip = fd >= 0 ? gzdopen(fd, "wb") : NULL;
    if (!set->gzip) {
        tl_cli_warn(path, "out of memory");
        return TL_CLI_BAD;
    }
    return TL_ARGS_GO;
}

void tl_regionset_fini(struct tl_regionset *set)
{
    if (set->gzip)
        gzclose(set->gzip);
    tl_outfile_drop(&set->vectors);
    if (set->made)
        (void)rmdir(set->folder); /* fails unless it is empty */
    free(set->regions);
}

int tl_regionset_vectors(struct tl_regionset *set, const void *lines, size_t n)
{
    return set->gzip && n && gzwrite(set->gzip, lines, (unsigned)n) != (int)n ? TL_IO : TL_OK;
}

int tl_regionset_add(struct tl_regionset *set, uint64_t from, uint64_t n, uint64_t interval,
                     uint64_t intervals, double weight)
{
    const int r = tl_grow(&set->regions, &set->cap, set->n + 1, sizeof *set->regions);
    if (r >= 0)
        set->regions[set->n++] =
            (struct tl_region){.from = from,
                               .to = from + n,
                               .warm_up = set->warm_up < from ? set->warm_up : from,
                               .interval = interval,
                               .intervals = intervals,
                               .weight = weight};
    return r;
}

/* Print a text in double quotes for YAML. */
static void print_quoted(FILE *file, const char *text)
{
    putc('"', file);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < ' ' || *p == '"' || *p == '\\')
            fprintf(file, "\\x%02x", *p);
        else
            putc(*p, file);
    }
    putc('"', file);
}

static int write_yaml(const struct tl_regionset *set, FILE *file)
{
    fprintf(file, "tool: tracelake %s\nsource: ", TL_VERSION);
    print_quoted(file, set->source);
    fprintf(file,
            "\nfrom: %" PRIu64 "\nto: %" PRIu64 "\ninterval: %" PRIu64 "\nintervals: %" PRIu64
            "\nregions:\n",
            set->from, set->to, set->interval, set->intervals);
    for (size_t i = 0; i < set->n; i++) {
        const struct tl_region *const region = &set->regions[i];
        char path[4096], hash[TL_FILE_HASH];
        if (tl_file_hash(region_path(set, i, path), hash) < 0) {
            tl_cli_warn(path, "cannot read: %s", strerror(errno));
            return TL_CLI_BAD;
        }
        fprintf(file,
                "  - file: %s\n    from: %" PRIu64 "\n    to: %" PRIu64 "\n    warm_up: %" PRIu64
                "\n    interval: %" PRIu64 "\n    intervals: %" PRIu64
                "\n    weight: %.9f\n    sha256: %s\n",
                strrchr(path, '/') + 1, region->from, region->to, region->warm_up, region->interval,
                region->intervals, region->weight, strchr(hash, ':') + 1);
    }
    return TL_CLI_DONE;
}

static int write_simpoints(const struct tl_regionset *set, FILE *file)
{
    for (size_t i = 0; i < set->n; i++)
        fprintf(file, "%" PRIu64 " %zu\n", set->regions[i].interval, i);
    return TL_CLI_DONE;
}

static int write_weights(const struct tl_regionset *set, FILE *file)
{
    for (size_t i = 0; i < set->n; i++)
        fprintf(file, "%.9f %zu\n", set->regions[i].weight, i);
    return TL_CLI_DONE;
}

static int write_text(const struct tl_regionset *set, const char *name,
                      int (*text)(const struct tl_regionset *set, FILE *file))
{
    struct tl_outfile out;
    char path[4096];
    const int status = tl_outfile_open(&out, path_of(set, name, path));
    return status == TL_ARGS_GO ? tl_outfile_close(&out, text(set, out.file)) : status;
}

int tl_regionset_write(struct tl_regionset *set, tl_region_cut *cut, void *context)
{
    char path[4096];
    if (set->n == 0) {
        tl_cli_warn(set->source, "no instructions: there is no region of them");
        return TL_CLI_BAD;
    }
    if (!set->folder)
        return TL_CLI_DONE;
    const bool packed = gzclose(set->gzip) == Z_OK;
    set->gzip = NULL;
    int status = tl_outfile_close(&set->vectors, packed ? TL_CLI_DONE : TL_CLI_BAD);
    if (!packed)
        tl_cli_warn(set->folder, "vectors.bb.gz: cannot write: %s", strerror(errno));
    for (size_t i = 0; i < set->n && status == TL_CLI_DONE; i++)
        status = cut(context, &set->regions[i], region_path(set, i, path));
    for (size_t i = set->n; status == TL_CLI_DONE && unlink(region_path(set, i, path)) == 0; i++)
        ;
    if (status == TL_CLI_DONE)
        status = write_text(set, "regions.simpoints", write_simpoints);
    if (status == TL_CLI_DONE)
        status = write_text(set, "regions.weights", write_weights);
    if (status == TL_CLI_DONE)
        status = write_text(set, "regions.yaml", write_yaml);
    return status;
}
