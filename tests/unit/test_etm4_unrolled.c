/* SPDX-License-Identifier: MIT */
/*
 * Every kernel of the unrolled packetizer gives the same result as the scalar one, for any bytes.
 */
#include "sim/etm4_kernels.h"

#include "etm4/headers.h"
#include "sim/etm4_encoder_packets.h"
#include "sim/program_core.h"
#include "unit/etm4_collect.h"
#include "unit/framed.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct input {
    struct tl_etm4_config config;
    const uint8_t *p;
    size_t n;
    bool framed;
    bool tape;
    uint32_t most;   /* bytes per push */
    uint64_t chunks; /* seed */
};

/* Collect a tape's packets, checking the invariants of its columns. */
static int collect_tape(void *context, const struct tl_etm4_tape *tape)
{
    struct packets *all = context;
    struct tl_etm4_tape_place place = {0}, by_one = {0};
    struct tl_etm4_packet some[7];
    struct tl_etm4_tape_marks marks;
    size_t n, addresses = 0, others = 0;

    assert_true(tape->n >= 1 && tape->n <= TL_TAPE_ENTRIES);
    tl_etm4_tape_mark(tape, &marks);
    for (size_t k = 0; k < tape->n; k++) {
        const bool is_other = tape->header[k] == TL_TAPE_OTHER;
        others += is_other;
        if (is_other)
            continue;
        assert_true(tape->at[k] < tape->run.n);
        assert_int_equal(tape->run.p[tape->at[k]], tape->header[k]);
        addresses += tl_etm4_is_address(tape->header[k]);
    }
    for (size_t k = tape->n, next = tape->n; k-- > 0;) {
        next = tape->header[k] < TL_ETM4_ATOM_FIRST ? k : next;
        assert_int_equal(tl_etm4_tape_marked(&marks, k), next);
    }
    assert_int_equal(tl_etm4_tape_marked(&marks, tape->n), tape->n);
    assert_int_equal(addresses, tape->n_addresses);
    assert_int_equal(others, tape->n_others);
    while ((n = tl_etm4_tape_read(tape, &place, some, sizeof some / sizeof some[0])) > 0) {
        collect(all, some, n);
        for (size_t k = 0; k < n; k++) {
            struct tl_etm4_packet same;
            tl_etm4_tape_next(tape, &by_one, &same);
            assert_memory_equal(&same, &some[k], sizeof same);
        }
    }
    assert_int_equal(place.packet, tape->n);
    assert_int_equal(place.address, tape->n_addresses);
    assert_int_equal(place.other, tape->n_others);
    return 0;
}

/* Each run is a copy of exactly its size, so that a sanitizer detects reads past its end. */
static void split(struct packets *out, const struct input *in, const struct tl_etm4_kernel *kernel)
{
    struct tl_etm4_packetizer *p = malloc(sizeof *p);
    struct tl_sim_rng rng = {in->chunks};

    out->n = 0;
    if (in->tape && kernel != NULL)
        tl_etm4_packetizer_init_tape(p, &in->config, collect_tape, out);
    else
        tl_etm4_packetizer_init(p, &in->config, collect, out);
    tl_etm4_packetizer_use(p, kernel);
    for (size_t i = 0; i < in->n;) {
        size_t n = tl_sim_between(&rng, 1, in->most);
        if (n > in->n - i)
            n = in->n - i;
        uint8_t *copy = malloc(n);
        memcpy(copy, in->p + i, n);
        const struct tl_run run =
            in->framed ? framed_run(copy, n, i) : (struct tl_run){copy, n, i, NULL};
        assert_int_equal(tl_etm4_packetizer_push(p, &run), 0);
        free(copy);
        i += n;
    }
    assert_int_equal(tl_etm4_packetizer_finish(p), 0);
    free(p);
}

static void all_agree(const struct input *in)
{
    struct packets scalar = {0}, ours = {0};
    size_t n;
    const struct tl_etm4_kernel *const kernels = tl_sim_etm4_kernels(&n);

    split(&scalar, in, NULL);
    for (size_t k = 0; k < n; k++) {
        if (tl_etm4_kernel_at(kernels[k].level) == NULL ||
            tl_etm4_kernel_at(tl_cpu_supported())->level < kernels[k].level)
            continue; /* not supported by this processor */
        split(&ours, in, &kernels[k]);
        for (size_t i = 0; i < ours.n && i < scalar.n; i++)
            if (memcmp(&ours.p[i], &scalar.p[i], sizeof ours.p[i]) != 0)
                fail_msg("%s, unrolled %u: packet %zu at %llu (%02x) is not at %llu (%02x)",
                         tl_cpu_name(kernels[k].level), kernels[k].unroll, i,
                         (unsigned long long)ours.p[i].offset, ours.p[i].header,
                         (unsigned long long)scalar.p[i].offset, scalar.p[i].header);
        assert_int_equal(ours.n, scalar.n);
    }
    free(scalar.p);
    free(ours.p);
}

