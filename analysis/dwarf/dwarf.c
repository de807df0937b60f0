/* SPDX-License-Identifier: MIT */
/*
 * Opens debug information and looks up addresses in it. Section sizes are checked before libdw gets
 * the file: it decompresses all sections at once, and needs about 50 bytes for each byte of a line
 * table.
 */
#include "dwarf/dwarf.h"

#include "base/buf.h"
#include "base/search.h"
#include "dwarf/dwarf_parts.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX    (32u << 20)  /* maximum bytes of line tables */
#define UNPACKED_MAX (512u << 20) /* maximum bytes of all compressed sections together */
#define UNITS_MAX    (1u << 20)
#define RANGES_MAX   (4u << 20)
#define LOOK_MAX     4096 /* maximum spans examined for one address */

static int lack(struct tl_dwarf *dwarf, const char *why)
{
    if (!dwarf->lacks[0])
        snprintf(dwarf->lacks, sizeof dwarf->lacks, "%s", why);
    return TL_NOTFOUND;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int take_segments(struct tl_dwarf *dwarf)
{
    size_t n = 0;
    if (elf_getphdrnum(dwarf->elf, &n) != 0)
        return TL_OK;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(dwarf->elf, (int)i, &ph))
            return TL_OK;
        if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || ph.p_filesz == 0)
            continue;
        if (tl_grow(&dwarf->segments, &dwarf->cap_segments, dwarf->n_segments + 1,
                    sizeof *dwarf->segments) < 0)
            return TL_NOMEM;
        dwarf->segments[dwarf->n_segments++] =
            (struct tl_dwarf_segment){ph.p_vaddr, ph.p_filesz, ph.p_offset};
    }
    return TL_OK;
}

/* Size of a section after decompression in bytes; 0: there is none. */
static uint64_t unpacked_size(const struct tl_dwarf *dwarf, Elf_Scn *section, const GElf_Shdr *sh,
                              const char *name)
{
    GElf_Chdr compressed;
    if (sh->sh_type == SHT_NOBITS || sh->sh_offset > dwarf->n ||
        sh->sh_size > dwarf->n - sh->sh_offset)
        return 0;
    if (sh->sh_flags & SHF_COMPRESSED)
        return gelf_getchdr(section, &compressed) ? compressed.ch_size : 0;
    if (strncmp(name, ".zdebug", 7) != 0)
        return sh->sh_size;
    const uint8_t *const p = dwarf->bytes + sh->sh_offset;
    if (sh->sh_size < 12 || memcmp(p, "ZLIB", 4) != 0)
        return 0;
    return (uint64_t)tl_be16(p + 4) << 48 | (uint64_t)tl_be16(p + 6) << 32 |
           (uint64_t)tl_be16(p + 8) << 16 | tl_be16(p + 10);
}

/* May libdw read the file? If not, returns TL_NOTFOUND and the reason. */
static int check_sections(struct tl_dwarf *dwarf)
{
    size_t names = 0;
    uint64_t unpacked = 0;
    bool info = false, lines = false;
    Elf_Scn *section = NULL;
    if (elf_getshdrstrndx(dwarf->elf, &names) != 0)
        return lack(dwarf, "no debug information: it has no sections");
    while ((section = elf_nextscn(dwarf->elf, section))) {
        GElf_Shdr sh;
        const char *const name =
            gelf_getshdr(section, &sh) ? elf_strptr(dwarf->elf, names, sh.sh_name) : NULL;
        if (!name || (strncmp(name, ".debug_", 7) != 0 && strncmp(name, ".zdebug_", 8) != 0)) {
            if (name && strcmp(name, ".gnu_debugaltlink") == 0)
                dwarf->inlines = false;
            continue;
        }
        const char *const what = strchr(name, '_') + 1;
        const uint64_t size = unpacked_size(dwarf, section, &sh, name);
        if (size != sh.sh_size)
            unpacked += size < UNPACKED_MAX ? size : UNPACKED_MAX;
        if (unpacked >= UNPACKED_MAX)
            return lack(dwarf, "debug information is not read: it unpacks to more than 512 MiB");
        if (strcmp(what, "line") == 0 && size > LINES_MAX)
            return lack(dwarf, "debug information is not read: line tables of more than 32 MiB");
        info |= strcmp(what, "info") == 0 && size > 0;
        lines |= strcmp(what, "line") == 0 && size > 0;
    }
    if (info && lines)
        return TL_OK;
    return lack(dwarf, "no debug information: built without -g, or stripped");
}

/* ---- units ----------------------------------------------------------------------------------- */

