/* SPDX-License-Identifier: MIT */
#include "etm4/flow_walk.h"

#define CACHE_LIMIT ((size_t)40 << 20) /* bytes of decoded blocks per stream */

/*
 * Between two waypoints code runs straight on: a longer way than this to a return or source
 * address means that trace was lost or the image is another one.
 */
#define STRAIGHT_MAX (1u << 20) /* bytes */

#define M_TAIL_CHAIN 0xfffffffeu /* return address of a tail-chained exception, M profile */

int tl_etm4_walk_init(struct tl_etm4_walk *walk, const struct tl_etm4_config *config,
                      const struct tl_image *image, struct tl_item_batch *out)
{
    *walk = (struct tl_etm4_walk){
        .out = out,
        .image = image,
        .ete = config->ete,
        .m_profile = config->m_profile,
        .stack.active = config->return_stack,
        .cache_limit = CACHE_LIMIT,
    };
    tl_etm4_walk_reset(walk);
    if (!image)
        return TL_OK;
    const struct tl_isa_options options = {
        .arch_major = config->v8 ? 8 : 7,
        .profile = config->m_profile ? 'M' : 'A',
        .wfx_branch = config->wfx_branch,
    };
    return tl_block_cache_new(&walk->cache, image, &options);
}

void tl_etm4_walk_fini(struct tl_etm4_walk *walk)
{
    tl_block_cache_free(walk->cache);
}

static void forget_place(struct tl_etm4_walk *w)
{
    w->block = NULL;
    w->link = NULL;
    w->from = NULL;
}

static void flush_stack(struct tl_etm4_walk *w)
{
    w->stack.n = 0;
    w->stack.pending = false;
}

/* Other identifiers may show another memory. */
static void set_view(struct tl_etm4_walk *w)
{
    if (!w->cache)
        return;
    const struct tl_image_context now = {
        .context_id = w->context.context_id,
        .vmid = w->context.vmid,
        .has_context_id = w->context.flags & TL_ETM4_HAS_CTXID,
        .has_vmid = w->context.flags & TL_ETM4_HAS_VMID,
    };
    const uint64_t view = tl_image_view(w->image, &now);
    if (view == w->view)
        return;
    w->view = view;
    tl_block_cache_view(w->cache, view);
    forget_place(w);
    memset(&w->callers, 0, sizeof w->callers);
}

void tl_etm4_walk_reset(struct tl_etm4_walk *w)
{
    forget_place(w);
    flush_stack(w);
    w->need_context = true;
    w->need_address = true;
    w->told = true; /* by the gap that made us start anew */
    w->space = TL_SPACE_ANY;
    w->isa = TL_ISA_NONE;
    w->mode = UINT64_MAX;
    w->context = (struct tl_etm4_packet){0};
    set_view(w);
}

void tl_etm4_walk_copy(struct tl_etm4_walk *w, const struct tl_etm4_walk *from)
{
    forget_place(w);
    w->pc = from->pc;
    w->isa = from->isa;
    w->space = from->space;
    w->sf = from->sf;
    w->is1 = from->is1;
    w->need_context = from->need_context;
    w->need_address = from->need_address;
    w->told = from->told;
    w->by_address = from->by_address;
    w->stack = from->stack;
    w->mode = from->mode;
    w->context = from->context;
    set_view(w);
}

static bool same_stack(const struct tl_etm4_return_stack *a, const struct tl_etm4_return_stack *b)
{
    if (a->n != b->n || a->pending != b->pending || a->wait_address != b->wait_address)
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        const unsigned at_a = (a->top - i) & (TL_ETM4_RETURN_STACK - 1);
        const unsigned at_b = (b->top - i) & (TL_ETM4_RETURN_STACK - 1);
        if (a->v[at_a].pc != b->v[at_b].pc || a->v[at_a].isa != b->v[at_b].isa)
            return false;
    }
    return true;
}

bool tl_etm4_walk_same(const struct tl_etm4_walk *a, const struct tl_etm4_walk *b)
{
    return a->pc == b->pc && a->isa == b->isa && a->space == b->space && a->sf == b->sf &&
           a->is1 == b->is1 && a->need_context == b->need_context &&
           a->need_address == b->need_address && a->told == b->told &&
           a->by_address == b->by_address && a->mode == b->mode &&
           a->context.flags == b->context.flags && a->context.value2 == b->context.value2 &&
           same_stack(&a->stack, &b->stack);
}

