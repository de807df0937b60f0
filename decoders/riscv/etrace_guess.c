/* SPDX-License-Identifier: MIT */
/*
 * A buffer that wrapped has lost the support packet that tells the options, and where it begins
 * within a packet, bytes may look like another one. With wrong options, returns and addresses are
 * taken for what they are not, and instructions told that were never executed. So the first packets
 * that can be followed are held back and tried with each set of options that the encoder may have;
 * what fits the program best is taken. Where others may be right as well, only what all of them
 * tell is told, and the next packets are tried. So they are when what was found does not fit any
 * more.
 */
#include "riscv/etrace_flow_parts.h"

#include <limits.h>

enum {
    HELD = 128,    /* packets, at most */
    FITTED = 3,    /* packets that fit which one that does not outweighs */
    CHANCE = 1,    /* packets that damage may have made */
    FEW = 8,       /* packets that fit by chance */
    SETS = 64,     /* of options, at most */
    ENOUGH = 16,   /* packets that fit the options told, so that these are right */
    MUCH = 1 << 20 /* instructions of a trial: damage may claim more than anyone waits for */
};

static const char UNDECIDED[] =
    "no support packet told the options, and several fit: add ioptions=VALUE to the source";

struct tl_etrace_held {
    struct tl_etrace_frame frames[HELD];
    uint32_t n;
    uint32_t n_flow; /* of formats 0 to 2 */
};

/* ---- sets of options ---------------------------------------------------------------------- */

/* Options that an encoder with these parameters may have on. The tables of predictions and targets
 * are asked by packets of their own only, so that having them on costs nothing. */
static unsigned possible(const struct tl_etrace_params *p, unsigned *always)
{
    const bool both = p->bpred_size && p->cache_size && !p->f0s_width;
    const unsigned tables =
        (p->bpred_size ? TL_ETRACE_PREDICTION : 0) | (p->cache_size ? TL_ETRACE_TARGET_CACHE : 0);
    bool has_tvec = false;
    for (unsigned i = 0; i < TL_ETRACE_TVECS; i++)
        has_tvec |= p->tvec[i] != 0;
    *always =
        (both ? 0 : tables) | (p->sijump && p->unit != TL_ETRACE_PULP ? TL_ETRACE_SEQUENTIAL : 0);
    return TL_ETRACE_FULL_ADDRESS | (both ? tables : 0) |
           (has_tvec ? TL_ETRACE_IMPLICIT_EXCEPTION : 0) |
           (p->unit == TL_ETRACE_PULP ? TL_ETRACE_SEQUENTIAL : 0) |
           (p->return_stack_size || p->call_counter_size ? TL_ETRACE_IMPLICIT_RETURN : 0);
}

/* ---- trials -------------------------------------------------------------------------------- */

struct trial {
    uint64_t insns;
    uint64_t told;    /* a hash of the instructions that one packet tells */
    uint32_t lost;    /* times that the program did not lead to where a packet says */
    uint32_t outside; /* addresses where there is no code */
};

/* What the packets held say with a set of options. */
struct result {
    unsigned options;
    int fitted;           /* packets that fit the program */
    uint32_t lost;        /* as in a trial */
    int score;            /* of the two, and of addresses outside; higher is better */
    int untested;         /* packets behind a place where the program leads to missing code */
    uint64_t marks[HELD]; /* by packet: what it tells and where the walk is then, as a hash */
};

static void mix(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *hash ^= *hash >> 32;
}

static int count_items(void *context, const struct tl_item *items, size_t n)
{
    struct trial *const t = context;
    for (size_t i = 0; i < n; i++) {
        const struct tl_item *const item = &items[i];
        if (item->kind == TL_ITEM_BLOCK) {
            t->insns += item->n;
            mix(&t->told, item->block->pc);
            mix(&t->told, item->n);
        }
        t->lost += item->kind == TL_ITEM_GAP && item->sub == TL_GAP_NO_PATH;
        t->outside += item->kind == TL_ITEM_UNKNOWN;
    }
    return t->insns > MUCH ? TL_CANCELLED : TL_OK;
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context;
    (void)reason;
    (void)offset;
    (void)bytes;
    return TL_OK;
}

/* Does the last packet report a depth of returns, which only encoders do that infer them, though by
 * the options this one does not? */
static bool reports_returns(const struct tl_etrace_flow *f)
{
    return !(f->walk.options & TL_ETRACE_IMPLICIT_RETURN) && f->packet.kind > TL_ETRACE_SUPPORT &&
           f->packet.irreport;
}

/* Is it of formats 0 to 2? */
static bool is_flow(const struct tl_etrace_frame *frame)
{
    return (frame->payload.p[0] & 3) != 3;
}

