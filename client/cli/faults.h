/* SPDX-License-Identifier: MIT */
/*
 * Faults that a decode reports, to be shown at its end: the first ones by offset, and one for each
 * further reason, since what is wrong with an input as a whole is known only after many. Plain
 * data; not thread-safe.
 */
#ifndef TL_CLI_FAULTS_H
#define TL_CLI_FAULTS_H

#include "decode/decode.h"

enum { TL_FAULTS_SHOWN = 20, TL_FAULT_REASONS = 8 };

struct tl_fault {
    const struct tl_decode_stream *stream;
    uint64_t offset, bytes;
    char reason[160];
};

/* Zero-initialised: none. */
struct tl_faults {
    unsigned n;
    uint64_t lost; /* bytes of all of them */
    struct tl_fault shown[TL_FAULTS_SHOWN];
    struct tl_fault reasons[TL_FAULT_REASONS]; /* the first one reported of each */
    unsigned n_reasons;
};

/* Add a fault; the stream is borrowed until they are shown. */
void tl_faults_add(struct tl_faults *faults, const struct tl_decode_loss *loss);
/* Print them to stderr; `name`: of the input. */
void tl_faults_show(const struct tl_faults *faults, const char *name);

#endif
