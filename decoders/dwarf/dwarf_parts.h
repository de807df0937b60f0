/* SPDX-License-Identifier: MIT */
/* What the files of the dwarf module share; not for others. */
#ifndef TL_DWARF_DWARF_PARTS_H
#define TL_DWARF_DWARF_PARTS_H

#include "dwarf/dwarf.h"

#include <elfutils/libdw.h>
#include <pthread.h>

/* Where a function was inlined. */
struct tl_dwarf_site {
    const char *function, *call_file;
    uint32_t call_line;
};

/* A piece of a site. */
struct tl_dwarf_span {
    uint64_t low, high;
    uint64_t most; /* the largest `high` up to here */
    uint32_t site;
    uint32_t depth; /* of nested debug information entries: inner ones are deeper */
};

struct tl_dwarf_unit {
    Dwarf_Die die;
    bool split;  /* its entries are in another file; its lines are here */
    bool walked; /* the rest is made */
    struct tl_dwarf_site *sites;
    size_t n_sites, cap_sites;
    struct tl_dwarf_span *spans; /* by `low`, outer ones first */
    size_t n_spans, cap_spans;
};

/* Code of a unit. */
struct tl_dwarf_range {
    uint64_t low, high;
    uint32_t unit;
};

struct tl_dwarf_segment {
    uint64_t address, size; /* of its bytes in the file */
    uint64_t offset;
};

struct tl_dwarf {
    pthread_mutex_t lock; /* of all that libdw does, and of units' spans */
    uint8_t *bytes;
    size_t n;
    Elf *elf;
    Dwarf *dwarf; /* NULL: there is nothing to be read */
    struct tl_dwarf_segment *segments;
    size_t n_segments, cap_segments;
    struct tl_dwarf_unit *units;
    size_t n_units, cap_units;
    struct tl_dwarf_range *ranges; /* by `low` */
    size_t n_ranges, cap_ranges;
    bool inlines; /* functions' names can be read */
    char lacks[160];
};

/* Walk through the unit's entries, once, and keep what is inlined where. TL_NOMEM, TL_CANCELLED:
 * then it is to be walked again. */
TL_MUST_USE int tl_dwarf_walk(struct tl_dwarf_unit *unit);

#endif
