/* SPDX-License-Identifier: MIT */
/*
 * Fetches a range of executed instructions from a tracelake server and prints their index, address
 * and encoding; for branch-only streams, the branch targets. Build and run:
 *
 *     cc -o fetch_range fetch_range.c $(pkg-config --cflags --libs tracelake)
 *     ./fetch_range http://127.0.0.1:7070 TRACE STREAM 1000 2000
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tracelake.h>

static int fail(const struct tracelake_error *error)
{
    fprintf(stderr, "fetch_range: %s\n", error->text);
    return EXIT_FAILURE;
}

static void print(const struct tracelake_insn *insn)
{
    printf("%" PRIu64 " %016" PRIx64 " ", insn->index, insn->pc);
    if (insn->kind == TRACELAKE_BRANCH)
        printf("%016" PRIx64, insn->target);
    else if (insn->kind == TRACELAKE_UNKNOWN)
        printf("?");
    else if (insn->size == 2 || insn->size == 4)
        printf("%0*" PRIx32, insn->size * 2, insn->opcode);
    else
        for (unsigned i = 0; i < insn->size; i++)
            printf("%02x", insn->bytes[i]);
    putchar('\n');
}

int main(int argc, char **argv)
{
    struct tracelake *lake;
    struct tracelake_insns *insns;
    struct tracelake_error error;
    if (argc != 6) {
        fprintf(stderr, "usage: fetch_range URL TRACE STREAM FROM TO\n");
        return 2;
    }
    if (tracelake_connect(&lake, argv[1], NULL, &error) < 0)
        return fail(&error);

    const struct tracelake_range range = {
        .trace = argv[2],
        .stream = argv[3],
        .unit = TRACELAKE_INSN,
        .from = strtoull(argv[4], NULL, 0),
        .to = strtoull(argv[5], NULL, 0),
    };
    int result = tracelake_insns_open(&insns, lake, &range, &error);
    if (result == TRACELAKE_OK) {
        struct tracelake_insn insn;
        uint64_t n = 0;
        for (; (result = tracelake_insns_next(insns, &insn, &error)) == TRACELAKE_OK; n++)
            print(&insn);
        fprintf(stderr, "%" PRIu64 " instructions\n", n);
        tracelake_insns_close(insns);
    }
    tracelake_close(lake);
    return result == TRACELAKE_EOF ? EXIT_SUCCESS : fail(&error);
}
