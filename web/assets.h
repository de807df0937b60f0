/* SPDX-License-Identifier: MIT */
/*
 * The files of the page, compiled in. The table is made by web/build.mjs at build time; it is
 * constant and may be read from any thread.
 */
#ifndef TL_WEB_ASSETS_H
#define TL_WEB_ASSETS_H

#include <stddef.h>

struct tl_asset {
    const char *path;         /* of the URL, from its '/' on; the page itself is "/" */
    const char *content_type; /* with its charset where that matters */
    const unsigned char *data;
    size_t size;
    const unsigned char *gzip; /* the same, gzip'd; NULL where that would not be smaller */
    size_t gzip_size;
    const char *etag; /* strong, with its quotes; changes with the content */
};

extern const struct tl_asset tl_assets[];
extern const size_t tl_assets_n;

#endif
