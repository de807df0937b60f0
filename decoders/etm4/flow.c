/* SPDX-License-Identifier: MIT */
/*
 * Packets become elements; elements are applied in order once they are committed. Without
 * speculation (TRCIDR8 = 0: all trace units in common use so far) each P0 element is committed
 * immediately, the queue stays empty, and packets are applied directly.
 */
#include "etm4/flow.h"

#include "etm4/element.h"
#include "etm4/flow_walk.h"
#include "etm4/headers.h"

#include <stdlib.h>

enum sync_state {
    WAIT_ASYNC, /* waiting for an alignment synchronisation */
    WAIT_INFO,  /* aligned; waiting for a trace info, which gives the location */
    IN_SYNC
};

/* Reasons for skipping bytes; the last two as in decode/ops.h. */
static const char BAD_PACKET[] = "bad packet";
static const char TOO_MANY[] = "too many uncommitted elements";
static const char UNCOMMITTED[] =
    "elements wait for a commit that never comes: TRCIDR8 may be wrong";
static const char OVER_COMMIT[] = "commit of more elements than there are";
static const char OVER_CANCELLED[] = "cancel of more elements than there are";
static const char NO_ATOM[] = "mispredict without an atom";
static const char OVERFLOWED[] = "trace unit overflow";
static const char DISCARDED[] = "trace unit discard";

struct tl_etm4_flow {
    struct tl_etm4_config config;
    tl_etm4_loss *loss;
    void *context;
    uint8_t state; /* enum sync_state */
    bool marked;   /* there was a timestamp marker */
    bool lost;     /* bytes are being skipped: `lost_at` and `lost_why` are valid */
    uint64_t lost_at;
    const char *lost_why;
    uint64_t depth;                 /* complete P0 elements in the queue */
    struct tl_etm4_element pending; /* an exception or Q waiting for its address */
    bool has_pending;
    struct tl_etm4_joined joined; /* atoms not pushed yet */
    struct tl_etm4_queue queue;
    struct tl_etm4_walk walk;
    struct tl_item_batch out;
};

int tl_etm4_flow_new(struct tl_etm4_flow **out, const struct tl_etm4_config *config,
                     const struct tl_image *image, tl_item_sink *items, tl_etm4_loss *loss,
                     void *context)
{
    struct tl_etm4_flow *flow = calloc(1, sizeof *flow);
    if (!flow)
        return TL_NOMEM;
    flow->config = *config;
    flow->loss = loss;
    flow->context = context;
    tl_item_batch_init(&flow->out, items, context);
    const int rc = tl_etm4_walk_init(&flow->walk, config, image, &flow->out);
    if (rc < 0) {
        free(flow);
        return rc;
    }
    *out = flow;
    return TL_OK;
}

void tl_etm4_flow_sink(struct tl_etm4_flow *flow, bool paths, tl_block_code *code)
{
    flow->out.paths = paths;
    tl_walker_code(&flow->walk.walker, code);
}

void tl_etm4_flow_free(struct tl_etm4_flow *flow)
{
    if (!flow)
        return;
    tl_walker_fini(&flow->walk.walker);
    tl_etm4_queue_fini(&flow->queue);
    free(flow);
}

/* ---- elements ---------------------------------------------------------------------------- */

static void apply_timestamp(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    struct tl_walker *const w = &f->walk.walker;
    if (f->config.ts_marker && !f->marked)
        return;
    tl_walker_time(w, p->value, p->offset);
    const int rc = f->loss ? tl_walker_tell_restart(w, f->loss, f->context) : TL_OK;
    if (rc < 0 && f->out.rc >= 0)
        f->out.rc = rc;
}

/* Apply a packet that is not a P0 element and unrelated to the core's location. */
static void apply_aside(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    switch (p->type) {
    case TL_ETM4_TIMESTAMP:
        apply_timestamp(f, p);
        break;
    case TL_ETM4_CYCLE_COUNT:
        tl_etm4_walk_cycles(&f->walk, p);
        break;
    case TL_ETM4_EVENT:
        tl_item_batch_value(&f->out, TL_ITEM_EVENT, p->value, p->offset);
        break;
    case TL_ETM4_TS_MARKER:
        f->marked = true;
        tl_item_batch_note(&f->out, "timestamp marker", p->offset);
        break;
    case TL_ETM4_ITE:
        tl_item_batch_software(&f->out, "ite", p->n, p->value, 8, p->offset);
        break;
    default:
        break;
    }
}

