/* SPDX-License-Identifier: MIT */
/*
 * Counts statistics by block and mode while a shard is built, and encodes them. The kinds of a
 * block's instructions are determined once, as a block is executed many times.
 */
#include "shard/shard_stats.h"

#include "stf/record.h"

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

/* Types of records that are counted, in order of their descriptors. */
static const uint8_t record_types[TL_STATS_RECORDS] = {
    TL_STF_INST_REG,           TL_STF_INST_READY_REG,
    TL_STF_PAGE_TABLE_WALK,    TL_STF_INST_MEM_ACCESS,
    TL_STF_INST_MEM_CONTENT,   TL_STF_BUS_MASTER_ACCESS,
    TL_STF_BUS_MASTER_CONTENT, TL_STF_EVENT,
    TL_STF_INST_MICROOP,
};

int tl_stats_record(uint8_t type)
{
    const uint8_t *const found = memchr(record_types, type, TL_STATS_RECORDS);
    return found ? (int)(found - record_types) : -1;
}

const char *tl_stats_record_name(unsigned i)
{
    return tl_stf_type_name(record_types[i]);
}

void tl_shard_stats_fini(struct tl_shard_stats *stats)
{
    free(stats->functions);
    *stats = (struct tl_shard_stats){0};
}

void tl_shard_stats_mode(struct tl_shard_stats *stats, uint64_t mode, uint64_t n)
{
    size_t i = 0;
    while (i < stats->n_modes && stats->modes[i].mode != mode)
        i++;
    if (n == 0 || i == TL_STATS_MODES)
        return;
    stats->modes[i].mode = mode;
    stats->modes[i].insns += n;
    stats->n_modes += i == stats->n_modes;
}

static int by_function(const void *a, const void *b)
{
    const struct tl_shard_stats_function *x = a, *y = b;
    return (x->function > y->function) - (x->function < y->function);
}

void tl_shard_stats_sort(struct tl_shard_stats *stats)
{
    if (stats->n_functions > 0)
        qsort(stats->functions, stats->n_functions, sizeof(*stats->functions), by_function);
}

/* ---- counting ------------------------------------------------------------------------------ */

void tl_stats_counter_fini(struct tl_stats_counter *t)
{
    tl_shard_stats_fini(&t->stats);
    tl_numbers_fini(&t->functions);
    *t = (struct tl_stats_counter){0};
}

int tl_stats_counter_function(struct tl_stats_counter *t, uint32_t function, uint64_t n,
                              uint64_t calls)
{
    struct tl_shard_stats *const stats = &t->stats;
    uint32_t i = tl_numbers_find(&t->functions, function);
    if (i == TL_NO_NUMBER) {
        i = t->functions.n;
        if (tl_grow(&stats->functions, &stats->cap_functions, i + 1, sizeof(*stats->functions)) <
                0 ||
            tl_numbers_add(&t->functions, function) < 0)
            return TL_NOMEM;
        stats->functions[i] = (struct tl_shard_stats_function){.function = function};
        stats->n_functions = i + 1;
    }
    stats->functions[i].insns += n;
    stats->functions[i].calls += calls;
    return TL_OK;
}

/* Class of the instruction at byte `*at` of the block; advances to the next one. False: there is
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

void tl_stats_counter_code(struct tl_stats_counter *t, const struct tl_block *block,
                           enum tl_mix mix, uint32_t at, uint64_t n, bool last)
{
    if (mix < TL_MIX_KINDS)
        t->stats.mix[mix] += last;
    else
        for (; n > 0 && next_mix(block, &at, &mix); n--)
            t->stats.mix[mix]++;
}

static void add_mode(struct tl_stats_counter *t, uint64_t insns)
{
    if (t->has_mode)
        tl_shard_stats_mode(&t->stats, t->mode, insns - t->mode_from);
    t->mode_from = insns;
}

void tl_stats_counter_mode(struct tl_stats_counter *t, uint64_t mode, uint64_t insns)
{
    add_mode(t, insns);
    t->mode = mode;
    t->has_mode = true;
}

void tl_stats_counter_end(struct tl_stats_counter *t, uint64_t insns, uint64_t markers,
                          struct tl_shard_stats *out)
{
    struct tl_shard_stats *const stats = &t->stats;
    uint64_t *const mix = stats->mix;
    uint64_t others = 0;
    add_mode(t, insns);
    for (size_t i = TL_MIX_PLAIN + 1; i < TL_MIX_KINDS; i++)
        others += mix[i];
    mix[TL_MIX_PLAIN] = markers - others;
    mix[TL_MIX_UNKNOWN] += stats->kinds[TL_ITEM_UNKNOWN];
    tl_shard_stats_sort(stats);
    stats->reported = !t->unreported;
    if (!stats->reported)
        tl_shard_stats_fini(stats);
    *out = *stats;
    *stats = (struct tl_shard_stats){0};
}

static void numbers_state(uint64_t *p, size_t n, struct tl_state *s)
{
    for (size_t i = 0; i < n; i++)
        tl_state_u64(s, &p[i]);
}

static void functions_state(struct tl_stats_counter *t, struct tl_state *s)
{
    struct tl_shard_stats *const stats = &t->stats;
    size_t n = stats->n_functions;
    tl_state_size(s, &n, s->in.n);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        struct tl_shard_stats_function f = {0};
        if (!tl_state_loads(s))
            f = stats->functions[i];
        tl_state_u32(s, &f.function);
        tl_state_u64(s, &f.insns);
        tl_state_u64(s, &f.calls);
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, tl_stats_counter_function(t, f.function, f.insns, f.calls));
    }
}

void tl_stats_counter_state(struct tl_stats_counter *t, struct tl_state *s)
{
    struct tl_shard_stats *const stats = &t->stats;
    tl_state_u64(s, &stats->insns);
    tl_state_u64(s, &stats->taken);
    tl_state_u64(s, &stats->reads);
    tl_state_u64(s, &stats->writes);
    numbers_state(stats->records, TL_STATS_RECORDS, s);
    numbers_state(stats->mix, TL_MIX_KINDS, s);
    numbers_state(stats->kinds, TL_ITEM_KINDS, s);
    numbers_state(stats->gaps, TL_GAP_KINDS, s);
    tl_state_size(s, &stats->n_modes, TL_STATS_MODES);
    for (size_t i = 0; i < stats->n_modes; i++) {
        tl_state_u64(s, &stats->modes[i].mode);
        tl_state_u64(s, &stats->modes[i].insns);
    }
    functions_state(t, s);
    tl_state_bool(s, &t->unreported);
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

/* First value of encoded statistics: with the flag, numbers of all gaps stand there, else of the
 * first so many. */
