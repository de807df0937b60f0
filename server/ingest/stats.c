/* SPDX-License-Identifier: MIT */
/* Exact statistics of a range: every instruction of it is looked at. */
#include "ingest/jsontext.h"
#include "ingest/query.h"

#include <stdio.h>
#include <stdlib.h>

#define TOP_FUNCTIONS 50
#define MODES         16

enum mix {
    MIX_PLAIN,
    MIX_BRANCH,
    MIX_CONDITIONAL,
    MIX_CALL,
    MIX_RETURN,
    MIX_INDIRECT,
    MIX_ERET,
    MIX_TRAP,
    MIX_SYNC,
    MIX_UNKNOWN,
    MIX_KINDS
};

static const char *const mix_names[MIX_KINDS] = {
    "plain",   "branch",   "conditional branch", "call",
    "return",  "indirect", "exception return",   "trap",
    "barrier", "unknown",
};

struct function_count {
    uint64_t insns, calls;
};

struct stats {
    const struct tl_image *image;
    uint64_t insns, taken;
    uint64_t mix[MIX_KINDS];
    uint64_t kinds[TL_ITEM_KINDS];
    uint64_t gaps[TL_GAP_KINDS];
    struct {
        uint64_t mode, insns;
    } modes[MODES];
    size_t n_modes;
    struct function_count *functions; /* by symbol index, the last one for none */
    size_t n_functions;
    bool calls_told; /* by the trace; else a function is called where it is entered at its start */
    uint64_t mode;
    bool has_mode;
};

static enum mix classify(const struct tl_insn *insn)
{
    switch (insn->kind) {
    case TL_INSN_BRANCH:
        return insn->link ? MIX_CALL : insn->conditional ? MIX_CONDITIONAL : MIX_BRANCH;
    case TL_INSN_INDIRECT:
        return insn->link ? MIX_CALL : insn->is_return ? MIX_RETURN : MIX_INDIRECT;
    case TL_INSN_RETURN_EX:
        return MIX_ERET;
    case TL_INSN_TRAP:
        return MIX_TRAP;
    case TL_INSN_SYNC:
    case TL_INSN_WAIT:
        return MIX_SYNC;
    default:
        return MIX_PLAIN;
    }
}

static struct function_count *count_of(struct stats *s, uint32_t function)
{
    return &s->functions[function < s->n_functions - 1 ? function : s->n_functions - 1];
}

static uint32_t function_at(const struct stats *s, uint64_t pc)
{
    const int64_t i = s->image ? tl_image_symbol_index(s->image, pc) : -1;
    return i < 0 ? TL_NO_FUNCTION : (uint32_t)i;
}

static void count_function(struct stats *s, uint32_t function, uint64_t n, uint64_t pc)
{
    const struct tl_symbol *symbol = s->image ? tl_image_symbol_at(s->image, pc) : NULL;
    struct function_count *count = count_of(s, function);
    count->insns += n;
    count->calls += !s->calls_told && symbol && symbol->address == pc;
}

static void count_mode(struct stats *s, uint64_t n)
{
    if (!s->has_mode)
        return;
    size_t i = 0;
    while (i < s->n_modes && s->modes[i].mode != s->mode)
        i++;
    if (i == MODES)
        return;
    if (i == s->n_modes)
        s->modes[s->n_modes++].mode = s->mode;
    s->modes[i].insns += n;
}

static void count_block(struct stats *s, const struct tl_item *item)
{
    static const struct tl_isa_options options = {.arch_major = 9, .arch_minor = 9, .profile = 'A'};
    const struct tl_block *b = item->block;
    struct tl_block_walk walk;
    tl_block_walk_begin(&walk, item);
    while (tl_block_walk_next(&walk)) {
        struct tl_insn insn = {0};
        const int r = tl_insn_decode((enum tl_isa)b->isa, &options, walk.pc, walk.code, &insn);
        s->mix[r < 0 ? MIX_UNKNOWN : classify(&insn)]++;
    }
    count_function(s, b->function, item->n, b->pc);
    s->insns += item->n;
    s->taken += item->flags & TL_ITEM_TAKEN ? 1 : 0;
    count_mode(s, item->n);
}

