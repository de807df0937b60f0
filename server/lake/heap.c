/* SPDX-License-Identifier: MIT */
/*
 * Reads how much memory malloc() holds and returns it to the system when much of it is free. It
 * remembers the size that the last trim reached, as trimming again would take time and free
 * nothing.
 */
#include "lake/heap.h"

#include "lake.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define SPARE   (16 << 20) /* free bytes kept at the end of a heap */
#define LARGEST (8 << 20)  /* larger allocations get pages of their own */
#define SLACK   (32u << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Lowest resident size since the heap was last trimmed: trimming cannot get below it. */
static uint64_t settled;

void tl_lake_share_heaps(void)
{
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_TRIM_THRESHOLD, SPARE);
    (void)mallopt(M_MMAP_THRESHOLD, LARGEST);
}

struct tl_heap_use tl_heap_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    unsigned long long size, resident, shared;
    struct tl_heap_use use = {.in_use = info.uordblks + info.hblkhd};
    FILE *const f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%llu %llu %llu", &size, &resident, &shared) == 3)
        use.resident = (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (f)
        fclose(f);
    return use;
}

void tl_heap_tidy(void)
{
    pthread_mutex_lock(&lock);
    const struct tl_heap_use use = tl_heap_use();
    if (use.resident < settled)
        settled = use.resident;
    if (use.resident > use.in_use + use.in_use / 4 + SLACK && use.resident > settled + SPARE) {
        (void)malloc_trim(SPARE);
        settled = tl_heap_use().resident;
    }
    pthread_mutex_unlock(&lock);
}
