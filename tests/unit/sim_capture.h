/* SPDX-License-Identifier: MIT */
/* Captures of simulated cores for tests of the lake: ETMv4 in TPIU frames, with the program. */
#ifndef TL_TESTS_SIM_CAPTURE_H
#define TL_TESTS_SIM_CAPTURE_H

#include "lake_help.h"
#include "sim/program_core.h"
#include "sim/tpiu_encoder.h"

struct sim_options {
    uint64_t seed;
    uint64_t insns; /* of each core */
    unsigned cores; /* 1 or 2 */
    bool image;     /* with the program's image */
    bool events;    /* interrupts, faults, overflows, hardware events, timestamps */
    /* With an ITM, "itm", that sends a little output now and then, from this instruction on; 0:
     * none. */
    uint64_t itm_from;
    /* The last core sleeps nearly always: it runs in one of this many turns, and then only
     * RARE_INSNS instructions; 0: it runs like the others. */
    unsigned rare;
    bool cycles; /* with cycle counts */
    /* This many hardware events and context changes of each core at one position, every so many
     * instructions; 0: none. */
    unsigned burst;
    uint64_t burst_every;
};

enum { SIM_ITM = 0x20, RARE_INSNS = 20 };

static inline struct tl_sim_etm4_options sim_etm(const struct sim_options *o, unsigned core)
{
    return (struct tl_sim_etm4_options){.minor = 2,
                                        .trace_id = (uint8_t)(0x10 + core),
                                        .return_stack = true,
                                        .timestamps = o->events,
                                        .timestamp_every = 300,
                                        .context_id = true,
                                        .cycle_count = o->cycles,
                                        .threshold = 4};
}

/* Put a program's ELF file into the lake; `hash` gets its name there. */
static inline void sim_put_image(struct tl_lake *lake, const struct tl_buf *elf,
                                 char hash[static 72])
{
    struct tl_image_row row;
    struct tl_fail fail = {0};
    if (tl_lake_put_image(lake, "program", (struct tl_bytes){elf->p, elf->n}, &row, &fail) < 0)
        fail_msg("%s", fail.text);
    memcpy(hash, row.hash, 72);
}

