/* SPDX-License-Identifier: MIT */
/*
 * Code that is in no file of its own: what a compiler at run time made, what the kernel put into
 * its own text, programs of BPF. It is gathered into one ELF file, each piece at the offset at
 * which images then map it, with the names of its functions. Not thread-safe.
 */
#ifndef TL_IMPORT_MADE_CODE_H
#define TL_IMPORT_MADE_CODE_H

#include "base/buf.h"
#include "base/bytes.h"

#define TL_MADE_CODE_MOST ((uint64_t)1 << 30) /* bytes */

struct tl_made_function {
    uint64_t offset, size; /* in the file */
    size_t name;           /* offset in `names` */
};

/* Zeroed it is empty. */
struct tl_made_code {
    struct tl_buf code, names;
    struct tl_made_function *functions;
    size_t n, cap;
};

void tl_made_code_fini(struct tl_made_code *made);

/* Append code; `name`: of the function that it is, "": none. `*offset`: where it lies in the file,
 * now and whatever is added. TL_NOMEM, TL_LIMIT. */
TL_MUST_USE int tl_made_code_add(struct tl_made_code *made, struct tl_bytes code, const char *name,
                                 uint64_t *offset);
/* Append the file as it is so far to `out`; `machine`: e_machine. TL_NOMEM. */
TL_MUST_USE int tl_made_code_file(const struct tl_made_code *made, uint16_t machine,
                                  struct tl_buf *out);

#endif
