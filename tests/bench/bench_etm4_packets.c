/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 bytes to packets with resolved addresses, by unroll factor and vector level, beside
 * OpenCSD's packet processor. Input: what a simulated core traces, at several mixes; 4 MiB of
 * it (from one A-Sync to the next), many times over. Usage: bench_etm4_packets [MiB [MIX]]
 */
#include "etm4/packetizer.h"
#include "report.h"
#include "sim/program_core.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

#define SEED_BYTES (4u << 20)
#define ROUNDS     5

struct mix {
    const char *name;
    struct tl_sim_core_options options;
    bool merge;
};

static const struct mix mixes[] = {
    {"branch broadcast",
     {.seed = 1, .etm = {.minor = 2, .branch_broadcast = true, .sync_every = 16384}},
     false},
    {"branch broadcast, atoms merged",
     {.seed = 1, .etm = {.minor = 2, .branch_broadcast = true, .sync_every = 16384}},
     true},
    {"atoms and return stack",
     {.seed = 2, .etm = {.minor = 2, .return_stack = true, .sync_every = 16384}},
     false},
    {"atoms and return stack, merged",
     {.seed = 2, .etm = {.minor = 2, .return_stack = true, .sync_every = 16384}},
     true},
    {"cycle counts and timestamps",
     {.seed = 3,
      .etm = {.minor = 2,
              .cycle_count = true,
              .threshold = 16,
              .commit_opt = true,
              .timestamps = true,
              .timestamp_every = 2000,
              .sync_every = 16384}},
     false},
    {"exceptions",
     {.seed = 4,
      .irq_every = 400,
      .fault_every = 300,
      .etm = {.minor = 2, .context_id = true, .sync_every = 16384}},
     false},
};

struct input {
    uint8_t *p;
    size_t n;
    struct tl_etm4_config config;
    struct tl_source source;
    bool merge;
    uint64_t packets; /* of the last run */
    uint64_t sum;     /* of their values, so that nothing is left out */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_etm4_packets: %s\n", what);
    exit(1);
}

static void make(struct input *in, const struct mix *mix, size_t bytes)
{
    const struct tl_sim_program_options shape = {.seed = 9, .extra = 30};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_buf trace = {0};

    if (tl_sim_program_init(&program, &shape) < 0 ||
        tl_sim_core_new(&core, &program, &mix->options, &trace, NULL, NULL) < 0)
        die("out of memory");
    while (trace.n < SEED_BYTES)
        if (tl_sim_core_step(core, 100000) < 0)
            die("out of memory");
    if (tl_sim_core_flush(core) < 0 || tl_sim_etm4_source(&mix->options.etm, &in->source) < 0)
        die("out of memory");
    in->n = (bytes + trace.n - 1) / trace.n * trace.n;
    in->p = malloc(in->n);
    if (in->p == NULL)
        die("out of memory");
    for (size_t i = 0; i < in->n; i += trace.n)
        memcpy(in->p + i, trace.p, trace.n);
    tl_etm4_config_init(&in->config, &in->source);
    in->merge = mix->merge;
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
    tl_buf_fini(&trace);
}

static int take(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct input *in = context;
    in->packets += n;
    in->sum += packets[0].value + packets[n - 1].value;
    return 0;
}

static void run_ours(void *context)
{
    static struct tl_etm4_packetizer p;
    struct input *in = context;
    const size_t chunk = 65536;

    in->packets = 0;
    tl_etm4_packetizer_init(&p, &in->config, in->merge, take, in);
    for (size_t i = 0; i < in->n; i += chunk) {
        const struct tl_run run = {in->p + i, in->n - i < chunk ? in->n - i : chunk, i,
                                   TL_RUN_LINEAR};
        if (tl_etm4_packetizer_push(&p, &run) < 0)
            die("push failed");
    }
    if (tl_etm4_packetizer_finish(&p) < 0)
        die("finish failed");
}

#ifdef HAVE_OPENCSD
static ocsd_datapath_resp_t take_peer(const void *context, const ocsd_datapath_op_t op,
                                      const ocsd_trc_index_t index, const void *packet)
{
    struct input *in = (struct input *)(uintptr_t)context;
    (void)op;
    (void)index;
    (void)packet;
    in->packets++;
    return OCSD_RESP_CONT;
}

static void run_peer(void *context)
{
    struct input *in = context;
    ocsd_etmv4_cfg config = {
        .reg_idr0 = (uint32_t)tl_source_reg(&in->source, "TRCIDR0", 0),
        .reg_idr1 = (uint32_t)tl_source_reg(&in->source, "TRCIDR1", 0),
        .reg_idr2 = (uint32_t)tl_source_reg(&in->source, "TRCIDR2", 0),
        .reg_configr = (uint32_t)tl_source_reg(&in->source, "TRCCONFIGR", 0),
        .reg_traceidr = 0x10,
        .arch_ver = ARCH_V8,
        .core_prof = profile_CortexA,
    };
    const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    unsigned char id;

    in->packets = 0;
    if (tree == C_API_INVALID_TREE_HANDLE ||
        ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_PACKET_PROC, &config,
                               &id) != OCSD_OK ||
        ocsd_dt_attach_packet_callback(tree, id, OCSD_C_API_CB_PKT_SINK, (void *)take_peer, in) !=
            OCSD_OK)
        die("OpenCSD does not start");
    for (size_t i = 0; i < in->n;) {
        uint32_t used = 0;
        const uint32_t n = in->n - i < 65536 ? (uint32_t)(in->n - i) : 65536;
        if (ocsd_dt_process_data(tree, OCSD_OP_DATA, (ocsd_trc_index_t)i, n, in->p + i, &used) >=
                OCSD_RESP_FATAL_NOT_INIT ||
            used == 0)
            die("OpenCSD stopped");
        i += used;
    }
    ocsd_destroy_dcd_tree(tree);
}
#endif

int main(int argc, char **argv)
{
    const size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;

    for (size_t k = 0; k < sizeof mixes / sizeof mixes[0]; k++) {
        struct input in = {0};
        double peer = 0;
        if (argc > 2 && strstr(mixes[k].name, argv[2]) == NULL)
            continue;
        make(&in, &mixes[k], bytes);
#ifdef HAVE_OPENCSD
        const size_t whole = in.n;
        in.n = in.n < (16u << 20) ? in.n : 16u << 20;
        peer = (double)in.n / bench_best(2, run_peer, &in) / 1e6;
        const double per_packet = (double)in.n / (double)in.packets;
        in.n = whole;
        printf("%s: %.2f bytes a packet\n", mixes[k].name, per_packet);
#endif
        const double mb = (double)in.n / bench_best(ROUNDS, run_ours, &in) / 1e6;
        bench_report("etm4 packets", mixes[k].name, mb, "MB/s", peer > 0 ? "OpenCSD" : NULL, peer);
        free(in.p);
    }
    return 0;
}
