/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 and ETE packets with decompressed addresses: the output of the packet layer and input of
 * the flow layer. Address compression depends only on packets (three address registers), so it is
 * undone here; everything that needs the program image is left to the flow layer.
 *
 * Source: Arm IHI0064H (ETMv4.0 to 4.6) chapter 6; Arm DDI0608/DDI0487 chapter D6 (ETE).
 */
#ifndef TL_ETM4_PACKET_H
#define TL_ETM4_PACKET_H

#include <assert.h>
#include <stdint.h>

enum tl_etm4_type {
    TL_ETM4_NOT_SYNC, /* value = bytes skipped while looking for A-Sync */
    TL_ETM4_ASYNC,
    TL_ETM4_TRACE_INFO, /* sets the address registers and the timestamp to zero; value = commit
                           window | speculation depth << 32; value2 = cycle count threshold;
                           n = INFO bits */
    TL_ETM4_TRACE_ON,
    TL_ETM4_DISCARD,
    TL_ETM4_OVERFLOW,
    TL_ETM4_TIMESTAMP, /* value = full timestamp; value2 = cycle count if HAS_COUNT */
    TL_ETM4_TS_MARKER,
    TL_ETM4_CYCLE_COUNT, /* value = cycles if HAS_COUNT (else unknown); value2 = commits if
                            HAS_COMMIT */
    TL_ETM4_COMMIT,      /* value = P0 elements committed */
    TL_ETM4_CANCEL, /* value = P0 elements cancelled; n, value2 = preceding atoms as in ATOM (F2:
                       then a mispredict, F3: see MISPREDICT flag) */
    TL_ETM4_MISPREDICT, /* n, value2 = preceding atoms as in ATOM */
    TL_ETM4_ATOM,       /* n = 1..64 atoms in value: bit 0 is the oldest, 1 = E, 0 = N */
    TL_ETM4_ADDRESS,    /* value = address; IS, HAS_CONTEXT: with a context */
    TL_ETM4_CONTEXT,    /* HAS_CONTEXT clear: 'no change' (P=0) */
    TL_ETM4_Q,          /* value2 = instructions if HAS_COUNT; value = address if HAS_ADDRESS */
    TL_ETM4_EVENT,      /* value = event bits 0..3 */
    TL_ETM4_EXCEPTION,  /* value = type number; n = E1:E0; see EXCEPTION flags */
    TL_ETM4_EXCEPTION_RETURN,
    TL_ETM4_FUNCTION_RETURN,
    TL_ETM4_IGNORE,
    TL_ETM4_SOURCE_ADDRESS, /* value = address, IS */
    TL_ETM4_PE_RESET,
    TL_ETM4_TRANSACTION_START,
    TL_ETM4_TRANSACTION_COMMIT,
    TL_ETM4_ITE,         /* n = exception level, value = payload */
    TL_ETM4_CONDITIONAL, /* conditional instruction, flush and result packets: listed only */
    TL_ETM4_DATA_MARKER, /* numbered and unnumbered data-synchronisation markers: listed only */
    TL_ETM4_BAD, /* reserved header or sequence; value = 0 reserved header, 1 reserved in this
                    configuration, 2 bad sequence; decoding resumes at the next A-Sync */
    TL_ETM4_INCOMPLETE, /* the stream ended inside a packet */
    TL_ETM4_TYPES
};

enum tl_etm4_flag {
    TL_ETM4_HAS_CONTEXT = 1 << 0, /* EL, SF, NS, NSE are valid */
    TL_ETM4_HAS_CTXID = 1 << 1,   /* context_id is valid */
    TL_ETM4_HAS_VMID = 1 << 2,    /* vmid is valid */
    TL_ETM4_SF = 1 << 3,          /* AArch64 */
    TL_ETM4_NS = 1 << 4,          /* non-secure */
    TL_ETM4_NSE = 1 << 5,         /* with NS: Realm and Root */
    TL_ETM4_IS1 = 1 << 6,         /* address IS1 form: T32 in AArch32 */
    TL_ETM4_HAS_COUNT = 1 << 7,
    TL_ETM4_HAS_COMMIT = 1 << 8,
    TL_ETM4_HAS_ADDRESS = 1 << 9,
    TL_ETM4_IS_MISPREDICT = 1 << 10,     /* CANCEL F2/F3: a mispredict precedes it */
    TL_ETM4_M_TAIL_CHAIN = 1 << 11,      /* EXCEPTION, M profile: fault pending, tail-chained */
    TL_ETM4_EL_SHIFT = 12,               /* bits 13:12: exception level */
    TL_ETM4_64BIT = 1 << 14,             /* ADDRESS: 64-bit form (else 32-bit, upper half kept) */
    TL_ETM4_EXACT = 1 << 15,             /* ADDRESS, Q: exact match; n = register 0..2 */
    TL_ETM4_TRANSACTION_FAILED = 1 << 16 /* EXCEPTION of ETE, no address follows */
};

struct tl_etm4_packet {
    uint8_t type;   /* enum tl_etm4_type */
    uint8_t header; /* the header byte */
    uint8_t n;
    uint8_t bits;    /* ADDRESS, SOURCE_ADDRESS, Q: address bits in the packet, for listings */
    uint32_t flags;  /* enum tl_etm4_flag */
    uint64_t offset; /* file offset of the header byte */
    uint64_t value;
    union {
        uint64_t value2;
        struct {
            uint32_t context_id;
            uint32_t vmid;
        };
    };
};
static_assert(sizeof(struct tl_etm4_packet) == 32, "two to a cache line");

#endif
