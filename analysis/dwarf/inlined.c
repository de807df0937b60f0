/* SPDX-License-Identifier: MIT */
/*
 * Inlined functions of a compilation unit. The entries form a tree of any depth and size: it is
 * walked with an explicit stack, forwards only, within a fixed budget; entries after that are
 * ignored.
 */
#include "base/buf.h"
#include "base/cancel.h"
#include "base/now.h"
#include "dwarf/dwarf_parts.h"

#include <dwarf.h>
#include <stdlib.h>

#define DEPTH_MAX   64
#define ENTRIES_MAX (8u << 20)
#define SPANS_MAX   (1u << 20)
#define SECONDS_MAX 10

/* Position of an entry in the file. Siblings are visited in ascending order, whatever the file
 * says. */
static bool comes_after(Dwarf_Die *next, Dwarf_Off before)
{
    return dwarf_dieoffset(next) > before;
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
        value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

static const char *call_file(struct tl_dwarf_unit *unit, Dwarf_Die *die)
{
    Dwarf_Files *files;
    size_t n;
    Dwarf_Attribute attribute;
    if (!dwarf_attr(die, DW_AT_call_file, &attribute) ||
        dwarf_getsrcfiles(&unit->die, &files, &n) != 0)
        return "";
    const uint32_t index = number_of(die, DW_AT_call_file);
    const char *const name = index < n ? dwarf_filesrc(files, index, NULL, NULL) : NULL;
    return name ? name : "";
}

static int add_site(struct tl_dwarf_unit *unit, Dwarf_Die *die, unsigned depth)
{
    Dwarf_Addr base = 0, low, high;
    const uint32_t site = (uint32_t)unit->n_sites;
    size_t added = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;) {
        if (unit->n_spans >= SPANS_MAX)
            break;
        if (low >= high)
            continue;
        if (tl_grow(&unit->spans, &unit->cap_spans, unit->n_spans + 1, sizeof *unit->spans) < 0)
            return TL_NOMEM;
        unit->spans[unit->n_spans++] =
            (struct tl_dwarf_span){.low = low, .high = high, .site = site, .depth = depth};
        added++;
    }
    if (added == 0)
        return TL_OK;
    if (tl_grow(&unit->sites, &unit->cap_sites, unit->n_sites + 1, sizeof *unit->sites) < 0)
        return TL_NOMEM;
    const char *const name = dwarf_diename(die);
    unit->sites[unit->n_sites++] = (struct tl_dwarf_site){name ? name : "", call_file(unit, die),
                                                          number_of(die, DW_AT_call_line)};
    return TL_OK;
}

static int by_low(const void *a, const void *b)
{
    const struct tl_dwarf_span *const one = a, *const two = b;
    if (one->low != two->low)
        return one->low < two->low ? -1 : 1;
    return one->depth < two->depth ? -1 : one->depth > two->depth;
}

static void sort_spans(struct tl_dwarf_unit *unit)
{
    uint64_t most = 0;
    if (unit->n_spans > 0)
        qsort(unit->spans, unit->n_spans, sizeof *unit->spans, by_low);
    for (size_t i = 0; i < unit->n_spans; i++) {
        most = unit->spans[i].high > most ? unit->spans[i].high : most;
        unit->spans[i].most = most;
    }
}

/* Types and variables contain no code. */
static bool may_hold_code(int tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_entry_point:
        return true;
    default:
        return false;
    }
}

static int walk_entries(struct tl_dwarf_unit *unit)
{
    Dwarf_Die stack[DEPTH_MAX];
    const int64_t end = tl_monotonic_ns() + SECONDS_MAX * TL_NS_PER_S;
    unsigned depth = 0;
    if (dwarf_child(&unit->die, &stack[0]) != 0)
        return TL_OK;
    for (size_t entries = 0; entries < ENTRIES_MAX; entries++) {
        Dwarf_Die *const die = &stack[depth];
        const Dwarf_Off here = dwarf_dieoffset(die);
        const int tag = dwarf_tag(die);
        int r = entries % 64 == 0 ? tl_cancel_check() : TL_OK;
        if (r >= 0 && tag == DW_TAG_inlined_subroutine)
            r = add_site(unit, die, depth);
        if (r < 0)
            return r;
        if (entries % 64 == 0 && tl_monotonic_ns() > end)
            return TL_OK;
        if (depth + 1 < DEPTH_MAX && may_hold_code(tag) &&
            dwarf_child(die, &stack[depth + 1]) == 0 && comes_after(&stack[depth + 1], here)) {
            depth++;
            continue;
        }
        for (;;) {
            const Dwarf_Off before = dwarf_dieoffset(&stack[depth]);
            Dwarf_Die next;
            if (dwarf_siblingof(&stack[depth], &next) == 0 && comes_after(&next, before)) {
                stack[depth] = next;
                break;
            }
            if (depth-- == 0)
                return TL_OK;
        }
    }
    return TL_OK;
}

int tl_dwarf_walk(struct tl_dwarf_unit *unit)
{
    if (unit->walked)
        return TL_OK;
    unit->n_sites = unit->n_spans = 0;
    const int r = unit->split ? TL_OK : walk_entries(unit);
    if (r < 0)
        return r;
    sort_spans(unit);
    unit->walked = true;
    return TL_OK;
}
