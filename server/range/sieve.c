/* SPDX-License-Identifier: MIT */
/*
 * Keeps the items of a walk that belong to the wanted modes, processes and threads. State is taken
 * from the items themselves, so that stored and virtual shards, and those under construction, are
 * filtered alike; the result takes the place of the walk's items, and readers need not know.
 */
#include "range/sieve.h"
#include "base/cancel.h"
#include "base/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define STATE_KINDS (1u << TL_ITEM_MODE | 1u << TL_ITEM_CONTEXT | 1u << TL_ITEM_NOTE)
#define MODE_FORMS                                                                                 \
    "it is u (user), k (all others), or the begin of a mode as flow text has it: el0 to el3, "     \
    "el1.ns, ring0 to ring3, s, h, m, vu, vs, d; several are separated by commas"

static const char switch_to[] = "switch ";

struct tl_sieve {
    char *mode, *process, *thread; /* NULL: any */
    const struct tl_setup *setup;
    struct tl_flow_now now;
    const char *running; /* the last switch note; NULL: not known. `own`, or of the walk's chunk */
    char *own;
    bool wants; /* the state is a wanted one */
    bool out;   /* something was left out since the last item that was kept */
    uint64_t kept;
    /* Items kept of a chunk: they and the walk's change places. */
    struct tl_item *items;
    uint64_t *positions;
    size_t n, cap_items, cap_positions;
};

static bool is_given(const char *text)
{
    return text && *text;
}

bool tl_range_filter_given(const struct tl_range_filter *filter)
{
    return is_given(filter->mode) || is_given(filter->process) || is_given(filter->thread);
}

/* ---- modes ---------------------------------------------------------------------------------- */

static bool is_user(uint64_t mode)
{
    const unsigned privilege = tl_mode_privilege(mode);
    switch (tl_mode_arch(mode)) {
    case TL_ARCH_ARM:
        return privilege == 0;
    case TL_ARCH_RISCV:
        return privilege == 0 || privilege == 4;
    case TL_ARCH_X86:
        return privilege == 3;
    default:
        return false;
    }
}

static bool is_word(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(word, name, n) == 0;
}

/* Is the mode, whose text is given, that of a word of the filter? */
static bool fits_word(uint64_t mode, const char *text, const char *word, size_t n)
{
    if (is_word(word, n, "u") || is_word(word, n, "user"))
        return is_user(mode);
    if (is_word(word, n, "k") || is_word(word, n, "kernel"))
        return !is_user(mode);
    return strncasecmp(text, word, n) == 0 && (text[n] == '.' || text[n] == '\0');
}

static bool fits_mode(const char *modes, uint64_t mode)
{
    char text[32];
    tl_mode_text(mode, text);
    for (size_t n; *modes; modes += n + (modes[n] == ',')) {
        n = strcspn(modes, ",");
        if (n > 0 && fits_word(mode, text, modes, n))
            return true;
    }
    return false;
}

/* Can a mode begin with this word? */
static bool is_mode(const char *word, size_t n)
{
    static const char *const names[] = {"u",   "k",   "user",  "kernel", "el0",   "el1",
                                        "el2", "el3", "ring0", "ring1",  "ring2", "ring3",
                                        "s",   "h",   "m",     "vu",     "vs",    "d"};
    const char *const dot = memchr(word, '.', n);
    const size_t first = dot ? (size_t)(dot - word) : n;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_word(word, first, names[i]))
            return true;
    return false;
}

static int check_modes(const char *modes, struct tl_fail *fail)
{
    bool any = false;
    for (size_t n; *modes; modes += n + (modes[n] == ',')) {
        n = strcspn(modes, ",");
        if (n > 0 && !is_mode(modes, n))
            return tl_fail_set(fail, TL_USAGE, "mode %.*s is not known: " MODE_FORMS,
                               (int)(n < 24 ? n : 24), modes);
        any |= n > 0;
    }
    return any ? TL_OK : tl_fail_set(fail, TL_USAGE, "which mode? " MODE_FORMS);
}

