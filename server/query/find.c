/* SPDX-License-Identifier: MIT */
/*
 * Searching for addresses, functions, instructions and events, in one stream or all streams of a
 * trace. A search goes through indexes first and walks only the shards that can have a hit. Of all
 * streams nothing is found twice: threads' streams repeat what processors' have.
 */
#include "query/seek_count.h"

#include <stdlib.h>

#define HITS_DEFAULT 100
#define HITS_MAX     100000

struct search {
    struct tl_lake *lake;
    const struct tl_find_request *request;
    struct tl_sought sought, absences; /* absences: what of it threads' streams alone have */
    bool has_absences;
    struct tl_cut *cuts; /* of the searched streams */
    size_t n_cuts;
    size_t near; /* index of the cut of request->near, or n_cuts */
    uint64_t limit;
    struct tl_hit *hits; /* hits of earlier streams, followed by those of this one */
    uint32_t *lanes;     /* index of the cut of each hit */
    size_t n, cap, cap_lanes;
    size_t lane;       /* index of the cut being searched */
    size_t lane_first; /* its first hit */
    size_t window;     /* first hit of the current window */
    uint64_t skip;     /* hits at request->at still to be skipped */
    bool more;
};

/* ---- an order of all streams ---------------------------------------------------------------- */

/* Sort key of a hit: by time, hits without time last, then by stream. */
struct key {
    bool has_time;
    uint64_t time;
    size_t lane;
    uint64_t insn;
};

