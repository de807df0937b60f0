/* SPDX-License-Identifier: MIT */
/*
 * An address in a packet is where the walk must arrive with the outcomes reported so far; its
 * differences add up from packet to packet. Where trace and program do not fit, the walk begins
 * again at the next address, but only if the sum still holds: a lost packet makes it wrong until
 * the next synchronisation.
 */
#include "riscv/etrace_flow_parts.h"
#include "riscv/etrace_short.h"
#include "riscv/etrace_walk_known.h"
#include "riscv/source.h"

static const char BAD_PACKET[] = "bad E-Trace packet";
static const char MISFIT[] = TL_LOSS_MISFIT;
static const char NO_SIZES[] =
    "no support packet has told the sizes of fields yet: add ioptions=VALUE to the source";
static const char UNBELIEVED[] =
    "support packet that the configuration or the packets behind it contradict";

/* ---- addresses -------------------------------------------------------------------------- */

static uint64_t *cached(const struct tl_etrace_flow *f, uint64_t address)
{
    const unsigned shift = f->params.iaddress_lsb > 1 ? f->params.iaddress_lsb : 1;
    return &f->cache[address >> shift & ((UINT64_C(1) << f->params.cache_size) - 1)];
}

/* An uninferable jump went to the reported address. */
static void remember_target(struct tl_etrace_flow *f, uint64_t address)
{
    if (f->cache && f->walk.options & TL_ETRACE_TARGET_CACHE)
        *cached(f, address) = address;
}

/* ---- losses ----------------------------------------------------------------------------- */

void tl_etrace_forget_place(struct tl_etrace_flow *f, bool can_resume)
{
    f->end = TL_ETRACE_END_REACHED;
    f->trapped = false;
    if (!can_resume || f->walk.options & TL_ETRACE_MEMORY)
        f->synced = false;
    f->unknown |= tl_etrace_keeps_memory(f);
}

static void add_note(struct tl_item_batch *out, const char *text, uint64_t offset)
{
    const size_t size = strlen(text) + 1;
    char *const copy = tl_item_batch_store(out, size);
    tl_item_batch_add(out, TL_ITEM_NOTE, offset)->text = memcpy(copy, text, size);
}

void tl_etrace_flow_lost(struct tl_etrace_flow *f, const char *note, enum tl_gap gap,
                         uint64_t offset)
{
    const int rc = tl_etrace_guess(f);
    f->support.waits &= !f->midway; /* what must follow it is missing */
    f->fresh = f->told = false;
    f->soft.rc = rc < 0 && f->soft.rc >= 0 ? rc : f->soft.rc;
    if (note) {
        tl_etrace_walk_leave(&f->walk);
        add_note(&f->soft.out, note, offset);
    }
    if (note || f->synced || f->walk.placed)
        tl_etrace_walk_lose(&f->walk, gap, offset);
    tl_etrace_forget_place(f, false);
    f->misfit = false;
}

/* Count a packet that says nothing; `why`: TL_LOSS_NOT_SYNC, or the fault. */
static void skip(struct tl_etrace_flow *f, const char *why, const struct tl_etrace_frame *frame)
{
    if (f->lost == 0) {
        f->soft.lost_at = frame->offset;
        f->soft.lost_why = why;
    }
    f->lost += frame->size;
}

void tl_etrace_report_loss(struct tl_etrace_flow *f)
{
    tl_soft_report_loss(&f->soft, "NOT_SYNC", f->lost);
    f->lost = 0;
}

/* ---- walks ------------------------------------------------------------------------------ */

void tl_etrace_report_unbelieved(struct tl_etrace_flow *f)
{
    struct tl_etrace_support *const s = &f->support;
    if (f->soft.rc >= 0)
        f->soft.rc = f->soft.sink.loss(f->soft.sink.context, UNBELIEVED, s->at, s->size);
    s->size = 0;
}

