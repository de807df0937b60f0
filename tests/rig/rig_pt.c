/* SPDX-License-Identifier: MIT */
/* An x86 processor with a kernel and programs of 64, 32 and 16 bit, traced by Intel PT. */
#include "rig.h"

#include "sim/pt_flow_encoder.h"

#include <inttypes.h>
#include <stdlib.h>

enum { FUNCTIONS = 80, STEPS = 2000 };

struct rig {
    struct tl_sim_x86_program program;
    struct tl_sim_pt_flow flow;
    struct tl_buf truth; /* flow text */
    bool keep_truth;
};

static int begin(struct rig **out, uint64_t seed, bool truth, bool kernel)
{
    struct rig *const rig = calloc(1, sizeof *rig);
    if (!rig)
        return TL_NOMEM;
    const struct tl_sim_pt_flow_options options = {
        .kernel = kernel, .user = true, .timing = true, .power = true, .psb_period = 4096};
    rig->keep_truth = truth;
    tl_sim_x86_program_init(&rig->program, seed, FUNCTIONS);
    tl_sim_pt_flow_init(&rig->flow, &rig->program, &options, seed);
    *out = rig;
    return TL_OK;
}

static int start(struct rig **out, uint64_t seed, bool truth)
{
    return begin(out, seed, truth, true);
}

static int start_user(struct rig **out, uint64_t seed, bool truth)
{
    return begin(out, seed, truth, false);
}

static void stop(struct rig *rig)
{
    tl_sim_pt_flow_fini(&rig->flow);
    tl_sim_x86_program_fini(&rig->program);
    tl_buf_fini(&rig->truth);
    free(rig);
}

static int describe(struct rig *rig, struct tl_setup *setup, struct tl_buf *elf)
{
    static const struct {
        const char *name;
        uint64_t value;
    } registers[] = {{"MTC_FREQ", TL_SIM_PT_MTC_FREQ},
                     {"NOM_FREQ", TL_SIM_PT_NOM_FREQ},
                     {"CPUID_15_EAX", TL_SIM_PT_CRYSTAL},
                     {"CPUID_15_EBX", TL_SIM_PT_TSC_RATIO}};
    int result = tl_setup_format(setup, "pt", NULL);
    setup->clock_hz = TL_SIM_PT_NOM_FREQ * UINT64_C(100000000);
    for (size_t i = 0; i < sizeof registers / sizeof *registers && result == TL_OK; i++)
        result = tl_source_set_reg(&setup->sources[0], registers[i].name, registers[i].value);
    if (result == TL_OK)
        tl_sim_x86_program_elf(&rig->program, elf);
    return result;
}

/* Record the executed instructions and when each was, as flow text. */
static int note(struct rig *rig)
{
    const struct tl_buf *const truth = &rig->flow.truth;
    int result = TL_OK;
    for (size_t at = 0; at < truth->n && result == TL_OK; at += sizeof(struct tl_sim_pt_truth)) {
        const struct tl_sim_pt_truth *const t =
            (const struct tl_sim_pt_truth *)(const void *)(truth->p + at);
        uint8_t code[TL_SIM_X86_MAX];
        if (t->what != TL_SIM_PT_INSN)
            continue;
        tl_sim_x86_read(&rig->program, t->ip, code, t->size);
        result = tl_buf_printf(&rig->truth, "T %" PRIu64 "\nI %016" PRIx64 " ", t->tsc, t->ip);
        for (unsigned i = 0; i < t->size && result == TL_OK; i++)
            result = tl_buf_printf(&rig->truth, "%02x", code[i]);
        if (result == TL_OK)
            result = tl_buf_add(&rig->truth, "\n", 1);
    }
    return result;
}

static int more(struct rig *rig, size_t n, struct tl_buf *out)
{
    struct tl_buf *const trace = &rig->flow.pt.out;
    int result = TL_OK;
    while (trace->n < n && result == TL_OK) {
        tl_sim_pt_flow_run(&rig->flow, STEPS);
        if (rig->keep_truth)
            result = note(rig);
        tl_buf_reset(&rig->flow.truth);
    }
    if (result == TL_OK)
        result = tl_buf_add(out, trace->p, trace->n);
    tl_sim_pt_flow_taken(&rig->flow);
    return result;
}

static int truth(struct rig *rig, FILE *file)
{
    fprintf(file, "# stream pt.0\n");
    if (rig->truth.n && fwrite(rig->truth.p, 1, rig->truth.n, file) != rig->truth.n)
        return TL_IO;
    return TL_OK;
}

const struct rig_kind rig_pt = {
    .name = "pt",
    .about = "an x86 processor, Intel PT, with its programs",
    .start = start,
    .stop = stop,
    .describe = describe,
    .more = more,
    .truth = truth,
};

const struct rig_kind rig_pt_user = {
    .name = "pt-user",
    .about = "the same, of which only the programs are traced",
    .start = start_user,
    .stop = stop,
    .describe = describe,
    .more = more,
    .truth = truth,
};
