/* SPDX-License-Identifier: MIT */
/*
 * Follows the program from one record of an MTB to the next: an MTB records what is not sequential,
 * so that every branch on the way was not taken. What was not recorded is thereby known, and what
 * contradicts the program is a gap.
 */
#include "mtb/flow.h"

#include "flow/m_exception.h"
#include "image/vectors.h"

#define STRAIGHT_MAX ((uint32_t)64 << 10) /* bytes between two records of one program */

int tl_mtb_flow_init(struct tl_mtb_flow *f, const struct tl_mtb_config *config,
                     const struct tl_image *image, struct tl_item_batch *out)
{
    const struct tl_walker_config walker = {
        .image = image,
        .isa = {.arch_major = 8, .profile = 'M'},
        .bits = TL_WALKER_STEPS,
        .since = config->since,
    };
    *f = (struct tl_mtb_flow){.config = *config, .out = out, .image = image};
    return tl_walker_init(&f->walker, &walker, out);
}

void tl_mtb_flow_fini(struct tl_mtb_flow *f)
{
    tl_walker_fini(&f->walker);
}

void tl_mtb_flow_state(struct tl_mtb_flow *f, struct tl_state *s)
{
    tl_state_bool(s, &f->begun);
    tl_state_bool(s, &f->cut);
    tl_state_bool(s, &f->returning);
    tl_state_bool(s, &f->resumed);
    tl_state_u8(s, &f->n_back, TL_MTB_NESTED);
    for (unsigned i = 0; i < f->n_back; i++)
        tl_state_u32(s, &f->back[i]);
    tl_walker_place_state(&f->walker, s);
    tl_walker_rest_state(&f->walker, s);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_walker_restore_context(&f->walker, &(struct tl_image_context){0});
}

/* ---- from a place to the next source --------------------------------------------------------- */

static bool lose(struct tl_mtb_flow *f, uint64_t offset)
{
    tl_walker_lose(&f->walker, TL_GAP_NO_PATH, offset);
    return false;
}

static bool is_branch(const struct tl_block *b)
{
    return b->end == TL_BLOCK_WAYPOINT &&
           (b->last_kind == TL_INSN_BRANCH || b->last_kind == TL_INSN_INDIRECT ||
            b->last_kind == TL_INSN_RETURN_EX);
}

/* Must its last instruction have a record? IT blocks begin behind the place that a branch goes to.
 */
static bool turns_always(const struct tl_mtb_flow *f, const struct tl_block *b)
{
    return f->resumed ? tl_block_turns_always(b) : is_branch(b) && !b->conditional;
}

/* The block that has the instruction at `to`, all before it executed. NULL: the program does not
 * lead there, which was reported. */
static struct tl_block *go_near(struct tl_mtb_flow *f, uint32_t to, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    if (!tl_walker_is_known(w, offset))
        return NULL;
    uint32_t left = to - (uint32_t)w->pc;
    struct tl_block *b = tl_walker_here(w, offset);
    if (b && left > STRAIGHT_MAX) {
        lose(f, offset);
        return NULL;
    }
    while (b && left >= b->size) {
        if (turns_always(f, b)) {
            lose(f, offset);
            return NULL;
        }
        left -= b->size;
        f->resumed &= !is_branch(b);
        tl_walker_pass(w, b, false, offset);
        b = f->out->rc < 0 ? NULL : tl_walker_here(w, offset);
    }
    return b;
}

/* The branch at `source` was taken. */
static void run_through(struct tl_mtb_flow *f, uint32_t source, uint64_t offset)
{
    struct tl_block *const b = go_near(f, source, offset);
    if (!b)
        return;
    if (is_branch(b) && source == b->pc + b->size - b->last_size)
        tl_walker_pass(&f->walker, b, true, offset);
    else
        lose(f, offset);
}

/* All before `next` was executed. */
static void run_up_to(struct tl_mtb_flow *f, uint32_t next, uint64_t offset)
{
    struct tl_block *const b = go_near(f, next, offset);
    if (b && next > b->pc && !tl_walker_execute_part(&f->walker, b, next - (uint32_t)b->pc, offset))
        lose(f, offset);
}

/* ---- records --------------------------------------------------------------------------------- */

static void go_to(struct tl_mtb_flow *f, uint32_t address, uint64_t offset)
{
    f->resumed = false;
    tl_walker_jump(&f->walker, address, TL_ISA_T32, offset);
}

