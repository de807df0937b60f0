/* SPDX-License-Identifier: MIT */
/*
 * A walk joins consecutive instructions into blocks. While a shard is built the same is done with
 * the groups of records it is built from, so that both count identically. Properties of an address
 * (its function, the kind of its instruction) are cached.
 */
#include "builder/insn_stats.h"

#include "stf/close.h"
#include "stf/group.h"

#include <stdlib.h>

#define MEMO 8192 /* cache entries for instructions and for begins of blocks */

bool tl_insn_stats_wanted(enum tl_protocol protocol)
{
    return !tl_protocol_has(protocol, TL_TRAIT_BLOCKS);
}

/* Offset of the access type in an INST_MEM_ACCESS. */
enum { ACCESS_TYPE = 13 };

struct insn_memo {
    uint64_t pc;
    uint32_t opcode;
    uint8_t size, isa; /* size 0: free */
    uint8_t mix;
};

struct block_memo {
    uint64_t pc;
    uint64_t mode, context, changed; /* state for which the function is valid */
    uint32_t function;
    bool used, entered;
};

/* Code counted as a unit. */
struct piece {
    uint32_t n, size; /* instructions and bytes */
    bool leads_away;  /* its last instruction is a call, a return or an indirect branch */
};

struct tl_insn_stats {
    const struct tl_image *image; /* NULL: no functions */
    enum tl_protocol protocol;
    struct tl_stats_counter counts; /* only its statistics and functions are used */
    struct tl_flow_now now;
    /* Pieces of the following blocks, and the first one not counted yet. */
    struct piece *pieces;
    size_t n_pieces, cap_pieces, piece;
    bool piece_ended, no_memory;
    uint64_t nowhere; /* instructions outside of functions, if there are no functions */
    /* While a shard is built: the block that a walk would join; n == 0: none. */
    uint64_t pc;
    uint32_t n, size;
    uint8_t isa;
    struct insn_memo insns[MEMO];
    struct block_memo blocks[MEMO];
};

int tl_insn_stats_new(struct tl_insn_stats **out, const struct tl_image *image,
                      enum tl_protocol protocol)
{
    struct tl_insn_stats *const c = calloc(1, sizeof *c);
    if (!c)
        return TL_NOMEM;
    size_t symbols = 0;
    if (image)
        tl_image_symbols(image, &symbols);
    c->image = symbols > 0 ? image : NULL;
    c->protocol = protocol;
    *out = c;
    return TL_OK;
}

void tl_insn_stats_free(struct tl_insn_stats *insn_stats)
{
    if (!insn_stats)
        return;
    tl_stats_counter_fini(&insn_stats->counts);
    free(insn_stats->pieces);
    free(insn_stats);
}

static void add_function(struct tl_insn_stats *c, uint32_t function, uint64_t n, uint64_t calls)
{
    if (tl_stats_counter_function(&c->counts, function, n, calls) < 0)
        c->no_memory = true;
}

void tl_insn_stats_report(struct tl_insn_stats *insn_stats, struct tl_shard_stats *out)
{
    tl_insn_stats_pause(insn_stats);
    if (insn_stats->nowhere > 0)
        add_function(insn_stats, TL_NO_FUNCTION, insn_stats->nowhere, 0);
    insn_stats->nowhere = 0;
    struct tl_shard_stats *const stats = &insn_stats->counts.stats;
    tl_shard_stats_sort(stats);
    stats->reported = stats->counted = !insn_stats->no_memory;
    if (insn_stats->no_memory)
        tl_shard_stats_fini(stats);
    *out = *stats;
    *stats = (struct tl_shard_stats){0};
    tl_stats_counter_fini(&insn_stats->counts);
    insn_stats->no_memory = false;
}

/* ---- instructions -------------------------------------------------------------------------- */

static size_t memo_slot(uint64_t pc)
{
    return (size_t)(pc >> 1 ^ pc >> 14) % MEMO;
}

