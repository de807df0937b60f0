/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a capture, piece after piece. Files are opened when their turn comes, since there
 * may be more of them than a process may have open.
 */
#include "import/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 64 << 10 };

/* Open the current piece at its first byte, if there is one. */
static int open_piece(struct tl_bundle_input *in)
{
    struct stat st;
    const struct tl_bundle_piece *const piece = &in->capture->pieces[in->piece];
    const bool is_standard = strcmp(piece->path, "-") == 0;
    in->left = piece->length;
    in->live = false;
    if (piece->bytes)
        return TL_OK;
    in->fd = piece->fd > 0 ? fcntl(piece->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
             : is_standard ? STDIN_FILENO
                           : open(piece->path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0)
        return TL_IO;
    in->live = fstat(in->fd, &st) < 0 || !S_ISREG(st.st_mode);
    if ((piece->offset > 0 || piece->fd > 0) && lseek(in->fd, (off_t)piece->offset, SEEK_SET) < 0)
        return TL_IO;
    return TL_OK;
}

void tl_bundle_close(struct tl_bundle_input *in)
{
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    in->fd = -1;
}

int tl_bundle_open(struct tl_bundle_input *in, const struct tl_bundle_capture *capture)
{
    *in = (struct tl_bundle_input){.capture = capture, .fd = -1};
    return open_piece(in);
}

const char *tl_bundle_path(const struct tl_bundle_input *in)
{
    const struct tl_bundle_capture *const capture = in->capture;
    return capture->pieces[in->piece < capture->n_pieces ? in->piece : capture->n_pieces - 1].path;
}

/* Advance to the next piece. Returns 0: none; 1: opened; < 0: it cannot be read. */
static int next_piece(struct tl_bundle_input *in)
{
    if (in->piece + 1 >= in->capture->n_pieces)
        return 0;
    tl_bundle_close(in);
    in->piece++;
    return open_piece(in) < 0 ? -1 : 1;
}

static ssize_t read_piece(const struct tl_bundle_input *in, uint8_t *p, size_t n)
{
    const struct tl_bundle_piece *const piece = &in->capture->pieces[in->piece];
    if (!piece->bytes)
        return read(in->fd, p, n);
    if (n > 0)
        memcpy(p, piece->bytes + (piece->length - in->left), n);
    return (ssize_t)n;
}

ssize_t tl_bundle_next(struct tl_bundle_input *in, uint8_t *p, size_t n)
{
    for (;;) {
        const ssize_t got = read_piece(in, p, n < in->left ? n : (size_t)in->left);
        if (got > 0 && in->tap)
            in->tap(in->tap_context, p, (size_t)got);
        if (got > 0 && in->left != UINT64_MAX)
            in->left -= (uint64_t)got;
        if (got != 0 || n == 0)
            return got;
        const int more = next_piece(in);
        if (more <= 0)
            return more;
    }
}

/*
 * Skip bytes of a piece that is a seekable file. Returns how many; 0: at its end, or not seekable.
 */
static uint64_t skip_file(struct tl_bundle_input *in, uint64_t n)
{
    const bool seeks = !in->live && !in->tap && in->fd >= 0;
    const off_t at = !seeks ? -1 : lseek(in->fd, 0, SEEK_CUR);
    const off_t end = at < 0 ? -1 : lseek(in->fd, 0, SEEK_END);
    if (end < 0)
        return 0;
    uint64_t there = end > at ? (uint64_t)(end - at) : 0;
    there = there < in->left ? there : in->left;
    there = there < n ? there : n;
    if (lseek(in->fd, at + (off_t)there, SEEK_SET) < 0)
        return 0;
    if (in->left != UINT64_MAX)
        in->left -= there;
    return there;
}

uint64_t tl_bundle_skip(struct tl_bundle_input *in, uint64_t n)
{
    uint8_t bytes[PIECE];
    uint64_t done = 0;
    while (done < n) {
        done += skip_file(in, n - done);
        const uint64_t left = n - done;
        const ssize_t got =
            left > 0 ? tl_bundle_next(in, bytes, left < PIECE ? (size_t)left : PIECE) : 0;
        if (got <= 0)
            break;
        done += (uint64_t)got;
    }
    return done;
}

int tl_bundle_bytes(const struct tl_bundle_capture *capture, struct tl_buf *out,
                    struct tl_fail *fail)
{
    struct tl_bundle_input in;
    int rc = tl_bundle_open(&in, capture);
    while (rc == TL_OK) {
        rc = tl_buf_reserve(out, PIECE);
        const ssize_t got = rc == TL_OK ? tl_bundle_next(&in, out->p + out->n, PIECE) : 0;
        if (got < 0 && errno != EINTR)
            rc = TL_IO;
        if (got == 0)
            break;
        out->n += got > 0 ? (size_t)got : 0;
    }
    if (rc < 0)
        tl_fail_set(fail, (enum tl_err)rc, "%.180s: cannot be read", tl_bundle_path(&in));
    tl_bundle_close(&in);
    return rc;
}
