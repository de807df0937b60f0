/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 bytes to packets with resolved addresses, by unroll factor and vector level, compared with
 * OpenCSD's packet processor. Input: 4 MiB of trace of a simulated core, beginning with an A-Sync,
 * for several mixes, and the largest source of real captures where they are available
 * (tests/unit/data.h), each repeated many times. Usage: bench_etm4_packets [MiB [INPUT]]
 *
 * All variants take turns of 1 MiB each, and their processor time is added up, so that other load
 * on the machine affects all equally: ratios are reliable even where rates are not. Packets are
 * delivered on the tape (etm4/tape.h), and by the fastest kernel also as structures.
 */
#include "bench/capture.h"
#include "report.h"
#include "sim/etm4_kernels.h"
#include "sim/program_core.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_OPENCSD
#include "opencsd.h"
#endif

#define SEED_BYTES (4u << 20)
#define TURN       (1u << 20)
#define PEER_EVERY 8 /* the peer gets one turn in this many */
#define VARIANTS   24

struct mix {
    const char *name;
    struct tl_sim_core_options options;
    bool short_loops;
};

static const struct mix mixes[] = {
    {"branch broadcast",
     {.seed = 1, .etm = {.minor = 2, .branch_broadcast = true, .sync_every = 16384}},
     false},
    {"branch broadcast, short loops",
     {.seed = 1, .etm = {.minor = 2, .branch_broadcast = true, .sync_every = 16384}},
     true},
    {"atoms and return stack",
     {.seed = 2, .etm = {.minor = 2, .return_stack = true, .sync_every = 16384}},
     false},
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
    const char *name;
    uint8_t *p;
    size_t n;
    struct tl_etm4_config config;
    struct tl_source source;
};

/* One of the variants that take turns. */
struct variant {
    const struct tl_etm4_kernel *kernel; /* NULL: scalar */
    bool structures;
    struct tl_etm4_packetizer packetizer;
    double seconds;
    uint64_t packets;
    uint64_t sum; /* of values, so that nothing is optimised away */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_etm4_packets: %s\n", what);
    exit(1);
}

/* Fill the input with repetitions of `trace`. */
static void fill(struct input *in, const struct tl_buf *trace, size_t bytes)
{
    in->n = (bytes + trace->n - 1) / trace->n * trace->n;
    in->p = malloc(in->n);
    if (in->p == NULL)
        die("out of memory");
    for (size_t i = 0; i < in->n; i += trace->n)
        memcpy(in->p + i, trace->p, trace->n);
    tl_etm4_config_init(&in->config, &in->source);
}

static void simulate(struct input *in, const struct mix *mix, size_t bytes)
{
    const struct tl_sim_program_options shape = {
        .seed = 9, .extra = 30, .short_loops = mix->short_loops};
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
    in->name = mix->name;
    fill(in, &trace, bytes);
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
    tl_buf_fini(&trace);
}

/* ---- real captures ------------------------------------------------------------------------- */

static bool read_capture(struct input *in, const char *name, size_t bytes)
{
    struct capture capture;

    if (!capture_read(&capture, name))
        return false;
    in->source = *capture.source;
    in->name = name;
    fill(in, &capture.trace, bytes);
    capture_fini(&capture);
    return true;
}

/* ---- turns --------------------------------------------------------------------------------- */

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int take(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct variant *variant = context;
    variant->packets += n;
    variant->sum += packets[0].value + packets[n - 1].value;
    return 0;
}

static int take_tape(void *context, const struct tl_etm4_tape *tape)
{
    struct variant *variant = context;
    variant->packets += tape->n;
    variant->sum += tape->header[tape->n - 1];
    if (tape->n_addresses > 0)
        variant->sum += tape->address[tape->n_addresses - 1];
    return 0;
}

