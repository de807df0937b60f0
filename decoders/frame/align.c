/* SPDX-License-Identifier: MIT */
/*
 * The alarm occurs in the middle of a push, when bytes after it may or may not have been delivered,
 * depending on chunking. Therefore the frame decoder is reset to the push's beginning and fed
 * again, exactly up to the frame of the alarm; sink calls that were already made are muted.
 */
#include "frame/align.h"

#include <stdlib.h>
#include <string.h>

#define FRAME        TL_FRAME_BYTES
#define PATIENCE     ((uint64_t)32 << 10)
#define PATIENCE_MAX ((uint64_t)1 << 40)
#define CHECK_PART   16 /* distance of checkpoints, as a fraction of the bytes so far */

#define PROOF 4 /* checkpoints at which the streams must have understood most of the bytes */

#define ALARM_FRAMES 4 /* frames with unknown sources that raise an alarm */
#define ALARM_APART  3 /* with at most two frames in between that have none */

static const char OUT_OF_STEP[] = "frames out of step";

static uint64_t next_offset(const struct tl_align *a)
{
    return a->tpiu->start + a->tpiu->raw;
}

static bool is_watched(const struct tl_align *a)
{
    return a->watch.judge && a->tpiu->sync == TL_TPIU_ALIGNED;
}

/* Checkpoints are a power of two apart, at multiples of that distance from the first frame. */
static void set_checkpoint(struct tl_align *a)
{
    const uint64_t done = a->tpiu->raw;
    uint64_t apart = TL_ALIGN_CHECK_MIN;
    while (apart < TL_ALIGN_CHECK_MAX && apart * 2 <= done / CHECK_PART)
        apart *= 2;
    a->check_at = a->tpiu->start + (done / apart + 1) * apart;
}

void tl_align_init(struct tl_align *a, struct tl_tpiu *tpiu, const struct tl_align_watch *watch)
{
    *a = (struct tl_align){.tpiu = tpiu, .watch = *watch, .patience = PATIENCE};
    set_checkpoint(a);
}

void tl_align_fini(struct tl_align *a)
{
    free(a->window);
    a->window = NULL;
}

bool tl_align_is_muted(struct tl_align *a)
{
    return a->calls++ < a->mute;
}

/* An unknown source is selected in this frame: raise an alarm? */
static bool is_alarm(struct tl_align *a, uint64_t frame)
{
    if (a->troubled == frame + 1)
        return false;
    if (frame + 1 - a->troubled > ALARM_APART)
        a->trouble = 0;
    a->troubled = frame + 1;
    return ++a->trouble >= ALARM_FRAMES;
}

int tl_align_report_unknown(struct tl_align *a, const struct tl_run *run)
{
    if (!is_watched(a) || a->fed_again)
        return TL_OK;
    const uint64_t start = a->tpiu->start;
    const uint64_t last = (tl_run_offset(run, run->n - 1) - start) / FRAME;
    for (uint64_t f = (tl_run_offset(run, 0) - start) / FRAME; f <= last; f++) {
        const uint64_t end = start + (f + 1) * FRAME;
        if (start + f * FRAME < a->quiet_until || !is_alarm(a, f))
            continue;
        if (end < a->pass_from || end > a->pass_to) /* a damaged state has such frames */
            continue;
        a->alarm = true;
        a->held_from = end;
        return TL_CANCELLED;
    }
    return TL_OK;
}

/* ---- trying alignments -------------------------------------------------------------------- */

/* A change of alignment: `from` bytes of the window keep the old one. */
struct turn {
    bool possible; /* it is to be considered */
    size_t phase;  /* offset of the new alignment; 0: no change */
    size_t from;
    uint32_t syncs, known; /* scores of the whole window with the change */
};

/* Have the streams understood enough in this alignment? A few packets remain intact in wrong ones.
 */
static bool is_proven(const struct tl_align *a)
{
    return a->fits >= PROOF;
}

