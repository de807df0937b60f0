/* SPDX-License-Identifier: MIT */
#include "cli/outfile.h"

#include "cli/args.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct tl_outfile *out, const char *why)
{
    tl_cli_warn(out->path, "%s", why);
    free(out->beside);
    out->beside = NULL;
    return TL_CLI_BAD;
}

int tl_outfile_open(struct tl_outfile *out, const char *path)
{
    *out = (struct tl_outfile){.path = path};
    if (strcmp(path, "-") == 0) {
        if (isatty(STDOUT_FILENO)) {
            tl_cli_warn(path, "bytes are not for a terminal; name a file or use a pipe");
            return TL_CLI_USAGE;
        }
        out->file = stdout;
        return TL_ARGS_GO;
    }
    struct stat st;
    const bool there = stat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode)) {
        out->file = fopen(path, "wbe");
        return out->file ? TL_ARGS_GO : refuse(out, strerror(errno));
    }
    if (asprintf(&out->beside, "%s.XXXXXX", path) < 0) {
        out->beside = NULL;
        return refuse(out, "out of memory");
    }
    const int fd = mkostemp(out->beside, O_CLOEXEC);
    if (fd < 0)
        return refuse(out, strerror(errno));
    const mode_t mask = umask(0);
    umask(mask);
    (void)!fchmod(fd, there ? st.st_mode & 07777 : 0666 & ~mask);
    out->file = fdopen(fd, "wb");
    if (out->file)
        return TL_ARGS_GO;
    close(fd);
    unlink(out->beside);
    return refuse(out, "out of memory");
}

int tl_outfile_close(struct tl_outfile *out, int status)
{
    if (!out->file)
        return status;
    bool failed = ferror(out->file) || fflush(out->file) != 0;
    if (out->file != stdout && fclose(out->file) != 0)
        failed = true;
    if (failed && status == TL_CLI_DONE) {
        tl_cli_warn(out->path, "cannot write: %s", strerror(errno));
        status = TL_CLI_BAD;
    }
    if (out->beside && status == TL_CLI_DONE && rename(out->beside, out->path) < 0) {
        tl_cli_warn(out->path, "%s", strerror(errno));
        status = TL_CLI_BAD;
    }
    if (out->beside && status != TL_CLI_DONE)
        unlink(out->beside);
    free(out->beside);
    *out = (struct tl_outfile){0};
    return status;
}