static int compare_keys(const struct key *a, const struct key *b)
{
    if (a->has_time != b->has_time)
        return a->has_time ? -1 : 1;
    if (a->has_time && a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    return a->insn < b->insn ? -1 : a->insn > b->insn;
}

static struct key key_of(const struct search *s, size_t hit)
{
    const struct tl_position *const at = &s->hits[hit].at;
    return (struct key){at->has_time, at->has_time ? at->time : 0, s->lanes[hit], at->insn};
}

static int key_at(const struct search *s, size_t lane, uint64_t insn, struct key *out,
                  struct tl_fail *fail)
{
    struct tl_scale scale;
    *out = (struct key){.lane = lane, .insn = insn};
    const int r = tl_scale_open(&scale, &s->cuts[lane], TL_SCALE_TIME, false, insn, insn, fail);
    if (r >= 0)
        out->has_time = tl_scale_value(&scale, insn, &out->time);
    tl_scale_close(&scale);
    return r;
}

/* `*first`: first position of the stream that is not before `key`, or with `after`, that is after
 * it. */
static int first_at(const struct search *s, size_t lane, const struct key *key, bool after,
                    uint64_t *first, struct tl_fail *fail)
{
    struct tl_scale scale = {0};
    const struct tl_cut *const cut = &s->cuts[lane];
    if (lane == key->lane) {
        *first = key->insn + after;
        return TL_OK;
    }
    /* At equal times hits of earlier streams come first. */
    const uint64_t time = key->time + (key->has_time && lane < key->lane);
    const int r = tl_scale_open(&scale, cut, TL_SCALE_TIME, true, time, time, fail);
    if (r >= 0 && scale.n == 0)
        *first = !key->has_time && lane < key->lane ? UINT64_MAX : 0;
    else if (r >= 0)
        *first = key->has_time ? tl_scale_position(&scale, time) : UINT64_MAX;
    tl_scale_close(&scale);
    /* What follows the last instruction may also be before it. */
    if (r < 0 || *first != cut->end)
        return r;
    struct key last;
    const int reported = key_at(s, lane, cut->end, &last, fail);
    *first += reported >= 0 && compare_keys(&last, key) < 0;
    return reported;
}

/* ---- what is searched in a stream --------------------------------------------------------- */

static bool is_of_one(const struct search *s)
{
    return s->request->stream && *s->request->stream;
}

/* Of all that threads' streams have, only when they did not run is in no other one. */
static void find_absences(struct search *s)
{
    const struct tl_sought *const w = &s->sought;
    s->has_absences = w->kind == TL_FIND_EVENT && w->kinds & 1u << TL_ITEM_GAP && !w->process &&
                      !w->memory && (w->gap < 0 || w->gap == TL_GAP_SWITCHED_OUT);
    s->absences = *w;
    s->absences.kinds = 1u << TL_ITEM_GAP;
    s->absences.gap = TL_GAP_SWITCHED_OUT;
}

/* NULL: nothing. */
static const struct tl_sought *sought_in(const struct search *s, size_t lane)
{
    if (is_of_one(s) || !tl_stream_is_derived(s->cuts[lane].lane->name))
        return &s->sought;
    return s->has_absences ? &s->absences : NULL;
}

/* ---- hits of a stream ----------------------------------------------------------------------- */

static size_t lane_hits(const struct search *s)
{
    return s->n - s->lane_first;
}

/* Is this a position of which the request has already received some hits? */
static bool is_skipped(const struct search *s, uint64_t position)
{
    return s->skip > 0 && s->lane == s->near && position == s->request->at;
}

/* Is a further hit at the same position as the previous one included, if there are `n`? */
static bool together(const struct search *s, uint64_t n)
{
    return n < s->limit + TL_FIND_TOGETHER;
}

static int add_hit(void *context, uint64_t position, uint64_t pc, const char *text)
{
    struct search *const s = context;
    /* Backward the last hits of a window are skipped, and wanted. */
    if (!s->request->backward && is_skipped(s, position)) {
        s->skip--;
        return TL_OK;
    }
    if (!s->request->backward && lane_hits(s) >= s->limit &&
        (s->hits[s->n - 1].at.insn != position || !together(s, lane_hits(s))))
        return TL_LIMIT;
    if (tl_grow(&s->hits, &s->cap, s->n + 1, sizeof *s->hits) < 0 ||
        tl_grow(&s->lanes, &s->cap_lanes, s->n + 1, sizeof *s->lanes) < 0)
        return TL_NOMEM;
    struct tl_hit *const hit = &s->hits[s->n];
    s->lanes[s->n++] = (uint32_t)s->lane;
    *hit = (struct tl_hit){.at.insn = position, .pc = pc};
    memcpy(hit->stream, s->cuts[s->lane].lane->name, sizeof hit->stream);
    memcpy(hit->text, text, strlen(text) + 1);
    return TL_OK;
}

static void reverse(struct tl_hit *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        const struct tl_hit hit = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = hit;
    }
}

/* Add times and byte offsets to a window's hits, which are all in one chunk, nearest first. */
static int place_hits(struct search *s, struct tl_fail *fail)
{
    const struct tl_cut *const cut = &s->cuts[s->lane];
    struct tl_hit *const hits = s->hits + s->window;
    const size_t n = s->n - s->window;
    if (n == 0)
        return TL_OK;
    struct tl_scale time, byte = {0};
    const uint64_t first = hits[0].at.insn, last = hits[n - 1].at.insn;
    int r = tl_scale_open(&time, cut, TL_SCALE_TIME, false, first, last, fail);
    if (r >= 0)
        r = tl_scale_open(&byte, cut, TL_SCALE_BYTE, false, first, last, fail);
    for (size_t i = 0; i < n && r >= 0; i++) {
        struct tl_position *const at = &hits[i].at;
        at->has_time = tl_scale_value(&time, at->insn, &at->time);
        if (!tl_scale_value(&byte, at->insn, &at->byte))
            at->byte = 0;
    }
    tl_scale_close(&time);
    tl_scale_close(&byte);
    if (s->request->backward)
        reverse(hits, n);
    return r;
}

