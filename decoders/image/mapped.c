/* SPDX-License-Identifier: MIT */
/*
 * Files of which an image uses the bytes where they are: mapped, so that what is never executed is
 * never read. A debug build of a kernel has hundreds of megabytes, of which a trace needs few.
 */
#include "image/image_parts.h"

#include "base/buf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of a regular file; none: it must be read, or cannot be. */
static struct tl_bytes map(const char *path)
{
    struct stat st;
    void *p = MAP_FAILED;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        (uintmax_t)st.st_size <= SIZE_MAX)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    return p == MAP_FAILED ? (struct tl_bytes){0} : (struct tl_bytes){p, (size_t)st.st_size};
}

static int read_whole(struct tl_image *image, const char *path, struct tl_bytes *bytes,
                      struct tl_fail *fail)
{
    struct tl_buf content = {0};
    int rc = tl_buf_read_file(&content, path, SIZE_MAX, fail);
    if (rc < 0)
        tl_buf_fini(&content);
    else if (content.p && (rc = tl_image_own(image, content.p, content.cap)) < 0)
        tl_fail_set(fail, TL_NOMEM, "%.160s: out of memory", path);
    else
        *bytes = (struct tl_bytes){content.p, content.n};
    return rc;
}

int tl_image_file(struct tl_image *image, const char *path, struct tl_bytes *bytes,
                  struct tl_fail *fail)
{
    *bytes = (struct tl_bytes){0};
    if (tl_grow(&image->mapped, &image->cap_mapped, image->n_mapped + 1, sizeof *image->mapped) < 0)
        return tl_fail_set(fail, TL_NOMEM, "%.160s: out of memory", path);
    const struct tl_bytes file = map(path);
    if (file.n == 0)
        return read_whole(image, path, bytes, fail);
    *bytes = image->mapped[image->n_mapped++] = file;
    return TL_OK;
}

/* What is added is of the file that was mapped last. */
bool tl_mapped_has(const struct tl_image *image, const void *p, size_t n)
{
    const struct tl_bytes file =
        image->n_mapped ? image->mapped[image->n_mapped - 1] : (struct tl_bytes){0};
    const size_t at = (uintptr_t)p - (uintptr_t)file.p;
    return at < file.n && n <= file.n - at;
}

void tl_mapped_fini(struct tl_image *image)
{
    for (size_t i = 0; i < image->n_mapped; i++)
        munmap((void *)(uintptr_t)image->mapped[i].p, image->mapped[i].n);
    free(image->mapped);
}
