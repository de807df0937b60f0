/* SPDX-License-Identifier: MIT */
#include "sim/etrace_encoder.h"

#include "base/err.h"
#include "sim/etrace_payload.h"

#include <stdlib.h>
#include <string.h>

enum { VISITED = 256, DEPTHS = 2048, OFF = 40 };

/* ---- the encoder ------------------------------------------------------------------------ */

struct encoder {
    const struct tl_sim_riscv_run *run;
    const struct tl_sim_etrace_options *o;
    struct tl_sim_etrace *out;
    struct tl_sim_rng rng;
    int rc;
    uint16_t index;
    uint32_t packets; /* since the last bogus one */
    uint64_t time;
    uint64_t last; /* address that was reported last */
    uint32_t map;
    unsigned n; /* branches in it */
    bool all_right;
    uint32_t count; /* branches predicted right, if there are more than fit in the map */
    bool wrong;     /* behind those one predicted wrong */
    uint8_t *predictor;
    uint64_t *cache;
    uint64_t stack[DEPTHS];
    uint16_t more[DEPTHS]; /* calls from the same place that an entry stands for */
    uint32_t depth, deepest;
    /* With irets: returns inferred since the last branch or packet, with that at the current
     * instruction; without it; and what a packet tells of them */
    uint32_t inferred, before;
    bool told;         /* a packet was sent at the current instruction */
    bool after_return; /* the instruction in front is a return with an entry on the stack */
    bool after_empty;  /* … without one */
    bool begun;        /* since tracing is on */
    bool reported;     /* the trap in front was reported */
    bool uninferable;  /* so is the jump in front */
    bool failed;       /* it is a return that was predicted wrong */
    bool placed;       /* the decoder knows where it is when a trap comes */
    bool by_return;    /* the instruction in front is a return, predicted right */
    /* The last packet's address had been passed before: another packet says that it meant this. */
    bool round;
    bool sent; /* a packet with the current instruction's address */
    uint32_t context;
    uint32_t since_sync, since_notify;
    struct {
        uint64_t pc;
        uint32_t inferred;
        bool empty;     /* the stack was */
    } visited[VISITED]; /* since the last packet or branch */
    uint32_t n_visited;
    bool
        returned[DEPTHS]; /* by depth that is told: returns predicted right since the last packet */
};

static void send(struct encoder *e, struct payload *p);

/* Bytes that look like a support packet. */
static void send_bogus(struct encoder *e)
{
    struct payload p = {.n = 0};
    put(&p, 15, 4);
    put(&p, 1, 1);
    put(&p, 0, e->o->params.encoder_mode_width);
    put(&p, tl_sim_below(&e->rng, 4), 2);
    put(&p, tl_sim_below(&e->rng, 32), e->o->params.ioptions_width);
    put(&p, 0, 6);
    e->packets = 0;
    e->out->n_bogus++;
    send(e, &p);
}

/* A record of 40 bytes, last byte first: header, time, payload. */
static void send_record(struct encoder *e, const uint8_t *bytes, unsigned n)
{
    uint8_t record[40] = {0};
    record[39] = (uint8_t)n;
    for (unsigned i = 0; i < 8; i++)
        record[38 - i] = (uint8_t)(e->time >> 8 * i);
    for (unsigned i = 0; i < n; i++)
        record[30 - i] = bytes[i];
    e->rc = e->rc < 0 ? e->rc : tl_buf_add(&e->out->bytes, record, sizeof record);
}

