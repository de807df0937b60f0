/* SPDX-License-Identifier: MIT */
/* A line of flow text as JSON, with named fields. docs/http.md. */
#ifndef TL_RPC_FLOWJSON_H
#define TL_RPC_FLOWJSON_H

#include "base/bytes.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Create {"at":7,"kind":"I","text":"…","pc":"0x…","encoding":"…"}. A "-" in the text is omitted;
 * numbers and addresses follow the general JSON rules. NULL: out of memory. */
cJSON *tl_flowjson(uint64_t at, struct tl_bytes line);

#endif