void tl_etm4_walk_trim(struct tl_etm4_walk *w)
{
    if (!w->cache || tl_block_cache_bytes(w->cache) <= w->cache_limit)
        return;
    tl_item_batch_flush(w->out);
    forget_place(w);
    memset(&w->callers, 0, sizeof w->callers);
    tl_block_cache_reset(w->cache);
}

/* ---- place ------------------------------------------------------------------------------- */

static uint64_t wrap(const struct tl_etm4_walk *w, uint64_t pc)
{
    return w->isa == TL_ISA_A64 ? pc : (uint32_t)pc;
}

/* The block at pc; NULL only when out of memory. */
static struct tl_block *here(struct tl_etm4_walk *w)
{
    if (w->block)
        return w->block;
    struct tl_block *b = tl_block_get(w->cache, w->space, w->isa, w->pc);
    if (!b) {
        w->failed = true;
        return NULL;
    }
    if (b->n > 0) { /* what is not mapped is not kept by the cache */
        w->block = b;
        if (w->link)
            *w->link = b;
        if (w->from)
            w->from->taken = b;
    }
    w->link = NULL;
    w->from = NULL;
    return b;
}

/* Go on at pc, remembering the block there in *link. */
static void step(struct tl_etm4_walk *w, uint64_t pc, struct tl_block **link)
{
    w->pc = pc;
    w->by_address = false;
    w->block = *link;
    w->link = link;
}

static inline void note_caller(struct tl_etm4_walk *w, struct tl_block *b)
{
    const uint32_t top = ++w->callers.top & (TL_ETM4_CALLERS - 1);
    w->callers.v[top].block = b;
    w->callers.v[top].space = w->space;
}

/* Is this the way back from the last call? Then the link behind the call knows the block. */
static bool step_back(struct tl_etm4_walk *w, uint64_t pc, enum tl_isa isa)
{
    const uint32_t top = w->callers.top & (TL_ETM4_CALLERS - 1);
    struct tl_block *const caller = w->callers.v[top].block;
    if (!caller || caller->pc + caller->size != pc || caller->isa != isa ||
        w->callers.v[top].space != w->space)
        return false;
    w->callers.v[top].block = NULL;
    w->callers.top--;
    w->isa = (uint8_t)isa;
    step(w, pc, &caller->next);
    return true;
}

/* Go on at an address that the trace gave. */
static void jump(struct tl_etm4_walk *w, uint64_t pc, enum tl_isa isa)
{
    w->need_address = false;
    w->told = false;
    if (w->block && w->block->pc == pc && w->block->isa == isa)
        return; /* branch broadcasting tells what we know */
    if (w->from && w->from->is_return && step_back(w, pc, isa)) {
        w->from = NULL;
        w->by_address = true;
        return;
    }
    struct tl_block *const guess = w->from ? w->from->taken : NULL;
    w->block = guess && guess->pc == pc && guess->isa == isa ? guess : NULL;
    if (w->block)
        w->from = NULL;
    w->link = NULL;
    w->pc = pc;
    w->by_address = true;
    w->isa = (uint8_t)isa;
}

static void lose(struct tl_etm4_walk *w, enum tl_gap gap, uint64_t offset)
{
    w->need_address = true;
    w->told = true;
    forget_place(w);
    tl_item_batch_gap(w->out, gap, offset);
}

/* ---- mode -------------------------------------------------------------------------------- */

static void tell_mode(struct tl_etm4_walk *w, uint64_t mode, uint64_t offset)
{
    if (mode == w->mode)
        return;
    w->mode = mode;
    tl_item_batch_value(w->out, TL_ITEM_MODE, mode, offset);
}

/* Privilege and security stay; the instruction set may be another than last told. */
static void tell_isa(struct tl_etm4_walk *w, uint64_t offset)
{
    if (w->mode != UINT64_MAX)
        tell_mode(w, (w->mode & ~0xffULL) | w->isa, offset);
}

/* ---- return stack ------------------------------------------------------------------------ */

static void push_return(struct tl_etm4_walk *w, uint64_t pc)
{
    struct tl_etm4_return_stack *s = &w->stack;
    if (!s->active || s->wait_address)
        return;
    s->top = (s->top + 1) & (TL_ETM4_RETURN_STACK - 1);
    s->v[s->top].pc = pc;
    s->v[s->top].isa = w->isa;
    if (s->n < TL_ETM4_RETURN_STACK)
        s->n++; /* else the oldest one is gone */
}

