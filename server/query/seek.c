/* SPDX-License-Identifier: MIT */
/*
 * Decides by the index which chunks can have a hit, and walks only these. Backward it searches
 * growing windows from the chunk's end, as the last hit is wanted first and a walk goes forward
 * only.
 */
#include "query/seek.h"

#include "base/pattern.h"
#include "base/search.h"
#include "image/names.h"
#include "query/seek_data.h"
#include "query/seek_lines.h"
#include "shard/savedstack.h"

#include <stdio.h>
#include <stdlib.h>

#define WINDOW                                                                                     \
    2048 /* positions that are looked through first when going backward; then 8 times as           \
            many, and so on */

/* Is it decided by the kinds of items where hits can be? */
static bool is_of_events(const struct tl_sought *sought)
{
    return sought->kind == TL_FIND_EVENT || sought->kind == TL_FIND_LINE;
}

int tl_seek_init(struct tl_seek *s, const struct tl_sought *sought, const struct tl_cut *cut)
{
    *s = (struct tl_seek){.sought = sought, .cut = cut};
    s->opcodes.text = sought->text;
    s->opcodes.encoding = sought->kind == TL_FIND_OPCODE;
    if (sought->kind == TL_FIND_CALL && !(s->calls = malloc(sizeof *s->calls)))
        return TL_NOMEM;
    /* Without a summary all shards are opened. */
    if (is_of_events(sought) &&
        tl_cut_summary(cut, 0, UINT64_MAX, &s->summary, &s->shards, NULL) < 0)
        s->shards = 0;
    return TL_OK;
}

void tl_seek_fini(struct tl_seek *s)
{
    tl_opcodes_fini(&s->opcodes);
    tl_walk_fini(&s->walk);
    tl_walk_fini(&s->before);
    tl_buf_fini(&s->line);
    tl_buckets_fini(&s->summary);
    free(s->calls);
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* Is the range that of a wanted symbol, rather than another context's at the same address? */
static bool is_wanted(const struct tl_seek *s, const struct tl_sought_range *range)
{
    const struct tl_sought *const w = s->sought;
    if (w->kind != TL_FIND_SYMBOL)
        return true;
    const int64_t i = tl_flow_now_symbol(&s->now, w->image, range->from);
    return i >= 0 && w->symbols[i];
}

/* The number of the wanted range that has `pc`; 0: none. */
static size_t is_in(const struct tl_seek *s, uint64_t pc)
{
    enum { NESTED = 16 }; /* ranges that begin before `pc` and are looked at */
    const struct tl_sought *const w = s->sought;
    if (pc < w->pc_from || pc >= w->pc_to)
        return 0;
    const size_t begun = tl_count_upto(TL_KEYS(w->ranges, from), w->n_ranges, pc);
    for (size_t i = begun, looked = 0; i > 0 && looked < NESTED; i--, looked++)
        if (pc < w->ranges[i - 1].to && is_wanted(s, &w->ranges[i - 1]))
            return i;
    return 0;
}

static int hit(struct tl_seek *s, uint64_t position, uint64_t pc)
{
    char text[TL_HIT_TEXT] = "";
    if (!s->count)
        tl_function_text(s->sought->image, &s->now, pc, text, sizeof text);
    return s->sink(s->context, position, pc, text);
}

static int was_inside(struct tl_seek *s, uint64_t position, size_t in, struct tl_fail *fail);

/* `after`: the position of what follows. */
static int at_address(struct tl_seek *s, uint64_t position, uint64_t pc, uint64_t after,
                      struct tl_fail *fail)
{
    const size_t in = is_in(s, pc);
    int was = s->inside == in && position == s->after;
    if (in && s->sought->kind == TL_FIND_SYMBOL && position == s->range->from &&
        position != s->after && position > s->range->first)
        was = was_inside(s, position, in, fail);
    s->inside = in;
    s->after = after;
    if (was < 0)
        return was;
    return !in || (s->sought->kind == TL_FIND_SYMBOL && was) ? TL_OK : hit(s, position, pc);
}

static int seek_block(struct tl_seek *s, const struct tl_item *item, uint64_t position,
                      struct tl_fail *fail)
{
    const struct tl_block *b = item->block;
    if (b->pc + b->size <= s->sought->pc_from || b->pc >= s->sought->pc_to)
        return TL_OK;
    struct tl_walk_step insn = {.next = b->pc};
    size_t at = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0; i++) {
        r = tl_walk_insn(&s->walk, b, &at, insn.next, &insn);
        if (r >= 0)
            r = at_address(s, position + i, insn.pc, position + i + 1, fail);
    }
    return r;
}