/* The current source, if only one is known to occur: its ID may never be sent again. */
static uint8_t only_id(const struct tl_align *a)
{
    const struct tl_tpiu *const t = a->tpiu;
    uint8_t only = TL_TPIU_NO_ID;
    for (uint8_t id = 1; id < TL_TPIU_FIRST_RESERVED; id++) {
        const bool spoke = (t->demux.ids[id / 64] | t->ids_sure[id / 64]) >> id % 64 & 1;
        if (!spoke || a->watch.sources.kinds[id] == TL_FIT_UNKNOWN)
            continue;
        if (only != TL_TPIU_NO_ID)
            return TL_TPIU_NO_ID;
        only = id;
    }
    return only;
}

/*
 * Is `fit` clearly better in the slots from `slot` on? A single intact packet may be coincidence.
 */
static bool is_better(const struct tl_fit *fit, const struct tl_fit *now, size_t slot, size_t slots)
{
    uint32_t syncs = 0, syncs_now = 0, lost = 0, lost_now = 0;
    for (; slot < slots; slot++) {
        const uint32_t all = TL_FIT_SLOT - TL_FIT_SLOT / FRAME;
        syncs += fit->syncs[slot];
        syncs_now += now->syncs[slot];
        lost += all - fit->known[slot];
        lost_now += all - now->known[slot];
    }
    return syncs > syncs_now ? syncs > syncs_now + syncs_now / 2
                             : syncs == syncs_now && lost < lost_now - lost_now / 4;
}

/* Scores of the window with alignment `fit` throughout. */
static struct turn whole(const struct tl_fit *fit, size_t phase, size_t slots)
{
    struct turn t = {.phase = phase};
    for (size_t i = 0; i < slots; i++) {
        t.syncs += fit->syncs[i];
        t.known += fit->known[i];
    }
    return t;
}

/* Move the change one slot later. */
static void turn_later(struct turn *t, const struct tl_fit *fit, const struct tl_fit *now)
{
    t->syncs += (uint32_t)now->syncs[t->from] - fit->syncs[t->from];
    t->known += (uint32_t)now->known[t->from] - fit->known[t->from];
    t->from++;
}

/*
 * Find the best position to change to `fit`, which is `phase` bytes off, given the scores `now` of
 * the current alignment. An odd phase takes data for IDs, which the known bytes show at once. With
 * an even phase the scores are nearly equal until `fit` has an intact synchronisation packet: then
 * choose the latest position, since everything before the fault is still good.
 */
static struct turn best_turn(const struct tl_fit *fit, const struct tl_fit *now, size_t phase,
                             size_t slots)
{
    struct turn t = whole(fit, phase, slots), most, best;
    most = best = t;
    while (t.from < slots) {
        turn_later(&t, fit, now);
        if (t.syncs > most.syncs || (t.syncs == most.syncs && t.known > most.known))
            most = t;
    }
    if (phase % 2)
        return most;
    for (t = best; t.from < slots; turn_later(&t, fit, now))
        if (t.syncs == most.syncs && t.known + TL_FIT_SLOT > most.known)
            best = t;
    return best;
}

/* Does `a`, a change at the window's begin, score like `b`? */
static bool scores_alike(const struct turn *a, const struct turn *b)
{
    return a->syncs == b->syncs && a->known + TL_FIT_SLOT > b->known;
}

/* Has another change as many synchronisation packets as `best`? */
static bool is_alike(const struct turn turns[static FRAME], const struct turn *best)
{
    for (size_t phase = 1; phase < FRAME; phase++)
        if (turns[phase].possible && phase != best->phase && turns[phase].syncs == best->syncs)
            return true;
    return false;
}

/* Of several changes with as many synchronisation packets as `best`, which may remain intact in
 * alignments next to the right one, choose that of which the streams understand most, and by known
 * bytes if that is equal. Returns the watch's errors. */
static int choose(const struct tl_align *a, const struct turn turns[static FRAME], uint8_t id,
                  size_t n, struct turn *best)
{
    const uint32_t syncs = best->syncs;
    int64_t most = -1;
    for (size_t phase = 0; phase < FRAME; phase++) {
        if (!turns[phase].possible || turns[phase].syncs != syncs)
            continue;
        const int64_t understood = a->watch.try_frames(a->watch.context, id, a->window + phase, n);
        if (understood < 0)
            return (int)understood;
        if (understood > most || (understood == most && turns[phase].known > best->known))
            *best = turns[phase];
        most = understood > most ? understood : most;
    }
    return TL_OK;
}

