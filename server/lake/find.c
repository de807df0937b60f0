/* SPDX-License-Identifier: MIT */
/*
 * Searching for addresses, functions and events. A chunk's index tells which code it executed and
 * which kinds of items it has, so that chunks without a hit are skipped unread; the catalog's
 * summary tells which shards have no such event, and these are not opened.
 */
#include "lake/query.h"

#include <stdio.h>
#include <stdlib.h>

#define HITS_DEFAULT 100
#define HITS_MAX     100000

struct search {
    const struct tl_find_request *request;
    const struct tl_image *image;
    uint64_t pc_from, pc_to; /* [from, to) */
    bool entering;           /* report only where the flow enters the address range */
    bool inside;             /* the last instruction examined was in the address range */
    uint64_t behind;         /* the position behind it: skipped chunks are outside the range */
    struct tl_flow_now now;  /* state at the current item */
    uint32_t kinds;          /* of items */
    int gap;                 /* only this enum tl_gap, or -1 */
    const struct tl_cut *cut;
    struct tl_buckets summary; /* of the first `shards` shards: for events */
    uint64_t shards;
    uint64_t limit;
    struct tl_hit *hits;
    size_t n, cap;
    struct tl_buf line;
};

/* One more hit; TL_LIMIT when there are enough. */
static int add_hit(struct search *s, uint64_t position, uint64_t pc, const char *text)
{
    if (s->n == s->limit)
        return TL_LIMIT;
    const int r = tl_grow(&s->hits, &s->cap, s->n + 1, sizeof(*s->hits));
    if (r < 0)
        return r;
    struct tl_hit *hit = &s->hits[s->n++];
    *hit = (struct tl_hit){.at.insn = position, .pc = pc};
    snprintf(hit->text, sizeof(hit->text), "%s", text);
    return TL_OK;
}

/* Is it the symbol that is looked for, rather than another context's at the same place? */
static bool is_wanted(const struct search *s)
{
    if (!s->entering)
        return true;
    size_t n = 0;
    const int64_t i = tl_flow_now_symbol(&s->now, s->image, s->pc_from);
    return i >= 0 && !strcmp(tl_image_symbols(s->image, &n)[i].name, s->request->text);
}

/* `behind`: the position of what comes next. */
static int at_address(struct search *s, uint64_t position, uint64_t pc, uint64_t behind)
{
    const bool in = pc >= s->pc_from && pc < s->pc_to && is_wanted(s);
    const bool was = s->inside && position == s->behind;
    s->inside = in;
    s->behind = behind;
    if (!in || (s->entering && was))
        return TL_OK;
    char text[96];
    tl_function_text(s->image, &s->now, pc, text, sizeof(text));
    return add_hit(s, position, pc, text);
}

static int search_block(struct search *s, const struct tl_walk *walk, const struct tl_item *item,
                        uint64_t position)
{
    const struct tl_block *b = item->block;
    if (b->pc + b->size <= s->pc_from || b->pc >= s->pc_to)
        return TL_OK;
    struct tl_walk_step insn = {.next = b->pc};
    size_t at = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0; i++) {
        r = tl_walk_insn(walk, b, &at, insn.next, &insn);
        if (r >= 0)
            r = at_address(s, position + i, insn.pc, position + i + 1);
    }
    return r;
}

static int search_event(struct search *s, const struct tl_item *item, uint64_t position)
{
    if (!(s->kinds & 1u << item->kind) ||
        (s->gap >= 0 && (item->kind != TL_ITEM_GAP || item->sub != s->gap)))
        return TL_OK;
    int r = tl_item_words(item, &s->line);
    if (r < 0)
        return r;
    char text[96];
    const char *words = (const char *)s->line.p;
    snprintf(text, sizeof(text), "%s%s", tl_item_kind_name(item->kind),
             words[0] && words[1] ? words + 1 : "");
    return add_hit(s, position, tl_item_address(item), text);
}

static int search_items(struct search *s, const struct tl_walk *walk)
{
    int r = TL_OK;
    s->now = walk->now;
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        const struct tl_item *item = &walk->items[i];
        if (item->kind != TL_ITEM_BLOCK)
            tl_flow_now_item(&s->now, item);
        if (s->kinds)
            r = search_event(s, item, walk->positions[i]);
        else if (item->kind == TL_ITEM_BLOCK)
            r = search_block(s, walk, item, walk->positions[i]);
        else if (item->kind == TL_ITEM_UNKNOWN || item->kind == TL_ITEM_BRANCH)
            r = at_address(s, walk->positions[i], tl_item_address(item),
                           walk->positions[i] +
                               tl_item_is_point(s->cut->lane->protocol, item->kind));
    }
    return r;
}

/* May the chunk have a hit? */
static bool promising(const struct search *s, const struct tl_view *view, const struct tl_chunk *c)
{
    if (s->kinds)
        return c->kinds & s->kinds;
    return tl_shard_has_code(&view->index, c, s->pc_from, s->pc_to - 1);
}

