/* SPDX-License-Identifier: MIT */
/*
 * Intel PT flow beside Debian's libipt. First its instruction decoder says of simulated traces what
 * the simulation knows: so they are right, and so is the reference in all that they have.
 */
#include "conformance/libipt_flow.h"
#include "unit/random.h"

#include <stdio.h>

static void configure(struct pt_config *config, const struct tl_buf *trace)
{
    pt_config_init(config);
    config->begin = trace->p;
    config->end = trace->p + trace->n;
    config->cpuid_0x15_eax = 2;
    config->cpuid_0x15_ebx = 100;
    config->mtc_freq = 3;
    config->nom_freq = 20;
}

static void text_of(char out[160], const struct tl_buf *said, size_t i)
{
    const struct said *const s = (const struct said *)(const void *)said->p + i;
    if (i >= said->n / sizeof *s)
        strcpy(out, "the end");
    else if (s->error)
        snprintf(out, 160, "[error %d at %llu]", s->error, (unsigned long long)s->offset);
    else
        tl_sim_pt_truth_text(out, &s->truth);
}

static void truth_text_of(char out[160], const struct tl_buf *truths, size_t i)
{
    const struct tl_sim_pt_truth *const t =
        (const struct tl_sim_pt_truth *)(const void *)truths->p + i;
    if (i >= truths->n / sizeof *t)
        strcpy(out, "the end");
    else
        tl_sim_pt_truth_text(out, t);
}

static void dump(const struct tl_buf *trace)
{
    const char *const path = getenv("TL_PT_DUMP");
    FILE *const f = path ? fopen(path, "wb") : NULL;
    if (f)
        fwrite(trace->p, 1, trace->n, f);
    if (f)
        fclose(f);
}

static uint64_t compared; /* instructions and events */

/* Behind the last packet they stop, although the program goes on. */
static void compare_with_truth(struct tl_sim_pt_flow *flow)
{
    struct pt_config config;
    struct tl_buf said = {0};
    configure(&config, &flow->pt.out);
    libipt_flow(&said, &config, flow->run.program);
    const size_t n = said.n / sizeof(struct said),
                 all = flow->truth.n / sizeof(struct tl_sim_pt_truth);
    for (size_t i = 0; i < n; i++) {
        char got[160], want[160];
        text_of(got, &said, i);
        truth_text_of(want, &flow->truth, i);
        if (strcmp(got, want) != 0) {
            for (size_t k = i > 12 ? i - 12 : 0; k < i + 6; k++) {
                char a[160], b[160];
                text_of(a, &said, k);
                truth_text_of(b, &flow->truth, k);
                fprintf(stderr, "%c %-50s | %s\n", k == i ? '>' : ' ', a, b);
            }
            dump(&flow->pt.out);
        }
        assert_string_equal(got, want);
    }
    for (size_t i = n; i < all; i++) {
        const struct tl_sim_pt_truth *const t =
            (const struct tl_sim_pt_truth *)(const void *)flow->truth.p + i;
        assert_int_equal(t->what, TL_SIM_PT_INSN);
        assert_true(all - n < 200);
    }
    compared += n;
    tl_buf_fini(&said);
}

static void truth(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct tl_sim_pt_flow_options options;
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        tl_sim_x86_program_init(&program, tl_sim_rand(&rng), tl_sim_between(&rng, 2, 60));
        tl_sim_pt_flow_random(&options, &rng);
        tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
        tl_sim_pt_flow_run(&flow, tl_sim_between(&rng, 1, 5000));
        compare_with_truth(&flow);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
    printf("%llu instructions and events compared\n", (unsigned long long)compared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truth),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
