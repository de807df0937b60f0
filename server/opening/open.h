/* SPDX-License-Identifier: MIT */
/*
 * A lake on any storage system; lake.h has the others.
 */
#ifndef TL_OPENING_OPEN_H
#define TL_OPENING_OPEN_H

#include "base/err.h"
#include "lake.h"

struct tl_backend;

/* As tl_lake_open(), over a backend that the caller owns. */
TL_MUST_USE int tl_lake_open_on(struct tl_lake **out, struct tl_backend *backend,
                                const struct tl_lake_options *options, struct tl_fail *fail);

#endif
