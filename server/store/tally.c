/* SPDX-License-Identifier: MIT */
#include "store/tally.h"

#include <stdlib.h>

enum tl_mix tl_mix_at(enum tl_isa isa, uint64_t pc, struct tl_bytes code)
{
    static const struct tl_isa_options options = {.arch_major = 9, .arch_minor = 9, .profile = 'A'};
    struct tl_insn insn = {0};
    if (tl_insn_decode(isa, &options, pc, code, &insn) < 0)
        return TL_MIX_UNKNOWN;
    switch (insn.kind) {
    case TL_INSN_BRANCH:
        return insn.link ? TL_MIX_CALL : insn.conditional ? TL_MIX_CONDITIONAL : TL_MIX_BRANCH;
    case TL_INSN_INDIRECT:
        return insn.link ? TL_MIX_CALL : insn.is_return ? TL_MIX_RETURN : TL_MIX_INDIRECT;
    case TL_INSN_RETURN_EX:
        return TL_MIX_ERET;
    case TL_INSN_TRAP:
        return TL_MIX_TRAP;
    case TL_INSN_SYNC:
    case TL_INSN_WAIT:
        return TL_MIX_SYNC;
    default:
        return TL_MIX_PLAIN;
    }
}

void tl_tally_fini(struct tl_tally *tally)
{
    free(tally->functions);
    *tally = (struct tl_tally){0};
}

void tl_tally_mode(struct tl_tally *tally, uint64_t mode, uint64_t n)
{
    size_t i = 0;
    while (i < tally->n_modes && tally->modes[i].mode != mode)
        i++;
    if (n == 0 || i == TL_TALLY_MODES)
        return;
    tally->modes[i].mode = mode;
    tally->modes[i].insns += n;
    tally->n_modes += i == tally->n_modes;
}

static int by_function(const void *a, const void *b)
{
    const struct tl_tally_function *x = a, *y = b;
    return (x->function > y->function) - (x->function < y->function);
}

void tl_tally_sort(struct tl_tally *tally)
{
    if (tally->n_functions > 0)
        qsort(tally->functions, tally->n_functions, sizeof(*tally->functions), by_function);
}

/* ---- counting ------------------------------------------------------------------------------ */

void tl_tallying_fini(struct tl_tallying *t)
{
    tl_tally_fini(&t->tally);
    tl_numbers_fini(&t->functions);
    *t = (struct tl_tallying){0};
}

int tl_tallying_function(struct tl_tallying *t, uint32_t function, uint64_t n, uint64_t calls)
{
    struct tl_tally *const tally = &t->tally;
    uint32_t i = tl_numbers_find(&t->functions, function);
    if (i == TL_NO_NUMBER) {
        i = t->functions.n;
        if (tl_grow(&tally->functions, &tally->cap_functions, i + 1, sizeof(*tally->functions)) <
                0 ||
            tl_numbers_add(&t->functions, function) < 0)
            return TL_NOMEM;
        tally->functions[i] = (struct tl_tally_function){.function = function};
        tally->n_functions = i + 1;
    }
    tally->functions[i].insns += n;
    tally->functions[i].calls += calls;
    return TL_OK;
}

/* The kind of the instruction at byte `*at` of the block; goes on to the next one. False: there is
 * none. */
static bool next_mix(const struct tl_block *block, uint32_t *at, enum tl_mix *mix)
{
    struct tl_insn insn = {0};
    if (!block->code || *at >= block->size)
        return false;
    const struct tl_bytes code = {block->code + *at, block->size - *at};
    tl_block_insn(block, *at, &insn);
    *mix = tl_mix_at((enum tl_isa)block->isa, block->pc + *at, code);
    *at = insn.size > 0 ? *at + insn.size : block->size;
    return true;
}

