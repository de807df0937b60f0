/* SPDX-License-Identifier: MIT */
/*
 * Changes the file of access tokens. Other lines, including comments, stay as they are, and the
 * file is replaced in one step.
 */
#include "base/bytes.h"
#include "net/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct change {
    const char *path;
    int fd; /* of the file, locked */
    struct stat st;
    struct tl_buf text; /* new contents */
};

static int fail_io(const char *path, struct tl_fail *fail)
{
    return tl_fail_set(fail, TL_IO, "%.120s: %s", path, strerror(errno));
}

/* Open and lock the file; `make`: create it if it is missing. Another change may have replaced it
 * while we waited for the lock: then the lock is of a file without a name. */
static int lock(struct change *c, bool make, struct tl_fail *fail)
{
    for (;;) {
        struct stat now;
        c->fd = open(c->path, O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0600);
        if (c->fd < 0 || flock(c->fd, LOCK_EX) || fstat(c->fd, &c->st))
            return fail_io(c->path, fail);
        if (!stat(c->path, &now) && now.st_ino == c->st.st_ino && now.st_dev == c->st.st_dev)
            return TL_OK;
        close(c->fd);
    }
}

static int read_all(int fd, struct tl_buf *out)
{
    char piece[4096];
    ssize_t n;
    int rc = TL_OK;
    while (rc == TL_OK && (n = read(fd, piece, sizeof piece)) > 0)
        rc = tl_buf_add(out, piece, (size_t)n);
    return rc < 0 ? rc : n < 0 ? TL_IO : TL_OK;
}

static int write_all(int fd, struct tl_bytes bytes)
{
    while (bytes.n) {
        const ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0)
            return TL_IO;
        bytes = (struct tl_bytes){bytes.p + n, bytes.n - (size_t)n};
    }
    return TL_OK;
}

/* Write a temporary file and rename it. It keeps its owner if we may give it away, and is closed to
 * all others, since tl_tokens_read() refuses a file that is not. */
static int replace(const struct change *c, struct tl_fail *fail)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s.XXXXXX", c->path) >= (int)sizeof path)
        return tl_fail_set(fail, TL_USAGE, "%.120s: too long a name", c->path);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return fail_io(path, fail);
    if (fchown(fd, c->st.st_uid, c->st.st_gid) && geteuid() == 0)
        goto fail;
    if (fchmod(fd, c->st.st_mode & 0770) ||
        write_all(fd, (struct tl_bytes){c->text.p, c->text.n}) < 0 || fsync(fd) ||
        rename(path, c->path))
        goto fail;
    close(fd);
    return TL_OK;
fail:;
    const int rc = fail_io(path, fail);
    unlink(path);
    close(fd);
    return rc;
}

/* Replace the file by what `edit` makes of its `old` contents, in `c->text`, with the file locked.
 */
static int change(const char *path, bool make,
                  int (*edit)(struct change *c, struct tl_bytes old, const char *argument,
                              struct tl_fail *fail),
                  const char *argument, struct tl_fail *fail)
{
    struct change c = {.path = path};
    struct tl_buf old = {0};
    int rc = lock(&c, make, fail);
    if (rc == TL_OK && read_all(c.fd, &old) < 0)
        rc = fail_io(path, fail);
    if (rc == TL_OK)
        rc = edit(&c, (struct tl_bytes){old.p, old.n}, argument, fail);
    if (rc == TL_OK)
        rc = replace(&c, fail);
    if (c.fd >= 0)
        close(c.fd);
    tl_buf_fini(&c.text);
    tl_buf_fini(&old);
    return rc;
}

/* Parse a line that must not be modified. */
static int parse_copy(struct tl_token *out, const char *line, size_t n, struct tl_fail *fail)
{
    char *const copy = strndup(line, n);
    if (!copy)
        return TL_NOMEM;
    const int rc = tl_token_parse(out, copy, fail);
    free(copy);
    return rc;
}

/* The old lines, which must be valid and have no such name or token, and the new one. */
static int append(struct change *c, struct tl_bytes old, const char *line, struct tl_fail *fail)
{
    struct tl_token token;
    struct tl_token *tokens = NULL;
    size_t n = 0;
    int rc = parse_copy(&token, line, strlen(line), fail);
    if (rc < 0)
        return rc == TL_EOF ? tl_fail_set(fail, TL_USAGE, "that is a comment") : rc;
    rc = tl_tokens_read(&tokens, &n, c->path, fail);
    for (size_t i = 0; i < n && rc == TL_OK; i++)
        if (!memcmp(tokens[i].digest, token.digest, TL_TOKEN_DIGEST) ||
            (*token.name && !strcmp(tokens[i].name, token.name)))
            rc = tl_fail_set(fail, TL_EXISTS, "%.100s: %.64s is there already; revoke it first",
                             c->path, *token.name ? token.name : token.cert);
    tl_tokens_free(tokens, n);
    tl_token_fini(&token);
    if (rc == TL_OK)
        rc = tl_buf_add(&c->text, old.p, old.n);
    if (rc == TL_OK && old.n && old.p[old.n - 1] != '\n')
        rc = tl_buf_add(&c->text, "\n", 1);
    return rc < 0 ? rc : tl_buf_printf(&c->text, "%s\n", line);
}

/* Is it named by `who`: its name, its certificate's name, or its id? */
static bool is_meant(const struct tl_token *token, const char *who)
{
    char id[TL_TOKEN_ID + 1];
    tl_token_id(token, id);
    return !strcmp(token->name, who) || (*token->cert && !strcmp(token->cert, who)) ||
           !strcmp(id, who);
}

/* The old lines but those of `who`. */
static int without(struct change *c, struct tl_bytes old, const char *who, struct tl_fail *fail)
{
    unsigned removed = 0;
    int rc = TL_OK;
    for (size_t at = 0; at < old.n && rc == TL_OK;) {
        const char *const line = (const char *)old.p + at;
        const char *const end = memchr(line, '\n', old.n - at);
        const size_t n = end ? (size_t)(end - line) + 1 : old.n - at;
        struct tl_token token;
        /* An invalid line is kept: it may be repaired. */
        const bool is_token = parse_copy(&token, line, n, NULL) == TL_OK;
        const bool gone = is_token && is_meant(&token, who);
        if (is_token)
            tl_token_fini(&token);
        removed += gone;
        if (!gone)
            rc = tl_buf_add(&c->text, line, n);
        at += n;
    }
    if (rc == TL_OK && !removed)
        rc = tl_fail_set(fail, TL_NOTFOUND,
                         "%.100s: there is no \"%.64s\"; `tracelake token list` tells names and "
                         "ids",
                         c->path, who);
    return rc;
}

int tl_tokens_add(const char *path, const char *line, struct tl_fail *fail)
{
    return change(path, true, append, line, fail);
}

int tl_tokens_remove(const char *path, const char *who, struct tl_fail *fail)
{
    return change(path, false, without, who, fail);
}