/* Trace and program do not fit: perhaps because of a support packet. */
static void note_misfit(struct tl_etrace_flow *f)
{
    unsigned options = f->walk.options;
    const bool report = tl_etrace_support_misfits(&f->support, &options);
    tl_etrace_take_options(f, options);
    f->unsaid |= !f->replays && tl_etrace_support_gives_up(&f->support);
    if (report)
        tl_etrace_report_unbelieved(f);
}

/* A packet's walk begins: of inferred returns, those behind the last packet count. Where it decides
 * which meeting the last one meant, first comes the rest of the last one's walk. */
static inline void begin_packet(struct tl_etrace_flow *f)
{
    if (f->end != TL_ETRACE_END_INFERRED)
        tl_etrace_walk_restart_irets(&f->walk);
}

void tl_etrace_leave_place(struct tl_etrace_flow *f, uint64_t offset)
{
    struct tl_etrace_walk *const w = &f->walk;
    if (w->tableless && !f->tableless && f->soft.rc >= 0)
        f->soft.rc = f->soft.sink.loss(f->soft.sink.context, TL_RISCV_NO_TABLE, offset, 0);
    f->tableless |= w->tableless;
    w->tableless = false;
    tl_etrace_forget_place(f, w->unmapped);
}

/* The walk to where a packet of formats 0 to 2 says ended. */
static inline void after_walk(struct tl_etrace_flow *f, enum tl_etrace_end end, uint64_t offset)
{
    const struct tl_etrace_walk *const w = &f->walk;
    f->end = (uint8_t)end;
    if (end == TL_ETRACE_END_JUMPED && !w->was_predicted)
        remember_target(f, f->address);
    if (end != TL_ETRACE_END_LOST) {
        tl_etrace_support_fits(&f->support);
        return;
    }
    tl_etrace_leave_place(f, offset);
    f->misfit = !w->unmapped;
    if (f->misfit || w->given) /* where the program leads to missing code, that says nothing */
        note_misfit(f);
}

/* Follow the program to where a packet of formats 0 to 2 says. */
static inline void follow(struct tl_etrace_flow *f, const struct tl_etrace_goal *goal,
                          uint64_t offset)
{
    after_walk(f, tl_etrace_walk_to(&f->walk, goal, offset), offset);
}

/*
 * The last packet reported where one of format 3 had begun the walk. Encoders do so where the trace
 * ends, to tell its last instruction; it has gone on, so execution came to that address once more.
 */
static void follow_again(struct tl_etrace_flow *f, uint64_t offset)
{
    const struct tl_etrace_goal goal = {
        .address = f->walk.pc, .irreport = f->irreport, .irdepth = f->irdepth};
    if (!f->walk.placed || f->end != TL_ETRACE_END_STOOD)
        return;
    follow(f, &goal, offset);
    tl_etrace_walk_restart_irets(&f->walk); /* the address of that packet */
}

bool tl_etrace_go_round(struct tl_etrace_flow *f, uint64_t offset)
{
    const struct tl_etrace_goal goal = {
        .address = f->walk.pc, .only_jump = true, .irreport = f->irreport, .irdepth = f->irdepth};
    f->end = TL_ETRACE_END_REACHED;
    if (tl_etrace_walk_to(&f->walk, &goal, offset) == TL_ETRACE_END_LOST)
        return false;
    remember_target(f, f->address);
    tl_etrace_walk_restart_irets(&f->walk);
    return true;
}

/* ---- packets of formats 0 to 2 ---------------------------------------------------------- */

/* Append the packet's outcomes to the one that may be waiting. False: there are too many. */
static bool take_outcomes(struct tl_etrace_flow *f, const struct tl_etrace_packet *k)
{
    struct tl_etrace_outcomes *const o = &f->walk.outcomes;
    if (tl_etrace_outcomes_waiting(o) > 1)
        return false;
    tl_etrace_outcomes_settle(o, f->walk.pc);
    tl_etrace_outcomes_add(o, k->map, k->branches);
    if (k->kind != TL_ETRACE_COUNT)
        return true;
    o->right = (uint64_t)k->count + 31;
    o->wrong = k->branch_fmt != TL_ETRACE_COUNT_ADDRESS;
    return true;
}

