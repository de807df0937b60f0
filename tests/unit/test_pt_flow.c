/* SPDX-License-Identifier: MIT */
/*
 * The Intel PT flow decoder on simulated executions: it finds the same instructions as the
 * instruction-by-instruction decoder (pt/insn.h), neither chunks nor saved states change the
 * result, and after each PSB its state equals that of a decoder that began there.
 */
#include "decode/ops.h"
#include "pt/insn.h"
#include "sim/pt_flow_encoder.h"
#include "steps.h"
#include "unit/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tl_source source = {.protocol = TL_PROTO_PT};

/* An image of the program without the last `cut` bytes of each of its parts. */
static struct tl_image *image_of(const struct tl_sim_x86_program *program, size_t cut)
{
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++) {
        const struct tl_buf *const code = &program->parts[zone].code;
        assert_int_equal(
            tl_image_add_bytes(image, program->parts[zone].base,
                               (struct tl_bytes){code->p, code->n > cut ? code->n - cut : 1},
                               TL_SPACE_ANY, NULL, NULL),
            TL_OK);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    return image;
}

/*
 * The output of a decode. Losses are kept apart, since items are reported only when batches fill.
 */
struct result {
    struct tl_buf text, losses;
    struct steps steps;
};

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(&((struct result *)context)->steps, items, n);
    for (size_t i = 0; i < n; i++) {
        const bool path = items[i].kind == TL_ITEM_PATH;
        for (size_t k = 0; k < (path ? items[i].n : 1); k++) {
            const struct tl_item item = path ? tl_path_item(&items[i], k) : items[i];
            if (tl_item_text(&((struct result *)context)->text, &item, 1) < 0)
                return TL_NOMEM;
        }
    }
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct result *const r = context;
    return tl_buf_printf(&r->losses, "lost %s %llu %llu\n", reason, (unsigned long long)offset,
                         (unsigned long long)bytes);
}

static struct tl_stream_decoder *decoder(const struct tl_image *image, struct result *out,
                                         bool paths)
{
    const struct tl_stream_sink sink = {
        .context = out, .items = on_items, .loss = on_loss, .paths = paths};
    struct tl_stream_decoder *d;
    struct tl_fail fail;
    assert_int_equal(tl_pt_ops.create(&d, &source, image, &sink, &fail), TL_OK);
    return d;
}

/* Decode in chunks of up to `chunk` bytes; `saved`: by another decoder, with the loaded state,
 * after each chunk. */
static void decode(const struct tl_image *image, struct tl_bytes in, size_t chunk, bool saved,
                   bool paths, struct tl_buf *out)
{
    struct result r = {.text = {0}};
    struct tl_stream_decoder *d = decoder(image, &r, paths);
    for (size_t at = 0; at < in.n;) {
        const size_t some = chunk < in.n - at ? 1 + next() % chunk : in.n - at;
        const struct tl_run run = {in.p + at, some, at, NULL};
        assert_int_equal(tl_pt_ops.push(d, &run), TL_OK);
        at += some;
        if (!saved)
            continue;
        struct tl_buf kept = {0};
        struct tl_state save = {.out = &kept};
        assert_int_equal(tl_pt_ops.flush(d), TL_OK);
        tl_pt_ops.state(d, &save);
        assert_int_equal(save.rc, TL_OK);
        tl_pt_ops.destroy(d);
        d = decoder(image, &r, paths);
        struct tl_state load = {.in = {kept.p, kept.n}};
        tl_pt_ops.state(d, &load);
        assert_int_equal(load.rc, TL_OK);
        tl_buf_fini(&kept);
    }
    assert_int_equal(tl_pt_ops.finish(d, TL_LOSS_CUT_OFF), TL_OK);
    tl_pt_ops.destroy(d);
    assert_int_equal(tl_buf_add(out, r.text.p, r.text.n), TL_OK);
    assert_int_equal(tl_buf_add(out, r.losses.p, r.losses.n), TL_OK);
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
    tl_buf_fini(&r.text);
    tl_buf_fini(&r.losses);
}

static void on_insn(void *context, const struct tl_pt_insn *insn)
{
    char line[128];
    size_t n = (size_t)snprintf(line, sizeof line, "I %016llx ", (unsigned long long)insn->ip);
    for (unsigned i = 0; i < insn->x86.size; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, "%02x", insn->raw[i]);
    line[n++] = '\n';
    assert_int_equal(tl_buf_add(context, line, n), TL_OK);
}

