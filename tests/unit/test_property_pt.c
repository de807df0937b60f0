/* SPDX-License-Identifier: MIT */
/* Intel PT of simulated executions: the decoded result equals their truth, instruction by
 * instruction and as flow items, for any chunking. */
#include "decode/ops.h"
#include "steps.h"
#include "unit/pt_said.h"

static void insn_by_insn(void **state)
{
    (void)state;
    uint64_t compared = 0;
    for (unsigned i = 0; i < 300; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct tl_sim_pt_flow_options options;
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        struct tl_buf said = {0};
        tl_sim_x86_program_init(&program, tl_sim_rand(&rng), tl_sim_between(&rng, 2, 60));
        tl_sim_pt_flow_random(&options, &rng);
        tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
        tl_sim_pt_flow_run(&flow, tl_sim_between(&rng, 1, 5000));
        struct tl_image *const image = image_of(&program);
        const struct tl_bytes trace = {flow.pt.out.p, flow.pt.out.n};
        ours_flow(&said, &sim_config, image, trace);
        require_truth(&said, &flow.truth, trace);
        compared += n_said(&said);
        tl_image_free(image);
        tl_buf_fini(&said);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
    printf("%llu instructions and events compared\n", (unsigned long long)compared);
}

/* ---- flow items ------------------------------------------------------------------------------ */

static struct steps steps; /* of the trace that is being decoded */

static int add_text(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(&steps, items, n);
    return tl_item_text(context, items, n);
}

static int add_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return tl_buf_printf(context, "loss: %s at %llu, %llu bytes\n", reason,
                         (unsigned long long)offset, (unsigned long long)bytes);
}

static void decode(struct tl_buf *text, const struct tl_source *source,
                   const struct tl_image *image, struct tl_bytes trace, size_t chunk)
{
    const struct tl_stream_sink sink = {text, add_text, NULL, add_loss, false};
    struct tl_stream_decoder *d;
    steps = (struct steps){0};
    assert_int_equal(tl_pt_ops.create(&d, source, image, &sink, NULL), TL_OK);
    for (size_t at = 0; at < trace.n;) {
        size_t n = chunk ? 1 + next() % chunk : trace.n;
        n = n < trace.n - at ? n : trace.n - at;
        const struct tl_run run = {trace.p + at, n, at, NULL};
        assert_int_equal(tl_pt_ops.push(d, &run), TL_OK);
        at += n;
    }
    assert_int_equal(tl_pt_ops.finish(d, TL_LOSS_CUT_OFF), TL_OK);
    tl_pt_ops.destroy(d);
    assert_int_equal(tl_buf_add(text, "", 1), TL_OK);
}

/* Is it an instruction, or a trigger before one? */
static bool is_placed(const struct tl_sim_pt_truth *truth)
{
    return truth->what == TL_SIM_PT_INSN || truth->what == TL_SIM_PT_TRIG;
}

/* Convert a line of flow text for the comparison. False: the line is not compared. */
static bool read_line(const char *line, char out[static 32])
{
    if (strncmp(line, "A trig ", 7) == 0)
        return snprintf(out, 32, "trig %lx", strtoul(line + 7, NULL, 16)) > 0;
    if (*line != 'I')
        return false;
    char *code;
    const uint64_t pc = strtoull(line + 2, &code, 16);
    return snprintf(out, 32, "I %016llx %u", (unsigned long long)pc,
                    (unsigned)(strcspn(code + 1, "\n") / 2)) > 0;
}

static void write_truth(const struct tl_sim_pt_truth *truth, char out[static 32])
{
    if (truth->what == TL_SIM_PT_TRIG)
        snprintf(out, 32, "trig %llx", (unsigned long long)truth->value & 255);
    else
        snprintf(out, 32, "I %016llx %u", (unsigned long long)truth->ip, truth->size);
}

/* Check that the lines equal the truth, in order. */
static void require_placed(const char *text, const struct tl_buf *truths)
{
    const struct tl_sim_pt_truth *t = (const struct tl_sim_pt_truth *)(const void *)truths->p;
    const struct tl_sim_pt_truth *const end = t + truths->n / sizeof *t;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        char got[32], want[32] = "nothing";
        assert_int_not_equal(*line, 'l');
        if (!read_line(line, got))
            continue;
        while (t < end && !is_placed(t))
            t++;
        if (t < end)
            write_truth(t, want);
        if (strcmp(got, want) != 0)
            print_error("%.300s\n", line - text > 100 ? line - 100 : text);
        assert_string_equal(got, want);
        t++;
    }
    for (; t < end; t++)
        assert_false(is_placed(t));
}

/* A damaged trace may give anything, but the same for any chunking. */
static void require_any_chunks(const struct tl_source *source, const struct tl_image *image,
                               struct tl_bytes trace, const char *whole, struct tl_sim_rng *rng)
{
    struct tl_buf pieces = {0};
    decode(&pieces, source, image, trace, 1u << tl_sim_below(rng, 12));
    assert_string_equal((const char *)pieces.p, whole);
    tl_buf_fini(&pieces);
}

static void damage(struct tl_buf *trace, struct tl_sim_rng *rng)
{
    const uint32_t at = tl_sim_below(rng, (uint32_t)trace->n);
    if (tl_sim_percent(rng, 50))
        trace->p[at] = (uint8_t)tl_sim_rand(rng);
    else
        memmove(trace->p + at, trace->p + at + 1, --trace->n - at);
}

static void items(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct tl_sim_pt_flow_options options;
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        struct tl_source source = {.name = "pt.0"};
        struct tl_buf whole = {0};
        tl_sim_x86_program_init(&program, tl_sim_rand(&rng), tl_sim_between(&rng, 2, 60));
        tl_sim_pt_flow_random(&options, &rng);
        tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
        tl_sim_pt_flow_run(&flow, tl_sim_between(&rng, 1, 5000));
        struct tl_image *const image = image_of(&program);
        const struct tl_bytes trace = {flow.pt.out.p, flow.pt.out.n};
        decode(&whole, &source, image, trace, 0);
        require_placed((const char *)whole.p, &flow.truth);
        require_any_chunks(&source, image, trace, (const char *)whole.p, &rng);
        for (unsigned k = 0; k < 4 && flow.pt.out.n > 1; k++) {
            damage(&flow.pt.out, &rng);
            const struct tl_bytes damaged = {flow.pt.out.p, flow.pt.out.n};
            tl_buf_reset(&whole);
            decode(&whole, &source, image, damaged, 0);
            require_any_chunks(&source, image, damaged, (const char *)whole.p, &rng);
        }
        tl_image_free(image);
        tl_buf_fini(&whole);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insn_by_insn),
        cmocka_unit_test(items),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