static void turn(struct variant *variant, const struct input *in, size_t from, size_t n)
{
    const double begin = cpu_now();
    for (size_t i = 0; i < n; i += 65536) {
        const struct tl_run run = {in->p + from + i, n - i < 65536 ? n - i : 65536, from + i, NULL};
        if (tl_etm4_packetizer_push(&variant->packetizer, &run) < 0)
            die("push failed");
    }
    variant->seconds += cpu_now() - begin;
}

/* Set up the variants: scalar first, then the kernels of this machine. Returns their number. */
static size_t line_up(struct variant variants[VARIANTS], const struct input *in, bool all)
{
    const struct tl_etm4_kernel *const best = tl_etm4_kernel_at(tl_cpu_level());
    size_t n_kernels, n = 1;
    const struct tl_etm4_kernel *const kernels = tl_sim_etm4_kernels(&n_kernels);

    memset(variants, 0, VARIANTS * sizeof *variants);
    for (size_t k = 0; k < n_kernels && n < VARIANTS - 1; k++)
        if (best != NULL && kernels[k].level <= best->level &&
            (all || kernels[k].unroll == best->unroll))
            variants[n++].kernel = &kernels[k];
    variants[n].structures = true;
    variants[n++].kernel = best;
    for (size_t k = 0; k < n; k++) {
        struct tl_etm4_packetizer *const p = &variants[k].packetizer;
        if (variants[k].structures)
            tl_etm4_packetizer_init(p, &in->config, take, &variants[k]);
        else
            tl_etm4_packetizer_init_tape(p, &in->config, take_tape, &variants[k]);
        tl_etm4_packetizer_use(p, variants[k].kernel);
    }
    return n;
}

/* ---- the peer ------------------------------------------------------------------------------ */

#ifdef HAVE_OPENCSD

struct peer {
    dcd_tree_handle_t tree;
    ocsd_trc_index_t index;
    uint64_t packets;
    double seconds;
    uint64_t bytes;
    bool stopped; /* at an error after which it cannot continue */
};

static ocsd_datapath_resp_t take_peer(const void *context, const ocsd_datapath_op_t op,
                                      const ocsd_trc_index_t index, const void *packet)
{
    struct peer *peer = (struct peer *)(uintptr_t)context;
    (void)op;
    (void)index;
    (void)packet;
    peer->packets++;
    return OCSD_RESP_CONT;
}

static void peer_begin(struct peer *peer, const struct input *in)
{
    ocsd_etmv4_cfg config = tl_opencsd_config(&in->source);
    unsigned char id;

    memset(peer, 0, sizeof *peer);
    peer->tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    if (peer->tree == C_API_INVALID_TREE_HANDLE ||
        ocsd_dt_create_decoder(peer->tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_PACKET_PROC,
                               &config, &id) != OCSD_OK ||
        ocsd_dt_attach_packet_callback(peer->tree, id, OCSD_C_API_CB_PKT_SINK, (void *)take_peer,
                                       peer) != OCSD_OK)
        die("OpenCSD does not start");
}

static void peer_turn(struct peer *peer, const struct input *in, size_t from, size_t n)
{
    const double begin = cpu_now();
    for (size_t i = 0; i < n && !peer->stopped;) {
        uint32_t used = 0;
        const uint32_t some = n - i < 65536 ? (uint32_t)(n - i) : 65536;
        if (ocsd_dt_process_data(peer->tree, OCSD_OP_DATA, peer->index, some, in->p + from + i,
                                 &used) >= OCSD_RESP_FATAL_NOT_INIT ||
            used == 0)
            peer->stopped = true;
        peer->index += used;
        i += used;
    }
    peer->seconds += cpu_now() - begin;
    peer->bytes += n;
    if (peer->stopped)
        peer->bytes = 0;
}

static void peer_end(struct peer *peer)
{
    ocsd_destroy_dcd_tree(peer->tree);
}

#define PEER "OpenCSD"

#else

struct peer {
    uint64_t packets;
    double seconds;
    uint64_t bytes;
};

static void peer_begin(struct peer *peer, const struct input *in)
{
    (void)in;
    memset(peer, 0, sizeof *peer);
}

