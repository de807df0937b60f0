/* SPDX-License-Identifier: MIT */
/* The simulated program, core and trace unit keep the guarantees that decoder tests rely on. */
#include "etm4/packet_text.h"
#include "etm4/packetizer.h"
#include "image/image.h"
#include "isa/isa.h"
#include "sim/program_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void make(struct tl_sim_program *program, uint64_t seed)
{
    const struct tl_sim_program_options options = {.seed = seed, .extra = 20};
    assert_int_equal(tl_sim_program_init(program, &options), 0);
}

static enum tl_insn_kind expected_kind(const struct tl_sim_insn *insn)
{
    switch (insn->kind) {
    case TL_SIM_BRANCH:
        return TL_INSN_BRANCH;
    case TL_SIM_INDIRECT:
    case TL_SIM_RET:
        return TL_INSN_INDIRECT;
    case TL_SIM_ERET:
        return TL_INSN_RETURN_EX;
    case TL_SIM_SVC:
        return TL_INSN_TRAP;
    case TL_SIM_ISB:
        return TL_INSN_SYNC;
    default:
        return TL_INSN_PLAIN;
    }
}

/* The simulated core's view of each instruction agrees with its encoding. */
static void test_encodings(void **state)
{
    (void)state;
    const struct tl_isa_options options = {.arch_major = 8, .profile = 'A'};
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct tl_sim_program program;
        make(&program, seed);
        for (uint32_t i = 0; i < program.n_insns; i++) {
            const struct tl_sim_insn *insn = &program.insns[i];
            const uint64_t pc = tl_sim_program_address(&program, i);
            uint8_t code[4];
            struct tl_insn decoded;
            tl_put_le32(code, insn->encoding);
            assert_int_equal(tl_insn_decode(TL_ISA_A64, &options, pc,
                                            (struct tl_bytes){code, sizeof code}, &decoded),
                             4);
            assert_int_equal(decoded.kind == TL_INSN_WAIT ? TL_INSN_PLAIN : decoded.kind,
                             expected_kind(insn));
            if (insn->kind != TL_SIM_BRANCH && insn->kind != TL_SIM_INDIRECT)
                continue;
            assert_int_equal(decoded.conditional, insn->conditional);
            assert_int_equal(decoded.link, insn->link);
            if (insn->kind == TL_SIM_BRANCH)
                assert_int_equal(decoded.target, tl_sim_program_address(&program, insn->target));
        }
        tl_sim_program_fini(&program);
    }
}

