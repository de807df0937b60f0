/* SPDX-License-Identifier: MIT */
/*
 * Intel PT flow beside Debian's libipt. First its instruction decoder says of simulated traces what
 * the simulation knows: so they are right, and so is the reference in all that they have.
 */
#include "conformance/libipt_flow.h"

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

static uint64_t compared; /* instructions and events */

static void truth(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct tl_sim_pt_flow_options options;
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        struct pt_config config;
        struct tl_buf said = {0};
        tl_sim_x86_program_init(&program, tl_sim_rand(&rng), tl_sim_between(&rng, 2, 60));
        tl_sim_pt_flow_random(&options, &rng);
        tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
        tl_sim_pt_flow_run(&flow, tl_sim_between(&rng, 1, 5000));
        configure(&config, &flow.pt.out);
        libipt_flow(&said, &config, &program);
        require_truth(&said, &flow.truth, (struct tl_bytes){flow.pt.out.p, flow.pt.out.n});
        compared += n_said(&said);
        tl_buf_fini(&said);
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