static void apply(struct tl_etm4_flow *f, const struct tl_etm4_packet *p,
                  const struct tl_etm4_packet *address)
{
    switch (p->type) {
    case TL_ETM4_ATOM:
        tl_walker_waypoints(&f->walk.walker, p->value, p->n, p->offset);
        break;
    case TL_ETM4_ADDRESS:
        tl_etm4_walk_address(&f->walk, p);
        break;
    case TL_ETM4_CONTEXT:
        tl_etm4_walk_context(&f->walk, p);
        break;
    case TL_ETM4_EXCEPTION:
    case TL_ETM4_PE_RESET:
        if (p->flags & TL_ETM4_TRANSACTION_FAILED)
            tl_item_batch_note(&f->out, "transaction fail", p->offset);
        else
            tl_etm4_walk_exception(&f->walk, p, address);
        break;
    case TL_ETM4_EXCEPTION_RETURN:
        tl_etm4_walk_return(&f->walk, p->offset);
        break;
    case TL_ETM4_FUNCTION_RETURN:
        tl_walker_unpredict(&f->walk.walker);
        break;
    case TL_ETM4_Q:
        tl_etm4_walk_q(&f->walk, p, address);
        break;
    case TL_ETM4_SOURCE_ADDRESS:
        tl_etm4_walk_source(&f->walk, p);
        break;
    case TL_ETM4_TRACE_ON:
        tl_etm4_walk_trace_on(&f->walk, p->offset);
        break;
    case TL_ETM4_TRACE_INFO:
        tl_etm4_walk_trace_info(&f->walk);
        break;
    case TL_ETM4_TRANSACTION_START:
        tl_item_batch_note(&f->out, "transaction start", p->offset);
        break;
    case TL_ETM4_TRANSACTION_COMMIT:
        tl_item_batch_note(&f->out, "transaction commit", p->offset);
        break;
    default:
        apply_aside(f, p);
        break;
    }
}

/* Number of P0 elements in a packet, once it is complete. */
static uint32_t p0_of(const struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    switch (p->type) {
    case TL_ETM4_ATOM:
        return p->n;
    case TL_ETM4_EXCEPTION:
        return !(p->flags & TL_ETM4_TRANSACTION_FAILED);
    case TL_ETM4_PE_RESET:
    case TL_ETM4_Q:
    case TL_ETM4_SOURCE_ADDRESS:
        return 1;
    case TL_ETM4_TRANSACTION_START:
        return f->config.trans_p0;
    case TL_ETM4_EXCEPTION_RETURN: /* on the M profile it loads registers */
        return f->config.m_profile;
    case TL_ETM4_FUNCTION_RETURN: /* Armv8-M */
        return f->config.m_profile && f->config.v8;
    default:
        return 0;
    }
}

static bool needs_address(const struct tl_etm4_packet *p)
{
    if (p->type == TL_ETM4_EXCEPTION)
        return !(p->flags & TL_ETM4_TRANSACTION_FAILED);
    return p->type == TL_ETM4_Q && !(p->flags & TL_ETM4_HAS_ADDRESS);
}

/* ---- losing and finding synchronisation ---------------------------------------------------- */

static int report_loss(struct tl_etm4_flow *f, uint64_t end)
{
    if (!f->lost)
        return TL_OK;
    f->lost = false;
    if (!f->loss || end <= f->lost_at)
        return TL_OK;
    return f->loss(f->context, f->lost_why, f->lost_at, end - f->lost_at);
}

static void unsync(struct tl_etm4_flow *f, const char *why, uint64_t offset)
{
    f->state = WAIT_ASYNC;
    f->depth = 0;
    f->has_pending = false;
    f->lost = true;
    f->lost_at = offset;
    f->lost_why = why;
    tl_etm4_queue_clear(&f->queue);
    tl_walker_reset(&f->walk.walker);
}