static void count_item(struct stats *s, const struct tl_item *item, bool point)
{
    s->kinds[item->kind]++;
    if (item->kind == TL_ITEM_GAP && item->sub < TL_GAP_KINDS)
        s->gaps[item->sub]++;
    if (item->kind == TL_ITEM_MODE) {
        s->mode = item->value;
        s->has_mode = true;
    }
    s->taken += item->kind == TL_ITEM_BRANCH;
    if (s->calls_told && (item->kind == TL_ITEM_BRANCH || item->kind == TL_ITEM_TARGET) &&
        item->flags & TL_ITEM_CALL)
        count_of(s, function_at(s, item->value))->calls++;
    if (!point)
        return;
    s->insns++;
    s->mix[MIX_UNKNOWN] += item->kind == TL_ITEM_UNKNOWN;
    if (item->kind == TL_ITEM_SOFTWARE)
        return;
    const uint64_t pc = tl_item_address(item);
    count_function(s, function_at(s, pc), 1, pc);
    count_mode(s, 1);
}

static int count_cut(struct stats *s, const struct tl_cut *cut, uint64_t from, uint64_t to,
                     struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, cut, from, to);
    bool begun = false;
    int r;
    while ((r = tl_cut_walk_next(&walk, fail)) >= 0) {
        tl_walk_functions(&walk.walk, s->image);
        if (!begun) {
            s->mode = walk.walk.now.mode;
            s->has_mode = walk.walk.now.has_mode;
            begun = true;
        }
        for (size_t i = 0; i < walk.walk.n; i++) {
            const struct tl_item *item = &walk.walk.items[i];
            if (item->kind == TL_ITEM_BLOCK)
                count_block(s, item);
            else
                count_item(s, item, tl_item_is_point(cut->lane->protocol, item->kind));
        }
    }
    tl_cut_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

struct ranked {
    uint64_t insns;
    size_t i;
};

static int by_insns(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->insns != y->insns)
        return x->insns > y->insns ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int add_function(const struct stats *s, size_t i, bool first, struct tl_buf *out)
{
    size_t n = 0;
    const struct tl_symbol *symbols = s->image ? tl_image_symbols(s->image, &n) : NULL;
    int r = tl_buf_printf(out, "%s\n{\"name\":", first ? "" : ",");
    if (r >= 0)
        r = tl_json_text(out, i < n ? symbols[i].name : "(no symbol)");
    if (r >= 0)
        r = tl_buf_printf(out, ",\"pc\":\"0x%llx\",\"insns\":%llu,\"calls\":%llu}",
                          i < n ? (unsigned long long)symbols[i].address : 0,
                          (unsigned long long)s->functions[i].insns,
                          (unsigned long long)s->functions[i].calls);
    return r;
}

static int add_functions(const struct stats *s, struct tl_buf *out)
{
    struct ranked *ranked = calloc(s->n_functions, sizeof(*ranked));
    if (!ranked)
        return TL_NOMEM;
    size_t n = 0;
    for (size_t i = 0; i < s->n_functions; i++)
        if (s->functions[i].insns > 0 || s->functions[i].calls > 0)
            ranked[n++] = (struct ranked){s->functions[i].insns, i};
    qsort(ranked, n, sizeof(*ranked), by_insns);
    int r = tl_buf_printf(out, ",\"functions\":[");
    for (size_t i = 0; i < n && i < TOP_FUNCTIONS && r >= 0; i++)
        r = add_function(s, ranked[i].i, i == 0, out);
    free(ranked);
    return r < 0 ? r : tl_buf_add(out, "]", 1);
}

/* {"name":count,…} of all counts that are not 0. */
static int add_counts(struct tl_buf *out, const char *title, const char *(*name)(unsigned),
                      const uint64_t *counts, unsigned n)
{
    bool any = false;
    int r = tl_buf_printf(out, ",\n\"%s\":{", title);
    for (unsigned i = 0; i < n && r >= 0; i++) {
        const char *text = counts[i] > 0 ? name(i) : NULL;
        if (!text)
            continue;
        r = tl_buf_printf(out, "%s\"%s\":%llu", any ? "," : "", text,
                          (unsigned long long)counts[i]);
        any = true;
    }
    return r < 0 ? r : tl_buf_add(out, "}", 1);
}