/* The first `n` bytes of `p` in their envelope; `data`: of data trace. */
static void send_frame(struct encoder *e, const struct payload *p, unsigned n, bool data)
{
    const struct tl_etrace_envelope *const v = &e->o->envelope;
    struct payload f = {.n = 0};
    if (v->wrapping == TL_ETRACE_INDEXED) {
        put(&f, n + 3, 8);
        put(&f, e->index++, 16);
    } else if (v->wrapping == TL_ETRACE_SMI) {
        const bool tag = tl_sim_below(&e->rng, 2);
        put(&f, n, 5);
        put(&f, data ? 3 : 2, 2);
        put(&f, tag, 1);
        put(&f, e->time, tag ? 16 : 0);
        put(&f, e->o->src, (v->src_bits + 7) / 8 * 8);
    } else {
        const bool extend = v->ts_bytes && tl_sim_below(&e->rng, 2);
        const unsigned odd = v->src_bits % 8 + v->type_bits;
        put(&f, (8 * n + odd + 7) / 8, 5);
        put(&f, 0, 2);
        put(&f, extend, 1);
        put(&f, e->o->src, v->src_bits);
        put(&f, e->time, extend ? 8 * v->ts_bytes : 0);
        put(&f, data ? v->type_bits > 1 ? 3 : 1 : v->type_bits > 1 ? 2 : 0, v->type_bits);
    }
    for (unsigned i = 0; i < n; i++)
        put(&f, p->bytes[i], 8);
    close_payload(&f, 0);
    if (v->wrapping == TL_ETRACE_RECORDS) {
        send_record(e, p->bytes, n);
        return;
    }
    if (tl_sim_below(&e->rng, 50) == 0)
        e->rc = e->rc < 0 ? e->rc : tl_buf_add(&e->out->bytes, "\0\0\0", 3); /* null packets */
    e->rc = e->rc < 0 ? e->rc : tl_buf_add(&e->out->bytes, f.bytes, f.n / 8);
}

static void send_data(struct encoder *e)
{
    enum { MOST = 12 /* bytes */ };
    struct payload p = {.n = 0};
    const unsigned n = 1 + tl_sim_below(&e->rng, MOST);
    for (unsigned i = 0; i < n; i++)
        put(&p, tl_sim_below(&e->rng, 256), 8);
    send_frame(e, &p, n, true);
}

static void send(struct encoder *e, struct payload *p)
{
    if (e->o->bogus && ++e->packets > e->o->bogus)
        send_bogus(e);
    if (e->o->data && tl_sim_below(&e->rng, e->o->data) == 0)
        send_data(e);
    const bool whole = e->o->params.unit == TL_ETRACE_ESP32 || e->o->lengths == TL_SIM_WHOLE ||
                       (e->o->lengths == TL_SIM_SYNC_WHOLE && (p->bytes[0] & 3) == 3);
    const unsigned most = e->o->lengths == TL_SIM_BETWEEN ? tl_sim_below(&e->rng, 8) : 64;
    const unsigned n = close_payload(p, whole ? 0 : most);
    e->time += tl_sim_below(&e->rng, 50);
    send_frame(e, p, n, false);
}

static uint64_t pc_of(const struct encoder *e, uint32_t event)
{
    return e->run->insns[e->run->events[event].at].pc;
}

/* An address was sent, which the next difference may count from. */
static void tell(struct encoder *e, uint64_t pc, bool is_sync)
{
    if (is_sync || !e->o->params.from_sync)
        e->last = pc;
}

/* `is_sync`: in a packet of format 3. */
static void put_address(struct encoder *e, struct payload *p, uint64_t pc, bool full, bool is_sync)
{
    const struct tl_etrace_params *const k = &e->o->params;
    const uint64_t value = full ? pc : pc - e->last;
    put(p, value >> k->iaddress_lsb, k->iaddress_width - k->iaddress_lsb);
    tell(e, pc, is_sync);
    e->sent = true;
}

/* ---- format 3 --------------------------------------------------------------------------- */

static void put_place(const struct encoder *e, struct payload *p,
                      const struct tl_sim_riscv_event *event)
{
    const struct tl_etrace_params *const k = &e->o->params;
    put(p, k->privilege_width == 1 ? event->privilege > 0 : event->privilege, k->privilege_width);
    put(p, e->time, k->time_width);
    put(p, event->context, k->context_width);
}

