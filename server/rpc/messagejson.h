/* SPDX-License-Identifier: MIT */
/*
 * A protobuf message as JSON of the HTTP interface, by its descriptor: for answers that RPC and
 * HTTP give alike. Fields have the message's names, except `begin`, which is `from` there.
 */
#ifndef TL_RPC_MESSAGEJSON_H
#define TL_RPC_MESSAGEJSON_H

#include <cjson/cJSON.h>
#include <protobuf-c/protobuf-c.h>

/*
 * The message's fields in order; `pc` as an address; fields of messages that are not set are
 * absent, as are negative numbers, which stand for something unknown. NULL: out of memory.
 */
cJSON *tl_messagejson(const ProtobufCMessage *message);

#endif