/* Search for instructions by kind. Blocks are executed repeatedly: the number of matches in each is
 * cached if its memory never changes. */
static int seek_codes(struct tl_seek *s, const struct tl_item *item, uint64_t position)
{
    const struct tl_block *b = item->block;
    const bool fixed = s->sought->fixed && !b->whole;
    const int known = fixed ? tl_opcodes_block(&s->opcodes, b, item->n) : -1;
    if (known == 0)
        return TL_OK;
    if (s->count && known > 0 && known < TL_OPCODES_MANY) {
        const int counted = s->count(s->context, position, item->n, (uint32_t)known);
        if (counted != TL_AGAIN)
            return counted;
    }
    struct tl_walk_step insn = {.next = b->pc};
    size_t at = 0;
    uint32_t hits = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0; i++) {
        r = tl_walk_insn(&s->walk, b, &at, insn.next, &insn);
        if (r < 0)
            break;
        tl_walk_code(&insn, b->isa);
        const int fits = tl_opcodes_match(&s->opcodes, (enum tl_isa)b->isa, insn.pc,
                                          (struct tl_bytes){insn.code, insn.size});
        r = fits <= 0 ? fits : hit(s, position + i, insn.pc);
        hits += fits > 0;
    }
    if (r >= 0 && fixed && known < 0)
        tl_opcodes_remember(&s->opcodes, b, item->n, hits);
    return r;
}

/* "switch PID TID NAME": is it the process or thread with this name, which may be a pattern, or
 * number? */
static bool is_switch_to(const char *note, const char *process)
{
    static const char begin[] = "switch ";
    char pid[16], tid[16];
    int name = 0;
    return strncmp(note, begin, sizeof begin - 1) == 0 &&
           sscanf(note + sizeof begin - 1, "%15[0-9] %15[0-9] %n", pid, tid, &name) == 2 &&
           (strcmp(pid, process) == 0 || strcmp(tid, process) == 0 ||
            tl_text_fits(process, note + sizeof begin - 1 + name));
}

/* ---- items and calls ------------------------------------------------------------------------ */

/* An item in words; an address of code is followed by its place in a function: "… <main+0x10>". */
static int event_text(struct tl_seek *s, const struct tl_item *item, char text[static TL_HIT_TEXT])
{
    char place[TL_HIT_TEXT / 2] = "";
    const int r = tl_item_words(item, &s->line);
    if (r < 0)
        return r;
    const char *const words = (const char *)s->line.p;
    if (item->kind == TL_ITEM_EXCEPTION && item->flags & TL_ITEM_HAS_PC)
        tl_function_text(s->sought->image, &s->now, item->pc, place, sizeof place);
    snprintf(text, TL_HIT_TEXT, "%s%s%s%s%s", tl_item_kind_name(item->kind),
             words[0] && words[1] ? words + 1 : "", place[0] ? " <" : "", place,
             place[0] ? ">" : "");
    return TL_OK;
}

static int report_event(struct tl_seek *s, const struct tl_item *item, uint64_t position)
{
    char text[TL_HIT_TEXT] = "";
    const struct tl_sought *const w = s->sought;
    if (!(w->kinds & 1u << item->kind) ||
        (w->gap >= 0 && (item->kind != TL_ITEM_GAP || item->sub != w->gap)) ||
        (w->process && !is_switch_to(item->text, w->process)))
        return TL_OK;
    const int r = s->count ? TL_OK : event_text(s, item, text);
    return r < 0 ? r : s->sink(s->context, position, tl_item_address(item), text);
}

/* Unmapped code is a branch and a gap. */
static int seek_event(struct tl_seek *s, const struct tl_item *item, uint64_t position)
{
    struct tl_item gap = *item;
    int r = TL_OK;
    if (item->kind == TL_ITEM_GAP && tl_item_is_branch(item)) {
        const struct tl_item branch = {.kind = TL_ITEM_BRANCH, .value = item->pc};
        r = report_event(s, &branch, position);
        gap.flags &= (uint8_t)~TL_ITEM_HAS_PC;
    }
    return r < 0 ? r : report_event(s, &gap, position);
}

