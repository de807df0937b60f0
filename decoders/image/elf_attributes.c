/* SPDX-License-Identifier: MIT */
/*
 * What a RISC-V program says of the instructions it was built for (.riscv.attributes). Zcmp and
 * Zcmt use encodings that are floating-point stores on other cores, so without this every user of
 * them would have to know which core that is.
 *
 * Source: RISC-V ELF psABI 1.0, "Attributes".
 */
#include "base/err.h"
#include "image/elf_load.h"

#include <string.h>

#ifndef SHT_RISCV_ATTRIBUTES
#define SHT_RISCV_ATTRIBUTES 0x70000003
#endif

enum { VERSION = 'A', TAG_FILE = 1, TAG_ARCH = 5 };

/* Take an unsigned number in groups of 7 bits; false: it does not end. */
static bool take_number(struct tl_bytes *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; in->n > 0 && shift < 63; shift += 7) {
        const uint8_t byte = *in->p;
        in->p++;
        in->n--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Take a string with its NUL; NULL: it does not end. */
static const char *take_text(struct tl_bytes *in)
{
    const char *const text = (const char *)in->p;
    const size_t n = in->n ? strnlen(text, in->n) : 0;
    if (n == in->n)
        return NULL;
    in->p += n + 1;
    in->n -= n + 1;
    return text;
}

/* Take a piece that begins with its own length, of which `before` bytes were read. */
static bool take_piece(struct tl_bytes *in, size_t before, struct tl_bytes *out)
{
    if (in->n < 4)
        return false;
    const uint32_t length = tl_le32(in->p);
    if (length < before + 4 || length - before > in->n)
        return false;
    *out = (struct tl_bytes){in->p + 4, length - before - 4};
    in->p += length - before;
    in->n -= length - before;
    return true;
}

/* The architecture among the attributes of a whole file; NULL: not told. */
static const char *find_architecture(struct tl_bytes in)
{
    uint64_t tag, value;
    while (take_number(&in, &tag)) {
        const char *const text = tag % 2 ? take_text(&in) : NULL; /* odd ones are texts */
        if (tag == TAG_ARCH || (tag % 2 ? !text : !take_number(&in, &value)))
            return text;
    }
    return NULL;
}

/* The same of a section; of the vendors' parts that of "riscv". */
static const char *architecture_of(struct tl_bytes section)
{
    struct tl_bytes part, piece;
    if (section.n == 0 || *section.p != VERSION)
        return NULL;
    section.p++;
    section.n--;
    while (take_piece(&section, 0, &part)) {
        const char *const vendor = take_text(&part);
        uint64_t tag;
        while (vendor && !strcmp(vendor, "riscv") && take_number(&part, &tag) &&
               take_piece(&part, 1, &piece))
            if (tag == TAG_FILE)
                return find_architecture(piece);
    }
    return NULL;
}

void tl_elf_attributes(const struct tl_elf_load *load, Elf *elf)
{
    GElf_Ehdr eh;
    GElf_Shdr sh;
    if (!gelf_getehdr(elf, &eh))
        return;
    if (load->image->machine == 0) {
        load->image->machine = eh.e_machine;
        load->image->is_narrow = eh.e_ident[EI_CLASS] == ELFCLASS32;
    }
    for (Elf_Scn *s = NULL; eh.e_machine == EM_RISCV && (s = elf_nextscn(elf, s));)
        if (gelf_getshdr(s, &sh) && sh.sh_type == SHT_RISCV_ATTRIBUTES) {
            const char *const arch = architecture_of(tl_elf_section_bytes(load, &sh));
            load->image->has_zcm |= arch && strstr(arch, "_zcm");
        }
}