/* Count the additional records of the instruction: all except the closing record of its group. */
static void count_records(struct tl_shard_stats *stats, const struct tl_walk_insn *insn)
{
    if (!insn->group.n)
        return;
    struct tl_stf_group group = {insn->group, *insn->layout};
    struct tl_bytes record;
    while (tl_stf_group_skip(&group, &record) == TL_OK && !tl_stf_is_marker(record.p[0])) {
        const int i = tl_stats_record(record.p[0]);
        if (i >= 0)
            stats->records[i]++;
        if (record.p[0] == TL_STF_INST_MEM_ACCESS) {
            const bool write = record.p[record.n - 1] == TL_STF_WRITE;
            stats->writes += write;
            stats->reads += !write;
        }
    }
}

/* Add `n` instructions to the piece that began after the last one that ended a piece; `mix` is the
 * class of the last of them, the others are plain. */
static void add_to_piece(struct tl_insn_stats *c, uint32_t n, uint32_t size, enum tl_mix mix)
{
    if (c->piece_ended || c->n_pieces == 0) {
        if (tl_grow(&c->pieces, &c->cap_pieces, c->n_pieces + 1, sizeof(*c->pieces)) < 0) {
            c->no_memory = true;
            return;
        }
        c->pieces[c->n_pieces++] = (struct piece){0};
    }
    struct piece *const piece = &c->pieces[c->n_pieces - 1];
    piece->n += n;
    piece->size += size;
    piece->leads_away = mix == TL_MIX_CALL || mix == TL_MIX_RETURN || mix == TL_MIX_INDIRECT;
    c->piece_ended = mix != TL_MIX_PLAIN;
}

static void count_insn(void *context, const struct tl_walk_insn *insn)
{
    struct tl_insn_stats *const c = context;
    struct insn_memo *const m = &c->insns[memo_slot(insn->pc)];
    if (m->pc != insn->pc || m->opcode != insn->opcode || m->size != insn->size ||
        m->isa != insn->isa || m->size == 0) {
        const struct tl_bytes code = {insn->code, insn->size};
        *m = (struct insn_memo){.pc = insn->pc,
                                .opcode = insn->opcode,
                                .size = insn->size,
                                .isa = insn->isa,
                                .mix = (uint8_t)tl_mix_at((enum tl_isa)insn->isa, insn->pc, code)};
    }
    c->counts.stats.mix[m->mix]++;
    add_to_piece(c, 1, insn->size, (enum tl_mix)m->mix);
    count_records(&c->counts.stats, insn);
}

/* ---- blocks and items ---------------------------------------------------------------------- */

/* The function at `pc`, and whether that is its first instruction. */
static const struct block_memo *function_at(struct tl_insn_stats *c, uint64_t pc)
{
    struct block_memo *const m = &c->blocks[memo_slot(pc)];
    const uint64_t context = c->now.context << 32 ^ c->now.vmid;
    const uint64_t changed = c->image ? tl_image_last_change(c->image, c->now.time) : 0;
    if (m->pc != pc || m->mode != c->now.mode || m->context != context || m->changed != changed ||
        !m->used) {
        const uint32_t function = tl_flow_now_function(&c->now, c->image, pc);
        *m = (struct block_memo){.pc = pc,
                                 .mode = c->now.mode,
                                 .context = context,
                                 .changed = changed,
                                 .function = function,
                                 .used = true,
                                 .entered = tl_begins_function(c->image, function, pc)};
    }
    return m;
}

/* Does the trace report calls? Otherwise a function is called when it is entered at its start. */
static bool reports_calls(const struct tl_insn_stats *c)
{
    return tl_protocol_has(c->protocol, TL_TRAIT_CALLS);
}

/* Count `n` instructions that begin at `pc`. */
static void count_at(struct tl_insn_stats *c, uint64_t pc, uint64_t n)
{
    if (!c->image) {
        c->nowhere += n;
        return;
    }
    const struct block_memo *const m = function_at(c, pc);
    add_function(c, m->function, n, !reports_calls(c) && m->entered);
}