enum tl_mix tl_mix_of(const struct tl_block *block)
{
    static const uint8_t mixes[] = {[TL_LEAVE_INDIRECT] = TL_MIX_INDIRECT,
                                    [TL_LEAVE_CALL] = TL_MIX_CALL,
                                    [TL_LEAVE_RETURN] = TL_MIX_RETURN,
                                    [TL_LEAVE_EXCEPTION_RETURN] = TL_MIX_ERET};
    if (!block->traps && block->leave == TL_LEAVE_JUMP)
        return block->always ? TL_MIX_BRANCH : TL_MIX_CONDITIONAL;
    if (!block->traps && block->leave != TL_LEAVE_STRAIGHT)
        return (enum tl_mix)mixes[block->leave];
    enum tl_mix mix = TL_MIX_PLAIN;
    uint32_t at = 0;
    for (uint32_t i = 0; i + 1 < block->n && mix == TL_MIX_PLAIN; i++)
        if (!next_mix(block, &at, &mix))
            break;
    const bool plain =
        mix == TL_MIX_PLAIN && at + block->last_size == block->size && next_mix(block, &at, &mix);
    return plain ? mix : TL_MIX_KINDS;
}

void tl_tallying_code(struct tl_tallying *t, const struct tl_block *block, enum tl_mix mix,
                      uint32_t at, uint64_t n, bool last)
{
    if (mix < TL_MIX_KINDS)
        t->tally.mix[mix] += last;
    else
        for (; n > 0 && next_mix(block, &at, &mix); n--)
            t->tally.mix[mix]++;
}

static void add_mode(struct tl_tallying *t, uint64_t insns)
{
    if (t->has_mode)
        tl_tally_mode(&t->tally, t->mode, insns - t->mode_from);
    t->mode_from = insns;
}

void tl_tallying_mode(struct tl_tallying *t, uint64_t mode, uint64_t insns)
{
    add_mode(t, insns);
    t->mode = mode;
    t->has_mode = true;
}

void tl_tallying_end(struct tl_tallying *t, uint64_t insns, uint64_t markers, struct tl_tally *out)
{
    struct tl_tally *const tally = &t->tally;
    uint64_t *const mix = tally->mix;
    uint64_t others = 0;
    add_mode(t, insns);
    for (size_t i = TL_MIX_PLAIN + 1; i < TL_MIX_KINDS; i++)
        others += mix[i];
    mix[TL_MIX_PLAIN] = markers - others;
    mix[TL_MIX_UNKNOWN] += tally->kinds[TL_ITEM_UNKNOWN];
    tl_tally_sort(tally);
    tally->told = !t->untold;
    if (!tally->told)
        tl_tally_fini(tally);
    *out = *tally;
    *tally = (struct tl_tally){0};
}

static void numbers_state(uint64_t *p, size_t n, struct tl_state *s)
{
    for (size_t i = 0; i < n; i++)
        tl_state_u64(s, &p[i]);
}

static void functions_state(struct tl_tallying *t, struct tl_state *s)
{
    struct tl_tally *const tally = &t->tally;
    size_t n = tally->n_functions;
    tl_state_size(s, &n, s->in.n);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        struct tl_tally_function f = {0};
        if (!tl_state_loads(s))
            f = tally->functions[i];
        tl_state_u32(s, &f.function);
        tl_state_u64(s, &f.insns);
        tl_state_u64(s, &f.calls);
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, tl_tallying_function(t, f.function, f.insns, f.calls));
    }
}

void tl_tallying_state(struct tl_tallying *t, struct tl_state *s)
{
    struct tl_tally *const tally = &t->tally;
    tl_state_u64(s, &tally->insns);
    tl_state_u64(s, &tally->taken);
    tl_state_u64(s, &tally->reads);
    tl_state_u64(s, &tally->writes);
    numbers_state(tally->records, TL_TALLY_RECORDS, s);
    numbers_state(tally->mix, TL_MIX_KINDS, s);
    numbers_state(tally->kinds, TL_ITEM_KINDS, s);
    numbers_state(tally->gaps, TL_GAP_KINDS, s);
    tl_state_size(s, &tally->n_modes, TL_TALLY_MODES);
    for (size_t i = 0; i < tally->n_modes; i++) {
        tl_state_u64(s, &tally->modes[i].mode);
        tl_state_u64(s, &tally->modes[i].insns);
    }
    functions_state(t, s);
    tl_state_bool(s, &t->untold);
    tl_state_u64(s, &t->mode);
    tl_state_u64(s, &t->mode_from);
    tl_state_bool(s, &t->has_mode);
}

