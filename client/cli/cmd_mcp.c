/* SPDX-License-Identifier: MIT */
/*
 * `tracelake mcp`: questions of assistants, on standard input and output, a message in each line.
 * The server is connected to by the first question, so that the program that starts this one finds
 * it ready in any case.
 */
#include "base/whole.h"
#include "cli/cli.h"
#include "cli/mcp.h"

#include <stdio.h>

#define LONGEST (4u << 20) /* bytes of a message */

/* Read a line: 1, or 0 at the end of the input. `*whole`: it is not longer than it may be. */
static int read_line(struct tl_buf *line, bool *whole)
{
    int c;
    tl_buf_reset(line);
    *whole = true;
    while ((c = getc(stdin)) != EOF && c != '\n') {
        const uint8_t byte = (uint8_t)c;
        *whole = *whole && line->n < LONGEST;
        if (*whole && tl_buf_add(line, &byte, 1) < 0)
            return TL_NOMEM;
    }
    return c != EOF || line->n > 0;
}

static bool is_blank(const struct tl_buf *line)
{
    for (size_t i = 0; i < line->n; i++)
        if (line->p[i] != ' ' && line->p[i] != '\t' && line->p[i] != '\r')
            return false;
    return true;
}

static int serve(struct tl_mcp *mcp)
{
    struct tl_buf line = {0}, out = {0};
    bool whole;
    int r;
    while ((r = read_line(&line, &whole)) > 0) {
        tl_buf_reset(&out);
        if (!whole)
            r = tl_mcp_refuse_long(&out);
        else if (!is_blank(&line))
            r = tl_mcp_answer(mcp, (struct tl_bytes){line.p, line.n}, &out);
        if (r >= 0 && (!tl_write_all(stdout, out.p, out.n) || fflush(stdout) != 0))
            r = TL_IO;
        if (r < 0)
            break;
    }
    tl_buf_fini(&line);
    tl_buf_fini(&out);
    if (r == TL_NOMEM)
        tl_cli_warn("mcp", "out of memory");
    return r < 0 ? TL_CLI_BAD : TL_CLI_DONE; /* who does not read any more is gone */
}

int tl_cmd_mcp(int argc, char **argv)
{
    struct tl_mcp mcp = {0};
    const struct tl_option args[] = {
        TL_NAMES_ARG(mcp.tools.remote), TL_REMOTE_ARGS(mcp.tools.remote), {0}};
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc != first)
        status = tl_cli_usage("mcp", "it takes no arguments");
    if (status == TL_ARGS_GO)
        status = serve(&mcp);
    tl_mcp_tools_fini(&mcp.tools);
    return status;
}
