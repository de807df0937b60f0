/* SPDX-License-Identifier: MIT */
/* The options --insn A:B and --time A:B: a range of a stream, in one of its units. */
#ifndef TL_TERMINAL_SPAN_H
#define TL_TERMINAL_SPAN_H

#include "terminal/remote.h"

/* At most one is given. Zero-initialised: all of the stream. */
struct tl_span {
    struct tl_arg_range insn;
    struct tl_time_range time;
};

/* For a command's argument table. */
#define TL_SPAN_ARGS(s)                                                                            \
    {"insn",    0,     TL_ARG_RANGE,                                                               \
     &(s).insn, "A:B", "only instructions A to B-1 (A: to the end, :B from the start)"},           \
    {                                                                                              \
        "time", 0, TL_ARG_TIMES, &(s).time, "A:B",                                                 \
            "only this time: 1.5ms:2ms, 59.7ms:+200us, or in the stream's unit"                    \
    }

/* The option --weight, and what it says: TL_ARGS_GO, or the exit status of a reported error.
 * `*weight` is unchanged if `text` is NULL. `cycles`: also these, which are counted in some traces.
 */
#define TL_WEIGHTS_ARG(variable, choices, standard)                                                \
    {                                                                                              \
        "weight", 0, TL_ARG_TEXT, &(variable), choices, "what counts (default: " standard ")"      \
    }
#define TL_WEIGHT_ARG(variable, standard) TL_WEIGHTS_ARG(variable, "time|insns", standard)
#define TL_CYCLES_ARG(variable, standard) TL_WEIGHTS_ARG(variable, "insns|time|cycles", standard)
int tl_weight_of(const char *command, const char *text, bool cycles, enum tracelake_weight *weight);

/* TL_ARGS_GO, or the exit status if both are given or nothing is in the range, which is reported.
 */
int tl_span_check(const char *command, const struct tl_span *span);
/* The range of a stream, for functions that take any unit. It borrows `name`. */
struct tracelake_range tl_span_range(const struct tl_span *span, const struct tl_remote_name *name);
/* TL_ARGS_GO, or the exit status if it begins behind the end of the named stream, or of all streams
 * if none is named, which is reported. */
int tl_span_there(const struct tl_span *span, struct tracelake *lake,
                  const struct tl_remote_name *name);
/* Check that, and convert it to instructions [from, to), asking the server if it is in time.
 * TL_ARGS_GO, or the exit status of a reported error. */
int tl_span_insns(const struct tl_span *span, struct tracelake *lake,
                  const struct tl_remote_name *name, uint64_t *from, uint64_t *to);
/* The same for a single time. */
int tl_span_insn_at(const struct tl_time_arg *time, struct tracelake *lake,
                    const struct tl_remote_name *name, uint64_t *insn);

#endif
