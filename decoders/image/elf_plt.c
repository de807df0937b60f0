/* SPDX-License-Identifier: MIT */
/*
 * Stubs of the procedure linkage table. Each loads an address from a slot of the global offset
 * table and jumps to it, so it is named by the relocation of that slot. Stubs are recognised by
 * their instructions rather than by their order, which differs between linkers, tables (.plt,
 * .plt.sec, .plt.got) and options (branch protection).
 *
 * The file may be malicious: the names are limited relative to the file's size.
 */
#include "base/buf.h"
#include "base/search.h"
#include "image/elf_load.h"

#include <gelf.h>
#include <stdlib.h>

#define NAMES_PER_BYTE 4    /* limit of bytes of names per file byte */
#define NAME_MAX_BYTES 4096 /* longer names are none */

/* A slot with the symbol of its relocation. */
struct slot {
    uint64_t address;
    const char *name; /* in the file's bytes */
    uint64_t order;   /* index in its table */
};

struct slots {
    struct slot *v;
    size_t n, cap;
};

struct stub {
    uint64_t address, size;
    const struct slot *slot;
    size_t section;
};

struct stubs {
    const struct tl_elf_load *load;
    Elf *elf;
    unsigned machine;
    bool is_64;
    uint64_t got;      /* what position-independent 32-bit x86 code addresses slots relative to */
    struct slots all;  /* sorted by address */
    struct slots lazy; /* those of .plt, by order: some of its stubs have an index only */
    struct stub *v;
    size_t n, cap;
};

/* ---- slots ----------------------------------------------------------------------------------- */

static int by_slot(const void *a, const void *b)
{
    const struct slot *const x = a, *const y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static const struct slot *slot_at(const struct stubs *s, uint64_t address)
{
    const struct slots *const all = &s->all;
    const size_t i = tl_count_below(TL_KEYS(all->v, address), all->n, address);
    return i < all->n && all->v[i].address == address ? &all->v[i] : NULL;
}

/* The slot with this index in the relocations of .plt; NULL: none. */
static const struct slot *slot_of_index(const struct stubs *s, uint64_t index)
{
    const struct slots *const lazy = &s->lazy;
    const size_t i = tl_count_below(TL_KEYS(lazy->v, order), lazy->n, index);
    return i < lazy->n && lazy->v[i].order == index ? &lazy->v[i] : NULL;
}

/* Does a relocation of this type fill a slot with the address of a function? */
static bool fills_slot(unsigned machine, uint64_t type)
{
    switch (machine) {
    case EM_X86_64:
        return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
    case EM_386:
        return type == R_386_JMP_SLOT || type == R_386_GLOB_DAT;
    case EM_AARCH64:
        return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
    case EM_ARM:
        return type == R_ARM_JUMP_SLOT || type == R_ARM_GLOB_DAT;
    case EM_RISCV:
        return type == R_RISCV_JUMP_SLOT || type == R_RISCV_64 || type == R_RISCV_32;
    default:
        return false;
    }
}

static int add_slot(struct slots *slots, const struct slot *slot)
{
    if (tl_grow(&slots->v, &slots->cap, slots->n + 1, sizeof *slots->v) < 0)
        return TL_NOMEM;
    slots->v[slots->n++] = *slot;
    return TL_OK;
}

/* The name of symbol `i` of a table; NULL: none. */
static const char *name_of(const struct stubs *s, const GElf_Shdr *symbols, size_t i)
{
    GElf_Shdr sh;
    GElf_Sym sym;
    Elf_Scn *const scn = elf_getscn(s->elf, symbols->sh_link);
    if (!scn || !gelf_getshdr(scn, &sh) ||
        !tl_elf_symbol_at(s->load, tl_elf_section_bytes(s->load, symbols), i, &sym))
        return NULL;
    const struct tl_bytes text = tl_elf_section_bytes(s->load, &sh);
    const size_t rest = sym.st_name < text.n ? text.n - sym.st_name : 0;
    if (!memchr(text.p + sym.st_name, 0, rest < NAME_MAX_BYTES ? rest : NAME_MAX_BYTES))
        return NULL;
    const char *const name = (const char *)text.p + sym.st_name;
    return name[0] ? name : NULL;
}

/* Add the slots of a relocation section. */
static int take_relocations(struct stubs *s, const GElf_Shdr *table, bool of_plt)
{
    GElf_Shdr symbols;
    Elf_Scn *const scn = elf_getscn(s->elf, table->sh_link);
    const struct tl_bytes in = tl_elf_section_bytes(s->load, table);
    const bool with_addend = table->sh_type == SHT_RELA;
    const size_t size = (s->is_64 ? 16 : 8) + (with_addend ? (s->is_64 ? 8 : 4) : 0);
    if (!scn || !gelf_getshdr(scn, &symbols) || symbols.sh_type != SHT_DYNSYM)
        return TL_OK;
    int rc = TL_OK;
    for (size_t at = 0, i = 0; rc == TL_OK && in.n - at >= size; at += size, i++) {
        const uint64_t info = s->is_64 ? tl_le64(in.p + at + 8) : tl_le32(in.p + at + 4);
        const unsigned shift = s->is_64 ? 32 : 8;
        const uint64_t type = info & (((uint64_t)1 << shift) - 1), symbol = info >> shift;
        if (!fills_slot(s->machine, type) || symbol == 0)
            continue;
        const struct slot slot = {.address = s->is_64 ? tl_le64(in.p + at) : tl_le32(in.p + at),
                                  .name = name_of(s, &symbols, (size_t)symbol),
                                  .order = (uint32_t)i};
        if (slot.name)
            rc = add_slot(&s->all, &slot);
        if (slot.name && of_plt && rc == TL_OK)
            rc = add_slot(&s->lazy, &slot);
    }
    return rc;
}

static const char *section_name(const struct stubs *s, const GElf_Shdr *sh)
{
    size_t names;
    const char *const name =
        elf_getshdrstrndx(s->elf, &names) == 0 ? elf_strptr(s->elf, names, sh->sh_name) : NULL;
    return name ? name : "";
}

static int find_slots(struct stubs *s)
{
    int rc = TL_OK;
    for (Elf_Scn *scn = NULL; rc == TL_OK && (scn = elf_nextscn(s->elf, scn));) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh))
            continue;
        const char *const name = section_name(s, &sh);
        if (strcmp(name, ".got.plt") == 0 || (strcmp(name, ".got") == 0 && !s->got))
            s->got = sh.sh_addr;
        if (sh.sh_type == SHT_RELA || sh.sh_type == SHT_REL)
            rc = take_relocations(s, &sh, strstr(name, ".plt") != NULL);
    }
    if (s->all.n > 1)
        qsort(s->all.v, s->all.n, sizeof *s->all.v, by_slot);
    return rc;
}

