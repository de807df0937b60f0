/* SPDX-License-Identifier: MIT */
/*
 * The Model Context Protocol on JSON-RPC 2.0, without input and output: a message in, its answer
 * out. Revisions 2024-11-05 to 2025-11-25, which begin with a handshake, and 2026-07-28, whose
 * requests name theirs; both may be mixed. Not thread-safe.
 */
#ifndef TL_CLI_MCP_H
#define TL_CLI_MCP_H

#include "base/bytes.h"
#include "cli/mcptools.h"

struct tl_mcp {
    struct tl_mcp_tools tools;
};

/* Append the answer to a message, and a line feed; nothing to a notification. `line` may be any
 * bytes. TL_NOMEM. */
TL_MUST_USE int tl_mcp_answer(struct tl_mcp *mcp, struct tl_bytes line, struct tl_buf *out);
/* The answer to a message that is too long. */
TL_MUST_USE int tl_mcp_refuse_long(struct tl_buf *out);

#endif
