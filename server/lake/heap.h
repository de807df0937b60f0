/* SPDX-License-Identifier: MIT */
/*
 * Memory of the process as malloc() keeps it. What is freed in the middle of a heap stays resident
 * until it is trimmed: for a server that was busy once, for ever. Thread-safe.
 */
#ifndef TL_LAKE_HEAP_H
#define TL_LAKE_HEAP_H

#include <stdint.h>

struct tl_heap_use {
    uint64_t in_use;   /* bytes allocated */
    uint64_t resident; /* anonymous memory of the process, stacks included */
};

/* Source: mallinfo2(3), proc(5) "statm". Zeros where the system does not tell. */
struct tl_heap_use tl_heap_use(void);

/*
 * Give back what is free, where it is much more than what is in use. Takes some microseconds where
 * there is nothing to do, and a millisecond for every 10 MB that go. To be called about once a
 * second.
 */
void tl_heap_tidy(void);

#endif