static inline void sim_setup(const struct sim_options *o, const char *hash, struct capture *c)
{
    struct tl_setup setup;
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "tpiu,sync=fsync", NULL), TL_OK);
    setup.clock_hz = 100000000;
    for (unsigned i = 0; i < o->cores; i++) {
        const struct tl_sim_etm4_options etm = sim_etm(o, i);
        struct tl_source *source = tl_setup_add_source(&setup);
        assert_non_null(source);
        assert_int_equal(tl_sim_etm4_source(&etm, source), TL_OK);
        snprintf(source->name, sizeof(source->name), "cs.%02x", 0x10 + i);
        source->id = (uint16_t)(0x10 + i);
    }
    if (o->itm_from > 0) {
        struct tl_source *source = tl_setup_add_source(&setup);
        assert_non_null(source);
        source->protocol = TL_PROTO_ITM;
        source->id = SIM_ITM;
        snprintf(source->name, sizeof(source->name), "itm");
    }
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    if (o->image) {
        assert_int_equal(tl_image_add_elf(image, (struct tl_bytes){c->elf.p, c->elf.n}, 0,
                                          TL_SPACE_ANY, "program", NULL),
                         TL_OK);
        assert_int_equal(tl_grow(&setup.images, &setup.cap_images, 1, sizeof(*setup.images)),
                         TL_OK);
        setup.images[setup.n_images++] = (struct tl_setup_image){
            .file = strdup(hash), .length = UINT64_MAX, .space = TL_SPACE_ANY};
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    decode_text(&setup, image, (struct tl_bytes){c->bytes.p, c->bytes.n}, &c->text);
    tl_image_free(image);
    assert_int_equal(tl_setup_write(&setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
    tl_setup_fini(&setup);
}

/* Output of the ITM after `done` instructions. */
static inline void sim_itm(const struct sim_options *o, uint64_t done, struct tl_tpiu_encoder *tpiu)
{
    static const uint8_t sync[] = {0, 0, 0, 0, 0, 0x80};
    const uint8_t said[] = {1 | (done / 500 & 31) << 3, (uint8_t)(done / 500)};
    if (o->itm_from == 0 || done < o->itm_from)
        return;
    if (done < o->itm_from + 500)
        assert_int_equal(tl_tpiu_encoder_add(tpiu, SIM_ITM, sync, sizeof(sync)), TL_OK);
    if (done / 500 % 7 == 0)
        assert_int_equal(tl_tpiu_encoder_add(tpiu, SIM_ITM, said, sizeof(said)), TL_OK);
}

/* Packets in a row, with no instruction between them. */
static inline void sim_burst(const struct sim_options *o, uint64_t done, struct tl_buf *trace)
{
    if (o->burst == 0 || (done + 500) % o->burst_every != 0)
        return;
    for (unsigned i = 0; i < o->burst; i++) {
        const uint8_t event = 0x71 + i % 15; /* Event, and Context with an id */
        const uint8_t context[] = {0x81, 0xb0, (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16),
                                   0};
        assert_int_equal(i % 8 ? tl_buf_add(trace, &event, 1)
                               : tl_buf_add(trace, context, sizeof context),
                         TL_OK);
    }
}

/* A capture, its setup and its text; the image is put into `lake`. */
static inline void sim_capture(struct tl_lake *lake, const struct sim_options *o, struct capture *c)
{
    struct tl_sim_program program;
    struct tl_tpiu_encoder tpiu;
    struct tl_sim_core *cores[2] = {0};
    struct tl_buf trace[2] = {{0}};
    char hash[72] = "";
    *c = (struct capture){0};
    assert_int_equal(tl_sim_program_init(&program,
                                         &(struct tl_sim_program_options){
                                             .seed = o->seed, .extra = 20, .short_loops = true}),
                     TL_OK);
    tl_tpiu_encoder_init(&tpiu, TL_TPIU_FSYNC, o->seed);
    for (unsigned i = 0; i < o->cores; i++) {
        const struct tl_sim_core_options options = {
            .seed = o->seed + i,
            .irq_every = 3000,
            .event_every = o->events ? 5000 : 0,
            .fault_every = o->events ? 4000 : 0,
            .overflow_every = o->events ? 30000 : 0,
            .off_every = o->events ? 20000 : 0,
            .etm = sim_etm(o, i),
        };
        assert_int_equal(tl_sim_core_new(&cores[i], &program, &options, &trace[i], NULL, NULL),
                         TL_OK);
    }
    for (uint64_t done = 0; done < o->insns; done += 500) {
        for (unsigned i = 0; i < o->cores; i++) {
            const bool rare = o->rare > 0 && i + 1 == o->cores;
            if (!rare || done / 500 % o->rare == 0)
                assert_int_equal(tl_sim_core_step(cores[i], rare ? RARE_INSNS : 500), TL_OK);
            if (done + 500 >= o->insns)
                assert_int_equal(tl_sim_core_flush(cores[i]), TL_OK);
            sim_burst(o, done, &trace[i]);
            assert_int_equal(
                tl_tpiu_encoder_add(&tpiu, (uint8_t)(0x10 + i), trace[i].p, trace[i].n), TL_OK);
            tl_buf_reset(&trace[i]);
        }
        sim_itm(o, done, &tpiu);
    }
    assert_int_equal(tl_tpiu_encoder_flush(&tpiu), TL_OK);
    assert_int_equal(tl_buf_add(&c->bytes, tpiu.out.p, tpiu.out.n), TL_OK);
    assert_int_equal(tl_sim_program_elf(&program, &c->elf), TL_OK);
    sim_put_image(lake, &c->elf, hash);
    sim_setup(o, hash, c);
    for (unsigned i = 0; i < o->cores; i++) {
        tl_sim_core_free(cores[i]);
        tl_buf_fini(&trace[i]);
    }
    tl_tpiu_encoder_fini(&tpiu);
    tl_sim_program_fini(&program);
}

/* A lake in memory, with shards of `shard` instructions, and a capture with all kinds of events:
 * for tests that have the same three variables. */
static inline void sim_lake_begin(struct tl_backend **backend, struct tl_lake **lake,
                                  struct capture *c, uint64_t shard)
{
    const struct sim_options options = {
        .seed = 5, .insns = 12000, .cores = 2, .image = true, .events = true};
    *lake = open_memory_lake(backend, shard, 1);
    sim_capture(*lake, &options, c);
}

static inline void sim_lake_end(struct tl_backend *backend, struct tl_lake *lake, struct capture *c)
{
    capture_free(c);
    close_memory_lake(backend, lake);
}

#endif