/* May the shard have one? Its first and last bucket may include items of its neighbours. */
static bool promising_shard(const void *context, size_t shard)
{
    const struct search *s = context;
    const struct tl_buckets *all = &s->summary;
    const struct tl_item item = {.kind = (uint8_t)__builtin_ctz(s->kinds),
                                 .sub = (uint16_t)(s->gap < 0 ? TL_GAP_KINDS : s->gap)};
    struct tl_bucket sought = {0};
    tl_bucket_item(&sought, &item);
    if (shard >= s->shards || (sought.event_mask | sought.flags) == 0)
        return true; /* not in the summary */
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

/* Times and byte offsets of the hits from `from` on, which are all of one chunk. */
static int place_hits(struct search *s, const struct tl_cut *cut, size_t from, struct tl_fail *fail)
{
    if (from == s->n)
        return TL_OK;
    struct tl_scale time, byte = {0};
    const uint64_t first = s->hits[from].at.insn, last = s->hits[s->n - 1].at.insn;
    int r = tl_scale_open(&time, cut, TL_SCALE_TIME, false, first, last, fail);
    if (r >= 0)
        r = tl_scale_open(&byte, cut, TL_SCALE_BYTE, false, first, last, fail);
    for (size_t i = from; i < s->n && r >= 0; i++) {
        struct tl_position *at = &s->hits[i].at;
        at->has_time = tl_scale_value(&time, at->insn, &at->time);
        if (!tl_scale_value(&byte, at->insn, &at->byte))
            at->byte = 0;
    }
    tl_scale_close(&time);
    tl_scale_close(&byte);
    return r;
}

static int search_cut(struct search *s, const struct tl_cut *cut, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    const uint64_t to = s->request->to;
    tl_cut_walk_begin(&walk, cut, s->request->from, to);
    walk.range.tail = to >= cut->end;
    walk.walk.detail = s->kinds ? TL_WALK_ITEMS : TL_WALK_SPANS;
    walk.walk.pc_from = s->pc_from;
    walk.walk.pc_to = s->pc_to;
    s->cut = cut;
    if (s->kinds && tl_cut_summary(cut, &s->summary, &s->shards, NULL) < 0)
        s->shards = 0; /* without a summary all shards are opened */
    walk.wanted = s->kinds ? promising_shard : NULL;
    walk.context = s;
    int r;
    for (;;) {
        const struct tl_chunk *chunk;
        r = tl_cut_walk_peek(&walk, &chunk, fail);
        if (r < 0 || !chunk)
            break;
        if (!promising(s, walk.view, chunk)) {
            tl_cut_walk_skip(&walk);
            continue;
        }
        const size_t before = s->n;
        r = tl_cut_walk_next(&walk, fail);
        if (r < 0)
            break;
        r = search_items(s, &walk.walk);
        const int placed = place_hits(s, cut, before, fail);
        if (r >= 0)
            r = placed;
        if (r < 0)
            break;
    }
    tl_cut_walk_end(&walk);
    return r;
}

/* ---- what to look for ----------------------------------------------------------------------- */

static int want_symbol(struct search *s, struct tl_fail *fail)
{
    const char *name = s->request->text ? s->request->text : "";
    size_t n = 0;
    const struct tl_symbol *symbols = s->image ? tl_image_symbols(s->image, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(symbols[i].name, name) == 0) {
            s->pc_from = symbols[i].address;
            s->pc_to = symbols[i].address + (symbols[i].size ? symbols[i].size : 1);
            s->entering = true;
            return TL_OK;
        }
    return tl_fail_set(fail, TL_NOTFOUND, "the trace's images have no symbol \"%.80s\"", name);
}

static int want_event(struct search *s, struct tl_fail *fail)
{
    const char *name = s->request->text ? s->request->text : "";
    for (unsigned kind = 1; kind < TL_ITEM_KINDS; kind++)
        if (strcmp(tl_item_kind_name(kind), name) == 0) {
            s->kinds = 1u << kind;
            return TL_OK;
        }
    for (int gap = 0; gap < TL_GAP_KINDS; gap++)
        if (strcmp(tl_gap_name((enum tl_gap)gap), name) == 0) {
            s->kinds = 1u << TL_ITEM_GAP;
            s->gap = gap;
            return TL_OK;
        }
    return tl_fail_set(
        fail, TL_USAGE,
        "there is no event kind \"%.40s\"; there are exception, return, mode, "
        "context, event, software, gap, trace-on, note, branch, unknown, cycles, time",
        name);
}

static int prepare(struct search *s, struct tl_fail *fail)
{
    const struct tl_find_request *request = s->request;
    switch (request->kind) {
    case TL_FIND_PC:
        s->pc_from = request->pc_from;
        s->pc_to = request->pc_to > request->pc_from ? request->pc_to : request->pc_from + 1;
        return TL_OK;
    case TL_FIND_SYMBOL:
        return want_symbol(s, fail);
    case TL_FIND_EVENT:
        return want_event(s, fail);
    default:
        return tl_fail_set(fail, TL_USAGE, "look for an address, a symbol or an event");
    }
}

int tl_lake_find(struct tl_lake *lake, const struct tl_find_request *request, struct tl_hit **hits,
                 size_t *n, bool *more, struct tl_fail *fail)
{
    struct tl_cut cut;
    int r = tl_cut_open(&cut, lake, request->trace, request->stream, fail);
    if (r < 0)
        return r;
    struct search s = {.request = request, .gap = -1, .image = tl_gen_image(cut.gen)};
    s.limit = request->limit == 0 ? HITS_DEFAULT : request->limit;
    if (s.limit > HITS_MAX)
        s.limit = HITS_MAX;
    r = prepare(&s, fail);
    if (r >= 0)
        r = search_cut(&s, &cut, fail);
    tl_cut_close(&cut);
    tl_buf_fini(&s.line);
    tl_buckets_fini(&s.summary);
    *more = r == TL_LIMIT;
    if (r < 0 && r != TL_LIMIT) {
        free(s.hits);
        return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
    }
    *hits = s.hits;
    *n = s.n;
    return TL_OK;
}
