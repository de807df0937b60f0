/* SPDX-License-Identifier: MIT */
/*
 * Formats instructions with disassemblers that are created on first use, one per instruction set.
 * LLVM is thus loaded only by output that contains code, and a trace needs one or two of the
 * instruction sets.
 */
#include "out/codetext.h"

#include "base/args.h"
#include "image/names.h"
#include "terminal/plain.h"

#include <stdio.h>
#include <string.h>

#define IMAGE_MAX ((size_t)256 << 20)

void tl_codetext_fini(struct tl_codetext *t)
{
    for (size_t i = 0; i < TL_ISA_COUNT; i++)
        tl_disasm_free(t->disasm[i]);
    *t = (struct tl_codetext){0};
}

/* NULL: none available. */
static struct tl_disasm *disasm_of(struct tl_codetext *t, enum tl_isa isa)
{
    if (!t->tried[isa] && tl_disasm_new(&t->disasm[isa], isa, NULL) < 0)
        t->disasm[isa] = NULL;
    t->tried[isa] = true;
    return t->disasm[isa];
}

void tl_codetext_insn(struct tl_codetext *t, enum tl_isa isa, uint64_t pc, struct tl_bytes code,
                      char *out, size_t size)
{
    struct tl_disasm *const disasm = disasm_of(t, isa);
    if (!disasm || tl_disasm_text(disasm, pc, code, out, size) < 0)
        snprintf(out, size, "-");
}

int tl_codetext_row(struct tl_codetext *t, uint64_t number, enum tl_isa isa, uint64_t pc,
                    struct tl_bytes code, struct tl_buf *out)
{
    char text[256], encoding[33] = "";
    tl_codetext_insn(t, isa, pc, code, text, sizeof text);
    for (size_t i = 0; i < code.n && i < 16; i++)
        snprintf(encoding + 2 * i, 3, "%02x", code.p[tl_isa_is_x86(isa) ? i : code.n - 1 - i]);
    return tl_buf_printf(out, "%llu %016llx %s %s", (unsigned long long)number,
                         (unsigned long long)pc, encoding, text);
}

int tl_codetext_place(const struct tl_image *image, uint64_t pc, struct tl_buf *out)
{
    size_t n;
    const int64_t i = image ? tl_image_symbol_index(image, pc) : -1;
    if (i < 0)
        return TL_OK;
    const struct tl_symbol *const symbol = &tl_image_symbols(image, &n)[i];
    int r = tl_buf_add(out, " <", 2);
    if (r == TL_OK)
        r = tl_plain_append(out, tl_image_symbol_name(image, (size_t)i));
    if (r == TL_OK && symbol->address != pc)
        r = tl_buf_printf(out, "+0x%llx", (unsigned long long)(pc - symbol->address));
    return r == TL_OK ? tl_buf_add(out, ">", 1) : r;
}

void tl_codetext_file(const char *text, char path[static TL_CODETEXT_PATH], uint64_t *bias)
{
    const char *const at = strrchr(text, '@');
    *bias = 0;
    snprintf(path, TL_CODETEXT_PATH, "%s", text);
    if (at && tl_number_parse(at + 1, bias) >= 0 && at - text < TL_CODETEXT_PATH)
        path[at - text] = 0;
}

static int add_symbols(struct tl_image *image, const char *text, struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    uint64_t bias;
    char path[TL_CODETEXT_PATH];
    tl_codetext_file(text, path, &bias);
    int r = tl_buf_read_file(&bytes, path, IMAGE_MAX, fail);
    if (r >= 0)
        r = tl_image_add_elf(image, (struct tl_bytes){bytes.p, bytes.n}, bias, TL_SPACE_ANY, path,
                             fail);
    tl_buf_fini(&bytes);
    return r;
}

int tl_codetext_symbols(const char *const *files, size_t n, struct tl_image **out,
                        struct tl_fail *fail)
{
    *out = NULL;
    if (n == 0)
        return TL_OK;
    int r = tl_image_new(out);
    if (r < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    for (size_t i = 0; i < n && r >= 0; i++)
        r = add_symbols(*out, files[i], fail);
    if (r >= 0 && (r = tl_image_freeze(*out)) < 0)
        tl_fail_set(fail, (enum tl_err)r, "%s", tl_err_name(r));
    if (r >= 0)
        return TL_OK;
    tl_image_free(*out);
    *out = NULL;
    return r;
}
