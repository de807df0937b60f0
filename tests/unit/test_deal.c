/* SPDX-License-Identifier: MIT */
/* Frames dealt out to their sources: every variant against each byte looked at singly. */
#include "frame/deal.h"
#include "unit/random.h"

#include <string.h>

enum { GROUPS = TL_DEAL_GROUPS, USUAL = 20 };

struct expected {
    uint64_t mask[128][GROUPS];
    struct said {
        size_t n[128];
        uint64_t heard[2]; /* IDs in force anywhere */
        uint8_t id;
    } said;
    size_t groups;
    uint8_t bytes[128][GROUPS * 60];
};

static bool is_source(unsigned id)
{
    return id > 0 && id < 0x70;
}

static void hear(struct expected *e, unsigned id)
{
    if (is_source(id))
        e->said.heard[id / 64] |= (uint64_t)1 << id % 64;
}

/* One group; false: it is not to be dealt, and what it says does not count. */
static bool expect_group(struct expected *e, const uint8_t *in, size_t g, const uint64_t wanted[2])
{
    unsigned id = e->said.id, following = id;
    hear(e, id);
    for (unsigned i = 0; i < 64; i++) {
        const uint8_t *const frame = in + i / 16 * 16;
        const unsigned slot = i % 16, flag = frame[15] >> slot / 2 & 1;
        if (slot % 2 == 0 && in[i] == 0xff)
            return false;
        if (slot == 15 || (slot % 2 == 0 && in[i] & 1)) {
            if (slot < 15) {
                following = in[i] >> 1;
                hear(e, following);
                id = flag && slot < 14 ? id : following;
            }
            continue;
        }
        if (is_source(id)) {
            e->mask[id][g] |= (uint64_t)1 << i;
            e->bytes[id][e->said.n[id]++] = in[i] | (slot % 2 == 0 && flag);
        }
        id = slot % 2 ? following : id;
    }
    if ((e->said.heard[0] & ~wanted[0]) | (e->said.heard[1] & ~wanted[1]))
        return false;
    if (__builtin_popcountll(e->said.heard[0]) + __builtin_popcountll(e->said.heard[1]) >
        TL_DEAL_SHARES)
        return false;
    e->said.id = (uint8_t)following;
    return true;
}

static void expect(struct expected *e, const uint8_t *in, size_t groups, const uint64_t wanted[2],
                   uint8_t id, size_t most_quiet)
{
    memset(e, 0, offsetof(struct expected, bytes));
    e->said.id = id;
    size_t quiet = 0;
    for (size_t g = 0; g < groups && quiet < most_quiet; g++) {
        const struct said before = e->said;
        if (!expect_group(e, in + g * 64, g, wanted)) {
            e->said = before;
            return;
        }
        e->groups = g + 1;
        bool ids = false;
        for (unsigned i = 0; i < 64; i += 2)
            ids |= in[g * 64 + i] & 1;
        quiet = ids ? 0 : quiet + 1;
    }
}

static unsigned first_of(const uint64_t *mask)
{
    unsigned i = 0;
    while (!(mask[i / 64] >> i % 64 & 1))
        i++;
    return i;
}

static void check(const struct expected *e, struct tl_deal *d)
{
    size_t bytes = 0;
    tl_deal_masks(d);
    for (size_t k = 0; k < d->n_shares; k++) {
        const struct tl_share *const share = &d->share[k];
        assert_int_equal(share->n, e->said.n[share->id]);
        assert_memory_equal(share->mask, e->mask[share->id], e->groups * sizeof *share->mask);
        assert_memory_equal(share->bytes, e->bytes[share->id], share->n);
        if (share->n > 0)
            assert_int_equal(share->first, first_of(e->mask[share->id]));
        bytes += share->n;
    }
    for (unsigned id = 0; id < 128; id++)
        bytes -= e->said.n[id];
    assert_int_equal(bytes, 0);
}

/* With IDs from none to everywhere, of few sources or many, some of them not wanted. */
static void make(uint8_t *in, size_t groups, uint64_t wanted[2])
{
    uint8_t rare = next() % 4 ? (uint8_t)(next() % 60) : (uint8_t)next();
    const unsigned ids = 1 + next() % (next() % 4 ? 6 : 24);
    const unsigned first = next() % 128, odd = next() % 8;
    for (size_t i = 0; i < groups * 64; i++) {
        in[i] = (uint8_t)next();
        if (i % 64 == 0 && next() % 32 == 0)
            rare = (uint8_t[]){0, 2, 5, 40}[next() % 4];
        if (i % 2 == 1)
            continue;
        in[i] &= 0xfe;
        if ((next() & 0xff) < rare)
            in[i] = (uint8_t)((first + next() % ids) % 127 << 1 | 1);
    }
    if (odd == 0 && groups > 0)
        in[next() % (groups * 64)] = (uint8_t)next();
    wanted[0] = wanted[1] = ~(uint64_t)0;
    if (odd == 1)
        wanted[next() % 2] &= ~((uint64_t)1 << next() % 64);
    if (next() % 8 == 0) /* a stretch without IDs */
        for (size_t i = next() % 512, end = i + 700; i < end && i < groups * 64; i++)
            in[i] &= i % 2 ? 0xff : 0xfe;
}

static void test_variants(void **state)
{
    static uint8_t in[GROUPS * 64];
    static struct expected e;
    static struct tl_deal d;
    size_t dealt = 0, shares = 0;
    for (int round = 0; round < 4000; round++) {
        uint64_t wanted[2];
        const size_t groups = next() % ((next() % 8 ? USUAL : GROUPS) + 1);
        make(in, groups, wanted);
        const uint8_t id = (uint8_t)(next() % 127);
        d.quiet = 1 + next() % (next() % 2 ? USUAL : GROUPS);
        expect(&e, in, groups, wanted, id, d.quiet);
        for (int level = TL_CPU_SCALAR; level < TL_CPU_LEVELS; level++) {
            if (!tl_cpu_has((enum tl_cpu)level))
                continue;
            d.id = id;
            memcpy(d.wanted, wanted, sizeof wanted);
            assert_int_equal(tl_deal_variant((enum tl_cpu)level)(&d, in, groups), e.groups);
            if (e.groups > 0)
                assert_int_equal(d.id, e.said.id);
            check(&e, &d);
            uint64_t heard[2] = {0};
            for (size_t k = 0; k < d.n_shares; k++)
                heard[d.share[k].id / 64] |= (uint64_t)1 << d.share[k].id % 64;
            assert_true((e.said.heard[0] & ~heard[0]) == 0 && (e.said.heard[1] & ~heard[1]) == 0);
        }
        dealt += e.groups;
        shares += d.n_shares;
    }
    assert_true(dealt > 4000 && shares > 4000);
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_variants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
