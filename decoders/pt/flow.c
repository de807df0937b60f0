/* SPDX-License-Identifier: MIT */
/*
 * Columns are used as long as no event is pending, since most packets are outcomes and targets; the
 * rest goes through the event decoder, which may need packets that have not arrived. Then the bytes
 * are held and the decoder works on a copy, so that it can begin again when they come.
 */
#include "pt/flow.h"

#include "flow/walker_routes.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BAD_PACKET[] = "bad packet";
static const struct tl_pt_event_options options = {.anew_at_psb = true, .skip_empty_cyc = true};

/* ---- life ------------------------------------------------------------------------------------ */

static void begin_flow(struct tl_pt_flow *f)
{
    tl_pt_events_init(&f->events, f->config, (struct tl_bytes){0}, &options);
    f->base = f->anchor = f->lost_at = f->reported_tsc = f->beside = 0;
    f->upper = f->enabled = f->lost = f->has_time = f->postponed = f->strayed =
        f->context_reported = false;
    f->is_guest = false;
    f->host = (struct tl_image_context){0};
    f->n_outcomes = f->bound = 0;
    f->isa = TL_ISA_NONE;
    tl_buf_reset(&f->held);
}

int tl_pt_flow_new(struct tl_pt_flow **out, const struct tl_pt_config *config,
                   const struct tl_image *image, tl_item_sink *items, tl_pt_loss *loss,
                   void *context, bool paths)
{
    struct tl_pt_flow *const f = calloc(1, sizeof *f);
    if (!f)
        return TL_NOMEM;
    const struct tl_walker_config walker = {.image = image,
                                            .bits = TL_WALKER_CONDITIONS,
                                            .predicts_returns = true,
                                            .names_unmapped = true,
                                            .returns = TL_WALKER_RETURNS};
    f->config = config;
    f->loss = loss;
    f->context = context;
    tl_item_batch_init(&f->out, items, context);
    f->out.paths = paths;
    begin_flow(f);
    if (tl_walker_init(&f->walker, &walker, &f->out) < 0) {
        free(f);
        return TL_NOMEM;
    }
    *out = f;
    return TL_OK;
}

void tl_pt_flow_free(struct tl_pt_flow *f)
{
    if (!f)
        return;
    tl_walker_fini(&f->walker);
    tl_buf_fini(&f->held);
    free(f);
}

void tl_pt_flow_reset(struct tl_pt_flow *f)
{
    begin_flow(f);
    tl_walker_begin(&f->walker);
    tl_item_batch_reset(&f->out);
}

struct tl_walker *tl_pt_flow_walker(struct tl_pt_flow *f)
{
    return &f->walker;
}

void tl_pt_flow_tell_restart(struct tl_pt_flow *f)
{
    const int rc = f->loss ? tl_walker_tell_restart(&f->walker, f->loss, f->context) : TL_OK;
    if (rc < 0 && f->out.rc >= 0)
        f->out.rc = rc;
}

/* ---- packets as events ----------------------------------------------------------------------- */

/* Packets that can be decoded on their own, as long as no event is pending. */
static bool is_plain(const struct tl_pt_events *d)
{
    switch (d->packet.kind) {
    case TL_PT_TNT_8:
    case TL_PT_TNT_64:
    case TL_PT_TIP:
    case TL_PT_TSC:
    case TL_PT_MTC:
    case TL_PT_CYC:
        return d->failed == TL_PT_OK && d->n == 0 && !d->bound && d->enabled;
    default:
        return false;
    }
}

static void lose_sync(struct tl_pt_flow *f, uint64_t offset)
{
    if (f->lost)
        return;
    f->lost = true;
    f->lost_at = offset;
    f->enabled = f->postponed = false;
    f->n_outcomes = 0;
    tl_walker_lose(&f->walker, TL_GAP_BAD_PACKET, offset);
}

/* Resynchronise at a PSB. */
static int find_sync(struct tl_pt_flow *f, uint64_t offset)
{
    const struct tl_bytes trace = f->events.trace;
    const size_t next = f->events.next;
    if (!f->lost)
        return TL_OK;
    f->lost = false;
    tl_pt_events_init(&f->events, f->config, trace, &options);
    f->events.next = next;
    return f->loss ? f->loss(f->context, BAD_PACKET, f->lost_at, offset - f->lost_at) : TL_OK;
}

/* Fetch the packet at byte `at`, or if lost the next PSB. False: there is none. */
static bool look_at(struct tl_pt_flow *f, size_t at, int *rc)
{
    struct tl_pt_events *const d = &f->events;
    d->next = at;
    do {
        tl_pt_event_fetch(d);
    } while (f->lost && d->failed == TL_PT_OK && d->packet.kind != TL_PT_PSB);
    if (d->failed != TL_PT_OK || !f->lost)
        return !f->lost;
    const size_t psb = (size_t)d->packet.offset;
    d->next = psb;
    *rc = find_sync(f, f->base + psb);
    d->next = psb;
    tl_pt_event_fetch(d);
    return *rc >= 0;
}

