/* SPDX-License-Identifier: MIT */
/* Shared by the files of the dwarf module; private to this folder. */
#ifndef TL_DWARF_DWARF_PARTS_H
#define TL_DWARF_DWARF_PARTS_H

#include "dwarf/dwarf.h"

#include <elfutils/libdw.h>
#include <pthread.h>

/* A place where a function was inlined. */
struct tl_dwarf_site {
    const char *function, *call_file;
    uint32_t call_line;
};

/* A contiguous piece of a site. */
struct tl_dwarf_span {
    uint64_t low, high;
    uint64_t most; /* the largest `high` so far */
    uint32_t site;
    uint32_t depth; /* nesting depth of the debug information entry: inner ones are deeper */
};

struct tl_dwarf_unit {
    Dwarf_Die die;
    bool split;  /* its entries are in another file; its lines are here */
    bool walked; /* the other members are valid */
    struct tl_dwarf_site *sites;
    size_t n_sites, cap_sites;
    struct tl_dwarf_span *spans; /* by `low`, outer ones first */
    size_t n_spans, cap_spans;
};

/* Code of a compilation unit. */
struct tl_dwarf_range {
    uint64_t low, high;
    uint32_t unit;
};

struct tl_dwarf_segment {
    uint64_t address, size; /* of its bytes in the file */
    uint64_t offset;
};

struct tl_dwarf {
    pthread_mutex_t lock; /* guards libdw, and the spans of units */
    uint8_t *bytes;
    size_t n;
    Elf *elf;
    Dwarf *dwarf; /* NULL: there is no debug information */
    struct tl_dwarf_segment *segments;
    size_t n_segments, cap_segments;
    struct tl_dwarf_unit *units;
    size_t n_units, cap_units;
    struct tl_dwarf_range *ranges; /* by `low` */
    size_t n_ranges, cap_ranges;
    bool inlines; /* names of functions can be read */
    char lacks[160];
};

/* Walk through the unit's entries and record what is inlined where. To be called again after
 * TL_NOMEM and TL_CANCELLED. */
TL_MUST_USE int tl_dwarf_walk(struct tl_dwarf_unit *unit);

#endif
