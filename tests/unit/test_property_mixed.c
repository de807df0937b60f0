/* SPDX-License-Identifier: MIT */
/*
 * A system of an Arm core and two RISC-V harts, with N-Trace and E-Trace, in one capture of
 * CoreSight frames: each source, by its ID, gives the flow that it gives alone, although the harts'
 * programs are at the same addresses.
 */
#include "decode/decode.h"
#include "sim/tpiu_encoder.h"
#include "steps.h"
#include "unit/etrace_world.h"
#include "unit/nexus_world.h"
#include "unit/sim_world.h"

#include <stdio.h>
#include <unistd.h>

enum { ARM, N_TRACE, E_TRACE, SOURCES };

static const uint8_t ids[SOURCES] = {0x10, 0x21, 0x22};

struct seen {
    struct tl_buf text[SOURCES];
    struct steps steps[SOURCES];
};

static unsigned index_of(const struct tl_decode_stream *stream)
{
    for (unsigned i = 0; i < SOURCES; i++)
        if (!strncmp(stream->name, "cs.", 3) && stream->source->id == ids[i])
            return i;
    return stream->source->protocol == TL_PROTO_E_TRACE ? E_TRACE : N_TRACE;
}

static int see(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
               size_t n)
{
    struct seen *const s = context;
    const unsigned at = index_of(stream);
    steps_demand(&s->steps[at], items, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t kind = items[i].kind;
        if (kind == TL_ITEM_BLOCK || kind == TL_ITEM_EXCEPTION || kind == TL_ITEM_ERET ||
            kind == TL_ITEM_GAP || kind == TL_ITEM_TIME)
            assert_int_equal(tl_item_text(&s->text[at], &items[i], 1), TL_OK);
    }
    return TL_OK;
}