static int add_ranges(struct tl_dwarf *dwarf, struct tl_dwarf_unit *unit)
{
    Dwarf_Addr base = 0, low, high;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&unit->die, at, &base, &low, &high)) > 0;) {
        if (dwarf->n_ranges >= RANGES_MAX)
            break;
        if (low >= high)
            continue;
        if (tl_grow(&dwarf->ranges, &dwarf->cap_ranges, dwarf->n_ranges + 1,
                    sizeof *dwarf->ranges) < 0)
            return TL_NOMEM;
        dwarf->ranges[dwarf->n_ranges++] =
            (struct tl_dwarf_range){low, high, (uint32_t)(unit - dwarf->units)};
    }
    return TL_OK;
}

static int by_low(const void *a, const void *b)
{
    const struct tl_dwarf_range *const one = a, *const two = b;
    if (one->low != two->low)
        return one->low < two->low ? -1 : 1;
    return one->unit < two->unit ? -1 : one->unit > two->unit;
}

static int take_units(struct tl_dwarf *dwarf)
{
    Dwarf_CU *cu = NULL, *next;
    uint8_t type = 0;
    Dwarf_Die die;
    int r = TL_OK;
    bool split = false;
    /* The split unit's entry is not requested, so libdw does not search for its file. */
    while (r >= 0 && dwarf->n_units < UNITS_MAX &&
           dwarf_get_units(dwarf->dwarf, cu, &next, NULL, &type, &die, NULL) == 0) {
        cu = next;
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        if (tl_grow(&dwarf->units, &dwarf->cap_units, dwarf->n_units + 1, sizeof *dwarf->units) < 0)
            return TL_NOMEM;
        struct tl_dwarf_unit *const unit = &dwarf->units[dwarf->n_units++];
        *unit = (struct tl_dwarf_unit){.die = die, .split = type == DW_UT_skeleton};
        split |= unit->split;
        r = add_ranges(dwarf, unit);
    }
    if (r >= 0 && dwarf->n_ranges > 0)
        qsort(dwarf->ranges, dwarf->n_ranges, sizeof *dwarf->ranges, by_low);
    if (r >= 0 && dwarf->n_ranges == 0)
        (void)lack(dwarf, "debug information without code");
    else if (split)
        (void)lack(dwarf, "inlined functions: split off into .dwo files, which are not looked for");
    else if (!dwarf->inlines)
        (void)lack(dwarf, "inlined functions: moved to a common file by dwz");
    return r;
}

/* ---- life ------------------------------------------------------------------------------------ */

void tl_dwarf_close(struct tl_dwarf *dwarf)
{
    if (!dwarf)
        return;
    for (size_t i = 0; i < dwarf->n_units; i++) {
        free(dwarf->units[i].sites);
        free(dwarf->units[i].spans);
    }
    free(dwarf->units);
    free(dwarf->ranges);
    free(dwarf->segments);
    dwarf_end(dwarf->dwarf);
    elf_end(dwarf->elf);
    free(dwarf->bytes);
    pthread_mutex_destroy(&dwarf->lock);
    free(dwarf);
}

static int read_information(struct tl_dwarf *dwarf)
{
    int r = take_segments(dwarf);
    if (r >= 0)
        r = check_sections(dwarf);
    if (r >= 0 && !(dwarf->dwarf = dwarf_begin_elf(dwarf->elf, DWARF_C_READ, NULL)))
        r = lack(dwarf, "debug information that cannot be read: it is damaged");
    if (r < 0)
        return r == TL_NOTFOUND ? TL_OK : r;
    /* Prevent libdw from searching for a file whose texts could replace those of this one. */
    dwarf_setalt(dwarf->dwarf, dwarf->dwarf);
    return take_units(dwarf);
}

int tl_dwarf_open(struct tl_dwarf **out, struct tl_bytes elf, struct tl_fail *fail)
{
    if (elf.n < EI_NIDENT || memcmp(elf.p, ELFMAG, SELFMAG) != 0)
        return tl_fail_set(fail, TL_BAD, "is no ELF file");
    struct tl_dwarf *const dwarf = calloc(1, sizeof *dwarf);
    if (!dwarf)
        return tl_fail_set(fail, TL_NOMEM, "no memory for debug information");
    pthread_mutex_init(&dwarf->lock, NULL);
    dwarf->inlines = true;
    dwarf->n = elf.n;
    dwarf->bytes = malloc(elf.n);
    int r = dwarf->bytes && elf_version(EV_CURRENT) != EV_NONE ? TL_OK : TL_NOMEM;
    if (r >= 0) {
        memcpy(dwarf->bytes, elf.p, elf.n);
        dwarf->elf = elf_memory((char *)dwarf->bytes, elf.n);
        r = dwarf->elf && elf_kind(dwarf->elf) == ELF_K_ELF ? read_information(dwarf) : TL_BAD;
    }
    if (r < 0) {
        tl_dwarf_close(dwarf);
        return r == TL_NOMEM ? tl_fail_set(fail, TL_NOMEM, "no memory for debug information")
                             : tl_fail_set(fail, TL_BAD, "is no ELF file");
    }
    *out = dwarf;
    return TL_OK;
}

