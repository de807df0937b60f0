/* SPDX-License-Identifier: MIT */
/*
 * Nexus messages as RISC-V trace encoders send them: bytes with two flag bits each to fields.
 *
 * A byte has six bits of data (7:2) and MSEO (1:0): 00 the message goes on, 01 a variable field
 * ends, 11 the message ends, 10 is reserved. Fields are packed from the least significant bit;
 * a variable field ends with a byte.
 *
 * Pure functions, thread-safe. Source: RISC-V N-Trace 1.0, chapters 5 and 7; TCODEs 7, 24, 34 and
 * 35 as SiFive's encoders send them.
 */
#ifndef TL_RISCV_NEXUS_MESSAGE_H
#define TL_RISCV_NEXUS_MESSAGE_H

#include "base/bytes.h"

#include <stdbool.h>

/* Of a message with fields that are known, at most; the longest of the standard has 38. */
#define TL_NEXUS_BYTES 64

/* Counts that are larger make a message a bad one: of halfwords (I-CNT, the standard has 22 bits)
 * and of branches (RDATA), of repetitions (HREPEAT, B-CNT, 18 bits). */
#define TL_NEXUS_COUNT_MAX  UINT32_MAX
#define TL_NEXUS_REPEAT_MAX ((UINT32_C(1) << 18) - 1)

#define TL_NEXUS_MSEO(byte)   ((byte)&3u)
#define TL_NEXUS_GOES_ON      0u
#define TL_NEXUS_FIELD_END    1u
#define TL_NEXUS_RESERVED     2u
#define TL_NEXUS_MESSAGE_END  3u
#define TL_NEXUS_SRC_BITS_MAX 12u

enum tl_nexus_tcode {
    TL_NEXUS_OWNERSHIP = 2,
    TL_NEXUS_DIRECT = 3,
    TL_NEXUS_INDIRECT = 4,
    TL_NEXUS_DATA_ACQUISITION = 7,
    TL_NEXUS_ERROR = 8,
    TL_NEXUS_SYNC = 9,
    TL_NEXUS_DIRECT_SYNC = 11,
    TL_NEXUS_INDIRECT_SYNC = 12,
    TL_NEXUS_AUXILIARY_WRITE = 24,
    TL_NEXUS_RESOURCE_FULL = 27,
    TL_NEXUS_HIST = 28,
    TL_NEXUS_HIST_SYNC = 29,
    TL_NEXUS_REPEAT = 30,
    TL_NEXUS_CORRELATION = 33,
    TL_NEXUS_CIRCUIT = 34,
    TL_NEXUS_CIRCUIT_SYNC = 35,
    TL_NEXUS_VENDOR = 56, /* to 62 */
    TL_NEXUS_TCODES = 64
};

/* RCODE of ResourceFull; 8 and 9 are SiFive's. */
enum tl_nexus_full {
    TL_NEXUS_FULL_ICNT,
    TL_NEXUS_FULL_HISTORY,
    TL_NEXUS_FULL_REPEATED,
    TL_NEXUS_FULL_NOT_TAKEN = 8,
    TL_NEXUS_FULL_TAKEN
};

enum tl_nexus_field {
    TL_NEXUS_PROCESS,
    TL_NEXUS_ICNT,
    TL_NEXUS_BTYPE,
    TL_NEXUS_UADDR,
    TL_NEXUS_FADDR,
    TL_NEXUS_SYNC_REASON,
    TL_NEXUS_HISTORY,
    TL_NEXUS_RCODE,
    TL_NEXUS_RDATA,
    TL_NEXUS_HREPEAT,
    TL_NEXUS_BCNT,
    TL_NEXUS_EVCODE,
    TL_NEXUS_CDF,
    TL_NEXUS_ETYPE,
    TL_NEXUS_ECODE,
    TL_NEXUS_IDTAG,
    TL_NEXUS_DQDATA,
    TL_NEXUS_ADDR,
    TL_NEXUS_DATA,
    TL_NEXUS_CKSRC,
    TL_NEXUS_CKDF,
    TL_NEXUS_CKDATA0,
    TL_NEXUS_CKDATA1,
    TL_NEXUS_TSTAMP,
    TL_NEXUS_FIELDS
};