static void peer_turn(struct peer *peer, const struct input *in, size_t from, size_t n)
{
    (void)peer, (void)in, (void)from, (void)n;
}

static void peer_end(struct peer *peer)
{
    (void)peer;
}

#define PEER NULL

#endif

/* The clock rate in cycles per second, measured with a chain of multiplications of three cycles
 * each. */
static double clock_rate(void)
{
    const unsigned n = 300000;
    uint64_t x = 3;
    const double begin = cpu_now();
    for (unsigned i = 0; i < n; i++) {
        x *= x;
        __asm__ volatile("" : "+r"(x)); /* keeps the multiplications sequential */
    }
    return 3.0 * n / (cpu_now() - begin);
}

static void report(const struct input *in, const struct variant *variants, size_t n,
                   const struct peer *peer, double rate)
{
    const double megabytes = (double)in->n / 1e6;
    const double theirs = peer->bytes > 0 ? (double)peer->bytes / 1e6 / peer->seconds : 0;
    const char *const name = theirs > 0 ? PEER : NULL;
    const struct variant *best = variants;

    printf("%s: %.2f bytes a packet, %.2f GHz\n", in->name,
           (double)in->n / (double)variants[0].packets, rate / 1e9);
    for (size_t k = 0; k < n; k++) {
        const struct variant *const v = &variants[k];
        const double mine = megabytes / v->seconds;
        char what[96];
        snprintf(what, sizeof what, "%s, %s, unrolled %u%s", in->name,
                 v->kernel != NULL ? tl_cpu_name(v->kernel->level) : "scalar",
                 v->kernel != NULL ? v->kernel->unroll : 1, v->structures ? ", structures" : "");
        printf("  %-60s %8.1f MB/s %7.1f Mpackets/s %6.2f cycles a byte\n", what, mine,
               (double)v->packets / 1e6 / v->seconds, v->seconds * rate / (double)in->n);
        bench_report("etm4 unrolled", what, mine, "MB/s", name, theirs);
        best = !v->structures && v->seconds < best->seconds ? v : best;
    }
    bench_report("etm4 packets", in->name, megabytes / best->seconds, "MB/s", name, theirs);
    bench_report_trace(
        "etm4 packets", in->name, (double)best->packets / 1e6 / best->seconds, "Mpackets/s", name,
        theirs > 0 ? (double)peer->packets / 1e6 / peer->seconds : 0, megabytes / best->seconds);
}

static void measure(const struct input *in, bool all)
{
    static struct variant variants[VARIANTS];
    const size_t n = line_up(variants, in, all);
    struct peer peer;
    double rate = 0;

    peer_begin(&peer, in);
    for (size_t from = 0; from < in->n; from += TURN) {
        const size_t size = in->n - from < TURN ? in->n - from : TURN;
        for (size_t v = 0; v < n; v++)
            turn(&variants[v], in, from, size);
        if (from / TURN <= in->n / TURN / PEER_EVERY)
            peer_turn(&peer, in, from, size);
        const double now = clock_rate();
        rate = now > rate ? now : rate;
    }
    report(in, variants, n, &peer, rate);
    peer_end(&peer);
}

int main(int argc, char **argv)
{
    const size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;
    const char *const only = argc > 2 ? argv[2] : "";

    for (size_t k = 0; k < sizeof mixes / sizeof mixes[0]; k++) {
        struct input in = {0};
        if (strstr(mixes[k].name, only) == NULL)
            continue;
        simulate(&in, &mixes[k], bytes);
        measure(&in, k == 0);
        free(in.p);
    }
    for (size_t k = 0; k < N_CAPTURES; k++) {
        struct input in = {0};
        if (strstr(captures[k], only) == NULL)
            continue;
        if (read_capture(&in, captures[k], bytes))
            measure(&in, false);
        else
            printf("%s: not there\n", captures[k]);
        free(in.p);
    }
    return 0;
}