/* ---- stubs ----------------------------------------------------------------------------------- */

/* What is found at a place of the code: a slot, and the extent of the stub. */
struct found {
    const struct slot *slot;
    size_t before, size; /* bytes in front of the place that belong to it; bytes from there on */
};

/* jmp *slot, perhaps behind an endbr; in a table for lazy binding with branch protection instead
 * push index. */
static bool x86_stub(const struct stubs *s, struct tl_bytes code, uint64_t pc, struct found *out)
{
    static const uint8_t endbr[2][4] = {{0xf3, 0x0f, 0x1e, 0xfb}, {0xf3, 0x0f, 0x1e, 0xfa}};
    size_t at = code.n >= 4 && memcmp(code.p, endbr[s->is_64], 4) == 0 ? 4 : 0;
    const bool lazy = at > 0;
    at += at < code.n && code.p[at] == 0xf2; /* bnd */
    if (code.n - at >= 6 && code.p[at] == 0x41 && code.p[at + 1] == 0xbb)
        at += 6; /* mov r11d, index: by the linker mold */
    if (code.n - at < 6)
        return false;
    const uint8_t *const p = code.p + at;
    if (p[0] == 0xff && (p[1] == 0x25 || (p[1] == 0xa3 && !s->is_64))) {
        const uint32_t word = tl_le32(p + 2);
        const uint64_t slot = s->is_64 ? pc + at + 6 + (uint64_t)(int64_t)(int32_t)word
                                       : (uint32_t)(word + (p[1] == 0xa3 ? s->got : 0));
        out->slot = slot_at(s, slot);
        out->size = at + 6;
    } else if (lazy && p[0] == 0x68) {
        const uint64_t index = tl_le32(p + 1);
        out->slot = slot_of_index(s, s->is_64 ? index : index / sizeof(Elf32_Rel));
        out->size = at + 5;
    }
    return out->slot != NULL;
}

