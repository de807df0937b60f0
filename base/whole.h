/* SPDX-License-Identifier: MIT */
/* Reading and writing of all bytes, not of some: after interruptions it is gone on. Thread-safe. */
#ifndef TL_BASE_WHOLE_H
#define TL_BASE_WHOLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

TL_C_BEGIN

/* Returns TL_EOF: the file ends before; TL_IO: see errno. */
TL_MUST_USE int tl_read_at(int fd, void *p, size_t n, uint64_t offset);
/* Returns TL_IO: see errno. */
TL_MUST_USE int tl_write_at(int fd, const void *p, size_t n, uint64_t offset);
/* False: see errno. Without bytes `p` may be NULL. */
TL_MUST_USE bool tl_write_all(FILE *file, const void *p, size_t n);

TL_C_END

#endif
