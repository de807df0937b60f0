/* SPDX-License-Identifier: MIT */
/*
 * Exact statistics of a range. Of whole sealed shards their index says what they consist of; what
 * lies in a part of a shard, or in one whose index does not say it, is looked at instruction by
 * instruction. What is known of whole shards is remembered, as far as there is room.
 */
#include "ingest/jsontext.h"
#include "ingest/query.h"
#include "stf/close.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define TOP_FUNCTIONS 50
#define MODES         16
#define MEMO          8192 /* instructions, and begins of blocks, whose nature is remembered */
#define KEEP_MAX      (32u << 20) /* bytes of what is remembered of a stream's shards */

static const char *const mix_names[TL_MIX_KINDS] = {
    "plain",   "branch",   "conditional branch", "call",
    "return",  "indirect", "exception return",   "trap",
    "barrier", "unknown",
};

/* Records of instructions that are counted, in order of their descriptors. */
static const uint8_t told_types[] = {
    TL_STF_INST_REG,           TL_STF_INST_READY_REG,
    TL_STF_PAGE_TABLE_WALK,    TL_STF_INST_MEM_ACCESS,
    TL_STF_INST_MEM_CONTENT,   TL_STF_BUS_MASTER_ACCESS,
    TL_STF_BUS_MASTER_CONTENT, TL_STF_EVENT,
    TL_STF_INST_MICROOP,
};
enum { TOLD = sizeof told_types };

struct function_count {
    uint64_t insns, calls;
};

/* All that is counted but functions. */
struct counts {
    uint64_t insns, taken;
    uint64_t reads, writes; /* memory accesses that the trace tells of */
    uint64_t told[TOLD];    /* records of told_types */
    uint64_t mix[TL_MIX_KINDS];
    uint64_t kinds[TL_ITEM_KINDS];
    uint64_t gaps[TL_GAP_KINDS];
    struct {
        uint64_t mode, insns;
    } modes[MODES];
    size_t n_modes;
};

/* What a sealed shard consists of. */
struct tl_shard_stats {
    struct counts counts;
    size_t n;
    struct {
        uint32_t function; /* as in struct stats */
        struct function_count count;
    } functions[];
};

struct insn_memo {
    uint64_t pc;
    uint32_t opcode;
    uint8_t size, isa; /* size 0: free */
    uint8_t mix;
};

struct block_memo {
    uint64_t pc;
    uint64_t mode, context; /* in which it is this function */
    uint32_t function;
    bool used, entered;
};

struct memo {
    struct insn_memo insns[MEMO];
    struct block_memo blocks[MEMO];
};

struct stats {
    const struct tl_image *image;
    struct memo *memo; /* borrowed */
    struct counts counts;
    struct function_count *functions; /* by symbol index, the last one for none */
    size_t n_functions;
    /* Blocks of the chunk that is walked, and the first that is not counted yet. */
    struct piece {
        uint32_t n, size; /* instructions and bytes */
        bool leads_away;  /* its last instruction is a call, a return or an indirect branch */
    } * pieces;
    size_t n_pieces, cap_pieces, piece;
    bool piece_ended, no_memory;
    bool calls_told; /* by the trace; else a function is called where it is entered at its start */
    struct tl_flow_now now;
};

static struct function_count *count_of(struct stats *s, uint32_t function)
{
    return &s->functions[function < s->n_functions - 1 ? function : s->n_functions - 1];
}

static void add_mode(struct counts *c, uint64_t mode, uint64_t n)
{
    size_t i = 0;
    while (i < c->n_modes && c->modes[i].mode != mode)
        i++;
    if (i == MODES)
        return;
    if (i == c->n_modes) {
        c->modes[i].mode = mode;
        c->modes[c->n_modes++].insns = 0;
    }
    c->modes[i].insns += n;
}

static void count_mode(struct stats *s, uint64_t n)
{
    if (s->now.has_mode)
        add_mode(&s->counts, s->now.mode, n);
}

static size_t memo_slot(uint64_t pc)
{
    return (size_t)(pc >> 1 ^ pc >> 14) % MEMO;
}

