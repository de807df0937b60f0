/* SPDX-License-Identifier: MIT */
/* A line of flow text as JSON, its fields by name. docs/http.md. */
#ifndef TL_RPC_FLOWJSON_H
#define TL_RPC_FLOWJSON_H

#include "base/bytes.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* {"at":7,"kind":"I","text":"…","pc":"0x…","encoding":"…"}. What is "-" in the text is left out;
 * numbers and addresses as everywhere in JSON. NULL: out of memory. */
cJSON *tl_flowjson(uint64_t at, struct tl_bytes line);

#endif
