/* SPDX-License-Identifier: MIT */
/* Two Cortex-A cores that run one program, traced by ETMv4 units through a TPIU. */
#include "rig.h"

#include "sim/program_core.h"
#include "sim/program_dwarf.h"
#include "sim/tpiu_encoder.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    CORES = 2,
    STEP = 2000 /* instructions of a core per turn */
};

static const uint8_t ids[CORES] = {0x10, 0x12};

struct core {
    struct tl_sim_core *core;
    struct tl_sim_etm4_options etm;
    struct tl_buf trace; /* not in frames yet */
    struct tl_buf truth; /* flow text */
    bool keep_truth;
};

struct rig {
    struct tl_sim_program program;
    struct core cores[CORES];
    struct tl_tpiu_encoder tpiu;
};

static int note(void *context, const struct tl_sim_truth *t)
{
    struct core *core = context;
    struct tl_buf *out = &core->truth;
    if (!core->keep_truth)
        return TL_OK;
    switch (t->kind) {
    case TL_SIM_TRUTH_INSN:
        return tl_buf_printf(out, "I %016" PRIx64 " %08x\n", t->pc, t->encoding);
    case TL_SIM_TRUTH_EXCEPTION:
        return tl_buf_printf(out, "X - %" PRIu64 " %016" PRIx64 "\n", t->value, t->pc);
    case TL_SIM_TRUTH_ERET:
        return tl_buf_printf(out, "R\n");
    case TL_SIM_TRUTH_TIME:
        return tl_buf_printf(out, "T %" PRIu64 "\n", t->value);
    case TL_SIM_TRUTH_OVERFLOW:
        return tl_buf_printf(out, "G overflow\n");
    default:
        return TL_OK;
    }
}

static void stop(struct rig *rig)
{
    for (int i = 0; i < CORES; i++) {
        tl_sim_core_free(rig->cores[i].core);
        tl_buf_fini(&rig->cores[i].trace);
        tl_buf_fini(&rig->cores[i].truth);
    }
    tl_tpiu_encoder_fini(&rig->tpiu);
    tl_sim_program_fini(&rig->program);
    free(rig);
}

static int start_core(struct rig *rig, int i, uint64_t seed, bool truth)
{
    struct core *core = &rig->cores[i];
    core->keep_truth = truth;
    core->etm = (struct tl_sim_etm4_options){
        .minor = 2,
        .trace_id = ids[i],
        .return_stack = true,
        .timestamps = true,
        .timestamp_every = 5000,
        .context_id = true,
    };
    const struct tl_sim_core_options options = {
        .seed = seed + 1 + (uint64_t)i,
        .event_every = 50000,
        .fault_every = 40000,
        .overflow_every = i ? 3000000 : 0,
        .etm = core->etm,
    };
    return tl_sim_core_new(&core->core, &rig->program, &options, &core->trace, note, core);
}

static int start(struct rig **out, uint64_t seed, bool truth)
{
    struct rig *rig = calloc(1, sizeof *rig);
    if (!rig)
        return TL_NOMEM;
    const struct tl_sim_program_options options = {.seed = seed, .extra = 200};
    tl_tpiu_encoder_init(&rig->tpiu, TL_TPIU_FSYNC, seed);
    int result = tl_sim_program_init(&rig->program, &options);
    for (int i = 0; i < CORES && result == TL_OK; i++)
        result = start_core(rig, i, seed, truth);
    if (result < 0)
        stop(rig);
    else
        *out = rig;
    return result;
}

static int describe(struct rig *rig, struct tl_setup *setup, struct tl_buf *elf)
{
    int result = tl_setup_format(setup, "tpiu,sync=fsync", NULL);
    setup->clock_hz = 100000000;
    for (int i = 0; i < CORES && result == TL_OK; i++) {
        struct tl_source *source = tl_setup_add_source(setup);
        result = source ? tl_sim_etm4_source(&rig->cores[i].etm, source) : TL_NOMEM;
        if (result == TL_OK) {
            snprintf(source->name, sizeof source->name, "cs.%02x", ids[i]);
            source->id = ids[i];
        }
    }
    return result < 0 ? result : tl_sim_program_elf(&rig->program, elf);
}

static int source(struct rig *rig, unsigned i, const char **path, struct tl_buf *text)
{
    if (i >= TL_SIM_SOURCES)
        return TL_NOTFOUND;
    *path = tl_sim_source_paths[i];
    return tl_sim_program_source(&rig->program, i, text);
}

/* Put the output of a core's trace unit into frames. */
static int frame(struct rig *rig, int i)
{
    struct tl_buf *trace = &rig->cores[i].trace;
    const int result = tl_tpiu_encoder_add(&rig->tpiu, ids[i], trace->p, trace->n);
    tl_buf_reset(trace);
    return result;
}

static int more(struct rig *rig, size_t n, struct tl_buf *out)
{
    int result = TL_OK;
    while (result == TL_OK && rig->tpiu.out.n < n) {
        for (int i = 0; i < CORES && result == TL_OK; i++) {
            result = tl_sim_core_step(rig->cores[i].core, STEP);
            if (result == TL_OK)
                result = frame(rig, i);
        }
    }
    for (int i = 0; i < CORES && result == TL_OK; i++) {
        result = tl_sim_core_flush(rig->cores[i].core);
        if (result == TL_OK)
            result = frame(rig, i);
    }
    if (result == TL_OK)
        result = tl_tpiu_encoder_flush(&rig->tpiu);
    if (result == TL_OK)
        result = tl_buf_add(out, rig->tpiu.out.p, rig->tpiu.out.n);
    tl_buf_reset(&rig->tpiu.out);
    return result;
}

static int truth(struct rig *rig, FILE *file)
{
    for (int i = 0; i < CORES; i++) {
        const struct tl_buf *text = &rig->cores[i].truth;
        fprintf(file, "# stream cs.%02x\n", ids[i]);
        if (text->n && fwrite(text->p, 1, text->n, file) != text->n)
            return TL_IO;
    }
    return TL_OK;
}

const struct rig_kind rig_etm = {
    .name = "etm",
    .about = "two A64 cores, ETMv4 through a TPIU, with their program",
    .start = start,
    .stop = stop,
    .describe = describe,
    .source = source,
    .more = more,
    .truth = truth,
};