static bool has_irets(const struct encoder *e)
{
    return e->o->options & TL_ETRACE_IRETS;
}

/* All outcomes up to here have been sent. */
static void used_up(struct encoder *e)
{
    e->told = true;
    e->map = e->n = e->count = e->wrong = 0;
    e->all_right = true;
    e->n_visited = 0;
    e->round = false;
    memset(e->returned, 0, sizeof e->returned);
}

/* Nothing is known of the time before. */
static void forget(struct encoder *e)
{
    const struct tl_etrace_params *const k = &e->o->params;
    used_up(e);
    e->since_sync = 0;
    if (e->begun && e->o->options & TL_ETRACE_NO_RESYNC)
        return;
    e->begun = true;
    e->depth = 0;
    memset(e->predictor, 1, (size_t)1 << k->bpred_size);
    memset(e->cache, 0, ((size_t)1 << k->cache_size) * sizeof *e->cache);
}

/* The predictor learns from a branch. Was it right? */
static bool train(const struct encoder *e, uint64_t pc, bool taken)
{
    static const uint8_t next[4][2] = {{0, 1}, {0, 3}, {0, 3}, {2, 3}};
    const unsigned shift = e->o->params.iaddress_lsb > 1 ? e->o->params.iaddress_lsb : 1;
    uint8_t *const entry =
        &e->predictor[pc >> shift & ((UINT64_C(1) << e->o->params.bpred_size) - 1)];
    const bool right = *entry >> 1 == taken;
    *entry = next[*entry][taken];
    return right;
}

static bool is_not_taken(const struct encoder *e, uint32_t i)
{
    const struct tl_sim_riscv_event *const event = &e->run->events[i];
    return !(e->run->insns[event->at].kind == TL_SIM_RV_BRANCH && event->taken);
}

/* Nothing is known of the time before event `i`; E-Trace 2.1 learns from its branch behind that. */
static void forget_before(struct encoder *e, uint32_t i)
{
    const struct tl_sim_riscv_event *const event = &e->run->events[i];
    const struct tl_sim_riscv_insn *const insn = &e->run->insns[event->at];
    const bool forgets = !(e->begun && e->o->options & TL_ETRACE_NO_RESYNC);
    forget(e);
    if (forgets && e->o->params.unit == TL_ETRACE_2_1 && insn->kind == TL_SIM_RV_BRANCH)
        (void)train(e, insn->pc, event->taken);
}

static void send_start(struct encoder *e, uint32_t i)
{
    struct payload p = {.n = 0};
    put(&p, 3, 2);
    put(&p, 0, 2);
    put(&p, is_not_taken(e, i), 1);
    put_place(e, &p, &e->run->events[i]);
    put_address(e, &p, pc_of(e, i), true, true);
    send(e, &p);
    forget_before(e, i);
    e->placed = true;
    e->context = e->run->events[i].context;
}

/* The trap `i`; `handler` is the first instruction executed behind it, or 0: not told. */
static void send_trap(struct encoder *e, uint32_t i, uint32_t handler)
{
    const struct tl_etrace_params *const k = &e->o->params;
    const struct tl_sim_riscv_event *const event = &e->run->events[i];
    struct payload p = {.n = 0};
    put(&p, 3, 2);
    put(&p, 1, 2);
    put(&p, handler ? is_not_taken(e, handler) : 1, 1);
    put_place(e, &p, &e->run->events[handler ? handler : i]);
    put(&p, event->cause, k->ecause_width);
    put(&p, event->interrupt, 1);
    put(&p, handler > 0, 1);
    if (handler && e->o->options & TL_ETRACE_IMPLICIT_EXCEPTION)
        e->last = pc_of(e, handler);
    else
        put_address(e, &p, handler ? pc_of(e, handler) : pc_of(e, i), true, true);
    if (!event->interrupt)
        put(&p, 0xabc, k->iaddress_width);
    send(e, &p);
    if (handler)
        e->out->known[i] = e->placed;
    else
        e->out->known[i] = !event->interrupt || (e->placed && !e->uninferable && !e->by_return);
    e->placed = handler > 0;
    e->depth = e->o->options & TL_ETRACE_NO_RESYNC ? e->depth : 0;
    if (handler) {
        forget_before(e, handler);
        e->context = e->run->events[handler].context;
    }
}

