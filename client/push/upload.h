/* SPDX-License-Identifier: MIT */
/* Upload of a setup's program images to a server. */
#ifndef TL_PUSH_UPLOAD_H
#define TL_PUSH_UPLOAD_H

#include "setup/setup.h"
#include "tracelake.h"

/*
 * Store every image file named in the setup on the server, and replace its name in the setup by its
 * content hash ("sha256:…"). `tries`: how often each is sent again, at most, see tl_remote_again().
 * TL_ARGS_GO, or the exit status of a reported error.
 */
int tl_cli_upload_images(struct tracelake *lake, struct tl_setup *setup, unsigned tries);

/* Report a file that is not a program by its first bytes, unless it is a dump of memory.
 * TL_ARGS_GO, or the exit status if it was reported. */
int tl_cli_check_image(const char *path);

#endif
