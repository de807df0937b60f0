/* SPDX-License-Identifier: MIT */
/* Notes: methods of tracelake.v1.Catalog, and handlers of HTTP paths. */
#ifndef TL_RPC_NOTES_H
#define TL_RPC_NOTES_H

#include "rpc/rpcint.h"

int tl_run_list_notes(struct tl_call *call, const void *message);
int tl_run_put_note(struct tl_call *call, const void *message);
int tl_run_delete_note(struct tl_call *call, const void *message);

int tl_web_put_note(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_delete_note(struct tl_http_request *request, struct tl_http_response *response);

#endif
