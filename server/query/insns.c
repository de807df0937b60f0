/* SPDX-License-Identifier: MIT */
/*
 * Rows of the disassembly list. Instructions come from shards and their text from LLVM; without it
 * the encoding and its kind are shown.
 */
#include "base/cancel.h"
#include "lake_insns.h"
#include "query/debuginfo.h"
#include "query/opcodes.h"
#include "query/query.h"
#include "query/softlines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 4096

struct rows {
    const struct tl_cut *cut;
    const struct tl_image *image;
    struct tl_disasm *disasm[TL_ISA_COUNT];
    bool tried[TL_ISA_COUNT]; /* to make it: it is NULL without LLVM */
    struct tl_scale time;
    struct tl_places places;
    tl_insn_sink *sink;
    void *context;
    struct tl_buf events; /* flow text of the items before the next row */
    struct tl_buf line;
    struct tl_flow_now now;
    uint64_t next; /* position of the next row */
    bool lost;     /* there was a gap that may have cost positions (shard/missing.h) */
};

/* One disassembler per instruction set and request; NULL without LLVM. */
static struct tl_disasm *disasm_of(struct rows *rows, enum tl_isa isa)
{
    if (!rows->tried[isa]) {
        rows->tried[isa] = true;
        if (tl_disasm_new(&rows->disasm[isa], isa, NULL) < 0)
            rows->disasm[isa] = NULL;
    }
    return rows->disasm[isa];
}

/* Decodes what any version of an architecture has: for text, it does not matter which core ran it.
 */
static const struct tl_isa_options any_core = {.arch_major = 9, .arch_minor = 9, .profile = 'A'};

/* What is shown without LLVM. */
static const char *kind_text(enum tl_isa isa, uint64_t pc, struct tl_bytes code)
{
    static const char *const names[] = {
        [TL_INSN_PLAIN] = "(instruction)",
        [TL_INSN_BRANCH] = "(branch)",
        [TL_INSN_INDIRECT] = "(indirect branch)",
        [TL_INSN_RETURN_EX] = "(exception return)",
        [TL_INSN_SYNC] = "(barrier)",
        [TL_INSN_WAIT] = "(wait)",
        [TL_INSN_TRAP] = "(trap)",
        [TL_INSN_TRANSACT] = "(transaction start)",
    };
    struct tl_insn insn;
    if (tl_insn_decode(isa, &any_core, pc, code, &insn) < 0)
        return "(no instruction)";
    return names[insn.kind];
}

/*
 * Replace the destination of a direct branch, which LLVM prints as a distance, with the address and
 * its function.
 */
static void name_target(const struct rows *rows, enum tl_isa isa, uint64_t pc, struct tl_bytes code,
                        char *text, size_t size)
{
    struct tl_insn insn;
    char function[256];
    char *const operand = strrchr(text, ' ');
    if (!operand || tl_insn_decode(isa, &any_core, pc, code, &insn) < 0 ||
        insn.kind != TL_INSN_BRANCH)
        return;
    tl_function_text(rows->image, &rows->now, insn.target, function, sizeof function);
    snprintf(operand + 1, size - (size_t)(operand + 1 - text), "0x%llx%s%s%s",
             (unsigned long long)insn.target, function[0] ? " <" : "", function,
             function[0] ? ">" : "");
}

/* Add the source location from debug information. */
static int add_place(struct rows *rows, struct tl_insn_row *row,
                     struct tl_insn_inlined inlined[static TL_DWARF_INLINED])
{
    struct tl_places *const places = &rows->places;
    const struct tl_dwarf_place *const place = &places->place;
    const int r = tl_places_at(places, &rows->now, row->pc);
    if (r < 0)
        return r;
    for (size_t i = 0; i < place->n_inlined; i++)
        inlined[i] = (struct tl_insn_inlined){
            place->inlined[i].function, place->inlined[i].call_file, place->inlined[i].call_line};
    row->file = place->file;
    row->line = place->line;
    row->column = place->column;
    row->inlined = inlined;
    row->n_inlined = place->n_inlined;
    row->image = places->image;
    row->lacks = places->lacks;
    return TL_OK;
}

static int add_row(struct rows *rows, uint64_t position, uint64_t pc, const char *encoding,
                   const char *text)
{
    char function[256], mode[32] = "";
    struct tl_insn_inlined inlined[TL_DWARF_INLINED];
    struct tl_insn_row row = {.insn = position,
                              .pc = pc,
                              .encoding = encoding,
                              .text = text,
                              .mode = mode,
                              .file = "",
                              .image = "",
                              .lacks = ""};
    int r = tl_buf_add(&rows->events, "", 1);
    if (r >= 0 && (pc || *encoding))
        r = add_place(rows, &row, inlined);
    row.events = (const char *)rows->events.p;
    row.function = tl_function_text(rows->image, &rows->now, pc, function, sizeof function);
    row.has_time = tl_scale_value(&rows->time, position, &row.time);
    if (rows->now.has_mode)
        tl_mode_text(rows->now.mode, mode);
    if (r >= 0)
        r = rows->sink(rows->context, &row);
    tl_buf_reset(&rows->events);
    rows->next = position + 1;
    return r;
}

/* Add rows for the positions before `to` that cannot be regenerated. */
static int add_missing(struct rows *rows, uint64_t to)
{
    int r = TL_OK;
    while (rows->lost && rows->next < to && r >= 0)
        r = add_row(rows, rows->next, 0, "", "(missing: raw bytes are damaged)");
    return r;
}

