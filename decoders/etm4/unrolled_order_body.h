/* SPDX-License-Identifier: MIT */
/*
 * Emitting a block's packets in order: a template, included once by each vector level's file,
 * which defines before
 *
 *   struct block                              what was classified, see unrolled_loop_body.h
 *   list_of(b, block, places, heads, list)    list the packets that begin in `heads`
 *   write_packet(out, action, offset)         write an action's fixed parts and an offset
 */

/* The packets of a block, one after another. */
struct list {
    uint8_t action[64];
    uint8_t at[64];    /* byte in the block */
    uint8_t place[64]; /* offset in the file, from the block's */
};

static ALWAYS_INLINE void list_of(const uint8_t *b, const struct block *block,
                                  const uint8_t places[64], uint64_t heads, struct list *list);
static ALWAYS_INLINE void write_packet(struct tl_etm4_packet *out, const uint64_t action[4],
                                       uint64_t offset);

static ALWAYS_INLINE uint64_t load64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

/* Write the packets, but for their addresses. */
static ALWAYS_INLINE void write_packets(struct tl_etm4_packetizer *p, const struct list *list,
                                        unsigned n, uint64_t offset)
{
    struct tl_etm4_packet *out = p->batch + p->n;
    for (unsigned k = 0; k < n; k++)
        write_packet(&out[k], p->actions[list->action[k]], offset + list->place[k]);
}

/*
 * The same with atoms joined. `slots` says where each packet went. Returns how many packets
 * were added. A packet that is no atom counts as 64 of them, to which nothing can be joined.
 */
static ALWAYS_INLINE unsigned write_merged(struct tl_etm4_packetizer *p, const struct list *list,
                                           unsigned n, uint64_t offset, uint8_t slots[64])
{
    struct tl_etm4_packet *const first = p->batch + p->n;
    struct tl_etm4_packet *out = first - 1;
    unsigned have = p->n > 0 && out->type == TL_ETM4_ATOM ? out->n : 64;
    uint64_t atoms = have < 64 ? out->value : 0;

    for (unsigned k = 0; k < n; k++) {
        const uint64_t *const action = p->actions[list->action[k]];
        const bool is_atom = list->action[k] < TL_ACTION_ADDRESS;
        const unsigned more = is_atom ? (unsigned)(action[0] >> 16 & 0xff) : 64;
        if (have + more <= 64) {
            atoms |= action[2] << have;
            have += more;
            out->n = (uint8_t)have;
            out->value = atoms;
        } else {
            write_packet(++out, action, offset + list->place[k]);
            atoms = action[2];
            have = more;
        }
        slots[k] = (uint8_t)(out - first);
    }
    return (unsigned)(out + 1 - first);
}

/*
 * The trace state: resolve the packets in `addresses` (bit k: the list's packet k) in order.
 * `history` has the three addresses before them, the newest last, and room for 64 more. Returns
 * where the newest one is then.
 */
static ALWAYS_INLINE uint64_t *resolve(const uint8_t *b, const struct list *list,
                                       uint64_t addresses, uint64_t long32_keeps, uint64_t *history,
                                       struct tl_etm4_packet *out, const uint8_t *slots)
{
    uint64_t *newest = history + 2;
    uint64_t last = *newest;

    while (addresses != 0) {
        const unsigned k = (unsigned)__builtin_ctzll(addresses);
        const unsigned action = list->action[k];
        const struct tl_etm4_step *const step = &tl_etm4_steps[action - TL_ACTION_ADDRESS];
        const uint64_t said = _pext_u64(load64(b + list->at[k]), step->extract) ^ step->flip;
        const uint64_t keep = action == TL_ACTION_LONG32 ? long32_keeps : step->keep;
        last = (last & keep) | said | (newest[step->back] & step->recall);
        *++newest = last;
        out[slots != NULL ? slots[k] : k].value = last;
        addresses &= addresses - 1;
    }
    return newest;
}

/* Upper half of an address that a 32-bit long address leaves as it is. */
static ALWAYS_INLINE uint64_t long32_keep(const struct tl_etm4_packetizer *p)
{
    return p->regs.sf ? 0xffffffff00000000u : 0;
}

/* Fill in the cycle counts of two bytes in `pairs`; packets went to `out`, or to its `slots`. */
static ALWAYS_INLINE void fill_pairs(const struct tl_etm4_packetizer *p, const uint8_t *b,
                                     uint64_t pairs, uint64_t heads, struct tl_etm4_packet *out,
                                     const uint8_t *slots)
{
    for (; pairs != 0; pairs &= pairs - 1) {
        const unsigned at = (unsigned)__builtin_ctzll(pairs);
        const unsigned k = (unsigned)__builtin_popcountll(heads & ((1ull << at) - 1));
        tl_etm4_cycles_fill(p, b + at, &out[slots != NULL ? slots[k] : k]);
    }
}

static ALWAYS_INLINE void emit_in_order(struct tl_etm4_packetizer *p, const uint8_t *b,
                                        const struct block *block, const uint8_t places[64],
                                        uint64_t heads, uint64_t offset)
{
    const unsigned n = (unsigned)__builtin_popcountll(heads);
    const uint64_t addresses = _pext_u64(block->match | block->brief | block->long32, heads);
    struct list list;
    uint8_t slots[64];
    unsigned added = n;

    list_of(b, block, places, heads, &list);
    if (p->merge_atoms)
        added = write_merged(p, &list, n, offset, slots);
    else
        write_packets(p, &list, n, offset);
    if (addresses != 0) {
        uint64_t history[3 + 64] = {p->regs.address[2], p->regs.address[1], p->regs.address[0]};
        const uint64_t *const newest = resolve(b, &list, addresses, long32_keep(p), history,
                                               p->batch + p->n, p->merge_atoms ? slots : NULL);
        p->regs.address[0] = newest[0];
        p->regs.address[1] = newest[-1];
        p->regs.address[2] = newest[-2];
    }
    fill_pairs(p, b, block->pair & heads, heads, p->batch + p->n, p->merge_atoms ? slots : NULL);
    p->n += added;
}
