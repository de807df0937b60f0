/* SPDX-License-Identifier: MIT */
/*
 * What a decoder of Nexus messages must know of the encoder: fields of the Trace Control Interface,
 * and what differs between cores. Pure function, thread-safe.
 */
#ifndef TL_RISCV_NEXUS_CONFIG_H
#define TL_RISCV_NEXUS_CONFIG_H

#include "setup/setup.h"

#define TL_NEXUS_MODE_BTM 3 /* trTeInstMode */
#define TL_NEXUS_MODE_HTM 6

struct tl_nexus_config {
    bool sifive;  /* SiFive's dialect */
    uint8_t mode; /* trTeInstMode: 3 branch trace (BTM), 6 history trace (HTM); 0: not known */
    bool wide;    /* 64-bit addresses */
    bool extends; /* trTeInstExtendAddrMSB */
    /* Bits of an address that are real, the top one of which is its sign; 64: all (32 if not
     * `wide`) */
    uint8_t address_bits;
    bool jumps;     /* trTeInstEnAllJumps: direct jumps are told like taken branches */
    bool sequences; /* trTeInstEnSequentialJump: jumps behind LUI and AUIPC are not told */
    bool returns;   /* returns may be left out: trTeInstImplicitReturnMode, or it is unknown */
    uint8_t src_bits;
    uint8_t time_bits; /* width of timestamps; 64: they do not wrap */
};

/* Returns TL_UNSUPPORTED with the register in `fail`: a value is out of range. */
TL_MUST_USE int tl_nexus_configure(struct tl_nexus_config *out, const struct tl_source *source,
                                   bool wide, struct tl_fail *fail);

#endif
