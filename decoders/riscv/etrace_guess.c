/* SPDX-License-Identifier: MIT */
/*
 * A buffer that wrapped has lost the support packet that tells the options, and where it begins
 * within a packet, bytes may look like another one. With wrong options, returns and addresses are
 * taken for what they are not, and instructions told that were never executed. So the first packets
 * that can be followed are held back and tried with each set of options that the encoder may have;
 * what fits the program longest is taken.
 */
#include "riscv/etrace_flow_parts.h"

enum {
    HELD = 128,    /* packets, at most */
    FITTED = 3,    /* packets that fit which one that does not outweighs */
    FEW = 8,       /* packets that fit by chance */
    ENOUGH = 16,   /* packets that fit the options told, so that these are right */
    MUCH = 1 << 20 /* instructions of a trial: damage may claim more than anyone waits for */
};

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
    uint32_t lost; /* times that the program did not lead to where a packet says */
};

static int count_items(void *context, const struct tl_item *items, size_t n)
{
    struct trial *const t = context;
    for (size_t i = 0; i < n; i++) {
        t->insns += items[i].kind == TL_ITEM_PATH    ? items[i].value
                    : items[i].kind == TL_ITEM_BLOCK ? items[i].n
                                                     : 0;
        t->lost += items[i].kind == TL_ITEM_GAP && items[i].sub == TL_GAP_NO_PATH;
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

/* How many of the packets held fit the program with these options, and in `*lost` how often it does
 * not lead to where they say; TL_NOMEM. */
static int try_options(const struct tl_etrace_flow *f, unsigned options, uint32_t *lost)
{
    struct trial trial = {0};
    const struct tl_stream_sink sink = {
        .context = &trial, .items = count_items, .loss = ignore_loss};
    struct tl_etrace_flow *const t = tl_etrace_flow_twin(f, &sink);
    if (!t)
        return TL_NOMEM;
    tl_etrace_take_options(t, options);
    t->midway = false; /* what may have been in front of the first place must not decide */
    int rc = TL_OK;
    for (uint32_t i = 0; rc >= 0 && i < f->held->n; i++)
        rc = tl_etrace_flow_packet(t, &f->held->frames[i]);
    if (rc >= 0)
        rc = tl_soft_flush(&t->soft);
    const int fitted = t->support.fitted;
    *lost = trial.lost;
    t->soft.base.ops->destroy(&t->soft.base);
    return rc == TL_NOMEM ? rc : fitted;
}

/* Two sets of options, and how many packets fit them; -1: there is no such set. */
struct choice {
    unsigned options, second;
    int fitted, second_fitted;
};

/* The set of options that most packets fit. Of equal ones that with implicit returns, which an
 * encoder with their table hardly lacks, and without full addresses; sequential jumps as the setup
 * has them. */
static int find_options(const struct tl_etrace_flow *f, struct choice *out)
{
    unsigned always;
    const unsigned may = possible(&f->given, &always);
    const unsigned unlikely = TL_ETRACE_FULL_ADDRESS | (f->given.sijump ? 0 : TL_ETRACE_SEQUENTIAL);
    uint32_t lost;
    *out = (struct choice){always, always, -1, -1};
    for (unsigned off = 0; off <= may; off++) {
        if (off & ~may)
            continue;
        const unsigned set = always | ((may & ~off) ^ (may & unlikely));
        const int fitted = try_options(f, set, &lost);
        if (fitted < 0)
            return fitted;
        const bool better = fitted > out->fitted;
        if (!better && fitted <= out->second_fitted)
            continue;
        out->second_fitted = better ? out->fitted : fitted;
        out->second = better ? out->options : set;
        out->fitted = better ? fitted : out->fitted;
        out->options = better ? set : out->options;
    }
    return TL_OK;
}

/* Options that the packets held fit: those that a support packet told, if there is nothing against
 * them. Where code is missing few packets fit the right ones, but these seldom lead elsewhere. */
static int choose_options(struct tl_etrace_flow *f, unsigned *options)
{
    struct choice best;
    uint32_t lost = 0;
    const int told = f->told ? try_options(f, f->walk.options, &lost) : 0;
    const int rc = told < 0 ? told : find_options(f, &best);
    *options = f->walk.options;
    if (rc < 0)
        return rc;
    if (f->told && FITTED * (int)lost <= told && best.fitted <= 2 * told + FEW) {
        f->unsaid = told < ENOUGH;
        return TL_OK;
    }
    if (f->told && best.options != f->walk.options)
        tl_etrace_report_unbelieved(f);
    f->told = false;
    *options = best.options;
    if (best.second_fitted >= 0)
        tl_etrace_support_doubt(&f->support, best.second);
    return TL_OK;
}

/* ---- packets held back ---------------------------------------------------------------------- */

int tl_etrace_guess(struct tl_etrace_flow *f)
{
    struct tl_etrace_held *const held = f->held;
    unsigned options;
    if (!held)
        return TL_OK;
    int rc = choose_options(f, &options);
    const bool unsaid = f->unsaid && held->n_flow < TL_ETRACE_CONFIRMED; /* others may tell more */
    f->held = NULL;
    f->unsaid = false;
    if (rc >= 0)
        tl_etrace_take_options(f, options);
    for (uint32_t i = 0; rc >= 0 && i < held->n; i++)
        rc = tl_etrace_flow_packet(f, &held->frames[i]);
    f->unsaid = unsaid;
    free(held);
    return rc;
}

static void keep(struct tl_etrace_held *held, const struct tl_etrace_frame *frame)
{
    struct tl_etrace_frame *const copy = &held->frames[held->n++];
    *copy = *frame;
    memcpy(copy->bytes, frame->payload.p, frame->payload.n);
    copy->payload.p = copy->bytes;
    held->n_flow += (frame->payload.p[0] & 3) != 3;
}

int tl_etrace_hold(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame, bool *is_held)
{
    const uint8_t first = frame->payload.p[0];
    *is_held = false;
    if ((first & 15) == 15) /* a support packet, which may tell them */
        return tl_etrace_guess(f);
    if (!f->held && (first & 11) != 3) /* neither 3.0 nor 3.1: it says nothing yet */
        return TL_OK;
    if (!f->held && !(f->held = calloc(1, sizeof *f->held)))
        return TL_NOMEM;
    keep(f->held, frame);
    *is_held = true;
    return f->held->n == HELD || f->held->n_flow == TL_ETRACE_CONFIRMED ? tl_etrace_guess(f)
                                                                        : TL_OK;
}

bool tl_etrace_refutes_options(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame)
{
    unsigned options = f->walk.options;
    if (!f->support.on_trial || f->params.unit == TL_ETRACE_2_1)
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