static int add_block(struct rows *rows, const struct tl_item *item, uint64_t position)
{
    const enum tl_isa isa = (enum tl_isa)item->block->isa;
    struct tl_disasm *disasm = isa < TL_ISA_COUNT ? disasm_of(rows, isa) : NULL;
    struct tl_block_walk walk;
    tl_block_walk_begin(&walk, item);
    int r = TL_OK;
    for (; r >= 0 && tl_block_walk_next(&walk); position++) {
        char text[480], encoding[33];
        const int known =
            disasm ? tl_disasm_text(disasm, walk.pc, walk.code, text, sizeof(text)) : TL_BAD;
        if (known >= 0)
            name_target(rows, isa, walk.pc, walk.code, text, sizeof(text));
        else if (!disasm)
            snprintf(text, sizeof(text), "%s", kind_text(isa, walk.pc, walk.code));
        tl_encoding_text(isa, walk.code, encoding);
        r = add_row(rows, position, walk.pc, encoding, text);
    }
    return r;
}

static int add_event(struct rows *rows, const struct tl_item *item)
{
    const int r = tl_item_text(&rows->events, item, 1);
    tl_flow_now_item(&rows->now, item);
    rows->lost = rows->lost || (item->kind == TL_ITEM_GAP && item->sub == TL_GAP_TRANSPORT);
    return r;
}

/* The character in a console or print record, or 0. */
static char character_of(const struct tl_item *item)
{
    const bool console = item->name && strncmp(item->name, "uart", 4) == 0;
    if (item->kind != TL_ITEM_SOFTWARE || (!console && !tl_soft_prints(item)) || item->n == 0)
        return 0;
    for (uint32_t i = 1; i < item->n; i++)
        if (item->data[i])
            return 0;
    return item->data[0] >= ' ' && item->data[0] <= '~' ? (char)item->data[0] : 0;
}

/* Add a row for a position that is not an instruction with known encoding. */
static int add_point(struct rows *rows, const struct tl_item *item, uint64_t position)
{
    char text[96];
    int r = tl_item_words(item, &rows->line);
    if (r < 0)
        return r;
    const uint64_t pc = tl_item_is_code(item) ? tl_item_address(item) : 0;
    if (item->kind == TL_ITEM_UNKNOWN)
        snprintf(text, sizeof(text), "(not in the image)");
    else if (item->kind == TL_ITEM_BRANCH && item->flags & TL_ITEM_HAS_PC)
        snprintf(text, sizeof(text), "branch from 0x%llx", (unsigned long long)item->pc);
    else if (item->kind == TL_ITEM_BRANCH)
        snprintf(text, sizeof(text), "branch");
    else
        snprintf(text, sizeof(text), "%s", (const char *)rows->line.p + (rows->line.n > 2 ? 2 : 0));
    const char c = character_of(item);
    const size_t n = strlen(text);
    if (c)
        snprintf(text + n, sizeof(text) - n, " '%c'", c);
    return add_row(rows, position, pc, "", text);
}

static int add_items(struct rows *rows, const struct tl_walk *walk)
{
    int r = TL_OK;
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        const struct tl_item *item = &walk->items[i];
        r = add_missing(rows, walk->positions[i]);
        if (r < 0)
            break;
        if (item->kind == TL_ITEM_BLOCK)
            r = add_block(rows, item, walk->positions[i]);
        else if (tl_item_is_point(rows->cut->lane->protocol, item->kind))
            r = add_point(rows, item, walk->positions[i]);
        else
            r = add_event(rows, item);
        if (r >= 0) /* disassembling is slow: about 10 us per row */
            r = tl_cancel_check();
    }
    return r;
}

static int add_rows(struct rows *rows, uint64_t from, uint64_t to, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, rows->cut, from, to);
    walk.range.tail = false;
    bool begun = false;
    int r = TL_OK;
    while (r >= 0 && (r = tl_cut_walk_next(&walk, fail)) >= 0) {
        if (!begun)
            rows->now = walk.walk.now;
        begun = true;
        r = add_items(rows, &walk.walk);
    }
    tl_cut_walk_end(&walk);
    return r == TL_EOF ? add_missing(rows, to) : r;
}

int tl_lake_insns(struct tl_lake *lake, const char *trace, const char *stream, uint64_t from,
                  uint32_t count, tl_insn_sink *sink, void *context, struct tl_fail *fail)
{
    struct tl_cut cut;
    if (count > ROWS_MAX)
        return tl_fail_set(fail, TL_USAGE, "at most %u rows at once", ROWS_MAX);
    int r = tl_cut_open_outlined(&cut, lake, trace, stream, fail);
    if (r < 0)
        return r;
    struct rows rows = {
        .cut = &cut, .image = tl_gen_image(cut.gen), .sink = sink, .context = context};
    if (from > cut.end)
        from = cut.end;
    rows.next = from;
    const uint64_t to = count < cut.end - from ? from + count : cut.end;
    r = tl_places_init(&rows.places, cut.gen);
    if (r >= 0)
        r = tl_scale_open(&rows.time, &cut, TL_SCALE_TIME, false, from, to, fail);
    if (r >= 0)
        r = add_rows(&rows, from, to, fail);
    tl_scale_close(&rows.time);
    tl_places_fini(&rows.places);
    for (size_t i = 0; i < TL_ISA_COUNT; i++)
        tl_disasm_free(rows.disasm[i]);
    tl_buf_fini(&rows.events);
    tl_buf_fini(&rows.line);
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
