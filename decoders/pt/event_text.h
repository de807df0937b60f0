/* SPDX-License-Identifier: MIT */
/* An event in words, as the reference's ptxed says it: "ptwrite: abcd", "exec mode: 64-bit". */
#ifndef TL_PT_EVENT_TEXT_H
#define TL_PT_EVENT_TEXT_H

#include "pt/event.h"

#define TL_PT_EVENT_TEXT 128 /* with the final NUL */

/* Into `out`, which is returned. `with_ip`: and where, if that is known. */
char *tl_pt_event_text(const struct tl_pt_event *event, bool with_ip,
                       char out[static TL_PT_EVENT_TEXT]);

#endif
