/* SPDX-License-Identifier: MIT */
#include "cli/pt_like.h"

#include "cli/cli.h"
#include "pt/ptdump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool tl_cli_is_pt_tool(const char *name)
{
    return !strcmp(name, "ptdump") || !strcmp(name, "ptxed");
}

static int dump(const struct tl_cli_pt_like *like, struct tl_pt_config *config,
                struct tl_bytes trace, struct tl_buf *out)
{
    struct tl_pt_dump_options options = {0};
    for (int i = 0; i < like->n_options;) {
        const int at = i;
        if (tl_pt_dump_option(&options, config, like->n_options, like->options, &i) < 0)
            return tl_cli_usage("decode", "--like ptdump: option '%s' is not known, or its value",
                                like->options[at]);
    }
    return tl_pt_dump(out, &options, config, trace) < 0 ? TL_CLI_BAD : TL_CLI_DONE;
}

int tl_cli_pt_like(const struct tl_cli_pt_like *like)
{
    struct tl_pt_config config = {0};
    struct tl_buf trace = {0}, out = {0};
    struct tl_fail fail = {0};
    if (like->cpu && tl_pt_config_cpu(&config, like->cpu) == TL_BAD)
        return tl_cli_usage("decode", "--cpu %s: give FAMILY/MODEL[/STEPPING]", like->cpu);
    if (tl_buf_read_file(&trace, like->input, SIZE_MAX / 2, &fail) < 0)
        return tl_cli_fail(like->input, &fail);
    int status = dump(like, &config, (struct tl_bytes){trace.p, trace.n}, &out);
    if (status == TL_CLI_DONE && fwrite(out.p, 1, out.n, stdout) != out.n) {
        tl_fail_set(&fail, TL_IO, "cannot write: %s", strerror(errno));
        status = tl_cli_fail(NULL, &fail);
    }
    tl_buf_fini(&out);
    tl_buf_fini(&trace);
    return status;
}
