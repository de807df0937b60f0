/* SPDX-License-Identifier: MIT */
/*
 * Shared by the commands of the `tracelake` executable. Each command is one function in cmd_NAME.c
 * that receives its own arguments (argv[0] is its name) and returns an exit status.
 */
#ifndef TL_CLI_H
#define TL_CLI_H

#include "terminal/say.h"

int tl_cmd_view(int argc, char **argv);
int tl_cmd_serve(int argc, char **argv);
int tl_cmd_push(int argc, char **argv);
int tl_cmd_decode(int argc, char **argv);
int tl_cmd_setup(int argc, char **argv);
int tl_cmd_ls(int argc, char **argv);
int tl_cmd_show(int argc, char **argv);
int tl_cmd_rm(int argc, char **argv);
int tl_cmd_cp(int argc, char **argv);
int tl_cmd_label(int argc, char **argv);
int tl_cmd_materialise(int argc, char **argv);
int tl_cmd_seal(int argc, char **argv);
int tl_cmd_redecode(int argc, char **argv);
int tl_cmd_verify(int argc, char **argv);
int tl_cmd_retain(int argc, char **argv);
int tl_cmd_images(int argc, char **argv);
int tl_cmd_get(int argc, char **argv);
int tl_cmd_raw(int argc, char **argv);
int tl_cmd_find(int argc, char **argv);
int tl_cmd_log(int argc, char **argv);
int tl_cmd_stats(int argc, char **argv);
int tl_cmd_call(int argc, char **argv);
int tl_cmd_functions(int argc, char **argv);
int tl_cmd_calls(int argc, char **argv);
int tl_cmd_interrupts(int argc, char **argv);
int tl_cmd_gaps(int argc, char **argv);
int tl_cmd_diff(int argc, char **argv);
int tl_cmd_profile(int argc, char **argv);
int tl_cmd_coverage(int argc, char **argv);
int tl_cmd_tail(int argc, char **argv);
int tl_cmd_store(int argc, char **argv);
int tl_cmd_token(int argc, char **argv);
int tl_cmd_dump(int argc, char **argv);
int tl_cmd_check(int argc, char **argv);
int tl_cmd_slice(int argc, char **argv);
int tl_cmd_simpoints(int argc, char **argv);
int tl_cmd_sql(int argc, char **argv);
int tl_cmd_mcp(int argc, char **argv);

#endif
