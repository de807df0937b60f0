/* SPDX-License-Identifier: MIT */
/*
 * Envelopes of E-Trace packets: bytes to frames.
 *
 *   encap  header: length 5 bits, flow 2, extend 1. Source number, timestamp if `extend`, type,
 *          payload; bits run on. Length 0: a null packet, a single byte
 *   smi    header: length 5, type 2, time tag 1. Time of 16 bits if so, hart, payload
 *   esp32  header: length 5 (of everything), 3 zeros; running number 16, payload. 0: an empty byte
 *   pulp   records of 40 bytes, last byte first: header as encap, timestamp 64, payload
 *
 * Pure functions, thread-safe.
 *
 * Source: Unformatted Trace & Diagnostic Data Packet Encapsulation for RISC-V 1.0.0; ESP32-C6
 * Technical Reference Manual, "RISC-V trace encoder".
 */
#ifndef TL_RISCV_ETRACE_ENVELOPE_H
#define TL_RISCV_ETRACE_ENVELOPE_H

#include "base/bytes.h"
#include "base/state.h"
#include "setup/setup.h"

#define TL_ETRACE_FRAME_MAX 64 /* bytes of a frame, at most */
#define TL_ETRACE_PAYLOAD   32 /* bytes of a payload, at most */

enum tl_etrace_wrapping {
    TL_ETRACE_ENCAP,
    TL_ETRACE_SMI,
    TL_ETRACE_INDEXED, /* esp32 */
    TL_ETRACE_RECORDS  /* pulp */
};

struct tl_etrace_envelope {
    uint8_t wrapping;  /* enum tl_etrace_wrapping */
    uint8_t src_bits;  /* up to 16 */
    uint8_t ts_bytes;  /* up to 8 */
    uint8_t type_bits; /* up to 8 */
};

struct tl_etrace_frame {
    uint64_t offset; /* of its first byte; set by the caller */
    unsigned size;   /* bytes of the frame */
    uint16_t src;
    uint16_t index; /* esp32: running number */
    bool is_data;   /* not instruction trace */
    bool is_bad;    /* reserved values */
    bool has_time;
    uint8_t time_bits;
    uint64_t time;
    struct tl_bytes payload; /* empty: a null packet */
    uint8_t bytes[TL_ETRACE_PAYLOAD];
};

/* Is a frame what the trace could contain? */
enum tl_etrace_sense {
    TL_ETRACE_SENSE,    /* it makes sense */
    TL_ETRACE_STRANGER, /* a source that has not been seen and is not configured */
    TL_ETRACE_NONSENSE
};

/* Take the envelope from the setup's format and options. Returns TL_USAGE: out of range. */
TL_MUST_USE int tl_etrace_envelope(struct tl_etrace_envelope *out, const struct tl_setup *setup,
                                   struct tl_fail *fail);

/* The standard's envelope, of a source of another container: its widths are keys of the source. */
TL_MUST_USE int tl_etrace_source_envelope(struct tl_etrace_envelope *out,
                                          const struct tl_source *source, struct tl_fail *fail);

/*
 * Read the frame that `in` begins with. Returns its size, or TL_AGAIN: more bytes are needed.
 * `out->payload` points into `in` or `out`.
 */
int tl_etrace_frame_read(struct tl_etrace_frame *out, const struct tl_etrace_envelope *envelope,
                         struct tl_bytes in);

void tl_etrace_frame_state(struct tl_etrace_frame *frame, struct tl_state *state);

#endif
