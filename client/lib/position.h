/* SPDX-License-Identifier: MIT */
/* A position as the server tells it. */
#ifndef TL_CLIENT_POSITION_H
#define TL_CLIENT_POSITION_H

#include "tracelake.h"
#include "tracelake/v1/ranges.pb-c.h"

/* NULL: all zero, which is not sent. */
void tl_client_position(struct tracelake_position *out, const Tracelake__V1__Position *from);

#endif
