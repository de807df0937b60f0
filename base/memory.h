/* SPDX-License-Identifier: MIT */
/* How much memory this process may use. Thread-safe. */
#ifndef TL_BASE_MEMORY_H
#define TL_BASE_MEMORY_H

#include <stdint.h>

/* Bytes of the machine, or of the smallest control group that the process is in, if that is less.
 */
uint64_t tl_usable_memory(void);

/*
 * The limit in bytes of the control groups that the process is in, of version 1 or 2, whichever is
 * the smallest; UINT64_MAX: none. `root`: the folder in which proc/ and sys/ are, "" but in tests.
 */
uint64_t tl_memory_group_limit(const char *root);

#endif
