/* SPDX-License-Identifier: MIT */
/*
 * Representative regions as a folder of files:
 *
 *     vectors.bb.gz     basic-block vectors, one line per interval, as SimPoint reads them
 *     regions.simpoints "INTERVAL NUMBER" per line, as SimPoint writes them
 *     regions.weights   "WEIGHT NUMBER"
 *     region-1.zstf …   each region, preceded by its warm-up instructions
 *     regions.yaml      description: trace, range, warm-up, weight, hash, version
 *
 * Errors are reported; functions return exit statuses unless stated otherwise.
 */
#ifndef TL_OUT_REGIONSET_H
#define TL_OUT_REGIONSET_H

#include "out/outfile.h"
#include "terminal/args.h"
#include "terminal/say.h"

#include <stdint.h>

struct tl_region {
    uint64_t from, to; /* instructions [from, to) */
    uint64_t warm_up;  /* warm-up instructions before them that the file also contains */
    uint64_t interval, intervals;
    double weight;
};

struct tl_regionset {
    uint64_t interval, warm_up;   /* as requested */
    uint64_t from, to, intervals; /* what was analysed */
    struct tl_region *regions;
    size_t n, cap;
    const char *folder; /* NULL: no files */
    const char *source; /* trace and stream, or file */
    bool made;          /* the folder was created here; it is removed if it stays empty */
    struct tl_outfile vectors;
    void *gzip;
};

/* Create the folder, unless it is NULL, and begin the vectors. Both texts are borrowed. TL_ARGS_GO,
 * or the exit status; call _fini in both cases. */
int tl_regionset_begin(struct tl_regionset *set, const char *folder, const char *source,
                       uint64_t interval, uint64_t warm_up);
void tl_regionset_fini(struct tl_regionset *set);

/* Append lines of vectors; discarded without a folder. TL_IO. */
TL_MUST_USE int tl_regionset_vectors(struct tl_regionset *set, const void *lines, size_t n);
/* Add a region of `n` instructions beginning at `from`. TL_NOMEM. */
TL_MUST_USE int tl_regionset_add(struct tl_regionset *set, uint64_t from, uint64_t n,
                                 uint64_t interval, uint64_t intervals, double weight);

/* Create the file `path` with a region and its warm-up instructions. Returns an exit status. */
typedef int tl_region_cut(void *context, const struct tl_region *region, const char *path);

/*
 * Write all files; regions left in the folder by an earlier selection that are not in this one are
 * removed. Returns an exit status: bad input, with a message, if there is no region.
 */
int tl_regionset_write(struct tl_regionset *set, tl_region_cut *cut, void *context);

#endif