/*
 * Count `n` instructions at consecutive addresses, `size` bytes; each piece counts where it begins.
 */
static void count_run(struct tl_insn_stats *c, uint64_t pc, uint32_t n, uint32_t size, bool taken)
{
    const uint64_t end = pc + size;
    bool away = false; /* STF does not contain the destination if nothing is known after it */
    for (uint32_t left = n; left > 0 && c->piece < c->n_pieces;) {
        struct piece *const piece = &c->pieces[c->piece];
        const bool ends = piece->n <= left;
        const uint32_t take = ends ? piece->n : left;
        const uint64_t bytes = ends ? piece->size : end - pc;
        count_at(c, pc, take);
        pc += bytes;
        left -= take;
        piece->n -= take;
        piece->size -= (uint32_t)bytes;
        c->piece += ends;
        away = ends && left == 0 && piece->leads_away;
    }
    struct tl_shard_stats *const stats = &c->counts.stats;
    stats->insns += n;
    stats->taken += taken || away;
    if (c->now.has_mode)
        tl_shard_stats_mode(stats, c->now.mode, n);
}

/* Address of a position item; a note's is kept only if it is meaningful. */
static uint64_t address_of(const struct tl_item *item)
{
    if (item->kind == TL_ITEM_BRANCH)
        return item->value;
    return item->kind == TL_ITEM_UNKNOWN || item->flags & TL_ITEM_HAS_PC ? item->pc : 0;
}

static void count_item(struct tl_insn_stats *c, const struct tl_item *item)
{
    struct tl_shard_stats *const stats = &c->counts.stats;
    const bool branch = tl_item_is_branch(item);
    tl_shard_stats_items(stats, item, 1);
    tl_flow_now_item(&c->now, item);
    stats->taken += branch;
    if (reports_calls(c) && (item->kind == TL_ITEM_BRANCH || item->kind == TL_ITEM_TARGET) &&
        item->flags & TL_ITEM_CALL)
        add_function(c, function_at(c, item->value)->function, 0, 1);
    if (!tl_item_is_point(c->protocol, item->kind))
        return;
    stats->insns++;
    stats->mix[TL_MIX_UNKNOWN] += item->kind == TL_ITEM_UNKNOWN;
    if (!tl_item_is_code(item))
        return;
    count_at(c, address_of(item), 1);
    if (c->now.has_mode)
        tl_shard_stats_mode(stats, c->now.mode, 1);
}

int tl_insn_stats_view(struct tl_insn_stats *c, struct tl_view *view,
                       const struct tl_walk_range *range, struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &view->index;
    struct tl_walk walk = {.each = count_insn, .context = c};
    bool begun = false;
    int r = TL_OK;
    for (size_t i = tl_shard_items_at(index, range->from); i < index->n_chunks && r >= 0; i++) {
        if (index->chunks[i].first >= range->to && !range->tail)
            break;
        c->n_pieces = c->piece = 0;
        r = tl_walk_chunk(&walk, view, i, range, fail);
        if (r >= 0 && c->no_memory)
            r = TL_NOMEM;
        if (!begun)
            c->now = walk.now;
        begun = true;
        for (size_t k = 0; r >= 0 && k < walk.n; k++) {
            const struct tl_item *const item = &walk.items[k];
            if (item->kind == TL_ITEM_BLOCK)
                count_run(c, item->block->pc, item->n, item->block->size,
                          item->flags & TL_ITEM_TAKEN);
            else
                count_item(c, item);
        }
    }
    c->n_pieces = c->piece = 0;
    tl_walk_fini(&walk);
    return r;
}

/* ---- while a shard is built --------------------------------------------------------------- */

void tl_insn_stats_begin(struct tl_insn_stats *insn_stats, const struct tl_flow_now *now)
{
    insn_stats->now = *now;
}

