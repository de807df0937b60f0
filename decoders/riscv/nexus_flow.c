/* SPDX-License-Identifier: MIT */
#include "riscv/nexus_flow.h"

#include "riscv/source.h"
#include "riscv/timestamp.h"

#include <strings.h>

enum sync_reason {
    EXIT_RESET = 1,
    EXIT_DEBUG = 3,
    TRACE_ENABLED = 5,
    AFTER_OVERFLOW = 7,
    POWER = 9
};
enum mode { MODE_BTM = 3, MODE_HTM = 6 };
enum resource { FULL_ICNT, FULL_HISTORY, FULL_REPEATED, FULL_NOT_TAKEN = 8, FULL_TAKEN = 9 };
enum circuit {
    CIRCUIT_TRIGGER = 8,
    CIRCUIT_CALL,
    CIRCUIT_EXCEPTION,
    CIRCUIT_INTERRUPT,
    CIRCUIT_CONTEXT = 13,
    CIRCUIT_WATCHPOINT
};

#define UNKNOWN_PRIVILEGE 15
#define SIFIVE_TIME_BITS  40
#define RETURNS           64 /* entries of the call stack; encoders have up to 32 */

/* ---- configuration ------------------------------------------------------------------------- */

static int configure(struct tl_nexus_config *c, const struct tl_source *source, bool wide,
                     struct tl_fail *fail)
{
    const uint64_t bits = tl_riscv_field(source, "trTeSrcBits", 0);
    const uint64_t time = tl_riscv_field(source, "trTsWidth", 0);
    const uint64_t mode = tl_riscv_field(source, "trTeInstMode", 0);
    const bool sifive = source->protocol == TL_PROTO_NEXUS_SIFIVE;
    if (bits > TL_NEXUS_SRC_BITS_MAX)
        return tl_fail_set(fail, TL_UNSUPPORTED, "trTeSrcBits=%llu: there are at most %u",
                           (unsigned long long)bits, TL_NEXUS_SRC_BITS_MAX);
    if (time > 64)
        return tl_fail_set(fail, TL_UNSUPPORTED, "trTsWidth=%llu: there are at most 64",
                           (unsigned long long)time);
    *c = (struct tl_nexus_config){
        .sifive = sifive,
        .mode = mode == MODE_BTM || mode == MODE_HTM ? (uint8_t)mode : 0,
        .wide = wide,
        .extends = tl_riscv_field(source, "trTeInstExtendAddrMSB", 0),
        .jumps = tl_riscv_field(source, "trTeInstEnAllJumps", 0),
        .sequences = tl_riscv_field(source, "trTeInstEnSequentialJump", 0),
        .returns = tl_riscv_field(source, "trTeInstImplicitReturnMode", 1) ||
                   tl_riscv_field(source, "trTeInstEnImplicitReturn", 0),
        .src_bits = (uint8_t)bits,
        .time_bits = (uint8_t)(time     ? time
                               : sifive ? SIFIVE_TIME_BITS
                                        : 64),
    };
    return TL_OK;
}

