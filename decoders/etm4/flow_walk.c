/* SPDX-License-Identifier: MIT */
/*
 * Each kind of element is one function that moves the walker. An exception or a Q element first
 * executes what lies before its address, since atoms report nothing for code without a branch.
 */
#include "etm4/flow_walk.h"

#include "etm4/element.h"

#define M_TAIL_CHAIN 0xfffffffeu /* return address of a tail-chained exception, M profile */

#define RETURN_STACK 16 /* maximum number of entries in any trace unit */

int tl_etm4_walk_init(struct tl_etm4_walk *walk, const struct tl_etm4_config *config,
                      const struct tl_image *image, struct tl_item_batch *out)
{
    const struct tl_walker_config walker = {
        .image = image,
        .isa = {.arch_major = config->v8 ? 8 : 7,
                .profile = config->m_profile ? 'M' : 'A',
                .wfx_branch = config->wfx_branch},
        .bits = TL_WALKER_WAYPOINTS,
        .predicts_returns = config->return_stack,
        .returns = RETURN_STACK,
        .reports_erets = config->ete,
        .since = config->since,
        .keeps_time = config->other_clock,
    };
    *walk = (struct tl_etm4_walk){.m_profile = config->m_profile};
    return tl_walker_init(&walk->walker, &walker, out);
}

