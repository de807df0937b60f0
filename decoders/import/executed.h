/* SPDX-License-Identifier: MIT */
/*
 * What a model or a simulated core says that it executed, instruction by instruction, as STF: for
 * logs of RISC-V. Not thread-safe.
 */
#ifndef TL_IMPORT_EXECUTED_H
#define TL_IMPORT_EXECUTED_H

#include "base/err.h"
#include "isa/isa.h"
#include "stf/writer.h"

#define TL_EXECUTED_WRITES 8

struct tl_executed_write {
    uint16_t number;
    uint8_t meta; /* of INST_REG */
    uint64_t value;
};

struct tl_executed_insn {
    uint64_t pc;
    uint32_t opcode;
    unsigned size;          /* bytes; 0: there is none */
    bool is_commit, stores; /* `stores`: the following are known */
    uint64_t store_address, store_value;
    unsigned store_size; /* bytes, 1 to 8 */
    struct tl_executed_write writes[TL_EXECUTED_WRITES];
    unsigned n_writes;
    bool traps; /* an exception follows */
    uint64_t cause;
};

/* All zero but for `fail`: ready to use. */
struct tl_executed {
    struct tl_stf_writer writer;
    struct tl_fail *fail;
    /* Not written yet; size 0: none. Where one goes to is told by those behind it. */
    struct tl_executed_insn before, last;
    uint64_t count;
    enum tl_isa isa;
    bool begun;
};

/* A register was written: TL_STF_REG_INT, _FP or _CSR. More than TL_EXECUTED_WRITES are dropped. */
void tl_executed_write(struct tl_executed_insn *insn, unsigned type, uint64_t number,
                       uint64_t value);

/* Another instruction. The first one decides on the header: `is_64`, and `generator`, the log's
 * kind. Returns TL_NOMEM, or the writer's errors. */
TL_MUST_USE int tl_executed_add(struct tl_executed *to, const struct tl_executed_insn *insn,
                                bool is_64, const char *generator);

/* Nothing follows: append all of it to `out`. TL_BAD, without a text: there was no instruction. */
TL_MUST_USE int tl_executed_finish(struct tl_executed *to, struct tl_buf *out);
void tl_executed_fini(struct tl_executed *to);

#endif
