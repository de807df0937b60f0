/* SPDX-License-Identifier: MIT */
/* Parts of the options of a format that a configuration file has, too. */
#ifndef TL_SETUP_FORMAT_TEXT_H
#define TL_SETUP_FORMAT_TEXT_H

#include "setup/setup.h"

/* Process portN= of a source. TL_NOTFOUND: another key; TL_BAD. */
TL_MUST_USE int tl_setup_port_key(struct tl_source *source, const char *key, const char *value,
                                  struct tl_fail *fail);

#endif
