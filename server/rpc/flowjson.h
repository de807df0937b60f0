/* SPDX-License-Identifier: MIT */
/* A line of flow text as JSON, with named fields. docs/http.md. */
#ifndef TL_RPC_FLOWJSON_H
#define TL_RPC_FLOWJSON_H

#include "base/bytes.h"
#include "base/jsonout.h"

/* Write {"at":7,"kind":"I","text":"…","pc":"0x…","encoding":"…"}. A "-" in the text is omitted;
 * numbers and addresses follow the general JSON rules. */
void tl_flowjson(struct tl_jsonout *j, uint64_t at, struct tl_bytes line);

#endif
