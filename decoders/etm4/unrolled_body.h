/* SPDX-License-Identifier: MIT */
/*
 * The block loop of the unrolled packetizer, included once for each vector level. Before, that
 * defines LEVEL(name), which gives names that end with the level's, and
 *
 *   LEVEL(block_of)(b)                              classify the 64 bytes at b; reads one more
 *   LEVEL(list_of)(b, block, places, heads, list)   list the packets that begin in `heads`
 *   LEVEL(write_packet)(out, action, offset)        an action's fixed parts, and an offset
 *
 * No include guard: it is a template.
 */

/*
 * The payload bytes of all packets that may begin in the block. A byte that looks like the
 * header of a longer packet may itself be payload: the first such byte surely is, since what
 * lies before it is settled. It is dropped, until none is left.
 */
static ALWAYS_INLINE uint64_t LEVEL(payload_of)(const struct block *block)
{
    uint64_t brief = block->brief;
    uint64_t long32 = block->long32;

    for (;;) {
        const uint64_t fours = long32 << 1 | long32 << 2;
        const uint64_t payload = brief << 1 | (brief & block->next) << 2 | fours | fours << 2;
        const uint64_t wrong = payload & (brief | long32);
        if (__builtin_expect(wrong == 0, 1))
            return payload;
        brief &= ~(wrong & -wrong);
        long32 &= ~(wrong & -wrong);
    }
}

/* Length of the packet that begins at byte k. */
static ALWAYS_INLINE unsigned LEVEL(length_at)(const struct block *block, unsigned k)
{
    const unsigned brief = block->brief >> k & 1;
    return 1 + brief + (brief & (unsigned)(block->next >> k)) + 4 * (block->long32 >> k & 1);
}

/* Write the packets as they are but for addresses. */
static ALWAYS_INLINE void LEVEL(write_packets)(struct tl_etm4_packetizer *p,
                                               const struct tl_etm4_list *list, unsigned n,
                                               uint64_t offset)
{
    struct tl_etm4_packet *out = p->batch + p->n;
    for (unsigned k = 0; k < n; k++)
        LEVEL(write_packet)(&out[k], p->actions[list->action[k]], offset + list->place[k]);
}

/*
 * The same with atoms joined. `slots` says where each packet went. Returns how many packets
 * were added. A packet that is no atom counts as 64 of them, to which nothing can be joined.
 */
static ALWAYS_INLINE unsigned LEVEL(write_merged)(struct tl_etm4_packetizer *p,
                                                  const struct tl_etm4_list *list, unsigned n,
                                                  uint64_t offset, uint8_t slots[64])
{
    struct tl_etm4_packet *const first = p->batch + p->n;
    struct tl_etm4_packet *out = first - 1;
    unsigned have = p->n > 0 && out->type == TL_ETM4_ATOM ? out->n : 64;
    uint64_t atoms = have < 64 ? out->value : 0;

    for (unsigned k = 0; k < n; k++) {
        const uint64_t *const action = p->actions[list->action[k]];
        const unsigned is_atom = list->action[k] < TL_ACTION_ADDRESS;
        const unsigned more = is_atom ? (unsigned)(action[0] >> 16 & 0xff) : 64;
        const bool joins = have + more <= 64;
        if (joins) {
            atoms |= action[2] << have;
            have += more;
            out->n = (uint8_t)have;
            out->value = atoms;
        } else {
            LEVEL(write_packet)(++out, action, offset + list->place[k]);
            atoms = action[2];
            have = more;
        }
        slots[k] = (uint8_t)(out - first);
    }
    return (unsigned)(out + 1 - first);
}

/*
 * The trace state: resolve the packets in `addresses` (bit k: the list's packet k) in order.
 * `history` has the addresses before them, the newest at [2]; it must have room for all.
 */