static void send_context(struct encoder *e, const struct tl_sim_riscv_event *event)
{
    struct payload p = {.n = 0};
    put(&p, 3, 2);
    put(&p, 2, 2);
    put_place(e, &p, event);
    send(e, &p);
    e->context = event->context;
}

static void send_support(struct encoder *e, unsigned qual_status)
{
    const struct tl_etrace_params *const k = &e->o->params;
    struct payload p = {.n = 0};
    put(&p, 3, 2);
    put(&p, 3, 2);
    put(&p, qual_status == 0, 1);
    if (k->unit != TL_ETRACE_ESP32)
        put(&p, 0, k->encoder_mode_width);
    put(&p, qual_status, 2);
    if (k->unit == TL_ETRACE_2_1) {
        put(&p, tl_sim_etrace_sized_ioptions(k, e->o->options), k->ioptions_width);
        put(&p, e->o->data > 0, 7);
    } else if (k->unit != TL_ETRACE_ESP32) {
        const bool pulp = k->unit == TL_ETRACE_PULP;
        put(&p,
            pulp ? tl_sim_etrace_pulp_ioptions(e->o->options)
                 : tl_sim_etrace_ioptions(e->o->options),
            k->ioptions_width);
        put(&p, e->o->data > 0, pulp ? 0 : 6);
    }
    send(e, &p);
}

/* ---- formats 0 to 2 --------------------------------------------------------------------- */

static unsigned map_width(unsigned n)
{
    return n == 1 ? 1 : n < 4 ? 3 : n < 8 ? 7 : n < 16 ? 15 : 31;
}

static void put_map(const struct encoder *e, struct payload *p, unsigned n)
{
    put(p, n, 5);
    put(p, e->map, n || e->n ? map_width(e->n) : 0);
}

static void put_irreport(const struct encoder *e, struct payload *p, bool irreport)
{
    const unsigned width = e->o->params.irdepth_width;
    if (has_irets(e)) {
        const uint32_t n = e->after_return                    ? e->before - 1
                           : e->after_empty || e->uninferable ? e->before
                                                              : e->inferred;
        irreport = e->after_return || (n > 0 && (e->after_empty || !e->uninferable));
        irreport &= !e->told;
        put_change(p, irreport);
        put(p, irreport ? n : p->last ? UINT64_MAX : 0, width);
        return;
    }
    put_change(p, irreport);
    put(p, irreport ? e->depth : p->last ? UINT64_MAX : 0, width);
}

struct report {
    bool notify, updiscon, irreport;
};

static void put_report(struct encoder *e, struct payload *p, uint64_t pc, const struct report *r)
{
    put_address(e, p, pc, e->o->options & TL_ETRACE_FULL_ADDRESS, false);
    put_change(p, r->notify);
    put_change(p, r->updiscon);
    put_irreport(e, p, r->irreport);
}

static void put_count(const struct encoder *e, struct payload *p, unsigned branch_fmt)
{
    put(p, 0, 2);
    put(p, 0, e->o->params.f0s_width);
    put(p, e->count - 31, 32);
    put(p, branch_fmt, 2);
}

static uint64_t *cached(const struct encoder *e, uint64_t pc)
{
    const unsigned shift = e->o->params.iaddress_lsb > 1 ? e->o->params.iaddress_lsb : 1;
    return &e->cache[pc >> shift & ((UINT64_C(1) << e->o->params.cache_size) - 1)];
}

