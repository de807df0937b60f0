/* SPDX-License-Identifier: MIT */
/* The stored images that a trace's setup names. */
#ifndef TL_CLI_SETUPIMAGES_H
#define TL_CLI_SETUPIMAGES_H

#define TL_IMAGE_NAME 72 /* "sha256:<64 hex>" and its NUL */

/* The next "sha256:…" or "build-id:…" of a setup's text, and where it ends. NULL: there is no more.
 */
const char *tl_setup_next_image(const char *setup, char out[static TL_IMAGE_NAME]);

#endif