/* The program was not followed up to here: begin at the reported address, of an instruction that
 * was executed. */
static void resume(struct tl_etrace_flow *f, const struct tl_etrace_packet *k, uint64_t offset)
{
    struct tl_etrace_walk *const w = &f->walk;
    if (!w->walker.cache) {
        tl_item_batch_value(&f->soft.out, TL_ITEM_BRANCH, tl_etrace_place(f), offset);
        return;
    }
    if (!tl_etrace_walk_begin(w, tl_etrace_place(f), offset))
        return;
    w->before_lost = k->kind != TL_ETRACE_INDEX && !k->updiscon; /* it may be no jump's target */
    if (tl_etrace_walk_at_branch(w) && k->branches)
        tl_etrace_outcomes_add(&w->outcomes, k->map >> (k->branches - 1), 1);
}

static inline __attribute__((always_inline)) void
on_flow(struct tl_etrace_flow *f, const struct tl_etrace_packet *k, uint64_t offset)
{
    struct tl_etrace_walk *const w = &f->walk;
    const bool has_target = k->has_address || k->kind == TL_ETRACE_INDEX;
    const bool was_placed = w->placed;
    if (was_placed && !take_outcomes(f, k)) {
        tl_etrace_walk_lose(w, TL_GAP_NO_PATH, offset);
        tl_etrace_forget_place(f, false);
        return;
    }
    if (was_placed && f->end == TL_ETRACE_END_INFERRED && !tl_etrace_go_round(f, offset)) {
        tl_etrace_forget_place(f, false);
        return;
    }
    if (!was_placed && k->kind == TL_ETRACE_INDEX) { /* what the cache holds is not known */
        f->synced = false;
        return;
    }
    if (k->has_address)
        f->address = (k->is_full ? k->address : f->base + k->address) & tl_etrace_mask(f);
    else if (k->kind == TL_ETRACE_INDEX)
        f->address = f->cache[k->index];
    if (!f->params.from_sync)
        f->base = f->address;
    if (!was_placed) {
        if (has_target)
            resume(f, k, offset);
        return;
    }
    const struct tl_etrace_goal goal = {.address = has_target ? tl_etrace_place(f) : 0,
                                        .last_branch = !has_target,
                                        .by_jump = k->updiscon || k->kind == TL_ETRACE_INDEX,
                                        .notify = k->notify,
                                        .irreport = k->irreport,
                                        .irdepth = k->irdepth};
    f->irreport = k->irreport;
    f->irdepth = k->irdepth;
    if (f->end == TL_ETRACE_END_BEGUN && tl_etrace_walk_stands_at(w, &goal))
        f->end = TL_ETRACE_END_STOOD;
    else
        follow(f, &goal, offset);
}

/* ---- packets ---------------------------------------------------------------------------- */

static void list(struct tl_etrace_flow *f, const struct tl_etrace_packet *k,
                 const struct tl_etrace_frame *frame)
{
    struct tl_soft *const s = &f->soft;
    if (!s->sink.packet || s->rc < 0)
        return;
    char text[320], line[420], time[32] = "";
    if (frame->is_data)
        tl_etrace_data_text(frame->payload, text, sizeof text);
    else if (k)
        tl_etrace_packet_text(k, &f->params, text, sizeof text);
    else
        snprintf(text, sizeof text, "BAD_PACKET bytes=%u", frame->size);
    if (frame->has_time)
        snprintf(time, sizeof time, " timestamp=%" PRIu64, frame->time);
    snprintf(line, sizeof line, "%" PRIu64 " %u %s%s", frame->offset, frame->src, text, time);
    s->rc = s->sink.packet(s->sink.context, line);
}

