/* SPDX-License-Identifier: MIT */
/* Program images of a setup to a server. */
#ifndef TL_CLI_UPLOAD_H
#define TL_CLI_UPLOAD_H

#include "setup/setup.h"
#include "tracelake.h"

/*
 * Store every image file that the setup names on the server, and let the setup name it by its
 * content ("sha256:…") from now on. `tries`: as of tl_remote_again(). TL_ARGS_GO, or the exit status of
 * what was said.
 */
int tl_cli_upload_images(struct tracelake *lake, struct tl_setup *setup, unsigned tries);

#endif
