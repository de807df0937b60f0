/* SPDX-License-Identifier: MIT */
/*
 * Options that the reference's tools ptdump and ptxed have in common, and what their values may be.
 * The meaning of each is in the tools' own manuals. Thread-safe.
 */
#ifndef TL_PT_TOOL_OPTIONS_H
#define TL_PT_TOOL_OPTIONS_H

#include "pt/config.h"

/* A number: decimal, 0x… or 0…, at most `most`. False: it is none. */
bool tl_pt_option_number(const char *text, uint64_t most, uint64_t *out);

/* A file, and which part of it is meant. */
struct tl_pt_option_file {
    char name[4096];
    uint64_t offset, length; /* in bytes; length UINT64_MAX: up to its end */
};

/* All of the file `text`. False: its name is too long. */
bool tl_pt_option_file(struct tl_pt_option_file *file, const char *text);
/* Take ":ADDRESS" from the end of its name. False: there is none. */
bool tl_pt_option_address(struct tl_pt_option_file *file, uint64_t *address);
/* Take ":FROM" or ":FROM-TO" from the end of its name, if it has one; what else is behind a colon
 * belongs to the name. False: it ends in front of where it begins. */
bool tl_pt_option_range(struct tl_pt_option_file *file);

/*
 * Read option argv[*i] (and its value) into `config`, and move *i behind it. TL_USAGE: there is no
 * such option, or its value is none.
 */
TL_MUST_USE int tl_pt_config_option(struct tl_pt_config *config, int argc, char **argv, int *i);

#endif
