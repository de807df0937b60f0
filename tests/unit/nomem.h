/* SPDX-License-Identifier: MIT */
/*
 * Failing allocations, one place after another: for all allocations of a scenario, each place in
 * the code (identified by its call stack) gets NULL once, in a separate run of the scenario. For
 * programs linked with malloc() and similar functions wrapped (tests/unit/CMakeLists.txt): only
 * calls from tracelake itself are wrapped, not those inside libraries.
 *
 * A scenario returns an error code. In each run it must end, free all memory, and either return
 * TL_NOMEM or have continued without the allocation; in that case its result must equal that of an
 * undisturbed run.
 */
#ifndef TL_TESTS_NOMEM_H
#define TL_TESTS_NOMEM_H

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define NOMEM_DEPTH 7 /* callers that identify a place */
#define NOMEM_SITES 8192
#define NOMEM_LIVE  (1u << 18) /* live allocations, at most half of it; a power of two */

enum nomem_mode { NOMEM_OFF, NOMEM_RECORD, NOMEM_FAIL };

static struct {
    pthread_mutex_t lock;
    enum nomem_mode mode;
    bool given;  /* for a library, which frees it: only ./dev asan detects leaks */
    bool others; /* only allocations of threads other than the main one */
    bool closed; /* for now, nothing is counted or fails */
    bool again;  /* everything after the failing one also fails */
    pthread_t main;
    const void *outside; /* in call stacks: the caller of nomem_once() */
    uint64_t sites[NOMEM_SITES];
    const void *firsts[NOMEM_SITES]; /* the innermost caller of each */
    size_t n;
    uint64_t site;     /* the one that fails */
    const void *first; /* its innermost caller */
    bool failed;
    void *frames[NOMEM_DEPTH]; /* of the one that failed */
    size_t live;
    void *pieces[NOMEM_LIVE]; /* allocations of a scenario that it has not freed, by address */
} nomem = {.lock = PTHREAD_MUTEX_INITIALIZER};

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
int __wrap_asprintf(char **out, const char *format, ...);
ZSTD_CCtx *__real_ZSTD_createCCtx(void);
ZSTD_DCtx *__real_ZSTD_createDCtx(void);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
void __wrap_free(void *p);

/* Callers of the wrapped function. */
static __attribute__((noinline)) uint64_t nomem_site(void **callers)
{
    enum { OWN = 3 };
    void *frames[NOMEM_DEPTH + OWN] = {0};
    backtrace(frames, NOMEM_DEPTH + OWN);
    memcpy(callers, frames + OWN, NOMEM_DEPTH * sizeof *callers);
    uint64_t hash = 1;
    for (int i = 0; i < NOMEM_DEPTH && callers[i] != nomem.outside; i++)
        hash = (hash ^ (uintptr_t)callers[i]) * 0x9e3779b97f4a7c15u;
    return hash;
}

/* Can it be the one that fails, or behind it? The call stack, which takes longer than most of what
 * is tested, decides the rest. */
static inline bool nomem_may_fail(const void *caller)
{
    return nomem.mode == NOMEM_RECORD || __atomic_load_n(&nomem.failed, __ATOMIC_RELAXED) ||
           caller == nomem.first;
}

