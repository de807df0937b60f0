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
    TL_ETRACE_ESP32,     /* ESP32-C6 and H2: payload of E-Trace 1.x */
    TL_ETRACE_2_1        /* the standard's support packet of E-Trace 2.1, which has sizes */
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
    uint8_t irdepth_width;                        /* of irdepth, or irets */
    bool irets;                                   /* packets have irets instead of irdepth */
    uint8_t bpred_size, cache_size;               /* logarithms; 0: none */
    uint8_t f0s_width;
    uint8_t encoder_mode_width, ioptions_width;
    bool from_sync; /* differences of addresses count from the last one in a packet of format 3 */
    bool sijump;    /* the targets of jumps behind LUI and AUIPC are not reported */
    uint32_t ioptions; /* in force before the first support packet */
    bool has_ioptions; /* … as the setup says; otherwise they are not known */
    /* Trap vector registers by privilege, as trace with implicit exceptions needs; 0: not known */
    uint64_t tvec[TL_ETRACE_TVECS];
};

/* Options of the trace, which support packets report. A set of bits. Those of E-Trace 2.1 include
 * sizes of tables and fields, which are then in the bits above. */
enum tl_etrace_option {
    TL_ETRACE_IMPLICIT_RETURN = 1 << 0,
    TL_ETRACE_IMPLICIT_EXCEPTION = 1 << 1,
    TL_ETRACE_FULL_ADDRESS = 1 << 2,
    TL_ETRACE_TARGET_CACHE = 1 << 3,
    TL_ETRACE_PREDICTION = 1 << 4,
    TL_ETRACE_SEQUENTIAL = 1 << 5,
    TL_ETRACE_NO_RESYNC = 1 << 6, /* packets of format 3 do not make the encoder forget */
    TL_ETRACE_IRETS = 1 << 7,     /* Implicit Return extension */
    TL_ETRACE_SIZED = 1 << 8      /* there are sizes */
};

/* Largest logarithms that fit in a support packet of E-Trace 2.1: of the branch predictor and the
 * jump target cache. */
#define TL_ETRACE_TABLE_MAX 7

/*
 * Read the parameters of `source`, of those it does not name the standard's defaults. Returns
 * TL_UNSUPPORTED, with the parameter in `fail`, if a value is out of range.
 */
TL_MUST_USE int tl_etrace_params(struct tl_etrace_params *out, const struct tl_source *source,
                                 struct tl_fail *fail);

/* Replace the sizes in `params`, which the setup gave, by those of `options`, if it has any;
 * limited to what TL_ETRACE_2_1 can have. False: a field would be wider than 64 bits. */
bool tl_etrace_take_sizes(struct tl_etrace_params *params, unsigned options);

/* The options that the unit's `ioptions` field stands for. */
unsigned tl_etrace_options(const struct tl_etrace_params *params, uint32_t ioptions);

#endif
