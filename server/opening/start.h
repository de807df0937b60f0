/* SPDX-License-Identifier: MIT */
/*
 * Work on what an earlier run of the server left.
 */
#ifndef TL_OPENING_START_H
#define TL_OPENING_START_H

#include "base/err.h"

struct tl_lake;

/* Start on unfinished work, once the catalog is open. */
TL_MUST_USE int tl_lake_begin(struct tl_lake *lake, struct tl_fail *fail);

#endif
