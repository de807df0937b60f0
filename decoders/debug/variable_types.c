/* SPDX-License-Identifier: MIT */
/*
 * Variables with a fixed address, wherever they are declared, and the types that they consist of.
 * Types refer to each other in any order and may do so in circles: each is numbered before what it
 * refers to is read, and how deep they nest is limited.
 */
#include "debug/variable_types.h"

#include "base/cancel.h"
#include "image/elf_places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 24, /* of entries, and of types */
    ENTRIES_MAX = 1 << 22,
    DERIVED_MAX = 16, /* typedefs and qualifiers, one behind the other */
    TYPE_NAME = 96,
    POINTER = 4 /* bytes, unless its type tells */
};

/* The number of a type that has been read already; in a tree of tsearch(3). */
struct known {
    Dwarf_Off offset;
    uint32_t type;
};

struct reading {
    struct tl_types *out;
    tl_types_keep *keep;
    void *context;
    uint64_t bias;
    void *known;
    size_t entries;
    int rc;
};

static int by_offset(const void *a, const void *b)
{
    const struct known *const x = a, *const y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static const char *keep(struct reading *r, const char *text)
{
    const char *const kept = r->keep(r->context, text);
    if (!kept)
        r->rc = TL_NOMEM;
    return kept ? kept : "";
}

static const char *name_of(Dwarf_Die *die)
{
    const char *const name = dwarf_diename(die);
    return name ? name : "";
}

static bool number_of(Dwarf_Die *die, unsigned attribute, uint64_t *out)
{
    Dwarf_Attribute a;
    Dwarf_Word value;
    if (!dwarf_attr_integrate(die, attribute, &a) || dwarf_formudata(&a, &value) != 0)
        return false;
    *out = value;
    return true;
}

static bool type_of(Dwarf_Die *die, Dwarf_Die *out)
{
    Dwarf_Attribute a;
    return dwarf_attr_integrate(die, DW_AT_type, &a) && dwarf_formref_die(&a, out);
}

/* Take off typedefs and qualifiers; the name of the first typedef is the type's. False: void. */
static bool strip(Dwarf_Die *die, char name[static TYPE_NAME])
{
    name[0] = '\0';
    for (unsigned i = 0; i < DERIVED_MAX; i++) {
        Dwarf_Die next;
        switch (dwarf_tag(die)) {
        case DW_TAG_typedef:
            if (!*name)
                snprintf(name, TYPE_NAME, "%s", name_of(die));
            break;
        case DW_TAG_const_type:
        case DW_TAG_volatile_type:
        case DW_TAG_restrict_type:
        case DW_TAG_atomic_type:
            break;
        default:
            return true;
        }
        if (!type_of(die, &next))
            return false;
        *die = next;
    }
    return false;
}

/* "enum mode", "struct point", "int"; the typedef's name if there is one. */
static void name_type(Dwarf_Die *die, const char *typedef_name, char out[static TYPE_NAME])
{
    const int tag = dwarf_tag(die);
    const char *const before = tag == DW_TAG_enumeration_type ? "enum "
                               : tag == DW_TAG_structure_type ? "struct "
                               : tag == DW_TAG_union_type     ? "union "
                                                              : "";
    const bool named = *name_of(die) != '\0';
    if (*typedef_name)
        snprintf(out, TYPE_NAME, "%s", typedef_name);
    else
        snprintf(out, TYPE_NAME, "%s%s", named ? before : *before ? "enum" : "", name_of(die));
}

/* "char *"; of a function "function *". */
static void name_pointer(Dwarf_Die *die, char out[static TYPE_NAME])
{
    Dwarf_Die target;
    char name[TYPE_NAME], typedef_name[TYPE_NAME];
    snprintf(out, TYPE_NAME, "void *");
    if (!type_of(die, &target) || !strip(&target, typedef_name))
        return;
    const int tag = dwarf_tag(&target);
    if (tag == DW_TAG_subroutine_type && !*typedef_name)
        snprintf(name, sizeof name, "function");
    else if (tag == DW_TAG_pointer_type && !*typedef_name)
        snprintf(name, sizeof name, "void *");
    else
        name_type(&target, typedef_name, name);
    snprintf(out, TYPE_NAME, "%.*s%s", TYPE_NAME - 4, name,
             tag == DW_TAG_pointer_type ? "*" : " *");
}

static uint8_t kind_of_base(Dwarf_Die *die)
{
    uint64_t encoding = 0;
    if (!number_of(die, DW_AT_encoding, &encoding))
        return TL_TYPE_OTHER;
    switch (encoding) {
    case DW_ATE_boolean:
        return TL_TYPE_BOOL;
    case DW_ATE_float:
        return TL_TYPE_FLOAT;
    case DW_ATE_signed:
        return TL_TYPE_SIGNED;
    case DW_ATE_signed_char:
    case DW_ATE_unsigned_char:
    case DW_ATE_UTF:
    case DW_ATE_ASCII:
        return strcmp(name_of(die), "char") == 0 ? TL_TYPE_CHAR
               : encoding == DW_ATE_signed_char  ? TL_TYPE_SIGNED
                                                 : TL_TYPE_UNSIGNED;
    case DW_ATE_unsigned:
        return TL_TYPE_UNSIGNED;
    default:
        return TL_TYPE_OTHER;
    }
}

static uint32_t read_type(struct reading *r, Dwarf_Die *die, unsigned depth);

/* The type that an entry has; 0: none. */
static uint32_t read_type_of(struct reading *r, Dwarf_Die *die, unsigned depth)
{
    Dwarf_Die type;
    return type_of(die, &type) ? read_type(r, &type, depth + 1) : 0;
}

/* ---- enumerations, arrays and structures ----------------------------------------------------- */

/* Go to the next entry, in ascending order whatever the file says; false: there is none. */
static bool go_on(struct reading *r, Dwarf_Die *die)
{
    Dwarf_Die next;
    const Dwarf_Off here = dwarf_dieoffset(die);
    if (r->rc < 0 || ++r->entries > ENTRIES_MAX || dwarf_siblingof(die, &next) != 0 ||
        dwarf_dieoffset(&next) <= here)
        return false;
    if (r->entries % 256 == 0)
        r->rc = tl_cancel_check();
    *die = next;
    return r->rc >= 0;
}

static void read_enumerators(struct reading *r, Dwarf_Die *die, struct tl_type *type)
{
    Dwarf_Die one;
    type->first = (uint32_t)r->out->n_enumerators;
    if (dwarf_child(die, &one) != 0)
        return;
    do {
        Dwarf_Attribute a;
        Dwarf_Sword value;
        if (dwarf_tag(&one) != DW_TAG_enumerator || !dwarf_attr(&one, DW_AT_const_value, &a) ||
            dwarf_formsdata(&a, &value) != 0)
            continue;
        const int64_t added = tl_types_add_enumerator(r->out, value, keep(r, name_of(&one)));
        r->rc = added == TL_NOMEM ? TL_NOMEM : r->rc;
        type->n += added >= 0;
    } while (go_on(r, &one));
}

/* Elements in one dimension; 0: unknown. */
static uint64_t count_of(Dwarf_Die *range)
{
    uint64_t n = 0;
    if (number_of(range, DW_AT_count, &n))
        return n;
    return number_of(range, DW_AT_upper_bound, &n) && n < UINT32_MAX ? n + 1 : 0;
}

/* An array of arrays for each dimension, the last one innermost. Returns its type, 0: unknown. */
static uint32_t read_array(struct reading *r, Dwarf_Die *die, unsigned depth)
{
    enum { DIMENSIONS = 8 };
    uint64_t counts[DIMENSIONS];
    size_t n = 0;
    Dwarf_Die range;
    uint32_t type = read_type_of(r, die, depth);
    if (type == 0 || dwarf_child(die, &range) != 0)
        return 0;
    do
        if (dwarf_tag(&range) == DW_TAG_subrange_type && n < DIMENSIONS)
            counts[n++] = count_of(&range);
    while (go_on(r, &range));
    while (n > 0 && type > 0) {
        struct tl_type array = {.kind = TL_TYPE_ARRAY, .name = "", .element = type};
        if (__builtin_mul_overflow(counts[--n], r->out->types[type].size, &array.size))
            return 0;
        const int64_t added = tl_types_add(r->out, &array);
        r->rc = added == TL_NOMEM ? TL_NOMEM : r->rc;
        type = added > 0 ? (uint32_t)added : 0;
    }
    return type;
}

/* Older compilers give the offset as an expression. */
static uint64_t offset_of(Dwarf_Die *die)
{
    uint64_t offset = 0;
    Dwarf_Attribute a;
    Dwarf_Op *ops;
    size_t n;
    if (!number_of(die, DW_AT_data_member_location, &offset) &&
        dwarf_attr(die, DW_AT_data_member_location, &a) && dwarf_getlocation(&a, &ops, &n) == 0 &&
        n == 1 && ops[0].atom == DW_OP_plus_uconst)
        offset = ops[0].number;
    return offset;
}

/* Members with a place of their own; bit-fields have none. */
static bool is_member(Dwarf_Die *die)
{
    const int tag = dwarf_tag(die);
    return (tag == DW_TAG_member || tag == DW_TAG_inheritance) &&
           !dwarf_hasattr(die, DW_AT_bit_size) && !dwarf_hasattr(die, DW_AT_declaration) &&
           !dwarf_hasattr(die, DW_AT_external);
}

enum { MEMBERS_MAX = 1024 };

/* Members are added after their types, since those may have members of their own. */
static void read_members(struct reading *r, Dwarf_Die *die, struct tl_type *type, unsigned depth)
{
    struct tl_type_member *const members = malloc(MEMBERS_MAX * sizeof *members);
    size_t n = 0;
    Dwarf_Die one;
    if (!members)
        r->rc = TL_NOMEM;
    if (members && dwarf_child(die, &one) == 0)
        do {
            if (!is_member(&one) || n == MEMBERS_MAX)
                continue;
            const uint32_t of = read_type_of(r, &one, depth);
            if (of > 0)
                members[n++] = (struct tl_type_member){keep(r, name_of(&one)), offset_of(&one), of};
        } while (go_on(r, &one));
    type->first = (uint32_t)r->out->n_members;
    for (size_t i = 0; i < n && r->rc >= 0; i++) {
        const int64_t added = tl_types_add_member(r->out, &members[i]);
        r->rc = added == TL_NOMEM ? TL_NOMEM : r->rc;
        type->n += added >= 0;
    }
    free(members);
}

/* ---- types ----------------------------------------------------------------------------------- */

/* The entry of a type that has been read, or a new one, of type 0; NULL: out of memory. */
static struct known *known_of(struct reading *r, Dwarf_Off offset)
{
    struct known *const one = malloc(sizeof *one);
    if (!one)
        return NULL;
    *one = (struct known){offset, 0};
    struct known **const found = tsearch(one, &r->known, by_offset);
    if (!found || *found != one)
        free(one);
    return found ? *found : NULL;
}

static void fill_type(struct reading *r, Dwarf_Die *die, const char *typedef_name,
                      struct tl_type *type, unsigned depth)
{
    char name[TYPE_NAME];
    Dwarf_Die under;
    name_type(die, typedef_name, name);
    switch (dwarf_tag(die)) {
    case DW_TAG_base_type:
        type->kind = kind_of_base(die);
        break;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        type->kind = TL_TYPE_POINTER;
        if (type->size == 0)
            type->size = POINTER;
        if (!*typedef_name)
            name_pointer(die, name);
        break;
    case DW_TAG_enumeration_type:
        type->kind = TL_TYPE_ENUM;
        if (type->size == 0 && type_of(die, &under))
            (void)number_of(&under, DW_AT_byte_size, &type->size);
        read_enumerators(r, die, type);
        break;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        type->kind = TL_TYPE_STRUCT;
        read_members(r, die, type, depth);
        break;
    default:
        break;
    }
    type->name = keep(r, name);
}

/* Of a typedef and of what it names there is one type each: they have different names. */
static uint32_t read_type(struct reading *r, Dwarf_Die *die, unsigned depth)
{
    char typedef_name[TYPE_NAME];
    if (r->rc < 0 || depth > DEPTH_MAX || ++r->entries > ENTRIES_MAX)
        return 0;
    struct known *const known = known_of(r, dwarf_dieoffset(die));
    if (!known)
        r->rc = TL_NOMEM;
    if (!known || known->type > 0)
        return known ? known->type : 0;
    if (!strip(die, typedef_name))
        return 0;
    if (dwarf_tag(die) == DW_TAG_array_type)
        return known->type = read_array(r, die, depth);
    struct tl_type type = {.name = ""};
    (void)number_of(die, DW_AT_byte_size, &type.size);
    fill_type(r, die, typedef_name, &type, depth);
    const int64_t added = tl_types_add(r->out, &type);
    r->rc = added == TL_NOMEM ? TL_NOMEM : r->rc;
    return known->type = added > 0 ? (uint32_t)added : 0;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Compilers that join variables to one give the place within that. */
static bool address_of(Dwarf_Die *die, uint64_t *out)
{
    Dwarf_Attribute a;
    Dwarf_Op *ops;
    size_t n;
    if (!dwarf_attr(die, DW_AT_location, &a) || dwarf_getlocation(&a, &ops, &n) != 0 || n == 0 ||
        ops[0].atom != DW_OP_addr || n > 2 || (n == 2 && ops[1].atom != DW_OP_plus_uconst))
        return false;
    *out = ops[0].number + (n == 2 ? ops[1].number : 0);
    return true;
}

static void read_variable(struct reading *r, Dwarf_Die *die)
{
    uint64_t address;
    if (!address_of(die, &address))
        return;
    const uint32_t type = read_type_of(r, die, 0);
    if (type > 0 && r->rc >= 0 &&
        tl_types_add_variable(r->out, address + r->bias, type) == TL_NOMEM)
        r->rc = TL_NOMEM;
}

/* What may contain variables with a fixed address. */
static bool may_hold(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_namespace ||
           tag == DW_TAG_module;
}

static void read_entries(struct reading *r, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die, next;
    if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0 ||
        dwarf_dieoffset(&die) <= dwarf_dieoffset(parent))
        return;
    do {
        const int tag = dwarf_tag(&die);
        next = die;
        if (tag == DW_TAG_variable)
            read_variable(r, &next);
        else if (may_hold(tag))
            read_entries(r, &next, depth + 1);
    } while (go_on(r, &die));
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Bytes of a section once it is decompressed, which libdw does for all of them at once. */
static uint64_t unpacked_size(Elf_Scn *section, const GElf_Shdr *sh)
{
    GElf_Chdr compressed;
    if (!(sh->sh_flags & SHF_COMPRESSED))
        return 0;
    return gelf_getchdr(section, &compressed) ? compressed.ch_size : UINT64_MAX;
}

/* May libdw read the file? It unpacks to a reasonable size, and its texts are its own. */
static bool may_read(Elf *elf)
{
    const uint64_t most = UINT64_C(256) << 20;
    uint64_t unpacked = 0;
    size_t names;
    Elf_Scn *section = NULL;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr sh;
        const char *const name =
            gelf_getshdr(section, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
        const uint64_t size = name ? unpacked_size(section, &sh) : 0;
        if (name && (strncmp(name, ".zdebug", 7) == 0 || strcmp(name, ".gnu_debugaltlink") == 0))
            return false;
        if (size > most - unpacked)
            return false;
        unpacked += size;
    }
    return true;
}

static void read_units(struct reading *r, Dwarf *dwarf)
{
    Dwarf_CU *cu = NULL, *next;
    uint8_t type;
    Dwarf_Die die;
    /* The entry of a split unit is not asked for: libdw would search for its file. */
    while (r->rc >= 0 && ++r->entries < ENTRIES_MAX &&
           dwarf_get_units(dwarf, cu, &next, NULL, &type, &die, NULL) == 0) {
        cu = next;
        if (type == DW_UT_compile)
            read_entries(r, &die, 0);
    }
}

int tl_variable_types(struct tl_bytes file, uint64_t bias, tl_types_keep *keep_text, void *context,
                      struct tl_types *out)
{
    struct reading r = {.out = out, .keep = keep_text, .context = context, .bias = bias};
    struct tl_elf elf;
    const int rc = tl_elf_init(&elf, file);
    if (rc < 0)
        return rc == TL_NOMEM ? rc : TL_OK;
    Dwarf *const dwarf = may_read(elf.elf) ? dwarf_begin_elf(elf.elf, DWARF_C_READ, NULL) : NULL;
    if (dwarf) {
        dwarf_setalt(dwarf, dwarf); /* otherwise it would search for another file */
        read_units(&r, dwarf);
        tdestroy(r.known, free);
        dwarf_end(dwarf);
    }
    tl_elf_fini(&elf);
    return r.rc;
}
