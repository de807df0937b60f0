/* SPDX-License-Identifier: MIT */
/*
 * Matches instructions by mnemonic or encoding, and remembers results by encoding and block.
 * Disassembly takes far longer than following the flow, and a program executes the same few
 * instructions again and again.
 */
#include "query/opcodes.h"

#include "base/hash.h"
#include "base/pattern.h"
#include "shard/codeset.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMO_MAX   (1u << 20) /* maximum entries; then the cache is cleared */
#define CODE_BYTES 15

static const struct tl_isa_options any_core = {.arch_major = 9, .arch_minor = 9, .profile = 'A'};

static void memo_fini(struct tl_opcode_memo *memo)
{
    tl_numbers_fini(&memo->numbers);
    free(memo->matches);
}

void tl_opcodes_fini(struct tl_opcodes *o)
{
    for (size_t i = 0; i < TL_ISA_COUNT; i++)
        tl_disasm_free(o->disasm[i]);
    memo_fini(&o->words);
    memo_fini(&o->places);
    memo_fini(&o->blocks);
}

/* The cached value, or < 0. */
static int recall(const struct tl_opcode_memo *memo, uint64_t key)
{
    const uint32_t number = tl_numbers_find(&memo->numbers, key);
    return number == TL_NO_NUMBER ? -1 : memo->matches[number];
}

/* Best effort. */
static void remember(struct tl_opcode_memo *memo, uint64_t key, unsigned what)
{
    if (memo->numbers.n >= MEMO_MAX)
        tl_numbers_reset(&memo->numbers);
    const uint32_t n = memo->numbers.n;
    if (tl_grow(&memo->matches, &memo->cap, n + 1, 1) >= 0 &&
        tl_numbers_add(&memo->numbers, key) >= 0)
        memo->matches[n] = (uint8_t)what;
}

/* ---- one instruction ------------------------------------------------------------------------ */

void tl_encoding_text(enum tl_isa isa, struct tl_bytes code, char out[static 33])
{
    const bool is_x86 = isa == TL_ISA_X64 || isa == TL_ISA_X32 || isa == TL_ISA_X16;
    char *p = out;
    *p = '\0';
    if (code.n == 2 && !is_x86)
        snprintf(p, 5, "%04x", tl_le16(code.p));
    else if (code.n == 4 && isa == TL_ISA_T32)
        snprintf(p, 9, "%04x%04x", tl_le16(code.p), tl_le16(code.p + 2));
    else if (code.n == 4 && !is_x86)
        snprintf(p, 9, "%08x", tl_le32(code.p));
    else
        for (size_t i = 0; i < code.n && i < 16; i++)
            p += snprintf(p, 3, "%02x", code.p[i]);
}

static bool encoding_fits(const struct tl_opcodes *o, enum tl_isa isa, struct tl_bytes code)
{
    char text[33];
    tl_encoding_text(isa, code, text);
    const char *t = text;
    const char *p = o->text;
    for (; *p && *t; p++, t++)
        if (*p != 'x' && *p != 'X' && tolower((unsigned char)*p) != *t)
            return false;
    return !*p && !*t;
}

static int mnemonic_fits(struct tl_opcodes *o, enum tl_isa isa, uint64_t pc, struct tl_bytes code)
{
    char text[480];
    if (!o->tried[isa]) {
        o->tried[isa] = true;
        if (tl_disasm_new(&o->disasm[isa], isa, NULL) < 0)
            o->disasm[isa] = NULL;
    }
    if (!o->disasm[isa])
        return TL_UNSUPPORTED;
    if (tl_disasm_text(o->disasm[isa], pc, code, text, sizeof text) < 0)
        return false;
    if (strchr(o->text, ' '))
        return strcasestr(text, o->text) != NULL;
    text[strcspn(text, " ")] = '\0';
    return tl_text_fits(o->text, text);
}

static uint64_t word_key(enum tl_isa isa, struct tl_bytes code)
{
    uint64_t key = (uint64_t)isa << 8 | code.n;
    if (code.n <= 4) {
        for (size_t i = 0; i < code.n; i++)
            key = key << 8 | code.p[i];
        return key;
    }
    return tl_fnv(key, code.p, code.n) | UINT64_C(1) << 63;
}

