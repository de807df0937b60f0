/* SPDX-License-Identifier: MIT */
/* Program, core, trace unit, decoder: decoding gives what the core executed, instruction by
 * instruction, under random configurations and chunkings. */
#include "decode/ops.h"
#include "image/image.h"
#include "sim/program_core.h"
#include "sim/program_rng.h"
#include "steps.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum what { INSN, EXCEPTION, ERET, TIME, CYCLES, EVENT, TRACE_ON, OVERFLOW, ITE };

/* An executed step, and the state in which it happened. */
struct step {
    uint8_t what;
    uint8_t el;
    uint32_t encoding;
    uint64_t pc;
    uint64_t value;
    uint32_t context_id;
    uint32_t vmid;
};

struct trail {
    struct step *p;
    size_t n, cap;
    uint8_t el; /* now */
    uint32_t context_id, vmid;
    struct steps steps;
};

static void add(struct trail *s, enum what what, uint64_t pc, uint32_t encoding, uint64_t value)
{
    assert_int_equal(tl_grow(&s->p, &s->cap, s->n + 1, sizeof *s->p), 0);
    struct step *step = &s->p[s->n++];
    memset(step, 0, sizeof *step);
    step->what = (uint8_t)what;
    step->pc = pc;
    step->encoding = encoding;
    step->value = value;
    if (what == INSN) {
        step->el = s->el;
        step->context_id = s->context_id;
        step->vmid = s->vmid;
    }
}

static int take_truth(void *context, const struct tl_sim_truth *truth)
{
    struct trail *s = context;
    switch (truth->kind) {
    case TL_SIM_TRUTH_INSN:
        add(s, INSN, truth->pc, truth->encoding, 0);
        break;
    case TL_SIM_TRUTH_EXCEPTION:
        add(s, EXCEPTION, truth->pc, 0, truth->value);
        break;
    case TL_SIM_TRUTH_ERET:
        add(s, ERET, 0, 0, 0);
        break;
    case TL_SIM_TRUTH_CONTEXT:
        s->el = truth->el;
        s->context_id = truth->context_id;
        s->vmid = truth->vmid;
        break;
    case TL_SIM_TRUTH_TIME:
        add(s, TIME, 0, 0, truth->value);
        break;
    case TL_SIM_TRUTH_CYCLES:
        add(s, CYCLES, 0, 0, truth->value);
        break;
    case TL_SIM_TRUTH_EVENT:
        add(s, EVENT, 0, 0, truth->value);
        break;
    case TL_SIM_TRUTH_TRACE_ON:
        add(s, TRACE_ON, 0, 0, 0);
        break;
    case TL_SIM_TRUTH_OVERFLOW:
        add(s, OVERFLOW, 0, 0, 0);
        break;
    case TL_SIM_TRUTH_ITE:
        add(s, ITE, truth->el, 0, truth->value);
        break;
    default:
        break;
    }
    return 0;
}

static void take_block(struct trail *s, const struct tl_item *item)
{
    for (uint32_t i = 0; i < item->n; i++)
        add(s, INSN, item->block->pc + 4 * i, tl_le32(item->block->code + 4 * i), 0);
}