static void random_shape(struct input *in, struct tl_sim_rng *rng)
{
    in->framed = tl_sim_percent(rng, 50);
    in->tape = tl_sim_percent(rng, 30);
    in->most = tl_sim_percent(rng, 70) ? 20000 : 300;
    in->chunks = tl_sim_rand(rng);
}

static void test_random_packets(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {test_seed()};
    for (unsigned round = 0; round < test_rounds(60); round++) {
        struct input in = {0};
        struct tl_sim_packets s;
        tl_sim_packets_config(&in.config, &rng);
        random_shape(&in, &rng);
        tl_sim_packets_init(&s, &in.config, (enum tl_sim_mix)(round % TL_SIM_MIXES), true,
                            tl_sim_rand(&rng));
        assert_int_equal(tl_sim_packets_async(&s), 0);
        assert_int_equal(tl_sim_packets_add(&s, 4000), 0);
        in.p = s.bytes.p;
        in.n = s.bytes.n;
        all_agree(&in);
        tl_sim_packets_fini(&s);
    }
}

/* Headers in payloads and payloads like headers: bytes from a few values, and any bytes. */
static void test_hostile(void **state)
{
    (void)state;
    static const uint8_t few[] = {0x95, 0x9a, 0x90, 0x91, 0x92, 0xf7, 0xc0, 0x15, 0x00, 0x85,
                                  0x96, 0x9d, 0x82, 0x01, 0x0e, 0x80, 0xff, 0x95, 0x95, 0x9a};
    struct tl_sim_rng rng = {test_seed()};

    for (unsigned round = 0; round < test_rounds(120); round++) {
        struct input in = {.n = 4000};
        uint8_t *bytes = malloc(in.n);
        const unsigned kinds = 1 + tl_sim_below(&rng, sizeof few);
        tl_sim_packets_config(&in.config, &rng);
        random_shape(&in, &rng);
        memset(bytes, 0, 11);
        bytes[11] = 0x80;
        for (size_t i = 12; i < in.n; i++)
            bytes[i] = round % 3 == 0 ? (uint8_t)tl_sim_rand(&rng) : few[tl_sim_below(&rng, kinds)];
        in.p = bytes;
        all_agree(&in);
        free(bytes);
    }
}

static const struct tl_etm4_config any_config = {.version = 0x44,
                                                 .v8 = true,
                                                 .aarch64 = true,
                                                 .vmid_bytes = 4,
                                                 .context_bytes = 4,
                                                 .address_bits = 64,
                                                 .cycle_bits = 12,
                                                 .cycle_count = true};

/* Every header, at every position in a block and after every number of payload bytes that look like
 * headers: a packet that crosses the end of a block must continue in the next one. */
static void test_every_header_everywhere(void **state)
{
    (void)state;
    const unsigned bytes_each = test_rounds(16 * 250);
    struct tl_sim_rng rng = {77};

    for (unsigned header = 1; header < 256; header++) {
        static uint8_t bytes[20000];
        struct input in = {.config = any_config, .p = bytes, .most = 20000};
        in.config.commit_opt1 = header & 1;
        in.tape = header & 2;
        bytes[11] = 0x80;
        in.n = 12;
        while (in.n < bytes_each) {
            const unsigned atoms = tl_sim_below(&rng, 20), payload = tl_sim_below(&rng, 20);
            for (unsigned k = 0; k < atoms; k++)
                bytes[in.n++] = (uint8_t)(0xc0 | tl_sim_below(&rng, 64));
            bytes[in.n++] = (uint8_t)header;
            for (unsigned k = 0; k < payload; k++)
                bytes[in.n++] = (uint8_t)(0x80 | tl_sim_below(&rng, 0x20));
        }
        all_agree(&in);
    }
}

/* The instruction set (IS) of an address packet with this header; -1: none, or not an address
 * packet. */
static int is_of(uint8_t header)
{
    switch (header) {
    case 0x82:
    case 0x85:
    case 0x95:
    case 0x9a:
    case 0x9d:
        return 0;
    case 0x83:
    case 0x86:
    case 0x96:
    case 0x9b:
    case 0x9e:
        return 1;
    default:
        return -1;
    }
}

/* Changes to AArch32 and back, 64-bit addresses, and exact matches across halves, within blocks;
 * with both kinds of IS and with one. */