bool tl_etrace_flow_has_data(const struct tl_etrace_flow *f)
{
    return !f->support.no_data;
}

/*
 * Read the packet into `f->packet`, unless it is there: it is judged first. As tl_etrace_parse(). A
 * support packet that waits gives the sizes of E-Trace 2.1.
 */
static int read_packet(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame)
{
    const bool sized = f->params.unit == TL_ETRACE_2_1 && f->support.waits;
    const unsigned options =
        sized ? tl_etrace_options(&f->params, f->support.packet.ioptions) : f->walk.options;
    if (f->judged && f->judged_at == frame->offset && f->judged_options == options)
        return f->judged_rc;
    f->judged = true;
    f->judged_at = frame->offset;
    f->judged_options = options;
    if (!sized)
        return f->judged_rc = tl_etrace_parse(&f->packet, &f->params, options, frame->payload);
    struct tl_etrace_params params = f->params;
    (void)tl_etrace_take_sizes(&params, options);
    return f->judged_rc = tl_etrace_parse(&f->packet, &params, options, frame->payload);
}

/* Are these options of E-Trace 2.1 without the sizes of fields, by which packets are read? */
static inline bool is_unsized(const struct tl_etrace_flow *f, unsigned options)
{
    return f->params.unit == TL_ETRACE_2_1 && !(options & TL_ETRACE_SIZED);
}

/* Could `f->packet`, as read with `options`, be one? `rc` is that of tl_etrace_parse(). */
static inline bool is_packet(const struct tl_etrace_flow *f, int rc, unsigned options,
                             struct tl_bytes payload, bool strict)
{
    const struct tl_etrace_packet *const k = &f->packet;
    const bool unsized = is_unsized(f, options);
    if (rc < 0 && !unsized)
        return false;
    const enum tl_etrace_length length = tl_etrace_length_of(k, payload);
    if (!unsized && f->params.unit != TL_ETRACE_ESP32 &&
        (length == TL_ETRACE_TOO_LONG || (strict && length == TL_ETRACE_BETWEEN && !f->is_between)))
        return false;
    if (k->kind == TL_ETRACE_SUPPORT)
        return !unsized || k->encoder_mode == 0;
    return k->kind > TL_ETRACE_CONTEXT || !tl_etrace_is_reserved(tl_etrace_privilege_in(f, k));
}

bool tl_etrace_flow_is_plausible(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame,
                                 bool strict)
{
    const int rc = read_packet(f, frame);
    return is_packet(f, rc, f->judged_options, frame->payload, strict);
}

/* What a packet of format 3, or a bad one, says. */
static void on_rare(struct tl_etrace_flow *f, int rc, const struct tl_etrace_frame *frame)
{
    struct tl_etrace_walk *const w = &f->walk;
    const struct tl_etrace_packet *const k = &f->packet;
    if (rc < 0) {
        tl_etrace_walk_leave(w);
        tl_etrace_forget_place(f, false);
        note_misfit(f);
        skip(f, BAD_PACKET, frame);
    } else if (k->kind == TL_ETRACE_START) {
        tl_etrace_on_start(f, k, frame->offset);
    } else if (k->kind == TL_ETRACE_TRAP) {
        tl_etrace_on_trap(f, k, frame->offset);
    } else if (k->kind == TL_ETRACE_SUPPORT) {
        f->support.waits = true;
        f->support.is_first = f->fresh && k->ienable && k->encoder_mode == 0; /* as at a start */
        f->support.packet = *k;
        f->support.at = frame->offset;
        f->support.size = frame->size;
    } else {
        tl_etrace_walk_report(w);
        tl_etrace_take_mode(f, k, frame->offset);
    }
}

/* Behind each packet: its time, and what else must be looked at now and then. `places`: its own
 * time is in `f->packet`, if the trace has any. */
