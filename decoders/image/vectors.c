/* SPDX-License-Identifier: MIT */
/*
 * The vector table of an M-profile program, and what it calls its interrupts: trace has numbers, or
 * addresses of handlers, only. The table of an ELF file is data, which an image does not map, so
 * its words are copied from the file; other tables are in memory, where their length is not known.
 */
#include "image/vectors.h"

#include "base/buf.h"
#include "image/elf_load.h"
#include "image/elf_places.h"
#include "image/svd.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 4, FIRST_IRQ = 16, VECTORS_MAX = FIRST_IRQ + 480, SHARED = 1 };

/* Where a table is, and how many bytes it may have. */
struct table {
    uint64_t address, size;
};

/* The bytes that the file has for an address, up to the end of their segment. */
static struct tl_bytes bytes_at(const struct tl_elf_load *load, Elf *elf, uint64_t address)
{
    size_t n = 0;
    GElf_Phdr ph;
    if (elf_getphdrnum(elf, &n) != 0)
        return (struct tl_bytes){NULL, 0};
    for (size_t i = 0; i < n && gelf_getphdr(elf, (int)i, &ph); i++) {
        const uint64_t within = address - ph.p_vaddr;
        if (ph.p_type != PT_LOAD || within >= ph.p_filesz || ph.p_offset >= load->bytes.n ||
            within >= load->bytes.n - ph.p_offset)
            continue;
        const uint64_t there = load->bytes.n - ph.p_offset - within, left = ph.p_filesz - within;
        return (struct tl_bytes){load->bytes.p + ph.p_offset + within,
                                 (size_t)(left < there ? left : there)};
    }
    return (struct tl_bytes){NULL, 0};
}

static bool is_code(Elf *elf, uint64_t address)
{
    size_t n = 0;
    GElf_Phdr ph;
    if (elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n && gelf_getphdr(elf, (int)i, &ph); i++)
        if (ph.p_type == PT_LOAD && ph.p_flags & PF_X && address - ph.p_vaddr < ph.p_filesz)
            return true;
    return false;
}

static bool named_table(Elf *elf, struct table *out)
{
    static const char *const symbols[] = {"__Vectors",     "__isr_vector",   "g_pfnVectors",
                                          "vector_table",  "__vector_table", "_vector_table",
                                          "__VECTOR_TABLE"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (tl_elf_symbol(elf, symbols[i], &out->address)) {
            out->size = UINT64_MAX;
            return true;
        }
    return false;
}

static bool section_table(Elf *elf, struct table *out)
{
    static const char *const names[] = {".isr_vector", ".vectors", ".vector_table", ".intvecs"};
    size_t strings;
    Elf_Scn *section = NULL;
    if (elf_getshdrstrndx(elf, &strings) != 0)
        return false;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr sh;
        const char *const name =
            gelf_getshdr(section, &sh) ? elf_strptr(elf, strings, sh.sh_name) : NULL;
        for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
            if (strcmp(name, names[i]) == 0 && sh.sh_flags & SHF_ALLOC) {
                *out = (struct table){sh.sh_addr, sh.sh_size};
                return true;
            }
    }
    return false;
}

/* The lowest address, if a stack pointer and a reset handler are there. */
static bool lowest_table(const struct tl_elf_load *load, Elf *elf, struct table *out)
{
    if (!tl_elf_lowest(elf, &out->address))
        return false;
    out->size = UINT64_MAX;
    const struct tl_bytes bytes = bytes_at(load, elf, out->address);
    if (bytes.n < 16 * WORD)
        return false;
    const uint32_t stack = tl_le32(bytes.p), reset = tl_le32(bytes.p + WORD);
    return stack && stack % WORD == 0 && !is_code(elf, stack) && reset & 1 &&
           is_code(elf, reset - 1);
}

/* Words that are no handlers become 0; in bit 0 of the others is whether another one is the same.
 */
static void settle_vectors(Elf *elf, uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = i > 0 && v[i] & 1 && is_code(elf, v[i] - 1) ? v[i] - 1 : 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; v[i] && k < n; k++)
            if ((v[i] & ~(uint32_t)SHARED) == (v[k] & ~(uint32_t)SHARED)) {
                v[i] |= SHARED;
                v[k] |= SHARED;
            }
}

void tl_image_use_table(struct tl_image *image, uint64_t address)
{
    image->table = address;
    image->has_table = true;
}

/* The table that the file has at the address that is told. */
static bool told_table(const struct tl_elf_load *load, Elf *elf, struct table *out)
{
    const struct tl_image *const image = load->image;
    *out = (struct table){image->table - load->bias, UINT64_MAX};
    return image->has_table && bytes_at(load, elf, out->address).n >= 2 * WORD;
}