static void decode(const struct tl_setup *setup, const struct tl_image *image,
                   const struct tl_buf *bytes, struct seen *seen)
{
    const struct tl_decode_sink sink = {.context = seen, .items = see};
    struct tl_decode *d;
    struct tl_fail fail = {.text = ""};
    if (tl_decode_new(&d, setup, image, &sink, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_decode_push(d, bytes->p, bytes->n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

/* Add a source of the mixed system, as it is alone but for its name; returns it. */
static struct tl_source *add_source(struct tl_setup *setup, const struct tl_source *alone,
                                    unsigned which, unsigned protocol)
{
    struct tl_source *const s = tl_setup_add_source(setup);
    assert_non_null(s);
    *s = *alone;
    s->id = ids[which];
    s->protocol = (uint8_t)protocol;
    snprintf(s->name, sizeof s->name, "cs.%02x", ids[which]);
    return s;
}

/* An image from a file; `which`: of this source only, SOURCES: of all. */
static void add_image(struct tl_setup *setup, unsigned number, const struct tl_buf *code,
                      uint64_t at, unsigned which)
{
    char path[80], option[160];
    const char *const folder = getenv("TMPDIR");
    struct tl_fail fail = {.text = ""};
    snprintf(path, sizeof path, "%.40s/tl-mixed-%d-%u", folder ? folder : "/tmp", (int)getpid(),
             number);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(code->p, 1, code->n, file), code->n);
    assert_int_equal(fclose(file), 0);
    int n = snprintf(option, sizeof option, "%s@0x%llx", path, (unsigned long long)at);
    if (which < SOURCES)
        snprintf(option + n, sizeof option - (size_t)n, ",source=cs.%02x", ids[which]);
    if (tl_setup_add_image(setup, option, &fail) < 0)
        fail_msg("%s", fail.text);
}

static void interleave(struct tl_buf *out, const struct tl_buf *const traces[SOURCES],
                       struct tl_sim_rng *rng)
{
    struct tl_tpiu_encoder e;
    size_t at[SOURCES] = {0}, left = 0;
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 4);
    for (unsigned i = 0; i < SOURCES; i++)
        left += traces[i]->n;
    while (left > 0) {
        const unsigned i = tl_sim_below(rng, SOURCES);
        const size_t rest = traces[i]->n - at[i], most = 1 + tl_sim_below(rng, 60);
        const size_t n = rest < most ? rest : most;
        assert_int_equal(tl_tpiu_encoder_add(&e, ids[i], traces[i]->p + at[i], n), TL_OK);
        at[i] += n;
        left -= n;
    }
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    *out = e.out;
}

struct system {
    struct world arm;
    struct nexus_world n;
    struct etrace_world e;
    struct tl_setup setup;
    struct tl_image *image;
};

/* Sources as they are alone, in frames, each hart with its own program. */
static void set_up(struct system *s, unsigned round)
{
    const struct tl_etrace_envelope *const v = &s->e.encoder.envelope;
    const bool sifive = s->n.options.sifive;
    const struct tl_source *const arm = &s->arm.setup.sources[0];
    struct tl_fail fail = {.text = ""};
    tl_setup_init(&s->setup);
    assert_int_equal(tl_setup_format(&s->setup, "tpiu", &fail), TL_OK);
    add_source(&s->setup, arm, ARM, arm->protocol);
    struct tl_source *const nexus = add_source(&s->setup, &s->n.setup.sources[0], N_TRACE,
                                               sifive ? TL_PROTO_NEXUS_SIFIVE : TL_PROTO_N_TRACE);
    if (s->n.named) /* on the bus SRC is left out, unless the setup says otherwise */
        assert_int_equal(tl_source_set_reg(nexus, "trTeSrcBits", s->n.options.src_bits), TL_OK);
    struct tl_source *const hart =
        add_source(&s->setup, &s->e.setup.sources[0], E_TRACE, TL_PROTO_E_TRACE);
    assert_int_equal(tl_source_set_reg(hart, "trTeSrcBits", v->src_bits) |
                         tl_source_set_reg(hart, "ts_bytes", v->ts_bytes) |
                         tl_source_set_reg(hart, "type_bits", v->type_bits),
                     TL_OK);
    for (unsigned i = 0; i < 2; i++)
        add_image(&s->setup, i, &s->arm.code[i], s->arm.program.sections[i].base, SOURCES);
    add_image(&s->setup, 2, &s->n.run.code, nexus_base(round, s->n.options.xlen), N_TRACE);
    add_image(&s->setup, 3, &s->e.run.code, s->e.program.base, E_TRACE);
    assert_int_equal(tl_image_new(&s->image), TL_OK);
    if (tl_setup_load_images(&s->setup, s->image, NULL, NULL, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_image_freeze(s->image), TL_OK);
}

static void check_system(struct system *s, unsigned round, struct tl_sim_rng *rng)
{
    struct seen alone = {.text = {{0}}}, mixed = {.text = {{0}}};
    struct tl_buf bytes;
    nexus_world_init(&s->n, round, 3000, rng);
    world_init(&s->arm, &(struct tl_sim_program_options){.seed = round, .extra = 20},
               &(struct tl_sim_core_options){
                   .seed = round, .irq_every = 3000, .etm = {.minor = 2, .trace_id = 0x10}},
               6000, 4);
    struct tl_source *const arm = &s->arm.setup.sources[0];
    snprintf(arm->name, sizeof arm->name, "cs.10");
    decode(&s->arm.setup, s->arm.image, &s->arm.trace, &alone);
    decode(&s->n.setup, s->n.image, &s->n.trace, &alone);
    decode(&s->e.setup, s->e.image, &s->e.trace.bytes, &alone);
    set_up(s, round);
    interleave(&bytes,
               (const struct tl_buf *const[]){&s->arm.trace, &s->n.trace, &s->e.trace.bytes}, rng);
    decode(&s->setup, s->image, &bytes, &mixed);
    for (unsigned i = 0; i < SOURCES; i++) {
        if (mixed.text[i].n != alone.text[i].n ||
            memcmp(mixed.text[i].p, alone.text[i].p, alone.text[i].n) != 0)
            fail_msg("round %u, source %u: %zu and %zu bytes of text", round, i, mixed.text[i].n,
                     alone.text[i].n);
        assert_true(alone.text[i].n > 20000);
        tl_buf_fini(&mixed.text[i]);
        tl_buf_fini(&alone.text[i]);
    }
    for (size_t i = 0; i < s->setup.n_images; i++)
        unlink(s->setup.images[i].file);
    tl_buf_fini(&bytes);
    tl_image_free(s->image);
    tl_setup_fini(&s->setup);
    world_fini(&s->arm);
    nexus_world_fini(&s->n);
}

static void three_cores(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {8};
    unsigned rounds = 0;
    for (unsigned round = 0; round < 40; round++) {
        struct system s;
        etrace_world_init(&s.e, round, 2000);
        if (s.e.encoder.envelope.wrapping == TL_ETRACE_ENCAP) { /* as on ATB */
            check_system(&s, round, &rng);
            rounds++;
        }
        etrace_world_fini(&s.e);
    }
    assert_true(rounds > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(three_cores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