/* Identifiers are saved in the form of a packet. */
void tl_etm4_walk_state(struct tl_etm4_walk *walk, struct tl_state *s)
{
    struct tl_walker *const w = &walk->walker;
    struct tl_etm4_packet ids = {
        .flags = (w->context.has_context_id ? TL_ETM4_HAS_CTXID : 0u) |
                 (w->context.has_vmid ? TL_ETM4_HAS_VMID : 0u),
        .context_id = (uint32_t)w->context.context_id,
        .vmid = w->context.vmid,
    };
    tl_walker_place_state(w, s);
    tl_state_bool(s, &walk->sf);
    tl_state_bool(s, &walk->is1);
    tl_walker_rest_state(w, s);
    tl_etm4_packet_state(&ids, s);
    const struct tl_image_context context = {
        .context_id = ids.context_id,
        .vmid = ids.vmid,
        .has_context_id = ids.flags & TL_ETM4_HAS_CTXID,
        .has_vmid = ids.flags & TL_ETM4_HAS_VMID,
    };
    if (tl_state_loads(s) && s->rc >= 0)
        tl_walker_restore_context(w, &context);
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

/* `keeps_isa`: an AArch32 context does not distinguish A32 and T32; keep the current one. */
static void context(struct tl_etm4_walk *w, const struct tl_etm4_packet *p, bool keeps_isa)
{
    if (!(p->flags & TL_ETM4_HAS_CONTEXT))
        return;
    const uint8_t now = w->walker.isa;
    w->sf = p->flags & TL_ETM4_SF;
    const bool keeps = keeps_isa && !w->sf && (now == TL_ISA_A32 || now == TL_ISA_T32);
    const enum tl_isa isa = w->sf ? TL_ISA_A64 : keeps ? (enum tl_isa)now : isa_of(w);
    tl_walker_mode(
        &w->walker,
        tl_mode(TL_ARCH_ARM, p->flags >> TL_ETM4_EL_SHIFT & 3, security_of(p->flags), isa),
        p->offset);
    struct tl_image_context ids = w->walker.context;
    if (p->flags & TL_ETM4_HAS_CTXID) {
        ids.context_id = p->context_id;
        ids.has_context_id = true;
    }
    if (p->flags & TL_ETM4_HAS_VMID) {
        ids.vmid = p->vmid;
        ids.has_vmid = true;
    }
    tl_walker_context(&w->walker, &ids, p->offset);
}

void tl_etm4_walk_context(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    context(w, p, true);
}

void tl_etm4_walk_address(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    w->is1 = p->flags & TL_ETM4_IS1;
    context(w, p, false); /* the address's form distinguishes A32 and T32 */
    tl_walker_jump(&w->walker, p->value, isa_of(w), p->offset);
}

void tl_etm4_walk_cycles(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    tl_item_batch_value(w->walker.out, TL_ITEM_CYCLES, p->flags & TL_ETM4_HAS_COUNT ? p->value : 0,
                        p->offset);
}

void tl_etm4_walk_trace_on(struct tl_etm4_walk *w, uint64_t offset)
{
    tl_walker_forget(&w->walker);
    tl_walker_await(&w->walker, true);
    tl_item_batch_add(w->walker.out, TL_ITEM_TRACE_ON, offset);
}

void tl_etm4_walk_trace_info(struct tl_etm4_walk *w)
{
    w->walker.out->run = 0; /* decoding may begin here, see decode/split.h */
    tl_walker_renew(&w->walker);
}

void tl_etm4_walk_return(struct tl_etm4_walk *w, uint64_t offset)
{
    tl_walker_unpredict(&w->walker);
    if (w->m_profile && !w->walker.need_address)
        tl_walker_await(&w->walker, false); /* the image has another instruction there */
    tl_item_batch_add(w->walker.out, TL_ITEM_ERET, offset);
}

void tl_etm4_walk_exception(struct tl_etm4_walk *w, const struct tl_etm4_packet *p,
                            const struct tl_etm4_packet *address)
{
    struct tl_walker *const walker = &w->walker;
    const bool has_address = address->type == TL_ETM4_ADDRESS;
    const bool at_target = p->n == 2; /* E1:E0: the address is also a branch target */
    const bool tail_chained = w->m_profile && has_address && address->value == M_TAIL_CHAIN;
    tl_walker_pop_return(walker, p->offset);
    if (has_address && !at_target && !tail_chained && tl_walker_is_known(walker, p->offset) &&
        walker->pc < address->value)
        tl_walker_to(walker, address->value, true, p->offset);
    if (has_address)
        tl_etm4_walk_context(w, address);
    struct tl_item *const item =
        tl_etm4_add_exception(walker, (unsigned)p->value, w->m_profile, p->offset);
    item->pc = address->value;
    item->flags = has_address && !tail_chained ? TL_ITEM_HAS_PC : 0;
    tl_walker_await(walker, false); /* the handler's address follows */
}

void tl_etm4_walk_q(struct tl_etm4_walk *w, const struct tl_etm4_packet *p,
                    const struct tl_etm4_packet *address)
{
    struct tl_walker *const walker = &w->walker;
    struct tl_etm4_packet own = *p;
    if (p->flags & TL_ETM4_HAS_ADDRESS)
        address = &own;
    const bool has_address = address == &own || address->type == TL_ETM4_ADDRESS;
    const uint64_t count = p->flags & TL_ETM4_HAS_COUNT ? p->value2 : 0;
    tl_walker_pop_return(walker, p->offset);
    if (!has_address || !tl_walker_count(walker, count, address->value, p->offset)) {
        if (walker->cache && !walker->need_mode) {
            struct tl_item *item = tl_item_batch_add(walker->out, TL_ITEM_GAP, p->offset);
            item->sub = TL_GAP_NO_PATH;
            item->value = count;
            item->flags = p->flags & TL_ETM4_HAS_COUNT ? TL_ITEM_HAS_VALUE : 0;
        }
    }
    tl_walker_await(walker, true);
    tl_walker_forget(walker); /* it may have contained calls and returns */
    if (has_address)
        tl_etm4_walk_address(w, address);
}

void tl_etm4_walk_source(struct tl_etm4_walk *w, const struct tl_etm4_packet *p)
{
    if (!w->walker.need_mode && w->walker.cache)
        w->is1 = p->flags & TL_ETM4_IS1;
    tl_walker_source(&w->walker, p->value, isa_of(w), p->offset);
}