/* The instructions found by pt/insn.h. Returns false if there were errors. */
static bool insn_by_insn(const struct tl_image *image, struct tl_bytes in, struct tl_buf *out)
{
    const struct tl_pt_insn_options options = {0};
    struct tl_pt_config config;
    struct tl_pt_insns *const d = malloc(sizeof *d);
    assert_non_null(d);
    tl_pt_config_init(&config, &source);
    tl_pt_insns_init(d, &config, image, in, &options);
    d->insn = on_insn;
    d->context = out;
    int status = tl_pt_insns_sync(d);
    while (status >= 0) {
        struct tl_pt_event event;
        if (status & TL_PT_EVENT_PENDING)
            status = tl_pt_insns_event(d, &event);
        else if (status & TL_PT_END)
            status = -TL_PT_EOS;
        else
            status = tl_pt_insns_next(d);
    }
    free(d);
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
    return status == -TL_PT_EOS;
}

/* Keep only the lines of instructions. */
static void keep_insns(struct tl_buf *text)
{
    char *to = (char *)text->p;
    for (char *line = to; *line;) {
        char *const end = strchr(line, '\n') + 1;
        if (*line == 'I') {
            memmove(to, line, (size_t)(end - line));
            to += end - line;
        }
        line = end;
    }
    *to = 0;
}

static void require_same(const struct tl_buf *a, const struct tl_buf *b, const char *what)
{
    const char *const x = (const char *)a->p, *const y = (const char *)b->p;
    if (strcmp(x, y) == 0)
        return;
    size_t at = 0;
    while (x[at] == y[at])
        at++;
    while (at > 0 && x[at - 1] != '\n')
        at--;
    const size_t before = at > 200 ? at - 200 : 0;
    fail_msg("%s: %.*s\n--- first:\n%.160s\n--- second:\n%.160s", what, (int)(at - before),
             x + before, x + at, y + at);
}

static void check(const struct tl_image *image, struct tl_bytes in)
{
    struct tl_buf whole = {0}, other = {0}, truth = {0};
    decode(image, in, in.n + 1, false, false, &whole);
    decode(image, in, in.n + 1, false, true, &other);
    require_same(&whole, &other, "paths");
    tl_buf_reset(&other);
    decode(image, in, 1, false, true, &other);
    require_same(&whole, &other, "chunks of a byte");
    tl_buf_reset(&other);
    decode(image, in, 300, true, false, &other);
    require_same(&whole, &other, "saved and loaded");
    if (insn_by_insn(image, in, &truth)) {
        keep_insns(&whole);
        /* Instructions after the last packet may not have been executed. */
        truth.p[strlen((char *)whole.p) < truth.n ? strlen((char *)whole.p) : truth.n - 1] = 0;
        require_same(&truth, &whole, "instructions");
    }
    tl_buf_fini(&whole);
    tl_buf_fini(&other);
    tl_buf_fini(&truth);
}

enum damage { NONE, BYTES, MODES };

/* Change any bytes, or only set invalid modes: both bits of a MODE.Exec. */
static void hurt(struct tl_buf *trace, enum damage damage)
{
    for (size_t k = 0; damage == BYTES && k < 1 + trace->n / 500; k++)
        trace->p[next() % trace->n] ^= (uint8_t)(1 + next() % 255);
    for (size_t at = 0; damage == MODES && at + 1 < trace->n; at++)
        if (trace->p[at] == 0x99 && trace->p[at + 1] < 4 && next() % 4 == 0)
            trace->p[at + 1] |= 3;
}

