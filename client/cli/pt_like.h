/* SPDX-License-Identifier: MIT */
/* `tracelake decode --format pt --like ptdump|ptxed`: what these tools print. */
#ifndef TL_CLI_PT_LIKE_H
#define TL_CLI_PT_LIKE_H

#include <stdbool.h>

struct tl_setup;

struct tl_cli_pt_like {
    const char *tool, *input;
    const char *cpu;              /* FAMILY/MODEL[/STEPPING]; NULL: not told */
    const struct tl_setup *setup; /* its images */
    char **options;               /* [n_options] of the tool itself */
    int n_options;
};

bool tl_cli_is_pt_tool(const char *name);

/* Print it. Returns the exit status. */
int tl_cli_pt_like(const struct tl_cli_pt_like *like);

#endif
