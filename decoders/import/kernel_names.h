/* SPDX-License-Identifier: MIT */
/*
 * The functions of a running kernel and its modules, as /proc/kallsyms lists them, and where its
 * modules are, as /proc/modules does. Not thread-safe; the only I/O is reading the file.
 *
 * Source: kallsyms.c and procfs.c of Linux 6.1; tools/perf/util/symbol.c.
 */
#ifndef TL_IMPORT_KERNEL_NAMES_H
#define TL_IMPORT_KERNEL_NAMES_H

#include "base/buf.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

struct tl_kernel_function {
    uint64_t address;
    uint64_t size;         /* bytes; 0: not a symbol of the file to be written */
    uint32_t name, module; /* offsets in `text`; module 0: the kernel's own */
    bool is_global;
};

/* {0}: none. */
struct tl_kernel_names {
    struct tl_kernel_function *functions; /* by address */
    size_t n, cap;
    struct tl_buf text; /* names, each terminated by a NUL; the first one is empty */
};

/* Read a file like /proc/kallsyms, without sizes. Addresses of 0, as those see who may not know
 * them, are left out. Returns TL_IO, TL_NOMEM; free `names` in any case. */
TL_MUST_USE int tl_kernel_names_read(struct tl_kernel_names *names, const char *path);
void tl_kernel_names_fini(struct tl_kernel_names *names);

/* Address of the kernel's own function of this name. False: there is none. */
bool tl_kernel_names_find(const struct tl_kernel_names *names, const char *name, uint64_t *address);

/*
 * Append an ELF core file of this machine (EM_*) without memory to `out`, with the functions as
 * symbols, each up to the next one. Returns TL_NOTFOUND: there are no functions; TL_NOMEM. After an
 * error `out` is undefined.
 */
TL_MUST_USE int tl_kernel_names_file(struct tl_kernel_names *names, unsigned machine,
                                     struct tl_buf *out);

/*
 * Append sections with the functions as symbols to an ELF core file, which begins at `start` of
 * `out`, and set what the header tells of them; the caller writes it.
 */
TL_MUST_USE int tl_kernel_names_sections(const struct tl_kernel_names *names, size_t start,
                                         Elf64_Ehdr *header, struct tl_buf *out);

/* A module as it was loaded. */
struct tl_kernel_module {
    char name[64];
    uint64_t address, size; /* bytes */
};

/* Read a line of /proc/modules: "name size users by state address". False: it tells no address. */
bool tl_kernel_module_read(struct tl_kernel_module *out, const char *line);

#endif