static ALWAYS_INLINE uint64_t *LEVEL(resolve)(const uint8_t *b, const struct tl_etm4_list *list,
                                              uint64_t addresses, const struct tl_etm4_step *steps,
                                              uint64_t *newest, struct tl_etm4_packet *out,
                                              const uint8_t *slots)
{
    uint64_t last = *newest;
    while (addresses != 0) {
        const unsigned k = (unsigned)__builtin_ctzll(addresses);
        addresses &= addresses - 1;
        const struct tl_etm4_step *const step = &steps[list->action[k] - TL_ACTION_ADDRESS];
        const uint64_t said = _pext_u64(load64(b + list->at[k]), step->extract) ^ step->flip;
        last = (last & step->keep) | said | (newest[step->back] & step->recall);
        *++newest = last;
        out[slots != NULL ? slots[k] : k].value = last;
    }
    return newest;
}

static ALWAYS_INLINE size_t LEVEL(unrolled)(struct tl_etm4_packetizer *p, const struct tl_run *run,
                                            size_t i, const unsigned unroll)
{
    const uint8_t *const b = run->p;
    struct tl_etm4_step steps[TL_ACTION_STEPS];
    uint64_t history[3 + 64];

    memcpy(steps, tl_etm4_steps, sizeof steps);
    tl_etm4_actions_update(p);
    while (run->n - i >= TL_UNROLLED_REACH && p->failed >= 0) {
        if ((p->regs.is[0] | p->regs.is[1] | p->regs.is[2]) == 0) {
            const struct block block = LEVEL(block_of)(b + i);
            const uint64_t payload = LEVEL(payload_of)(&block);
            const uint64_t known = block.single | block.brief | block.long32;
            const uint64_t odd = ~(known | payload); /* headers that are not the block's */
            const uint64_t heads = ~payload & ((odd & -odd) - 1) & low_bits(unroll);
            const unsigned n = (unsigned)__builtin_popcountll(heads);
            if (n > 0) {
                const size_t place = run->slot == TL_RUN_LINEAR ? 15 : (run->slot + i) % 15;
                const uint64_t offset = tl_run_offset(run, i);
                const uint64_t addresses =
                    _pext_u64(block.match | block.brief | block.long32, heads);
                struct tl_etm4_list list;
                uint8_t slots[64];
                unsigned added = n;
                if (p->n + 64 > TL_ETM4_BATCH)
                    tl_etm4_batch_flush(p);
                LEVEL(list_of)(b + i, &block, tl_etm4_frame_places[place], heads, &list);
                if (p->merge_atoms)
                    added = LEVEL(write_merged)(p, &list, n, offset, slots);
                else
                    LEVEL(write_packets)(p, &list, n, offset);
                if (addresses != 0) {
                    steps[TL_ACTION_LONG32 - TL_ACTION_ADDRESS].keep =
                        p->regs.sf ? 0xffffffff00000000u : 0;
                    history[0] = p->regs.address[2];
                    history[1] = p->regs.address[1];
                    history[2] = p->regs.address[0];
                    const uint64_t *const newest =
                        LEVEL(resolve)(b + i, &list, addresses, steps, history + 2, p->batch + p->n,
                                       p->merge_atoms ? slots : NULL);
                    p->regs.address[0] = newest[0];
                    p->regs.address[1] = newest[-1];
                    p->regs.address[2] = newest[-2];
                }
                p->n += added;
                const unsigned last = 63 - (unsigned)__builtin_clzll(heads);
                i += last + LEVEL(length_at)(&block, last);
            }
            if ((odd & low_bits(unroll)) == 0)
                continue;
        }
        do { /* what blocks do not know, packet by packet until there is a header they do */
            const size_t length = tl_etm4_parse_one(p, run, i);
            if (length == 0)
                return i;
            i += length;
            tl_etm4_actions_update(p);
        } while (run->n - i >= TL_UNROLLED_REACH && p->failed >= 0 && !known_to_blocks(b[i]));
    }
    return i;
}