static void bad(struct tl_etm4_flow *f, const char *why, uint64_t offset)
{
    tl_item_batch_gap(&f->out, TL_GAP_BAD_PACKET, offset);
    unsync(f, why, offset);
    f->marked = false;
}

/* Overflow or discard: drop uncommitted P0 elements, apply the others. */
static void discard(struct tl_etm4_flow *f, enum tl_gap gap, uint64_t offset)
{
    for (size_t i = 0; i < f->queue.n; i++)
        apply_aside(f, &tl_etm4_queue_at(&f->queue, i)->packet);
    tl_item_batch_gap(&f->out, gap, offset);
    unsync(f, gap == TL_GAP_OVERFLOW ? OVERFLOWED : DISCARDED, offset);
}

/* ---- queue ------------------------------------------------------------------------------- */

static int enqueue(struct tl_etm4_flow *f, const struct tl_etm4_packet *p,
                   const struct tl_etm4_packet *address, uint32_t p0)
{
    struct tl_etm4_element *e;
    const int rc = tl_etm4_queue_push(&f->queue, p, p0, &e);
    if (rc == TL_LIMIT) {
        bad(f, TOO_MANY, p->offset);
        return TL_OK;
    }
    if (rc < 0)
        return rc;
    if (address)
        e->address = *address;
    f->depth += p0;
    return TL_OK;
}

/* Apply elements from the oldest on: `count` P0 elements, and others up to the next P0 element. */
static void commit(struct tl_etm4_flow *f, uint64_t count, uint64_t offset)
{
    while (f->queue.n > 0) {
        struct tl_etm4_element *e = tl_etm4_queue_at(&f->queue, 0);
        if (e->p0 == 0) {
            apply(f, &e->packet, &e->address);
        } else if (count == 0) {
            return;
        } else if (e->p0 > count) { /* only some of several atoms, or of unseen elements */
            if (e->packet.type == TL_ETM4_ATOM) {
                tl_walker_waypoints(&f->walk.walker, e->packet.value, (unsigned)count,
                                    e->packet.offset);
                e->packet.value >>= count;
                e->packet.n = (uint8_t)(e->packet.n - count);
            }
            e->p0 -= (uint32_t)count;
            f->depth -= count;
            return;
        } else {
            count -= e->p0;
            f->depth -= e->p0;
            apply(f, &e->packet, &e->address);
        }
        tl_etm4_queue_pop(&f->queue);
    }
    /* Without speculation they were committed immediately. */
    if (count > 0 && f->config.max_spec_depth > 0)
        bad(f, OVER_COMMIT, offset);
}

/* Add a complete element: apply it if it need not wait, else queue it. */
static int element(struct tl_etm4_flow *f, const struct tl_etm4_packet *p,
                   const struct tl_etm4_packet *address)
{
    static const struct tl_etm4_packet none = {0};
    const uint32_t p0 = p0_of(f, p);
    if (f->queue.n == 0 && (p0 == 0 || f->config.max_spec_depth == 0)) {
        apply(f, p, address ? address : &none);
        return TL_OK;
    }
    const int rc = enqueue(f, p, address, p0);
    if (rc < 0)
        return rc;
    if (f->depth > f->config.max_spec_depth)
        commit(f, f->depth - f->config.max_spec_depth, p->offset);
    return TL_OK;
}

/* ---- packets ----------------------------------------------------------------------------- */

static int atoms_before(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    if (p->n == 0)
        return TL_OK;
    struct tl_etm4_packet atoms = *p;
    atoms.type = TL_ETM4_ATOM;
    atoms.value = p->value2;
    return element(f, &atoms, NULL);
}

static void mispredict(struct tl_etm4_flow *f, uint64_t offset)
{
    if (!tl_etm4_queue_mispredict(&f->queue))
        bad(f, NO_ATOM, offset);
}

static int cancel(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    const int rc = atoms_before(f, p);
    if (rc < 0 || f->state != IN_SYNC)
        return rc;
    const uint64_t done = tl_etm4_queue_cancel(&f->queue, p->value);
    f->depth -= done;
    if (done < p->value)
        bad(f, OVER_CANCELLED, p->offset);
    else if (p->flags & TL_ETM4_IS_MISPREDICT)
        mispredict(f, p->offset);
    commit(f, 0, p->offset); /* elements that were kept may now be the oldest */
    return TL_OK;
}