/* Copy the decoder; of its queue only the used entries. */
static void keep(struct tl_pt_events *copy, const struct tl_pt_events *d)
{
    memcpy(copy, d, offsetof(struct tl_pt_events, queue) + d->n * sizeof d->queue[0]);
}

/*
 * Process packets as events from byte `at` of `in`, at least up to byte `min`, and then until the
 * columns can be used again. `*at` is set to that position, to the end, or, if `more` bytes may
 * follow, to the first byte that cannot be processed before they arrive. Returns 1 in the last
 * case, else 0 or an error.
 */
static int take_events(struct tl_pt_flow *f, struct tl_bytes in, size_t *at, size_t min, bool more)
{
    struct tl_pt_events *const d = &f->events;
    int rc = TL_OK;
    d->trace = in;
    if (!look_at(f, *at, &rc)) {
        *at = in.n;
        return rc;
    }
    for (;;) {
        struct tl_pt_event event;
        *at = (size_t)d->packet.offset;
        if (*at >= min && is_plain(d))
            return TL_OK;
        if (d->failed == TL_PT_EOS && !more) {
            *at = in.n;
            return TL_OK;
        }
        struct tl_pt_events before;
        keep(&before, d);
        d->looked_ahead = false;
        const enum tl_pt_error e = tl_pt_events_next(d, &event);
        if (more && (e == TL_PT_EOS || d->looked_ahead)) {
            const bool waits = before.n > 0 || before.failed != TL_PT_EOS;
            if (!waits && *at == in.n)
                return TL_OK;
            keep(d, &before);
            return 1;
        }
        if (e == TL_PT_OK) {
            tl_pt_flow_event(f, &event, f->base + event.packet.offset);
            continue;
        }
        if (e == TL_PT_EOS)
            continue;
        lose_sync(f, f->base + d->packet.offset);
        if (!look_at(f, d->next, &rc)) {
            *at = in.n;
            return rc;
        }
    }
}

/* ---- held bytes ------------------------------------------------------------------------------ */

/* Hold the bytes from `at` on until more arrive. Offsets are then relative to `at`. */
static int hold(struct tl_pt_flow *f, struct tl_bytes in, size_t at)
{
    struct tl_pt_events *const d = &f->events;
    struct tl_buf kept = {0};
    const int rc = tl_buf_add(&kept, in.p + at, in.n - at);
    if (rc < 0)
        return rc;
    tl_buf_fini(&f->held);
    f->held = kept;
    f->base += at;
    for (unsigned i = 0; i < d->n; i++)
        d->queue[i].event.packet.offset -= at;
    return TL_OK;
}