/* A P0 element without an address behind a taken indirect branch: the stack has it. */
static void pop_pending(struct tl_etm4_walk *w, uint64_t offset)
{
    struct tl_etm4_return_stack *s = &w->stack;
    if (!s->pending)
        return;
    s->pending = false;
    if (s->n == 0)
        return;
    const uint64_t pc = s->v[s->top].pc;
    const enum tl_isa isa = s->v[s->top].isa;
    s->top = (s->top - 1) & (TL_ETM4_RETURN_STACK - 1);
    s->n--;
    jump(w, pc, isa);
    tell_isa(w, offset);
}

/* Can the program be followed from here? Reports the gap if it can not, once. */
static bool is_known(struct tl_etm4_walk *w, uint64_t offset)
{
    if (!w->cache || w->need_context)
        return false;
    if (w->need_address && !w->told)
        lose(w, TL_GAP_NO_PATH, offset);
    return !w->need_address;
}

/* ---- context and address ----------------------------------------------------------------- */

static uint8_t space_of(unsigned level, enum tl_security security)
{
    static const uint8_t spaces[4][4] = {
        [TL_SEC_NS] = {TL_SPACE_EL1N, TL_SPACE_EL1N, TL_SPACE_EL2, TL_SPACE_EL3},
        [TL_SEC_S] = {TL_SPACE_EL1S, TL_SPACE_EL1S, TL_SPACE_EL2S, TL_SPACE_EL3},
        [TL_SEC_REALM] = {TL_SPACE_EL1R, TL_SPACE_EL1R, TL_SPACE_EL2R, TL_SPACE_ROOT},
        [TL_SEC_ROOT] = {TL_SPACE_ROOT, TL_SPACE_ROOT, TL_SPACE_ROOT, TL_SPACE_ROOT},
    };
    return spaces[security][level & 3];
}

static enum tl_security security_of(uint32_t flags)
{
    if (flags & TL_ETM4_NSE)
        return flags & TL_ETM4_NS ? TL_SEC_REALM : TL_SEC_ROOT;
    return flags & TL_ETM4_NS ? TL_SEC_NS : TL_SEC_S;
}

static enum tl_isa isa_of(const struct tl_etm4_walk *w)
{
    if (w->is1)
        return TL_ISA_T32;
    return w->sf ? TL_ISA_A64 : TL_ISA_A32;
}

static void tell_identifiers(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    const uint32_t ids = TL_ETM4_HAS_CTXID | TL_ETM4_HAS_VMID;
    struct tl_etm4_packet now = w->context;
    now.flags |= p->flags & ids;
    if (p->flags & TL_ETM4_HAS_CTXID)
        now.context_id = p->context_id;
    if (p->flags & TL_ETM4_HAS_VMID)
        now.vmid = p->vmid;
    if (now.flags == w->context.flags && now.value2 == w->context.value2)
        return;
    w->context = now;
    set_view(w);
    struct tl_item *item = tl_item_batch_add(w->out, TL_ITEM_CONTEXT, p->offset);
    item->flags = (uint8_t)((now.flags & TL_ETM4_HAS_CTXID ? TL_ITEM_HAS_PC : 0) |
                            (now.flags & TL_ETM4_HAS_VMID ? TL_ITEM_HAS_VALUE : 0));
    item->pc = now.context_id;
    item->value = now.vmid;
}

void tl_etm4_walk_context(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    if (!(p->flags & TL_ETM4_HAS_CONTEXT))
        return;
    const unsigned level = p->flags >> TL_ETM4_EL_SHIFT & 3;
    const enum tl_security security = security_of(p->flags);
    const uint8_t space = space_of(level, security);
    w->sf = p->flags & TL_ETM4_SF;
    const bool aarch32 = w->isa == TL_ISA_A32 || w->isa == TL_ISA_T32;
    const enum tl_isa isa = w->sf ? TL_ISA_A64 : aarch32 ? (enum tl_isa)w->isa : isa_of(w);
    if (space != w->space || isa != w->isa)
        forget_place(w);
    w->space = space;
    w->isa = (uint8_t)isa;
    w->need_context = false;
    tell_mode(w, tl_mode(TL_ARCH_ARM, level, security, isa), p->offset);
    tell_identifiers(w, p);
}