int tl_nexus_flow_init(struct tl_nexus_flow *f, const struct tl_source *source,
                       const struct tl_image *image, const struct tl_stream_sink *sink,
                       struct tl_fail *fail)
{
    f->isa = tl_source_isa((enum tl_protocol)source->protocol, source);
    if (f->isa != TL_ISA_RV32 && f->isa != TL_ISA_RV64)
        return tl_fail_set(fail, TL_UNSUPPORTED, "core=%.40s: use rv32 or rv64", source->core);
    const int rc = configure(&f->walk.config, source, f->isa == TL_ISA_RV64, fail);
    if (rc < 0)
        return rc;
    const struct tl_walker_config config = {
        .image = image,
        .isa = {.zcm = strcasestr(source->core, "zcm") != NULL},
        .bits = TL_WALKER_STEPS,
        .reports_erets = true,
        .since = source->since,
        .keeps_time = source->other_clock,
    };
    f->walk.returns.size = RETURNS;
    f->vmid = source->vmid;
    f->privilege = UNKNOWN_PRIVILEGE;
    f->is_history = f->walk.config.mode == MODE_HTM;
    f->soft.out.paths = sink->paths;
    if (tl_walker_init(&f->walk.walker, &config, &f->soft.out) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    tl_walker_code(&f->walk.walker, sink->code);
    return TL_OK;
}

void tl_nexus_flow_fini(struct tl_nexus_flow *f)
{
    tl_walker_fini(&f->walk.walker);
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
static void take_process(struct tl_nexus_flow *f, uint64_t process, uint64_t offset)
{
    enum { PRIVILEGE_ONLY, RESERVED, SCONTEXT, HCONTEXT };
    const unsigned format = process & 3, level = process >> 2 & 3;
    const bool is_virtual = process >> 4 & 1;
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
    if (absolute)
        f->time = tl_riscv_unwrap(f->has_time ? f->time : 0, reported, f->walk.config.time_bits);
    else
        f->time = f->walk.config.sifive ? f->time ^ reported : f->time + reported;
    f->has_time = true;
    tl_walker_time(&f->walk.walker, f->time, m->offset);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static uint64_t address_of(const struct tl_nexus_flow *f, uint64_t field, unsigned bits)
{
    if (f->walk.config.extends && bits > 0 && bits < 64 && field >> (bits - 1) & 1)
        field |= UINT64_MAX << bits;
    return f->walk.config.wide ? field << 1 : (uint32_t)(field << 1);
}

/* Address of a message that has one; it becomes the base of the next. */
static uint64_t take_address(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    if (tl_nexus_has(m, TL_NEXUS_FADDR))
        f->base = address_of(f, m->field[TL_NEXUS_FADDR], m->addr_bits);
    else
        f->base ^= address_of(f, m->field[TL_NEXUS_UADDR], m->addr_bits);
    return f->base;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Outcomes below the highest set bit, which marks where they begin. */
static struct tl_nexus_outcomes outcomes_of(uint64_t history)
{
    const unsigned n = history ? 63 - (unsigned)__builtin_clzll(history) : 0;
    return (struct tl_nexus_outcomes){history & ((UINT64_C(1) << n) - 1), n};
}

/* The trace does not fit the program, or messages are missing: begin again at a SYNC message. */
static void give_up(struct tl_nexus_flow *f)
{
    f->synced = false;
    f->icnt = 0;
    f->repeat.is = false;
    f->owed = false;
    tl_returns_clear(&f->walk.returns);
}

void tl_nexus_flow_lose(struct tl_nexus_flow *f)
{
    give_up(f);
    f->stopped = f->misfit = false;
    f->has_time = false;
    f->privilege = UNKNOWN_PRIVILEGE;
    f->context = (struct tl_image_context){0};
    tl_walker_reset(&f->walk.walker);
}

void tl_nexus_flow_reset(struct tl_nexus_flow *f)
{
    tl_nexus_flow_lose(f);
    tl_item_batch_reset(&f->soft.out);
    f->is_history = f->walk.config.mode == MODE_HTM;
    f->base = 0;
    f->soft.rc = f->walk.rc = TL_OK;
    tl_walker_begin(&f->walk.walker);
}

static bool count(struct tl_nexus_flow *f, struct tl_nexus_count c, uint64_t offset)
{
    bool wrong;
    c.is_history = f->is_history;
    const bool followed = tl_nexus_count(&f->walk, c, offset, &wrong);
    if (f->walk.rc < 0 && f->soft.rc >= 0)
        f->soft.rc = f->walk.rc;
    if (followed)
        return true;
    if (wrong) {
        give_up(f);
        f->misfit = true;
    }
    tl_returns_clear(&f->walk.returns); /* what is not followed may call and return */
    return false;
}

/* A count that is sent; one that cannot be makes the walk fail, being negative. */
static int64_t halfwords_of(uint64_t field)
{
    return field <= TL_NEXUS_ICNT_MAX ? (int64_t)field : -2 * TL_NEXUS_AHEAD_MAX;
}

/* Execute what a message with I-CNT and perhaps HIST counts. */
static bool count_message(struct tl_nexus_flow *f, const struct tl_nexus_message *m,
                          enum tl_nexus_last last, uint64_t place)
{
    const struct tl_nexus_count c = {
        .halfwords = f->icnt + halfwords_of(m->field[TL_NEXUS_ICNT]),
        .outcomes = outcomes_of(m->field[TL_NEXUS_HISTORY]),
        .last = last,
        .place = place,
    };
    f->is_history |= tl_nexus_has(m, TL_NEXUS_HISTORY);
    f->icnt = 0;
    return count(f, c, m->offset);
}

static void jump(struct tl_nexus_flow *f, uint64_t target, uint64_t offset)
{
    tl_walker_jump(&f->walk.walker, target, f->isa, offset);
}

/* A trap at the current place, which is its return address. */
static void trap(struct tl_nexus_flow *f, unsigned type, uint64_t offset)
{
    static const char *const names[] = {"", "trap", "exception", "interrupt"};
    struct tl_walker *const w = &f->walk.walker;
    const bool known = w->cache && !w->need_address;
    struct tl_item *const item = tl_item_batch_add(w->out, TL_ITEM_EXCEPTION, offset);
    item->text = f->walk.config.sifive && type == 2 ? "hardware" : names[type & 3];
    item->sub = (uint16_t)(TL_EXCEPTION_UNKNOWN | (type == 3 ? TL_EXCEPTION_INTERRUPT : 0));
    item->flags = known ? TL_ITEM_HAS_PC : 0;
    item->pc = known ? w->pc : 0;
    tl_walker_await(w, true);
}

static void on_indirect(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
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
        .halfwords = halfwords_of(repeat.icnt),
        .outcomes = outcomes_of(repeat.history),
        .last = repeat.has_target ? TL_NEXUS_LAST_ADDRESS : TL_NEXUS_LAST_TAKEN,
    };
    int64_t left = TL_NEXUS_REPEAT_MAX;
    for (uint64_t i = 0; repeat.is && f->synced && i < m->field[TL_NEXUS_BCNT]; i++) {
        const bool followed = count(f, c, m->offset);
        if (f->synced && repeat.has_target)
            jump(f, repeat.target, m->offset);
        left -= f->walk.executed + 1;
        if (!followed || left < 0)
            break;
    }
    if (left < 0) {
        tl_walker_lose(&f->walk.walker, TL_GAP_NO_PATH, m->offset);
        give_up(f);
    }
}

/* Execute up to the branch with the last of these outcomes, `times` times. */
static void count_outcomes(struct tl_nexus_flow *f, struct tl_nexus_outcomes outcomes,
                           uint64_t times, uint64_t offset)
{
    const struct tl_nexus_count c = {.by_outcomes = true, .outcomes = outcomes};
    int64_t left = TL_NEXUS_REPEAT_MAX;
    bool followed = true;
    f->is_history = true;
    for (uint64_t i = 0; followed && f->synced && outcomes.n > 0 && i < times && left > 0; i++) {
        followed = count(f, c, offset);
        f->icnt -= f->walk.executed;
        left -= f->walk.executed;
    }
    if (f->synced && left <= 0) {
        tl_walker_lose(&f->walk.walker, TL_GAP_NO_PATH, offset);
        give_up(f);
    }
}

/* Equal outcomes, given by their number. */
static void count_same(struct tl_nexus_flow *f, bool taken, uint64_t n, uint64_t offset)
{
    const struct tl_nexus_outcomes some = {taken ? UINT32_MAX : 0, 32};
    const unsigned rest = n % 32;
    count_outcomes(f, some, n / 32, offset);
    if (f->synced)
        count_outcomes(f, (struct tl_nexus_outcomes){taken ? (1u << rest) - 1 : 0, rest}, 1,
                       offset);
}

static void on_resource_full(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    const uint64_t data = m->field[TL_NEXUS_RDATA];
    switch (m->field[TL_NEXUS_RCODE]) {
    case FULL_ICNT:
        f->icnt += halfwords_of(data);
        break;
    case FULL_HISTORY:
        count_outcomes(f, outcomes_of(data), 1, m->offset);
        break;
    case FULL_REPEATED:
        count_outcomes(f, outcomes_of(data), m->field[TL_NEXUS_HREPEAT], m->offset);
        break;
    case FULL_NOT_TAKEN:
    case FULL_TAKEN:
        if (f->walk.config.sifive)
            count_same(f, m->field[TL_NEXUS_RCODE] == FULL_TAKEN, data & UINT32_MAX, m->offset);
        break;
    default:
        break;
    }
    if (f->icnt > TL_NEXUS_AHEAD_MAX || f->icnt < -TL_NEXUS_AHEAD_MAX)
        give_up(f);
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
    f->is_history |= tl_nexus_has(m, TL_NEXUS_HISTORY);
    if (f->synced)
        count_to_sync(f, m, to);
    f->soft.out.run = 0; /* a decode may begin here, see decode/split.h */
    const bool owed = f->owed;
    if (!f->synced && reason != AFTER_OVERFLOW)
        tl_item_batch_add(&f->soft.out, TL_ITEM_TRACE_ON, m->offset);
    give_up(f);
    f->owed = owed;
    f->synced = true;
    f->stopped = f->misfit = false;
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

/* ---- other messages ------------------------------------------------------------------------ */

/* What software wrote to its channels. */
static void on_data(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    static const uint8_t sizes[] = {4, 4, 2, 1};
    const uint64_t tag = m->field[TL_NEXUS_IDTAG];
    tl_item_batch_software(&f->soft.out, "itm", tag / 4, m->field[TL_NEXUS_DQDATA], sizes[tag % 4],
                           m->offset);
}

/* SiFive's in-circuit trace: events with their places, without the way in between. */
static void on_circuit(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    const unsigned source = (unsigned)m->field[TL_NEXUS_CKSRC];
    const bool full = m->tcode == TL_NEXUS_CIRCUIT_SYNC;
    const bool two = tl_nexus_has(m, TL_NEXUS_CKDATA1);
    const uint64_t data[] = {m->field[TL_NEXUS_CKDATA0], m->field[TL_NEXUS_CKDATA1]};
    struct tl_item_batch *const out = &f->soft.out;
    if (source == 0 && !two) {
        tl_soft_note(&f->soft, m->offset, "in-circuit control %llu", (unsigned long long)data[0]);
        return;
    }
    const uint64_t reported = address_of(f, data[0], 0);
    const uint64_t pc = full ? reported : f->base ^ reported;
    f->base = pc;
    if (f->synced && (source == CIRCUIT_TRIGGER || source == CIRCUIT_WATCHPOINT)) {
        tl_soft_note(&f->soft, m->offset, "in-circuit event %u at 0x%" PRIx64, source, pc);
        return;
    }
    struct tl_item *item;
    switch (source) {
    case CIRCUIT_CALL:
        item = tl_item_batch_add(out, TL_ITEM_BRANCH, m->offset);
        item->flags = TL_ITEM_HAS_VALUE | (two ? TL_ITEM_HAS_PC : 0);
        item->pc = two ? pc : 0;
        item->value = two ? pc ^ address_of(f, data[1], 0) : pc;
        break;
    case CIRCUIT_EXCEPTION:
    case CIRCUIT_INTERRUPT:
        item = tl_item_batch_add(out, TL_ITEM_EXCEPTION, m->offset);
        item->text = source == CIRCUIT_EXCEPTION ? "exception" : "interrupt";
        item->sub = (uint16_t)(two ? data[1] & TL_EXCEPTION_UNKNOWN : TL_EXCEPTION_UNKNOWN);
        item->sub |= source == CIRCUIT_INTERRUPT ? TL_EXCEPTION_INTERRUPT : 0;
        item->flags = TL_ITEM_HAS_PC;
        item->pc = pc;
        break;
    case CIRCUIT_CONTEXT:
        take_process(f, two ? data[1] : 0, m->offset);
        break;
    default:
        tl_soft_note(&f->soft, m->offset, "in-circuit event %u at 0x%" PRIx64, source, pc);
        break;
    }
}

static void take(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    switch (m->tcode) {
    case TL_NEXUS_OWNERSHIP:
        take_process(f, m->field[TL_NEXUS_PROCESS], m->offset);
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
        on_data(f, m);
        break;
    case TL_NEXUS_CIRCUIT:
    case TL_NEXUS_CIRCUIT_SYNC:
        on_circuit(f, m);
        break;
    case TL_NEXUS_AUXILIARY_WRITE:
        break;
    default:
        tl_soft_note(&f->soft, m->offset, "vendor's message %u", m->tcode);
        break;
    }
}

/* Does the message continue earlier ones? */
static bool continues(uint8_t tcode)
{
    return tcode == TL_NEXUS_DIRECT || tcode == TL_NEXUS_INDIRECT || tcode == TL_NEXUS_HIST ||
           tcode == TL_NEXUS_RESOURCE_FULL || tcode == TL_NEXUS_REPEAT;
}

bool tl_nexus_flow_message(struct tl_nexus_flow *f, const struct tl_nexus_message *m)
{
    tl_item_batch_pause(&f->soft.out);
    if (!f->synced && continues(m->tcode))
        return false;
    f->owed &= !continues(m->tcode);
    f->repeat.is &= m->tcode == TL_NEXUS_REPEAT;
    take(f, m);
    take_time(f, m);
    return true;
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
