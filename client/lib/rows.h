/* SPDX-License-Identifier: MIT */
/* Conversion of protocol messages to the structs of the public header. */
#ifndef TL_CLIENT_ROWS_H
#define TL_CLIENT_ROWS_H

#include "error.h"
#include "tracelake/v1/catalog.pb-c.h"

/* Copy a trace; on NOMEM `out` is left empty. */
TL_MUST_USE int tl_client_trace(struct tracelake_trace *out, const Tracelake__V1__Trace *from);
/* Free the members. */
void tl_client_trace_fini(struct tracelake_trace *trace);

#endif
