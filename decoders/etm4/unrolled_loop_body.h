/* SPDX-License-Identifier: MIT */
/*
 * The block loop of the unrolled packetizer: a template, included once by each vector level's
 * file, which defines before
 *
 *   block_of(b, short_f1)                        classify the 64 bytes at b; reads one more.
 *                                                short_f1: all ones if cycle counts of format 1
 *                                                carry no commits, else 0
 *   emit(p, b, block, places, heads, offset)     add the packets that begin in `heads` to the
 *                                                batch, and bring the trace state up to date
 */

/* A header that blocks take. */
static ALWAYS_INLINE bool known_to_blocks(uint8_t header)
{
    return header >= 0xc0 || (header >= 0x90 && header <= 0x92) || header == 0x95 ||
           header == 0x9a || (header & 0xf0) == 0x10 || (header >= 0x0c && header <= 0x0e);
}

/*
 * The payload bytes of all packets that may begin in the block. A byte that looks like the
 * header of a longer packet may itself be payload: the first such byte surely is, since what
 * lies before it is settled. It is dropped, until none is left.
 */
static ALWAYS_INLINE uint64_t payload_of(const struct block *block)
{
    uint64_t brief = block->brief;
    uint64_t long32 = block->long32;
    uint64_t pair = block->pair;

    for (;;) {
        const uint64_t two = long32 << 1 | long32 << 2;
        const uint64_t payload = (brief | pair) << 1 | (brief & block->next) << 2 | two | two << 2;
        const uint64_t wrong = payload & (brief | pair | long32);
        if (__builtin_expect(wrong == 0, 1))
            return payload;
        brief &= ~(wrong & -wrong);
        long32 &= ~(wrong & -wrong);
        pair &= ~(wrong & -wrong);
    }
}

/* Length of the packet that begins at byte k. */
static ALWAYS_INLINE unsigned length_at(const struct block *block, unsigned k)
{
    const unsigned brief = block->brief >> k & 1;
    const unsigned pair = block->pair >> k & 1;
    return 1 + pair + brief + (brief & (unsigned)(block->next >> k)) + 4 * (block->long32 >> k & 1);
}

/*
 * One block from byte `i` on. Returns the first byte behind its packets; *stuck: that is a
 * header which blocks do not know.
 */
static ALWAYS_INLINE size_t one_block(struct tl_etm4_packetizer *p, const struct tl_run *run,
                                      size_t i, unsigned unroll, bool *stuck)
{
    const uint8_t *const b = run->p + i;
    const uint64_t within = ~0ull >> (64 - unroll);
    const struct block block = block_of(b, p->config.commit_opt1 ? ~0ull : 0);
    const uint64_t payload = payload_of(&block);
    const uint64_t odd = ~(block.single | block.brief | block.long32 | block.pair | payload);
    const uint64_t heads = ~payload & ((odd & -odd) - 1) & within; /* below the first odd one */

    *stuck = (odd & within) != 0;
    if (heads == 0)
        return i;
    if (p->n + 64 > TL_ETM4_BATCH)
        tl_etm4_batch_flush(p);
    const size_t row = run->slot == TL_RUN_LINEAR ? 15 : (run->slot + i) % 15;
    emit(p, b, &block, tl_etm4_frame_places[row], heads, tl_run_offset(run, i));
    const unsigned last = 63 - (unsigned)__builtin_clzll(heads);
    return i + last + length_at(&block, last);
}

static ALWAYS_INLINE size_t unrolled(struct tl_etm4_packetizer *p, const struct tl_run *run,
                                     size_t i, unsigned unroll)
{
    tl_etm4_actions_update(p);
    while (run->n - i >= TL_UNROLLED_REACH && p->failed >= 0) {
        bool stuck = true;
        if ((p->regs.is[0] | p->regs.is[1] | p->regs.is[2]) == 0)
            i = one_block(p, run, i, unroll, &stuck);
        /* what blocks do not know, packet by packet until there is a header they do */
        while (stuck && run->n - i >= TL_UNROLLED_REACH && p->failed >= 0) {
            const size_t length = tl_etm4_parse_one(p, run, i);
            if (length == 0)
                return i;
            i += length;
            tl_etm4_actions_update(p);
            stuck = !known_to_blocks(run->p[i]);
        }
    }
    return i;
}

#define KERNELS(level)                                                                             \
    size_t tl_etm4_##level##_8(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)   \
    {                                                                                              \
        return unrolled(p, run, i, 8);                                                             \
    }                                                                                              \
    size_t tl_etm4_##level##_16(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)  \
    {                                                                                              \
        return unrolled(p, run, i, 16);                                                            \
    }                                                                                              \
    size_t tl_etm4_##level##_32(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)  \
    {                                                                                              \
        return unrolled(p, run, i, 32);                                                            \
    }                                                                                              \
    size_t tl_etm4_##level##_60(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)  \
    {                                                                                              \
        return unrolled(p, run, i, 60);                                                            \
    }