/* Try the packets held with `result->options`; TL_NOMEM. */
static int try_options(const struct tl_etrace_flow *f, struct result *r)
{
    struct trial trial = {0};
    const struct tl_stream_sink sink = {
        .context = &trial, .items = count_items, .loss = ignore_loss};
    struct tl_etrace_flow *const t = tl_etrace_flow_twin(f, &sink);
    if (!t)
        return TL_NOMEM;
    tl_etrace_take_options(t, r->options);
    t->midway = false; /* what may have been in front of the first place must not decide */
    int rc = TL_OK;
    unsigned strange = 0;
    for (uint32_t i = 0; i < f->held->n; i++) {
        trial.told = 0;
        if (rc >= 0)
            rc = tl_etrace_flow_packet(t, &f->held->frames[i]);
        if (rc >= 0)
            rc = tl_soft_flush(&t->soft);
        strange += reports_returns(t);
        r->untested +=
            is_flow(&f->held->frames[i]) && !t->walk.placed && t->walk.unmapped && !t->walk.given;
        mix(&trial.told, t->walk.placed ? t->walk.start : 1);
        mix(&trial.told, t->walk.placed ? t->walk.pc : 1);
        r->marks[i] = rc < 0 ? 0 : trial.told;
    }
    r->fitted = t->support.fitted;
    r->lost = trial.lost;
    r->score = r->fitted - (int)(FITTED * trial.lost + trial.outside);
    if (strange > CHANCE)
        r->score -= HELD;
    t->soft.base.ops->destroy(&t->soft.base);
    return rc == TL_NOMEM ? rc : TL_OK;
}

/* Of all sets of options, that which fits best, and the others that may be right as well. */
struct choice {
    struct result results[SETS], best;
    size_t n;
    int ahead;          /* the score of the best less that of the next */
    bool differs[HELD]; /* by packet: a set that may be right says something else */
    bool is_open;       /* … of any */
};

/* How far the best set is ahead of this one, of which packets that missing code leaves untested may
 * fit. */
static int ahead_of(const struct choice *c, const struct result *r)
{
    const int ahead = c->best.score - r->score - r->untested;
    return ahead > 0 ? ahead : 0;
}

/* May this set be right, too? Where code is missing, wrong ones may fit more: the fewer packets the
 * best one explains, the less it says. */
static bool may_be_right(const struct choice *c, const struct result *r, uint32_t n_flow)
{
    const int unexplained = (int)n_flow - c->best.fitted + (int)(FITTED * c->best.lost);
    return ahead_of(c, r) <= unexplained;
}

static void compare(struct choice *c, const struct result *r)
{
    for (uint32_t i = 0; i < HELD; i++) {
        c->differs[i] |= c->best.marks[i] != r->marks[i];
        c->is_open |= c->differs[i];
    }
}

/* Of equal sets the first is that with implicit returns, which an encoder with their table hardly
 * lacks, and without full addresses; sequential jumps as the setup has them. */
static int find_options(const struct tl_etrace_flow *f, struct choice *out)
{
    unsigned always;
    const unsigned may = possible(&f->given, &always);
    const unsigned unlikely = TL_ETRACE_FULL_ADDRESS | (f->given.sijump ? 0 : TL_ETRACE_SEQUENTIAL);
    out->best = (struct result){.options = always, .score = INT_MIN};
    out->ahead = TL_ETRACE_CONFIRMED;
    for (unsigned off = 0; off <= may && out->n < SETS; off++) {
        if (off & ~may)
            continue;
        struct result *const r = &out->results[out->n++];
        r->options = always | ((may & ~off) ^ (may & unlikely));
        const int rc = try_options(f, r);
        if (rc < 0)
            return rc;
        if (r->score > out->best.score)
            out->best = *r;
    }
    for (size_t i = 0; i < out->n; i++) {
        const struct result *const r = &out->results[i];
        if (r->options != out->best.options && ahead_of(out, r) < out->ahead)
            out->ahead = ahead_of(out, r);
        if (may_be_right(out, r, f->held->n_flow))
            compare(out, r);
    }
    return TL_OK;
}

/* Options that the packets held fit: those that a support packet told, if there is nothing against
 * them. Where code is missing few packets fit the right ones, but these seldom lead elsewhere. */
static int choose_options(struct tl_etrace_flow *f, struct choice *c)
{
    struct result *const told = &c->best;
    told->options = f->walk.options;
    int rc = f->told ? try_options(f, told) : TL_OK;
    const int fitted = f->told ? told->fitted : 0;
    const uint32_t lost = f->told ? told->lost : 0;
    if (rc >= 0)
        rc = find_options(f, c);
    if (rc < 0)
        return rc;
    if (f->told && FITTED * (int)lost <= fitted && c->best.fitted <= 2 * fitted + FEW) {
        f->unsaid =
            fitted < ENOUGH && f->held->n_flow < TL_ETRACE_CONFIRMED; /* others may follow */
        memset(c->differs, 0, sizeof c->differs);
        c->is_open = false;
        return TL_OK;
    }
    if (f->told && c->best.options != f->walk.options)
        tl_etrace_report_unbelieved(f);
    f->told = false;
    tl_etrace_take_options(f, c->best.options);
    tl_etrace_support_doubt(&f->support, c->ahead);
    f->unsaid = c->is_open || f->held->n_flow < TL_ETRACE_CONFIRMED;
    return TL_OK;
}

/* ---- packets held back ---------------------------------------------------------------------- */

