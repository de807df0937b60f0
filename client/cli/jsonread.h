/* SPDX-License-Identifier: MIT */
/* Members of a server's JSON, where numbers that may pass 2^53 are texts (docs/http.md). */
#ifndef TL_CLI_JSONREAD_H
#define TL_CLI_JSONREAD_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>

/* A number as it is, or as a text; 0: it is none, or not there. */
static inline double tl_json_value(const cJSON *item)
{
    return cJSON_IsString(item)   ? strtod(item->valuestring, NULL)
           : cJSON_IsNumber(item) ? item->valuedouble
                                  : 0;
}

static inline double tl_json_number(const cJSON *object, const char *name)
{
    return tl_json_value(cJSON_GetObjectItem(object, name));
}

/* The same, exactly, of one that is not negative. */
static inline uint64_t tl_json_u64(const cJSON *object, const char *name)
{
    const cJSON *const item = cJSON_GetObjectItem(object, name);
    return cJSON_IsString(item) ? strtoull(item->valuestring, NULL, 10)
                                : (uint64_t)tl_json_value(item);
}

/* A function's name, or what stands for one that has none. */
static inline const char *tl_json_function(const cJSON *object, const char *name)
{
    const char *const text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return text && *text ? text : "(no symbol)";
}

#endif
