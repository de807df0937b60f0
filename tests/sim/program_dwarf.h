/* SPDX-License-Identifier: MIT */
/*
 * The sources of the generated program, and the debug information (DWARF 4) that a compiler would
 * have produced for them. There are two files, one per section, and a header whose function is
 * inlined into every function of 16 or more instructions.
 */
#ifndef TL_SIM_PROGRAM_DWARF_H
#define TL_SIM_PROGRAM_DWARF_H

#include "sim/program.h"

#define TL_SIM_SOURCES 3 /* of the tasks, of the kernel, the header */

/* Paths as the debug information has them. */
extern const char *const tl_sim_source_paths[TL_SIM_SOURCES];
#define TL_SIM_INLINED_NAME "mix"

struct tl_sim_place {
    unsigned source;
    uint32_t line;
    bool inlined;       /* it belongs to the header's function */
    uint32_t call_line; /* if so: line of the call in the section's file */
};

/* Source location of an instruction. False: it belongs to no function. */
bool tl_sim_program_place(const struct tl_sim_program *program, uint32_t insn,
                          struct tl_sim_place *out);
/* Append the text of a source. TL_NOMEM. */
TL_MUST_USE int tl_sim_program_source(const struct tl_sim_program *program, unsigned source,
                                      struct tl_buf *out);

/* Append the contents of .debug_abbrev, .debug_info and .debug_line. TL_NOMEM. */
TL_MUST_USE int tl_sim_program_dwarf(const struct tl_sim_program *program, struct tl_buf *abbrev,
                                     struct tl_buf *info, struct tl_buf *line);

#endif