/* A branch of which nothing but its target is known. */
static void tell_branch(struct tl_etm4_walk *w, uint64_t to, uint64_t offset)
{
    tl_item_batch_value(w->out, TL_ITEM_BRANCH, to, offset);
}

void tl_etm4_walk_address(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    w->stack.pending = false;
    w->stack.wait_address = false;
    w->is1 = p->flags & TL_ETM4_IS1;
    if (p->flags & TL_ETM4_HAS_CONTEXT) {
        w->isa = TL_ISA_NONE; /* the address's form decides between A32 and T32 */
        tl_etm4_walk_context(w, p);
    }
    jump(w, p->value, isa_of(w));
    tell_isa(w, p->offset);
    if (!w->cache)
        tell_branch(w, p->value, p->offset);
}

void tl_etm4_walk_trace_on(struct tl_etm4_walk *w, uint64_t offset)
{
    flush_stack(w);
    w->need_address = true;
    w->told = true;
    forget_place(w);
    tl_item_batch_add(w->out, TL_ITEM_TRACE_ON, offset);
}

void tl_etm4_walk_trace_info(struct tl_etm4_walk *w)
{
    flush_stack(w);
    w->stack.wait_address = true;
}

/* ---- instructions ------------------------------------------------------------------------ */

static inline uint64_t next_pc(const struct tl_etm4_walk *w, const struct tl_block *b)
{
    return wrap(w, b->pc + b->size);
}

/* The waypoint that ends `b` was executed. */
static inline void leave(struct tl_etm4_walk *w, struct tl_block *b, bool taken, uint64_t offset)
{
    const uint64_t next = next_pc(w, b);
    if (!taken) {
        step(w, next, &b->next);
        return;
    }
    switch (b->last_kind) {
    case TL_INSN_BRANCH:
        if (b->link) {
            push_return(w, next);
            note_caller(w, b);
        }
        if (b->target_isa != w->isa) {
            w->isa = b->target_isa;
            w->is1 = w->isa == TL_ISA_T32;
            step(w, b->target, &b->taken);
            tell_isa(w, offset);
        } else {
            step(w, b->target, &b->taken);
        }
        break;
    case TL_INSN_INDIRECT:
    case TL_INSN_RETURN_EX:
        if (b->link) {
            push_return(w, next);
            note_caller(w, b);
        }
        w->stack.pending = w->stack.active;
        w->need_address = true;
        w->told = false;
        w->block = NULL;
        w->link = NULL;
        w->from = b;
        if (w->ete && b->last_kind == TL_INSN_RETURN_EX) /* ETE has no packet for it */
            tl_item_batch_add(w->out, TL_ITEM_ERET, offset);
        break;
    default:
        step(w, next, &b->next);
        break;
    }
}

static inline bool turns(const struct tl_block *b)
{
    return b->last_kind == TL_INSN_BRANCH || b->last_kind == TL_INSN_INDIRECT ||
           b->last_kind == TL_INSN_RETURN_EX;
}

/* One atom at block `b`, whatever the block is. */
static void one_atom(struct tl_etm4_walk *w, struct tl_block *b, bool taken, uint64_t offset)
{
    while (b->end == TL_BLOCK_FULL) {
        tl_item_batch_block(w->out, b, b->n, false, offset);
        step(w, next_pc(w, b), &b->next);
        b = here(w);
        if (!b)
            return;
    }
    if (b->end == TL_BLOCK_WAYPOINT) {
        tl_item_batch_block(w->out, b, b->n, taken && turns(b), offset);
        leave(w, b, taken, offset);
        return;
    }
    if (b->n > 0)
        tl_item_batch_block(w->out, b, b->n, false, offset);
    lose(w, TL_GAP_NO_IMAGE, offset);
}

/*
 * Where a return leads, if the trace unit's return stack predicts it and the block behind the
 * call is known; else NULL, and nothing is changed.
 */
static inline struct tl_block *return_known(struct tl_etm4_walk *w)
{
    struct tl_etm4_return_stack *const s = &w->stack;
    const uint32_t top = w->callers.top & (TL_ETM4_CALLERS - 1);
    const struct tl_block *const caller = w->callers.v[top].block;
    if (!s->active || s->n == 0 || !caller || !caller->next || s->v[s->top].isa != w->isa ||
        caller->isa != w->isa || caller->pc + caller->size != s->v[s->top].pc ||
        w->callers.v[top].space != w->space)
        return NULL;
    s->top = (s->top - 1) & (TL_ETM4_RETURN_STACK - 1);
    s->n--;
    w->callers.v[top].block = NULL;
    w->callers.top--;
    return caller->next;
}