/* ---- processes and threads ------------------------------------------------------------------ */

static bool is_number(const char *text, uint64_t value)
{
    char *end;
    const uint64_t number = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && *end == '\0' && number == value;
}

/* "switch PID TID NAME": is it the wanted process, or thread? */
static bool fits_switch(const char *note, const char *wanted, bool thread)
{
    char pid[16], tid[16];
    int name = 0;
    return sscanf(note + sizeof switch_to - 1, "%15[0-9] %15[0-9] %n", pid, tid, &name) == 2 &&
           (strcmp(thread ? tid : pid, wanted) == 0 ||
            tl_text_fits(wanted, note + sizeof switch_to - 1 + name));
}

/* Where nothing tells of switches, processes and threads are contexts. */
static bool fits_context(const struct tl_sieve *s, const char *wanted)
{
    const char *name = NULL;
    if (s->now.has_context)
        name = tl_setup_context_name(s->setup, false, s->now.context);
    if (!name && s->now.has_vmid)
        name = tl_setup_context_name(s->setup, true, s->now.vmid);
    return (s->now.has_context && is_number(wanted, s->now.context)) ||
           (name && tl_text_fits(wanted, name));
}

static bool fits_program(const struct tl_sieve *s, const char *wanted, bool thread)
{
    if (!wanted)
        return true;
    return s->running ? fits_switch(s->running, wanted, thread) : fits_context(s, wanted);
}

static bool is_wanted(const struct tl_sieve *s)
{
    return (!s->mode || (s->now.has_mode && fits_mode(s->mode, s->now.mode))) &&
           fits_program(s, s->process, false) && fits_program(s, s->thread, true);
}

static bool is_switch(const struct tl_item *item)
{
    return item->kind == TL_ITEM_NOTE && item->text &&
           strncmp(item->text, switch_to, sizeof switch_to - 1) == 0;
}

/* Keep the switch note for when its chunk is gone. */
static int own_running(struct tl_sieve *s)
{
    if (s->running == s->own)
        return TL_OK;
    char *const copy = strdup(s->running);
    if (!copy)
        return TL_NOMEM;
    free(s->own);
    s->running = s->own = copy;
    return TL_OK;
}

/* ---- what ran where the range begins -------------------------------------------------------- */

/* Can a shard have notes? What the catalog's summary does not cover can. */
static bool has_notes(const struct tl_shard_row *row, const struct tl_buckets *summary,
                      bool covered)
{
    if (!covered)
        return true;
    const uint64_t last = (row->first + row->n) >> 2 * summary->level;
    for (uint64_t i = row->first >> 2 * summary->level; i <= last; i++)
        if (i >= summary->first && i - summary->first < summary->n &&
            summary->p[i - summary->first].event_mask & TL_HAS_NOTE)
            return true;
    return false;
}

/* Take the last switch of a chunk before `from`. TL_OK, TL_EOF: there is one. */
static int last_of_chunk(struct tl_sieve *s, struct tl_view *view, size_t chunk,
                         struct tl_walk_range *range, struct tl_walk *walk, struct tl_fail *fail)
{
    int r = tl_walk_chunk(walk, view, chunk, range, fail);
    for (size_t i = walk->n; r >= 0 && i-- > 0;)
        if (is_switch(&walk->items[i])) {
            s->running = walk->items[i].text;
            r = own_running(s);
            return r < 0 ? r : TL_EOF;
        }
    return r;
}