/* If no change of an alignment that is not proven is clearly better, those with as many packets are
 * possible, too. */
static void allow_alike(struct turn turns[static FRAME], const struct turn alike[static FRAME],
                        const struct turn *best)
{
    for (size_t phase = 0; best->phase == 0 && phase < FRAME; phase++) {
        turns[phase] = alike[phase];
        turns[phase].possible = best->syncs > 0 && scores_alike(&alike[phase], best);
    }
}

/* Find the best change for the window; phase 0 unless one is clearly better. Returns TL_NOMEM. */
static int find_turn(const struct tl_align *a, struct turn *best)
{
    struct tl_fit_sources sources = a->watch.sources;
    struct tl_fit now, fit;
    struct turn turns[FRAME] = {{0}}, all[FRAME] = {{0}};
    *best = (struct turn){0};
    if (a->held < 2 * FRAME)
        return TL_OK;
    const size_t n = (a->held - FRAME) & ~(size_t)(FRAME - 1);
    const size_t slots = (n + TL_FIT_SLOT - 1) / TL_FIT_SLOT;
    sources.id = only_id(a);
    int rc = tl_fit_frames(&now, &sources, a->window, n);
    *best = all[0] = whole(&now, 0, slots);
    for (size_t phase = 1; rc == TL_OK && phase < FRAME; phase++) {
        rc = tl_fit_frames(&fit, &sources, a->window + phase, n);
        all[phase] = whole(&fit, phase, slots);
        struct turn turn = best_turn(&fit, &now, phase, slots);
        if (!is_better(&fit, &now, turn.from, slots))
            continue;
        if (!is_proven(a) && scores_alike(&all[phase], &turn))
            turn = all[phase];
        turn.possible = true;
        turns[phase] = turn;
        if (!best->phase || turn.syncs > best->syncs ||
            (turn.syncs == best->syncs && turn.known > best->known))
            *best = turn;
    }
    if (!is_proven(a))
        allow_alike(turns, all, best);
    if (rc == TL_OK && is_alike(turns, best) && a->watch.try_frames)
        rc = choose(a, turns, sources.id, n, best);
    best->from *= TL_FIT_SLOT;
    return rc;
}

/* Restart at `offset`, with a frame beginning `phase` bytes after it. */
static int move_frames(struct tl_align *a, uint64_t offset, size_t phase)
{
    const struct tl_tpiu_sink sink = a->tpiu->demux.sink;
    const uint8_t id = only_id(a);
    int rc = tl_tpiu_finish(a->tpiu, TL_TPIU_UNFINISHED);
    if (rc == TL_OK && sink.loss)
        rc = sink.loss(sink.context, OUT_OF_STEP, offset, phase);
    if (rc == TL_OK && sink.reset)
        rc = sink.reset(sink.context, offset + phase, true);
    tl_tpiu_init(a->tpiu, a->tpiu->sync, offset + phase, &sink);
    if (rc == TL_OK)
        rc = tl_demux_set_id(&a->tpiu->demux, id);
    a->fits = PROOF;
    set_checkpoint(a);
    return rc;
}