/* Must this one fail? `caller`: of the wrapped function. */
static __attribute__((noinline)) bool nomem_fails(const void *caller)
{
    void *callers[NOMEM_DEPTH];
    if (nomem.mode == NOMEM_OFF || __atomic_load_n(&nomem.closed, __ATOMIC_ACQUIRE) ||
        (nomem.others && pthread_equal(pthread_self(), nomem.main)) || !nomem_may_fail(caller))
        return false;
    if (__atomic_load_n(&nomem.failed, __ATOMIC_RELAXED))
        return nomem.again;
    const uint64_t site = nomem_site(callers);
    bool fails = false;
    pthread_mutex_lock(&nomem.lock);
    if (nomem.mode == NOMEM_RECORD) {
        size_t i = 0;
        while (i < nomem.n && nomem.sites[i] != site)
            i++;
        if (i == nomem.n && nomem.n < NOMEM_SITES) {
            nomem.firsts[nomem.n] = caller;
            nomem.sites[nomem.n++] = site;
        }
    } else if (nomem.mode == NOMEM_FAIL) {
        fails = nomem.failed ? nomem.again : site == nomem.site;
        if (fails && !nomem.failed)
            memcpy(nomem.frames, callers, sizeof callers);
        if (fails)
            __atomic_store_n(&nomem.failed, true, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&nomem.lock);
    return fails;
}

static size_t nomem_place(const void *p)
{
    size_t i = (size_t)((uintptr_t)p * 0x9e3779b97f4a7c15u >> 40) % NOMEM_LIVE;
    while (nomem.pieces[i] && nomem.pieces[i] != p)
        i = (i + 1) % NOMEM_LIVE;
    return i;
}

static void *nomem_took(void *p)
{
    if (!p || nomem.mode == NOMEM_OFF)
        return p;
    pthread_mutex_lock(&nomem.lock);
    if (nomem.live < NOMEM_LIVE / 2) {
        nomem.pieces[nomem_place(p)] = p;
        nomem.live++;
    }
    pthread_mutex_unlock(&nomem.lock);
    return p;
}

/* Forget a freed piece. Memory not allocated by the scenario is not in the table. */
static void nomem_gave(const void *p)
{
    pthread_mutex_lock(&nomem.lock);
    size_t i = p && nomem.live > 0 ? nomem_place(p) : NOMEM_LIVE;
    if (i < NOMEM_LIVE && nomem.pieces[i]) {
        nomem.live--;
        nomem.pieces[i] = NULL;
        for (i = (i + 1) % NOMEM_LIVE; nomem.pieces[i]; i = (i + 1) % NOMEM_LIVE) {
            void *const other = nomem.pieces[i]; /* may have been placed after it */
            nomem.pieces[i] = NULL;
            nomem.pieces[nomem_place(other)] = other;
        }
    }
    pthread_mutex_unlock(&nomem.lock);
}

void *__wrap_malloc(size_t n)
{
    return nomem_fails(__builtin_return_address(0)) ? NULL : nomem_took(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return nomem_fails(__builtin_return_address(0)) ? NULL : nomem_took(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
    if (nomem_fails(__builtin_return_address(0)))
        return NULL;
    nomem_gave(p);
    return nomem_took(__real_realloc(p, n));
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return nomem_fails(__builtin_return_address(0))
               ? NULL
               : nomem_took(__real_aligned_alloc(alignment, n));
}

char *__wrap_strdup(const char *text)
{
    return nomem_fails(__builtin_return_address(0)) ? NULL : nomem_took(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t n)
{
    return nomem_fails(__builtin_return_address(0)) ? NULL : nomem_took(__real_strndup(text, n));
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    va_list args;
    if (nomem_fails(__builtin_return_address(0)))
        return -1;
    va_start(args, format);
    const int n = vasprintf(out, format, args);
    va_end(args);
    if (n >= 0)
        nomem_took(*out);
    return n;
}

/* Belongs to a library, which frees it. */
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
    return nomem_fails(__builtin_return_address(0)) ? NULL : __real_ZSTD_createCCtx();
}

ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
    return nomem_fails(__builtin_return_address(0)) ? NULL : __real_ZSTD_createDCtx();
}

void __wrap_free(void *p)
{
    nomem_gave(p);
    __real_free(p);
}

/* The result goes into `out`, which the scenario fills and the caller frees. */
typedef int nomem_scenario(void *context, struct tl_buf *out);

/* Print where the allocation failed. */
static inline void nomem_report(void)
{
    fflush(NULL);
    backtrace_symbols_fd(nomem.frames, NOMEM_DEPTH, 2);
}

static __attribute__((noinline)) int nomem_once(nomem_scenario *scenario, void *context,
                                                enum nomem_mode mode, struct tl_buf *out)
{
    nomem.outside = __builtin_return_address(0);
    nomem.failed = false;
    if (nomem.live > 0) /* left by the run before */
        memset(nomem.pieces, 0, sizeof nomem.pieces);
    nomem.live = 0;
    nomem.mode = mode;
    const int rc = scenario(context, out);
    nomem.mode = NOMEM_OFF;
    return rc;
}

/* Run the scenario undisturbed, then twice for each place: failing alone, and with all later ones.
 * Returns the number of places that failed. */
static inline size_t nomem_run(nomem_scenario *scenario, void *context)
{
    struct tl_buf want = {0};
    size_t reached = 0;
    assert_int_equal(scenario(context, &want), TL_OK); /* one-time initializations are done */
    tl_buf_fini(&want);
    nomem.n = 0;
    nomem.main = pthread_self();
    for (long i = -1; i < 2 * (long)nomem.n; i++) {
        struct tl_buf got = {0};
        nomem.site = i < 0 ? 0 : nomem.sites[i / 2];
        nomem.first = i < 0 ? NULL : nomem.firsts[i / 2];
        nomem.again = i % 2 == 1;
        const int r = nomem_once(scenario, context, i < 0 ? NOMEM_RECORD : NOMEM_FAIL, &got);
        if (i < 0) {
            assert_int_equal(r, TL_OK);
            assert_true(nomem.n < NOMEM_SITES);
            assert_true(nomem.given || nomem.live == (got.p != NULL));
            want = got;
            continue;
        }
        reached += nomem.failed;
        const bool other =
            r == TL_OK && (got.n != want.n || (got.n > 0 && memcmp(got.p, want.p, got.n)));
        tl_buf_fini(&got);
        if ((r != TL_NOMEM && r != TL_OK) || other || (nomem.live > 0 && !nomem.given)) {
            nomem_report();
            fail_msg("place %ld%s: returned %d, %zu pieces of memory lost%s", i / 2,
                     nomem.again ? " and all behind it" : "", r, nomem.live,
                     other ? ", said nothing and made something else" : "");
        }
    }
    tl_buf_fini(&want);
    return reached / 2;
}

#endif