static int cycle_count(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    const int rc = element(f, p, NULL);
    if (rc >= 0 && f->state == IN_SYNC && p->flags & TL_ETM4_HAS_COMMIT && p->value2 > 0)
        commit(f, p->value2, p->offset);
    return rc;
}

/* A context or address packet after an exception or Q belongs to it. */
static int complete_pending(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    struct tl_etm4_packet *address = &f->pending.address;
    const uint32_t context = TL_ETM4_HAS_CONTEXT | TL_ETM4_HAS_CTXID | TL_ETM4_HAS_VMID |
                             TL_ETM4_SF | TL_ETM4_NS | TL_ETM4_NSE | 3u << TL_ETM4_EL_SHIFT;
    if (p->type == TL_ETM4_CONTEXT) {
        *address = *p;
        return TL_OK;
    }
    if (p->type == TL_ETM4_ADDRESS) {
        const struct tl_etm4_packet before = *address;
        *address = *p;
        if (!(p->flags & TL_ETM4_HAS_CONTEXT) && before.flags & TL_ETM4_HAS_CONTEXT) {
            address->flags |= before.flags & context;
            address->value2 = before.value2;
        }
    }
    f->has_pending = false;
    return element(f, &f->pending.packet, address);
}

/*
 * A trace info within the stream gives the number of uncommitted P0 elements. If the queue has a
 * different number, something was lost unnoticed: correct it, so that commits match again.
 */
static int settle(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    const uint64_t depth = p->value >> 32;
    if (f->has_pending || depth > f->config.max_spec_depth)
        return TL_OK;
    if (f->depth > depth) {
        commit(f, f->depth - depth, p->offset);
    } else if (f->depth < depth) {
        const struct tl_etm4_packet unseen = {.type = TL_ETM4_UNSEEN, .offset = p->offset};
        const uint32_t missing = (uint32_t)(depth - f->depth);
        const int rc = tl_etm4_queue_push_oldest(&f->queue, &unseen, missing);
        if (rc < 0)
            return rc == TL_LIMIT ? TL_OK : rc;
        f->depth = depth;
    }
    return TL_OK;
}

static int take(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    if (f->has_pending) {
        if (p->type == TL_ETM4_CONTEXT || p->type == TL_ETM4_ADDRESS)
            return complete_pending(f, p);
        if (p0_of(f, p) > 0 || p->type == TL_ETM4_TRACE_ON) { /* its address is missing */
            const int rc = complete_pending(f, p);
            if (rc < 0 || f->state != IN_SYNC)
                return rc;
        }
    }
    switch (p->type) {
    case TL_ETM4_COMMIT:
        commit(f, p->value, p->offset);
        return TL_OK;
    case TL_ETM4_CANCEL:
        return cancel(f, p);
    case TL_ETM4_MISPREDICT: {
        const int rc = atoms_before(f, p);
        if (rc >= 0 && f->state == IN_SYNC)
            mispredict(f, p->offset);
        return rc;
    }
    case TL_ETM4_CYCLE_COUNT:
        return cycle_count(f, p);
    case TL_ETM4_TRACE_INFO: {
        const int rc = f->config.max_spec_depth > 0 ? settle(f, p) : TL_OK;
        return rc < 0 ? rc : element(f, p, NULL);
    }
    case TL_ETM4_OVERFLOW:
        discard(f, TL_GAP_OVERFLOW, p->offset);
        return TL_OK;
    case TL_ETM4_DISCARD:
        discard(f, TL_GAP_DISCARD, p->offset);
        return TL_OK;
    case TL_ETM4_BAD:
    case TL_ETM4_NOT_SYNC:
        bad(f, BAD_PACKET, p->offset);
        return TL_OK;
    case TL_ETM4_ASYNC:
    case TL_ETM4_IGNORE:
    case TL_ETM4_CONDITIONAL:
    case TL_ETM4_DATA_MARKER:
    case TL_ETM4_INCOMPLETE:
        return TL_OK;
    default:
        break;
    }
    if (needs_address(p)) {
        f->pending = (struct tl_etm4_element){.packet = *p};
        f->has_pending = true;
        return TL_OK;
    }
    return element(f, p, NULL);
}