static void send_report(struct encoder *e, uint32_t i, const struct report *r)
{
    const uint64_t pc = pc_of(e, i);
    const bool caches = e->o->options & TL_ETRACE_TARGET_CACHE && e->uninferable;
    struct payload p = {.n = 0};
    if (caches && *cached(e, pc) == pc && !e->count && !r->updiscon && !r->notify) {
        put(&p, 0, 2);
        put(&p, 1, e->o->params.f0s_width);
        put(&p, (uint64_t)(cached(e, pc) - e->cache), e->o->params.cache_size);
        put_map(e, &p, e->n);
        put_irreport(e, &p, r->irreport);
        tell(e, pc, false);
        e->sent = true;
    } else if (e->count) {
        put_count(e, &p, e->wrong ? TL_ETRACE_COUNT_ADDRESS_WRONG : TL_ETRACE_COUNT_ADDRESS);
        put_report(e, &p, pc, r);
    } else if (e->n) {
        put(&p, 1, 2);
        put_map(e, &p, e->n);
        put_report(e, &p, pc, r);
    } else {
        put(&p, 2, 2);
        put_report(e, &p, pc, r);
    }
    send(e, &p);
    if (caches)
        *cached(e, pc) = pc;
    used_up(e);
    if (r->notify)
        e->since_notify = 0;
}

/* Nothing but outcomes. */
static void send_outcomes(struct encoder *e)
{
    struct payload p = {.n = 0};
    if (e->count) {
        put_count(e, &p, TL_ETRACE_COUNT_WRONG);
    } else {
        put(&p, 1, 2);
        put_map(e, &p, 0);
    }
    send(e, &p);
    used_up(e);
}

/* ---- branches and returns --------------------------------------------------------------- */

static void take_branch(struct encoder *e, uint64_t pc, bool taken)
{
    const bool right = train(e, pc, taken);
    e->n_visited = 0;
    if (e->count && right) {
        e->count++;
    } else if (e->count) {
        e->wrong = true;
    } else {
        e->map |= (uint32_t)!taken << e->n++;
        e->all_right &= right;
        if (e->n == 31 && e->all_right && e->o->options & TL_ETRACE_PREDICTION) {
            e->count = 31;
            e->map = e->n = 0;
        }
    }
}

static bool is_waiting(const struct encoder *e)
{
    return e->n || e->count;
}

static bool infers(const struct encoder *e)
{
    return e->o->options & TL_ETRACE_IMPLICIT_RETURN && e->depth > 0;
}

static uint32_t reported_depth(const struct encoder *e)
{
    return e->depth & ((UINT32_C(1) << e->o->params.irdepth_width) - 1);
}

/* Will the return `i` be predicted right? */
static bool is_predicted(const struct encoder *e, uint32_t i)
{
    const bool counts = e->o->params.return_stack_size == 0;
    return infers(e) && (counts || e->stack[e->depth - 1] == pc_of(e, i + 1)) &&
           !(has_irets(e) && e->inferred > 255);
}

static void pop(struct encoder *e)
{
    if (e->more[e->depth - 1])
        e->more[e->depth - 1]--;
    else
        e->depth--;
}

static void push(struct encoder *e, uint64_t link)
{
    const struct tl_etrace_params *const k = &e->o->params;
    const unsigned most =
        k->unit == TL_ETRACE_2_1 && k->return_stack_size ? (1u << k->call_counter_size) - 1 : 0;
    if (e->depth && e->stack[e->depth - 1] == link && e->more[e->depth - 1] < most) {
        e->more[e->depth - 1]++;
        return;
    }
    if (e->depth == e->deepest) {
        memmove(e->stack, e->stack + 1, --e->depth * sizeof *e->stack);
        memmove(e->more, e->more + 1, e->depth * sizeof *e->more);
    }
    e->more[e->depth] = 0;
    e->stack[e->depth++] = link;
}

/* Does the stack hold one call at most? */
static bool is_nearly_empty(const struct encoder *e)
{
    return e->depth == 0 || (e->depth == 1 && e->more[0] == 0);
}

