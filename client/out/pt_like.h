/* SPDX-License-Identifier: MIT */
/*
 * `tracelake decode --format pt --like ptdump|ptxed`: the output that these tools of libipt have
 * for the same trace and options, byte for byte.
 */
#ifndef TL_OUT_PT_LIKE_H
#define TL_OUT_PT_LIKE_H

#include <stdbool.h>

struct tl_setup;

/* What is asked for; borrowed. */
struct tl_cli_pt_like {
    const char *tool;             /* "ptdump" or "ptxed" */
    const char *input;            /* FILE[:FROM[-TO]], offsets in bytes */
    const char *cpu;              /* FAMILY/MODEL[/STEPPING]; NULL: not given */
    const struct tl_setup *setup; /* its images are used */
    char **options;               /* [n_options] options of the tool itself */
    int n_options;
};

bool tl_cli_is_pt_tool(const char *name);

/* Print the output on stdout. Returns the exit status; errors are reported. */
int tl_cli_pt_like(const struct tl_cli_pt_like *like);

#endif
