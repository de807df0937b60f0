/* SPDX-License-Identifier: MIT */
/*
 * Header bytes: the packet class of each under a configuration, and the contents of atom packets.
 * Shared by the scalar and the unrolled packetizer and by the listing.
 *
 * Source: Arm IHI0064H table 6-4 and following; Arm DDI0487 chapter D6.
 */
#ifndef TL_ETM4_HEADERS_H
#define TL_ETM4_HEADERS_H

#include "etm4/config.h"

#include <stdint.h>

enum tl_etm4_class {
    TL_CLASS_RESERVED,     /* never a header */
    TL_CLASS_RESERVED_CFG, /* reserved in this configuration */
    TL_CLASS_EXTENSION,    /* 0x00: A-Sync, discard, overflow */
    TL_CLASS_ATOM,
    TL_CLASS_ADDR_MATCH,
    TL_CLASS_ADDR_SHORT,
    TL_CLASS_ADDR_LONG32,
    TL_CLASS_ADDR_LONG64,
    TL_CLASS_ADDR_CTX32,
    TL_CLASS_ADDR_CTX64,
    TL_CLASS_CONTEXT,
    TL_CLASS_TRACE_INFO,
    TL_CLASS_TIMESTAMP,
    TL_CLASS_EXCEPTION,
    TL_CLASS_CYCLES_F1,
    TL_CLASS_CYCLES_F2,
    TL_CLASS_CYCLES_F3,
    TL_CLASS_COMMIT,
    TL_CLASS_CANCEL_F1,
    TL_CLASS_CANCEL_F2,
    TL_CLASS_CANCEL_F3,
    TL_CLASS_MISPREDICT,
    TL_CLASS_EVENT,
    TL_CLASS_Q,
    TL_CLASS_SOURCE_MATCH,
    TL_CLASS_SOURCE_SHORT,
    TL_CLASS_SOURCE_LONG32,
    TL_CLASS_SOURCE_LONG64,
    TL_CLASS_ITE,
    TL_CLASS_COND_I_F1,
    TL_CLASS_COND_RES_F1,
    TL_CLASS_COND_PAIR,   /* conditional packets: header and one byte */
    TL_CLASS_COND_SINGLE, /* conditional packets: header only */
    TL_CLASS_DATA_MARKER,
    TL_CLASS_TRACE_ON,
    TL_CLASS_FUNCTION_RETURN,
    TL_CLASS_EXCEPTION_RETURN,
    TL_CLASS_TRANSACTION_START,
    TL_CLASS_TRANSACTION_COMMIT,
    TL_CLASS_IGNORE,
    TL_CLASS_TS_MARKER,
    TL_CLASSES
};

/* Classify every header byte under `config`. */
void tl_etm4_classify(uint8_t class_of[static 256], const struct tl_etm4_config *config);

/*
 * Atom packets, indexed by header - 0xc0: number of atoms in bits 31:24, their values from bit 0
 * (the oldest) up. 0: not an atom packet. Headers below 0xc0 are never atom packets.
 */
extern const uint32_t tl_etm4_atoms[64];

#define TL_ETM4_ATOM_FIRST 0xc0

#endif
