/* SPDX-License-Identifier: MIT */
/*
 * How names of functions are spelled in what the calling thread produces: demangled, which is the
 * default, or as in the files (mangled). The code that runs a request on a thread sets it, and
 * restores it at the end. All state is per thread.
 */
#ifndef TL_BASE_SPELLING_H
#define TL_BASE_SPELLING_H

#include <stdbool.h>

/* Returns the previous setting. */
bool tl_spelling_set_mangled(bool mangled);
bool tl_spelling_is_mangled(void);

#endif
