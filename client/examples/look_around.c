/* SPDX-License-Identifier: MIT */
/*
 * Looks around an instruction of a trace on a tracelake server: prints the call that is active
 * there and its function's longest one, the hottest paths up to it, how deep its stack is, and the
 * last lines that the program printed before. Build and run:
 *
 *     cc -o look_around look_around.c $(pkg-config --cflags --libs tracelake)
 *     ./look_around http://127.0.0.1:7070 TRACE STREAM 1000
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tracelake.h>

static int show_call(struct tracelake *lake, const struct tracelake_range *range,
                     struct tracelake_error *error)
{
    struct tracelake_call_details *call;
    const int r = tracelake_get_call(lake, range->trace, range->stream, range->to - 1,
                                     TRACELAKE_INNERMOST, &call, error);
    if (r == TRACELAKE_NOTFOUND) /* tracing began there, or the stream has no instructions */
        return TRACELAKE_OK;
    if (r < 0)
        return r;
    printf("call %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", call->name, call->from, call->to,
           call->self);
    if (call->longest != TRACELAKE_END)
        printf("longest %" PRIu64 " %" PRIu64 "\n", call->longest, call->max);
    tracelake_call_details_free(call);
    return r;
}

static int show_profile(struct tracelake *lake, const struct tracelake_range *range,
                        struct tracelake_error *error)
{
    struct tracelake_profile_tree *tree;
    const int r = tracelake_get_profile(lake, range, TRACELAKE_BY_INSNS, false, 0, &tree, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < tree->n_functions && i < 5; i++)
        printf("function %s %" PRIu64 " of %" PRIu64 "\n", tree->functions[i].name,
               tree->functions[i].self, tree->sum);
    tracelake_profile_tree_free(tree);
    return r;
}

static int show_stack(struct tracelake *lake, const struct tracelake_range *range,
                      struct tracelake_error *error)
{
    struct tracelake_call_stacks *stacks;
    uint32_t deepest = 0;
    const int r = tracelake_get_slices(lake, range, 0, &stacks, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < stacks->n; i++)
        if (stacks->p[i].depth > deepest)
            deepest = stacks->p[i].depth;
    printf("deepest %" PRIu32 " of %zu calls\n", deepest, stacks->n);
    tracelake_call_stacks_free(stacks);
    return r;
}

static int show_log(struct tracelake *lake, const struct tracelake_range *range,
                    struct tracelake_error *error)
{
    struct tracelake_log_lines *lines;
    const int r = tracelake_get_log(lake, range, 3, true, &lines, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < lines->n; i++)
        printf("log %" PRIu64 " %s\n", lines->p[i].at, lines->p[i].text);
    tracelake_log_lines_free(lines);
    return r;
}

int main(int argc, char **argv)
{
    struct tracelake *lake;
    struct tracelake_error error;
    if (argc != 5) {
        fprintf(stderr, "usage: look_around URL TRACE STREAM INSTRUCTION\n");
        return 2;
    }
    const struct tracelake_range range = {.trace = argv[2],
                                          .stream = argv[3],
                                          .unit = TRACELAKE_INSN,
                                          .from = 0,
                                          .to = strtoull(argv[4], NULL, 0) + 1};
    int r = tracelake_connect(&lake, argv[1], NULL, &error);
    if (r < 0) {
        fprintf(stderr, "look_around: %s\n", error.text);
        return EXIT_FAILURE;
    }
    r = show_call(lake, &range, &error);
    if (r >= 0)
        r = show_profile(lake, &range, &error);
    if (r >= 0)
        r = show_stack(lake, &range, &error);
    if (r >= 0)
        r = show_log(lake, &range, &error);
    if (r < 0)
        fprintf(stderr, "look_around: %s\n", error.text);
    tracelake_close(lake);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