static int last_of_shard(struct tl_sieve *s, const struct tl_cut *cut, size_t shard,
                         struct tl_walk_range *range, struct tl_walk *walk, struct tl_fail *fail)
{
    struct tl_view *view;
    int r = tl_cut_view(cut, shard, &view, fail);
    if (r < 0)
        return r;
    for (size_t i = view->index.n_chunks; r >= 0 && i-- > 0;) {
        const struct tl_chunk *const chunk = &view->index.chunks[i];
        if (chunk->first < range->to && chunk->kinds & 1u << TL_ITEM_NOTE)
            r = last_of_chunk(s, view, i, range, walk, fail);
        if (r >= 0)
            r = tl_cancel_check();
    }
    tl_view_put(view);
    return r;
}

static int find_running(struct tl_sieve *s, const struct tl_cut_walk *at, struct tl_fail *fail)
{
    const struct tl_cut *const cut = at->cut;
    struct tl_walk walk = {.detail = TL_WALK_ITEMS};
    struct tl_walk_range range = {.to = at->range.from, .protocol = at->range.protocol};
    struct tl_buckets summary = {0};
    uint64_t covered = 0;
    int r = tl_cut_summary(cut, 0, range.to, &summary, &covered, NULL);
    if (r < 0)
        covered = 0;
    r = TL_OK;
    for (size_t i = tl_cut_items_at(cut, range.to) + 1; r >= 0 && range.to > 0 && i-- > 0;)
        if (i < cut->n_rows && has_notes(&cut->rows[i], &summary, i < covered))
            r = last_of_shard(s, cut, i, &range, &walk, fail);
    tl_buckets_fini(&summary);
    tl_walk_fini(&walk);
    return r == TL_EOF ? TL_OK : r;
}

/* ---- items ---------------------------------------------------------------------------------- */

static int keep(struct tl_sieve *s, const struct tl_item *item, uint64_t position)
{
    int r = tl_grow(&s->items, &s->cap_items, s->n + 1, sizeof *s->items);
    if (r >= 0)
        r = tl_grow(&s->positions, &s->cap_positions, s->n + 1, sizeof *s->positions);
    if (r < 0)
        return r;
    s->items[s->n] = *item;
    s->positions[s->n++] = position;
    return TL_OK;
}

/* Tell that something was left out, and the state from here on. */
static int keep_state(struct tl_sieve *s, uint64_t offset, uint64_t position)
{
    const struct tl_flow_now *const now = &s->now;
    const struct tl_item items[] = {
        {.kind = TL_ITEM_GAP, .sub = TL_GAP_OFF},
        {.kind = TL_ITEM_TRACE_ON},
        {.kind = TL_ITEM_MODE, .flags = TL_ITEM_HAS_VALUE, .value = now->mode},
        {.kind = TL_ITEM_CONTEXT,
         .flags = (uint8_t)((now->has_context ? TL_ITEM_HAS_PC : 0) |
                            (now->has_vmid ? TL_ITEM_HAS_VALUE : 0)),
         .pc = now->context,
         .value = now->vmid},
        {.kind = TL_ITEM_NOTE, .text = s->running},
        {.kind = TL_ITEM_TIME, .flags = TL_ITEM_HAS_VALUE, .value = now->time},
    };
    const bool known[] = {
        true,         true, now->has_mode, now->has_context || now->has_vmid, s->running != NULL,
        now->has_time};
    int r = TL_OK;
    for (size_t i = 0; i < sizeof items / sizeof *items && r >= 0; i++) {
        struct tl_item item = items[i];
        item.offset = offset;
        if (known[i])
            r = keep(s, &item, position);
    }
    return r;
}

/* Take an item that tells of the state, or the time. True: it is nothing else. */
static bool take_state(struct tl_sieve *s, const struct tl_item *item)
{
    if (item->kind == TL_ITEM_MODE || item->kind == TL_ITEM_CONTEXT || is_switch(item)) {
        tl_flow_now_item(&s->now, item);
        if (item->kind == TL_ITEM_NOTE)
            s->running = item->text;
        s->wants = is_wanted(s);
        s->out |= !s->wants;
        return true;
    }
    if (item->kind != TL_ITEM_BLOCK)
        tl_flow_now_item(&s->now, item);
    return item->kind == TL_ITEM_TIME;
}

