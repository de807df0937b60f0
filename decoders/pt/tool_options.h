/* SPDX-License-Identifier: MIT */
/*
 * Options common to the reference's tools ptdump and ptxed, and their value syntax. For their
 * meaning see the tools' manuals. Thread-safe.
 */
#ifndef TL_PT_TOOL_OPTIONS_H
#define TL_PT_TOOL_OPTIONS_H

#include "pt/config.h"

/* Parse a number: decimal, 0x… or 0…, at most `most`. Returns false if invalid. */
bool tl_pt_option_number(const char *text, uint64_t most, uint64_t *out);

/* A file name and the part of the file to use. */
struct tl_pt_option_file {
    char name[4096];
    uint64_t offset, length; /* in bytes; length UINT64_MAX: to the end of the file */
};

/* Set to all of the file `text`. Returns false if its name is too long. */
bool tl_pt_option_file(struct tl_pt_option_file *file, const char *text);
/* Strip ":ADDRESS" from the end of the name. Returns false if there is none. */
bool tl_pt_option_address(struct tl_pt_option_file *file, uint64_t *address);
/* Strip ":FROM" or ":FROM-TO" from the end of the name, if present; anything else after a colon is
 * part of the name. Returns false if the end is before the start. */
bool tl_pt_option_range(struct tl_pt_option_file *file);

/*
 * Parse option argv[*i] (and its value) into `config` and advance *i past it. Returns TL_USAGE:
 * unknown option or invalid value.
 */
TL_MUST_USE int tl_pt_config_option(struct tl_pt_config *config, int argc, char **argv, int *i);

#endif
