/* SPDX-License-Identifier: MIT */
/*
 * Turns names, a range and process numbers into one request for code counts, and runs it. `profile`
 * and `coverage` share it, so that the same selection always means the same code.
 */
#include "cli/codeof.h"

#include "out/outfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tl_codeof_fail(const struct tl_codeof *of, const char *command,
                   const struct tracelake_error *error)
{
    return tl_remote_fail_query(of->request.n_also ? command : of->names[0].trace, error);
}

/* Parse comma-separated numbers. */
static int read_contexts(struct tl_codeof *of, const char *command, const char *text)
{
    if (!text)
        return TL_ARGS_GO;
    of->contexts = calloc(strlen(text) + 1, sizeof *of->contexts);
    if (!of->contexts)
        return tl_cli_warn(command, "out of memory"), TL_CLI_BAD;
    for (const char *p = text;; p++) {
        char *end;
        errno = 0;
        of->contexts[of->request.n_contexts++] = strtoull(p, &end, 0);
        if (end == p || *p == '-' || errno || (*end && *end != ','))
            return tl_cli_usage(command, "--context %s: give context IDs, as N or N,N,…", text);
        if (!*end)
            break;
        p = end;
    }
    of->request.contexts = of->contexts;
    return TL_ARGS_GO;
}

/* Build the request from TRACE[/STREAM]… and the options. */
static int build(struct tl_codeof *of, const char *command, const struct tl_codeof_options *options,
                 char **names, int n)
{
    if (n < 1)
        return tl_cli_usage(command, "name a TRACE[/STREAM]");
    int status = tl_span_check(command, &options->span);
    if (status != TL_ARGS_GO)
        return status;
    of->names = calloc((size_t)n, sizeof *of->names);
    of->also = calloc((size_t)n, sizeof *of->also);
    if (!of->names || !of->also)
        return tl_cli_warn(command, "out of memory"), TL_CLI_BAD;
    status = read_contexts(of, command, options->contexts);
    for (int i = 0; i < n && status == TL_ARGS_GO; i++) {
        status = tl_remote_name(command, names[i], &of->names[i]);
        if (i > 0)
            of->also[i - 1] =
                (struct tracelake_code_source){of->names[i].trace, of->names[i].stream};
    }
    of->request.range = tl_span_range(&options->span, &of->names[0]);
    of->request.also = of->also;
    of->request.n_also = (size_t)n - 1;
    of->request.image = options->image;
    if (options->image && tl_file_hash(options->image, of->hash) == TL_OK)
        of->request.image = of->hash;
    return status;
}

int tl_codeof_run(const char *command, const struct tl_codeof_options *options,
                  const struct tl_remote *remote, const char *path, char **names, int n,
                  int (*write)(const void *context, struct tracelake *lake, struct tl_codeof *of,
                               FILE *file),
                  const void *context)
{
    struct tl_codeof of = {0};
    struct tracelake *lake = NULL;
    struct tl_outfile out;
    int status = build(&of, command, options, names, n);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, remote);
    for (int i = 0; i < n && status == TL_ARGS_GO; i++)
        status = tl_span_there(&options->span, lake, &of.names[i]);
    if (status == TL_ARGS_GO)
        status = tl_outfile_open(&out, path);
    if (status == TL_ARGS_GO)
        status = tl_outfile_close(&out, write(context, lake, &of, out.file));
    tracelake_close(lake);
    free(of.names);
    free(of.also);
    free(of.contexts);
    return status;
}