/* What the trace tells of the instruction besides. */
static void count_told(struct counts *c, const struct tl_walk_insn *insn)
{
    struct tl_bytes rest = insn->group;
    struct tl_stf_record record;
    while (rest.n > 0) {
        const int size = tl_stf_record_decode(insn->layout, rest, &record);
        if (size <= 0)
            return;
        if (record.type == TL_STF_INST_MEM_ACCESS) {
            c->writes += record.access.type == TL_STF_WRITE;
            c->reads += record.access.type != TL_STF_WRITE;
        }
        const uint8_t *const type = memchr(told_types, record.type, TOLD);
        if (type)
            c->told[type - told_types]++;
        rest.p += size;
        rest.n -= (size_t)size;
    }
}

/* One more instruction of the block that began behind the last one that ended any. */
static void add_to_piece(struct stats *s, uint32_t size, enum tl_mix mix)
{
    if (s->piece_ended || s->n_pieces == 0) {
        if (tl_grow(&s->pieces, &s->cap_pieces, s->n_pieces + 1, sizeof(*s->pieces)) < 0) {
            s->no_memory = true;
            return;
        }
        s->pieces[s->n_pieces++] = (struct piece){0};
    }
    s->pieces[s->n_pieces - 1].n++;
    s->pieces[s->n_pieces - 1].size += size;
    s->pieces[s->n_pieces - 1].leads_away =
        mix == TL_MIX_CALL || mix == TL_MIX_RETURN || mix == TL_MIX_INDIRECT;
    s->piece_ended = mix != TL_MIX_PLAIN;
}

static void count_insn(void *context, const struct tl_walk_insn *insn)
{
    struct stats *s = context;
    struct insn_memo *m = &s->memo->insns[memo_slot(insn->pc)];
    if (m->pc != insn->pc || m->opcode != insn->opcode || m->size != insn->size ||
        m->isa != insn->isa || m->size == 0) {
        const struct tl_bytes code = {insn->code, insn->size};
        *m = (struct insn_memo){.pc = insn->pc,
                                .opcode = insn->opcode,
                                .size = insn->size,
                                .isa = insn->isa,
                                .mix = (uint8_t)tl_mix_at((enum tl_isa)insn->isa, insn->pc, code)};
    }
    s->counts.mix[m->mix]++;
    add_to_piece(s, insn->size, (enum tl_mix)m->mix);
    count_told(&s->counts, insn);
}

/* The function at `pc`, and is that its first instruction? */
static const struct block_memo *function_at(struct stats *s, uint64_t pc)
{
    struct block_memo *m = &s->memo->blocks[memo_slot(pc)];
    const uint64_t context = s->now.context << 32 ^ s->now.vmid;
    if (m->pc != pc || m->mode != s->now.mode || m->context != context || !m->used) {
        size_t n = 0;
        const uint32_t function = tl_flow_now_function(&s->now, s->image, pc);
        const struct tl_symbol *symbol =
            function == TL_NO_FUNCTION ? NULL : &tl_image_symbols(s->image, &n)[function];
        *m = (struct block_memo){.pc = pc,
                                 .mode = s->now.mode,
                                 .context = context,
                                 .function = function,
                                 .used = true,
                                 .entered = symbol && symbol->address == pc};
    }
    return m;
}

/* Count `n` instructions that begin at `pc`. */
static void count_at(struct stats *s, uint64_t pc, uint64_t n)
{
    const struct block_memo *m = function_at(s, pc);
    struct function_count *count = count_of(s, m->function);
    count->insns += n;
    count->calls += !s->calls_told && m->entered;
}

/* A walk joins blocks where the flow went straight on; each counts where it begins. */
static void count_block(struct stats *s, const struct tl_item *item)
{
    uint64_t pc = item->block->pc;
    bool away = false; /* though STF does not say where to, if nothing is known behind it */
    for (uint32_t left = item->n; left > 0 && s->piece < s->n_pieces;) {
        struct piece *const piece = &s->pieces[s->piece];
        const uint32_t n = piece->n < left ? piece->n : left;
        count_at(s, pc, n);
        pc += piece->size;
        left -= n;
        piece->n -= n;
        s->piece += piece->n == 0;
        away = piece->n == 0 && left == 0 && piece->leads_away;
    }
    s->counts.insns += item->n;
    s->counts.taken += item->flags & TL_ITEM_TAKEN || away ? 1 : 0;
    count_mode(s, item->n);
}

