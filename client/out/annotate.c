/* SPDX-License-Identifier: MIT */
/*
 * Appends assembly, function and source line to flow text, line by line as it arrives. It follows
 * modes in the text, because the same bytes are other instructions in another instruction set.
 */
#include "out/annotate.h"

#include "base/whole.h"
#include "out/linewise.h"
#include "terminal/say.h"

#include <stdlib.h>
#include <string.h>

#define INSN_MAX 16 /* bytes */

struct tl_annotate {
    struct tl_annotate_options options;
    FILE *file;
    struct tl_linewise lines;
    struct tl_codetext code;
    bool has_isa; /* the mode is known */
    enum tl_isa isa;
    uint64_t number;   /* of the next instruction of a listing */
    struct tl_buf out; /* line being built */
};

int tl_annotate_open(struct tl_annotate_args *args, const char *command)
{
    const struct tl_arg_list *const files = &args->symbols;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    args->source |= args->maps.n > 0;
    if (args->source && !files->n)
        return tl_cli_usage(command,
                            "--source: give the ELF file with debug information by --symbols");
    if (tl_codetext_symbols(files->v, files->n, &args->image, &fail) < 0 ||
        (args->source && tl_sources_new(&args->options.sources, files->v, files->n, &fail) < 0))
        return tl_cli_fail(NULL, &fail);
    for (size_t i = 0; i < args->maps.n; i++)
        if (!tl_sources_is_map(args->maps.v[i]))
            return tl_cli_usage(command, "--source-map %.80s is not A=B, two folders",
                                args->maps.v[i]);
    tl_sources_map(args->options.sources, args->maps.v, args->maps.n);
    args->options.image = args->image;
    return TL_ARGS_GO;
}

void tl_annotate_close(struct tl_annotate_args *args)
{
    tl_image_free(args->image);
    tl_sources_free(args->options.sources);
}

int tl_annotate_new(struct tl_annotate **out, const struct tl_annotate_options *options, FILE *file)
{
    struct tl_annotate *const a = calloc(1, sizeof *a);
    if (!a)
        return TL_NOMEM;
    a->options = *options;
    a->file = file;
    *out = a;
    return TL_OK;
}

void tl_annotate_free(struct tl_annotate *annotate)
{
    if (!annotate)
        return;
    tl_linewise_fini(&annotate->lines);
    tl_codetext_fini(&annotate->code);
    tl_buf_fini(&annotate->out);
    free(annotate);
}

void tl_annotate_mode(struct tl_annotate *a, const char *mode)
{
    const char *const dot = strrchr(mode, '.');
    const char *const name = dot ? dot + 1 : mode;
    a->has_isa = false;
    for (unsigned i = 0; i < TL_ISA_COUNT && !a->has_isa; i++)
        if (strcmp(name, tl_isa_name((enum tl_isa)i)) == 0) {
            a->isa = (enum tl_isa)i;
            a->has_isa = true;
        }
}

/* Convert an encoding in flow text to bytes in memory order. */
static size_t bytes_of(enum tl_isa isa, const char *hex, uint8_t out[static INSN_MAX])
{
    uint8_t value[INSN_MAX];
    const size_t n = tl_line_bytes(hex, value, INSN_MAX);
    /* The text of x86 is in memory order, that of T32 in halfwords, the first one first, all else
     * is one value; values are little-endian in memory. */
    const size_t unit = tl_isa_is_x86(isa) ? 1 : isa == TL_ISA_T32 ? 2 : n;
    for (size_t i = 0; i < n; i++) {
        const size_t begin = i / unit * unit;
        out[i] = value[begin + (unit - 1 - (i - begin))];
    }
    return n;
}

/* Copy the first `n` bytes of a line, followed by the assembly text of its code, if any. */
static int add_line(struct tl_annotate *a, const char *line, size_t n, uint64_t pc,
                    struct tl_bytes code)
{
    char text[256] = "";
    if (a->options.disasm && code.n > 0)
        tl_codetext_insn(&a->code, a->isa, pc, code, text, sizeof text);
    return tl_buf_printf(&a->out, "%.*s%s%s", (int)n, line, *text ? "  " : "", text);
}

/* Process "PC ENCODING", of I, or "PC", of N; the server may have added " <main+0x10>". */
static int add_insn(struct tl_annotate *a, char *line)
{
    char *end, *const name = strstr(line, " <");
    const uint64_t pc = strtoull(line + 2, &end, 16);
    uint8_t code[INSN_MAX];
    struct tl_bytes bytes = {code, 0};
    if (*end == ' ' && a->has_isa)
        bytes.n = bytes_of(a->isa, end + 1, code);
    const size_t n = name ? (size_t)(name - line) : strlen(line);
    int r = a->options.listing ? tl_codetext_row(&a->code, a->number++, a->isa, pc, bytes, &a->out)
                               : add_line(a, line, n, pc, bytes);
    if (r >= 0 && name)
        r = tl_buf_printf(&a->out, "%s", name);
    if (r >= 0)
        r = tl_codetext_place(a->options.image, pc, &a->out);
    return r < 0 ? r : tl_sources_place(a->options.sources, pc, &a->out);
}

/* Process "FROM TO" of B; the server may have added " <main>". */
static int add_branch(struct tl_annotate *a, const char *line)
{
    const char *const to = strchr(line + 2, ' ');
    const int r = tl_buf_printf(&a->out, "%s", line);
    return r < 0 || !to || strchr(to, '<')
               ? r
               : tl_codetext_place(a->options.image, strtoull(to, NULL, 16), &a->out);
}

/* Write a line of flow text with what is added to it; a listing has only lines of instructions. */
static int take_line(void *context, char *line)
{
    struct tl_annotate *const a = context;
    int r;
    tl_buf_reset(&a->out);
    if (strncmp(line, "M ", 2) == 0)
        tl_annotate_mode(a, line + 2);
    if (strncmp(line, "I ", 2) == 0 || (!a->options.listing && strncmp(line, "N ", 2) == 0))
        r = add_insn(a, line);
    else if (a->options.listing)
        return TL_OK;
    else if (strncmp(line, "B ", 2) == 0)
        r = add_branch(a, line);
    else
        r = tl_buf_add(&a->out, line, strlen(line));
    if (r >= 0)
        r = tl_buf_add(&a->out, "\n", 1);
    if (r < 0)
        return r;
    return tl_write_all(a->file, a->out.p, a->out.n) ? TL_OK : TL_IO;
}

int tl_annotate_push(struct tl_annotate *annotate, struct tl_bytes text)
{
    return tl_linewise_push(&annotate->lines, text, take_line, annotate);
}
