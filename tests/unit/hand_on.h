/* SPDX-License-Identifier: MIT */
/* A decode that is repeatedly saved between two pushes and loaded into a new decoder, compared with
 * an undisturbed one. */
#ifndef TL_TESTS_HAND_ON_H
#define TL_TESTS_HAND_ON_H

#include "base/crew.h"
#include "sim/program_rng.h"
#include "unit/decode_log.h"

struct run {
    const struct tl_setup *setup;
    const struct tl_image *image;
    struct tl_bytes in;
    bool paths;
    struct tl_crew *crew; /* of the decode that is saved and loaded */
    uint64_t ns;          /* time that each byte takes to arrive; 0: arrival times are unknown */
};

static inline int read_again(void *context, uint64_t offset, uint8_t *out, size_t n)
{
    const struct run *const run = context;
    if (offset > run->in.n || n > run->in.n - offset)
        return TL_BAD;
    memcpy(out, run->in.p + offset, n);
    return TL_OK;
}

static inline struct tl_decode *begin(const struct run *run, struct log *log)
{
    const struct tl_decode_sink sink = {.context = log, .items = on_items, .loss = on_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    log->paths = run->paths;
    assert_int_equal(tl_decode_new(&d, run->setup, run->image, &sink, &fail), TL_OK);
    if (run->paths)
        tl_decode_allow_paths(d);
    tl_decode_set_reader(d, read_again, (void *)(uintptr_t)run);
    assert_int_equal(tl_decode_set_crew(d, run->crew), TL_OK);
    return d;
}

/* The meaning of path offsets depends on the pieces, so both decodes get the same ones. */
static inline size_t piece(struct tl_sim_rng *rng, const struct run *run, size_t at, size_t most)
{
    const size_t n = 1 + tl_sim_below(rng, (uint32_t)most);
    return n < run->in.n - at ? n : run->in.n - at;
}

static inline void push_piece(struct tl_decode *d, const struct run *run, size_t at, size_t n)
{
    tl_decode_set_arrival(d, run->ns ? 1 + run->ns * (at + n) : 0);
    assert_int_equal(tl_decode_push(d, run->in.p + at, n), TL_OK);
    assert_int_equal(tl_decode_flush(d), TL_OK);
}

static inline void undisturbed(const struct run *run, size_t most, struct tl_sim_rng rng,
                               struct log *log)
{
    struct run one = *run;
    one.crew = NULL;
    struct tl_decode *d = begin(&one, log);
    for (size_t at = 0, n; at < run->in.n; at += n) {
        n = piece(&rng, run, at, most);
        push_piece(d, run, at, n);
    }
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

/* Saved and loaded after each piece of up to `most` bytes where possible; returns how often. */
static inline unsigned handed_on(const struct run *run, size_t most, struct tl_sim_rng rng,
                                 struct log *log)
{
    struct tl_decode *d = begin(run, log);
    struct tl_buf saved = {0};
    unsigned times = 0;
    for (size_t at = 0, n; at < run->in.n; at += n) {
        n = piece(&rng, run, at, most);
        push_piece(d, run, at, n);
        tl_buf_reset(&saved);
        const int r = tl_decode_save(d, &saved);
        if (r == TL_AGAIN)
            continue;
        assert_int_equal(r, TL_OK);
        tl_decode_free(d);
        d = begin(run, log);
        assert_int_equal(tl_decode_load(d, (struct tl_bytes){saved.p, saved.n}), TL_OK);
        times++;
    }
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_buf_fini(&saved);
    return times;
}

/* Returns how often the decode was saved and loaded. */
static inline unsigned compare(struct run *run, size_t most, struct tl_sim_rng *rng)
{
    struct log all = {0}, parts = {0};
    undisturbed(run, most, *rng, &all);
    const unsigned times = handed_on(run, most, *rng, &parts);
    assert_same(&all, &parts);
    log_fini(&all);
    log_fini(&parts);
    tl_sim_below(rng, 2);
    return times;
}

#endif