const char *tl_dwarf_lacks(const struct tl_dwarf *dwarf)
{
    return dwarf->lacks;
}

size_t tl_dwarf_size(const struct tl_dwarf *dwarf)
{
    return 2 * dwarf->n + dwarf->n_ranges * sizeof *dwarf->ranges +
           dwarf->n_units * sizeof *dwarf->units;
}

/* ---- addresses ------------------------------------------------------------------------------- */

bool tl_dwarf_covers(const struct tl_dwarf *dwarf, uint64_t address)
{
    for (size_t i = 0; i < dwarf->n_segments; i++)
        if (address - dwarf->segments[i].address < dwarf->segments[i].size)
            return true;
    return false;
}

int tl_dwarf_address(const struct tl_dwarf *dwarf, uint64_t offset, uint64_t *address)
{
    for (size_t i = 0; i < dwarf->n_segments; i++) {
        const struct tl_dwarf_segment *const segment = &dwarf->segments[i];
        if (offset - segment->offset >= segment->size)
            continue;
        *address = segment->address + (offset - segment->offset);
        return TL_OK;
    }
    return TL_NOTFOUND;
}

/*
 * The unit whose code contains the address. Code that the linker has discarded may be recorded at
 * the lowest addresses, so of several ranges that contain the address the one that begins last
 * counts.
 */
static struct tl_dwarf_unit *unit_at(struct tl_dwarf *dwarf, uint64_t address)
{
    size_t lo = tl_count_upto(TL_KEYS(dwarf->ranges, low), dwarf->n_ranges, address);
    for (size_t looked = 0; lo > 0 && looked < 16; looked++)
        if (address < dwarf->ranges[--lo].high)
            return &dwarf->units[dwarf->ranges[lo].unit];
    return NULL;
}

static void find_line(struct tl_dwarf_unit *unit, uint64_t address, struct tl_dwarf_place *out)
{
    Dwarf_Line *const row = dwarf_getsrc_die(&unit->die, address);
    int line = 0, column = 0;
    const char *const file = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
    if (!file)
        return;
    out->file = file;
    if (dwarf_lineno(row, &line) == 0 && line > 0)
        out->line = (uint32_t)line;
    if (dwarf_linecol(row, &column) == 0 && column > 0)
        out->column = (uint32_t)column;
}

/* Spans are examined from the innermost outwards: the one that contains the address and begins
 * last. */
static void find_inlined(const struct tl_dwarf_unit *unit, uint64_t address,
                         struct tl_dwarf_place *out)
{
    size_t lo = tl_count_upto(TL_KEYS(unit->spans, low), unit->n_spans, address);
    size_t n = 0;
    const size_t min = lo > LOOK_MAX ? lo - LOOK_MAX : 0;
    while (lo-- > min && unit->spans[lo].most > address && n < TL_DWARF_INLINED) {
        const struct tl_dwarf_span *const span = &unit->spans[lo];
        if (address >= span->high)
            continue;
        const struct tl_dwarf_site *const site = &unit->sites[span->site];
        out->inlined[n++] = (struct tl_dwarf_inlined){site->function, site->call_file,
                                                      site->call_line, span->low, span->high};
    }
    out->n_inlined = n;
    for (size_t i = 0; i < n / 2; i++) {
        const struct tl_dwarf_inlined swap = out->inlined[i];
        out->inlined[i] = out->inlined[n - 1 - i];
        out->inlined[n - 1 - i] = swap;
    }
}

int tl_dwarf_at(struct tl_dwarf *dwarf, uint64_t address, struct tl_dwarf_place *out)
{
    *out = (struct tl_dwarf_place){.file = ""};
    if (!dwarf->dwarf)
        return TL_NOTFOUND;
    pthread_mutex_lock(&dwarf->lock);
    struct tl_dwarf_unit *const unit = unit_at(dwarf, address);
    int r = unit ? TL_OK : TL_NOTFOUND;
    if (r >= 0)
        find_line(unit, address, out);
    if (r >= 0 && dwarf->inlines)
        r = tl_dwarf_walk(unit);
    if (r >= 0 && dwarf->inlines)
        find_inlined(unit, address, out);
    pthread_mutex_unlock(&dwarf->lock);
    return r < 0 ? r : out->file[0] || out->n_inlined ? TL_OK : TL_NOTFOUND;
}