static void simulated(enum damage damage)
{
    for (unsigned i = 0; i < 60; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct tl_sim_pt_flow_options options;
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        tl_sim_x86_program_init(&program, tl_sim_rand(&rng), tl_sim_between(&rng, 2, 60));
        tl_sim_pt_flow_random(&options, &rng);
        tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
        tl_sim_pt_flow_run(&flow, tl_sim_between(&rng, 1, 3000));
        struct tl_image *const image = image_of(&program, 0);
        hurt(&flow.pt.out, damage);
        check(image, (struct tl_bytes){flow.pt.out.p, flow.pt.out.n});
        tl_image_free(image);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
}

static void executions(void **state)
{
    (void)state;
    simulated(NONE);
}

static void damaged_traces(void **state)
{
    (void)state;
    simulated(BYTES);
}

static void modes_that_are_none(void **state)
{
    (void)state;
    simulated(MODES);
}

/* ---- starting at a PSB ----------------------------------------------------------------------- */

/* Check that each gap of this kind has its address. Returns the number of them. */
static unsigned named_gaps(const struct tl_buf *text)
{
    static const char gap[] = "G no-image\n";
    const char *const all = (const char *)text->p;
    unsigned n = 0;
    for (const char *at = all; (at = strstr(at, gap)) != NULL; at += sizeof gap - 1, n++) {
        assert_true(at > all);
        const char *line = at - 1;
        while (line > all && line[-1] != '\n')
            line--;
        assert_memory_equal(line, "B - ", 4);
    }
    return n;
}

/* Code that is missing from the image is reported: without an image, and with one that lacks the
 * end of each part. */
static void what_is_missing_is_named(void **state)
{
    (void)state;
    unsigned without = 0, cut = 0;
    for (unsigned i = 0; i < 20; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct tl_sim_pt_flow_options options;
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        tl_sim_x86_program_init(&program, tl_sim_rand(&rng), tl_sim_between(&rng, 2, 60));
        tl_sim_pt_flow_random(&options, &rng);
        tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
        tl_sim_pt_flow_run(&flow, tl_sim_between(&rng, 1, 3000));
        const struct tl_bytes in = {flow.pt.out.p, flow.pt.out.n};
        struct tl_image *const images[] = {NULL, image_of(&program, tl_sim_between(&rng, 1, 400))};
        for (unsigned k = 0; k < 2; k++) {
            struct tl_buf whole = {0}, other = {0};
            decode(images[k], in, in.n + 1, false, true, &whole);
            *(k ? &cut : &without) += named_gaps(&whole);
            assert_true(k || (!strstr((char *)whole.p, "\nI ")));
            decode(images[k], in, 50, true, false, &other);
            require_same(&whole, &other, "saved and loaded");
            tl_buf_fini(&whole);
            tl_buf_fini(&other);
        }
        tl_image_free(images[1]);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
    assert_true(without > 0 && cut > 0);
}

static void push_to(struct tl_stream_decoder *d, struct tl_bytes in, size_t from, size_t to)
{
    const struct tl_run run = {in.p + from, to - from, from, NULL};
    assert_int_equal(tl_pt_ops.push(d, &run), TL_OK);
    assert_int_equal(tl_pt_ops.flush(d), TL_OK);
}

/* Append the saved state of a decoder that has decoded bytes [from, to). */
static void stand(const struct tl_image *image, struct tl_bytes in, size_t from, size_t to,
                  struct tl_buf *out)
{
    struct result r = {{0}, {0}};
    struct tl_stream_decoder *const d = decoder(image, &r, true);
    struct tl_state save = {.out = out};
    push_to(d, in, from, to);
    tl_pt_ops.state(d, &save);
    assert_int_equal(save.rc, TL_OK);
    tl_pt_ops.destroy(d);
    tl_buf_fini(&r.text);
    tl_buf_fini(&r.losses);
}

/* Check that a decoder's state after each PSB depends only on the PSB and what follows it, so that
 * several threads can decode a stream. */
static void same_from_each_psb(const struct tl_image *image, struct tl_bytes in)
{
    unsigned n = 0;
    for (size_t psb = 1; psb < in.n; psb++) {
        psb += tl_pt_ops.split->find_sync(in.p + psb, in.n - psb);
        struct result r = {{0}, {0}};
        struct tl_stream_decoder *const d = decoder(image, &r, true);
        const size_t seam = psb + tl_pt_ops.split->find_rest(d, in.p + psb, in.n - psb);
        tl_pt_ops.destroy(d);
        if (seam >= in.n)
            break;
        struct tl_buf all = {0}, some = {0};
        stand(image, in, 0, seam, &all);
        stand(image, in, psb, seam, &some);
        assert_int_equal(all.n, some.n);
        assert_memory_equal(all.p, some.p, all.n);
        tl_buf_fini(&all);
        tl_buf_fini(&some);
        n++;
    }
    assert_true(n > 10);
}

/* With and without timing packets, for different knowledge of the clocks; and for user code only,
 * so that some PSB+ have no address. */
static void stands_where_it_began_at_a_psb(void **state)
{
    (void)state;
    static const struct tl_register regs[] = {
        {.name = "MTC_FREQ", .value = TL_SIM_PT_MTC_FREQ},
        {.name = "CPUID_15_EAX", .value = TL_SIM_PT_CRYSTAL},
        {.name = "CPUID_15_EBX", .value = TL_SIM_PT_TSC_RATIO},
        {.name = "NOM_FREQ", .value = TL_SIM_PT_NOM_FREQ},
    };
    static const size_t known[] = {0, 0, 3, 4, 0};
    memcpy(source.regs, regs, sizeof regs);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct tl_sim_pt_flow_options options = {
            .kernel = i<4, .user = true, .timing = i> 0 && i < 4, .psb_period = 1500};
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        tl_sim_x86_program_init(&program, 5 + i, 40);
        tl_sim_pt_flow_init(&flow, &program, &options, i);
        while (flow.pt.out.n < 25000)
            tl_sim_pt_flow_run(&flow, 1000);
        struct tl_image *const image = image_of(&program, 0);
        source.n_regs = known[i];
        same_from_each_psb(image, (struct tl_bytes){flow.pt.out.p, flow.pt.out.n});
        tl_image_free(image);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
    source.n_regs = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executions),
        cmocka_unit_test(damaged_traces),
        cmocka_unit_test(modes_that_are_none),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(stands_where_it_began_at_a_psb),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