/* adrp x16; ldr x17, [x16, slot]; perhaps behind bti c. */
static bool a64_stub(const struct stubs *s, struct tl_bytes code, uint64_t pc, struct found *out)
{
    if (code.n < 8)
        return false;
    const uint32_t adrp = tl_le32(code.p), ldr = tl_le32(code.p + 4);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
        return false;
    const uint64_t pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
    const uint64_t offset = (uint64_t)((int64_t)(pages << 43) >> 43) << 12;
    out->slot = slot_at(s, (pc & ~(uint64_t)0xfff) + offset + (ldr >> 10 & 0xfff) * 8);
    out->size = 16;
    return out->slot != NULL;
}

static uint32_t arm_immediate(uint32_t insn)
{
    const unsigned turn = (insn >> 8 & 15) * 2;
    const uint32_t value = insn & 0xff;
    return turn ? value >> turn | value << (32 - turn) : value;
}

/* add ip, pc, #a; add ip, ip, #b; …; ldr pc, [ip, #c]!. */
static bool arm_stub(const struct stubs *s, struct tl_bytes code, uint64_t pc, struct found *out)
{
    if (code.n < 12 || (tl_le32(code.p) & 0xfffff000) != 0xe28fc000)
        return false;
    uint32_t slot = (uint32_t)pc + 8 + arm_immediate(tl_le32(code.p));
    for (size_t at = 4; at <= 12 && code.n - at >= 4; at += 4) {
        const uint32_t insn = tl_le32(code.p + at);
        if ((insn & 0xfffff000) == 0xe28cc000) {
            slot += arm_immediate(insn);
        } else if ((insn & 0xfffff000) == 0xe5bcf000) {
            out->slot = slot_at(s, slot + (insn & 0xfff));
            out->size = at + 4;
            return out->slot != NULL;
        } else {
            return false;
        }
    }
    return false;
}

/* The 16-bit immediate of a MOVW or MOVT. */
static uint32_t thumb_immediate(const uint8_t *p)
{
    const uint32_t a = tl_le16(p), b = tl_le16(p + 2);
    return (a & 15) << 12 | (a >> 10 & 1) << 11 | (b >> 12 & 7) << 8 | (b & 0xff);
}

/* movw ip; movt ip; add ip, pc; ldr.w pc, [ip]: for cores that only have Thumb. */
static bool thumb_stub(const struct stubs *s, struct tl_bytes code, uint64_t pc, struct found *out)
{
    if (code.n < 14 || (tl_le16(code.p) & 0xfbf0) != 0xf240 ||
        (tl_le16(code.p + 2) & 0x8f00) != 0x0c00 || (tl_le16(code.p + 4) & 0xfbf0) != 0xf2c0 ||
        tl_le16(code.p + 8) != 0x44fc || tl_le32(code.p + 10) != 0xf000f8dc)
        return false;
    const uint32_t offset = thumb_immediate(code.p + 4) << 16 | thumb_immediate(code.p);
    out->slot = slot_at(s, (uint32_t)((uint32_t)pc + 12 + offset));
    out->size = 16;
    return out->slot != NULL;
}

/* auipc t3; l[wd] t3, slot(t3). */
static bool riscv_stub(const struct stubs *s, struct tl_bytes code, uint64_t pc, struct found *out)
{
    if (code.n < 8)
        return false;
    const uint32_t auipc = tl_le32(code.p), load = tl_le32(code.p + 4);
    if ((auipc & 0xfff) != 0xe17 || (load & 0xfffff) != (s->is_64 ? 0xe3e03 : 0xe2e03))
        return false;
    const uint64_t slot = pc + (uint64_t)(int64_t)(int32_t)(auipc & 0xfffff000) +
                          (uint64_t)(int64_t)((int32_t)load >> 20);
    out->slot = slot_at(s, s->is_64 ? slot : (uint32_t)slot);
    out->size = 16;
    return out->slot != NULL;
}

/* How many bytes in front of a stub belong to it: a landing pad, or the switch from Thumb. */
static size_t bytes_before(const struct stubs *s, struct tl_bytes code, size_t at)
{
    const uint32_t before = at >= 4 ? tl_le32(code.p + at - 4) : 0;
    const uint32_t pad = s->machine == EM_AARCH64 ? 0xd503245f /* bti c */
                         : s->machine == EM_ARM   ? 0x46c04778 /* bx pc; nop */
                         : s->machine == EM_RISCV ? 0x00000017 /* lpad */
                                                  : 0;
    return pad && before == pad ? 4 : 0;
}

