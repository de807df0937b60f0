/* SPDX-License-Identifier: MIT */
/* Why a trace cannot be followed: the reference decoder's errors and their texts. Header only. */
#ifndef TL_PT_ERROR_H
#define TL_PT_ERROR_H

#include "pt/time.h"

enum tl_pt_error {
    TL_PT_OK,
    TL_PT_EOS,         /* end of trace */
    TL_PT_BAD_OPCODE,  /* unknown packet opcode */
    TL_PT_BAD_PACKET,  /* invalid packet payload */
    TL_PT_BAD_CONTEXT, /* packet not allowed here */
    TL_PT_BAD_QUERY,   /* the program needs another kind of packet than the trace has */
    TL_PT_NO_IP,       /* execution continues at a suppressed IP */
    TL_PT_IP_SUPPRESSED_ERROR,
    TL_PT_NO_MAP,     /* the instruction's address is not in the image */
    TL_PT_BAD_INSN,   /* undecodable instruction */
    TL_PT_NO_TIME,    /* no time information yet */
    TL_PT_NO_RETURN,  /* compressed return without a call */
    TL_PT_BAD_RETURN, /* compressed return with a not-taken TNT bit */
    TL_PT_BAD_STATUS, /* PSB+ contradicts the known state */
    TL_PT_NO_ENABLE,  /* tracing is disabled where it must be enabled */
    TL_PT_BAD_CONFIG,
    TL_PT_BAD_CPU,
    TL_PT_OVERFLOW_ERROR,
    TL_PT_INTERNAL,
    TL_PT_ERRORS
};

static inline const char *tl_pt_error_text(enum tl_pt_error error)
{
    static const char *const texts[TL_PT_ERRORS] = {
        [TL_PT_OK] = "OK",
        [TL_PT_EOS] = "reached end of trace stream",
        [TL_PT_BAD_OPCODE] = "unknown opcode",
        [TL_PT_BAD_PACKET] = "unknown packet",
        [TL_PT_BAD_CONTEXT] = "unexpected packet context",
        [TL_PT_BAD_QUERY] = "trace stream does not match query",
        [TL_PT_NO_IP] = "no ip",
        [TL_PT_IP_SUPPRESSED_ERROR] = "ip has been suppressed",
        [TL_PT_NO_MAP] = "no memory mapped at this address",
        [TL_PT_BAD_INSN] = "unknown instruction",
        [TL_PT_NO_TIME] = "no timing information",
        [TL_PT_NO_RETURN] = "compressed return without call",
        [TL_PT_BAD_RETURN] = "bad compressed return",
        [TL_PT_BAD_STATUS] = "bad status update",
        [TL_PT_NO_ENABLE] = "expected tracing enabled event",
        [TL_PT_BAD_CONFIG] = "bad configuration",
        [TL_PT_BAD_CPU] = "unknown cpu",
        [TL_PT_OVERFLOW_ERROR] = "overflow",
        [TL_PT_INTERNAL] = "internal error",
    };
    return error < TL_PT_ERRORS ? texts[error] : texts[TL_PT_INTERNAL];
}

/* Error for a result of tl_pt_parse(). */
static inline enum tl_pt_error tl_pt_error_of(int parsed)
{
    return parsed > 0                 ? TL_PT_OK
           : parsed == TL_AGAIN       ? TL_PT_EOS
           : parsed == TL_UNSUPPORTED ? TL_PT_BAD_OPCODE
                                      : TL_PT_BAD_PACKET;
}

static inline enum tl_pt_error tl_pt_error_of_time(enum tl_pt_time_error error)
{
    switch (error) {
    case TL_PT_TIME_OK:
        return TL_PT_OK;
    case TL_PT_TIME_BAD_PACKET:
        return TL_PT_BAD_PACKET;
    case TL_PT_TIME_BAD_CONTEXT:
        return TL_PT_BAD_CONTEXT;
    case TL_PT_TIME_BAD_CONFIG:
        return TL_PT_BAD_CONFIG;
    case TL_PT_TIME_NO_TIME:
        return TL_PT_NO_TIME;
    default:
        return TL_PT_INTERNAL;
    }
}

#endif