static int end_window(void *context)
{
    struct search *const s = context;
    if (s->request->backward) {
        while (s->n > s->window && is_skipped(s, s->hits[s->n - 1].at.insn)) {
            s->skip--;
            s->n--;
        }
        /* Not more than wanted, except for hits at the same position. */
        const size_t before = s->window - s->lane_first;
        const size_t wanted = s->limit > before ? s->limit - before : 0;
        size_t drop = s->n - s->window > wanted ? s->n - s->window - wanted : 0;
        const struct tl_hit *const hits = s->hits + s->window;
        while (drop > 0 && wanted > 0 && hits[drop - 1].at.insn == hits[drop].at.insn &&
               together(s, lane_hits(s) - drop))
            drop--;
        const size_t kept = s->n - s->window - drop;
        if (drop > 0)
            memmove(s->hits + s->window, s->hits + s->window + drop, kept * sizeof *s->hits);
        s->n = s->window + kept;
        s->more |= drop > 0;
    }
    struct tl_fail fail;
    const bool full = s->more && lane_hits(s) >= s->limit;
    const int r = place_hits(s, &fail);
    s->window = s->n;
    return r < 0 ? r : full ? TL_LIMIT : TL_OK;
}

/* Nothing beyond the nearest `limit` hits of earlier streams is needed. */
static int narrow(struct search *s, struct tl_seek_range *range, struct tl_fail *fail)
{
    uint64_t first;
    if (s->lane_first < s->limit)
        return TL_OK;
    const struct key key = key_of(s, s->limit - 1);
    const int r = first_at(s, s->lane, &key, false, &first, fail);
    if (r < 0)
        return r;
    if (s->request->backward && first > range->from) {
        range->from = first;
        s->more = true;
    } else if (!s->request->backward && first < range->to) {
        range->to = first;
        s->more = true;
    }
    return TL_OK;
}

/* The range of the stream to search. */
static int lane_range(struct search *s, struct tl_seek_range *range, struct tl_fail *fail)
{
    const struct tl_find_request *const request = s->request;
    const struct tl_cut *const cut = &s->cuts[s->lane];
    const bool one = is_of_one(s);
    *range = (struct tl_seek_range){.from = one ? request->from : 0,
                                    .to = one ? request->to : UINT64_MAX,
                                    .backward = request->backward};
    range->first = range->from;
    range->tail = range->to >= cut->end;
    int r = TL_OK;
    if (s->near < s->n_cuts) {
        struct key key;
        uint64_t at = 0;
        r = key_at(s, s->near, request->at, &key, fail);
        /* If the search continues among the hits at a position, that position belongs to
         * the range. */
        if (r >= 0)
            r = first_at(s, s->lane, &key, request->backward == (request->skip > 0), &at, fail);
        if (request->backward && at < range->to) {
            range->to = at;
            range->tail &= at > cut->end;
        }
        if (!request->backward && at > range->from)
            range->from = at;
    }
    if (r >= 0)
        r = narrow(s, range, fail);
    range->tail &= range->to >= cut->end;
    return r;
}

static int search_lane(struct search *s, struct tl_fail *fail)
{
    const struct tl_sought *const sought = sought_in(s, s->lane);
    struct tl_seek_range range;
    struct tl_seek seek;
    size_t first, end;
    if (!sought)
        return TL_OK;
    int r = lane_range(s, &range, fail);
    if (r < 0 || (range.from >= range.to && !range.tail) || range.from > range.to)
        return r;
    const bool before = s->more;
    s->more = false;
    r = tl_seek_init(&seek, sought, &s->cuts[s->lane]);
    seek.sink = add_hit;
    seek.context = s;
    tl_seek_shards(&s->cuts[s->lane], &range, &first, &end);
    for (size_t i = first; i < end && r >= 0; i++)
        r = tl_seek_shard(&seek, range.backward ? end - 1 - (i - first) : i, &range, end_window,
                          fail);
    if (r == TL_LIMIT) {
        s->more = true;
        r = place_hits(s, fail);
    }
    tl_seek_fini(&seek);
    s->more |= before;
    return r;
}