/* "CALLED from CALLER"; where both do not fit, the caller is shortened first. */
static void call_text(char text[static TL_HIT_TEXT], const char *called, const char *from)
{
    static const char between[] = " from ";
    enum { CALLER = 48 }; /* room that is kept for it */
    const size_t n_from = strlen(from), kept = n_from < CALLER ? n_from + 1 : CALLER;
    tl_name_fit(called, text, TL_HIT_TEXT - sizeof between - kept);
    const size_t n = strlen(text);
    if (!n_from)
        return;
    memcpy(text + n, between, sizeof between - 1);
    tl_name_fit(from, text + n + sizeof between - 1, TL_HIT_TEXT - n - (sizeof between - 1));
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct tl_seek *const s = context;
    const struct tl_sought *const w = s->sought;
    char text[TL_HIT_TEXT] = "";
    if (change != TL_FRAME_PUSH || !tl_frame_is_call(frame) || frame->function >= w->n_symbols ||
        !w->symbols[frame->function] || insn < s->range->from || insn >= s->chunk_end)
        return TL_OK;
    if (!s->count) {
        const char *const from =
            depth > 0 ? tl_function_name(w->image, s->calls->frames[depth - 1].function) : "";
        call_text(text, tl_function_name(w->image, frame->function), from);
    }
    return s->sink(s->context, insn, frame->pc, text);
}

static int seek_calls(struct tl_seek *s)
{
    tl_callstack_init(s->calls, s->sought->image, s->walk.n > 0 ? s->walk.positions[0] : 0,
                      on_frame, s);
    int r = tl_walk_stack(&s->walk, s->calls);
    for (size_t i = 0; i < s->walk.n && r >= 0; i++)
        r = tl_walk_follow(&s->walk, s->calls, i);
    return r;
}

static int seek_items(struct tl_seek *s, struct tl_fail *fail)
{
    const struct tl_walk *const walk = &s->walk;
    const struct tl_sought *const w = s->sought;
    if (w->kind == TL_FIND_CALL)
        return seek_calls(s);
    const bool points = w->kind == TL_FIND_PC || w->kind == TL_FIND_SYMBOL;
    int r = TL_OK;
    s->now = walk->now;
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        const struct tl_item *item = &walk->items[i];
        if (item->kind != TL_ITEM_BLOCK)
            tl_flow_now_item(&s->now, item);
        if (w->memory)
            r = tl_seek_data(s, i, fail);
        else if (w->kind == TL_FIND_EVENT)
            r = seek_event(s, item, walk->positions[i]);
        else if (item->kind == TL_ITEM_BLOCK)
            r = points ? seek_block(s, item, walk->positions[i], fail)
                       : seek_codes(s, item, walk->positions[i]);
        else if (points && (item->kind == TL_ITEM_UNKNOWN || tl_item_is_branch(item)))
            r = at_address(
                s, walk->positions[i], tl_item_address(item),
                walk->positions[i] + tl_item_is_point(s->cut->lane->protocol, item->kind), fail);
    }
    return r;
}

/* ---- candidates ----------------------------------------------------------------------------- */

static bool calls_promising(const struct tl_seek *s, const struct tl_shard_index *index,
                            const struct tl_chunk *c)
{
    const struct tl_sought *const w = s->sought;
    size_t n = 0;
    const struct tl_symbol *const symbols = tl_image_symbols(w->image, &n);
    for (size_t i = 0; i < w->n_wanted; i++) {
        const struct tl_symbol *const symbol = &symbols[w->wanted[i]];
        const uint64_t last = symbol->address + (symbol->size ? symbol->size - 1 : 0);
        if (tl_shard_has_code(index, c, symbol->address, last))
            return true;
    }
    return false;
}