/*
 * As many atoms as lead from block `b` on to blocks that are known; returns how many. The loop
 * that everything else is there for, in two forms: a PATH item, or items of single blocks.
 */
static inline unsigned walk_known(struct tl_etm4_walk *w, struct tl_block *b, uint64_t atoms,
                                  unsigned n, uint64_t offset, bool paths)
{
    uintptr_t *const steps = paths ? tl_item_batch_steps(w->out, n) : NULL;
    uint64_t insns = 0;
    unsigned done = 0;
    for (; done < n && b->turn != TL_TURN_OTHER; done++, atoms >>= 1) {
        const bool taken = atoms & 1 && b->turn != TL_TURN_STRAIGHT;
        struct tl_block *next = taken ? b->taken : b->next;
        if (b->turn == TL_TURN_RETURN && taken) /* the next atom proves that there is no address */
            next = done + 1 < n ? return_known(w) : NULL;
        if (!next)
            break;
        if (paths) {
            steps[done] = (uintptr_t)b | taken;
            insns += b->n;
        } else {
            tl_item_batch_block(w->out, b, b->n, taken, offset);
        }
        if (b->turn == TL_TURN_CALL && taken) {
            push_return(w, next_pc(w, b));
            note_caller(w, b);
        }
        b = next;
    }
    if (paths && done)
        tl_item_batch_path(w->out, done, insns, offset);
    w->block = b;
    w->pc = b->pc;
    return done;
}

void tl_etm4_walk_atoms(struct tl_etm4_walk *w, uint64_t atoms, unsigned n, uint64_t offset)
{
    if (!w->cache || w->need_context)
        return;
    while (n > 0) {
        pop_pending(w, offset);
        if (w->need_address) { /* and none of the atoms can bring it */
            is_known(w, offset);
            return;
        }
        struct tl_block *const b = here(w);
        if (!b)
            return;
        if (b->n == 0 && w->by_address) /* as without an image: at least where it went */
            tell_branch(w, w->pc, offset);
        unsigned done = 0;
        if (b->n > 0)
            done = w->out->paths ? walk_known(w, b, atoms, n, offset, true)
                                 : walk_known(w, b, atoms, n, offset, false);
        if (done < n) {
            atoms >>= done;
            one_atom(w, w->block ? w->block : b, atoms & 1, offset);
            atoms >>= 1;
        }
        n -= done < n ? done + 1 : done;
    }
}

/* Straight on to `to`, which is executed later or not at all. False: it cannot be reached. */
static bool walk_to(struct tl_etm4_walk *w, uint64_t to, uint64_t offset)
{
    if (to - w->pc > STRAIGHT_MAX) {
        lose(w, TL_GAP_NO_PATH, offset);
        return false;
    }
    while (w->pc != to) {
        struct tl_block *const b = here(w);
        if (!b)
            return false;
        const bool ends_here = to - b->pc <= b->size;
        const int64_t n = ends_here ? tl_block_count_to(b, to) : b->n;
        if (n < 0 || b->n == 0) {
            lose(w, n < 0 ? TL_GAP_NO_PATH : TL_GAP_NO_IMAGE, offset);
            return false;
        }
        tl_item_batch_block(w->out, b, (uint32_t)n, false, offset);
        if (ends_here) {
            w->pc = to;
            forget_place(w);
        } else if (b->end == TL_BLOCK_UNMAPPED) {
            lose(w, TL_GAP_NO_IMAGE, offset);
            return false;
        } else {
            step(w, next_pc(w, b), &b->next);
        }
    }
    return true;
}