/* Execution comes to instruction `i`. */
static void come_to(struct encoder *e, uint32_t i)
{
    e->told = false;
    e->before = e->inferred;
    e->inferred += e->run->insns[e->run->events[i].at].kind == TL_SIM_RV_RETURN && infers(e);
}

/* The instruction was executed: its effect on what is inferred. */
static void retire(struct encoder *e, uint32_t i)
{
    const struct tl_sim_riscv_event *const event = &e->run->events[i];
    const struct tl_sim_riscv_insn *const insn = &e->run->insns[event->at];
    const bool in_sequence = e->o->options & TL_ETRACE_SEQUENTIAL && i > 0 &&
                             e->out->traced[i - 1] && !event[-1].trap &&
                             event[-1].at + 1 == event->at;
    e->uninferable =
        insn->kind > TL_SIM_RV_SEQUENCE || (insn->kind == TL_SIM_RV_SEQUENCE && !in_sequence);
    const bool returns = insn->kind == TL_SIM_RV_RETURN;
    if (e->told || insn->kind == TL_SIM_RV_BRANCH)
        e->inferred = returns && infers(e);
    e->failed = e->by_return = false;
    e->after_return = returns && infers(e);
    e->after_empty = returns && !infers(e);
    if (returns && infers(e)) {
        e->by_return = is_predicted(e, i);
        e->failed = !e->by_return;
        e->uninferable = e->failed;
        e->returned[reported_depth(e)] |= e->by_return;
        if (e->by_return || has_irets(e))
            pop(e);
    }
    if (insn->link && e->deepest)
        push(e, insn->pc + insn->size);
}

/* Is event `i` a return that will be predicted wrong? What it leads to cannot be reported by format
 * 3, which does not say so. */
static bool is_failing(const struct encoder *e, uint32_t i)
{
    return e->run->insns[e->run->events[i].at].kind == TL_SIM_RV_RETURN && infers(e) &&
           !is_predicted(e, i);
}

static bool is_visited(const struct encoder *e, uint64_t pc)
{
    for (uint32_t k = 0; k < e->n_visited; k++)
        if (e->visited[k].pc == pc)
            return true;
    return false;
}

/* The same, so that the number of returns, told as `inferred`, does not tell which time is meant.
 */
static bool is_alike(const struct encoder *e, uint64_t pc, uint32_t inferred)
{
    for (uint32_t k = 0; k < e->n_visited; k++)
        if (e->visited[k].pc == pc &&
            (!has_irets(e) || e->visited[k].empty || e->visited[k].inferred >= inferred))
            return true;
    return false;
}

/* Would the decoder take what follows for something else, if it had no packet here? */
static bool is_confusing(struct encoder *e, uint32_t i)
{
    if (e->n_visited == VISITED)
        return true;
    const bool returns = e->inferred > e->before;
    e->visited[e->n_visited].pc = pc_of(e, i);
    e->visited[e->n_visited].inferred = e->inferred;
    e->visited[e->n_visited++].empty = returns ? is_nearly_empty(e) : e->depth == 0;
    if (!(e->o->options & TL_ETRACE_IMPLICIT_RETURN))
        return false;
    return (!has_irets(e) && is_failing(e, i) && e->returned[reported_depth(e)]) ||
           is_alike(e, pc_of(e, i + 1), e->inferred - returns); /* put_irreport() */
}

/* ---- events ----------------------------------------------------------------------------- */

/* Is a format 3 packet the next one, for what follows event `i`? */
static bool precedes_sync(const struct encoder *e, uint32_t i, bool ends)
{
    const struct tl_sim_riscv_event *const event = &e->run->events[i];
    return ends || event[1].trap || event[1].privilege != event->privilege ||
           (e->o->precise && event[1].context != e->context && !is_failing(e, i));
}

static void take_trap(struct encoder *e, uint32_t i)
{
    const bool after_trap = e->run->events[i - 1].trap;
    if (after_trap && !e->reported)
        send_trap(e, i - 1, 0);
    e->reported = !after_trap && e->uninferable;
    if (e->reported)
        send_trap(e, i, 0);
    e->uninferable = e->failed = false;
}