static int take_vectors(const struct tl_elf_load *load, Elf *elf, const struct table *table)
{
    struct tl_image *const image = load->image;
    const struct tl_bytes bytes = bytes_at(load, elf, table->address);
    size_t n = (bytes.n < table->size ? bytes.n : (size_t)table->size) / WORD;
    n = n < VECTORS_MAX ? n : VECTORS_MAX;
    uint32_t *const v = malloc((n + 1) * sizeof *v);
    if (!v || tl_image_own(image, v, (n + 1) * sizeof *v) < 0)
        return tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory for its vectors", load->name);
    for (size_t i = 0; i < n; i++)
        v[i] = tl_le32(bytes.p + i * WORD);
    settle_vectors(elf, v, n);
    image->vectors = v;
    image->n_vectors = n;
    image->vectors_bias = load->bias;
    return TL_OK;
}

int tl_elf_vectors(const struct tl_elf_load *load, Elf *elf)
{
    struct tl_image *const image = load->image;
    struct table table;
    GElf_Ehdr eh;
    if (image->table_used || load->file || !gelf_getehdr(elf, &eh) || eh.e_machine != EM_ARM)
        return TL_OK;
    const bool told = told_table(load, elf, &table);
    if (!told && (image->vectors || !(named_table(elf, &table) || section_table(elf, &table) ||
                                      lowest_table(load, elf, &table))))
        return TL_OK;
    image->table_used = told;
    return take_vectors(load, elf, &table);
}

/* ---- handlers -------------------------------------------------------------------------------- */

/* The table ends at the latest where the code of a handler begins, since most linkers put that
 * behind it. */
static int find_in_memory(const struct tl_image *image, unsigned space, uint32_t table,
                          uint32_t handler)
{
    int found = 0;
    uint32_t end = table + VECTORS_MAX * WORD;
    for (uint32_t n = 1, at = table + WORD; n < VECTORS_MAX && at < end; n++, at += WORD) {
        const struct tl_bytes entry = tl_image_at(image, space, at);
        if (entry.n < WORD)
            break;
        const uint32_t to = tl_le32(entry.p) & ~1u;
        if (to > table && to < end)
            end = to;
        if (to && to == handler)
            found = found ? TL_VECTOR_SHARED : (int)n;
    }
    return found;
}

static int find_in_file(const struct tl_image *image, uint32_t handler)
{
    for (unsigned n = 1; handler && n < image->n_vectors; n++)
        if (tl_image_handler(image, n) == handler)
            return image->vectors[n] & SHARED ? TL_VECTOR_SHARED : (int)n;
    return 0;
}

int tl_image_vector(const struct tl_image *image, unsigned space, uint32_t table, uint32_t handler)
{
    if (!image)
        return 0;
    const int found = find_in_memory(image, space, table, handler);
    return found ? found : find_in_file(image, handler);
}

/* ---- names ----------------------------------------------------------------------------------- */

uint64_t tl_image_handler(const struct tl_image *image, unsigned number)
{
    const uint32_t word = image && number < image->n_vectors ? image->vectors[number] : 0;
    return word ? (word & ~(uint32_t)SHARED) + image->vectors_bias : 0;
}

/* Length of a handler's name without the ending that says that it is one; 0: it has none. */
static size_t without_ending(const char *name)
{
    static const char *const endings[] = {"_IRQHandler", "_IRQ_Handler", "_IntHandler",  "_Handler",
                                          "_handler",    "_ISR",         "_irq_handler", "_isr"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t end = strlen(endings[i]);
        if (n > end && strcmp(name + n - end, endings[i]) == 0)
            return n - end;
    }
    return 0;
}

/* Of several names for one handler, the first that says that it is one. */
static const char *handler_name(const struct tl_image *image, size_t symbol)
{
    const struct tl_symbols *const symbols = &image->symbols;
    const char *const name = symbols->v[symbol].name;
    for (size_t i = 0; i < symbols->n_aliases && !without_ending(name); i++)
        if (symbols->aliases[i].symbol == symbol && without_ending(symbols->aliases[i].name))
            return symbols->aliases[i].name;
    return name;
}

/* By the program's symbol for the handler. */
static bool name_by_symbol(const struct tl_image *image, unsigned number, char *out, size_t size)
{
    const uint64_t handler = tl_image_handler(image, number);
    const int64_t symbol = handler ? tl_image_symbol_index(image, handler) : -1;
    if (symbol < 0 || image->symbols.v[symbol].address != handler ||
        image->vectors[number] & SHARED)
        return false;
    const char *const name = handler_name(image, (size_t)symbol);
    size_t n = without_ending(name);
    n = n ? n : strlen(name);
    if (n >= size || strncmp(name, "Default", n) == 0 || strncmp(name, "default", n) == 0)
        return false;
    memcpy(out, name, n);
    out[n] = '\0';
    return strchr(out, ' ') == NULL;
}

bool tl_image_interrupt_name(const struct tl_image *image, unsigned number, char *out, size_t size)
{
    const char *const described =
        number >= FIRST_IRQ ? tl_image_irq(image, number - FIRST_IRQ) : NULL;
    if (name_by_symbol(image, number, out, size))
        return true;
    if (!described || strlen(described) >= size)
        return false;
    strcpy(out, described);
    return true;
}
