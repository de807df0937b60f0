/* SPDX-License-Identifier: MIT */
/*
 * Intel PT compared with libipt in the same run. Packets: bytes to a tape (pt/tape.h), against
 * pt_pkt_next(). Inputs, each repeated: the trace of a generated program, with and without timing,
 * and real ones where available.
 */
#include "bench/report.h"
#include "pt/tape.h"
#include "sim/pt_encoder.h"
#include "unit/data.h"

#include <string.h>

#ifdef HAVE_LIBIPT
#include <intel-pt.h>
#define PEER "libipt"
#else
#define PEER NULL
#endif

#define BYTES  (16u << 20)
#define ROUNDS 7

struct input {
    struct tl_bytes bytes;
    enum tl_cpu level;
    uint64_t entries, sum;
};

static void take_tape(void *context)
{
    static struct tl_pt_tape tape;
    static const struct tl_pt_config config;
    struct input *in = context;
    size_t at = 0;
    int rc;
    tl_pt_tape_reset(&tape);
    in->entries = 0;
    do {
        rc = tl_pt_tape_fill_at(in->level, &tape, &config, in->bytes, &at);
        in->entries += tape.n;
        in->sum ^= tape.value[tape.n ? tape.n - 1 : 0];
    } while (rc == TL_OK);
    if (rc != TL_AGAIN) {
        fprintf(stderr, "bench_pt: bad packet at %zu\n", at);
        exit(1);
    }
}

#ifdef HAVE_LIBIPT
static uint64_t peer_packets;

static void take_peer(void *context)
{
    struct input *in = context;
    struct pt_config config;
    struct pt_packet packet;
    pt_config_init(&config);
    config.begin = (uint8_t *)(uintptr_t)in->bytes.p;
    config.end = config.begin + in->bytes.n;
    struct pt_packet_decoder *const decoder = pt_pkt_alloc_decoder(&config);
    int rc = pt_pkt_sync_forward(decoder);
    peer_packets = 0;
    while (rc >= 0) {
        rc = pt_pkt_next(decoder, &packet, sizeof packet);
        peer_packets += rc >= 0;
    }
    if (rc != -pte_eos)
        exit(1);
    pt_pkt_free_decoder(decoder);
}
#endif

static void measure(const char *name, struct tl_bytes once)
{
    struct tl_buf all = {0};
    double theirs = 0;
    while (all.n < BYTES)
        if (tl_buf_add(&all, once.p, once.n) < 0)
            exit(1);
    struct input in = {.bytes = {all.p, all.n}};
    const double megabytes = (double)all.n / 1e6;
#ifdef HAVE_LIBIPT
    theirs = megabytes / bench_best_cpu(ROUNDS, take_peer, &in);
    printf("%s: %.2f bytes a packet\n", name, (double)all.n / (double)peer_packets);
#endif
    const enum tl_cpu levels[] = {TL_CPU_SCALAR, TL_CPU_AVX2};
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        char what[96];
        in.level = levels[k];
        if (!tl_cpu_has(in.level))
            continue;
        const double mine = megabytes / bench_best_cpu(ROUNDS, take_tape, &in);
        snprintf(what, sizeof what, "%s, %s", name, tl_cpu_name(in.level));
        bench_report("pt packets", what, mine, "MB/s", theirs > 0 ? PEER : NULL, theirs);
    }
    tl_buf_fini(&all);
}

int main(void)
{
    static const char *const real[] = {"one-cpu", "cyc-long-tnt", "noretcomp", "no-time"};
    for (unsigned timing = 0; timing < 2; timing++) {
        struct tl_sim_pt pt = {0};
        struct tl_sim_rng rng = {1};
        tl_sim_pt_program(&pt, &rng, 1 << 20, timing);
        measure(timing ? "program, CYC and MTC" : "program", (struct tl_bytes){pt.out.p, pt.out.n});
        tl_sim_pt_fini(&pt);
    }
    for (size_t k = 0; k < sizeof real / sizeof *real; k++) {
        char path[512], in_data[64];
        struct tl_buf trace = {0};
        snprintf(in_data, sizeof in_data, "pt/stepped/%s.pt", real[k]);
        if (test_data(path, sizeof path, in_data) &&
            tl_buf_read_file(&trace, path, 1 << 24, NULL) == TL_OK)
            measure(real[k], (struct tl_bytes){trace.p, trace.n});
        else
            printf("%s: not there\n", real[k]);
        tl_buf_fini(&trace);
    }
    return 0;
}
