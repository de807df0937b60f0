/* SPDX-License-Identifier: MIT */
/*
 * Writes an STF file, .stf or .zstf by its name: a loop that counts and stores.
 *
 *     stf_make FILE [ROUNDS]
 *     cc stf_make.c $(pkg-config --cflags --libs tracelake-stf) -o stf_make
 */
#include <stf/writer.h>

#include <stdio.h>
#include <stdlib.h>

#define START 0x80000000

/* The first record that cannot be written ends everything: `fail` names the violated rule. */
struct maker {
    struct tl_stf_out *out;
    int result;
    struct tl_fail fail;
};

static void put(struct maker *m, struct tl_stf_record record)
{
    if (m->result == TL_OK)
        m->result = tl_stf_out_put(m->out, &record, &m->fail);
}

static void put_header(struct maker *m)
{
    put(m, (struct tl_stf_record){.type = TL_STF_IDENTIFIER});
    put(m, (struct tl_stf_record){.type = TL_STF_VERSION, .version = {1, 3}});
    put(m, (struct tl_stf_record){.type = TL_STF_COMMENT,
                                  .text = {(const uint8_t *)"a counting loop", 15}});
    put(m, (struct tl_stf_record){.type = TL_STF_ISA, .isa = TL_STF_ISA_RISCV});
    put(m, (struct tl_stf_record){.type = TL_STF_INST_IEM, .iem = TL_STF_IEM_64});
    put(m, (struct tl_stf_record){
               .type = TL_STF_TRACE_INFO,
               .info = {TL_STF_GENERATOR, 1, 0, 0, {(const uint8_t *)"stf_make", 8}}});
    put(m, (struct tl_stf_record){.type = TL_STF_TRACE_INFO_FEATURE,
                                  .features = TL_STF_FEATURE_RV64 | TL_STF_FEATURE_EVENT});
    put(m, (struct tl_stf_record){.type = TL_STF_PROCESS_ID_EXT, .process = {1, 1, 0}});
    put(m, (struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = START});
    put(m, (struct tl_stf_record){.type = TL_STF_END_HEADER});
}

static void put_register(struct maker *m, uint16_t number, uint8_t operand, uint64_t value)
{
    uint8_t bytes[8];
    tl_put_le64(bytes, value);
    put(m, (struct tl_stf_record){
               .type = TL_STF_INST_REG,
               .reg = {number, (uint8_t)(TL_STF_REG_INT | operand << 4), {bytes, 8}}});
}

/* addi x5,x5,1; sd x5,0(x6); j -8. Within a group, descriptors must not decrease. */
static void put_round(struct maker *m, uint64_t i)
{
    static const uint8_t machine[8] = {3};
    put_register(m, 5, TL_STF_OPERAND_SOURCE, i);
    put_register(m, 5, TL_STF_OPERAND_DEST, i + 1);
    if (i == 0) /* the mode at the start */
        put(m, (struct tl_stf_record){.type = TL_STF_EVENT,
                                      .event = {TL_STF_EVENT_MODE_CHANGE, {machine, 8}}});
    put(m, (struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x00128293});
    put(m, (struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                  .access = {0x1000, 8, 0, TL_STF_WRITE}});
    put(m, (struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = i + 1});
    put(m, (struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x00533023});
    put(m, (struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = START});
    put(m, (struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0xff9ff06f});
}

int main(int argc, char **argv)
{
    struct maker m = {0};
    struct tl_stf_save *save = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: stf_make FILE [ROUNDS]\n");
        return 2;
    }
    const uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 10;
    m.result = tl_stf_save_new(&save, argv[1], NULL, &m.fail);
    if (m.result == TL_OK) {
        m.out = tl_stf_save_out(save);
        put_header(&m);
        for (uint64_t i = 0; i < rounds; i++)
            put_round(&m, i);
    }
    if (m.result == TL_OK)
        m.result = tl_stf_save_finish(save, &m.fail);
    if (m.result < 0)
        fprintf(stderr, "%s: %s\n", argv[1], m.fail.text);
    tl_stf_save_free(save);
    return m.result < 0;
}
