/* SPDX-License-Identifier: MIT */
/* The address of a server. */
#ifndef TL_CLIENT_URL_H
#define TL_CLIENT_URL_H

#include "error.h"

struct tl_url {
    bool tls;
    char host[256]; /* without brackets */
    char port[8];
    char authority[272]; /* as the :authority of requests */
};

/* Parse http://HOST[:PORT][/] or https://…, one or several with commas between them, into a new
 * array. TRACELAKE_USAGE says what is wrong. */
TL_MUST_USE int tl_url_parse(struct tl_url **out, size_t *n, const char *text,
                             struct tracelake_error *error);

#endif