static void count_item(struct stats *s, const struct tl_item *item, bool point)
{
    struct counts *c = &s->counts;
    c->kinds[item->kind]++;
    if (item->kind == TL_ITEM_GAP && item->sub < TL_GAP_KINDS)
        c->gaps[item->sub]++;
    tl_flow_now_item(&s->now, item);
    c->taken += item->kind == TL_ITEM_BRANCH;
    if (s->calls_told && (item->kind == TL_ITEM_BRANCH || item->kind == TL_ITEM_TARGET) &&
        item->flags & TL_ITEM_CALL)
        count_of(s, function_at(s, item->value)->function)->calls++;
    if (!point)
        return;
    c->insns++;
    c->mix[TL_MIX_UNKNOWN] += item->kind == TL_ITEM_UNKNOWN;
    if (item->kind == TL_ITEM_SOFTWARE)
        return;
    count_at(s, tl_item_address(item), 1);
    count_mode(s, 1);
}

/* What lies in the range of one shard. */
static int count_view(struct stats *s, struct tl_view *view, const struct tl_walk_range *range,
                      struct tl_fail *fail)
{
    const struct tl_shard_index *index = &view->index;
    struct tl_walk walk = {.each = count_insn, .context = s};
    bool begun = false;
    int r = TL_OK;
    for (size_t i = tl_shard_chunk_at(index, range->from); i < index->n_chunks && r >= 0; i++) {
        if (index->chunks[i].first >= range->to && !range->tail)
            break;
        s->n_pieces = s->piece = 0;
        r = tl_walk_chunk(&walk, view, i, range, fail);
        if (r >= 0 && s->no_memory)
            r = TL_NOMEM;
        if (!begun)
            s->now = walk.now;
        begun = true;
        for (size_t k = 0; r >= 0 && k < walk.n; k++) {
            const struct tl_item *item = &walk.items[k];
            if (item->kind == TL_ITEM_BLOCK)
                count_block(s, item);
            else
                count_item(s, item, tl_item_is_point(range->protocol, item->kind));
        }
    }
    tl_walk_fini(&walk);
    return r;
}

/* ---- shards that are remembered ------------------------------------------------------------- */

void tl_lane_forget_stats_locked(struct tl_lane *lane)
{
    for (size_t i = 0; i < lane->n_stats; i++)
        free(lane->stats[i]);
    free(lane->stats);
    lane->stats = NULL;
    lane->n_stats = lane->cap_stats = lane->stats_bytes = 0;
}

static void add_shard(struct stats *s, const struct tl_shard_stats *shard)
{
    struct counts *to = &s->counts;
    const struct counts *from = &shard->counts;
    to->insns += from->insns;
    to->taken += from->taken;
    to->reads += from->reads;
    to->writes += from->writes;
    for (size_t i = 0; i < TOLD; i++)
        to->told[i] += from->told[i];
    for (size_t i = 0; i < TL_MIX_KINDS; i++)
        to->mix[i] += from->mix[i];
    for (size_t i = 0; i < TL_ITEM_KINDS; i++)
        to->kinds[i] += from->kinds[i];
    for (size_t i = 0; i < TL_GAP_KINDS; i++)
        to->gaps[i] += from->gaps[i];
    for (size_t i = 0; i < from->n_modes; i++)
        add_mode(to, from->modes[i].mode, from->modes[i].insns);
    for (size_t i = 0; i < shard->n; i++) {
        struct function_count *f = &s->functions[shard->functions[i].function];
        f->insns += shard->functions[i].count.insns;
        f->calls += shard->functions[i].count.calls;
    }
}