static void test_states_and_halves(void **state)
{
    (void)state;
    static const uint8_t parts[][11] = {
        {2, 0x81, 0x00}, /* AArch32 */
        {2, 0x81, 0x10}, /* AArch64 */
        {9, 0x9d, 1, 2, 3, 4, 0xc0, 0xff, 0xff, 0xff},
        {9, 0x9e, 1, 2, 3, 4, 0, 0, 0, 0},
        {5, 0x9a, 0x91, 0x92, 0x95, 0x9d},
        {5, 0x9b, 0x91, 0x92, 0x95, 0x9d},
        {2, 0x95, 0x11},
        {3, 0x95, 0x91, 0x92},
        {3, 0x96, 0x91, 0x92},
        {1, 0x90},
        {1, 0x91},
        {1, 0x92},
        {1, 0xf7},
        {10, 0x85, 1, 2, 3, 4, 0, 0, 0, 0, 0x10},
        {6, 0x82, 1, 2, 3, 4, 0x00},
        {10, 0x86, 5, 6, 7, 8, 1, 0, 0, 0, 0x10},
        {6, 0x83, 0x81, 0x82, 0xff, 0xfe, 0x00},
    };
    const unsigned n_parts = sizeof parts / sizeof parts[0];
    struct tl_sim_rng rng = {test_seed()};

    for (unsigned round = 0; round < test_rounds(90); round++) {
        static uint8_t bytes[20000];
        struct input in = {.config = any_config, .p = bytes};
        const unsigned first = round % 3 * 2;      /* with contexts, without, without 64-bit ones */
        const int other_is = (int)(round / 3 % 3); /* left out; 2: none */
        random_shape(&in, &rng);
        memset(bytes, 0, 11);
        bytes[11] = 0x80;
        in.n = 12;
        while (in.n < 5000) {
            const unsigned k = first + tl_sim_below(&rng, (round % 3 ? 13 : n_parts) - first);
            if (is_of(parts[k][1]) == other_is)
                continue;
            memcpy(bytes + in.n, parts[k] + 1, parts[k][0]);
            in.n += parts[k][0];
        }
        all_agree(&in);
    }
}

static void test_simulated_traces(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {test_seed()};
    for (unsigned round = 0; round < 12; round++) {
        const struct tl_sim_core_options options = tl_sim_core_kinds(tl_sim_rand(&rng), round);
        const struct tl_sim_program_options shape = {.seed = 3, .extra = 20};
        struct tl_sim_program program;
        struct tl_sim_core *core;
        struct tl_source source;
        struct tl_buf trace = {0};
        struct input in = {0};

        assert_int_equal(tl_sim_program_init(&program, &shape), 0);
        assert_int_equal(tl_sim_core_new(&core, &program, &options, &trace, NULL, NULL), 0);
        assert_int_equal(tl_sim_core_step(core, 60000), 0);
        assert_int_equal(tl_sim_core_flush(core), 0);
        assert_int_equal(tl_sim_etm4_source(&options.etm, &source), 0);
        tl_etm4_config_init(&in.config, &source);
        random_shape(&in, &rng);
        in.p = trace.p;
        in.n = trace.n;
        all_agree(&in);
        tl_sim_core_free(core);
        tl_sim_program_fini(&program);
        tl_buf_fini(&trace);
    }
}

/* Real captures unmodified: with frames, which are noise to a packetizer, and raw ones. */
static void test_real_bytes(void **state)
{
    (void)state;
    static const char *const files[] = {"juno-uname-002/kernel_dump.bin",
                                        "src_addr/session1.bin",
                                        "001-ack_test/session1.bin",
                                        "ts_marker/session1.bin",
                                        "a55-test-tpiu/DSTREAM_0.bin",
                                        "juno-uname-002/trace.bin",
                                        "q_elem/session1.bin"};
    const char *data = getenv("TL_DATA");
    struct tl_sim_rng rng = {5};
    unsigned found = 0;

    for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
        char path[512];
        snprintf(path, sizeof path, "%s/coresight/snapshots/%s",
                 data != NULL ? data : TL_SOURCE_DIR "/../shared/data", files[k]);
        FILE *f = fopen(path, "rb");
        if (f == NULL)
            continue;
        uint8_t *bytes = calloc(1, 60012);
        struct input in = {.p = bytes};
        bytes[11] = 0x80;
        in.n = 12 + fread(bytes + 12, 1, 60000, f);
        fclose(f);
        for (unsigned round = 0; round < test_rounds(4); round++) {
            tl_sim_packets_config(&in.config, &rng);
            random_shape(&in, &rng);
            all_agree(&in);
        }
        free(bytes);
        found++;
    }
    if (found == 0) {
        print_message("skipped: no captures there\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_packets),          cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_every_header_everywhere), cmocka_unit_test(test_states_and_halves),
        cmocka_unit_test(test_simulated_traces),        cmocka_unit_test(test_real_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
