/* SPDX-License-Identifier: MIT */
#include "etm4/element.h"
#include "etm4/flow_walk_parts.h"

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
    tl_walk_forget_place(w);
    memset(&w->callers, 0, sizeof w->callers);
}

void tl_etm4_walk_reset(struct tl_etm4_walk *w)
{
    tl_walk_forget_place(w);
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
    tl_walk_forget_place(w);
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

void tl_etm4_walk_state(struct tl_etm4_walk *w, struct tl_state *s)
{
    if (tl_state_loads(s))
        tl_walk_forget_place(w);
    tl_state_u64(s, &w->pc);
    tl_state_u8(s, &w->isa, TL_ISA_T32);
    tl_state_u8(s, &w->space, UINT8_MAX);
    tl_state_bool(s, &w->sf);
    tl_state_bool(s, &w->is1);
    tl_state_bool(s, &w->need_context);
    tl_state_bool(s, &w->need_address);
    tl_state_bool(s, &w->told);
    tl_state_bool(s, &w->by_address);
    tl_state_bool(s, &w->stack.pending);
    tl_state_bool(s, &w->stack.wait_address);
    tl_state_u8(s, &w->stack.n, TL_ETM4_RETURN_STACK);
    tl_state_u8(s, &w->stack.top, TL_ETM4_RETURN_STACK - 1);
    for (size_t i = 0; i < TL_ETM4_RETURN_STACK; i++) {
        tl_state_u64(s, &w->stack.v[i].pc);
        tl_state_u8(s, &w->stack.v[i].isa, TL_ISA_T32);
    }
    tl_state_u64(s, &w->mode);
    tl_etm4_packet_state(&w->context, s);
    tl_state_check(s, !w->cache || w->need_context || w->need_address || w->isa != TL_ISA_NONE);
    for (unsigned i = 0; i < w->stack.n; i++)
        tl_state_check(s, w->stack.v[(w->stack.top - i) & (TL_ETM4_RETURN_STACK - 1)].isa !=
                              TL_ISA_NONE);
    if (tl_state_loads(s) && s->rc >= 0)
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
    tl_walk_forget_place(w);
    memset(&w->callers, 0, sizeof w->callers);
    tl_block_cache_reset(w->cache);
}

/* ---- context and address ----------------------------------------------------------------- */

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
    w->sf = p->flags & TL_ETM4_SF;
    const bool aarch32 = w->isa == TL_ISA_A32 || w->isa == TL_ISA_T32;
    const enum tl_isa isa = w->sf ? TL_ISA_A64 : aarch32 ? (enum tl_isa)w->isa : isa_of(w);
    const uint64_t mode = tl_mode(TL_ARCH_ARM, level, security, isa);
    const uint8_t space = (uint8_t)tl_mode_space(mode);
    if (space != w->space || isa != w->isa)
        tl_walk_forget_place(w);
    w->space = space;
    w->isa = (uint8_t)isa;
    w->need_context = false;
    tl_walk_tell_mode(w, mode, p->offset);
    tell_identifiers(w, p);
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
    tl_walk_jump(w, p->value, isa_of(w));
    tl_walk_tell_isa(w, p->offset);
    if (!w->cache)
        tl_walk_tell_branch(w, p->value, p->offset);
}

void tl_etm4_walk_cycles(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    tl_item_batch_value(w->out, TL_ITEM_CYCLES, p->flags & TL_ETM4_HAS_COUNT ? p->value : 0,
                        p->offset);
}

void tl_etm4_walk_trace_on(struct tl_etm4_walk *w, uint64_t offset)
{
    flush_stack(w);
    w->need_address = true;
    w->told = true;
    tl_walk_forget_place(w);
    tl_item_batch_add(w->out, TL_ITEM_TRACE_ON, offset);
}

void tl_etm4_walk_trace_info(struct tl_etm4_walk *w)
{
    w->out->run = 0; /* a decode may begin here, see seam.h */
    flush_stack(w);
    w->stack.wait_address = true;
}

/*
 * Instructions of the block up to `to`, where an exception came. Of T32 one may be interrupted half
 * way, to be gone on with later: `to` lies within it then, and it counts. < 0: no such place.
 */