/* ---- as bytes ------------------------------------------------------------------------------ */

static int encode_numbers(const uint64_t *p, size_t n, struct tl_buf *out)
{
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = tl_varint_add(out, p[i]);
    return r;
}

/* What a tally begins with. */
enum { UNTOLD, TOLD, COUNTED };

int tl_tally_encode(const struct tl_tally *tally, struct tl_buf *out)
{
    uint32_t last = 0;
    int r = tl_varint_add(out, !tally->told ? UNTOLD : tally->counted ? COUNTED : TOLD);
    if (r < 0 || !tally->told)
        return r;
    const uint64_t counted[] = {tally->insns, tally->taken, tally->reads, tally->writes};
    if (tally->counted)
        r = encode_numbers(counted, 4, out);
    if (r >= 0 && tally->counted)
        r = encode_numbers(tally->records, TL_TALLY_RECORDS, out);
    if (r >= 0)
        r = encode_numbers(tally->mix, TL_MIX_KINDS, out);
    if (r >= 0)
        r = encode_numbers(tally->kinds, TL_ITEM_KINDS, out);
    if (r >= 0)
        r = encode_numbers(tally->gaps, TL_GAP_KINDS, out);
    if (r >= 0)
        r = tl_varint_add(out, tally->n_modes);
    for (size_t i = 0; i < tally->n_modes && r >= 0; i++)
        r = encode_numbers((const uint64_t[]){tally->modes[i].mode, tally->modes[i].insns}, 2, out);
    if (r >= 0)
        r = tl_varint_add(out, tally->n_functions);
    for (size_t i = 0; i < tally->n_functions && r >= 0; i++) {
        const struct tl_tally_function *f = &tally->functions[i];
        r = encode_numbers((const uint64_t[]){f->function - last, f->insns, f->calls}, 3, out);
        last = f->function;
    }
    return r;
}

static void read_numbers(uint64_t *p, size_t n, struct tl_varint_reader *in)
{
    for (size_t i = 0; i < n; i++)
        p[i] = tl_varint_get(in);
}

int tl_tally_read(struct tl_tally *out, struct tl_varint_reader *in)
{
    const uint64_t begin = tl_varint_get(in);
    *out = (struct tl_tally){.told = begin != UNTOLD, .counted = begin == COUNTED};
    if (in->bad || begin > COUNTED)
        return TL_BAD;
    if (!out->told)
        return TL_OK;
    if (out->counted) {
        uint64_t counted[4];
        read_numbers(counted, 4, in);
        out->insns = counted[0];
        out->taken = counted[1];
        out->reads = counted[2];
        out->writes = counted[3];
        read_numbers(out->records, TL_TALLY_RECORDS, in);
    }
    read_numbers(out->mix, TL_MIX_KINDS, in);
    read_numbers(out->kinds, TL_ITEM_KINDS, in);
    read_numbers(out->gaps, TL_GAP_KINDS, in);
    out->n_modes = tl_varint_get(in);
    if (out->n_modes > TL_TALLY_MODES)
        return TL_BAD;
    for (size_t i = 0; i < out->n_modes; i++) {
        out->modes[i].mode = tl_varint_get(in);
        out->modes[i].insns = tl_varint_get(in);
    }
    const uint64_t n = tl_varint_get(in);
    if (in->bad || n > (uint64_t)(in->end - in->p) / 3)
        return TL_BAD;
    if (n > 0 && tl_grow(&out->functions, &out->cap_functions, n, sizeof(*out->functions)) < 0)
        return TL_NOMEM;
    for (uint32_t last = 0; out->n_functions < n;) {
        struct tl_tally_function *const f = &out->functions[out->n_functions++];
        f->function = last += (uint32_t)tl_varint_get(in);
        f->insns = tl_varint_get(in);
        f->calls = tl_varint_get(in);
    }
    return in->bad ? TL_BAD : TL_OK;
}