static void test_elf(void **state)
{
    (void)state;
    struct tl_sim_program program;
    struct tl_image *image;
    struct tl_buf elf = {0};
    struct tl_fail fail = {0};

    make(&program, 7);
    assert_int_equal(tl_sim_program_elf(&program, &elf), 0);
    assert_int_equal(tl_image_new(&image), 0);
    if (tl_image_add_elf(image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_image_freeze(image), 0);
    for (size_t i = 0; i < program.n_functions; i++) {
        const struct tl_sim_function *f = &program.functions[i];
        const uint64_t address = tl_sim_program_address(&program, f->first);
        const struct tl_symbol *symbol = tl_image_symbol_at(image, address + 4 * (f->n - 1));
        const struct tl_bytes code = tl_image_at(image, TL_SPACE_ANY, address);
        assert_non_null(symbol);
        assert_string_equal(symbol->name, f->name);
        assert_int_equal(symbol->address, address);
        assert_true(code.n >= 4);
        assert_int_equal(tl_le32(code.p), program.insns[f->first].encoding);
    }
    tl_image_free(image);
    tl_buf_fini(&elf);
    tl_sim_program_fini(&program);
}

struct counts {
    uint64_t packets[TL_ETM4_TYPES];
    uint64_t truth[TL_SIM_TRUTH_ITE + 1];
    uint64_t atoms;
};

static int count_packets(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct counts *counts = context;
    for (size_t i = 0; i < n; i++) {
        counts->packets[packets[i].type]++;
        if (packets[i].type == TL_ETM4_ATOM)
            counts->atoms += packets[i].n;
    }
    return 0;
}

static int count_truth(void *context, const struct tl_sim_truth *truth)
{
    struct counts *counts = context;
    counts->truth[truth->kind]++;
    return 0;
}

static const struct tl_sim_core_options base_options = {.seed = 3,
                                                        .irq_every = 3000,
                                                        .fault_every = 20000,
                                                        .event_every = 5000,
                                                        .etm = {.minor = 4,
                                                                .return_stack = true,
                                                                .cycle_count = true,
                                                                .timestamps = true,
                                                                .timestamp_every = 100,
                                                                .context_id = true,
                                                                .vmid = true,
                                                                .sync_every = 2000}};

static void run(struct counts *counts, const struct tl_sim_core_options *options, uint64_t n,
                struct tl_buf *trace)
{
    struct tl_sim_program program;
    struct tl_sim_core *core;

    make(&program, options->seed);
    assert_int_equal(tl_sim_core_new(&core, &program, options, trace, count_truth, counts), 0);
    assert_int_equal(tl_sim_core_step(core, n), 0);
    assert_int_equal(tl_sim_core_flush(core), 0);
    assert_int_equal(tl_sim_core_insns(core), n);
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
}

static void packetize(struct counts *counts, const struct tl_sim_etm4_options *etm,
                      const struct tl_buf *trace)
{
    struct tl_etm4_packetizer *p = malloc(sizeof *p);
    struct tl_etm4_config config;
    struct tl_source source;
    const struct tl_run whole = {trace->p, trace->n, 0, NULL};

    assert_int_equal(tl_sim_etm4_source(etm, &source), 0);
    tl_etm4_config_init(&config, &source);
    assert_int_equal(tl_etm4_config_check(&config, NULL), 0);
    tl_etm4_packetizer_init(p, &config, count_packets, counts);
    assert_int_equal(tl_etm4_packetizer_push(p, &whole), 0);
    assert_int_equal(tl_etm4_packetizer_finish(p), 0);
    free(p);
}

/* Every packet is valid, and their numbers match the truth. */
static void test_packets(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 32; k++) {
        struct tl_sim_core_options options = base_options;
        struct counts counts = {0};
        struct tl_buf trace = {0};

        options.seed = k + 1;
        options.etm.ete = k & 1;
        options.etm.minor = (uint8_t)(k % 4);
        options.etm.branch_broadcast = k & 2;
        options.etm.commit_opt = k & 4;
        options.etm.max_spec_depth = k & 8 ? (uint8_t)k : 0;
        options.etm.ts_marker = options.etm.ete && options.etm.minor > 0 && k & 16;
        options.off_every = k & 2 ? 3000 : 0;
        options.overflow_every = k & 4 ? 5000 : 0;
        run(&counts, &options, 100000, &trace);
        packetize(&counts, &options.etm, &trace);
        assert_int_equal(counts.packets[TL_ETM4_BAD], 0);
        assert_int_equal(counts.packets[TL_ETM4_NOT_SYNC], 0);
        assert_int_equal(counts.packets[TL_ETM4_INCOMPLETE], 0);
        assert_int_equal(counts.packets[TL_ETM4_EXCEPTION], counts.truth[TL_SIM_TRUTH_EXCEPTION]);
        assert_int_equal(counts.packets[TL_ETM4_TIMESTAMP], counts.truth[TL_SIM_TRUTH_TIME]);
        assert_int_equal(counts.packets[TL_ETM4_CYCLE_COUNT], counts.truth[TL_SIM_TRUTH_CYCLES]);
        assert_int_equal(counts.packets[TL_ETM4_EVENT], counts.truth[TL_SIM_TRUTH_EVENT]);
        assert_int_equal(counts.packets[TL_ETM4_TRACE_ON], counts.truth[TL_SIM_TRUTH_TRACE_ON]);
        assert_int_equal(counts.packets[TL_ETM4_OVERFLOW], counts.truth[TL_SIM_TRUTH_OVERFLOW]);
        assert_int_equal(counts.packets[TL_ETM4_ITE], counts.truth[TL_SIM_TRUTH_ITE]);
        assert_true(counts.truth[TL_SIM_TRUTH_EXCEPTION] > 20);
        assert_true(counts.truth[TL_SIM_TRUTH_INSN] > 60000);
        assert_true(counts.truth[TL_SIM_TRUTH_ERET] > 10);
        assert_true(counts.atoms > 5000);
        if (options.etm.max_spec_depth > 0)
            assert_true(counts.packets[TL_ETM4_MISPREDICT] > 100 &&
                        counts.packets[TL_ETM4_CANCEL] > 50);
        if (options.etm.max_spec_depth > 0 && options.etm.commit_opt)
            assert_true(counts.packets[TL_ETM4_COMMIT] > 50);
        tl_buf_fini(&trace);
    }
}

/* The same options give the same bytes, in one step or instruction by instruction. */
static void test_deterministic(void **state)
{
    (void)state;
    struct tl_sim_program program;
    struct tl_buf one = {0}, other = {0};
    struct tl_sim_core *a, *b;

    make(&program, 5);
    assert_int_equal(tl_sim_core_new(&a, &program, &base_options, &one, NULL, NULL), 0);
    assert_int_equal(tl_sim_core_new(&b, &program, &base_options, &other, NULL, NULL), 0);
    assert_int_equal(tl_sim_core_step(a, 50000), 0);
    for (unsigned i = 0; i < 50000; i++)
        assert_int_equal(tl_sim_core_step(b, 1), 0);
    assert_int_equal(one.n, other.n);
    assert_memory_equal(one.p, other.p, one.n);
    tl_sim_core_free(a);
    tl_sim_core_free(b);
    tl_buf_fini(&one);
    tl_buf_fini(&other);
    tl_sim_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_elf),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
