/* SPDX-License-Identifier: MIT */
/*
 * What a small program does with libipt: the instructions of an Intel PT trace as lines "I pc
 * bytes" on standard output. For short.py, which compares processes, so it does nothing else.
 */
#include <elf.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char text[1 << 16];
static size_t used;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void put_digits(uint64_t value, unsigned digits)
{
    for (unsigned i = digits; i-- > 0; value >>= 4)
        text[used + i] = "0123456789abcdef"[value & 15];
    used += digits;
}

static void flush(void)
{
    if (write(STDOUT_FILENO, text, used) != (ssize_t)used)
        die("write");
    used = 0;
}

static void put_insn(const struct pt_insn *insn)
{
    if (used > sizeof text - 64)
        flush();
    memcpy(text + used, "I ", 2);
    used += 2;
    put_digits(insn->ip, 16);
    text[used++] = ' ';
    for (unsigned i = 0; i < insn->size; i++)
        put_digits(insn->raw[i], 2);
    text[used++] = '\n';
}

static const uint8_t *map(const char *path, size_t *n)
{
    struct stat st;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0)
        die(path);
    const uint8_t *const p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        die(path);
    close(fd);
    *n = (size_t)st.st_size;
    return p;
}

/* The executable segments of an ELF file, or a whole file at an address. */
static void add_code(struct pt_image *image, const char *path, const char *address)
{
    size_t n;
    const uint8_t *const p = map(path, &n);
    if (address) {
        if (pt_image_add_file(image, path, 0, n, NULL, strtoull(address, NULL, 0)) < 0)
            die(path);
        return;
    }
    const Elf64_Ehdr *const head = (const void *)p;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        const Elf64_Phdr *const ph = (const void *)(p + head->e_phoff + i * sizeof *ph);
        if (ph->p_type == PT_LOAD && ph->p_flags & PF_X &&
            pt_image_add_file(image, path, ph->p_offset, ph->p_filesz, NULL, ph->p_vaddr) < 0)
            die(path);
    }
}

static int print(struct pt_insn_decoder *d)
{
    int status;
    while ((status = pt_insn_sync_forward(d)) >= 0) {
        while (status >= 0) {
            struct pt_event event;
            struct pt_insn insn;
            if (status & pts_event_pending) {
                status = pt_insn_event(d, &event, sizeof event);
                continue;
            }
            status = pt_insn_next(d, &insn, sizeof insn);
            if (status >= 0)
                put_insn(&insn);
        }
        if (status == -pte_eos)
            break;
    }
    flush();
    return status == -pte_eos ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: libipt_text TRACE IMAGE [ADDRESS]\n");
        return 2;
    }
    struct pt_config config;
    size_t n;
    pt_config_init(&config);
    config.begin = (uint8_t *)(uintptr_t)map(argv[1], &n);
    config.end = config.begin + n;
    struct pt_image *const image = pt_image_alloc(NULL);
    struct pt_insn_decoder *const d = pt_insn_alloc_decoder(&config);
    if (!image || !d)
        die("libipt");
    add_code(image, argv[2], argv[3]);
    pt_insn_set_image(d, image);
    return print(d);
}
