/* SPDX-License-Identifier: MIT */
/*
 * The address of a library's last function is set only when all others are, so it alone says
 * whether the library is loaded. All loads share one lock, since several threads may need it first.
 */
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns what is missing, or NULL. The last address is set only when all others are. Lock held. */
static const char *load(const struct tl_library *library)
{
    if (library->functions[library->n - 1])
        return NULL;
    void *const loaded = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (!loaded)
        return library->file;
    for (size_t i = 0; i < library->n; i++) {
        library->functions[i] = dlsym(loaded, library->names[i]);
        if (!library->functions[i]) {
            dlclose(loaded);
            return library->names[i];
        }
    }
    return NULL;
}

int tl_library_load(const struct tl_library *library, struct tl_fail *fail)
{
    pthread_mutex_lock(&lock);
    const char *const missing = load(library);
    pthread_mutex_unlock(&lock);
    if (missing)
        return tl_fail_set(fail, TL_UNSUPPORTED, "%s needs %s (%s is missing); install %s",
                           library->user, library->file, missing, library->package);
    return TL_OK;
}
