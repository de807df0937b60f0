/* SPDX-License-Identifier: MIT */
/*
 * Builds a small ELF file: one executable segment and function symbols, of either width and byte
 * order, for any machine. Header only.
 */
#ifndef TL_SIM_SMALL_ELF_H
#define TL_SIM_SMALL_ELF_H

#include "base/buf.h"
#include "base/bytes.h"

#include <elf.h>

struct tl_sim_elf_symbol {
    const char *name;
    uint64_t address;
    uint64_t size;
    unsigned type; /* STT_OBJECT, …; 0: a function */
};

struct tl_sim_elf {
    unsigned machine; /* EM_RISCV, EM_OPENRISC, … */
    bool wide;        /* ELFCLASS64 */
    bool big_endian;
    uint64_t address; /* of `code` */
    struct tl_bytes code;
    const struct tl_sim_elf_symbol *symbols;
    size_t n_symbols;
    struct tl_bytes attributes; /* of RISC-V; none if empty */
};

/* Append `n` bytes of `value`. */
static inline int tl_sim_elf_put(struct tl_buf *out, const struct tl_sim_elf *elf, uint64_t value,
                                 unsigned n)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < n; i++)
        bytes[elf->big_endian ? n - 1 - i : i] = (uint8_t)(value >> 8 * i);
    return tl_buf_add(out, bytes, n);
}

/* A word as wide as an address. */
static inline int tl_sim_elf_word(struct tl_buf *out, const struct tl_sim_elf *elf, uint64_t value)
{
    return tl_sim_elf_put(out, elf, value, elf->wide ? 8 : 4);
}

static inline int tl_sim_elf_section(struct tl_buf *out, const struct tl_sim_elf *elf,
                                     const uint64_t fields[static 10])
{
    int rc = TL_OK;
    for (unsigned i = 0; i < 10 && rc == TL_OK; i++) {
        const bool half = i == 0 || i == 1 || i == 6 || i == 7; /* always 32 bits */
        rc = half ? tl_sim_elf_put(out, elf, fields[i], 4) : tl_sim_elf_word(out, elf, fields[i]);
    }
    return rc;
}

static inline int tl_sim_elf_add_symbol(struct tl_buf *out, const struct tl_sim_elf *elf,
                                        uint32_t name, const struct tl_sim_elf_symbol *s)
{
    const unsigned type = s && s->type ? s->type : STT_FUNC;
    const unsigned info = s ? STB_GLOBAL << 4 | type : 0, section = s ? 1 : 0;
    const uint64_t value = s ? s->address : 0, size = s ? s->size : 0;
    int rc = tl_sim_elf_put(out, elf, name, 4);
    if (rc == TL_OK && !elf->wide)
        rc = tl_sim_elf_put(out, elf, value, 4);
    if (rc == TL_OK && !elf->wide)
        rc = tl_sim_elf_put(out, elf, size, 4);
    if (rc == TL_OK)
        rc = tl_sim_elf_put(out, elf, info, 1);
    if (rc == TL_OK)
        rc = tl_sim_elf_put(out, elf, 0, 1);
    if (rc == TL_OK)
        rc = tl_sim_elf_put(out, elf, section, 2);
    if (rc == TL_OK && elf->wide)
        rc = tl_sim_elf_put(out, elf, value, 8);
    if (rc == TL_OK && elf->wide)
        rc = tl_sim_elf_put(out, elf, size, 8);
    return rc;
}

