/* SPDX-License-Identifier: MIT */
/*
 * 1 to 31 bytes are lost from or inserted into frames without synchronisation: the frames are soon
 * found again, in generated captures of several sources and in real ones, for any chunks and
 * numbers of threads.
 */
#include "frame/align.h"
#include "hurt_capture.h"

enum { MAX = 31 };

/* Bytes lost or inserted. */
struct fault {
    size_t at, drop, insert;
};

/* Copy `from` with these faults, which are in ascending order. */
static void damage(const struct tl_buf *from, struct tl_buf *to, const struct fault *f, size_t n,
                   struct tl_sim_rng *rng)
{
    size_t done = 0;
    tl_buf_reset(to);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(tl_buf_add(to, from->p + done, f[i].at - done), TL_OK);
        for (size_t k = 0; k < f[i].insert; k++) {
            const uint8_t byte = (uint8_t)tl_sim_rand(rng);
            assert_int_equal(tl_buf_add(to, &byte, 1), TL_OK);
        }
        done = f[i].at + f[i].drop;
    }
    assert_int_equal(tl_buf_add(to, from->p + done, from->n - done), TL_OK);
}

static struct fault any_fault(struct tl_sim_rng *rng, unsigned bytes, size_t from, size_t to)
{
    const bool drop = tl_sim_below(rng, 2);
    return (struct fault){.at = from + tl_sim_below(rng, (uint32_t)(to - from)),
                          .drop = drop ? bytes : 0,
                          .insert = drop ? 0 : bytes};
}

/*
 * The offset by which frames are aligned again: two checkpoints (frame/align.h) until the fault is
 * noticed, one more for the packets that hide it, and the first synchronisation packets that prove
 * it.
 */
static uint64_t in_step(size_t at, size_t syncs_apart)
{
    uint64_t apart = TL_ALIGN_CHECK_MIN;
    while (apart * 2 <= at / 16 && apart < TL_ALIGN_CHECK_MAX)
        apart *= 2;
    return at + MAX + 3 * apart + syncs_apart;
}

/* The longest distance between two synchronisation points of any stream. */
static size_t syncs_apart(const struct outcome *o)
{
    uint64_t most = 0;
    for (unsigned id = 0; id < IDS; id++)
        for (size_t i = 1; i < o->lanes[id].n_syncs; i++) {
            const uint64_t apart = o->lanes[id].syncs[i].start - o->lanes[id].syncs[i - 1].start;
            most = apart > most ? apart : most;
        }
    return (size_t)most;
}

/* Do the streams say nothing in bytes from..to, so that these have no alignment? */
static bool is_silent(const struct outcome *o, uint64_t from, uint64_t to)
{
    for (unsigned id = 0; id < IDS; id++)
        for (size_t i = 0; i < o->lanes[id].n; i++)
            if (o->lanes[id].events[i].offset >= from && o->lanes[id].events[i].offset < to)
                return false;
    return true;
}

struct totals {
    unsigned captures, faults, reported;
    uint64_t seed;
};

static void check(const struct capture *c, const struct outcome *whole, const struct fault *f,
                  size_t n, struct tl_sim_rng *rng, const char *name, struct totals *totals)
{
    struct tl_buf bad = {0};
    struct outcome hurt, pieces;
    char what[240];
    damage(&c->bytes, &bad, f, n, rng);
    decode(c, bad.p, bad.n, bad.n, false, &hurt);
    decode(c, bad.p, bad.n, 1 + tl_sim_below(rng, 3000), false, &pieces);
    check_same(&hurt, &pieces);
    outcome_fini(&pieces);
    decode_by(2, c, bad.p, bad.n, bad.n, false, &pieces);
    check_same(&hurt, &pieces);
    outcome_fini(&pieces);

    const struct bounds b = {.from = f->at < 1200 ? 0 : f->at - 1200,
                             .until = in_step(f[n - 1].at, syncs_apart(whole))};
    for (unsigned id = 0; id < IDS; id++) {
        snprintf(what, sizeof what, "%s: %zu lost, %zu too many at %zu (seed %" PRIu64 "), id %02x",
                 name, f->drop, f->insert, f->at, totals->seed, id);
        check_lane(&whole->lanes[id], &hurt.lanes[id], &b, what);
    }
    totals->faults += (unsigned)n;
    totals->reported += hurt.out_of_step;
    if (hurt.out_of_step && hurt.out_of_step_at + 128 < f->at &&
        !is_silent(whole, hurt.out_of_step_at, f->at))
        fail_msg("%s: told at %" PRIu64, what, hurt.out_of_step_at);
    outcome_fini(&hurt);
    tl_buf_fini(&bad);
}

/* Every number of bytes, with one fault per capture and with three, and near the beginning. */
static void check_capture(const struct capture *c, const char *name, struct totals *totals)
{
    struct tl_sim_rng rng = {totals->seed};
    struct outcome whole;
    decode(c, c->bytes.p, c->bytes.n, c->bytes.n, true, &whole);
    assert_int_equal(whole.out_of_step, 0);
    for (unsigned bytes = 1; bytes <= MAX; bytes++) {
        const size_t n = c->bytes.n - MAX;
        struct fault f = any_fault(&rng, bytes, bytes % 4 ? 0 : n / 16, bytes % 4 ? n : n / 8);
        check(c, &whole, &f, 1, &rng, name, totals);
        if (bytes % 8 || n < 40000)
            continue;
        const struct fault three[] = {
            any_fault(&rng, bytes - 6, n / 8, n / 6),
            any_fault(&rng, bytes - 2, n / 3, n / 2),
            any_fault(&rng, bytes - 4, n / 3 * 2, n / 4 * 3),
        };
        check(c, &whole, three, 3, &rng, name, totals);
    }
    outcome_fini(&whole);
    totals->captures++;
}

static void print_totals(const struct totals *t)
{
    print_message("%u captures, %u faults, frames found again %u times\n", t->captures, t->faults,
                  t->reported);
    assert_true(t->reported > t->faults / 2);
}

static void generated(void **state)
{
    struct totals totals = {.seed = first_seed()};
    for (unsigned i = 0; i < 3; i++, totals.seed++) {
        struct capture c;
        make_capture(&c, TL_TPIU_ALIGNED, totals.seed);
        check_capture(&c, "generated", &totals);
        capture_fini(&c);
    }
    print_totals(&totals);
}

static void visit(const struct capture *c, const char *name, size_t buffer, void *totals)
{
    if (c->setup.container == TL_CONTAINER_TPIU && c->setup.sync == TL_SYNC_NONE &&
        c->bytes.n > 4096)
        check_capture(c, name, totals);
}

static void real(void **state)
{
    struct totals totals = {.seed = first_seed()};
    real_captures(visit, &totals);
    print_totals(&totals);
    assert_true(totals.captures > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated),
        cmocka_unit_test(real),
    };
    return cmocka_run_group_tests_name("frame_steps", tests, NULL, NULL);
}