static int start(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    f->state = IN_SYNC;
    int rc = report_loss(f, p->offset);
    const uint64_t depth = p->value >> 32;
    if (rc >= 0 && depth > 0) {
        const struct tl_etm4_packet unseen = {
            .type = TL_ETM4_UNSEEN, .offset = p->offset, .value = depth};
        rc = enqueue(f, &unseen, NULL, (uint32_t)depth);
    }
    if (rc >= 0)
        rc = element(f, p, NULL);
    if (rc >= 0 && f->config.ete && p->n & 2) {
        struct tl_etm4_packet note = *p;
        note.type = TL_ETM4_TRANSACTION_START;
        if (f->queue.n == 0)
            apply(f, &note, NULL);
    }
    return rc;
}

static int take_unsynced(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    switch (p->type) {
    case TL_ETM4_ASYNC:
        f->state = WAIT_INFO;
        return TL_OK;
    case TL_ETM4_NOT_SYNC: {
        struct tl_item *item = tl_item_batch_add(&f->out, TL_ITEM_GAP, p->offset);
        item->sub = TL_GAP_SYNC;
        item->value = p->value;
        item->flags = TL_ITEM_HAS_VALUE;
        return f->loss ? f->loss(f->context, "not synchronised", p->offset, p->value) : TL_OK;
    }
    case TL_ETM4_TRACE_INFO:
        return f->state == WAIT_INFO ? start(f, p) : TL_OK;
    case TL_ETM4_EVENT: /* ETE may send it before the first trace info */
        if (f->state == WAIT_INFO && f->config.ete)
            apply(f, p, NULL);
        return TL_OK;
    case TL_ETM4_BAD:
        f->state = WAIT_ASYNC;
        return TL_OK;
    default:
        return TL_OK;
    }
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

void tl_etm4_flow_reset(struct tl_etm4_flow *f)
{
    f->state = WAIT_ASYNC;
    f->marked = f->lost = f->has_pending = false;
    f->depth = 0;
    f->joined.n = f->joined.reported = 0;
    tl_item_batch_reset(&f->out);
    tl_etm4_queue_clear(&f->queue);
    tl_walker_begin(&f->walk.walker);
}

void tl_etm4_flow_state(struct tl_etm4_flow *f, struct tl_state *s)
{
    static const char *const reasons[] = {BAD_PACKET,     TOO_MANY,   OVER_COMMIT, NO_ATOM,
                                          OVER_CANCELLED, OVERFLOWED, DISCARDED};
    uint64_t depth = 0;
    tl_state_u8(s, &f->state, IN_SYNC);
    tl_state_bool(s, &f->marked);
    tl_state_bool(s, &f->lost);
    if (!f->lost) {
        f->lost_at = 0;
        f->lost_why = NULL;
    }
    tl_state_u64(s, &f->lost_at);
    tl_state_text(s, &f->lost_why, reasons, sizeof reasons / sizeof *reasons);
    tl_state_check(s, !f->lost || f->lost_why);
    if (!f->has_pending)
        f->pending = (struct tl_etm4_element){0};
    tl_etm4_element_state(&f->pending, s);
    tl_state_bool(s, &f->has_pending);
    tl_item_batch_state(&f->out, s);
    tl_state_u32(s, &f->joined.reported);
    if (f->joined.reported > 0)
        tl_state_u64(s, &f->joined.offset);
    tl_state_check(s, f->joined.reported <= 64);
    tl_etm4_walk_state(&f->walk, s);
    tl_etm4_queue_state(&f->queue, s, &depth);
    tl_state_check(s, f->state == IN_SYNC || f->queue.n == 0);
    if (tl_state_loads(s))
        f->depth = depth;
}

struct tl_walker *tl_etm4_flow_walker(struct tl_etm4_flow *flow)
{
    return &flow->walk.walker;
}

/* ---- input --------------------------------------------------------------------------------- */

/* Process one packet. */
static int push_one(struct tl_etm4_flow *f, const struct tl_etm4_packet *p)
{
    return f->state == IN_SYNC ? take(f, p) : take_unsynced(f, p);
}

/* Result of an operation: `rc`, or a failure recorded elsewhere. */
static int verdict(const struct tl_etm4_flow *f, int rc)
{
    if (rc < 0)
        return rc;
    if (f->out.rc < 0)
        return f->out.rc;
    return f->walk.walker.failed ? TL_NOMEM : TL_OK;
}

int tl_etm4_flow_push(struct tl_etm4_flow *f, const struct tl_etm4_packet *packets, size_t n)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < n; i++)
        rc = verdict(f, push_one(f, &packets[i]));
    if (rc == TL_OK)
        tl_walker_trim(&f->walk.walker);
    return rc;
}

