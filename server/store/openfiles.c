/* SPDX-License-Identifier: MIT */
/*
 * Keeps files of recently read objects open in a few slots. Before each use the number of its links
 * is checked, as another process may have removed or replaced the file.
 */
#include "store/openfiles.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A fetch reads its shards in order, twice: first to find what it will copy. */
#define SLOTS 256

struct slot {
    char *key;     /* NULL: empty */
    uint64_t hash; /* of the key */
    int fd;
    unsigned users;
    bool forgotten; /* to be closed by its last user */
    uint64_t used;
};

struct tl_openfiles {
    int at;
    pthread_mutex_t lock;
    uint64_t clock;
    struct slot slots[SLOTS];
};

struct tl_openfiles *tl_openfiles_new(int at)
{
    struct tl_openfiles *const files = calloc(1, sizeof(*files));
    if (files) {
        files->at = at;
        pthread_mutex_init(&files->lock, NULL);
    }
    return files;
}

static void empty(struct slot *s)
{
    if (s->key)
        close(s->fd);
    free(s->key);
    *s = (struct slot){0};
}

void tl_openfiles_free(struct tl_openfiles *files)
{
    if (!files)
        return;
    for (int i = 0; i < SLOTS; i++)
        empty(&files->slots[i]);
    pthread_mutex_destroy(&files->lock);
    free(files);
}

static int find_locked(const struct tl_openfiles *files, const char *key)
{
    const uint64_t hash = tl_fnv_text(key);
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *const s = &files->slots[i];
        if (s->hash == hash && s->key && !s->forgotten && strcmp(s->key, key) == 0)
            return i;
    }
    return -1;
}

static void let_go_locked(struct slot *s)
{
    s->users--;
    if (s->users == 0 && s->forgotten)
        empty(s);
}

static void forget_locked(struct slot *s)
{
    s->forgotten = true;
    if (s->users == 0)
        empty(s);
}

/* The least recently used slot, emptied; -1: all are in use. */
static int make_room_locked(struct tl_openfiles *files)
{
    int oldest = -1;
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *const s = &files->slots[i];
        if (s->users == 0 && (oldest < 0 || s->used < files->slots[oldest].used))
            oldest = i;
    }
    if (oldest >= 0)
        empty(&files->slots[oldest]);
    return oldest;
}

/* Get a cached file. False: none that is still the file with that name. */
static bool take_held(struct tl_openfiles *files, const char *key, struct tl_openfile *out)
{
    pthread_mutex_lock(&files->lock);
    const int i = find_locked(files, key);
    if (i >= 0) {
        files->slots[i].users++;
        files->slots[i].used = ++files->clock;
        *out = (struct tl_openfile){.fd = files->slots[i].fd, .slot = i};
    }
    pthread_mutex_unlock(&files->lock);
    if (i < 0)
        return false;
    if (fstat(out->fd, &out->st) == 0 && out->st.st_nlink > 0)
        return true;
    pthread_mutex_lock(&files->lock);
    files->slots[i].forgotten = true;
    let_go_locked(&files->slots[i]);
    pthread_mutex_unlock(&files->lock);
    return false;
}

/* Cache a file that was just opened, unless another thread was faster. */
static int hold(struct tl_openfiles *files, const char *key, int fd)
{
    char *const copy = strdup(key);
    if (!copy)
        return -1;
    pthread_mutex_lock(&files->lock);
    const int i = find_locked(files, key) >= 0 ? -1 : make_room_locked(files);
    if (i >= 0)
        files->slots[i] = (struct slot){
            .key = copy, .hash = tl_fnv_text(copy), .fd = fd, .users = 1, .used = ++files->clock};
    pthread_mutex_unlock(&files->lock);
    if (i < 0)
        free(copy);
    return i;
}

int tl_openfiles_take(struct tl_openfiles *files, const char *key, struct tl_openfile *out)
{
    if (take_held(files, key, out))
        return TL_OK;
    out->fd = openat(files->at, key, O_RDONLY | O_CLOEXEC);
    if (out->fd < 0)
        return TL_IO;
    if (fstat(out->fd, &out->st) < 0) {
        const int e = errno;
        close(out->fd);
        errno = e;
        return TL_IO;
    }
    out->slot = hold(files, key, out->fd);
    return TL_OK;
}

void tl_openfiles_give(struct tl_openfiles *files, const struct tl_openfile *file)
{
    if (file->slot < 0) {
        close(file->fd);
        return;
    }
    pthread_mutex_lock(&files->lock);
    let_go_locked(&files->slots[file->slot]);
    pthread_mutex_unlock(&files->lock);
}

void tl_openfiles_forget(struct tl_openfiles *files, const char *key)
{
    pthread_mutex_lock(&files->lock);
    const int i = find_locked(files, key);
    if (i >= 0)
        forget_locked(&files->slots[i]);
    pthread_mutex_unlock(&files->lock);
}
