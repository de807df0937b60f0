/* SPDX-License-Identifier: MIT */
/*
 * Runs the Intel PT decoder and prints in the manner of libipt's ptdump and ptxed. Scripts parse
 * and compare the text of these tools, so that nothing in it may differ.
 */
#include "out/pt_like.h"

#include "base/whole.h"
#include "pt/ptdump.h"
#include "pt/ptxed.h"
#include "pt/tool_options.h"
#include "setup/setup.h"
#include "terminal/say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool tl_cli_is_pt_tool(const char *name)
{
    return !strcmp(name, "ptdump") || !strcmp(name, "ptxed");
}

static int unknown_option(const struct tl_cli_pt_like *like, const char *option)
{
    if (!strncmp(option, "--sb", 4) || !strncmp(option, "--pevent", 8))
        return tl_cli_usage("decode",
                            "--like %s: option '%s': sideband files are not read; give the whole "
                            "perf.data as INPUT of decode --text",
                            like->tool, option);
    return tl_cli_usage("decode", "--like %s: option '%s' is not known, or its value", like->tool,
                        option);
}

static int dump(const struct tl_cli_pt_like *like, struct tl_pt_config *config,
                struct tl_bytes trace, struct tl_buf *out)
{
    struct tl_pt_dump_options options = {0};
    for (int i = 0; i < like->n_options;) {
        const int at = i;
        if (tl_pt_dump_option(&options, config, like->n_options, like->options, &i) < 0)
            return unknown_option(like, like->options[at]);
    }
    return tl_pt_dump(out, &options, config, trace) < 0 ? TL_CLI_BAD : TL_CLI_DONE;
}

static int list_flow(const struct tl_cli_pt_like *like, struct tl_pt_config *config,
                     struct tl_image *image, struct tl_bytes trace, struct tl_buf *out)
{
    struct tl_pt_xed_options options = {0};
    struct tl_fail fail = {0};
    int rc = tl_setup_load_images(like->setup, image, NULL, NULL, &fail);
    for (int i = 0; rc >= 0 && i < like->n_options;) {
        const int at = i;
        rc = tl_pt_xed_option(&options, config, image, like->n_options, like->options, &i, &fail);
        if (rc == TL_USAGE && !fail.text[0])
            return unknown_option(like, like->options[at]);
    }
    if (rc >= 0)
        rc = tl_image_freeze(image);
    if (rc >= 0)
        rc = tl_pt_xed(out, &options, config, image, trace);
    return rc < 0 ? tl_cli_fail(like->input, &fail) : TL_CLI_DONE;
}

static int xed(const struct tl_cli_pt_like *like, struct tl_pt_config *config,
               struct tl_bytes trace, struct tl_buf *out)
{
    struct tl_image *image = NULL;
    if (tl_image_new(&image) < 0)
        return TL_CLI_BAD;
    const int status = list_flow(like, config, image, trace, out);
    tl_image_free(image);
    return status;
}

int tl_cli_pt_like(const struct tl_cli_pt_like *like)
{
    struct tl_pt_config config = {0};
    struct tl_buf trace = {0}, out = {0};
    struct tl_fail fail = {0};
    struct tl_pt_option_file input;
    if (like->cpu && tl_pt_config_cpu(&config, like->cpu) == TL_BAD)
        return tl_cli_usage("decode", "--cpu %s: give FAMILY/MODEL[/STEPPING]", like->cpu);
    if (!tl_pt_option_file(&input, like->input) || !tl_pt_option_range(&input))
        return tl_cli_usage("decode", "%s: give FILE[:FROM[-TO]]", like->input);
    if (tl_buf_read_file(&trace, input.name, SIZE_MAX / 2, &fail) < 0)
        return tl_cli_fail(input.name, &fail);
    const uint64_t length = input.length == UINT64_MAX ? trace.n - input.offset : input.length;
    if (input.offset > trace.n || length > trace.n - input.offset) {
        tl_buf_fini(&trace);
        return tl_cli_usage("decode", "%s: the file ends before that", like->input);
    }
    const struct tl_bytes bytes = {trace.p + input.offset, (size_t)length};
    int status = !strcmp(like->tool, "ptdump") ? dump(like, &config, bytes, &out)
                                               : xed(like, &config, bytes, &out);
    if (status == TL_CLI_DONE && !tl_write_all(stdout, out.p, out.n)) {
        tl_fail_set(&fail, TL_IO, "cannot write: %s", strerror(errno));
        status = tl_cli_fail(NULL, &fail);
    }
    tl_buf_fini(&out);
    tl_buf_fini(&trace);
    return status;
}