static int64_t count_to(const struct tl_block *b, uint64_t to, bool exception)
{
    const int64_t n = tl_block_count_to(b, to);
    return n < 0 && exception && b->isa == TL_ISA_T32 && to % 2 == 0 ? tl_block_count_to(b, to + 2)
                                                                     : n;
}

/* Straight on to `to`, which is executed later or not at all. False: it cannot be reached. */
static bool walk_to(struct tl_etm4_walk *w, uint64_t to, bool exception, uint64_t offset)
{
    if (to - w->pc > STRAIGHT_MAX) {
        tl_walk_lose(w, TL_GAP_NO_PATH, offset);
        return false;
    }
    while (w->pc != to) {
        struct tl_block *const b = tl_walk_here(w);
        if (!b)
            return false;
        const bool ends_here = to - b->pc <= b->size;
        const int64_t n = ends_here ? count_to(b, to, exception) : b->n;
        if (n < 0 || b->n == 0) {
            tl_walk_lose(w, n < 0 ? TL_GAP_NO_PATH : TL_GAP_NO_IMAGE, offset);
            return false;
        }
        tl_item_batch_block(w->out, b, (uint32_t)n, false, offset);
        if (ends_here) {
            w->pc = to;
            tl_walk_forget_place(w);
        } else if (b->end == TL_BLOCK_UNMAPPED) {
            tl_walk_lose(w, TL_GAP_NO_IMAGE, offset);
            return false;
        } else {
            tl_walk_step(w, tl_walk_next_pc(w, b), &b->go[0]);
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
    tl_walk_pop_pending(w, p->offset);
    if (has_address && !at_target && !tail_chained && tl_walk_is_known(w, p->offset) &&
        w->pc < address->value)
        walk_to(w, address->value, true, p->offset);
    if (has_address)
        tl_etm4_walk_context(w, address);
    struct tl_item *item = tl_item_batch_add(w->out, TL_ITEM_EXCEPTION, p->offset);
    item->pc = address->value;
    item->flags = has_address && !tail_chained ? TL_ITEM_HAS_PC : 0;
    item->sub = (uint16_t)p->value;
    item->text = tl_etm4_exception_name((unsigned)p->value, w->m_profile);
    w->need_address = true; /* the handler's comes next */
    w->told = false;
    tl_walk_forget_place(w);
}

/*
 * Would `count` instructions straight on end at `to`, or in a branch, taken or not? Emits them
 * if `emit`, then the answer must have been yes.
 */
static bool walk_count(struct tl_etm4_walk *w, uint64_t count, uint64_t to, bool emit,
                       uint64_t offset)
{
    const struct tl_block *b = tl_walk_here(w);
    uint64_t pc = w->pc;
    while (b && b->n > 0) {
        const uint32_t n = count < b->n ? (uint32_t)count : b->n;
        const bool whole = n == b->n;
        const bool branch = whole && b->end == TL_BLOCK_WAYPOINT && tl_walk_turns(b);
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
    tl_walk_pop_pending(w, p->offset);
    if (w->cache && !w->need_context && !w->need_address && has_address && count > 0 &&
        count <= STRAIGHT_MAX && walk_count(w, count, address->value, false, p->offset)) {
        walk_count(w, count, address->value, true, p->offset);
    } else if (w->cache && !w->need_context) {
        struct tl_item *item = tl_item_batch_add(w->out, TL_ITEM_GAP, p->offset);
        item->sub = TL_GAP_NO_PATH;
        item->value = count;
        item->flags = p->flags & TL_ETM4_HAS_COUNT ? TL_ITEM_HAS_VALUE : 0;
    }
    tl_walk_forget_place(w);
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
    tl_walk_pop_pending(w, p->offset);
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
        tl_walk_lose(w, TL_GAP_NO_IMAGE, p->offset);
        return;
    }
    if (!w->need_address && w->pc <= p->value)
        walk_to(w, p->value, false, p->offset);
    tl_walk_forget_place(w);
    tl_walk_jump(w, p->value, isa);
    tl_walk_tell_isa(w, p->offset);
    const bool branched = b->n == 1 && b->end == TL_BLOCK_WAYPOINT;
    tl_item_batch_block(w->out, b, 1, branched && tl_walk_turns(b), p->offset);
    if (branched)
        tl_walk_leave(w, b, true, p->offset);
    else /* the image is another one than was executed */
        w->pc = tl_walk_wrap(w, b->pc + tl_block_bytes(b, 1));
}
