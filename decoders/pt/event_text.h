/* SPDX-License-Identifier: MIT */
/* Text of an event, as in the reference's ptxed: "ptwrite: abcd", "exec mode: 64-bit". */
#ifndef TL_PT_EVENT_TEXT_H
#define TL_PT_EVENT_TEXT_H

#include "pt/event.h"

#define TL_PT_EVENT_TEXT 128 /* including the final NUL */

/* Write the text to `out` and return it. `with_ip`: append the IP, if known. */
char *tl_pt_event_text(const struct tl_pt_event *event, bool with_ip,
                       char out[static TL_PT_EVENT_TEXT]);

#endif