static bool find_vector(const struct tl_mtb_flow *f, uint32_t handler, unsigned *number)
{
    const int found = tl_image_vector(f->image, f->walker.space, f->config.table, handler);
    *number = found > 0 ? (unsigned)found : TL_EXCEPTION_UNKNOWN;
    return found != 0;
}

static void enter(struct tl_mtb_flow *f, const struct tl_mtb_record *r, bool has_pc)
{
    unsigned number;
    (void)find_vector(f, r->destination, &number);
    struct tl_item *const item = tl_add_m_exception(f->out, f->image, number, r->offset);
    item->pc = has_pc ? r->source : 0;
    item->flags = has_pc ? TL_ITEM_HAS_PC : 0;
    tl_walker_await(&f->walker, true);
    go_to(f, r->destination, r->offset);
}

static void take_exception(struct tl_mtb_flow *f, const struct tl_mtb_record *r)
{
    if (f->n_back == TL_MTB_NESTED)
        memmove(f->back, f->back + 1, --f->n_back * sizeof *f->back);
    f->back[f->n_back++] = r->source;
    enter(f, r, true);
}

/* The second record of an exception return. It may lead to the next handler: both exceptions then
 * return to the same place. */
static void arrive(struct tl_mtb_flow *f, const struct tl_mtb_record *r)
{
    unsigned number;
    const bool known = f->n_back > 0, back = known && f->back[f->n_back - 1] == r->destination;
    if (!f->returning && !f->walker.need_address)
        lose(f, r->offset);
    f->returning = false;
    if (!back && find_vector(f, r->destination, &number)) {
        enter(f, r, false);
        return;
    }
    f->n_back -= known;
    tl_item_batch_add(f->out, TL_ITEM_ERET, r->offset);
    tl_walker_await(&f->walker, true);
    go_to(f, r->destination, r->offset);
    f->resumed = true;
}

static void branch(struct tl_mtb_flow *f, const struct tl_mtb_record *r)
{
    if (tl_mtb_is_exc_return(r->destination))
        f->returning = true;
    else
        go_to(f, r->destination, r->offset);
}

/* What was before the record is unknown; of the first one also what it says of its source. */
static void start(struct tl_mtb_flow *f, const struct tl_mtb_record *r)
{
    enum { UNKNOWN = 15 };
    const bool first = !f->begun;
    if (!first)
        tl_item_batch_gap(f->out, TL_GAP_OFF, r->offset);
    tl_item_batch_add(f->out, TL_ITEM_TRACE_ON, r->offset);
    tl_walker_await(&f->walker, true);
    tl_walker_mode(&f->walker, tl_mode(TL_ARCH_ARM, UNKNOWN, TL_SEC_NONE, TL_ISA_T32), r->offset);
    f->begun = true;
    f->cut = false;
    f->returning = false;
    f->n_back = 0;
    if (first || !r->atomic)
        branch(f, r);
    else if (tl_mtb_is_exc_return(r->source))
        arrive(f, r);
    else
        take_exception(f, r);
}

/* The return's destination is missing. */
static void settle_return(struct tl_mtb_flow *f, uint64_t offset)
{
    if (!f->returning)
        return;
    f->returning = false;
    tl_item_batch_add(f->out, TL_ITEM_ERET, offset);
    lose(f, offset);
}

void tl_mtb_flow_record(struct tl_mtb_flow *f, const struct tl_mtb_record *r)
{
    if (!f->begun || f->cut || r->starts) {
        start(f, r);
    } else if (r->atomic && tl_mtb_is_exc_return(r->source)) {
        arrive(f, r);
    } else {
        settle_return(f, r->offset);
        if (r->atomic) {
            run_up_to(f, r->source, r->offset);
            take_exception(f, r);
        } else {
            run_through(f, r->source, r->offset);
            branch(f, r);
        }
    }
}

void tl_mtb_flow_cut(struct tl_mtb_flow *f)
{
    f->cut = f->begun;
}

void tl_mtb_flow_finish(struct tl_mtb_flow *f, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    settle_return(f, offset);
    if (!f->config.stopped || w->need_address || !tl_walker_is_known(w, offset))
        return;
    struct tl_block *const b = tl_walker_here(w, offset);
    const uint32_t bytes = f->config.pc - (uint32_t)w->pc;
    if (b && bytes < b->size) /* no branch on the way: else nobody knows which way it went */
        (void)tl_walker_execute_part(w, b, bytes, offset);
}