/* ELF header; `sections`: offset of the section headers. */
static inline int tl_sim_elf_header(struct tl_buf *out, const struct tl_sim_elf *elf,
                                    uint64_t sections)
{
    const uint8_t ident[EI_NIDENT] = {0x7f,
                                      'E',
                                      'L',
                                      'F',
                                      elf->wide ? ELFCLASS64 : ELFCLASS32,
                                      elf->big_endian ? ELFDATA2MSB : ELFDATA2LSB,
                                      EV_CURRENT};
    const unsigned header = elf->wide ? 64 : 52, program = elf->wide ? 56 : 32;
    const uint16_t halves[] = {(uint16_t)header,    (uint16_t)program,         1,
                               elf->wide ? 64 : 40, elf->attributes.n ? 5 : 4, 0};
    int rc = tl_buf_add(out, ident, sizeof ident);
    if (rc == TL_OK)
        rc = tl_sim_elf_put(out, elf, ET_EXEC, 2);
    if (rc == TL_OK)
        rc = tl_sim_elf_put(out, elf, elf->machine, 2);
    if (rc == TL_OK)
        rc = tl_sim_elf_put(out, elf, EV_CURRENT, 4);
    if (rc == TL_OK)
        rc = tl_sim_elf_word(out, elf, elf->address);
    if (rc == TL_OK)
        rc = tl_sim_elf_word(out, elf, header);
    if (rc == TL_OK)
        rc = tl_sim_elf_word(out, elf, sections);
    if (rc == TL_OK)
        rc = tl_sim_elf_put(out, elf, 0, 4);
    for (size_t i = 0; i < sizeof halves / sizeof halves[0] && rc == TL_OK; i++)
        rc = tl_sim_elf_put(out, elf, halves[i], 2);
    return rc;
}

static inline int tl_sim_elf_program(struct tl_buf *out, const struct tl_sim_elf *elf,
                                     uint64_t offset)
{
    int rc = tl_sim_elf_put(out, elf, PT_LOAD, 4);
    if (rc == TL_OK && elf->wide)
        rc = tl_sim_elf_put(out, elf, PF_R | PF_X, 4);
    const uint64_t words[] = {offset, elf->address, elf->address, elf->code.n, elf->code.n};
    for (size_t i = 0; i < 5 && rc == TL_OK; i++)
        rc = tl_sim_elf_word(out, elf, words[i]);
    if (rc == TL_OK && !elf->wide)
        rc = tl_sim_elf_put(out, elf, PF_R | PF_X, 4);
    return rc == TL_OK ? tl_sim_elf_word(out, elf, 4) : rc;
}

/* Append the file to `out`, which must be empty. TL_NOMEM. */
static inline int tl_sim_elf_make(const struct tl_sim_elf *elf, struct tl_buf *out)
{
    const uint64_t code = elf->wide ? 64 + 56 : 52 + 32;
    const uint64_t symbols = code + elf->code.n, entry = elf->wide ? 24 : 16;
    const uint64_t strings = symbols + (1 + elf->n_symbols) * entry;
    uint64_t length = 1;
    for (size_t i = 0; i < elf->n_symbols; i++)
        length += strlen(elf->symbols[i].name) + 1;
    const uint64_t attributes = strings + length;
    const uint64_t sections[5][10] = {
        {0},
        {0, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, elf->address, code, elf->code.n, 0, 0, 4, 0},
        {0, SHT_SYMTAB, 0, 0, symbols, strings - symbols, 3, 1, 8, entry},
        {0, SHT_STRTAB, 0, 0, strings, length, 0, 0, 1, 0},
        {0, 0x70000003 /* SHT_RISCV_ATTRIBUTES */, 0, 0, attributes, elf->attributes.n, 0, 0, 1, 0},
    };
    int rc = tl_sim_elf_header(out, elf, attributes + elf->attributes.n);
    if (rc == TL_OK)
        rc = tl_sim_elf_program(out, elf, code);
    if (rc == TL_OK)
        rc = tl_buf_add(out, elf->code.p, elf->code.n);
    if (rc == TL_OK)
        rc = tl_sim_elf_add_symbol(out, elf, 0, NULL);
    uint32_t name = 1;
    for (size_t i = 0; i < elf->n_symbols && rc == TL_OK; i++) {
        rc = tl_sim_elf_add_symbol(out, elf, name, &elf->symbols[i]);
        name += (uint32_t)strlen(elf->symbols[i].name) + 1;
    }
    if (rc == TL_OK)
        rc = tl_buf_add(out, "", 1);
    for (size_t i = 0; i < elf->n_symbols && rc == TL_OK; i++)
        rc = tl_buf_add(out, elf->symbols[i].name, strlen(elf->symbols[i].name) + 1);
    if (rc == TL_OK)
        rc = tl_buf_add(out, elf->attributes.p, elf->attributes.n);
    for (size_t i = 0; i < (elf->attributes.n ? 5 : 4) && rc == TL_OK; i++)
        rc = tl_sim_elf_section(out, elf, sections[i]);
    return rc;
}

#endif