enum { UNREPORTED, REPORTED, COUNTED, ALL_GAPS = 4, FIRST_GAPS = TL_GAP_SWITCHED_OUT };

int tl_shard_stats_encode(const struct tl_shard_stats *stats, struct tl_buf *out)
{
    uint32_t last = 0;
    const bool all = stats->gaps[TL_GAP_SWITCHED_OUT] > 0;
    const unsigned head = (stats->counted ? COUNTED : REPORTED) | (all ? ALL_GAPS : 0);
    int r = tl_varint_add(out, stats->reported ? head : UNREPORTED);
    if (r < 0 || !stats->reported)
        return r;
    const uint64_t counted[] = {stats->insns, stats->taken, stats->reads, stats->writes};
    if (stats->counted)
        r = encode_numbers(counted, 4, out);
    if (r >= 0 && stats->counted)
        r = encode_numbers(stats->records, TL_STATS_RECORDS, out);
    if (r >= 0)
        r = encode_numbers(stats->mix, TL_MIX_KINDS, out);
    if (r >= 0)
        r = encode_numbers(stats->kinds, TL_ITEM_KINDS, out);
    if (r >= 0)
        r = encode_numbers(stats->gaps, all ? TL_GAP_KINDS : FIRST_GAPS, out);
    if (r >= 0)
        r = tl_varint_add(out, stats->n_modes);
    for (size_t i = 0; i < stats->n_modes && r >= 0; i++)
        r = encode_numbers((const uint64_t[]){stats->modes[i].mode, stats->modes[i].insns}, 2, out);
    if (r >= 0)
        r = tl_varint_add(out, stats->n_functions);
    for (size_t i = 0; i < stats->n_functions && r >= 0; i++) {
        const struct tl_shard_stats_function *f = &stats->functions[i];
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

int tl_shard_stats_read(struct tl_shard_stats *out, struct tl_varint_reader *in)
{
    const uint64_t head = tl_varint_get(in), begin = head & ~(uint64_t)ALL_GAPS;
    *out = (struct tl_shard_stats){.reported = begin != UNREPORTED, .counted = begin == COUNTED};
    if (in->bad || begin > COUNTED || head == ALL_GAPS)
        return TL_BAD;
    if (!out->reported)
        return TL_OK;
    if (out->counted) {
        uint64_t counted[4];
        read_numbers(counted, 4, in);
        out->insns = counted[0];
        out->taken = counted[1];
        out->reads = counted[2];
        out->writes = counted[3];
        read_numbers(out->records, TL_STATS_RECORDS, in);
    }
    read_numbers(out->mix, TL_MIX_KINDS, in);
    read_numbers(out->kinds, TL_ITEM_KINDS, in);
    read_numbers(out->gaps, head & ALL_GAPS ? TL_GAP_KINDS : FIRST_GAPS, in);
    out->n_modes = tl_varint_get(in);
    if (out->n_modes > TL_STATS_MODES)
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
        struct tl_shard_stats_function *const f = &out->functions[out->n_functions++];
        f->function = last += (uint32_t)tl_varint_get(in);
        f->insns = tl_varint_get(in);
        f->calls = tl_varint_get(in);
    }
    return in->bad ? TL_BAD : TL_OK;
}
