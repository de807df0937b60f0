/* SPDX-License-Identifier: MIT */
/*
 * The tools of `tracelake mcp`: traces, schema, sql, disassembly, source. Each gives JSON in few
 * kilobytes, names what it leaves out, and a link to the page for each place.
 */
#ifndef TL_CLI_MCPTOOLS_H
#define TL_CLI_MCPTOOLS_H

#include "base/jsonout.h"
#include "terminal/remote.h"

#include <cjson/cJSON.h>

/* Zero-initialise but for `remote`. */
struct tl_mcp_tools {
    struct tl_remote remote;
    struct tracelake *lake; /* NULL: not connected at present */
};
void tl_mcp_tools_fini(struct tl_mcp_tools *tools);

/* Write the array that tools/list has. */
void tl_mcp_tools_list(struct tl_jsonout *j);

/*
 * Run a tool. `text` receives its answer, or with `*failed` why there is none, for whoever asks
 * again. `arguments` (NULL: none) are of any kind. TL_NOTFOUND: no such tool; TL_NOMEM.
 */
TL_MUST_USE int tl_mcp_tools_call(struct tl_mcp_tools *tools, const char *name,
                                  const cJSON *arguments, struct tl_buf *text, bool *failed);

#endif
