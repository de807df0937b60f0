/* SPDX-License-Identifier: MIT */
/* Protocol messages to the structs of the public header. */
#ifndef TL_CLIENT_ROWS_H
#define TL_CLIENT_ROWS_H

#include "error.h"
#include "tracelake/v1/catalog.pb-c.h"

/* Copy a trace; NOMEM leaves `out` empty. */
TL_MUST_USE int tl_client_trace(struct tracelake_trace *out, const Tracelake__V1__Trace *from);
/* Free what is inside. */
void tl_client_trace_fini(struct tracelake_trace *trace);

#endif