/* End of the walk's block. */
static void end_run(struct tl_insn_stats *c, bool taken)
{
    if (c->n > 0)
        count_run(c, c->pc, c->n, c->size, taken);
    c->n = c->size = 0;
    c->n_pieces = c->piece = 0;
}

void tl_insn_stats_pause(struct tl_insn_stats *insn_stats)
{
    end_run(insn_stats, false);
}

static void add_insn(struct tl_insn_stats *c, const struct tl_walk_insn *insn)
{
    if (c->n > 0 && (insn->pc != c->pc + c->size || c->n == TL_BLOCK_MAX || c->isa == TL_ISA_NONE))
        end_run(c, false);
    if (c->n == 0)
        c->pc = insn->pc;
    c->isa = insn->isa;
    count_insn(c, insn);
    c->n++;
    c->size += insn->size;
}

/* Size of the group at `stf` if it is a common one of a four-byte instruction: alone, or after a
 * memory access. Otherwise 0. */
static uint32_t usual_group(struct tl_bytes stf)
{
    const uint32_t closing = TL_STF_ACCESS_BYTES + TL_STF_CONTENT_BYTES;
    if (stf.p[0] == TL_STF_INST_32)
        return TL_STF_CLOSING_BYTES;
    if (stf.p[0] == TL_STF_INST_MEM_ACCESS && stf.n > closing &&
        stf.p[TL_STF_ACCESS_BYTES] == TL_STF_INST_MEM_CONTENT && stf.p[closing] == TL_STF_INST_32)
        return closing + TL_STF_CLOSING_BYTES;
    return 0;
}

/*
 * Skip as many of `n` instructions at `pc`, none the last of its block, as are certainly plain:
 * nearly all are. Only a two-byte one can be invalid. Returns their number.
 */
static uint32_t add_plain(struct tl_insn_stats *c, enum tl_isa isa, uint64_t pc, uint32_t n,
                          struct tl_bytes *rest)
{
    struct tl_shard_stats *const stats = &c->counts.stats;
    uint32_t done = 0, accesses = 0, writes = 0;
    if (isa == TL_ISA_NONE || n > TL_BLOCK_MAX - c->n || (c->n > 0 && pc != c->pc + c->size))
        return 0;
    for (uint32_t size; done < n && (size = usual_group(*rest)) > 0; done++) {
        accesses += size > TL_STF_CLOSING_BYTES;
        writes += size > TL_STF_CLOSING_BYTES && rest->p[ACCESS_TYPE] == TL_STF_WRITE;
        rest->p += size;
        rest->n -= size;
    }
    if (done == 0)
        return 0;
    if (c->n == 0)
        c->pc = pc;
    c->isa = (uint8_t)isa;
    c->n += done;
    c->size += 4 * done;
    add_to_piece(c, done, 4 * done, TL_MIX_PLAIN);
    stats->mix[TL_MIX_PLAIN] += done;
    if (accesses == 0)
        return done;
    stats->reads += accesses - writes;
    stats->writes += writes;
    stats->records[tl_stats_record(TL_STF_INST_MEM_ACCESS)] += accesses;
    stats->records[tl_stats_record(TL_STF_INST_MEM_CONTENT)] += accesses;
    return done;
}

/* Add the next one, of any kind. Returns where the flow continues. */
static uint64_t add_group(struct tl_insn_stats *c, const struct tl_stf_layout *layout, uint8_t isa,
                          uint64_t pc, struct tl_bytes *rest)
{
    struct tl_walk_step step;
    const int size = tl_walk_step(layout, isa, true, *rest, pc, &step);
    if (size < 0)
        return pc; /* impossible: it was read before */
    tl_walk_code(&step, isa);
    const struct tl_walk_insn insn = {step.pc,   step.opcode, step.size, isa,
                                      step.code, step.group,  layout};
    add_insn(c, &insn);
    const bool jumps = step.next != step.pc + step.size;
    const bool taken = step.taken && (jumps || !tl_stf_is_odd(step.size));
    if (taken || jumps)
        end_run(c, taken);
    rest->p += size;
    rest->n -= (size_t)size;
    return step.next;
}

