/* SPDX-License-Identifier: MIT */
/* `tracelake decode --format pt --like ptdump|ptxed`: output in the format of these tools. */
#ifndef TL_OUT_PT_LIKE_H
#define TL_OUT_PT_LIKE_H

#include <stdbool.h>

struct tl_setup;

struct tl_cli_pt_like {
    const char *tool, *input;
    const char *cpu;              /* FAMILY/MODEL[/STEPPING]; NULL: not given */
    const struct tl_setup *setup; /* its images are used */
    char **options;               /* [n_options] options of the tool itself */
    int n_options;
};

bool tl_cli_is_pt_tool(const char *name);

/* Print the output. Returns the exit status. */
int tl_cli_pt_like(const struct tl_cli_pt_like *like);

#endif
