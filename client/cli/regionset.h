/* SPDX-License-Identifier: MIT */
/*
 * Representative regions as a folder of files:
 *
 *     vectors.bb.gz     basic-block vectors, a line an interval, as SimPoint reads them
 *     regions.simpoints "INTERVAL NUMBER" a line, as SimPoint writes them
 *     regions.weights   "WEIGHT NUMBER"
 *     region-1.zstf …   each region with the instructions that warm up in front of it
 *     regions.yaml      what is where: trace, range, warm-up, weight, hash, version
 *
 * What is wrong is said; functions return exit statuses unless they say otherwise.
 */
#ifndef TL_CLI_REGIONSET_H
#define TL_CLI_REGIONSET_H

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/outfile.h"

#include <stdint.h>

struct tl_region {
    uint64_t from, to; /* instructions [from, to) */
    uint64_t warm_up;  /* instructions in front of them that the file has, too */
    uint64_t interval, intervals;
    double weight;
};

struct tl_regionset {
    uint64_t interval, warm_up;   /* as asked for */
    uint64_t from, to, intervals; /* what was looked at */
    struct tl_region *regions;
    size_t n, cap;
    const char *folder; /* NULL: no files */
    const char *source; /* trace and stream, or file */
    bool made;          /* the folder was not there before; it goes if nothing gets into it */
    struct tl_outfile vectors;
    void *gzip;
};

/* Make the folder, unless it is NULL, and begin the vectors. Both texts are borrowed. TL_ARGS_GO,
 * or the status; _fini also then. */
int tl_regionset_begin(struct tl_regionset *set, const char *folder, const char *source,
                       uint64_t interval, uint64_t warm_up);
void tl_regionset_fini(struct tl_regionset *set);

/* Lines of vectors; dropped where there is no folder. TL_IO. */
TL_MUST_USE int tl_regionset_vectors(struct tl_regionset *set, const void *lines, size_t n);
/* A region: `n` instructions from `from` on. TL_NOMEM. */
TL_MUST_USE int tl_regionset_add(struct tl_regionset *set, uint64_t from, uint64_t n,
                                 uint64_t interval, uint64_t intervals, double weight);

/* Makes the file `path` of a region and what warms up in front of it. Returns an exit status. */
typedef int tl_region_cut(void *context, const struct tl_region *region, const char *path);

/*
 * Write all files; regions that the folder has of an earlier choice, and that are not of this one,
 * go. Returns an exit status: that the input was bad, with a word on it, where there is no region.
 */
int tl_regionset_write(struct tl_regionset *set, tl_region_cut *cut, void *context);

#endif
