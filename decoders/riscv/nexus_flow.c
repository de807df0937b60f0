/* SPDX-License-Identifier: MIT */
/*
 * Messages count what was executed, so each is followed before the address it reports is used.
 * After a misfit, counts are first tried without telling: a message fits a wrong place by chance,
 * but not with many outcomes.
 */
#include "riscv/nexus_flow.h"

#include "flow/walker_hot.h"
#include "riscv/nexus_events.h"
#include "riscv/source.h"
#include "riscv/table_jump.h"
#include "riscv/timestamp.h"

enum sync_reason {
    EXIT_RESET = 1,
    EXIT_DEBUG = 3,
    TRACE_ENABLED = 5,
    AFTER_OVERFLOW = 7,
    POWER = 9
};

#define UNKNOWN_PRIVILEGE 15
#define DOUBT             4    /* ways in which messages must fit where others did not */
#define RETURNS           1024 /* entries of the call stack: as SiFive's cores; N-Trace has up to 32 */

static const char MISFIT[] = TL_LOSS_MISFIT;

/* ---- life ---------------------------------------------------------------------------------- */

int tl_nexus_flow_init(struct tl_nexus_flow *f, const struct tl_source *source,
                       const struct tl_image *image, const struct tl_stream_sink *sink,
                       struct tl_fail *fail)
{
    f->isa = tl_source_isa((enum tl_protocol)source->protocol, source);
    if (f->isa != TL_ISA_RV32 && f->isa != TL_ISA_RV64)
        return tl_fail_set(fail, TL_UNSUPPORTED, "core=%.40s: use rv32 or rv64", source->core);
    const int rc = tl_nexus_configure(&f->walk.config, source, f->isa == TL_ISA_RV64, fail);
    if (rc < 0)
        return rc;
    const struct tl_walker_config config = {
        .image = image,
        .isa = tl_riscv_options(source, image),
        .bits = TL_WALKER_STEPS,
        .reports_erets = true,
        .since = source->since,
        .keeps_time = source->other_clock,
    };
    f->walk.returns.size = RETURNS;
    f->vmid = source->vmid;
    f->privilege = UNKNOWN_PRIVILEGE;
    f->is_history = f->walk.config.mode == TL_NEXUS_MODE_HTM;
    f->soft.out.paths = sink->paths;
    if (tl_walker_init(&f->walk.walker, &config, &f->soft.out) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    tl_walker_code(&f->walk.walker, sink->code);
    return TL_OK;
}

void tl_nexus_flow_fini(struct tl_nexus_flow *f)
{
    tl_nexus_walk_fini(&f->walk);
}

/* ---- what is in force ------------------------------------------------------------------------ */

static void report_mode(struct tl_nexus_flow *f, uint64_t offset)
{
    tl_walker_mode(&f->walk.walker, tl_mode(TL_ARCH_RISCV, f->privilege, TL_SEC_NONE, f->isa),
                   offset);
}

static void report_context(struct tl_nexus_flow *f, uint64_t offset)
{
    if (f->vmid) {
        f->context.has_vmid = true;
        f->context.vmid = f->vmid;
    }
    tl_walker_context(&f->walk.walker, &f->context, offset);
}

/* The PROCESS field: FORMAT 2 bits, PRV 2, V 1, CONTEXT. */
void tl_nexus_take_process(struct tl_nexus_flow *f, uint64_t process, uint64_t offset)
{
    enum { PRIVILEGE_ONLY, RESERVED, SCONTEXT, HCONTEXT };
    const unsigned format = process & 3, level = process >> 2 & 3;
    const bool is_virtual = process >> 4 & 1;
    if (format == RESERVED)
        return;
    f->privilege = (uint8_t)(is_virtual && level < 2 ? 4 + level : level);
    if (format == SCONTEXT) {
        f->context.has_context_id = true;
        f->context.context_id = process >> 5;
    } else if (format == HCONTEXT && !f->vmid) {
        f->context.has_vmid = true;
        f->context.vmid = process >> 5;
    }
    report_mode(f, offset);
    report_context(f, offset);
}

static void take_time(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    const bool absolute = tl_nexus_is_sync(m->tcode) || m->tcode == TL_NEXUS_CIRCUIT_SYNC;
    const uint64_t reported = m->field[TL_NEXUS_TSTAMP];
    if (!tl_nexus_has(m, TL_NEXUS_TSTAMP) || (!absolute && !f->has_time))
        return;
    if (absolute || f->walk.config.sifive)
        f->time =
            tl_riscv_unwrap(f->has_time ? f->time : 0, absolute ? reported : f->time ^ reported,
                            f->walk.config.time_bits);
    else
        f->time += reported;
    f->has_time = true;
    tl_walker_time(&f->walk.walker, f->time, m->offset);
    if (f->soft.rc >= 0)
        f->soft.rc =
            tl_walker_tell_restart(&f->walk.walker, f->soft.sink.loss, f->soft.sink.context);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* An address as the core has it: its top bit is repeated in those that are not real. */
static inline uint64_t canonical(const struct tl_nexus_flow *f, uint64_t address)
{
    const unsigned rest = 64 - f->walk.config.address_bits;
    return f->walk.config.wide ? (uint64_t)((int64_t)(address << rest) >> rest) : (uint32_t)address;
}

/* Address of a field of `bits` bits, whose top bit may be its sign. */
uint64_t tl_nexus_address(const struct tl_nexus_flow *f, uint64_t field, unsigned bits)
{
    if (f->walk.config.extends && bits > 0 && bits < 64 && field >> (bits - 1) & 1)
        field |= UINT64_MAX << bits;
    return canonical(f, field << 1);
}

/* Address of a message that has one; it becomes the base of the next. */
static inline uint64_t take_address(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    if (tl_nexus_has(m, TL_NEXUS_FADDR))
        f->base = tl_nexus_address(f, m->field[TL_NEXUS_FADDR], m->addr_bits);
    else if (f->walk.config.extends)
        f->base =
            canonical(f, f->base ^ tl_nexus_address(f, m->field[TL_NEXUS_UADDR], m->addr_bits));
    else /* the difference of two canonical addresses is one, too */
        f->base = canonical(f, f->base ^ m->field[TL_NEXUS_UADDR] << 1);
    return f->base;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Outcomes below the highest set bit, which marks where they begin. */
static struct tl_nexus_outcomes outcomes_of(uint64_t history)
{
    const unsigned n = history ? 63 - (unsigned)__builtin_clzll(history) : 0;
    return (struct tl_nexus_outcomes){history & ((UINT64_C(1) << n) - 1), n};
}

void tl_nexus_flow_skip(struct tl_nexus_flow *f, const char *why, uint64_t at, uint64_t n)
{
    if (f->lost == 0) {
        f->soft.lost_why = why;
        f->soft.lost_at = at;
    }
    f->lost += n;
}

void tl_nexus_flow_report(struct tl_nexus_flow *f)
{
    tl_soft_report_loss(&f->soft, "NOT_SYNC", f->lost);
    f->lost = 0;
}

/* The place is not known: nothing holds that was inferred from it. */
static void forget_place(struct tl_nexus_flow *f)
{
    f->icnt = 0;
    f->repeat.is = false;
    f->owed = false;
    tl_returns_clear(&f->walk.returns);
}

/* Messages are missing: begin again at a SYNC message. */
static void give_up(struct tl_nexus_flow *f)
{
    forget_place(f);
    f->synced = false;
}

/* Trace and program do not fit. Addresses are still known: go on at the next one, in doubt. But if
 * a message was not understood, that was damage, and addresses are wrong. */
static void doubt(struct tl_nexus_flow *f)
{
    forget_place(f);
    f->synced &= !f->has_unknown;
    f->misfit = true;
    f->doubt = DOUBT;
}

void tl_nexus_flow_lose(struct tl_nexus_flow *f)
{
    give_up(f);
    f->stopped = f->misfit = f->has_unknown = false;
    f->doubt = 0;
    f->has_time = false;
    f->privilege = UNKNOWN_PRIVILEGE;
    f->context = (struct tl_image_context){0};
    tl_walker_reset(&f->walk.walker);
}

void tl_nexus_flow_reset(struct tl_nexus_flow *f)
{
    tl_nexus_flow_lose(f);
    tl_item_batch_reset(&f->soft.out);
    f->is_history = f->walk.config.mode == TL_NEXUS_MODE_HTM;
    f->tableless = false;
    f->lost = 0;
    f->base = 0;
    f->soft.rc = f->walk.rc = TL_OK;
    tl_walker_begin(&f->walk.walker);
}

/* What became of a count. */
enum counted {
    LOST,    /* it could not be followed */
    TRIED,   /* it could, and was not told: there is still doubt */
    FOLLOWED /* it was told */
};

/* Where trace and program did not fit: do they again? Chance may let a message fit, hardly many
 * outcomes. FOLLOWED: there is no doubt left, and the walk is in front of the count. */
static enum counted convinces(struct tl_nexus_flow *f, const struct tl_nexus_count *c,
                              uint64_t offset)
{
    struct tl_nexus_place before;
    if (!tl_nexus_try(&f->walk, c, offset, &before)) {
        tl_walker_await(&f->walk.walker, true);
        doubt(f);
        return LOST;
    }
    const unsigned evidence = (f->walk.executed > 0) + c->outcomes.n;
    if (evidence < f->doubt) {
        f->doubt -= (uint8_t)evidence;
        return TRIED;
    }
    tl_nexus_go_back(&f->walk, &before);
    f->misfit = false;
    f->doubt = 0;
    tl_nexus_flow_report(f);
    return FOLLOWED;
}

/* The table of CM.JT is missing, which is reported once. */
static void report_table(struct tl_nexus_flow *f, uint64_t offset)
{
    if (!f->tableless && f->soft.rc >= 0)
        f->soft.rc = f->soft.sink.loss(f->soft.sink.context, TL_RISCV_NO_TABLE, offset, 0);
    f->tableless = true;
}

static enum counted lose_count(struct tl_nexus_flow *f, bool wrong, uint64_t offset)
{
    if (f->walk.rc < 0 && f->soft.rc >= 0)
        f->soft.rc = f->walk.rc;
    if (f->walk.tableless)
        report_table(f, offset);
    if (wrong)
        doubt(f);
    else if (!f->doubt)
        tl_returns_clear(&f->walk.returns); /* what is not followed may call and return */
    return LOST;
}

static inline __attribute__((always_inline)) enum counted
count(struct tl_nexus_flow *f, struct tl_nexus_count *c, uint64_t offset)
{
    bool wrong = false;
    enum counted counted = f->doubt ? convinces(f, c, offset) : FOLLOWED;
    if (counted == FOLLOWED && !tl_nexus_count(&f->walk, c, offset, &wrong))
        counted = LOST;
    return counted == LOST ? lose_count(f, wrong, offset) : counted;
}

/* Execute what a message with I-CNT and perhaps HIST counts. */
static inline __attribute__((always_inline)) bool count_message(struct tl_nexus_flow *f,
                                                                const struct tl_nexus_message *m,
                                                                enum tl_nexus_last last,
                                                                uint64_t place)
{
    struct tl_nexus_count c = {
        .halfwords = f->icnt + (int64_t)m->field[TL_NEXUS_ICNT],
        .outcomes = outcomes_of(m->field[TL_NEXUS_HISTORY]),
        .last = last,
        .place = place,
        .is_history = f->is_history,
    };
    f->icnt = 0;
    return count(f, &c, m->offset) == FOLLOWED;
}

static inline __attribute__((always_inline)) void jump(struct tl_nexus_flow *f, uint64_t target,
                                                       uint64_t offset)
{
    tl_walker_jump_hot(&f->walk.walker, target, f->isa, offset);
}

/* A trap at the current place, which is its return address. */
static void trap(struct tl_nexus_flow *f, unsigned type, uint64_t offset)
{
    static const char *const names[] = {"", "trap", "exception", "interrupt"};
    struct tl_walker *const w = &f->walk.walker;
    const bool known = w->cache && !w->need_address && !f->doubt;
    struct tl_item *const item = tl_item_batch_add(w->out, TL_ITEM_EXCEPTION, offset);
    item->text = f->walk.config.sifive && type == 2 ? "hardware" : names[type & 3];
    item->sub = (uint16_t)(TL_EXCEPTION_UNKNOWN | (type == 3 ? TL_EXCEPTION_INTERRUPT : 0));
    item->flags = known ? TL_ITEM_HAS_PC : 0;
    item->pc = known ? w->pc : 0;
    tl_walker_await(w, true);
}

static inline __attribute__((always_inline)) void on_indirect(struct tl_nexus_flow *f,
                                                              const struct tl_nexus_message *m)
{
    const unsigned type = (unsigned)m->field[TL_NEXUS_BTYPE];
    count_message(f, m, type ? TL_NEXUS_LAST_ANY : TL_NEXUS_LAST_ADDRESS, 0);
    if (!f->synced)
        return;
    const uint64_t target = take_address(f, m);
    if (type)
        trap(f, type, m->offset);
    jump(f, target, m->offset);
    f->repeat = (struct tl_nexus_repeat){.is = type == 0,
                                         .has_target = true,
                                         .target = target,
                                         .icnt = m->field[TL_NEXUS_ICNT],
                                         .history = m->field[TL_NEXUS_HISTORY]};
}

static void on_direct(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    count_message(f, m, TL_NEXUS_LAST_TAKEN, 0);
    f->repeat = (struct tl_nexus_repeat){.is = f->synced, .icnt = m->field[TL_NEXUS_ICNT]};
}

static void on_repeat(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    const struct tl_nexus_repeat repeat = f->repeat;
    const struct tl_nexus_count c = {
        .halfwords = (int64_t)repeat.icnt,
        .outcomes = outcomes_of(repeat.history),
        .last = repeat.has_target ? TL_NEXUS_LAST_ADDRESS : TL_NEXUS_LAST_TAKEN,
        .is_history = f->is_history,
    };
    bool followed = repeat.is && f->synced;
    for (uint64_t i = 0; followed && i < m->field[TL_NEXUS_BCNT]; i++) {
        struct tl_nexus_count each = c;
        followed = count(f, &each, m->offset) != LOST;
        if (repeat.has_target)
            jump(f, repeat.target, m->offset);
    }
}

/* Execute up to the branch with the last of these outcomes, `times` times. */
static void count_outcomes(struct tl_nexus_flow *f, struct tl_nexus_outcomes outcomes,
                           uint64_t times, uint64_t offset)
{
    const struct tl_nexus_count c = {.by_outcomes = true, .outcomes = outcomes, .is_history = true};
    bool followed = outcomes.n > 0;
    f->is_history = true;
    for (uint64_t i = 0; followed && i < times; i++) {
        struct tl_nexus_count each = c;
        followed = count(f, &each, offset) != LOST;
        f->icnt -= followed ? f->walk.executed : 0;
    }
}

/* Equal outcomes, given by their number. */
static void count_same(struct tl_nexus_flow *f, bool taken, uint64_t n, uint64_t offset)
{
    const struct tl_nexus_outcomes some = {taken ? UINT32_MAX : 0, 32};
    const unsigned rest = n % 32;
    count_outcomes(f, some, n / 32, offset);
    count_outcomes(f, (struct tl_nexus_outcomes){taken ? (1u << rest) - 1 : 0, rest}, 1, offset);
}

static void on_resource_full(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    const uint64_t data = m->field[TL_NEXUS_RDATA];
    switch (m->field[TL_NEXUS_RCODE]) {
    case TL_NEXUS_FULL_ICNT:
        f->icnt += (int64_t)data;
        break;
    case TL_NEXUS_FULL_HISTORY:
        count_outcomes(f, outcomes_of(data), 1, m->offset);
        break;
    case TL_NEXUS_FULL_REPEATED:
        count_outcomes(f, outcomes_of(data), m->field[TL_NEXUS_HREPEAT], m->offset);
        break;
    case TL_NEXUS_FULL_NOT_TAKEN:
    case TL_NEXUS_FULL_TAKEN:
        if (f->walk.config.sifive)
            count_same(f, m->field[TL_NEXUS_RCODE] == TL_NEXUS_FULL_TAKEN, data, m->offset);
        break;
    default:
        break;
    }
    if (f->icnt > TL_NEXUS_AHEAD_MAX || f->icnt < -TL_NEXUS_AHEAD_MAX) {
        tl_walker_lose(&f->walk.walker, TL_GAP_NO_PATH, m->offset);
        doubt(f);
    }
}

/* ---- beginnings and ends ------------------------------------------------------------------- */

/* Execute what a message with SYNC counts; it tells what comes next, whatever was found. */
static void count_to_sync(struct tl_nexus_flow *f, const struct tl_nexus_message *m, uint64_t to)
{
    struct tl_walker *const w = &f->walk.walker;
    const uint64_t reason = m->field[TL_NEXUS_SYNC_REASON];
    const unsigned type = (unsigned)m->field[TL_NEXUS_BTYPE];
    const bool restarts = reason == EXIT_RESET || reason == EXIT_DEBUG || reason == TRACE_ENABLED ||
                          reason == AFTER_OVERFLOW || reason == POWER;
    if (reason == AFTER_OVERFLOW) {
        tl_walker_lose(w, TL_GAP_OVERFLOW, m->offset);
        return;
    }
    const bool owed = f->owed;
    f->owed = false;
    if (owed)
        return;
    const bool followed = count_message(f, m,
                                        m->tcode == TL_NEXUS_DIRECT_SYNC ? TL_NEXUS_LAST_TAKEN
                                        : type                           ? TL_NEXUS_LAST_ANY
                                                                         : TL_NEXUS_LAST_PLACE,
                                        to);
    f->owed = followed && f->walk.guessed;
    if (type)
        trap(f, type, m->offset);
    else if (followed && !restarts && !w->need_address && w->pc != to)
        tl_walker_lose(w, TL_GAP_NO_PATH, m->offset);
}

static void on_sync(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    const uint64_t to = take_address(f, m);
    const uint64_t reason = m->field[TL_NEXUS_SYNC_REASON];
    if (f->synced)
        count_to_sync(f, m, to);
    f->soft.out.run = 0; /* a decode may begin here, see decode/split.h */
    const bool owed = f->owed;
    if ((!f->synced || f->misfit) && reason != AFTER_OVERFLOW)
        tl_item_batch_add(&f->soft.out, TL_ITEM_TRACE_ON, m->offset);
    give_up(f);
    f->owed = owed;
    f->synced = true;
    f->stopped = f->misfit = f->has_unknown = false;
    f->doubt = 0;
    report_context(f, m->offset);
    if (f->walk.walker.need_mode)
        report_mode(f, m->offset);
    jump(f, to, m->offset);
}

static void stop(struct tl_nexus_flow *f, enum tl_gap gap, uint64_t offset)
{
    tl_walker_lose(&f->walk.walker, gap, offset);
    give_up(f);
    f->stopped = true;
}

static void on_correlation(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    if (f->synced)
        count_message(f, m, TL_NEXUS_LAST_ANY, 0);
    stop(f, TL_GAP_OFF, m->offset);
}

/* ---- any message ------------------------------------------------------------------------- */

static void take(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    switch (m->tcode) {
    case TL_NEXUS_OWNERSHIP:
        tl_nexus_take_process(f, m->field[TL_NEXUS_PROCESS], m->offset);
        break;
    case TL_NEXUS_DIRECT:
        on_direct(f, m);
        break;
    case TL_NEXUS_INDIRECT:
    case TL_NEXUS_HIST:
        on_indirect(f, m);
        break;
    case TL_NEXUS_SYNC:
    case TL_NEXUS_DIRECT_SYNC:
    case TL_NEXUS_INDIRECT_SYNC:
    case TL_NEXUS_HIST_SYNC:
        on_sync(f, m);
        break;
    case TL_NEXUS_RESOURCE_FULL:
        on_resource_full(f, m);
        break;
    case TL_NEXUS_REPEAT:
        on_repeat(f, m);
        break;
    case TL_NEXUS_ERROR:
        stop(f, TL_GAP_OVERFLOW, m->offset);
        break;
    case TL_NEXUS_CORRELATION:
        on_correlation(f, m);
        break;
    case TL_NEXUS_DATA_ACQUISITION:
        tl_nexus_on_data(f, m);
        break;
    case TL_NEXUS_CIRCUIT:
    case TL_NEXUS_CIRCUIT_SYNC:
        tl_nexus_on_circuit(f, m);
        break;
    default:
        break;
    }
}

/* Does the message continue earlier ones? */
static bool continues(uint8_t tcode)
{
    return tcode == TL_NEXUS_DIRECT || tcode == TL_NEXUS_INDIRECT || tcode == TL_NEXUS_HIST ||
           tcode == TL_NEXUS_RESOURCE_FULL || tcode == TL_NEXUS_REPEAT;
}

/* Which of its two kinds a trace is of, if the message tells. */
static void learn_mode(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    if (m->tcode == TL_NEXUS_DIRECT || m->tcode == TL_NEXUS_DIRECT_SYNC)
        f->is_history = false;
    else if (tl_nexus_has(m, TL_NEXUS_HISTORY))
        f->is_history = true;
}

void tl_nexus_flow_message(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    tl_item_batch_pause(&f->soft.out);
    if (m->tcode == TL_NEXUS_HIST && f->synced && f->is_history && !f->misfit) {
        f->owed = false; /* the same as below, for nearly all messages */
        on_indirect(f, m);
        if (tl_nexus_has(m, TL_NEXUS_TSTAMP))
            take_time(f, m);
        return;
    }
    if (!tl_nexus_is_defined(m->tcode)) { /* as if it were not there */
        tl_soft_note(&f->soft, m->offset, "%s %u",
                     tl_nexus_is_reserved(m->tcode) ? "reserved message" : "vendor's message",
                     m->tcode);
        f->has_unknown = true;
        return;
    }
    if (!f->synced && continues(m->tcode)) {
        if (!f->stopped)
            tl_nexus_flow_skip(f, f->misfit ? MISFIT : TL_LOSS_NOT_SYNC, m->offset, m->bytes);
        return;
    }
    f->owed &= !continues(m->tcode);
    f->repeat.is &= m->tcode == TL_NEXUS_REPEAT;
    learn_mode(f, m);
    take(f, m);
    take_time(f, m);
    if (f->misfit && continues(m->tcode))
        tl_nexus_flow_skip(f, MISFIT, m->offset, m->bytes);
}

/* ---- saved state ----------------------------------------------------------------------------- */

/* Members that do not matter are saved as zero. */
void tl_nexus_flow_state(struct tl_nexus_flow *f, struct tl_state *s)
{
    uint64_t icnt = (uint64_t)f->icnt;
    if (!f->repeat.is)
        f->repeat = (struct tl_nexus_repeat){0};
    if (!f->has_time)
        f->time = 0;
    tl_item_batch_state(&f->soft.out, s);
    tl_walker_place_state(&f->walk.walker, s);
    tl_walker_rest_state(&f->walk.walker, s);
    tl_returns_state(&f->walk.returns, s);
    tl_state_bool(s, &f->synced);
    tl_state_bool(s, &f->stopped);
    tl_state_bool(s, &f->misfit);
    tl_state_u8(s, &f->doubt, DOUBT);
    tl_state_bool(s, &f->has_unknown);
    tl_state_bool(s, &f->tableless);
    tl_state_u64(s, &f->lost);
    tl_state_bool(s, &f->is_history);
    tl_state_bool(s, &f->owed);
    tl_state_u8(s, &f->privilege, UNKNOWN_PRIVILEGE);
    tl_state_u64(s, &f->base);
    tl_state_u64(s, &icnt);
    tl_state_check(s, icnt + TL_NEXUS_AHEAD_MAX <= 2 * (uint64_t)TL_NEXUS_AHEAD_MAX);
    f->icnt = (int64_t)icnt;
    tl_state_bool(s, &f->repeat.is);
    tl_state_bool(s, &f->repeat.has_target);
    tl_state_u64(s, &f->repeat.target);
    tl_state_u64(s, &f->repeat.icnt);
    tl_state_u64(s, &f->repeat.history);
    tl_state_bool(s, &f->context.has_context_id);
    tl_state_bool(s, &f->context.has_vmid);
    tl_state_u64(s, &f->context.context_id);
    tl_state_u64(s, &f->context.vmid);
    tl_state_bool(s, &f->has_time);
    tl_state_u64(s, &f->time);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_walker_restore_context(&f->walk.walker, &f->context);
}
