/* SPDX-License-Identifier: MIT */
/* Conversion of a position received from the server. */
#ifndef TL_CLIENT_POSITION_H
#define TL_CLIENT_POSITION_H

#include "tracelake.h"
#include "tracelake/v1/ranges.pb-c.h"

/* NULL `from` gives all zeros, since protobuf does not send a zero message. */
void tl_client_position(struct tracelake_position *out, const Tracelake__V1__Position *from);

#endif
