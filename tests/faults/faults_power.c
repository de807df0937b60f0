/* SPDX-License-Identifier: MIT */
/*
 * The power is cut at random points, again and again, while a capture is pushed and decoded. What
 * was acknowledged is there afterwards, and in the end all is as without any cut.
 */
#include "faults.h"

struct acked {
    pthread_mutex_t lock;
    uint64_t offset;
};

static void note(void *context, uint64_t offset)
{
    struct acked *acked = context;
    pthread_mutex_lock(&acked->lock);
    acked->offset = offset;
    pthread_mutex_unlock(&acked->lock);
}

/* One life: until the power goes, or all is done. Returns whether it is done; then `*made` grows by
 * the virtual shards that there are. */
static bool live(struct tl_backend *backend, const struct capture *c, uint64_t *random,
                 struct acked *acked, bool is_virtual, bool cut, unsigned *made)
{
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = fault_options(NULL, is_virtual);
    if (cut)
        tl_backend_memory_refuse(backend, fault_random(random) % 320, 1, TL_OK);
    if (tl_lake_open_on(&lake, backend, &options, &fail) < 0) {
        assert_true(cut);
        return false;
    }
    uint64_t durable = 0;
    bool complete = false;
    if (acked->offset > 0) {
        const int r = tl_lake_offset(lake, "t", &durable, &complete);
        assert_true(r == TL_OK || (cut && r == TL_UNREACHABLE)); /* the power may be off already */
        assert_true(r < 0 || durable >= acked->offset);
    }
    bool done = fault_push(lake, "t", c, random, note, acked);
    if (done && fault_random(random) % 2) {
        if (fault_random(random) % 2)
            usleep((unsigned)(fault_random(random) % 5000));
        fault_house(lake, c, random);
    }
    if (done && !cut) {
        assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
        fault_check(lake, "t", c);
        *made += fault_virtual(lake, "t");
    } else {
        /* Some lives end in the middle of decoding, or right behind it. */
        usleep((unsigned)(fault_random(random) % 3000));
        done = false;
    }
    if (cut)
        tl_backend_memory_cut(backend);
    tl_lake_close(lake);
    return done;
}

static void cut_many(bool is_virtual)
{
    uint64_t random = fault_seed();
    struct capture c;
    fault_capture(&c, 20000);
    const unsigned rounds = fault_rounds(is_virtual ? 30 : 60);
    unsigned lives = 0, made = 0;
    for (unsigned round = 0; round < rounds; round++) {
        struct tl_backend *backend;
        struct acked acked = {.lock = PTHREAD_MUTEX_INITIALIZER};
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        const unsigned cuts = 1 + (unsigned)(fault_random(&random) % 6);
        for (unsigned i = 0; i < cuts; i++) {
            live(backend, &c, &random, &acked, is_virtual, true, &made);
            tl_backend_memory_boot(backend, fault_random(&random));
        }
        assert_true(live(backend, &c, &random, &acked, is_virtual, false, &made));
        lives += cuts + 1;
        tl_backend_free(backend);
    }
    assert_true((made > 0) == is_virtual);
    print_message("%u power cuts in %u captures\n", lives - rounds, rounds);
    capture_free(&c);
}

static void power_cuts_lose_nothing(void **state)
{
    (void)state;
    cut_many(false);
}

static void power_cuts_lose_nothing_of_virtual_shards(void **state)
{
    (void)state;
    cut_many(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cuts_lose_nothing),
        cmocka_unit_test(power_cuts_lose_nothing_of_virtual_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
