/* SPDX-License-Identifier: MIT */
/*
 * The payload of an E-Trace packet (te_inst): bits to fields. A payload is shortened by dropping
 * top bits that repeat the one below them; reading it extends its last bit without end, so every
 * payload has all its fields. Pure functions, thread-safe.
 *
 * Source: E-Trace 2.0, chapter "Instruction trace encoder output packets"; for ESP32 the payload
 * of version 1.x, ESP32-C6 Technical Reference Manual, "RISC-V trace encoder".
 */
#ifndef TL_RISCV_ETRACE_PACKET_H
#define TL_RISCV_ETRACE_PACKET_H

#include "base/buf.h"
#include "riscv/etrace_params.h"

enum tl_etrace_kind {
    TL_ETRACE_START,    /* format 3, subformat 0: synchronisation */
    TL_ETRACE_TRAP,     /* 3.1 */
    TL_ETRACE_CONTEXT,  /* 3.2 */
    TL_ETRACE_SUPPORT,  /* 3.3 */
    TL_ETRACE_ADDRESS,  /* format 2 */
    TL_ETRACE_BRANCHES, /* format 1: outcomes, perhaps an address */
    TL_ETRACE_COUNT,    /* 0.0: number of branches predicted right, perhaps an address */
    TL_ETRACE_INDEX     /* 0.1: place in the jump target cache, perhaps outcomes */
};

/* How a number of branches ends (`branch_fmt`). */
enum tl_etrace_count_end {
    TL_ETRACE_COUNT_WRONG = 0,        /* behind them one that was predicted wrong; no address */
    TL_ETRACE_COUNT_ADDRESS = 2,      /* an address, behind a branch predicted right */
    TL_ETRACE_COUNT_ADDRESS_WRONG = 3 /* the address of a branch that was predicted wrong */
};

/* What happened when the trace stopped (`qual_status`). */
enum tl_etrace_qual {
    TL_ETRACE_NO_CHANGE = 0,
    TL_ETRACE_ENDED_REP = 1, /* the packet in front reports the last instruction */
    TL_ETRACE_LOST = 2,      /* packets were lost */
    TL_ETRACE_ENDED_NTR = 3  /* as 1, and it was reached behind an uninferable jump */
};

struct tl_etrace_packet {
    uint8_t kind;  /* enum tl_etrace_kind */
    uint16_t bits; /* of all fields: a payload that is not shortened has as many */
    bool has_address;
    bool is_full;     /* the address is one, not the difference to the last one */
    uint64_t address; /* in bytes */
    /* These differ from the bit in front of them, which is how they say yes: */
    bool notify, updiscon, irreport;
    uint32_t irdepth;   /* or irets */
    uint8_t branches;   /* outcomes in `map` */
    uint32_t map;       /* the oldest in bit 0; 1: not taken */
    uint32_t count;     /* COUNT: branches predicted right, of those given only by it */
    uint8_t branch_fmt; /* enum tl_etrace_count_end */
    uint32_t index;     /* INDEX */
    /* format 3: */
    bool branch; /* the instruction at `address` is no branch, or one that was not taken */
    uint8_t privilege;
    uint64_t time, context; /* if the parameters say that they exist */
    uint16_t ecause;
    bool interrupt;
    bool thaddr; /* `address` is the trap handler's; else that of the exception */
    bool has_tval;
    uint64_t tval;
    bool ienable, denable, dloss;
    uint8_t qual_status; /* enum tl_etrace_qual */
    uint8_t encoder_mode, doptions;
    uint32_t ioptions;
};

/*
 * Read a payload of at least 1 byte; members that packets of its kind do not have may keep what
 * they were. `options` (enum tl_etrace_option) are those in force. Returns TL_OK, or TL_BAD:
 * reserved values.
 */
TL_MUST_USE int tl_etrace_parse(struct tl_etrace_packet *out, const struct tl_etrace_params *params,
                                unsigned options, struct tl_bytes payload);

/* How a payload is shortened, which the standard leaves to the encoder. */
enum tl_etrace_length {
    TL_ETRACE_SHORTEST, /* as far as possible */
    TL_ETRACE_WHOLE,    /* not at all */
    TL_ETRACE_BETWEEN,
    TL_ETRACE_TOO_LONG /* longer than all fields: no encoder sends that */
};

/* Fields of support packets are the implementer's in part: there may be more than are known. */
#define TL_ETRACE_SUPPORT_BYTES 8u

static inline enum tl_etrace_length tl_etrace_length_of(const struct tl_etrace_packet *packet,
                                                        struct tl_bytes payload)
{
    const uint8_t *const p = payload.p;
    const size_t n = payload.n, whole = (packet->bits + 7u) / 8;
    if (n > (packet->kind == TL_ETRACE_SUPPORT ? TL_ETRACE_SUPPORT_BYTES : whole))
        return TL_ETRACE_TOO_LONG;
    if (n < 2 || p[n - 1] != (p[n - 2] & 0x80 ? 0xff : 0))
        return TL_ETRACE_SHORTEST;
    return n == whole ? TL_ETRACE_WHOLE : TL_ETRACE_BETWEEN;
}

/* Write the packet's name and fields for a listing, as "NAME field=value…"; returns `out`. */
char *tl_etrace_packet_text(const struct tl_etrace_packet *packet,
                            const struct tl_etrace_params *params, char *out, size_t size);

/* The same for a packet of data trace, whose fields are not read: "DATA payload=…", as hexadecimal
 * digits of its bytes. */
char *tl_etrace_data_text(struct tl_bytes payload, char *out, size_t size);

#endif