/* Process all held bytes: the ones they waited for do not follow. */
static int take_held(struct tl_pt_flow *f)
{
    const struct tl_bytes in = {f->held.p, f->held.n};
    size_t at = 0;
    const int rc = take_events(f, in, &at, in.n, false);
    tl_buf_reset(&f->held);
    return rc;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Follow outcomes and, if `arrives`, then a branch to `ip`, block by block. */
static __attribute__((noinline)) void take_steps(struct tl_pt_flow *f, uint64_t word, bool arrives,
                                                 uint64_t ip, uint64_t offset)
{
    if (word > 1) {
        const unsigned n = 63 - (unsigned)__builtin_clzll(word);
        tl_pt_flow_outcomes(f, tl_pt_oldest_first(word, n), n, f->anchor);
    }
    if (arrives)
        tl_pt_flow_tip(f, ip, offset);
}

/* The same, using routes as far as possible. */
static inline __attribute__((always_inline)) void
take_branches(struct tl_pt_flow *f, uint64_t word, bool arrives, uint64_t ip, uint64_t offset)
{
    if (f->n_outcomes == 0 && (!arrives || tl_pt_flow_keeps_mode(f, ip))) {
        const uint64_t first = word > 1 ? f->anchor : offset;
        if (f->has_time)
            tl_pt_flow_report_time(f, first);
        f->postponed = false;
        if (tl_walker_routes(&f->walker, &word, arrives, ip, first)) {
            if (arrives)
                tl_item_batch_pause(&f->out);
            return;
        }
    }
    take_steps(f, word, arrives, ip, offset);
}

/* Follow outcomes that follow those of the column. */
static __attribute__((noinline)) void take_more(struct tl_pt_flow *f, uint64_t word,
                                                uint64_t offset)
{
    take_branches(f, word, false, 0, offset);
}

static inline void take_cycles(struct tl_pt_flow *f, uint64_t cycles)
{
    f->events.cycles += cycles;
    f->events.counts_cycles = true;
    if (cycles == 0)
        return;
    tl_pt_clock_cyc(&f->events.clock, f->config, cycles);
    f->events.has_cycles = f->has_time = true;
}

static void take_time(struct tl_pt_flow *f, uint8_t kind, uint64_t value)
{
    struct tl_pt_packet packet = {.kind = kind};
    if (kind == TL_PT_TSC)
        packet.tsc = value;
    else
        packet.mtc = (uint8_t)value;
    tl_pt_clock_packet(&f->events.clock, f->config, &packet, false);
    f->has_time = true;
}

/* Join outcomes `older` and `newer`, each below a stop bit. If they are too many, the older ones
 * are followed at once and `newer` is returned. */
static inline uint64_t join(struct tl_pt_flow *f, uint64_t older, uint64_t newer)
{
    const unsigned n = 63 - (unsigned)__builtin_clzll(newer);
    if (63 - (unsigned)__builtin_clzll(older) + n <= TL_ROUTE_WORD)
        return older << n | (newer ^ UINT64_C(1) << n);
    take_more(f, older, f->anchor);
    return newer;
}

/* Whether outcomes of entry `k` precede byte `done`, which is not after its packet. */
static bool has_begun(const struct tl_pt_flow *f, const struct tl_pt_tape *tape, struct tl_bytes in,
                      size_t k, size_t done)
{
    return done > (k > 0 ? tl_pt_tape_at(tape, k - 1) : tape->begin) &&
           done > tl_pt_tape_from(tape, f->config, in, k);
}

/* Process entries that need no event, from `k` on; packets before byte `done` have already been
 * processed. Returns the first entry that needs one. */
static size_t take_columns(struct tl_pt_flow *f, const struct tl_pt_tape *tape, struct tl_bytes in,
                           size_t k, size_t done)
{
    if (f->events.n > 0 || f->events.bound || f->lost)
        return k;
    const size_t begun = k < tape->n && has_begun(f, tape, in, k, done) ? k : tape->n;
    const uint64_t base = f->base + tape->begin;
    /* Outcomes that can still be joined with later ones, since no time is in between. */
    uint64_t waiting = 1;
    for (; k < tape->n && f->events.enabled; k++) {
        const uint64_t offset = base + tape->at[k], value = tape->value[k];
        const uint8_t kind = tape->kind[k];
        uint64_t outcomes = k != begun ? tape->tnt[k] : 1;
        if (waiting > 1)
            outcomes = join(f, waiting, outcomes);
        if (kind == TL_PT_CYC && value == 0) {
            take_cycles(f, 0);
            waiting = outcomes;
            continue;
        }
        waiting = 1;
        if (outcomes > 1 || kind == TL_PT_TIP)
            take_branches(f, outcomes, kind == TL_PT_TIP, value, offset);
        switch (kind) {
        case TL_PT_PAD:
            continue;
        case TL_PT_TNT_8:
        case TL_PT_TNT_64:
            take_more(f, value, offset);
            continue;
        case TL_PT_TIP:
            f->events.last_ip = (struct tl_pt_last_ip){.ip = value, .have = true};
            break;
        case TL_PT_CYC:
            take_cycles(f, value);
            break;
        case TL_PT_TSC:
        case TL_PT_MTC:
            take_time(f, kind, value);
            break;
        default:
            return k;
        }
        f->anchor = offset;
    }
    if (waiting > 1)
        take_more(f, waiting, f->anchor);
    return k;
}

/*
 * Process packets from byte `*done` on as events, at least up to byte `min`, and then until an
 * entry from which the columns can be used: sets `*k` to it, and `*done` to the end of what was
 * processed. These are offsets in the tape's bytes, which are preceded in `in` by `held` others.
 * Returns as take_events().
 */
static int take_entries(struct tl_pt_flow *f, const struct tl_pt_tape *tape,
                        const struct tl_pt_piece *piece, struct tl_bytes in, size_t held,
                        size_t min, size_t *k, size_t *done)
{
    for (size_t at = *done + held;;) {
        const int rc = take_events(f, in, &at, min + held, true);
        *done = at - held;
        /* A PAD that ends a column of outcomes is not a packet. */
        while (*k < tape->n && tl_pt_tape_at(tape, *k) < *done + (tape->kind[*k] == TL_PT_PAD))
            ++*k;
        if (rc != TL_OK || *k == tape->n || tl_pt_tape_at(tape, *k) <= *done ||
            !has_begun(f, tape, piece->bytes, *k, *done))
            return rc;
        min = tl_pt_tape_at(tape, *k); /* stopped within joined outcomes */
    }
}

/* Process packets from entry `*k` on, which cannot be processed as columns. */
static int take_entry(struct tl_pt_flow *f, const struct tl_pt_tape *tape,
                      const struct tl_pt_piece *piece, size_t *k, size_t *done)
{
    const bool columns = f->events.enabled && f->events.n == 0 && !f->events.bound && !f->lost;
    const struct tl_bytes in = {piece->bytes.p, piece->to};
    const size_t at = tl_pt_tape_at(tape, *k);
    *done = columns || has_begun(f, tape, in, *k, *done) ? at
                                                         : tl_pt_tape_from(tape, f->config, in, *k);
    return take_entries(f, tape, piece, in, 0, at + 1, k, done);
}

/* Process held bytes together with those of the tape that they waited for. */
static int end_hold(struct tl_pt_flow *f, const struct tl_pt_tape *tape,
                    const struct tl_pt_piece *piece, size_t *k, size_t *done)
{
    /* Held bytes that precede the tape's bytes. */
    const size_t held = f->held.n - piece->from;
    int rc = tl_buf_add(&f->held, piece->bytes.p + piece->from, piece->to - piece->from);
    if (rc < 0)
        return rc;
    const struct tl_bytes in = {f->held.p, f->held.n};
    *done = -held;
    if (in.n >= TL_PT_FLOW_HELD) {
        *k = tape->n;
        return take_held(f);
    }
    rc = take_entries(f, tape, piece, in, held, piece->from, k, done);
    if (rc == 1)
        return hold(f, in, *done + held) < 0 ? TL_NOMEM : 1;
    tl_buf_reset(&f->held);
    return rc;
}

int tl_pt_flow_tape(struct tl_pt_flow *f, const struct tl_pt_tape *tape,
                    const struct tl_pt_piece *piece)
{
    const struct tl_bytes in = {piece->bytes.p, piece->to};
    size_t k = 0, done = 0;
    int rc = f->held.n > 0 ? end_hold(f, tape, piece, &k, &done) : TL_OK;
    if (rc == TL_OK) {
        f->base = piece->base;
        while (k < tape->n && rc == TL_OK) {
            k = take_columns(f, tape, in, k, done);
            if (k < tape->n)
                rc = take_entry(f, tape, piece, &k, &done);
        }
        if (rc == 1)
            rc = hold(f, in, done);
    }
    tl_walker_trim(&f->walker);
    return rc < 0 ? rc : f->walker.failed ? TL_NOMEM : f->out.rc;
}

int tl_pt_flow_bad(struct tl_pt_flow *f, uint64_t offset)
{
    const int rc = f->held.n > 0 ? take_held(f) : TL_OK;
    lose_sync(f, offset);
    return rc < 0 ? rc : f->walker.failed ? TL_NOMEM : f->out.rc;
}

void tl_pt_flow_move(struct tl_pt_flow *f, uint64_t bytes)
{
    if (f->held.n > 0)
        f->base += bytes;
    if (f->lost)
        f->lost_at += bytes;
}

int tl_pt_flow_notice(struct tl_pt_flow *f, const struct tl_stream_notice *notice)
{
    enum { ROOM = 64 };
    struct tl_walker *const w = &f->walker;
    if (f->has_time)
        tl_pt_flow_report_time(f, f->anchor);
    if (notice->is_gap)
        tl_walker_lose(w, (enum tl_gap)notice->gap, notice->offset);
    if (notice->time > f->reported_tsc && notice->time > f->beside) {
        tl_walker_estimate(w, notice->time, false, 0, notice->offset);
        f->beside = notice->time;
    }
    if (notice->has_context) {
        f->context_reported = true;
        tl_pt_flow_host(f, &notice->context, notice->offset);
    }
    if (notice->note) {
        char *const text = tl_item_batch_store(&f->out, ROOM);
        snprintf(text, ROOM, "%s", notice->note);
        tl_item_batch_add(&f->out, TL_ITEM_NOTE, notice->offset)->text = text;
    }
    return w->failed ? TL_NOMEM : f->out.rc;
}

int tl_pt_flow_flush(struct tl_pt_flow *f)
{
    return tl_item_batch_flush(&f->out);
}

int tl_pt_flow_finish(struct tl_pt_flow *f, uint64_t end)
{
    int rc = f->held.n > 0 ? take_held(f) : TL_OK;
    if (rc >= 0)
        rc = tl_pt_flow_flush(f);
    if (rc >= 0 && f->lost && f->loss && end > f->lost_at)
        rc = f->loss(f->context, BAD_PACKET, f->lost_at, end - f->lost_at);
    return rc;
}