static inline int finish_packet(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame,
                                bool places)
{
    struct tl_etrace_walk *const w = &f->walk;
    if (places && f->params.time_width)
        tl_etrace_take_time(f, f->packet.time, f->params.time_width, frame->offset);
    else if (frame->has_time && !f->params.time_width)
        tl_etrace_take_time(f, frame->time, frame->time_bits, frame->offset);
    if (tl_etrace_walk_is_large(w)) {
        tl_etrace_walk_report(w);
        tl_walker_trim(&w->walker);
        tl_etrace_walk_refresh(w);
    }
    if (!w->walker.failed && (w->rc | f->soft.rc) >= 0)
        return TL_OK;
    return w->walker.failed ? TL_NOMEM : w->rc < 0 ? w->rc : f->soft.rc;
}

/* Process `f->packet`, whose place in the capture is `frame`; `rc` is that of tl_etrace_parse(). */
static inline __attribute__((always_inline)) int on_packet(struct tl_etrace_flow *f, int rc,
                                                           const struct tl_etrace_frame *frame)
{
    const struct tl_etrace_packet *const k = &f->packet;
    const uint64_t offset = frame->offset;
    f->judged = false;
    if (f->soft.sink.packet)
        list(f, rc < 0 ? NULL : k, frame);
    tl_item_batch_pause(&f->soft.out);
    if (rc >= 0 && f->end == TL_ETRACE_END_STOOD &&
        (k->kind != TL_ETRACE_SUPPORT || k->qual_status == TL_ETRACE_NO_CHANGE))
        follow_again(f, offset);
    f->is_between |= rc >= 0 && tl_etrace_length_of(k, frame->payload) == TL_ETRACE_BETWEEN;
    if (is_unsized(f, f->walk.options) && k->kind != TL_ETRACE_SUPPORT)
        skip(f, NO_SIZES, frame);
    else if (rc < 0 || k->kind <= TL_ETRACE_SUPPORT)
        on_rare(f, rc, frame);
    else if (f->synced && !f->trapped)
        on_flow(f, k, offset);
    else
        skip(f, f->misfit ? MISFIT : TL_LOSS_NOT_SYNC, frame);
    f->fresh = false;
    return finish_packet(f, frame, rc >= 0 && k->kind <= TL_ETRACE_CONTEXT);
}

int tl_etrace_flow_packet(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame)
{
    if (frame->is_data) {
        list(f, NULL, frame);
        return f->soft.rc < 0 ? f->soft.rc : TL_OK;
    }
    if (f->support.waits)
        tl_etrace_settle_support(f, &frame->payload);
    if (f->unsaid) {
        bool is_held;
        const int rc = tl_etrace_hold(f, frame, &is_held);
        if (rc < 0 || is_held)
            return rc;
    }
    begin_packet(f);
    return on_packet(f, read_packet(f, frame), frame);
}

/* Is the program followed, without a question that the next packet answers? */
static inline bool is_followed(const struct tl_etrace_flow *f)
{
    const struct tl_etrace_walk *const w = &f->walk;
    return f->synced && !f->trapped && w->block && w->rc >= 0 && w->outcomes.n <= 1 &&
           (1u << f->end & (1u << TL_ETRACE_END_JUMPED | 1u << TL_ETRACE_END_REACHED |
                            1u << TL_ETRACE_END_BEGUN)) &&
           !f->support.waits && !f->unsaid;
}

/*
 * The same as tl_etrace_flow_take() for nearly all packets of a trace without options, in one go
 * and without a packet in memory. False: it is none of these, and nothing happened.
 */
