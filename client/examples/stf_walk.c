/* SPDX-License-Identifier: MIT */
/*
 * Walks the instructions of an STF file: address, mode, process, memory reads and writes.
 *
 *     stf_walk FILE [FIRST [COUNT]]
 *     cc stf_walk.c $(pkg-config --cflags --libs tracelake-stf) -o stf_walk
 */
#include <stf/file.h>
#include <stf/operands.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_accesses(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn)
{
    struct tl_stf_group group = tl_stf_insn_group(insns, insn);
    struct tl_stf_access a;
    while (tl_stf_group_access(&group, &a) == TL_OK) {
        printf(" %s%s 0x%" PRIx64 " size %u", a.bus ? "bus " : "",
               a.type == TL_STF_WRITE ? "write" : "read", a.address, a.size);
        for (uint32_t i = 0; i < a.n_data; i++)
            printf("%s0x%" PRIx64, i ? " " : ": ", tl_stf_access_data(&a, i));
    }
}

static void print_registers(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn)
{
    static const char *const kinds[] = {"?", "state", "source", "dest"};
    struct tl_stf_group group = tl_stf_insn_group(insns, insn);
    struct tl_stf_operand o;
    while (tl_stf_group_operand(&group, &o) == TL_OK) {
        char name[TL_STF_REG_NAME];
        printf(" %s %s", kinds[o.operand], tl_stf_reg_name(o.number, o.type, name));
        for (size_t i = o.value.n / 8; i-- > 0;)
            printf(" 0x%" PRIx64, tl_stf_word(o.value, i));
    }
}

static void print_insn(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn,
                       uint64_t number)
{
    const struct tl_stf_state *const state = tl_stf_insns_state(insns);
    printf("%" PRIu64 " 0x%" PRIx64 " %0*" PRIx32 " %c", number, insn->pc, 2 * insn->size,
           insn->opcode, insn->mode <= 3 ? "USHM"[insn->mode] : '-');
    if (state->has_process)
        printf(" process %" PRIu32 "/%" PRIu32 "/%" PRIu32, state->tgid, state->tid, state->asid);
    if (insn->flags & TL_STF_MEMORY)
        print_accesses(insns, insn);
    if (insn->flags & TL_STF_OTHERS)
        print_registers(insns, insn);
    if (insn->flags & TL_STF_TAKEN)
        printf(" to 0x%" PRIx64, tl_stf_insn_next(insns, insn));
    putchar('\n');
}

/*
 * Print `count` instructions beginning at `first`. Returns TL_OK, or an error described in `fail`.
 */
static int walk(struct tl_stf_insns *insns, uint64_t first, uint64_t count, struct tl_fail *fail)
{
    struct tl_stf_insn batch[64];
    int n = first ? tl_stf_insns_seek(insns, first, fail) : TL_OK;
    if (n < 0)
        return n;
    while (count > 0) {
        const uint64_t number = tl_stf_insns_at(insns);
        n = tl_stf_insns_read(insns, batch, count < 64 ? (size_t)count : 64, fail);
        if (n < 0)
            return n == TL_EOF ? TL_OK : n;
        for (int i = 0; i < n; i++)
            print_insn(insns, &batch[i], number + (uint64_t)i);
        count -= (uint64_t)n;
    }
    return TL_OK;
}

int main(int argc, char **argv)
{
    struct tl_fail fail = {0};
    struct tl_stf_file *file = NULL;
    struct tl_stf_insns *insns = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: stf_walk FILE [FIRST [COUNT]]\n");
        return 2;
    }
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    const uint64_t count = argc > 3 ? strtoull(argv[3], NULL, 0) : UINT64_MAX;
    int result = tl_stf_file_open(&file, argv[1], &fail);
    if (result == TL_OK) {
        const struct tl_stf_source source = tl_stf_file_source(file);
        result = tl_stf_insns_open(&insns, &source);
    }
    if (result == TL_OK)
        result = walk(insns, first, count, &fail);
    if (result < 0)
        fprintf(stderr, "%s: %s\n", argv[1], fail.text);
    tl_stf_insns_free(insns);
    tl_stf_file_close(file);
    return result < 0;
}
