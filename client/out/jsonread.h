/* SPDX-License-Identifier: MIT */
/*
 * Accessors for the server's JSON, in which numbers that may exceed 2^53 are strings
 * (docs/http.md).
 */
#ifndef TL_OUT_JSONREAD_H
#define TL_OUT_JSONREAD_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>

/* Value of a number or of a numeric string; 0: absent or not a number. */
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

/* Exact value of a non-negative number. */
static inline uint64_t tl_json_u64(const cJSON *object, const char *name)
{
    const cJSON *const item = cJSON_GetObjectItem(object, name);
    return cJSON_IsString(item) ? strtoull(item->valuestring, NULL, 10)
                                : (uint64_t)tl_json_value(item);
}

/* A function's name, or a placeholder if it has none. */
static inline const char *tl_json_function(const cJSON *object, const char *name)
{
    const char *const text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return text && *text ? text : "(no symbol)";
}

#endif
