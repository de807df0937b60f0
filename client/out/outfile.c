/* SPDX-License-Identifier: MIT */
/*
 * Writes under a temporary name beside the destination and renames it when it is complete. The
 * folder is the same, since only within a file system does a rename replace a file at once.
 */
#include "out/outfile.h"

#include "terminal/args.h"
#include "terminal/say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a signal leaves nothing of --------------------------------------------------------- */

/* Never freed: a signal may be delivered to another thread at any time. */
struct tl_outfile_beside {
    struct tl_outfile_beside *next;
    atomic_bool there;
    char path[];
};

static _Atomic(struct tl_outfile_beside *) temporaries;

void tl_outfile_remove_all(void)
{
    for (struct tl_outfile_beside *t = atomic_load(&temporaries); t; t = t->next)
        if (atomic_load(&t->there))
            unlink(t->path);
}

static void on_signal(int number)
{
    tl_outfile_remove_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* Install signal handlers unless others handle the signals. */
static void take_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    }
}

/* Create a temporary file next to `path`, with the permissions `mode`. */
static int make_beside(struct tl_outfile *out, mode_t mode, struct tl_fail *fail)
{
    const size_t size = strlen(out->path) + sizeof ".XXXXXX";
    struct tl_outfile_beside *const t = calloc(1, sizeof *t + size);
    if (!t)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (!atomic_load(&temporaries))
        take_signals();
    snprintf(t->path, size, "%s.XXXXXX", out->path);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int fd = mkostemp(t->path, O_CLOEXEC);
    const int error = errno;
    if (fd >= 0) {
        atomic_store(&t->there, true);
        t->next = atomic_load(&temporaries);
        atomic_store(&temporaries, t);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (fd < 0) {
        free(t);
        return tl_fail_set(fail, TL_IO, "%.180s: %s", out->path, strerror(error));
    }
    out->beside = t;
    (void)!fchmod(fd, mode);
    out->file = fdopen(fd, "wb");
    if (out->file)
        return TL_OK;
    close(fd);
    return tl_fail_set(fail, TL_NOMEM, "out of memory");
}

/* ---- files ----------------------------------------------------------------------------------- */

static int begin_stdout(struct tl_outfile *out, struct tl_fail *fail)
{
    if (isatty(STDOUT_FILENO))
        return tl_fail_set(fail, TL_USAGE,
                           "-: bytes are not for a terminal; name a file or use a pipe");
    out->file = stdout;
    return TL_OK;
}

static bool is_same(const struct stat *there, const char *input)
{
    struct stat st;
    return input && stat(input, &st) == 0 && st.st_dev == there->st_dev &&
           st.st_ino == there->st_ino;
}

static int begin_outfile(struct tl_outfile *out, const char *path, const char *input,
                         struct tl_fail *fail)
{
    struct stat st;
    const bool there = stat(path, &st) == 0;
    out->path = there ? realpath(path, NULL) : strdup(path);
    if (!out->path)
        return tl_fail_set(fail, TL_IO, "%.180s: %s", path, strerror(errno));
    if (there && is_same(&st, input))
        return tl_fail_set(fail, TL_USAGE, "%.180s: is the input; write to another file", path);
    if (there && !S_ISREG(st.st_mode)) {
        out->file = fopen(path, "wbe");
        return out->file ? TL_OK : tl_fail_set(fail, TL_IO, "%.180s: %s", path, strerror(errno));
    }
    const mode_t mask = umask(0);
    umask(mask);
    return make_beside(out, there ? st.st_mode & 07777 : 0666 & ~mask, fail);
}

int tl_outfile_begin(struct tl_outfile *out, const char *path, const char *input,
                     struct tl_fail *fail)
{
    *out = (struct tl_outfile){0};
    if (strcmp(path, "-") == 0)
        return begin_stdout(out, fail);
    const int rc = begin_outfile(out, path, input, fail);
    if (rc < 0)
        tl_outfile_drop(out);
    return rc;
}

void tl_outfile_drop(struct tl_outfile *out)
{
    if (out->file && out->file != stdout)
        fclose(out->file);
    if (out->beside && atomic_exchange(&out->beside->there, false))
        unlink(out->beside->path);
    free(out->path);
    *out = (struct tl_outfile){0};
}

int tl_outfile_commit(struct tl_outfile *out, struct tl_fail *fail)
{
    FILE *const file = out->file;
    errno = 0;
    bool good = !ferror(file) && fflush(file) == 0;
    if (file != stdout)
        good &= fclose(file) == 0;
    out->file = NULL;
    if (good && out->beside) {
        good = rename(out->beside->path, out->path) == 0;
        atomic_store(&out->beside->there, !good);
    }
    const int error = errno;
    const int rc = good ? TL_OK
                        : tl_fail_set(fail, TL_IO, "%.150s: cannot write: %s",
                                      out->path ? out->path : "standard output",
                                      error ? strerror(error) : "not all of it was taken");
    tl_outfile_drop(out);
    return rc;
}

/* ---- with exit statuses ---------------------------------------------------------------------- */

int tl_outfile_open(struct tl_outfile *out, const char *path)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    *out = (struct tl_outfile){.file = stdout};
    if (path && tl_outfile_begin(out, path, NULL, &fail) < 0)
        return tl_cli_fail(NULL, &fail);
    return TL_ARGS_GO;
}

int tl_outfile_close(struct tl_outfile *out, int status)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    if (out->file && status == TL_CLI_DONE && tl_outfile_commit(out, &fail) < 0)
        status = tl_cli_fail(NULL, &fail);
    tl_outfile_drop(out);
    return status;
}