static inline bool take_plain(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame)
{
    struct tl_etrace_walk *const w = &f->walk;
    struct tl_etrace_outcomes *const o = &w->outcomes;
    const struct tl_bytes payload = frame->payload;
    struct tl_etrace_short in;
    if (!tl_etrace_read_short(&in, &f->params, payload) || in.notify || in.irreport)
        return false;
    const size_t n = payload.n, whole = (in.bits + 7u) / 8;
    const uint8_t end = n < 2 ? 1 : payload.p[n - 2] & 0x80 ? 0xff : 0;
    if (n > whole || (n < whole && n > 1 && payload.p[n - 1] == end))
        return false;
    uint64_t address = f->address;
    if (in.has_address)
        address = (f->walk.options & TL_ETRACE_FULL_ADDRESS ? in.address : f->base + in.address) &
                  tl_etrace_mask(f);
    const struct tl_etrace_goal goal = {
        .address = in.has_address ? tl_etrace_walk_address(w, &f->params, address) : 0,
        .last_branch = !in.has_address,
        .by_jump = in.updiscon};
    if (in.has_address && goal.address == w->pc)
        return false;
    f->judged = false;
    w->irets = 0;
    tl_item_batch_pause(&f->soft.out);
    tl_etrace_outcomes_add(o, in.map, in.branches);
    f->address = address;
    f->base = f->params.from_sync ? f->base : address;
    f->irreport = false;
    f->irdepth = 0;
    bool steps;
    const enum tl_etrace_arrival a = tl_etrace_step_plain(w, &goal, &steps, frame->offset);
    if (a == TL_ETRACE_JUMPED || a == TL_ETRACE_REACHED) {
        f->end = a == TL_ETRACE_JUMPED ? TL_ETRACE_END_JUMPED : TL_ETRACE_END_REACHED;
        tl_etrace_support_fits(&f->support);
    } else {
        after_walk(f, tl_etrace_walk_rest(w, &goal, steps, frame->offset), frame->offset);
    }
    return true;
}

int tl_etrace_flow_take(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame)
{
    if (f->is_plain && is_followed(f) && take_plain(f, frame)) {
        const int rc = finish_packet(f, frame, false);
        return rc < 0 ? rc : TL_ETRACE_SENSE;
    }
    if (f->support.waits || f->unsaid) {
        if (!tl_etrace_flow_is_plausible(f, frame, false))
            return TL_ETRACE_NONSENSE;
        const int rc = tl_etrace_flow_packet(f, frame);
        return rc < 0 ? rc : TL_ETRACE_SENSE;
    }
    const unsigned options = f->walk.options;
    const int read = tl_etrace_parse(&f->packet, &f->params, options, frame->payload);
    f->judged = false;
    if (!is_packet(f, read, options, frame->payload, false)) {
        if (tl_etrace_refutes_options(f, frame))
            return tl_etrace_flow_take(f, frame);
        if (f->support.guessed)
            note_misfit(f);
        return TL_ETRACE_NONSENSE;
    }
    begin_packet(f);
    const int rc = on_packet(f, read, frame);
    return rc < 0 ? rc : TL_ETRACE_SENSE;
}

/* ---- tl_stream_ops ---------------------------------------------------------------------- */

static int flush(struct tl_stream_decoder *decoder)
{
    return tl_soft_flush((struct tl_soft *)decoder);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct tl_etrace_flow *const f = (struct tl_etrace_flow *)decoder;
    const int rc = tl_etrace_guess(f);
    if (f->support.waits)
        tl_etrace_settle_support(f, NULL);
    tl_etrace_walk_leave(&f->walk);
    tl_etrace_report_loss(f);
    return rc < 0 ? rc : flush(decoder);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    struct tl_etrace_flow *const f = (struct tl_etrace_flow *)decoder;
    if (!f)
        return;
    tl_etrace_walk_fini(&f->walk);
    free(f->cache);
    free(f->held);
    free(f);
}

