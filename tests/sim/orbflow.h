/* SPDX-License-Identifier: MIT */
/* Encodes orbuculum's frames: a TPIU channel, bytes of it, a checksum, by COBS, and a 00. Pure
 * function, thread-safe. */
#ifndef TL_SIM_ORBFLOW_H
#define TL_SIM_ORBFLOW_H

#include "base/buf.h"

#include <string.h>

enum { TL_SIM_ORBFLOW_MAX = 4094 };

/* Append a frame with p[0..n), n ≤ TL_SIM_ORBFLOW_MAX, of `channel`. TL_NOMEM. */
TL_MUST_USE static inline int tl_sim_orbflow_add(struct tl_buf *out, uint8_t channel,
                                                 const uint8_t *p, size_t n)
{
    enum { LONGEST = 254 };
    uint8_t frame[TL_SIM_ORBFLOW_MAX + 2], sum = channel;
    frame[0] = channel;
    memcpy(frame + 1, p, n);
    for (size_t i = 0; i < n; i++)
        sum = (uint8_t)(sum + p[i]);
    frame[n + 1] = (uint8_t)-sum;
    int rc = TL_OK;
    for (size_t at = 0, end = n + 2; rc == TL_OK && at <= end;) {
        size_t run = 0;
        while (at + run < end && run < LONGEST && frame[at + run])
            run++;
        const uint8_t code = (uint8_t)(run + 1);
        rc = tl_buf_add(out, &code, 1);
        if (rc == TL_OK)
            rc = tl_buf_add(out, frame + at, run);
        at += run + (run < LONGEST);
        if (run == LONGEST && at == end)
            break;
    }
    return rc < 0 ? rc : tl_buf_add(out, &(uint8_t){0}, 1);
}

#endif