/* Can the chunk have a hit? */
static bool promising(struct tl_seek *s, const struct tl_view *view, const struct tl_chunk *c)
{
    const struct tl_sought *const w = s->sought;
    if (tl_seek_is_of_records(s))
        return true;
    switch (w->kind) {
    case TL_FIND_EVENT:
    case TL_FIND_LINE:
        return c->kinds & w->kinds;
    case TL_FIND_CALL:
        return calls_promising(s, &view->index, c);
    case TL_FIND_MNEMONIC:
    case TL_FIND_OPCODE:
        return tl_opcodes_promising(&s->opcodes, w->fixed, &view->index, c);
    default:
        for (size_t i = 0; i < w->n_ranges; i++)
            if (tl_shard_has_code(&view->index, c, w->ranges[i].from, w->ranges[i].to - 1))
                return true;
        return false;
    }
}

/* Can the shard have one? Its first and last bucket may include items of its neighbours. */
static bool promising_shard(const struct tl_seek *s, size_t shard)
{
    const struct tl_buckets *all = &s->summary;
    const struct tl_sought *const w = s->sought;
    if (!is_of_events(w) || tl_seek_is_of_records(s) || shard >= s->shards)
        return true;
    struct tl_bucket sought = {0};
    for (uint32_t kinds = w->kinds; kinds; kinds &= kinds - 1) {
        const struct tl_item item = {.kind = (uint8_t)__builtin_ctz(kinds),
                                     .sub = (uint16_t)(w->gap < 0 ? TL_GAP_KINDS : w->gap)};
        struct tl_bucket one = {0};
        tl_bucket_item(&one, &item);
        if ((one.event_mask | one.flags) == 0)
            return true; /* not in the summary */
        sought.event_mask |= one.event_mask;
        sought.flags |= one.flags;
    }
    const struct tl_shard_row *row = &s->cut->rows[shard];
    const uint64_t last = (row->first + row->n) >> 2 * all->level;
    for (uint64_t i = row->first >> 2 * all->level; i <= last; i++) {
        if (i < all->first || i - all->first >= all->n)
            continue;
        const struct tl_bucket *b = &all->p[i - all->first];
        if (b->event_mask & sought.event_mask ||
            (sought.flags && (b->flags & sought.flags) == sought.flags))
            return true;
    }
    return false;
}

/* ---- chunks and shards ---------------------------------------------------------------------- */

static int walk_chunk(struct tl_seek *s, struct tl_walk *walk, struct tl_view *view, size_t chunk,
                      const struct tl_seek_range *range, struct tl_fail *fail)
{
    const struct tl_sought *const w = s->sought;
    const bool calls = w->kind == TL_FIND_CALL;
    const struct tl_walk_range walked = {.from =
                                             calls ? view->index.chunks[chunk].first : range->from,
                                         .to = range->to,
                                         .tail = range->tail && !calls,
                                         .protocol = s->cut->lane->protocol};
    walk->detail = calls || w->memory         ? TL_WALK_FLOW
                   : w->kind == TL_FIND_EVENT ? TL_WALK_ITEMS
                                              : TL_WALK_SPANS;
    walk->image = calls ? w->image : NULL;
    walk->pc_from = w->pc_from;
    walk->pc_to = w->pc_to;
    return tl_walk_chunk(walk, view, chunk, &walked, fail);
}

int tl_seek_before(struct tl_seek *s, uint64_t position, struct tl_fail *fail)
{
    const struct tl_seek_range range = {.from = position - 1, .to = position};
    const size_t shard = tl_cut_shard_at(s->cut, position - 1);
    struct tl_view *view;
    if (shard == s->cut->n_rows)
        return TL_OK;
    int r = tl_cut_view(s->cut, shard, &view, fail);
    if (r < 0)
        return r;
    r = walk_chunk(s, &s->before, view, tl_shard_chunk_at(&view->index, position - 1), &range,
                   fail);
    tl_view_put(view);
    return r < 0 ? r : s->before.n > 0;
}

/* Was the instruction before `position` in the same wanted range? */
static int was_inside(struct tl_seek *s, uint64_t position, size_t in, struct tl_fail *fail)
{
    int r = tl_seek_before(s, position, fail);
    if (r <= 0)
        return r;
    r = false;
    for (size_t i = 0; i < s->before.n && !r; i++)
        if (s->before.items[i].kind == TL_ITEM_BLOCK)
            r = is_in(s, s->before.items[i].block->pc) == in;
        else if (s->before.items[i].kind == TL_ITEM_UNKNOWN)
            r = is_in(s, tl_item_address(&s->before.items[i])) == in;
    return r;
}

