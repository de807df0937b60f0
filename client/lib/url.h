/* SPDX-License-Identifier: MIT */
/* Parsing of server URLs. */
#ifndef TL_CLIENT_URL_H
#define TL_CLIENT_URL_H

#include "error.h"

struct tl_url {
    bool tls;
    char host[256]; /* without brackets */
    char port[8];
    char authority[272]; /* the :authority value of requests */
};

/* Parse http://HOST[:PORT][/] or https://…, one or several separated by commas, into a new array.
 * TRACELAKE_USAGE: the error's text gives the reason. */
TL_MUST_USE int tl_url_parse(struct tl_url **out, size_t *n, const char *text,
                             struct tracelake_error *error);

#endif