static const char *mix_name(unsigned i)
{
    return mix_names[i];
}

static const char *gap_name(unsigned i)
{
    return tl_gap_name((enum tl_gap)i);
}

static int add_modes(const struct stats *s, struct tl_buf *out)
{
    int r = tl_buf_printf(out, ",\n\"modes\":{");
    for (size_t i = 0; i < s->n_modes && r >= 0; i++) {
        char text[32];
        r = tl_buf_printf(out, "%s\"%s\":%llu", i > 0 ? "," : "",
                          tl_mode_text(s->modes[i].mode, text),
                          (unsigned long long)s->modes[i].insns);
    }
    return r < 0 ? r : tl_buf_add(out, "}", 1);
}

static int write_json(const struct stats *s, uint64_t from, uint64_t to, struct tl_buf *out)
{
    int r = tl_buf_printf(out, "{\"from\":%llu,\"to\":%llu,\"insns\":%llu,\"taken\":%llu",
                          (unsigned long long)from, (unsigned long long)to,
                          (unsigned long long)s->insns, (unsigned long long)s->taken);
    if (r >= 0)
        r = add_functions(s, out);
    if (r >= 0)
        r = add_counts(out, "mix", mix_name, s->mix, MIX_KINDS);
    if (r >= 0)
        r = add_modes(s, out);
    if (r >= 0)
        r = add_counts(out, "items", tl_item_kind_name, s->kinds, TL_ITEM_KINDS);
    if (r >= 0)
        r = add_counts(out, "gaps", gap_name, s->gaps, TL_GAP_KINDS);
    return r < 0 ? r : tl_buf_add(out, "}\n", 2);
}

int tl_lake_stats(struct tl_lake *lake, const char *trace, const char *stream, uint64_t from,
                  uint64_t to, struct tl_buf *json, struct tl_fail *fail)
{
    struct tl_cut cut;
    int r = tl_cut_open(&cut, lake, trace, stream, fail);
    if (r < 0)
        return r;
    const bool whole = to >= cut.end;
    r = tl_cut_resolve(&cut, TL_UNIT_INSN, from, to, &from, &to, fail);
    struct stats s = {.image = tl_gen_image(cut.gen),
                      .calls_told = r >= 0 && cut.lane->protocol == TL_PROTO_OSD_CTM};
    size_t symbols = 0;
    if (s.image)
        tl_image_symbols(s.image, &symbols);
    s.n_functions = symbols + 1;
    s.functions = calloc(s.n_functions, sizeof(*s.functions));
    if (r >= 0 && !s.functions)
        r = TL_NOMEM;
    if (r >= 0)
        r = count_cut(&s, &cut, from, whole ? UINT64_MAX : to, fail);
    if (r >= 0)
        r = write_json(&s, from, to, json);
    free(s.functions);
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

/* ---- the function table --------------------------------------------------------------------- */

int tl_lake_functions(struct tl_lake *lake, const char *id, struct tl_buf *json,
                      struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no trace %.64s", id);
    struct tl_gen *gen = tl_trace_serving(trace);
    tl_trace_put(trace);
    const struct tl_image *image = tl_gen_image(gen);
    size_t n = 0;
    const struct tl_symbol *symbols = image ? tl_image_symbols(image, &n) : NULL;
    int r = tl_buf_add(json, "[", 1);
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = tl_buf_printf(json, "%s\n{\"id\":%zu,\"name\":", i > 0 ? "," : "", i);
        if (r >= 0)
            r = tl_json_text(json, symbols[i].name);
        if (r >= 0)
            r = tl_buf_printf(json, ",\"pc\":\"0x%llx\"}", (unsigned long long)symbols[i].address);
    }
    if (r >= 0)
        r = tl_buf_add(json, "]\n", 2);
    tl_gen_put(gen);
    return r < 0 ? tl_fail_set(fail, r, "no memory") : TL_OK;
}
