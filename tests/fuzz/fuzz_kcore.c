/* SPDX-License-Identifier: MIT */
/*
 * A kernel's memory and its list of symbols from arbitrary bytes, of which the first two tell how
 * long the list is: what is made of both is a program, each function of which is within its code,
 * and what is made of the list alone has the same functions without code.
 */
#include "image/image.h"
#include "import/kernel_core.h"
#include "import/kernel_names.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static int put(char path[static 40], const uint8_t *p, size_t n)
{
    const int fd = memfd_create("input", 0);
    require(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    snprintf(path, 40, "/proc/self/fd/%d", fd);
    return fd;
}

static void load(struct tl_bytes file, bool has_code)
{
    struct tl_image *image;
    struct tl_fail fail = {0};
    size_t n;
    require(tl_image_new(&image) == TL_OK);
    require(tl_image_add_elf(image, file, 0, TL_SPACE_ANY, "kernel", &fail) == TL_OK ||
            fail.text[0] != '\0');
    require(tl_image_freeze(image) == TL_OK);
    const struct tl_symbol *const symbols = tl_image_symbols(image, &n);
    for (size_t i = 0; i < n; i++)
        require(symbols[i].size > 0 &&
                (tl_image_at(image, TL_SPACE_ANY, symbols[i].address).n > 0) == has_code);
    tl_image_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char core[40], list[40];
    struct tl_buf out = {0};
    if (size < 2 || size > 1 << 16)
        return 0;
    const size_t told = (size_t)data[0] | (size_t)data[1] << 8, there = size - 2;
    const size_t n = told < there ? told : there;
    const int list_fd = put(list, data + 2, n), core_fd = put(core, data + 2 + n, there - n);
    if (tl_kernel_core_file(core, list, &out) == TL_OK)
        load((struct tl_bytes){out.p, out.n}, true);
    tl_buf_fini(&out);
    struct tl_kernel_names names = {0};
    if (tl_kernel_names_read(&names, list) == TL_OK &&
        tl_kernel_names_file(&names, EM_X86_64, &out) == TL_OK)
        load((struct tl_bytes){out.p, out.n}, false);
    tl_kernel_names_fini(&names);
    tl_buf_fini(&out);
    close(core_fd);
    close(list_fd);
    return 0;
}
