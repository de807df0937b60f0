/* SPDX-License-Identifier: MIT */
#include "rados/rados_library.h"

#include <dlfcn.h>
#include <pthread.h>

struct tl_librados tl_librados;
static const char *missing; /* a missing function, NULL: all are there */

static void *symbol(void *library, const char *name)
{
    void *const found = library ? dlsym(library, name) : NULL;
    if (!found)
        missing = name;
    return found;
}

static void load(void)
{
    void *const library = dlopen("librados.so.2", RTLD_NOW | RTLD_LOCAL);
#define LOAD(name) *(void **)&tl_librados.name = symbol(library, "rados_" #name);
    TL_LIBRADOS(LOAD)
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

int tl_librados_load(struct tl_fail *fail)
{
    pthread_once(&once, load);
    if (missing)
        return tl_fail_set(
            fail, TL_UNSUPPORTED,
            "a store in a cluster needs librados (%s is not there); install librados2", missing);
    return TL_OK;
}

static void load_nothing(void)
{
}

void tl_librados_use(const struct tl_librados *functions)
{
    pthread_once(&once, load_nothing);
    missing = NULL;
    tl_librados = *functions;
}