static int take_item(struct tl_sieve *s, const struct tl_item *item, uint64_t position)
{
    int r = TL_OK;
    const bool state = take_state(s, item);
    if (!s->wants) {
        s->out = true;
        return TL_OK;
    }
    if (s->out && state)
        return TL_OK; /* told where the stretch begins */
    if (s->out)
        r = keep_state(s, item->offset, position);
    s->out = false;
    if (item->kind == TL_ITEM_BLOCK)
        s->kept += item->n;
    else if (item->kind == TL_ITEM_UNKNOWN)
        s->kept++;
    return r < 0 ? r : keep(s, item, position);
}

static void change_places(struct tl_sieve *s, struct tl_walk *walk)
{
    const struct tl_sieve was = *s;
    s->items = walk->items;
    s->positions = walk->positions;
    s->cap_items = walk->cap_items;
    s->cap_positions = walk->cap_positions;
    walk->items = was.items;
    walk->positions = was.positions;
    walk->cap_items = was.cap_items;
    walk->cap_positions = was.cap_positions;
    walk->n = was.n;
}

/* Pass over chunks that have nothing to keep. */
static int skip(const struct tl_sieve *s, struct tl_cut_walk *walk, struct tl_fail *fail)
{
    const struct tl_chunk *chunk;
    int r = TL_OK;
    while (r >= 0 && (r = tl_cut_walk_peek(walk, &chunk, fail)) >= 0 && chunk && !s->wants &&
           !(chunk->kinds & STATE_KINDS)) {
        tl_cut_walk_skip(walk);
        r = tl_cancel_check();
    }
    return r;
}

int tl_sieve_next(struct tl_sieve *s, struct tl_cut_walk *walk, struct tl_fail *fail)
{
    const bool begins = !walk->at;
    int r = own_running(s);
    if (r >= 0 && !begins)
        r = skip(s, walk, fail);
    if (r >= 0)
        r = tl_cut_walk_next(walk, fail);
    if (r < 0)
        return r;
    s->now = walk->walk.now;
    if (begins) {
        s->wants = is_wanted(s);
        s->out = !s->wants;
    }
    s->n = 0;
    for (size_t i = 0; i < walk->walk.n && r >= 0; i++)
        r = take_item(s, &walk->walk.items[i], walk->walk.positions[i]);
    if (r < 0)
        return r;
    change_places(s, &walk->walk);
    return TL_OK;
}

uint64_t tl_sieve_kept(const struct tl_sieve *sieve)
{
    return sieve->kept;
}

/* ---- from the filter ------------------------------------------------------------------------ */

static int copy_text(char **out, const char *text)
{
    *out = is_given(text) ? strdup(text) : NULL;
    return is_given(text) && !*out ? TL_NOMEM : TL_OK;
}

int tl_sieve_new(struct tl_sieve **out, const struct tl_range_filter *filter,
                 const struct tl_cut_walk *walk, struct tl_fail *fail)
{
    int r = is_given(filter->mode) ? check_modes(filter->mode, fail) : TL_OK;
    if (r < 0)
        return r;
    struct tl_sieve *const s = calloc(1, sizeof *s);
    if (!s || copy_text(&s->mode, filter->mode) < 0 ||
        copy_text(&s->process, filter->process) < 0 || copy_text(&s->thread, filter->thread) < 0) {
        tl_sieve_free(s);
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    }
    s->setup = &walk->cut->gen->setup;
    r = s->process || s->thread ? find_running(s, walk, fail) : TL_OK;
    if (r < 0)
        tl_sieve_free(s);
    else
        *out = s;
    return r;
}

void tl_sieve_free(struct tl_sieve *s)
{
    if (!s)
        return;
    free(s->mode);
    free(s->process);
    free(s->thread);
    free(s->own);
    free(s->items);
    free(s->positions);
    free(s);
}