struct tl_nexus_message {
    uint64_t offset; /* of its first byte in the capture; set by the caller */
    uint32_t bytes;
    uint8_t tcode; /* enum tl_nexus_tcode */
    uint16_t src;
    /* Fields as sent, by enum tl_nexus_field; 0 if absent. Bits beyond 64 are dropped. */
    uint64_t field[TL_NEXUS_FIELDS];
    uint32_t has;      /* set of fields: 1 << enum tl_nexus_field */
    uint8_t addr_bits; /* bits sent of U-ADDR or F-ADDR */
};

static inline bool tl_nexus_has(const struct tl_nexus_message *m, enum tl_nexus_field field)
{
    return m->has >> field & 1;
}

/* Does the message contain everything that is needed to begin? */
static inline bool tl_nexus_is_sync(uint8_t tcode)
{
    static const uint64_t syncs =
        UINT64_C(1) << TL_NEXUS_SYNC | UINT64_C(1) << TL_NEXUS_DIRECT_SYNC |
        UINT64_C(1) << TL_NEXUS_INDIRECT_SYNC | UINT64_C(1) << TL_NEXUS_HIST_SYNC;
    return syncs >> (tcode & 63) & 1;
}

/*
 * Read a complete message: no byte has MSEO 10, and the last one is the first with 11. `room` bytes
 * from bytes.p on may be read; if that is a word more than the message, it need not be copied. A
 * message of a reserved code has no fields. Returns TL_BAD: fields are missing or too large, or it
 * begins with two bytes of zeros, which are memory that was not written. `out` is all zeros, or as
 * an earlier call left it, which saves the time to clear it.
 */
int tl_nexus_read(struct tl_nexus_message *out, struct tl_bytes bytes, size_t room,
                  unsigned src_bits);

/* Number of the source in a message's first bytes: enough for `src_bits`, or all there are. */
unsigned tl_nexus_source(struct tl_bytes bytes, unsigned src_bits);

/* Name of the message; of those that are not defined "Vendor" or "Reserved". */
const char *tl_nexus_name(uint8_t tcode);

/* Does a message of the code have fields that are known? */
static inline bool tl_nexus_is_defined(uint8_t tcode)
{
    static const uint64_t defined =
        UINT64_C(1) << TL_NEXUS_OWNERSHIP | UINT64_C(1) << TL_NEXUS_DIRECT |
        UINT64_C(1) << TL_NEXUS_INDIRECT | UINT64_C(1) << TL_NEXUS_DATA_ACQUISITION |
        UINT64_C(1) << TL_NEXUS_ERROR | UINT64_C(1) << TL_NEXUS_SYNC |
        UINT64_C(1) << TL_NEXUS_DIRECT_SYNC | UINT64_C(1) << TL_NEXUS_INDIRECT_SYNC |
        UINT64_C(1) << TL_NEXUS_AUXILIARY_WRITE | UINT64_C(1) << TL_NEXUS_RESOURCE_FULL |
        UINT64_C(1) << TL_NEXUS_HIST | UINT64_C(1) << TL_NEXUS_HIST_SYNC |
        UINT64_C(1) << TL_NEXUS_REPEAT | UINT64_C(1) << TL_NEXUS_CORRELATION |
        UINT64_C(1) << TL_NEXUS_CIRCUIT | UINT64_C(1) << TL_NEXUS_CIRCUIT_SYNC;
    return defined >> (tcode & 63) & 1;
}
/* Is it a code that N-Trace 1.0 leaves to later versions, whose messages are to be ignored? */
bool tl_nexus_is_reserved(uint8_t tcode);

/* Write the fields as "NAME=value …" with the standard's names; addresses are shifted to their
 * place. */
void tl_nexus_text(const struct tl_nexus_message *message, char *out, size_t size);

#endif