int tl_opcodes_match(struct tl_opcodes *o, enum tl_isa isa, uint64_t pc, struct tl_bytes code)
{
    /* Operands depend on the branch target; mnemonics and encodings do not. */
    const bool by_place = !o->encoding && strchr(o->text, ' ');
    const uint64_t key = word_key(isa, code) ^ (by_place ? tl_fnv(TL_FNV, &pc, sizeof pc) : 0);
    int known = recall(&o->words, key);
    if (known < 0) {
        known = o->encoding ? encoding_fits(o, isa, code) : mnemonic_fits(o, isa, pc, code);
        if (known >= 0)
            remember(&o->words, key, (unsigned)known);
    }
    return known;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static uint64_t block_key(const struct tl_block *block, uint32_t n)
{
    uint64_t key = block->pc * 0x9e3779b97f4a7c15u;
    key ^= key >> 29;
    key += ((uint64_t)n << 8 | block->isa) * 0xbf58476d1ce4e5b9u;
    return key ^ key >> 32;
}

int tl_opcodes_block(const struct tl_opcodes *o, const struct tl_block *block, uint32_t n)
{
    return recall(&o->blocks, block_key(block, n));
}

void tl_opcodes_remember(struct tl_opcodes *o, const struct tl_block *block, uint32_t n,
                         uint32_t count)
{
    remember(&o->blocks, block_key(block, n), count < TL_OPCODES_MANY ? count : TL_OPCODES_MANY);
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* Length of the image's instruction at `pc` in bytes << 1 | whether it matches; < 0: the image does
 * not contain it. */
static int look(struct tl_opcodes *o, const struct tl_image *image, enum tl_isa isa, uint64_t pc)
{
    const uint64_t key = pc << 4 | isa;
    const int known = recall(&o->places, key);
    if (known >= 0)
        return known;
    struct tl_bytes code = tl_image_at(image, TL_SPACE_ANY, pc);
    struct tl_insn insn;
    code.n = code.n < CODE_BYTES ? code.n : CODE_BYTES;
    if (code.n == 0 || tl_insn_decode(isa, &any_core, pc, code, &insn) < 0 || insn.size == 0 ||
        insn.size > code.n)
        return -1;
    code.n = insn.size;
    const int fits = tl_opcodes_match(o, isa, pc, code);
    if (fits < 0)
        return -1;
    remember(&o->places, key, (unsigned)insn.size << 1 | (unsigned)fits);
    return insn.size << 1 | fits;
}

static bool run_promising(struct tl_opcodes *o, const struct tl_image *image, enum tl_isa isa,
                          uint64_t from, uint64_t to)
{
    while (from < to) {
        const int known = look(o, image, isa, from);
        if (known < 0 || known & 1)
            return true;
        from += (unsigned)known >> 1;
    }
    return false;
}

/* Can a chunk whose core is in `isa` also contain code of `other`? The interpretation of bytes
 * differs only between Arm's instruction sets. */
static bool may_run(enum tl_isa isa, bool changes, enum tl_isa other)
{
    return isa == other || (changes && isa <= TL_ISA_T32 && other <= TL_ISA_T32);
}

/* Have short gaps between runs of code been merged, so that there may be data inside? Then no short
 * gap is left. */
static bool has_closed_gaps(const uint64_t *edges, uint32_t n)
{
    for (uint32_t i = 1; i + 1 < n; i += 2)
        if (edges[i + 1] - edges[i] < 4)
            return false;
    return n > 2;
}

bool tl_opcodes_promising(struct tl_opcodes *o, const struct tl_image *image,
                          const struct tl_shard_index *index, const struct tl_chunk *chunk)
{
    static const enum tl_isa sets[] = {TL_ISA_A64, TL_ISA_A32, TL_ISA_T32, TL_ISA_RV32,
                                       TL_ISA_RV64};
    const enum tl_isa isa = (enum tl_isa)chunk->at.isa;
    const bool changes = chunk->kinds & (1u << TL_ITEM_MODE);
    /* If instructions can begin at any byte, the edges do not give their begins. */
    if (!image || chunk->n_code == UINT32_MAX || isa == TL_ISA_NONE || isa >= TL_ISA_X16)
        return true;
    const uint64_t *const edges = index->code + chunk->code;
    const bool closed = has_closed_gaps(edges, chunk->n_code);
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        if (!may_run(isa, changes, sets[k]))
            continue;
        if (closed && sets[k] != TL_ISA_A64 && sets[k] != TL_ISA_A32)
            return true;
        for (uint32_t i = 0; i + 1 < chunk->n_code; i += 2)
            if (run_promising(o, image, sets[k], edges[i] << TL_CODE_SHIFT,
                              edges[i + 1] << TL_CODE_SHIFT))
                return true;
    }
    return false;
}