/* Add what is remembered of shard `i`, if it is. */
static bool recall(struct stats *s, struct tl_lane *lane, size_t i)
{
    pthread_mutex_lock(&lane->lock);
    const struct tl_shard_stats *shard = i < lane->n_stats ? lane->stats[i] : NULL;
    if (shard)
        add_shard(s, shard);
    pthread_mutex_unlock(&lane->lock);
    return shard != NULL;
}

static bool is_counted(const struct function_count *count)
{
    return count->insns > 0 || count->calls > 0;
}

static struct tl_shard_stats *sum_up(const struct stats *s, size_t *size)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_functions; i++)
        n += is_counted(&s->functions[i]);
    struct tl_shard_stats *shard;
    *size = sizeof(*shard) + n * sizeof(shard->functions[0]);
    shard = calloc(1, *size);
    if (!shard)
        return NULL;
    shard->counts = s->counts;
    for (size_t i = 0; i < s->n_functions; i++) {
        if (!is_counted(&s->functions[i]))
            continue;
        shard->functions[shard->n].function = (uint32_t)i;
        shard->functions[shard->n++].count = s->functions[i];
    }
    return shard;
}

/* Takes `shard`. That there is no memory to remember it is no failure. */
static void remember(struct tl_lane *lane, size_t i, struct tl_shard_stats *shard, size_t size)
{
    pthread_mutex_lock(&lane->lock);
    if (lane->stats_bytes + size <= KEEP_MAX &&
        tl_grow(&lane->stats, &lane->cap_stats, i + 1, sizeof(*lane->stats)) >= 0) {
        for (; lane->n_stats <= i; lane->n_stats++)
            lane->stats[lane->n_stats] = NULL;
        if (!lane->stats[i]) {
            lane->stats[i] = shard;
            lane->stats_bytes += size;
            shard = NULL;
        }
    }
    pthread_mutex_unlock(&lane->lock);
    free(shard);
}

/* What the shard's index says that it consists of. */
static struct tl_shard_stats *told_by(const struct stats *s, const struct tl_shard_index *index,
                                      size_t *size)
{
    const struct tl_tally *const tally = &index->tally;
    static_assert(TL_TALLY_MODES == MODES, "as many modes");
    struct tl_shard_stats *shard;
    *size = sizeof(*shard) + tally->n_functions * sizeof(shard->functions[0]);
    shard = calloc(1, *size);
    if (!shard)
        return NULL;
    struct counts *const c = &shard->counts;
    c->insns = index->row.n;
    for (size_t i = 0; i < index->buckets.n; i++)
        c->taken += index->buckets.p[i].branches;
    memcpy(c->mix, tally->mix, sizeof(c->mix));
    memcpy(c->kinds, tally->kinds, sizeof(c->kinds));
    memcpy(c->gaps, tally->gaps, sizeof(c->gaps));
    for (size_t i = 0; i < tally->n_modes; i++)
        add_mode(c, tally->modes[i].mode, tally->modes[i].insns);
    for (size_t i = 0; i < tally->n_functions; i++) {
        const struct tl_tally_function *const f = &tally->functions[i];
        const size_t none = s->n_functions - 1;
        shard->functions[shard->n].function = (uint32_t)(f->function < none ? f->function : none);
        shard->functions[shard->n++].count = (struct function_count){f->insns, f->calls};
    }
    return shard;
}

/* All of sealed shard `i`. */
static int count_shard(struct stats *s, const struct tl_cut *cut, size_t i, struct tl_view *view,
                       struct tl_fail *fail)
{
    const struct tl_walk_range all = {
        .to = UINT64_MAX, .tail = true, .protocol = cut->lane->protocol};
    struct stats one = {.image = s->image,
                        .memo = s->memo,
                        .n_functions = s->n_functions,
                        .calls_told = s->calls_told};
    struct tl_shard_stats *shard = NULL;
    size_t size;
    const bool told = view->index.tally.told;
    int r = TL_OK;
    if (!told) {
        one.functions = calloc(one.n_functions, sizeof(*one.functions));
        r = one.functions ? count_view(&one, view, &all, fail) : TL_NOMEM;
    }
    if (r >= 0 && !(shard = told ? told_by(s, &view->index, &size) : sum_up(&one, &size)))
        r = TL_NOMEM;
    if (r >= 0) {
        add_shard(s, shard);
        remember(cut->lane, i, shard, size);
    }
    free(one.functions);
    free(one.pieces);
    return r;
}

