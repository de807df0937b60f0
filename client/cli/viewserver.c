/* SPDX-License-Identifier: MIT */
/*
 * Starts and ends the server of `view`. Its folder is locked as long as somebody uses it, so that
 * one that a crash left behind is recognised and removed by the next run.
 */
#include "cli/viewserver.h"

#include "terminal/args.h"
#include "terminal/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "view-"

enum { FOLDERS_OPEN = 16 };

/* ---- the folder ---------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static void remove_tree(const char *dir)
{
    if (nftw(dir, remove_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
        tl_cli_warn(dir, "cannot be removed: %s", strerror(errno));
}

/* Open the folder and lock it. -1: it is in use, or not there. */
static int lock_folder(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void remove_abandoned(const char *root)
{
    DIR *const dir = opendir(root);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[4096];
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            snprintf(path, sizeof path, "%s/%s", root, e->d_name) >= (int)sizeof path)
            continue;
        const int lock = lock_folder(path);
        if (lock < 0)
            continue;
        remove_tree(path);
        close(lock);
    }
    if (dir)
        closedir(dir);
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* $XDG_CACHE_HOME/tracelake, or ~/.cache/tracelake. */
static bool cache_root(char *out, size_t size)
{
    const char *const cache = getenv("XDG_CACHE_HOME"), *const home = getenv("HOME");
    const bool given = cache && *cache == '/'; /* others are to be ignored */
    if (!given && (!home || !*home))
        return false;
    snprintf(out, size, "%.3000s%s", given ? cache : home, given ? "" : "/.cache");
    const bool made = make_folder(out);
    strncat(out, "/tracelake", size - strlen(out) - 1);
    return made && make_folder(out);
}

static int open_folder(struct tl_view_server *s, const char *keep)
{
    char root[4000];
    s->kept = keep != NULL;
    if (keep) {
        snprintf(s->dir, sizeof s->dir, "%.4000s", keep);
        if (make_folder(keep))
            return TL_ARGS_GO;
        tl_cli_warn(keep, "%s", strerror(errno));
        return TL_CLI_BAD;
    }
    if (cache_root(root, sizeof root)) {
        remove_abandoned(root);
        snprintf(s->dir, sizeof s->dir, "%.4000s/" PREFIX "XXXXXX", root);
        if (mkdtemp(s->dir)) {
            s->lock = lock_folder(s->dir);
            return TL_ARGS_GO;
        }
    }
    tl_cli_warn("view", "there is no folder for a cache; name one: --keep DIR");
    return TL_CLI_BAD;
}

/* ---- the process --------------------------------------------------------------------------- */

static _Noreturn void become_server(const struct tl_view_server *s, const char *listen, int out,
                                    pid_t parent)
{
    (void)!setpgid(0, 0); /* Ctrl-C is for the command, which ends it in order */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(TL_CLI_BAD);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(out, STDOUT_FILENO);
    execl("/proc/self/exe", "tracelake", "serve", "--data", s->dir, "--listen", listen,
          "--log-level", "error", (char *)NULL);
    perror("tracelake: /proc/self/exe");
    _exit(TL_CLI_BAD);
}

/* The server says where it listens, and then that it is ready. */
static bool read_ready(struct tl_view_server *s, FILE *said)
{
    char line[256];
    while (fgets(line, sizeof line, said)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "http://", 7))
            snprintf(s->url, sizeof s->url, "%.95s", line);
        if (!strcmp(line, "ready"))
            return s->url[0] != 0;
    }
    return false;
}

static int launch(struct tl_view_server *s, const char *listen)
{
    int ends[2];
    const pid_t self = getpid();
    if (pipe2(ends, O_CLOEXEC) < 0 || (s->pid = fork()) < 0) {
        tl_cli_warn("view", "no server: %s", strerror(errno));
        s->pid = 0;
        return TL_CLI_BAD;
    }
    if (s->pid == 0)
        become_server(s, listen, ends[1], self);
    close(ends[1]);
    FILE *const said = fdopen(ends[0], "r");
    const bool ready = said && read_ready(s, said);
    if (said)
        fclose(said);
    if (ready)
        return TL_ARGS_GO;
    tl_cli_warn("view", "its server does not start");
    return TL_CLI_BAD;
}

int tl_view_server_start(struct tl_view_server *out, const char *keep, const char *listen)
{
    *out = (struct tl_view_server){.lock = -1};
    int status = open_folder(out, keep);
    if (status == TL_ARGS_GO)
        status = launch(out, listen);
    if (status != TL_ARGS_GO)
        tl_view_server_stop(out, true);
    return status;
}

void tl_view_server_stop(struct tl_view_server *s, bool running)
{
    if (s->pid > 0 && running) {
        kill(s->pid, SIGTERM);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    s->pid = 0;
    if (!s->kept && s->lock >= 0)
        remove_tree(s->dir);
    if (s->lock >= 0)
        close(s->lock);
    s->lock = -1;
}
