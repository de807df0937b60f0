/* SPDX-License-Identifier: MIT */
/*
 * Control of malloc()'s memory. Memory freed in the middle of a heap stays resident until it is
 * trimmed, so a server that was busy once would keep it forever. Thread-safe.
 */
#ifndef TL_LAKE_HEAP_H
#define TL_LAKE_HEAP_H

#include <stdint.h>

struct tl_heap_use {
    uint64_t in_use;   /* bytes allocated */
    uint64_t resident; /* anonymous memory of the process, including stacks */
};

/* Source: mallinfo2(3), proc(5) "statm". Zeros if the system does not provide them. */
struct tl_heap_use tl_heap_use(void);

/*
 * Return free memory to the system, if it is much more than what is in use. Takes some microseconds
 * if there is nothing to do, and a millisecond per 10 MB released. To be called about once a
 * second.
 */
void tl_heap_tidy(void);

#endif
