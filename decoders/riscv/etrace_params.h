/* SPDX-License-Identifier: MIT */
/*
 * Parameters of a trace encoder (E-Trace 2.0 "Discovery of encoder parameters"): the widths of
 * packet fields and the sizes of the encoder's tables. They are not in the trace: the setup gives
 * them, as NAME_p= of a source.
 */
#ifndef TL_RISCV_ETRACE_PARAMS_H
#define TL_RISCV_ETRACE_PARAMS_H

#include "setup/setup.h"

/* Implementations, which differ in what the standard leaves to them. */
enum tl_etrace_unit {
    TL_ETRACE_REFERENCE, /* the standard's model */
    TL_ETRACE_PULP,      /* PULP rv_tracer */
    TL_ETRACE_ESP32      /* ESP32-C6 and H2: payload of E-Trace 1.x */
};

#define TL_ETRACE_TVECS 7 /* values of the privilege field that are not reserved */

struct tl_etrace_params {
    uint8_t unit;           /* enum tl_etrace_unit */
    uint8_t isa;            /* enum tl_isa: RV32 or RV64 */
    uint8_t iaddress_width; /* bits, 1 to 64 */
    uint8_t iaddress_lsb;   /* bits of an address that are not sent */
    uint8_t privilege_width;
    uint8_t ecause_width;
    uint8_t time_width;                           /* 0: packets carry no time */
    uint8_t context_width;                        /* 0: packets carry no context */
    uint8_t return_stack_size, call_counter_size; /* logarithms; 0: none */
    uint8_t irdepth_width;
    uint8_t bpred_size, cache_size; /* logarithms; 0: none */
    uint8_t f0s_width;
    uint8_t encoder_mode_width, ioptions_width;
    bool sijump;       /* the targets of jumps behind LUI and AUIPC are not reported */
    uint32_t ioptions; /* in force before the first support packet */
    /* Trap vector registers by privilege, as trace with implicit exceptions needs; 0: not known */
    uint64_t tvec[TL_ETRACE_TVECS];
};

/* Options of the trace, which support packets report. A set of bits. */
enum tl_etrace_option {
    TL_ETRACE_IMPLICIT_RETURN = 1 << 0,
    TL_ETRACE_IMPLICIT_EXCEPTION = 1 << 1,
    TL_ETRACE_FULL_ADDRESS = 1 << 2,
    TL_ETRACE_TARGET_CACHE = 1 << 3,
    TL_ETRACE_PREDICTION = 1 << 4,
    TL_ETRACE_SEQUENTIAL = 1 << 5
};

/*
 * Read the parameters of `source`, of those it does not name the standard's defaults. Returns
 * TL_UNSUPPORTED, with the parameter in `fail`, if a value is out of range.
 */
TL_MUST_USE int tl_etrace_params(struct tl_etrace_params *out, const struct tl_source *source,
                                 struct tl_fail *fail);

/* The options that the unit's `ioptions` field stands for. */
unsigned tl_etrace_options(const struct tl_etrace_params *params, uint32_t ioptions);

#endif
