/* SPDX-License-Identifier: MIT */
/*
 * Keeps the state of a spooled capture in a small file that is replaced durably. A push may be
 * killed at any time, and the next one must find in the folder which capture its bytes belong to.
 */
#include "push/spooldir.h"

#include "base/args.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_capture(struct tl_spooldir *s, FILE *file)
{
    char line[160];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "rig ", 4) == 0)
            snprintf(s->rig, sizeof s->rig, "%.63s", line + 4);
        else if (strncmp(line, "base ", 5) == 0 && tl_number_parse(line + 5, &s->base) == TL_OK)
            s->has_base = true;
        else if (strncmp(line, "length ", 7) == 0 && tl_number_parse(line + 7, &s->length) == TL_OK)
            s->ended = true;
        else
            return TL_BAD;
    }
    return *s->rig ? TL_OK : TL_BAD;
}

/* Open an existing folder. TL_NOTFOUND, TL_EXISTS, TL_IO, TL_BAD. */
static int take(struct tl_spooldir *s, struct tl_fail *fail)
{
    char *name = NULL;
    s->lock = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->lock < 0)
        return tl_fail_set(fail, errno == ENOENT ? TL_NOTFOUND : TL_IO, "%s", strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) < 0)
        return tl_fail_set(fail, TL_EXISTS, "another push of trace %s is using it", s->trace);
    FILE *const file = asprintf(&name, "%s/capture", s->path) < 0 ? NULL : fopen(name, "re");
    const int why = errno;
    free(name);
    if (!file)
        return tl_fail_set(fail, why == ENOENT ? TL_NOTFOUND : TL_IO, "capture: %s", strerror(why));
    const int rc = read_capture(s, file);
    fclose(file);
    return rc < 0 ? tl_fail_set(fail, TL_BAD, "its file \"capture\" is not one of a push's spool")
                  : TL_OK;
}

static int new_spooldir(struct tl_spooldir *out, const char *dir, const char *trace,
                        struct tl_fail *fail)
{
    *out = (struct tl_spooldir){.lock = -1};
    snprintf(out->trace, sizeof out->trace, "%s", trace);
    if (asprintf(&out->path, "%s/%s", dir, out->trace) < 0) {
        out->path = NULL;
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    return TL_OK;
}

int tl_spooldir_open(struct tl_spooldir *out, const char *dir, const char *trace, const char *rig,
                     struct tl_fail *fail)
{
    int rc = new_spooldir(out, dir, trace, fail);
    if (rc == TL_OK && ((mkdir(dir, 0700) < 0 && errno != EEXIST) ||
                        (mkdir(out->path, 0700) < 0 && errno != EEXIST)))
        rc = tl_fail_set(fail, TL_IO, "cannot be made: %s", strerror(errno));
    if (rc == TL_OK)
        rc = take(out, fail);
    if (rc == TL_NOTFOUND && out->lock >= 0) {
        snprintf(out->rig, sizeof out->rig, "%s", rig);
        rc = tl_spooldir_save(out, fail);
    }
    if (rc < 0)
        tl_spooldir_close(out, false);
    return rc;
}

int tl_spooldir_save(const struct tl_spooldir *s, struct tl_fail *fail)
{
    char text[256];
    int n = snprintf(text, sizeof text, "rig %s\n", s->rig);
    if (s->has_base)
        n +=
            snprintf(text + n, sizeof text - (size_t)n, "base %llu\n", (unsigned long long)s->base);
    if (s->ended)
        n += snprintf(text + n, sizeof text - (size_t)n, "length %llu\n",
                      (unsigned long long)s->length);
    const int fd = openat(s->lock, "capture.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, (size_t)n) == n && fdatasync(fd) == 0;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    ok = ok && renameat(s->lock, "capture.new", s->lock, "capture") == 0;
    return ok ? TL_OK : tl_fail_set(fail, TL_IO, "cannot be written: %s", strerror(errno));
}

/*
 * The folder contains only our files. Those of the backlog are removed in order, so that what is
 * left is its end, whenever the process is killed.
 */
static void remove_all(const struct tl_spooldir *s)
{
    struct dirent **names = NULL;
    const int n = scandir(s->path, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.' && strcmp(names[i]->d_name, "capture") != 0)
            unlinkat(s->lock, names[i]->d_name, 0);
        free(names[i]);
    }
    free(names);
    unlinkat(s->lock, "capture", 0); /* last: without it a folder is meaningless */
    rmdir(s->path);
}

void tl_spooldir_close(struct tl_spooldir *s, bool done)
{
    if (done && s->path && s->lock >= 0)
        remove_all(s);
    if (s->path && s->lock >= 0)
        close(s->lock);
    free(s->path);
    *s = (struct tl_spooldir){.lock = -1};
}

int tl_spooldir_scan(const char *dir, const char *rig,
                     int (*each)(void *context, const char *trace, bool ended), void *context)
{
    struct dirent **names = NULL;
    const int n = scandir(dir, &names, NULL, alphasort);
    int result = 0;
    for (int i = 0; i < n; i++) {
        struct tl_spooldir s;
        if (result == 0 && names[i]->d_name[0] != '.' &&
            strlen(names[i]->d_name) < sizeof s.trace &&
            new_spooldir(&s, dir, names[i]->d_name, NULL) == TL_OK) {
            const bool ours = take(&s, NULL) == TL_OK && strcmp(s.rig, rig) == 0;
            const bool ended = s.ended;
            tl_spooldir_close(&s, false);
            if (ours)
                result = each(context, names[i]->d_name, ended);
        }
        free(names[i]);
    }
    free(names);
    return result;
}
