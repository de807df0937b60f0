/* SPDX-License-Identifier: MIT */
/*
 * What the tools of `tracelake mcp` share: arguments, refusals, parts of answers. A function that
 * returns int returns TL_OK or TL_NOMEM.
 */
#ifndef TL_CLI_MCPCALL_H
#define TL_CLI_MCPCALL_H

#include "cli/mcptools.h"

#define TL_MCP_ROWS      20
#define TL_MCP_ROWS_MOST 1000
#define TL_MCP_BYTES     (24u << 10) /* of rows */
#define TL_MCP_TEXT_MOST 240         /* bytes of a text in a row */

/* A call of a tool. */
struct tl_mcp_call {
    struct tl_mcp_tools *tools; /* connected */
    const cJSON *arguments;     /* NULL: none */
    struct tl_buf *text;        /* the answer, or why there is none */
    bool failed;
};

/* Tell why there is no answer. */
int tl_mcp_refuse(struct tl_mcp_call *call, const char *format, ...) TL_PRINTF(2, 3);
/* … because the server gives none. */
int tl_mcp_lost(struct tl_mcp_call *call, const struct tracelake_error *error);

/* A text that must be there; NULL: it is not, which has been told with the result `*r`. */
const char *tl_mcp_need_text(struct tl_mcp_call *call, const char *name, int *r);
/* A whole number up to `most`; `*out` stays if there is none. False: it is another thing, which has
 * been told with the result `*r`. */
bool tl_mcp_take_number(struct tl_mcp_call *call, const char *name, uint64_t most, uint64_t *out,
                        int *r);

void tl_mcp_put_text(struct tl_jsonout *j, const char *name, const char *text);
void tl_mcp_put_number(struct tl_jsonout *j, const char *name, uint64_t value);
/* A text without its middle if it is long. */
void tl_mcp_put_short(struct tl_jsonout *j, const char *text);
/* The page's address of the instructions around a place; `stream` "": of the whole trace. */
void tl_mcp_put_link(struct tl_mcp_call *call, struct tl_jsonout *j, const char *trace,
                     const char *stream, uint64_t at);

/* Tools that have files of their own. */
int tl_mcp_tell_sql(struct tl_mcp_call *call);
int tl_mcp_tell_disassembly(struct tl_mcp_call *call);
int tl_mcp_tell_source(struct tl_mcp_call *call);

#endif