static void take_retired(struct encoder *e, uint32_t i, bool first, bool ends)
{
    const struct tl_sim_riscv_event *const event = &e->run->events[i];
    const struct tl_sim_riscv_insn *const insn = &e->run->insns[event->at];
    const struct tl_sim_riscv_event *const before = first ? event : event - 1;
    const bool waited = is_waiting(e);
    const bool overdue = e->o->resync && e->since_sync >= e->o->resync;
    const bool will_sync = e->o->resync && e->since_sync + 1 >= e->o->resync && !is_failing(e, i);
    const bool visited = is_visited(e, insn->pc);
    const bool round = !e->o->plain && visited;
    const bool confusing = is_confusing(e, i);
    const bool notifies = (e->o->notify && e->since_notify >= e->o->notify) || confusing;
    if (insn->kind == TL_SIM_RV_BRANCH)
        take_branch(e, insn->pc, event->taken);
    const bool depth_reported =
        e->o->options & TL_ETRACE_IMPLICIT_RETURN && !e->returned[reported_depth(e)] && !e->failed;
    if (before->trap && !e->reported) {
        send_trap(e, i - 1, i);
    } else if (before->trap || first || before->privilege != event->privilege ||
               (!e->failed && !(visited && (e->uninferable || has_irets(e))) &&
                ((e->o->precise && event->context != e->context) || (overdue && !waited)))) {
        send_start(e, i);
    } else if (e->uninferable) {
        const bool updiscon = precedes_sync(e, i, false) || will_sync;
        send_report(e, i,
                    &(struct report){.notify = notifies && !visited,
                                     .updiscon = updiscon,
                                     .irreport = e->failed});
        e->round = round;
    } else if (notifies || (overdue && is_waiting(e) && !is_failing(e, i))) {
        send_report(e, i, &(struct report){.notify = notifies, .irreport = depth_reported});
    } else if (ends || event[1].trap ||
               ((is_waiting(e) || e->round) && precedes_sync(e, i, ends)) ||
               (e->round && will_sync)) {
        send_report(e, i, &(struct report){.irreport = depth_reported});
    } else if (e->n == 31 || e->wrong) {
        send_outcomes(e);
    } else if (e->o->params.context_width && event->context != e->context) {
        send_context(e, event);
    }
    e->since_sync++;
    e->since_notify++;
}

/* The last packet reported the last instruction; as usual, or only for the end? */
static void end_trace(struct encoder *e, bool as_usual)
{
    send_support(e, as_usual ? TL_ETRACE_ENDED_NTR : TL_ETRACE_ENDED_REP);
    forget(e);
}

static void encode(struct encoder *e)
{
    uint32_t off = 0; /* events until trace is on again */
    for (uint32_t i = 0; i + 1 < e->run->n_events; i++) {
        const struct tl_sim_riscv_event *const event = &e->run->events[i];
        const bool first = i == 0 || !e->out->traced[i - 1];
        if (off > 0 || (first && event->trap)) {
            off -= off > 0;
            continue;
        }
        const bool last = i + 2 == e->run->n_events;
        const bool ends =
            !event->trap && !event[1].trap &&
            (last || (!first && e->o->off_each && i % e->o->off_each == e->o->off_each - 1));
        e->out->traced[i] = true;
        if (first) {
            send_support(e, TL_ETRACE_NO_CHANGE);
            e->begun = false;
            forget(e);
            e->begun = false; /* the first packet is still to come */
            e->inferred = 0;
            e->uninferable = e->failed = e->by_return = e->after_return = e->after_empty = false;
        }
        const bool jumped = e->uninferable;
        e->sent = false;
        if (event->trap) {
            take_trap(e, i);
            continue;
        }
        come_to(e, i);
        take_retired(e, i, first, ends);
        const bool repeats =
            ends && e->o->repeats && e->since_sync == 1; /* only format 3 told it */
        if (repeats) {
            e->uninferable = false; /* format 3 told where the jump in front went */
            send_report(e, i,
                        &(struct report){.irreport = e->o->options & TL_ETRACE_IMPLICIT_RETURN});
        }
        retire(e, i);
        if (!ends && e->o->again && tl_sim_below(&e->rng, e->o->again) == 0)
            send_support(e, TL_ETRACE_NO_CHANGE);
        if (ends) {
            end_trace(e, jumped && e->sent && !repeats);
            off = OFF;
        }
    }
    const uint32_t last = e->run->n_events - 2; /* a trap there may wait for its handler */
    e->out->traced[last] &= !e->run->events[last].trap || e->reported;
}