static bool stub_at(const struct stubs *s, struct tl_bytes code, size_t at, uint64_t pc,
                    struct found *out)
{
    const struct tl_bytes rest = {code.p + at, code.n - at};
    *out = (struct found){0};
    bool found = false;
    switch (s->machine) {
    case EM_X86_64:
    case EM_386:
        return x86_stub(s, rest, pc, out);
    case EM_AARCH64:
        found = a64_stub(s, rest, pc, out);
        break;
    case EM_ARM:
        found = arm_stub(s, rest, pc, out) || thumb_stub(s, rest, pc, out);
        break;
    case EM_RISCV:
        found = riscv_stub(s, rest, pc, out);
        break;
    default:
        break;
    }
    out->before = bytes_before(s, code, at);
    return found;
}

/* Find the stubs of a section. Each extends to the next one, at most to the next multiple of 8. */
static int take_section(struct stubs *s, size_t section, const GElf_Shdr *sh)
{
    const struct tl_bytes code = tl_elf_section_bytes(s->load, sh);
    const bool is_x86 = s->machine == EM_X86_64 || s->machine == EM_386;
    const size_t step = is_x86 ? 8 : 4;
    for (size_t at = 0; at < code.n;) {
        struct found found;
        if (!stub_at(s, code, at, sh->sh_addr + at, &found)) {
            at += step;
            continue;
        }
        /* A stub for lazy binding continues with push and jmp, which have no slot. */
        const size_t entry = is_x86 && sh->sh_entsize == 8 ? 8 : is_x86 ? 16 : found.size;
        const size_t left = code.n - at;
        if (tl_grow(&s->v, &s->cap, s->n + 1, sizeof *s->v) < 0)
            return TL_NOMEM;
        s->v[s->n++] = (struct stub){.address = sh->sh_addr + at - found.before,
                                     .size = found.before + (entry < left ? entry : left),
                                     .slot = found.slot,
                                     .section = section};
        at += entry;
    }
    return TL_OK;
}

static int find_stubs(struct stubs *s)
{
    int rc = TL_OK;
    for (Elf_Scn *scn = NULL; rc == TL_OK && (scn = elf_nextscn(s->elf, scn));) {
        GElf_Shdr sh;
        if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR) &&
            strncmp(section_name(s, &sh), ".plt", 4) == 0)
            rc = take_section(s, elf_ndxscn(scn), &sh);
    }
    return rc;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Add the stubs to the image, all names in one piece of memory. */
static int add_stubs(const struct stubs *s)
{
    static const char suffix[] = "@plt";
    const size_t limit = s->load->bytes.n * NAMES_PER_BYTE;
    size_t n = 0, size = 0;
    while (n < s->n) {
        const size_t one = strlen(s->v[n].slot->name) + sizeof suffix;
        if (one > limit - size)
            break;
        size += one;
        n++;
    }
    char *const names = n ? malloc(size) : NULL;
    if (n && (!names || tl_image_own(s->load->image, names, size) < 0))
        return TL_NOMEM;
    char *name = names;
    int rc = TL_OK;
    for (size_t i = 0; i < n && rc == TL_OK; i++) {
        const struct stub *const stub = &s->v[i];
        const size_t length = strlen(stub->slot->name);
        memcpy(name, stub->slot->name, length);
        memcpy(name + length, suffix, sizeof suffix);
        rc = tl_elf_add_symbol(
            s->load, s->elf, stub->section,
            &(struct tl_part_symbol){.offset = stub->address, .size = stub->size, .name = name});
        name += length + sizeof suffix;
    }
    return rc;
}

int tl_elf_stubs(const struct tl_elf_load *load, Elf *elf)
{
    GElf_Ehdr eh;
    if (!gelf_getehdr(elf, &eh) || eh.e_type == ET_REL || load->bytes.p[EI_DATA] != ELFDATA2LSB)
        return TL_OK;
    struct stubs s = {.load = load,
                      .elf = elf,
                      .machine = eh.e_machine,
                      .is_64 = eh.e_ident[EI_CLASS] == ELFCLASS64};
    int rc = find_slots(&s);
    if (rc == TL_OK && s.all.n > 0)
        rc = find_stubs(&s);
    if (rc == TL_OK)
        rc = add_stubs(&s);
    free(s.all.v);
    free(s.lazy.v);
    free(s.v);
    return rc < 0 ? tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory for symbols", load->name)
                  : TL_OK;
}
