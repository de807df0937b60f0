/* SPDX-License-Identifier: MIT */
/* The fake lake, compiled so that its own allocations never fail (unit/nomem.h). */
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
char *__real_strdup(const char *text);

#undef strdup
#define malloc __real_malloc
#define calloc __real_calloc
#define strdup __real_strdup

#include "unit/fake_lake.c"
