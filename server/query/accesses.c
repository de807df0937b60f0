/* SPDX-License-Identifier: MIT */
/*
 * Reads accesses from the lines and records that tell them, each form by its own function. Whoever
 * searches or lists accesses then has one struct, whichever trace unit reported them.
 */
#include "query/accesses.h"

#include "flow/hardware.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- notes of data trace --------------------------------------------------------------------- */

/* The number behind `key` in a note. */
static bool number_in(const char *note, const char *key, uint64_t *out)
{
    const char *const at = strstr(note, key);
    if (at)
        *out = strtoull(at + strlen(key), NULL, 0);
    return at != NULL;
}

static enum tl_told_kind kind_of(uint64_t type)
{
    return type == TL_STF_READ    ? TL_TOLD_READ
           : type == TL_STF_WRITE ? TL_TOLD_WRITE
                                  : TL_TOLD_ACCESS;
}

bool tl_told_note(const char *note, const char *next, struct tl_told_access *out)
{
    static const char whole[] = "INST_MEM_ACCESS ", content[] = "INST_MEM_CONTENT ",
                      other[] = "data ";
    static const struct {
        const char *word;
        enum tl_told_kind kind;
    } words[] = {{"read ", TL_TOLD_READ},
                 {"write ", TL_TOLD_WRITE},
                 {"late ", TL_TOLD_LATE},
                 {"not-traced ", TL_TOLD_NOT_TRACED}};
    uint64_t type = 0;
    *out = (struct tl_told_access){.kind = TL_TOLD_ACCESS};
    out->has_address = number_in(note, "addr=", &out->address);
    if (strncmp(note, whole, sizeof whole - 1) == 0) {
        number_in(note, " size=", &out->bytes);
        number_in(note, " access=", &type);
        out->kind = kind_of(type);
        out->has_value = strncmp(next, content, sizeof content - 1) == 0 &&
                         number_in(next, "data=", &out->value);
        return out->has_address;
    }
    if (strncmp(note, other, sizeof other - 1) != 0)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(note + sizeof other - 1, words[i].word, strlen(words[i].word)) == 0)
            out->kind = words[i].kind;
    out->has_value = number_in(note, " value=", &out->value);
    return out->has_address || out->has_value;
}

/* The address of a block's last instruction. */
static int last_of(const struct tl_walk *walk, const struct tl_item *item, uint64_t *out)
{
    struct tl_walk_step insn = {.next = item->block->pc};
    size_t at = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0; i++)
        r = tl_walk_insn(walk, item->block, &at, insn.next, &insn);
    *out = insn.pc;
    return r;
}

int tl_told_last(const struct tl_walk *walk, size_t i, uint64_t *pc)
{
    for (size_t k = i; k > 0; k--) {
        const struct tl_item *const item = &walk->items[k - 1];
        *pc = item->pc;
        if (item->kind == TL_ITEM_BLOCK)
            return last_of(walk, item, pc) < 0 ? TL_BAD : 1;
        if (item->kind == TL_ITEM_UNKNOWN)
            return 1;
        if (item->kind == TL_ITEM_GAP)
            return TL_NOTFOUND;
    }
    return TL_OK;
}

/* ---- events of a DWT ------------------------------------------------------------------------- */

static void take_field(struct tl_told_access *out, const struct tl_line_field *field)
{
    const char *const text = (const char *)field->text.p;
    const int n = (int)field->text.n;
    if (strcmp(field->name, "access") == 0)
        out->kind = n == 4 ? TL_TOLD_READ : n == 5 ? TL_TOLD_WRITE : TL_TOLD_ACCESS;
    else if (strcmp(field->name, "address") == 0 && !memchr(text, 'x', field->text.n))
        out->has_address = sscanf(text, "%" SCNx64, &out->address) == 1;
    else if (strcmp(field->name, "address") == 0)
        snprintf(out->part, sizeof out->part, "%.*s", n, text);
    else if (strcmp(field->name, "value") == 0) {
        out->has_value = sscanf(text, "%" SCNx64, &out->value) == 1;
        out->bytes = field->text.n / 2;
    } else if (strcmp(field->name, "name") == 0) /* with all that is behind it */
        snprintf(out->name, sizeof out->name, "%s", text);
}

bool tl_told_event(const struct tl_item *item, struct tl_told_access *out)
{
    struct tl_line_field fields[TL_LINE_FIELDS];
    if (!tl_is_hardware(item, TL_HARDWARE_DATA))
        return false;
    *out = (struct tl_told_access){
        .kind = TL_TOLD_ACCESS, .has_pc = item->flags & TL_ITEM_HAS_PC, .pc = item->pc};
    const struct tl_bytes text = {(const uint8_t *)item->text, strlen(item->text)};
    const size_t n = tl_hardware_fields(text, fields);
    for (size_t i = 0; i < n; i++)
        take_field(out, &fields[i]);
    return true;
}

/* ---- records of STF -------------------------------------------------------------------------- */

/* A record's size is in bytes, or with some producers in bits: nothing wider than the contents, and
 * 8 is bytes where the address allows it. */
struct tl_told_access tl_told_record(const struct tl_stf_access *record, uint64_t pc)
{
    const uint64_t contents = 8 * (uint64_t)(record->n_data ? record->n_data : 1);
    struct tl_told_access a = {.kind = kind_of(record->type),
                               .bus = record->bus,
                               .has_address = true,
                               .address = record->address,
                               .bytes = record->size < contents ? record->size : contents,
                               .has_value = record->n_data > 0,
                               .has_pc = true,
                               .pc = pc};
    if (record->size == 8 && record->address % 8)
        a.bytes = 1;
    if (a.has_value)
        a.value = tl_stf_access_data(record, 0);
    return a;
}

/* ---- names ----------------------------------------------------------------------------------- */

bool tl_told_name(const struct tl_told_access *a, const struct tl_image *image,
                  char out[static TL_TOLD_NAME])
{
    const struct tl_image_access access = {a->address, a->value,
                                           a->has_value ? (unsigned)a->bytes : 0};
    if (*a->name)
        snprintf(out, TL_TOLD_NAME, "%s", a->name);
    else
        return a->has_address && tl_image_variable_text(image, &access, out, TL_TOLD_NAME);
    return true;
}