static void take_item(struct trail *s, const struct tl_item *item)
{
    switch (item->kind) {
    case TL_ITEM_BLOCK:
        take_block(s, item);
        break;
    case TL_ITEM_PATH:
        for (uint32_t i = 0; i < item->n; i++) {
            const struct tl_item block = tl_path_item(item, i);
            take_block(s, &block);
        }
        break;
    case TL_ITEM_EXCEPTION:
        add(s, EXCEPTION, item->pc, 0, item->sub);
        break;
    case TL_ITEM_ERET:
        add(s, ERET, 0, 0, 0);
        break;
    case TL_ITEM_MODE:
        s->el = (uint8_t)tl_mode_privilege(item->value);
        break;
    case TL_ITEM_CONTEXT:
        s->context_id = item->flags & TL_ITEM_HAS_PC ? (uint32_t)item->pc : 0;
        s->vmid = item->flags & TL_ITEM_HAS_VALUE ? (uint32_t)item->value : 0;
        break;
    case TL_ITEM_TIME:
        add(s, TIME, 0, 0, item->value);
        break;
    case TL_ITEM_CYCLES:
        add(s, CYCLES, 0, 0, item->value);
        break;
    case TL_ITEM_EVENT:
        add(s, EVENT, 0, 0, item->value);
        break;
    case TL_ITEM_TRACE_ON:
        add(s, TRACE_ON, 0, 0, 0);
        break;
    case TL_ITEM_SOFTWARE:
        assert_int_equal(item->n, 8);
        add(s, ITE, item->pc, 0, tl_le64(item->data));
        break;
    case TL_ITEM_GAP:
        if (item->sub == TL_GAP_OVERFLOW)
            add(s, OVERFLOW, 0, 0, 0);
        else if (item->sub == TL_GAP_NO_IMAGE || item->sub == TL_GAP_BAD_PACKET)
            fail_msg("a gap that cannot be: %s at %" PRIu64, tl_gap_name(item->sub), item->offset);
        break;
    case TL_ITEM_UNKNOWN:
        fail_msg("an instruction without an image at %" PRIx64, item->pc);
        break;
    default:
        break;
    }
}

static int take_items(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(&((struct trail *)context)->steps, items, n);
    for (size_t i = 0; i < n; i++)
        take_item(context, &items[i]);
    return 0;
}

static int lost(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context;
    if (strstr(reason, "overflow") == NULL)
        print_message("loss at %" PRIu64 ": %s, %" PRIu64 " bytes\n", offset, reason, bytes);
    return 0;
}