static int count_cut(struct stats *s, const struct tl_cut *cut, const struct tl_walk_range *range,
                     struct tl_fail *fail)
{
    size_t i = tl_cut_shard_at(cut, range->from);
    int r = TL_OK;
    /* Items behind the last position lie in the last shard. */
    if (range->tail && i > 0 && i == cut->n_rows)
        i--;
    for (; i < cut->n_rows && r >= 0; i++) {
        const struct tl_shard_row *row = &cut->rows[i];
        if (row->first >= range->to && !range->tail)
            break;
        const bool whole = i < cut->n_stored && row->first >= range->from &&
                           (row->first + row->n < range->to || range->tail);
        struct tl_view *view;
        if (whole && recall(s, cut->lane, i))
            continue;
        r = tl_cut_view(cut, i, &view, fail);
        if (r < 0)
            break;
        r = whole ? count_shard(s, cut, i, view, fail) : count_view(s, view, range, fail);
        tl_view_put(view);
    }
    return r;
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
        if (is_counted(&s->functions[i]))
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
    for (size_t i = 0; i < s->counts.n_modes && r >= 0; i++) {
        char text[32];
        r = tl_buf_printf(out, "%s\"%s\":%llu", i > 0 ? "," : "",
                          tl_mode_text(s->counts.modes[i].mode, text),
                          (unsigned long long)s->counts.modes[i].insns);
    }
    return r < 0 ? r : tl_buf_add(out, "}", 1);
}

static const char *told_name(unsigned i)
{
    return tl_stf_type_name(told_types[i]);
}

static bool has_told(const struct counts *c)
{
    uint64_t n = 0;
    for (size_t i = 0; i < TOLD; i++)
        n += c->told[i];
    return n > 0;
}

static int write_json(const struct stats *s, uint64_t from, uint64_t to, struct tl_buf *out)
{
    int r = tl_buf_printf(out, "{\"from\":%llu,\"to\":%llu,\"insns\":%llu,\"taken\":%llu",
                          (unsigned long long)from, (unsigned long long)to,
                          (unsigned long long)s->counts.insns, (unsigned long long)s->counts.taken);
    if (r >= 0)
        r = add_functions(s, out);
    if (r >= 0)
        r = add_counts(out, "mix", mix_name, s->counts.mix, TL_MIX_KINDS);
    if (r >= 0)
        r = add_modes(s, out);
    if (r >= 0)
        r = add_counts(out, "items", tl_item_kind_name, s->counts.kinds, TL_ITEM_KINDS);
    if (r >= 0)
        r = add_counts(out, "gaps", gap_name, s->counts.gaps, TL_GAP_KINDS);
    if (r >= 0 && s->counts.reads + s->counts.writes > 0)
        r = tl_buf_printf(out, ",\n\"memory\":{\"reads\":%llu,\"writes\":%llu}",
                          (unsigned long long)s->counts.reads,
                          (unsigned long long)s->counts.writes);
    if (r >= 0 && has_told(&s->counts))
        r = add_counts(out, "records", told_name, s->counts.told, TOLD);
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
                      .calls_told = cut.lane->protocol == TL_PROTO_OSD_CTM};
    size_t symbols = 0;
    if (s.image)
        tl_image_symbols(s.image, &symbols);
    s.n_functions = symbols + 1;
    s.functions = calloc(s.n_functions, sizeof(*s.functions));
    s.memo = calloc(1, sizeof(*s.memo));
    if (r >= 0 && (!s.functions || !s.memo))
        r = TL_NOMEM;
    const struct tl_walk_range range = {
        .from = from, .to = to, .tail = whole, .protocol = cut.lane->protocol};
    if (r >= 0)
        r = count_cut(&s, &cut, &range, fail);
    if (r >= 0)
        r = write_json(&s, from, to, json);
    free(s.memo);
    free(s.functions);
    free(s.pieces);
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
