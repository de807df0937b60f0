/* SPDX-License-Identifier: MIT */
/*
 * Blocks by masks, for vector levels that cannot permute a whole block: a template, included once
 * by each such level's file, which defines before
 *
 *   lengths_of(forms, b, &addresses)   struct lengths of the 64 bytes at b, as if each began a
 *                                      packet, and which would be an address packet
 *   compress8(c, n, bytes, which, base)  write header and position of those of 8 bytes in `which`
 *                                      as packets from `n` on; returns how many
 *
 * and may define as a macro, for a faster way,
 *
 *   add_addresses(p, b, heads, whole)  resolve the addresses among the packets in `heads`, of
 *                                      which those in `whole` say 64 bits
 *
 * Contexts, which may change how addresses are resolved, are taken one by one.
 */

/* Masks over 64 bytes, bit k is byte k: by a packet's length, if one begins there. */
struct lengths {
    uint64_t one, two, three, five, nine;
};

/*
 * The payload bytes of all packets that may begin in the block. A byte that looks like the header
 * of a longer packet may itself be payload: the first such byte surely is, since what lies before
 * it is settled. It is dropped, until none is left.
 */
static ALWAYS_INLINE uint64_t payload_of(const struct lengths *l)
{
    uint64_t nine = l->nine; /* or more */
    uint64_t five = l->five | nine;
    uint64_t three = l->three | five;
    uint64_t two = l->two | three;

    for (;;) {
        const uint64_t pairs = five << 1 | nine << 3 | nine << 5;
        const uint64_t payload = two << 1 | three << 2 | pairs << 2 | pairs << 3;
        const uint64_t wrong = payload & two;
        if (__builtin_expect(wrong == 0, 1))
            return payload;
        const uint64_t stays = ~(wrong & -wrong);
        two &= stays;
        three &= stays;
        five &= stays;
        nine &= stays;
    }
}

/* Resolve the addresses among the packets in `heads`, one after another. */
static ALWAYS_INLINE void add_addresses_in_order(struct tl_etm4_packetizer *p, const uint8_t *b,
                                                 uint64_t heads, uint64_t whole)
{
    struct tl_etm4_columns *const c = &p->columns;
    struct tl_etm4_history history = tl_etm4_history_of(&p->regs);
    const unsigned sf = p->regs.sf;
    uint64_t *out = c->address + c->n_addresses;

    (void)whole;
    for (; heads != 0; heads &= heads - 1) {
        const uint8_t *const packet = b + __builtin_ctzll(heads);
        uint64_t payload;
        memcpy(&payload, packet + 1, sizeof payload);
        *out++ = tl_etm4_resolve(&history, packet[0], payload, sf);
    }
    c->n_addresses = c->n_found = (size_t)(out - c->address);
    tl_etm4_history_keep(&history, &p->regs);
}

#ifndef add_addresses
#define add_addresses add_addresses_in_order
#endif

/*
 * One block from byte `i` on. Returns the first byte behind its packets; *stuck: that is a header
 * which blocks do not know.
 */
static ALWAYS_INLINE size_t one_block(struct tl_etm4_packetizer *p, const uint8_t *b, size_t i,
                                      unsigned unroll, bool *stuck)
{
    struct tl_etm4_columns *const c = &p->columns;
    uint64_t addresses;
    const struct lengths l = lengths_of(&p->forms, b + i, &addresses);
    const uint64_t payload = payload_of(&l);
    const uint64_t odd = ~(l.one | l.two | l.three | l.five | l.nine | payload);
    const uint64_t heads =
        ~payload & ((odd & -odd) - 1) & ~0ull >> (64 - unroll); /* below the first odd one */

    *stuck = heads == 0;
    if (heads == 0)
        return i;
    if (c->n + 64 > TL_TAPE_PACKETS)
        tl_etm4_columns_flush(p);
    size_t n = c->n;
    for (unsigned k = 0; k < unroll; k += 8)
        n += compress8(c, n, b + i + k, heads >> k & 0xff, (unsigned)(i + k));
    c->n = n;
    if ((addresses & heads) != 0)
        add_addresses(p, b + i, addresses & heads, addresses & heads & l.nine);
    const unsigned last = 63 - (unsigned)__builtin_clzll(heads);
    return i + last + 1 + (l.two >> last & 1) + 2 * (l.three >> last & 1) +
           4 * (l.five >> last & 1) + 8 * (l.nine >> last & 1);
}

static ALWAYS_INLINE size_t unrolled(struct tl_etm4_packetizer *p, const struct tl_run *run,
                                     size_t i, unsigned unroll)
{
    while (run->n - i >= TL_UNROLLED_REACH && p->failed >= 0) {
        bool stuck;
        i = one_block(p, run->p, i, unroll, &stuck);
        if (stuck) {
            const size_t next = tl_etm4_plain(p, run, i, i + 1);
            const size_t length = next > i ? next - i : tl_etm4_parse_one(p, run, i);
            if (length == 0)
                return i;
            i += length;
        }
    }
    return i;
}
