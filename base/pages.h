/* SPDX-License-Identifier: MIT */
/* Memory that is filled soon, with few page faults. Thread-safe. */
#ifndef TL_BASE_PAGES_H
#define TL_BASE_PAGES_H

#include <stddef.h>

#define TL_HUGE_PAGE ((size_t)2 << 20)

/*
 * `size` bytes, a multiple of 64, from an address that is one, too. From half of a huge page on
 * they are whole huge pages, if the system has them: one page fault instead of 512, for up to 1 MiB
 * of memory that is not used. For free() and realloc(); NULL: out of memory.
 */
void *tl_pages(size_t size);

#endif