static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    struct tl_etrace_flow *const f = (struct tl_etrace_flow *)decoder;
    static const char *const reasons[] = {TL_LOSS_NOT_SYNC, BAD_PACKET, MISFIT, NO_SIZES};
    tl_soft_state(&f->soft, s, reasons, sizeof reasons / sizeof *reasons);
    tl_item_batch_state(&f->soft.out, s);
    unsigned options = f->walk.options;
    tl_state_u32(s, &options);
    if (tl_state_loads(s))
        tl_etrace_take_options(f, options);
    tl_state_bool(s, &f->synced);
    tl_state_bool(s, &f->stopped);
    tl_state_bool(s, &f->fresh);
    tl_state_bool(s, &f->midway);
    tl_state_bool(s, &f->unknown);
    tl_state_bool(s, &f->misfit);
    tl_state_bool(s, &f->tableless);
    tl_state_bool(s, &f->trapped);
    tl_state_u8(s, &f->end, TL_ETRACE_END_STOOD);
    tl_state_bool(s, &f->irreport);
    tl_state_u32(s, &f->irdepth);
    tl_state_u8(s, &f->privilege, UINT8_MAX);
    tl_state_u64(s, &f->address);
    if (f->params.from_sync)
        tl_state_u64(s, &f->base);
    else if (tl_state_loads(s))
        f->base = f->address;
    tl_state_u64(s, &f->time);
    tl_state_u64(s, &f->lost);
    tl_state_bool(s, &f->is_between);
    tl_etrace_held_state(f, s);
    tl_etrace_support_state(&f->support, s);
    if (f->cache && f->params.cache_size)
        tl_state_bytes(s, f->cache, ((size_t)1 << f->params.cache_size) * sizeof *f->cache);
    tl_etrace_walk_state(&f->walk, s);
}

static const struct tl_stream_ops ops = {
    .name = "e-trace",
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
};

/* What is in force when a decode begins; TL_NOMEM. */
static int init_flow(struct tl_etrace_flow *f, const struct tl_etrace_params *params,
                     const struct tl_image *image, const struct tl_isa_options *isa)
{
    f->params = f->given = *params;
    f->image = image;
    f->isa = *isa;
    f->stopped = f->fresh = f->midway = true;
    const int rc = tl_etrace_walk_init(&f->walk, params, image, isa, &f->soft.out);
    const bool sized = params->unit == TL_ETRACE_2_1;
    const uint8_t cache = sized ? TL_ETRACE_TABLE_MAX : params->cache_size;
    if (cache)
        f->cache = calloc((size_t)1 << cache, sizeof *f->cache);
    if (rc < 0 || (cache && !f->cache))
        return TL_NOMEM;
    tl_etrace_take_options(
        f, sized && !params->has_ioptions ? 0 : tl_etrace_options(params, params->ioptions));
    return TL_OK;
}

struct tl_etrace_flow *tl_etrace_flow_twin(const struct tl_etrace_flow *f,
                                           const struct tl_stream_sink *sink)
{
    struct tl_etrace_flow *const t =
        tl_soft_new(sizeof *t, &ops, &(struct tl_source){.id = 0}, sink);
    if (!t)
        return NULL;
    t->vmid = f->vmid;
    if (init_flow(t, &f->given, f->image, &f->isa) == TL_OK)
        return t;
    destroy(&t->soft.base);
    return NULL;
}

int tl_etrace_flow_new(struct tl_stream_decoder **out, const struct tl_source *source,
                       const struct tl_image *image, const struct tl_stream_sink *sink,
                       struct tl_fail *fail)
{
    struct tl_etrace_params params;
    const int rc = tl_etrace_params(&params, source, fail);
    if (rc < 0)
        return rc;
    struct tl_etrace_flow *const f = tl_soft_new(sizeof *f, &ops, source, sink);
    if (!f)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    f->vmid = source->vmid;
    f->soft.out.paths = sink->paths;
    const struct tl_isa_options isa = tl_riscv_options(source, image);
    if (init_flow(f, &params, image, &isa) < 0) {
        destroy(&f->soft.base);
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    }
    f->unsaid = !params.has_ioptions && image &&
                (params.unit == TL_ETRACE_REFERENCE || params.unit == TL_ETRACE_PULP);
    tl_walker_code(&f->walk.walker, sink->code);
    *out = &f->soft.base;
    return TL_OK;
}
