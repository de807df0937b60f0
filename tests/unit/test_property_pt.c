/* SPDX-License-Identifier: MIT */
/* Intel PT of simulated executions: what is decoded, instruction by instruction, is their truth. */
#include "unit/pt_said.h"

static void insn_by_insn(void **state)
{
    (void)state;
    uint64_t compared = 0;
    for (unsigned i = 0; i < 300; i++) {
        struct tl_sim_rng rng = {((uint64_t)next() << 32) | next()};
        struct tl_sim_pt_flow_options options;
        struct tl_sim_x86_program program;
        struct tl_sim_pt_flow flow;
        struct tl_buf said = {0};
        tl_sim_x86_program_init(&program, tl_sim_rand(&rng), tl_sim_between(&rng, 2, 60));
        tl_sim_pt_flow_random(&options, &rng);
        tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(&rng));
        tl_sim_pt_flow_run(&flow, tl_sim_between(&rng, 1, 5000));
        struct tl_image *const image = image_of(&program);
        const struct tl_bytes trace = {flow.pt.out.p, flow.pt.out.n};
        ours_flow(&said, &sim_config, image, trace);
        require_truth(&said, &flow.truth, trace);
        compared += n_said(&said);
        tl_image_free(image);
        tl_buf_fini(&said);
        tl_sim_pt_flow_fini(&flow);
        tl_sim_x86_program_fini(&program);
    }
    printf("%llu instructions and events compared\n", (unsigned long long)compared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insn_by_insn),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
