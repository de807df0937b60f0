/* SPDX-License-Identifier: MIT */
/*
 * Asks the system for huge pages where they pay. What is decoded once is mostly page faults, since
 * code that runs for the first time fills memory as fast as it is provided.
 */
#include "base/pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

void *tl_pages(size_t size)
{
    enum { LINE = 64 };
    const size_t whole = (size + TL_HUGE_PAGE - 1) & ~(TL_HUGE_PAGE - 1);
    const bool huge = whole - size <= TL_HUGE_PAGE / 2;
    void *const p = huge ? aligned_alloc(TL_HUGE_PAGE, whole) : aligned_alloc(LINE, size);
#ifdef MADV_HUGEPAGE
    if (p && huge)
        madvise(p, whole, MADV_HUGEPAGE); /* a hint: failure does not matter */
#endif
    return p;
}
