/* SPDX-License-Identifier: MIT */
/*
 * Follows a tape of packets that relate only to the core's location: atoms and addresses. These are
 * most packets of a trace; whatever else there is goes through flow.c one by one.
 */
#include "etm4/flow_walk.h"
#include "etm4/headers.h"
#include "flow/walker_hot.h"

static inline size_t join(struct tl_etm4_joined *j, const struct tl_etm4_tape *tape, size_t k,
                          size_t end)
{
    if (j->n == 0) {
        j->atoms = 0;
        if (j->reported == 0)
            j->offset = tl_run_offset(&tape->run, tape->at[k]);
    }
    for (; k < end; k++) {
        const uint32_t atoms = tl_etm4_atoms[tape->header[k] - TL_ETM4_ATOM_FIRST];
        const unsigned more = atoms >> 24;
        if (j->reported + j->n + more > 64)
            break;
        j->atoms |= (uint64_t)(atoms & 0xffffff) << j->n;
        j->n += more;
    }
    return k;
}

size_t tl_etm4_join(struct tl_etm4_joined *joined, const struct tl_etm4_tape *tape, size_t k,
                    size_t end)
{
    return join(joined, tape, k, end);
}

/* An address without context. */
static inline void walk_address(struct tl_etm4_walk *w, uint64_t address, uint64_t offset)
{
    w->is1 = address & 1;
    const enum tl_isa isa = w->is1 ? TL_ISA_T32 : w->sf ? TL_ISA_A64 : TL_ISA_A32;
    tl_walker_jump_hot(&w->walker, address & ~1ull, isa, offset);
}

/* Process another packet related only to the core's location. False: it is not one. */
static bool walk_other(struct tl_etm4_walk *w, const struct tl_etm4_tape *tape,
                       struct tl_etm4_tape_place *place)
{
    struct tl_etm4_packet packet, address;
    const size_t k = place->packet;
    switch (tape->forms->class_of[tape->header[k]]) {
    case TL_CLASS_ADDR_CTX32:
    case TL_CLASS_ADDR_CTX64:
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_walk_address(w, &packet);
        return true;
    case TL_CLASS_CONTEXT:
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_walk_context(w, &packet);
        return true;
    case TL_CLASS_CYCLES_F1:
    case TL_CLASS_CYCLES_F2:
    case TL_CLASS_CYCLES_F3:
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_walk_cycles(w, &packet);
        return true;
    case TL_CLASS_EXCEPTION: /* nearly always followed by its address */
        if (k + 1 == tape->n || !tl_etm4_is_address(tape->header[k + 1]))
            return false;
        tl_etm4_tape_next(tape, place, &packet);
        tl_etm4_tape_next(tape, place, &address);
        tl_etm4_walk_exception(w, &packet, &address);
        return true;
    case TL_CLASS_EXCEPTION_RETURN:
        tl_etm4_walk_return(w, tl_run_offset(&tape->run, tape->at[k]));
        place->packet++;
        return true;
    default:
        return false;
    }
}

/* Is it an address without context? The same for all configurations. */
static inline bool is_mere_address(uint8_t header)
{
    return header >> 4 == 9;
}

/*
 * Skip addresses of unmapped code that are followed by atoms. The flow is lost, and packet `k` is
 * not an atom. Each such address gives a gap that carries it. Returns the first packet that is
 * neither.
 */
static __attribute__((noinline)) size_t pass_unmapped(struct tl_walker *w,
                                                      const struct tl_etm4_tape *tape,
                                                      const struct tl_etm4_tape_marks *marks,
                                                      struct tl_etm4_tape_place *place, size_t k)
{
    const struct tl_unmapped_range *range = NULL;
    const uint64_t *const from = tape->address + place->address, *address = from;
    const unsigned is1 = w->isa == TL_ISA_T32;
    for (; k < tape->n && is_mere_address(tape->header[k]); address++) {
        const uint64_t to = *address - is1;
        const size_t next = tl_etm4_tape_marked(marks, k + 1);
        if (to & 1 || next == k + 1)
            break; /* another instruction set, or no atoms */
        if (!range || to - range->first > range->last - range->first)
            range = tl_block_unmapped_at(w->cache, w->space, to);
        if (!range)
            break;
        tl_item_batch_unmapped(w->out, to, tl_run_offset(&tape->run, tape->at[k + 1]));
        k = next;
    }
    if (address > from)
        tl_walker_passed_unmapped(w, address[-1] & ~1ull);
    place->address += (size_t)(address - from);
    return k;
}

void tl_etm4_walk_tape(struct tl_etm4_walk *w, const struct tl_etm4_tape *tape,
                       const struct tl_etm4_tape_marks *marks, struct tl_etm4_tape_place *place,
                       struct tl_etm4_joined *joined)
{
    const uint8_t *const fill = tape->forms->fill;
    struct tl_walker *const walker = &w->walker;
    size_t k = place->packet;

    for (;;) {
        const size_t end = tl_etm4_tape_marked(marks, k);
        if (k < end) {
            if (joined->n == 0 && !walker->block && tl_walker_passes_over(walker))
                k = end;
            else
                k = join(joined, tape, k, end);
        }
        if (k == tape->n) /* the next tape may continue the atoms */
            break;
        if (joined->n > 0) {
            walker->out->within = joined->reported > 0;
            tl_walker_waypoints_hot(walker, joined->atoms, joined->n, joined->offset);
            walker->out->within = false;
            joined->n = 0;
        }
        joined->reported = 0;
        if (k < end)
            continue;
        if (!walker->block && walker->cache && !walker->need_mode &&
            tl_walker_passes_over(walker)) {
            const size_t from = k;
            k = pass_unmapped(walker, tape, marks, place, k);
            if (k > from)
                w->is1 = walker->isa == TL_ISA_T32;
            if (k == tape->n)
                break;
        }
        const unsigned how = fill[tape->header[k]];
        if (how == TL_FILL_ADDRESS || how == TL_FILL_SHORT) {
            walk_address(w, tape->address[place->address++],
                         tl_run_offset(&tape->run, tape->at[k]));
            k++;
        } else if (how == TL_FILL_CYCLES) {
            tl_item_batch_value(walker->out, TL_ITEM_CYCLES,
                                tape->forms->fixed[tape->header[k]].value + tape->threshold,
                                tl_run_offset(&tape->run, tape->at[k]));
            k++;
        } else {
            place->packet = k;
            if (!walk_other(w, tape, place))
                break;
            k = place->packet;
        }
    }
    place->packet = k;
}