static struct tl_image *image_of(const struct tl_sim_program *program)
{
    struct tl_image *image;
    struct tl_buf elf = {0};
    assert_int_equal(tl_sim_program_elf(program, &elf), 0);
    assert_int_equal(tl_image_new(&image), 0);
    assert_int_equal(
        tl_image_add_elf(image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", NULL), 0);
    assert_int_equal(tl_image_freeze(image), 0);
    tl_buf_fini(&elf);
    return image;
}

static void decode(struct trail *out, const struct tl_sim_etm4_options *etm,
                   const struct tl_image *image, const struct tl_buf *trace, size_t chunk)
{
    const struct tl_stream_sink sink = {
        .context = out, .items = take_items, .loss = lost, .paths = chunk & 1};
    struct tl_stream_decoder *decoder;
    struct tl_source source;
    struct tl_fail fail = {0};

    assert_int_equal(tl_sim_etm4_source(etm, &source), 0);
    if (tl_etm4_ops.create(&decoder, &source, image, &sink, &fail) < 0)
        fail_msg("%s", fail.text);
    for (size_t i = 0; i < trace->n; i += chunk) {
        const size_t n = trace->n - i < chunk ? trace->n - i : chunk;
        const struct tl_run run = {trace->p + i, n, i, NULL};
        assert_int_equal(tl_etm4_ops.push(decoder, &run), 0);
    }
    assert_int_equal(tl_etm4_ops.finish(decoder, TL_LOSS_CUT_OFF), 0);
    tl_etm4_ops.destroy(decoder);
}

static const char *const names[] = {"I", "X", "R", "T", "Y", "V", "O", "G overflow", "S"};

static void show(const char *who, const struct trail *s, size_t at)
{
    for (size_t i = at > 6 ? at - 6 : 0; i < at + 3 && i < s->n; i++)
        print_message("%s %zu: %s %" PRIx64 " %08x %" PRIu64 " el%u %x %x\n", who, i,
                      names[s->p[i].what], s->p[i].pc, s->p[i].encoding, s->p[i].value, s->p[i].el,
                      s->p[i].context_id, s->p[i].vmid);
}

static void compare(const struct trail *truth, const struct trail *ours, uint64_t seed)
{
    for (size_t i = 0; i < truth->n && i < ours->n; i++)
        if (memcmp(&truth->p[i], &ours->p[i], sizeof truth->p[i]) != 0) {
            show("truth", truth, i);
            show("ours ", ours, i);
            fail_msg("seed %" PRIu64 ": step %zu of %zu differs", seed, i, truth->n);
        }
    if (truth->n != ours->n) {
        show("truth", truth, ours->n);
        show("ours ", ours, truth->n);
    }
    assert_int_equal(truth->n, ours->n);
}

static void random_options(struct tl_sim_core_options *o, struct tl_sim_rng *rng)
{
    memset(o, 0, sizeof *o);
    o->seed = tl_sim_rand(rng);
    o->irq_every = tl_sim_between(rng, 500, 30000);
    o->fault_every = tl_sim_percent(rng, 50) ? tl_sim_between(rng, 200, 20000) : 0;
    o->event_every = tl_sim_percent(rng, 50) ? tl_sim_between(rng, 50, 5000) : 0;
    o->off_every = tl_sim_percent(rng, 40) ? tl_sim_between(rng, 200, 20000) : 0;
    o->overflow_every = tl_sim_percent(rng, 40) ? tl_sim_between(rng, 500, 20000) : 0;
    o->etm.ete = tl_sim_percent(rng, 50);
    o->etm.minor = (uint8_t)tl_sim_below(rng, o->etm.ete ? 4 : 7);
    o->etm.return_stack = tl_sim_percent(rng, 50);
    o->etm.branch_broadcast = tl_sim_percent(rng, 25);
    o->etm.cycle_count = tl_sim_percent(rng, 50);
    o->etm.threshold = (uint16_t)tl_sim_between(rng, 4, 100);
    o->etm.commit_opt = tl_sim_percent(rng, 50);
    o->etm.timestamps = tl_sim_percent(rng, 60);
    o->etm.timestamp_every = tl_sim_between(rng, 1, 5000);
    o->etm.context_id = tl_sim_percent(rng, 50);
    o->etm.vmid = tl_sim_percent(rng, 50);
    o->etm.sync_every = tl_sim_between(rng, 100, 10000);
    o->etm.max_spec_depth = tl_sim_percent(rng, 40) ? (uint8_t)tl_sim_between(rng, 1, 60) : 0;
    o->etm.ts_marker = o->etm.ete && o->etm.minor > 0 && tl_sim_percent(rng, 50);
}

/* Returns the number of steps compared. */
static size_t one(uint64_t seed, uint64_t insns)
{
    struct tl_sim_rng rng = {seed};
    struct tl_sim_core_options options;
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_buf trace = {0};
    struct trail truth = {0}, ours = {0};

    random_options(&options, &rng);
    const struct tl_sim_program_options shape = {.seed = tl_sim_rand(&rng),
                                                 .extra = tl_sim_below(&rng, 40),
                                                 .short_loops = tl_sim_percent(&rng, 50)};
    assert_int_equal(tl_sim_program_init(&program, &shape), 0);
    struct tl_image *image = image_of(&program);

    assert_int_equal(tl_sim_core_new(&core, &program, &options, &trace, take_truth, &truth), 0);
    assert_int_equal(tl_sim_core_step(core, insns), 0);
    assert_int_equal(tl_sim_core_flush(core), 0);
    decode(&ours, &options.etm, image, &trace, 1 + tl_sim_below(&rng, 5000));
    compare(&truth, &ours, seed);
    const size_t steps = truth.n;

    tl_sim_core_free(core);
    tl_image_free(image);
    tl_sim_program_fini(&program);
    tl_buf_fini(&trace);
    free(truth.p);
    free(ours.p);
    return steps;
}

/* Thousands of short walks, each with its own program and configuration, and some long ones.
 * TL_SEED=N runs a single case, TL_ROUNDS=N changes their number. */
static void test_flow_is_truth(void **state)
{
    (void)state;
    const char *rounds = getenv("TL_ROUNDS");
    const uint64_t seed = test_seed();
    const unsigned n = test_seed_given() ? 1 : rounds != NULL ? (unsigned)atoi(rounds) : 2000;

    size_t steps = 0;
    for (unsigned k = 0; k < n; k++)
        steps += one(seed + k, test_seed_given() || k % 50 == 0 ? 30000 : 1500);
    print_message("%zu steps\n", steps);
    assert_true(steps > n * 750);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_flow_is_truth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