/* Add instructions with whole groups. */
static void add_groups(struct tl_insn_stats *c, const struct tl_block *b, uint32_t first,
                       uint32_t n)
{
    const struct tl_stf_groups *const groups = tl_stf_groups_of(b);
    struct tl_stf_pc before = {.next = b->pc};
    const size_t skip = tl_stf_groups_pass(groups, b->coded, first, &before);
    struct tl_bytes rest = {b->coded + skip, b->coded_size - skip};
    uint64_t pc = before.next;
    for (const uint32_t end = first + n; first < end; first++) {
        const uint32_t inner = (end < b->n ? end : b->n - 1) - first;
        const uint32_t plain = add_plain(c, (enum tl_isa)b->isa, pc, inner, &rest);
        first += plain;
        pc += 4 * plain;
        if (first == end)
            return;
        pc = add_group(c, &groups->layout, b->isa, pc, &rest);
    }
}

/* Add instructions of which only the code is known. */
static void add_code(struct tl_insn_stats *c, const struct tl_block *b, uint32_t at, uint32_t n)
{
    for (; n > 0 && b->code && at < b->size; n--) {
        struct tl_insn known = {0};
        tl_block_insn(b, at, &known);
        const uint32_t left = b->size - at;
        const uint8_t size = (uint8_t)(known.size && known.size < left ? known.size : left);
        const struct tl_walk_insn insn = {.pc = b->pc + at,
                                          .opcode = known.encoding,
                                          .size = size,
                                          .isa = b->isa,
                                          .code = b->code + at};
        add_insn(c, &insn);
        at += size;
    }
}

void tl_insn_stats_block(struct tl_insn_stats *insn_stats, const struct tl_item *item,
                         uint32_t first, uint32_t at, uint32_t n)
{
    const struct tl_block *const b = item->block;
    if (b->whole) {
        add_groups(insn_stats, b, first, n);
    } else {
        add_code(insn_stats, b, at, n);
        if (first + n == item->n && item->flags & TL_ITEM_TAKEN)
            end_run(insn_stats, true);
    }
}

void tl_insn_stats_item(struct tl_insn_stats *insn_stats, const struct tl_item *item)
{
    end_run(insn_stats, false);
    count_item(insn_stats, item);
}

static void pieces_state(struct tl_insn_stats *c, struct tl_state *s)
{
    size_t n = c->n_pieces;
    tl_state_size(s, &n, s->in.n);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, tl_grow(&c->pieces, &c->cap_pieces, n + 1, sizeof(*c->pieces)));
    c->n_pieces = s->rc >= 0 ? n : 0;
    for (size_t i = 0; i < c->n_pieces; i++) {
        if (tl_state_loads(s))
            c->pieces[i] = (struct piece){0};
        tl_state_u32(s, &c->pieces[i].n);
        tl_state_u32(s, &c->pieces[i].size);
        tl_state_bool(s, &c->pieces[i].leads_away);
    }
    tl_state_size(s, &c->piece, c->n_pieces);
}

void tl_insn_stats_state(struct tl_insn_stats *c, struct tl_state *s)
{
    tl_stats_counter_state(&c->counts, s);
    tl_flow_now_state(&c->now, s);
    pieces_state(c, s);
    tl_state_bool(s, &c->piece_ended);
    tl_state_bool(s, &c->no_memory);
    tl_state_u64(s, &c->nowhere);
    tl_state_u64(s, &c->pc);
    tl_state_u32(s, &c->n);
    tl_state_u32(s, &c->size);
    tl_state_u8(s, &c->isa, TL_ISA_OR1K);
}