static int seek_window(struct tl_seek *s, struct tl_view *view, size_t chunk,
                       const struct tl_seek_range *range, struct tl_fail *fail)
{
    int r = walk_chunk(s, &s->walk, view, chunk, range, fail);
    s->range = range;
    s->chunk_end = range->to;
    return r < 0 ? r : seek_items(s, fail);
}

/* From the chunk's end to its begin, in growing windows. */
static int seek_backward(struct tl_seek *s, struct tl_view *view, size_t chunk,
                         const struct tl_seek_range *range, int (*window)(void *),
                         struct tl_fail *fail)
{
    const struct tl_chunk *const c = &view->index.chunks[chunk];
    const uint64_t begin = c->first > range->from ? c->first : range->from;
    struct tl_seek_range part = *range;
    const uint64_t end = c->first + c->n < range->to ? c->first + c->n : range->to;
    bool tail = true; /* items at the end of the chunk belong to the first window */
    int r = TL_OK;
    uint64_t to = end > begin ? end : begin;
    for (uint64_t size = WINDOW; r >= 0 && (to > begin || tail); size *= 8) {
        part.from = to - begin > size ? to - size : begin;
        part.to = tail ? range->to : to;
        part.tail = tail && range->tail;
        s->after = UINT64_MAX;
        r = seek_window(s, view, chunk, &part, fail);
        if (r >= 0)
            r = window(s->context);
        to = part.from;
        tail = false;
    }
    return r;
}

/* Lines that begin in chunk `k` of shard `i`; the last one also has what is behind the end. */
static int seek_chunk_lines(struct tl_seek *s, const struct tl_view *view, size_t i, size_t k,
                            const struct tl_seek_range *range, struct tl_fail *fail)
{
    const struct tl_chunk *const c = &view->index.chunks[k];
    const bool last = i + 1 == s->cut->n_rows && k + 1 == view->index.n_chunks;
    const uint64_t end = c->first + c->n;
    const uint64_t from = c->first > range->from ? c->first : range->from;
    const uint64_t to = last && range->tail ? UINT64_MAX : end < range->to ? end : range->to;
    return from < to ? tl_seek_lines(s, from, to, fail) : TL_OK;
}

/* Does it have gaps that the index does not know? */
static bool has_missing(const struct tl_seek *s, size_t shard)
{
    const struct tl_sought *const w = s->sought;
    return w->kind == TL_FIND_EVENT && w->kinds & (1u << TL_ITEM_GAP | 1u << TL_ITEM_NOTE) &&
           tl_lane_is_incomplete(s->cut->lane, s->cut->rows[shard].number);
}

int tl_seek_shard(struct tl_seek *s, size_t i, const struct tl_seek_range *range,
                  int (*window)(void *context), struct tl_fail *fail)
{
    struct tl_view *view;
    const bool all = has_missing(s, i);
    if (!all && !promising_shard(s, i))
        return TL_OK;
    int r = tl_cut_view(s->cut, i, &view, fail);
    if (r < 0)
        return r;
    const struct tl_shard_index *const index = &view->index;
    size_t low = tl_shard_items_at(index, range->from), high = index->n_chunks;
    while (!range->tail && high > low && index->chunks[high - 1].first >= range->to)
        high--;
    for (size_t k = low; r >= 0 && k < high; k++) {
        const size_t chunk = range->backward ? high - 1 - (k - low) : k;
        if (!all && !promising(s, view, &index->chunks[chunk]))
            continue;
        const bool lines = s->sought->kind == TL_FIND_LINE;
        if (lines)
            r = seek_chunk_lines(s, view, i, chunk, range, fail);
        else
            r = range->backward ? seek_backward(s, view, chunk, range, window, fail)
                                : seek_window(s, view, chunk, range, fail);
        if (r >= 0 && (lines || !range->backward))
            r = window(s->context);
    }
    tl_view_put(view);
    return r;
}

void tl_seek_shards(const struct tl_cut *cut, const struct tl_seek_range *range, size_t *first,
                    size_t *end)
{
    *first = *end = tl_cut_items_at(cut, range->from);
    while (*end < cut->n_rows && (range->tail || cut->rows[*end].first < range->to))
        ++*end;
}
