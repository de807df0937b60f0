/* SPDX-License-Identifier: MIT */
/* Streams of simulated trace units in random configurations, damaged, and in frames. */
#ifndef TL_TESTS_SIM_STREAMS_H
#define TL_TESTS_SIM_STREAMS_H

#include "sim/program_rng.h"
#include "sim/tpiu_encoder.h"
#include "unit/sim_world.h"

static inline struct tl_sim_core_options random_options(struct tl_sim_rng *rng)
{
    struct tl_sim_core_options o = {
        .seed = tl_sim_below(rng, 1 << 30),
        .irq_every = tl_sim_below(rng, 2) ? 3000 : 0,
        .fault_every = tl_sim_below(rng, 2) ? 5000 : 0,
        .event_every = tl_sim_below(rng, 2) ? 700 : 0,
        .off_every = tl_sim_below(rng, 3) ? 0 : 20000,
        .overflow_every = tl_sim_below(rng, 3) ? 0 : 30000,
    };
    o.etm = (struct tl_sim_etm4_options){
        .ete = tl_sim_below(rng, 3) == 0,
        .minor = 2,
        .trace_id = 0x10,
        .return_stack = tl_sim_below(rng, 2),
        .branch_broadcast = tl_sim_below(rng, 4) == 0,
        .cycle_count = tl_sim_below(rng, 2),
        .threshold = 16,
        .commit_opt = tl_sim_below(rng, 2),
        .timestamps = tl_sim_below(rng, 2),
        .timestamp_every = 3000,
        .context_id = tl_sim_below(rng, 2),
        .vmid = tl_sim_below(rng, 2),
        .sync_every = tl_sim_below(rng, 2) ? 1024 : 4096,
        .max_spec_depth = tl_sim_below(rng, 3) ? 0 : (uint8_t)(1 + tl_sim_below(rng, 12)),
    };
    if (o.etm.ete)
        o.etm.minor = (uint8_t)tl_sim_below(rng, 4);
    o.etm.ts_marker = o.etm.ete && o.etm.minor >= 1 && tl_sim_below(rng, 2);
    if (o.etm.max_spec_depth)
        o.etm.commit_opt = false;
    return o;
}

static inline void damage(struct tl_buf *trace, struct tl_sim_rng *rng)
{
    for (unsigned k = 0; k < 20; k++) {
        const size_t at = tl_sim_below(rng, (uint32_t)trace->n - 64);
        switch (tl_sim_below(rng, 4)) {
        case 0:
            trace->p[at] ^= (uint8_t)(1 << tl_sim_below(rng, 8));
            break;
        case 1:
            memset(trace->p + at, (int)tl_sim_below(rng, 256), tl_sim_below(rng, 32));
            break;
        case 2: /* an A-Sync and trace info where they do not belong */
            memset(trace->p + at, 0, 11);
            memcpy(trace->p + at + 11, "\x80\x01\x01\x00", 4);
            break;
        default: /* the same, at the end of a longer run of zeros */
            memset(trace->p + at, 0, 20);
            memcpy(trace->p + at + 20, "\x80\x01", 2);
            break;
        }
    }
}

static inline void wrap_frames(struct tl_buf *trace)
{
    struct tl_tpiu_encoder e;
    uint32_t random = 1;
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 1);
    for (size_t at = 0; at < trace->n;) {
        random = random * 1664525 + 1013904223;
        size_t n = 1 + (random >> 8) % 3000;
        n = n < trace->n - at ? n : trace->n - at;
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x10, trace->p + at, n), TL_OK);
        if (random >> 28 == 0)
            assert_int_equal(tl_tpiu_encoder_add(&e, 0x33, trace->p, 7), TL_OK);
        at += n;
    }
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    tl_buf_fini(trace);
    *trace = e.out;
}

/* The stream of round `round`: every second one damaged, every third one in frames. */
static inline void streamed_world(struct world *w, unsigned round, uint64_t insns, uint32_t extra,
                                  struct tl_sim_rng *rng)
{
    const struct tl_sim_program_options shape = {
        .seed = round, .extra = 40, .short_loops = round % 2};
    const struct tl_sim_core_options options = random_options(rng);
    world_init(w, &shape, &options, insns, extra);
    if (round % 2)
        damage(&w->trace, rng);
    if (round % 3 == 2) {
        w->setup.container = TL_CONTAINER_TPIU;
        wrap_frames(&w->trace);
    }
}

#endif