/* What follows is not known until the next packet of format 3. Nothing is said against the program,
 * as TL_GAP_NO_PATH would. */
static void stop(struct tl_etrace_flow *f, uint64_t offset)
{
    if (!f->synced)
        return;
    tl_etrace_walk_lose(&f->walk, TL_GAP_SYNC, offset);
    tl_etrace_forget_place(f, false);
}

/* Process the packets held, by the options in force. */
static int replay(struct tl_etrace_flow *f, const struct tl_etrace_held *held,
                  const struct choice *c)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc >= 0 && i < held->n; i++) {
        const struct tl_etrace_frame *const frame = &held->frames[i];
        if (c->differs[i] && f->synced) {
            stop(f, frame->offset);
            rc = f->soft.sink.loss(f->soft.sink.context, UNDECIDED, frame->offset, 0);
        }
        if (rc >= 0)
            rc = tl_etrace_flow_packet(f, frame);
    }
    return rc;
}

/* As tl_etrace_guess(); `*is_open`: several sets may be right, and what follows the packets held,
 * up to the next of format 3, depends on it. */
static int guess(struct tl_etrace_flow *f, bool *is_open)
{
    struct tl_etrace_held *const held = f->held;
    struct choice *const choice = calloc(1, sizeof *choice);
    int rc = choice ? choose_options(f, choice) : TL_NOMEM;
    const bool unsaid = f->unsaid;
    f->held = NULL;
    f->unsaid = false;
    f->replays = true;
    if (rc >= 0)
        rc = replay(f, held, choice);
    f->replays = false;
    f->unsaid = unsaid;
    *is_open = choice && choice->is_open;
    free(held);
    free(choice);
    return rc;
}

int tl_etrace_guess(struct tl_etrace_flow *f)
{
    bool is_open;
    return f->held ? guess(f, &is_open) : TL_OK;
}

static void keep(struct tl_etrace_held *held, const struct tl_etrace_frame *frame)
{
    struct tl_etrace_frame *const copy = &held->frames[held->n++];
    *copy = *frame;
    memcpy(copy->bytes, frame->payload.p, frame->payload.n);
    copy->payload.p = copy->bytes;
    held->n_flow += is_flow(frame);
}

/* The last packet held is a support packet, which tells the options if one of format 3 follows it.
 */
static bool ends_in_support(const struct tl_etrace_held *held)
{
    return held && (held->frames[held->n - 1].payload.p[0] & 15) == 15;
}

int tl_etrace_hold(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame, bool *is_held)
{
    const uint8_t first = frame->payload.p[0];
    bool is_open = false;
    int rc = TL_OK;
    *is_held = false;
    if (ends_in_support(f->held) && (first & 3) == 3) {
        rc = guess(f, &is_open);
        if (rc < 0)
            return rc;
        tl_etrace_settle_support(f, &frame->payload);
        if (is_open)
            stop(f, frame->offset);
    }
    if (!f->unsaid || (!f->held && (first & 11) != 3)) /* neither 3.0 nor 3.1: says nothing yet */
        return TL_OK;
    if (!f->held && !(f->held = calloc(1, sizeof *f->held)))
        return TL_NOMEM;
    keep(f->held, frame);
    *is_held = true;
    if (f->held->n < HELD && f->held->n_flow < TL_ETRACE_CONFIRMED)
        return TL_OK;
    rc = guess(f, &is_open);
    if (is_open)
        stop(f, frame->offset);
    return rc;
}

bool tl_etrace_refutes_options(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame)
{
    unsigned options = f->walk.options;
    if (!f->support.on_trial || f->support.guessed || f->params.unit == TL_ETRACE_2_1)
        return false;
    tl_etrace_take_options(f, f->support.others);
    const bool is_other = tl_etrace_flow_is_plausible(f, frame, false);
    tl_etrace_take_options(f, options);
    if (!is_other)
        return false;
    const bool report = tl_etrace_support_refute(&f->support, &options);
    tl_etrace_walk_lose(&f->walk, TL_GAP_NO_PATH, frame->offset);
    tl_etrace_forget_place(f, false);
    tl_etrace_take_options(f, options);
    if (report)
        tl_etrace_report_unbelieved(f);
    return true;
}

void tl_etrace_held_state(struct tl_etrace_flow *f, struct tl_state *s)
{
    uint32_t n = f->held ? f->held->n : 0;
    tl_state_bool(s, &f->unsaid);
    tl_state_bool(s, &f->told);
    tl_state_u32(s, &n);
    tl_state_check(s, n < HELD);
    if (!tl_state_loads(s)) {
        for (uint32_t i = 0; i < n; i++)
            tl_etrace_frame_state(&f->held->frames[i], s);
        return;
    }
    free(f->held);
    f->held = NULL;
    if (s->rc < 0 || n == 0)
        return;
    if (!(f->held = calloc(1, sizeof *f->held))) {
        tl_state_fail(s, TL_NOMEM);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct tl_etrace_frame frame = {.offset = 0};
        tl_etrace_frame_state(&frame, s);
        if (s->rc >= 0)
            keep(f->held, &frame);
    }
}