int tl_etm4_flow_pause(struct tl_etm4_flow *f)
{
    const struct tl_etm4_packet atoms = {.type = TL_ETM4_ATOM,
                                         .n = (uint8_t)f->joined.n,
                                         .value = f->joined.atoms,
                                         .offset = f->joined.offset};
    if (f->joined.n == 0)
        return TL_OK;
    f->out.within = f->joined.reported > 0;
    f->joined.reported += f->joined.n;
    f->joined.n = 0;
    const int rc = tl_etm4_flow_push(f, &atoms, 1);
    f->out.within = false;
    return rc;
}

/* Process the next packet of a tape, of any kind. */
static int push_next(struct tl_etm4_flow *f, const struct tl_etm4_tape *tape,
                     struct tl_etm4_tape_place *place)
{
    struct tl_etm4_packet packet;
    const size_t k = place->packet;
    if (tape->header[k] >= TL_ETM4_ATOM_FIRST) {
        place->packet = tl_etm4_join(&f->joined, tape, k, k + 1);
        if (place->packet > k)
            return TL_OK;
    }
    const int rc = tl_etm4_flow_pause(f);
    f->joined.reported = 0;
    if (rc < 0 || tape->header[k] >= TL_ETM4_ATOM_FIRST)
        return rc;
    tl_etm4_tape_next(tape, place, &packet);
    return verdict(f, push_one(f, &packet));
}

/* Is each packet applied immediately? */
static bool is_straight(const struct tl_etm4_flow *f)
{
    return f->state == IN_SYNC && f->queue.n == 0 && f->config.max_spec_depth == 0 &&
           !f->has_pending && f->out.paths;
}

int tl_etm4_flow_tape(struct tl_etm4_flow *f, const struct tl_etm4_tape *tape)
{
    struct tl_etm4_tape_place place = {0};
    struct tl_etm4_tape_marks marks;
    int rc = TL_OK;
    tl_etm4_tape_mark(tape, &marks);
    while (rc == TL_OK && place.packet < tape->n) {
        if (is_straight(f))
            tl_etm4_walk_tape(&f->walk, tape, &marks, &place, &f->joined);
        rc = verdict(f, place.packet < tape->n ? push_next(f, tape, &place) : TL_OK);
    }
    if (rc == TL_OK)
        tl_walker_trim(&f->walk.walker);
    return verdict(f, rc);
}

int tl_etm4_flow_flush(struct tl_etm4_flow *f)
{
    const int rc = tl_etm4_flow_pause(f);
    return rc < 0 ? rc : tl_item_batch_flush(&f->out);
}

/*
 * What waits for its commit at the end was not executed, as far as the trace tells. More than any
 * trace unit lets wait means that the depth given for this one is wrong: instructions are missing.
 */
static void doubt_depth(struct tl_etm4_flow *f)
{
    if (f->state != IN_SYNC || f->lost || f->depth <= TL_ETM4_WAITING_MAX)
        return;
    f->lost = true;
    f->lost_at = tl_etm4_queue_at(&f->queue, 0)->packet.offset;
    f->lost_why = UNCOMMITTED;
}

int tl_etm4_flow_finish(struct tl_etm4_flow *f, uint64_t end)
{
    const int rc = tl_etm4_flow_flush(f);
    doubt_depth(f);
    return rc < 0 ? rc : report_loss(f, end);
}
