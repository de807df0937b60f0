/* SPDX-License-Identifier: MIT */
/*
 * Code that is not in a file: from just-in-time compilers, changes of the kernel to its own text,
 * BPF programs. It is collected in one ELF file, each piece at the offset that images map it from,
 * with function names. Not thread-safe.
 */
#ifndef TL_IMPORT_MADE_CODE_H
#define TL_IMPORT_MADE_CODE_H

#include "base/buf.h"
#include "base/bytes.h"

#define TL_MADE_CODE_MAX ((uint64_t)1 << 30) /* maximum bytes */

struct tl_made_function {
    uint64_t offset, size; /* in the file */
    size_t name;           /* offset in `names` */
};

/* All zero: empty. */
struct tl_made_code {
    struct tl_buf code, names;
    struct tl_made_function *functions;
    size_t n, cap;
};

void tl_made_code_fini(struct tl_made_code *made);

/* Append code; `name`: name of the function, "": none. `*offset` is its final offset in the file.
 * Returns TL_NOMEM, TL_LIMIT. */
TL_MUST_USE int tl_made_code_add(struct tl_made_code *made, struct tl_bytes code, const char *name,
                                 uint64_t *offset);
/* Append the file with the code so far to `out`; `machine`: e_machine. Returns TL_NOMEM. */
TL_MUST_USE int tl_made_code_file(const struct tl_made_code *made, uint16_t machine,
                                  struct tl_buf *out);

#endif