/* ---- the whole ---------------------------------------------------------------------------- */

uint32_t tl_sim_etrace_sized_ioptions(const struct tl_etrace_params *p, unsigned options)
{
    static const uint16_t order[] = {TL_ETRACE_SEQUENTIAL,         TL_ETRACE_IMPLICIT_RETURN,
                                     TL_ETRACE_PREDICTION,         TL_ETRACE_TARGET_CACHE,
                                     TL_ETRACE_IMPLICIT_EXCEPTION, TL_ETRACE_FULL_ADDRESS,
                                     TL_ETRACE_NO_RESYNC,          TL_ETRACE_IRETS};
    uint32_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= options & order[i] ? 1u << i : 0;
    return value | (uint32_t)p->time_width / 16 << 8 | (uint32_t)p->f0s_width << 11 |
           (uint32_t)p->return_stack_size << 13 | (uint32_t)p->call_counter_size << 16 |
           (uint32_t)p->bpred_size << 20 | (uint32_t)p->cache_size << 23;
}

uint32_t tl_sim_etrace_pulp_ioptions(unsigned options)
{
    static const uint8_t order[] = {TL_ETRACE_TARGET_CACHE,       TL_ETRACE_PREDICTION,
                                    TL_ETRACE_IMPLICIT_RETURN,    TL_ETRACE_SEQUENTIAL,
                                    TL_ETRACE_IMPLICIT_EXCEPTION, TL_ETRACE_FULL_ADDRESS};
    uint32_t value = options & TL_ETRACE_FULL_ADDRESS ? 0 : 1u << 6;
    for (unsigned i = 0; i < 6; i++)
        value |= options & order[i] ? 1u << i : 0;
    return value;
}

uint32_t tl_sim_etrace_ioptions(unsigned options)
{
    return options & 31; /* enum tl_etrace_option has the model's order */
}

int tl_sim_etrace_encode(struct tl_sim_etrace *out, const struct tl_sim_riscv_run *run,
                         const struct tl_sim_etrace_options *o)
{
    const uint8_t returns =
        o->params.return_stack_size ? o->params.return_stack_size : o->params.call_counter_size;
    struct encoder *const e = calloc(1, sizeof *e);
    *out = (struct tl_sim_etrace){.traced = calloc(run->n_events, 1),
                                  .known = calloc(run->n_events, 1)};
    int rc = TL_NOMEM;
    if (e) {
        e->run = run;
        e->o = o;
        e->out = out;
        e->rng = (struct tl_sim_rng){o->seed};
        e->deepest = returns ? UINT32_C(1) << returns : 0;
        e->predictor = malloc((size_t)1 << o->params.bpred_size);
        e->cache = malloc(((size_t)1 << o->params.cache_size) * sizeof *e->cache);
        if (out->traced && out->known && e->predictor && e->cache) {
            encode(e);
            rc = e->rc;
        }
        free(e->predictor);
        free(e->cache);
    }
    free(e);
    return rc;
}

void tl_sim_etrace_fini(struct tl_sim_etrace *s)
{
    tl_buf_fini(&s->bytes);
    free(s->traced);
    free(s->known);
}
