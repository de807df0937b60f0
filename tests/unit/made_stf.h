/* SPDX-License-Identifier: MIT */
/* Random STF traces like those of other programs, with records of all kinds, for tests. */
#ifndef TL_TESTS_MADE_STF_H
#define TL_TESTS_MADE_STF_H

#include "test_stf_util.h"

/* A trace being made. */
struct maker {
    struct tl_buf out;
    struct tl_stf_layout layout;
    uint64_t seed;
};

static inline uint64_t roll(struct maker *m)
{
    return rng_next(&m->seed);
}

static inline void put(struct maker *m, const struct tl_stf_record *record)
{
    assert_int_equal(tl_stf_record_encode(&m->layout, record, &m->out), TL_OK);
}

static inline void begin_trace(struct maker *m, uint32_t vlen, bool event64)
{
    const struct tl_stf_header_spec spec = {
        .isa = TL_STF_ISA_RISCV,
        .iem = TL_STF_IEM_64,
        .pc = 0x1000,
        .vlen = vlen,
        .isa_extended = vlen ? "rv64gcv" : NULL,
        .features = event64 ? TL_STF_FEATURE_EVENT64 : 0,
        .generator = "simulator 1.0",
    };
    assert_int_equal(tl_stf_header_write(&spec, &m->out, &m->layout), TL_OK);
}

static inline void put_reg(struct maker *m, uint8_t type, uint8_t operand)
{
    uint8_t value[512];
    const size_t n = type == TL_STF_REG_VECTOR ? (m->layout.vlen + 63) / 64 : 1;
    for (size_t i = 0; i < n; i++)
        tl_put_le64(value + 8 * i, roll(m));
    put(m, &(struct tl_stf_record){.type = TL_STF_INST_REG,
                                   .reg = {(uint16_t)(roll(m) & 31),
                                           (uint8_t)(type | operand << 4),
                                           {value, 8 * (n ? n : 1)}}});
}

static inline void put_access(struct maker *m)
{
    const uint64_t dice = roll(m);
    put(m, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                   .access = {dice >> 8, (uint16_t)(dice & 1 ? 16 : 8),
                                              (uint16_t)dice, (uint8_t)(1 + (dice >> 5) % 2)}});
    put(m, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = dice});
    if (dice & 1)
        put(m, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = ~dice});
}

static inline void put_bus(struct maker *m)
{
    put(m, &(struct tl_stf_record){.type = TL_STF_BUS_MASTER_ACCESS,
                                   .bus = {roll(m), 8, 2, 1, 7, TL_STF_READ}});
    put(m, &(struct tl_stf_record){.type = TL_STF_BUS_MASTER_CONTENT, .data = roll(m)});
}

static inline void put_walk(struct maker *m, uint64_t index)
{
    uint8_t entries[16 * 255];
    const size_t n = roll(m) % 8 ? roll(m) % 4 : 255;
    for (size_t i = 0; i < 2 * n; i++)
        tl_put_le64(entries + 8 * i, roll(m));
    put(m, &(struct tl_stf_record){.type = TL_STF_PAGE_TABLE_WALK,
                                   .walk = {roll(m), index, 4096, {entries, 16 * n}}});
}

static inline void put_event(struct maker *m, bool jump, uint64_t to)
{
    uint8_t fields[8 * 255] = {0};
    const uint64_t dice = roll(m);
    size_t n = dice % 5 == 0 ? 255 : dice % 5 - 1;
    uint64_t number = dice >> 8 & 15;
    if (dice % 3 == 0) {
        number = TL_STF_EVENT_MODE_CHANGE;
        n = 1 + dice % 2;
    } else if (dice % 7 == 0) {
        number |= TL_STF_EVENT_INTERRUPT;
    } else if (m->layout.event64) {
        number = dice >> 8 & 0xffffffffffff; /* more than fits in the short form */
    }
    for (size_t i = 0; i < n; i++)
        tl_put_le64(fields + 8 * i, roll(m));
    fields[0] &= 3;
    memset(fields + 1, 0, 7);
    put(m, &(struct tl_stf_record){.type = TL_STF_EVENT, .event = {number, {fields, 8 * n}}});
    if (!jump && number != TL_STF_EVENT_MODE_CHANGE)
        put(m, &(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET, .target = to});
}

static inline void put_microops(struct maker *m)
{
    for (uint64_t n = 1 + roll(m) % 20; n > 0; n--)
        put(m, &(struct tl_stf_record){.type = TL_STF_INST_MICROOP,
                                       .microop = {(uint8_t)(1 + roll(m) % 4), (uint32_t)roll(m)}});
}

/* A trace as a simulator writes it. */
static inline void put_trace(struct maker *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const uint64_t dice = roll(m);
        const bool jump = dice % 6 == 0;
        const uint64_t to = 0x1000 + (roll(m) & 0xffe);
        if (dice % 37 == 0)
            put(m, &(struct tl_stf_record){.type = TL_STF_COMMENT, .text = text_bytes("a note")});
        if (dice % 41 == 0)
            put(m, &(struct tl_stf_record){.type = TL_STF_PROCESS_ID_EXT, .process = {1, i, 3}});
        if (dice % 43 == 0)
            put(m, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = to ^ 0x40});
        if (jump)
            put(m, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = to});
        for (uint64_t k = dice >> 8 & 3; k > 0; k--)
            put_reg(m, (uint8_t)(1 + roll(m) % 4), (uint8_t)(1 + roll(m) % 3));
        if (dice % 11 == 0)
            put(m, &(struct tl_stf_record){.type = TL_STF_INST_READY_REG, .ready_reg = 7});
        if (dice % 67 == 0)
            put_walk(m, i);
        if (dice % 3 == 0)
            put_access(m);
        if (dice % 61 == 0)
            put_bus(m);
        if (dice % 47 == 0)
            put_event(m, jump, to);
        if (dice % 59 == 0)
            put_microops(m);
        if (jump)
            put(m, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x6f});
        else if (dice & 1 << 30)
            put(m, &(struct tl_stf_record){.type = TL_STF_INST_32,
                                           .opcode = dice & 1 << 29 ? 0 /* no such instruction */
                                                                    : 0x13});
        else
            put(m, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 0x0001});
    }
}

#endif
