/* SPDX-License-Identifier: MIT */
/*
 * Trace bytes of one ETMv4 source to flow items, with the image at hand: packets, elements and
 * flow together, and packets alone. The trace is that of a simulated core. OpenCSD decodes the
 * same bytes in the same program, to generic elements that nobody prints.
 */
#include "bench/report.h"
#include "decode/ops.h"
#include "etm4/packetizer.h"
#include "sim/program_core.h"

#include <stdlib.h>

#ifdef HAVE_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

#define INSNS  (40u << 20)
#define ROUNDS 5
#define BLOCK  (1u << 20) /* bytes per push */

struct bench {
    struct tl_sim_program program;
    struct tl_sim_etm4_options etm;
    struct tl_buf trace;
    struct tl_buf code[2];
    struct tl_image *image;
    struct tl_source source;
    uint64_t insns; /* seen by the decoder measured last */
};

static void die(const char *why)
{
    fprintf(stderr, "bench_flow: %s\n", why);
    exit(1);
}

static void make(struct bench *b)
{
    const struct tl_sim_program_options options = {.seed = 1, .extra = 300};
    const struct tl_sim_core_options core_options = {.seed = 2, .etm = b->etm};
    struct tl_sim_core *core;
    if (tl_sim_program_init(&b->program, &options) < 0 || tl_image_new(&b->image) < 0 ||
        tl_sim_etm4_source(&b->etm, &b->source) < 0 ||
        tl_sim_core_new(&core, &b->program, &core_options, &b->trace, NULL, NULL) < 0 ||
        tl_sim_core_step(core, INSNS) < 0 || tl_sim_core_flush(core) < 0)
        die("the trace cannot be made");
    tl_sim_core_free(core);
    for (unsigned i = 0; i < 2; i++) {
        if (tl_sim_program_code(&b->program, i, &b->code[i]) < 0 ||
            tl_image_add_bytes(b->image, b->program.sections[i].base,
                               (struct tl_bytes){b->code[i].p, b->code[i].n}, TL_SPACE_ANY, NULL,
                               NULL) < 0)
            die("the image cannot be made");
    }
    if (tl_image_freeze(b->image) < 0)
        die("the image cannot be made");
}

static void drop(struct bench *b)
{
    tl_image_free(b->image);
    for (unsigned i = 0; i < 2; i++)
        tl_buf_fini(&b->code[i]);
    tl_buf_fini(&b->trace);
    tl_sim_program_fini(&b->program);
}

/* ---- ours -------------------------------------------------------------------------------- */

static int count_items(void *context, const struct tl_item *items, size_t n)
{
    struct bench *b = context;
    uint64_t insns = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == TL_ITEM_BLOCK)
            insns += items[i].n;
    b->insns += insns;
    return TL_OK;
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

static struct tl_run run_at(const struct bench *b, size_t at)
{
    const size_t left = b->trace.n - at;
    return (struct tl_run){b->trace.p + at, left < BLOCK ? left : BLOCK, at, TL_RUN_LINEAR};
}

static void decode(void *context)
{
    struct bench *b = context;
    const struct tl_stream_sink sink = {.context = b, .items = count_items, .loss = ignore_loss};
    struct tl_stream_decoder *d;
    b->insns = 0;
    if (tl_etm4_ops.create(&d, &b->source, b->image, &sink, NULL) < 0)
        die("no decoder");
    for (size_t at = 0; at < b->trace.n; at += BLOCK) {
        const struct tl_run run = run_at(b, at);
        if (d->ops->push(d, &run) < 0)
            die("decoding failed");
    }
    if (d->ops->finish(d) < 0)
        die("decoding failed");
    d->ops->destroy(d);
}

static int count_packets(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    ((struct bench *)context)->insns += n;
    return TL_OK;
}

static void split(void *context)
{
    struct bench *b = context;
    struct tl_etm4_packetizer *p = malloc(sizeof *p);
    struct tl_etm4_config config;
    if (!p)
        die("out of memory");
    tl_etm4_config_init(&config, &b->source);
    tl_etm4_packetizer_init(p, &config, true, count_packets, b);
    for (size_t at = 0; at < b->trace.n; at += BLOCK) {
        const struct tl_run run = run_at(b, at);
        if (tl_etm4_packetizer_push(p, &run) < 0)
            die("splitting failed");
    }
    free(p);
}

