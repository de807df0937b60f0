/* SPDX-License-Identifier: MIT */
/*
 * Stands in place of the store in RADOS where there is no librados. It gives an error that says so,
 * and everything else is built without a condition.
 */
#include "rados/rados.h"

int tl_backend_rados(struct tl_backend **out, const char *url, struct tl_fail *fail)
{
    (void)out;
    return tl_fail_set(fail, TL_UNSUPPORTED,
                       "%.80s: this build has no librados; install librados-dev and build again",
                       url);
}

bool tl_is_rados(const char *url)
{
    return strncmp(url, "rados:", 6) == 0;
}