/* The window is full, or the input has ended: decide, and process it. */
static int go_on(struct tl_align *a)
{
    uint8_t *const window = a->window;
    const size_t held = a->held;
    struct turn turn;
    int rc = find_turn(a, &turn);
    a->window = NULL;
    a->held = 0;
    a->trouble = 0;
    a->troubled = 0;
    if (rc == TL_OK && !turn.phase) {
        a->quiet_until = a->held_from + (a->patience > held ? a->patience : held);
        a->patience *= a->patience < PATIENCE_MAX ? 2 : 1;
    } else if (rc == TL_OK) {
        const uint64_t offset = a->held_from + turn.from;
        a->patience = PATIENCE;
        a->quiet_until = offset + held / 4;
        rc = tl_align_push(a, window, turn.from);
        if (rc == TL_OK)
            rc = move_frames(a, offset, turn.phase);
    }
    const size_t done = turn.from + turn.phase;
    if (rc == TL_OK)
        rc = tl_align_push(a, window + done, held - done);
    free(window);
    return rc;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Hold back bytes; returns how many. */
static size_t keep(struct tl_align *a, const uint8_t *p, size_t n)
{
    const size_t room = a->room - a->held;
    n = n < room ? n : room;
    memcpy(a->window + a->held, p, n);
    a->held += n;
    return n;
}

/* Start a window. After failed attempts it is larger. */
static int begin_window(struct tl_align *a)
{
    a->alarm = false;
    a->held = 0;
    a->room = TL_ALIGN_WINDOW;
    while (a->room < TL_ALIGN_WINDOW_MAX && a->room < a->patience / 2)
        a->room *= 2;
    a->window = malloc(a->room);
    return a->window ? TL_OK : TL_NOMEM;
}

/* Everything before the checkpoint has been passed on: check the streams. */
static int check(struct tl_align *a)
{
    const int found = a->watch.judge(a->watch.context);
    const uint64_t offset = a->check_at;
    set_checkpoint(a);
    if (found < 0)
        return found;
    if (found == TL_ALIGN_FITS && a->fits < PROOF)
        a->fits++;
    if (found == TL_ALIGN_TROUBLED && offset >= a->quiet_until) {
        a->held_from = offset;
        return begin_window(a);
    }
    if (found != TL_ALIGN_TROUBLED && a->patience > PATIENCE)
        a->patience -= a->patience / 4;
    return TL_OK;
}

/* Pass bytes on. Returns the number before an alarm, or all. */
static int64_t pass_frames(struct tl_align *a, const uint8_t *p, size_t n)
{
    uint8_t before[offsetof(struct tl_tpiu, demux.buffer)];
    const uint64_t from = next_offset(a);
    memcpy(before, a->tpiu, sizeof before);
    a->pass_from = from;
    a->pass_to = from + n;
    a->calls = 0;
    int rc = tl_tpiu_push(a->tpiu, p, n);
    if (!a->alarm)
        return rc < 0 ? rc : (int64_t)n;
    memcpy(a->tpiu, before, sizeof before);
    a->mute = a->calls - 1;
    a->calls = 0;
    a->fed_again = true;
    n = (size_t)(a->held_from - from);
    rc = tl_tpiu_push(a->tpiu, p, n);
    a->mute = 0;
    a->fed_again = false;
    if (rc == TL_OK)
        rc = begin_window(a);
    return rc < 0 ? rc : (int64_t)n;
}

int tl_align_push(struct tl_align *a, const uint8_t *p, size_t n)
{
    if (!is_watched(a))
        return tl_tpiu_push(a->tpiu, p, n);
    while (n > 0) {
        int64_t done;
        int rc = TL_OK;
        if (a->window) {
            done = (int64_t)keep(a, p, n);
            rc = a->held == a->room ? go_on(a) : TL_OK;
        } else {
            const uint64_t left = a->check_at - next_offset(a);
            done = pass_frames(a, p, n < left ? n : (size_t)left);
            if (!a->window && done >= 0 && next_offset(a) == a->check_at)
                rc = check(a);
        }
        if (rc < 0 || done < 0)
            return rc < 0 ? rc : (int)done;
        p += done;
        n -= (size_t)done;
    }
    return TL_OK;
}

void tl_align_state(struct tl_align *a, struct tl_state *s)
{
    uint64_t trouble = a->trouble;
    if (!tl_state_loads(s) && a->window)
        tl_state_fail(s, TL_AGAIN);
    tl_tpiu_state(a->tpiu, s);
    tl_state_u64(s, &a->check_at);
    tl_state_u64(s, &a->quiet_until);
    tl_state_u64(s, &a->patience);
    tl_state_u64(s, &a->troubled);
    tl_state_u64(s, &trouble);
    tl_state_u8(s, &a->fits, PROOF);
    tl_state_check(s, a->check_at > next_offset(a) || !is_watched(a));
    tl_state_check(s, trouble <= ALARM_FRAMES && a->patience <= 2 * PATIENCE_MAX);
    a->trouble = (unsigned)trouble;
}

int tl_align_finish(struct tl_align *a, const char *cut)
{
    while (a->window) {
        const int rc = go_on(a);
        if (rc < 0)
            return rc;
    }
    return tl_tpiu_finish(a->tpiu, cut);
}