/* ---- OpenCSD ----------------------------------------------------------------------------- */

#ifdef HAVE_OPENCSD
static ocsd_datapath_resp_t count_elements(const void *context, const ocsd_trc_index_t at,
                                           const uint8_t id, const ocsd_generic_trace_elem *e)
{
    struct bench *b = (struct bench *)(uintptr_t)context;
    if (e->elem_type == OCSD_GEN_TRC_ELEM_INSTR_RANGE)
        b->insns += e->num_instr_range;
    return OCSD_RESP_CONT;
}

static void decode_opencsd(void *context)
{
    struct bench *b = context;
    ocsd_etmv4_cfg config = {
        .reg_idr0 = (uint32_t)tl_source_reg(&b->source, "TRCIDR0", 0),
        .reg_idr1 = (uint32_t)tl_source_reg(&b->source, "TRCIDR1", 0),
        .reg_idr2 = (uint32_t)tl_source_reg(&b->source, "TRCIDR2", 0),
        .reg_idr8 = (uint32_t)tl_source_reg(&b->source, "TRCIDR8", 0),
        .reg_configr = (uint32_t)tl_source_reg(&b->source, "TRCCONFIGR", 0),
        .reg_traceidr = 0x10,
        .arch_ver = ARCH_V8,
        .core_prof = profile_CortexA,
    };
    unsigned char id;
    const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    b->insns = 0;
    if (tree == C_API_INVALID_TREE_HANDLE ||
        ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_FULL_DECODER, &config,
                               &id) != OCSD_OK ||
        ocsd_dt_set_gen_elem_outfn(tree, count_elements, b) != OCSD_OK)
        die("OpenCSD refuses");
    for (unsigned i = 0; i < 2; i++)
        if (ocsd_dt_add_buffer_mem_acc(tree, b->program.sections[i].base, OCSD_MEM_SPACE_ANY,
                                       b->code[i].p, (uint32_t)b->code[i].n) != OCSD_OK)
            die("OpenCSD refuses the image");
    for (size_t at = 0; at < b->trace.n;) {
        const struct tl_run run = run_at(b, at);
        uint32_t used = 0;
        const ocsd_datapath_resp_t rc =
            ocsd_dt_process_data(tree, OCSD_OP_DATA, at, (uint32_t)run.n, run.p, &used);
        if (OCSD_DATA_RESP_IS_FATAL(rc) || used == 0)
            die("OpenCSD failed");
        at += used;
    }
    ocsd_dt_process_data(tree, OCSD_OP_EOT, 0, 0, NULL, NULL);
    ocsd_destroy_dcd_tree(tree);
}
#endif

static void measure(const char *name, const struct tl_sim_etm4_options *etm)
{
    static struct bench b;
    char input[160];
    b = (struct bench){.etm = *etm};
    make(&b);
    const double time = bench_best(ROUNDS, decode, &b);
    const uint64_t ours = b.insns;
    const double rate = (double)ours / 1e6 / time;
    snprintf(input, sizeof input, "%s: bytes to flow, %.3f bits/insn", name,
             8.0 * (double)b.trace.n / (double)ours);
#ifdef HAVE_OPENCSD
    const double peer = bench_best(1, decode_opencsd, &b);
    bench_report("flow", input, rate, "Minsn/s", "OpenCSD", (double)b.insns / 1e6 / peer);
    if (b.insns != ours)
        printf("%s: %llu instructions here, %llu by OpenCSD\n", name, (unsigned long long)ours,
               (unsigned long long)b.insns);
#else
    bench_report("flow", input, rate, "Minsn/s", NULL, 0);
#endif
    const double packets = bench_best(ROUNDS, split, &b);
    snprintf(input, sizeof input, "%s: … of it packets alone", name);
    bench_report("flow", input, (double)b.trace.n / 1e6 / packets, "MB/s", NULL, 0);
    snprintf(input, sizeof input, "%s: bytes to flow", name);
    bench_report("flow", input, (double)b.trace.n / 1e6 / time, "MB/s", NULL, 0);
    drop(&b);
}

int main(void)
{
    measure("ETMv4", &(struct tl_sim_etm4_options){.trace_id = 0x10});
    measure("ETMv4, return stack, times",
            &(struct tl_sim_etm4_options){
                .trace_id = 0x10, .return_stack = true, .timestamps = true, .context_id = true});
    return 0;
}