void tl_etm4_walk_exception(struct tl_etm4_walk *w, const struct tl_etm4_packet *p,
                            const struct tl_etm4_packet *address)
{
    const bool has_address = address->type == TL_ETM4_ADDRESS;
    const bool at_target = p->n == 2; /* E1:E0: the address is that of a branch target, too */
    const bool tail_chained = w->m_profile && has_address && address->value == M_TAIL_CHAIN;
    pop_pending(w, p->offset);
    if (has_address && !at_target && !tail_chained && is_known(w, p->offset) &&
        w->pc < address->value)
        walk_to(w, address->value, p->offset);
    if (has_address)
        tl_etm4_walk_context(w, address);
    struct tl_item *item = tl_item_batch_add(w->out, TL_ITEM_EXCEPTION, p->offset);
    item->pc = address->value;
    item->flags = has_address && !tail_chained ? TL_ITEM_HAS_PC : 0;
    item->sub = (uint16_t)p->value;
    item->text = tl_etm4_exception_name((unsigned)p->value, w->m_profile);
    w->need_address = true; /* the handler's comes next */
    w->told = false;
    forget_place(w);
}

/*
 * Would `count` instructions straight on end at `to`, or in a branch, taken or not? Emits them
 * if `emit`, then the answer must have been yes.
 */
static bool walk_count(struct tl_etm4_walk *w, uint64_t count, uint64_t to, bool emit,
                       uint64_t offset)
{
    const struct tl_block *b = here(w);
    uint64_t pc = w->pc;
    while (b && b->n > 0) {
        const uint32_t n = count < b->n ? (uint32_t)count : b->n;
        const bool whole = n == b->n;
        const bool branch = whole && b->end == TL_BLOCK_WAYPOINT && turns(b);
        pc = b->pc + tl_block_bytes(b, n);
        if (emit)
            tl_item_batch_block(w->out, b, n, branch && pc != to, offset);
        count -= n;
        if (count == 0)
            return pc == to || branch;
        if (branch || b->end == TL_BLOCK_UNMAPPED)
            return false;
        b = tl_block_get(w->cache, w->space, w->isa, pc);
    }
    return false;
}

void tl_etm4_walk_q(struct tl_etm4_walk *w, const struct tl_etm4_packet *p,
                    const struct tl_etm4_packet *address)
{
    struct tl_etm4_packet own = *p;
    if (p->flags & TL_ETM4_HAS_ADDRESS)
        address = &own;
    const bool has_address = address == &own || address->type == TL_ETM4_ADDRESS;
    const uint64_t count = p->flags & TL_ETM4_HAS_COUNT ? p->value2 : 0;
    pop_pending(w, p->offset);
    if (w->cache && !w->need_context && !w->need_address && has_address && count > 0 &&
        count <= STRAIGHT_MAX && walk_count(w, count, address->value, false, p->offset)) {
        walk_count(w, count, address->value, true, p->offset);
    } else if (w->cache && !w->need_context) {
        struct tl_item *item = tl_item_batch_add(w->out, TL_ITEM_GAP, p->offset);
        item->sub = TL_GAP_NO_PATH;
        item->value = count;
        item->flags = p->flags & TL_ETM4_HAS_COUNT ? TL_ITEM_HAS_VALUE : 0;
    }
    forget_place(w);
    w->need_address = true;
    w->told = true;
    if (has_address)
        tl_etm4_walk_address(w, address);
}

/* It was executed, whatever it is. */
static void tell_unknown(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    struct tl_item *const item = tl_item_batch_add(w->out, TL_ITEM_UNKNOWN, p->offset);
    item->pc = p->value;
    item->flags = TL_ITEM_HAS_PC;
}

void tl_etm4_walk_source(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    pop_pending(w, p->offset);
    if (w->need_context)
        return;
    if (!w->cache) {
        tell_unknown(w, p);
        return;
    }
    w->is1 = p->flags & TL_ETM4_IS1;
    const enum tl_isa isa = w->need_address ? isa_of(w) : (enum tl_isa)w->isa;
    /* Its own block: the first instruction was executed, and it branched. */
    struct tl_block *const b = tl_block_get(w->cache, w->space, isa, p->value);
    if (!b) {
        w->failed = true;
        return;
    }
    if (b->n == 0) {
        tell_unknown(w, p);
        lose(w, TL_GAP_NO_IMAGE, p->offset);
        return;
    }
    if (!w->need_address && w->pc <= p->value)
        walk_to(w, p->value, p->offset);
    forget_place(w);
    jump(w, p->value, isa);
    tell_isa(w, p->offset);
    const bool branched = b->n == 1 && b->end == TL_BLOCK_WAYPOINT;
    tl_item_batch_block(w->out, b, 1, branched && turns(b), p->offset);
    if (branched)
        leave(w, b, true, p->offset);
    else /* the image is another one than was executed */
        w->pc = wrap(w, b->pc + tl_block_bytes(b, 1));
}