/* Merge the last stream's hits with the earlier ones, and keep the nearest. */
static int merge(struct search *s)
{
    const size_t n = s->lane_first, all = s->n;
    struct tl_hit *const hits = calloc(all + 1, sizeof *hits);
    uint32_t *const lanes = calloc(all + 1, sizeof *lanes);
    if (!hits || !lanes) {
        free(hits);
        free(lanes);
        return TL_NOMEM;
    }
    for (size_t a = 0, b = n, to = 0; to < all; to++) {
        const struct key x = key_of(s, a < n ? a : 0), y = key_of(s, b < all ? b : n);
        const int order = s->request->backward ? -compare_keys(&x, &y) : compare_keys(&x, &y);
        const size_t from = b == all || (a < n && order <= 0) ? a++ : b++;
        hits[to] = s->hits[from];
        lanes[to] = s->lanes[from];
    }
    memcpy(s->hits, hits, all * sizeof *hits);
    memcpy(s->lanes, lanes, all * sizeof *lanes);
    free(hits);
    free(lanes);
    size_t kept = all < s->limit ? all : s->limit;
    while (kept > 0 && kept < all && s->lanes[kept] == s->lanes[kept - 1] &&
           s->hits[kept].at.insn == s->hits[kept - 1].at.insn && together(s, kept))
        kept++;
    s->more |= kept < all;
    s->n = kept;
    return TL_OK;
}

static int search_lanes(struct search *s, struct tl_fail *fail)
{
    int r = TL_OK;
    for (s->lane = 0; s->lane < s->n_cuts && r >= 0; s->lane++) {
        s->lane_first = s->window = s->n;
        r = search_lane(s, fail);
        if (r >= 0 && s->lane_first > 0 && s->n > s->lane_first)
            r = merge(s);
    }
    return r;
}

/* ---- counting ------------------------------------------------------------------------------- */

/*
 * Number of hits at the position of hit `i` that were skipped, because the request already has
 * them.
 */
static uint64_t had_before(const struct search *s, size_t i)
{
    return s->lanes[i] == s->near && s->hits[i].at.insn == s->request->at ? s->request->skip : 0;
}

/* How many of the `n` hits at the position of hits[0] precede it. */
static uint64_t at_its_place(const struct search *s, uint64_t n)
{
    const uint64_t had = had_before(s, 0);
    return !s->request->backward ? had : n > had ? n - had - 1 : 0;
}

static int count_lane(const struct search *s, size_t lane, struct tl_found *out,
                      struct tl_fail *fail)
{
    const struct tl_find_request *const request = s->request;
    const struct tl_sought *const sought = sought_in(s, lane);
    const bool one = is_of_one(s);
    if (!sought)
        return TL_OK;
    struct tl_seek_range range = {.from = one ? request->from : 0,
                                  .to = one ? request->to : UINT64_MAX};
    uint64_t split = 0, counts[3] = {0}; /* before `split`, at it, and after it */
    int r = TL_OK;
    if (s->n > 0) {
        const struct key key = key_of(s, 0);
        r = first_at(s, lane, &key, false, &split, fail);
    }
    range.first = range.from;
    range.tail = range.to >= s->cuts[lane].end;
    const struct tl_seek_edges edges = {(const uint64_t[]){split, split + 1},
                                        split == UINT64_MAX ? 1 : 2};
    if (r >= 0)
        r = tl_seek_count_between(s->lake, sought, &s->cuts[lane], &range, &edges, counts, fail);
    out->total += counts[0] + counts[1] + counts[2];
    out->before += counts[0];
    if (s->n > 0 && lane == s->lanes[0])
        out->before += at_its_place(s, counts[1]);
    return r;
}

/* ---- the answer ----------------------------------------------------------------------------- */

/* Open all streams of the trace, or the requested one. */
static int open_cuts(struct search *s, struct tl_fail *fail)
{
    const struct tl_find_request *const request = s->request;
    if (is_of_one(s)) {
        s->cuts = calloc(1, sizeof *s->cuts);
        const struct tl_cut_range range = {TL_UNIT_INSN, request->from, request->to};
        const int r = s->cuts ? tl_cut_open_range(&s->cuts[0], s->lake, request->trace,
                                                  request->stream, &range, fail)
                              : TL_NOMEM;
        s->n_cuts = r >= 0;
        return r;
    }
    struct tl_gen *gen;
    int r = tl_lake_gen(s->lake, request->trace, &gen, fail);
    if (r < 0)
        return r;
    struct tl_lane *lane;
    size_t cap = 0;
    while (r >= 0 && (lane = tl_gen_lane_at(gen, s->n_cuts))) {
        r = tl_grow(&s->cuts, &cap, s->n_cuts + 1, sizeof *s->cuts);
        if (r >= 0)
            r = tl_cut_of_lane_range(&s->cuts[s->n_cuts], gen, lane, &TL_CUT_ALL, fail);
        s->n_cuts += r >= 0;
    }
    tl_gen_put(gen);
    return r;
}

static int find_near(struct search *s, struct tl_fail *fail)
{
    const char *const near = s->request->near;
    s->near = s->n_cuts;
    for (size_t i = 0; near && i < s->n_cuts; i++)
        if (strcmp(s->cuts[i].lane->name, near) == 0)
            s->near = i;
    if (near && s->near == s->n_cuts)
        return tl_fail_set(fail, TL_NOTFOUND, "nothing is searched in stream %.31s", near);
    return TL_OK;
}

/* Number the hits at each position. */
static void number_hits(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const bool same =
            i > 0 && s->lanes[i] == s->lanes[i - 1] && s->hits[i].at.insn == s->hits[i - 1].at.insn;
        s->hits[i].nth = 1 + (same ? s->hits[i - 1].nth : had_before(s, i));
    }
}

/* The first stream of which not everything was searched. */
static void note_behind(const struct tl_cut *cut, struct tl_found *out)
{
    if (!cut->behind || out->behind)
        return;
    out->behind = true;
    out->behind_from = cut->end;
    memcpy(out->behind_stream, cut->lane->name, sizeof out->behind_stream);
}

void tl_found_fini(struct tl_found *found)
{
    free(found->hits);
    *found = (struct tl_found){0};
}

int tl_lake_find(struct tl_lake *lake, const struct tl_find_request *request, struct tl_found *out,
                 struct tl_fail *fail)
{
    struct search s = {.lake = lake, .request = request};
    *out = (struct tl_found){0};
    s.skip = request->skip;
    s.limit = request->limit == 0 ? HITS_DEFAULT : request->limit;
    if (s.limit > HITS_MAX)
        s.limit = HITS_MAX;
    int r = open_cuts(&s, fail);
    if (r >= 0)
        r = find_near(&s, fail);
    if (r >= 0 && s.n_cuts > 0) {
        r = tl_sought_init(&s.sought, s.cuts[0].gen, request, fail);
        find_absences(&s);
        if (r >= 0)
            r = search_lanes(&s, fail);
        number_hits(&s);
        for (size_t i = 0; request->count && i < s.n_cuts && r >= 0; i++)
            r = count_lane(&s, i, out, fail);
        out->kind = s.sought.kind;
        memcpy(out->what, s.sought.what, sizeof out->what);
        out->functions = s.sought.functions;
        tl_sought_fini(&s.sought);
    }
    for (size_t i = 0; i < s.n_cuts; i++) {
        note_behind(&s.cuts[i], out);
        tl_cut_close(&s.cuts[i]);
    }
    free(s.cuts);
    free(s.lanes);
    out->hits = s.hits;
    out->n = s.n;
    out->more = s.more;
    return tl_sought_failed(r, fail);
}
