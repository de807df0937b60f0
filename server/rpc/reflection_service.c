/* SPDX-License-Identifier: MIT */
/*
 * grpc.reflection.v1 and v1alpha, which have the same wire format and share one implementation.
 * Descriptors are those that the messages were made from, so that no client needs the .proto files.
 */
#include "rpc/reflection.h"
#include "rpc/rpcint.h"

#include "grpc/reflection/v1/reflection.pb-c.h"

#define MAX_FILES    32
#define MAX_SERVICES 32

typedef Grpc__Reflection__V1__ServerReflectionRequest Request;
typedef Grpc__Reflection__V1__ServerReflectionResponse Response;

static int send_error(struct tl_call *call, Response *reply, int code, const char *text)
{
    Grpc__Reflection__V1__ErrorResponse error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    error.error_code = code;
    error.error_message = (char *)(uintptr_t)text;
    reply->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    reply->error_response = &error;
    return tl_call_send(call, &reply->base);
}

static int send_file(struct tl_call *call, Response *reply, int file)
{
    const struct tl_reflection *const r = tl_call_rpc(call)->reflection;
    Grpc__Reflection__V1__FileDescriptorResponse files =
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    ProtobufCBinaryData data[MAX_FILES];
    int indices[MAX_FILES];
    if (file < 0)
        return send_error(call, reply, TL_GRPC_NOT_FOUND, "no such file or symbol");
    files.n_file_descriptor_proto = tl_reflection_imports(r, file, indices, MAX_FILES);
    for (size_t i = 0; i < files.n_file_descriptor_proto; i++) {
        const struct tl_bytes bytes = tl_reflection_bytes(r, indices[i]);
        data[i] = (ProtobufCBinaryData){bytes.n, (uint8_t *)(uintptr_t)bytes.p};
    }
    files.file_descriptor_proto = data;
    reply->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    reply->file_descriptor_response = &files;
    return tl_call_send(call, &reply->base);
}

static int send_services(struct tl_call *call, Response *reply)
{
    const struct tl_reflection *const r = tl_call_rpc(call)->reflection;
    Grpc__Reflection__V1__ListServiceResponse list =
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    Grpc__Reflection__V1__ServiceResponse rows[MAX_SERVICES];
    Grpc__Reflection__V1__ServiceResponse *pointers[MAX_SERVICES];
    const char *name;
    for (; list.n_service < MAX_SERVICES && (name = tl_reflection_service(r, list.n_service));
         list.n_service++) {
        grpc__reflection__v1__service_response__init(&rows[list.n_service]);
        rows[list.n_service].name = (char *)(uintptr_t)name;
        pointers[list.n_service] = &rows[list.n_service];
    }
    list.service = pointers;
    reply->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    reply->list_services_response = &list;
    return tl_call_send(call, &reply->base);
}

/* Our proto3 files have no extensions. */
static int send_extensions(struct tl_call *call, Response *reply, char *type)
{
    Grpc__Reflection__V1__ExtensionNumberResponse none =
        GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;
    if (!tl_reflection_is_message(tl_call_rpc(call)->reflection, type))
        return send_error(call, reply, TL_GRPC_NOT_FOUND, "no such message type");
    none.base_type_name = type;
    reply->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    reply->all_extension_numbers_response = &none;
    return tl_call_send(call, &reply->base);
}

static int answer(struct tl_call *call, Request *request)
{
    const struct tl_reflection *const r = tl_call_rpc(call)->reflection;
    Response reply = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    reply.valid_host = request->host;
    reply.original_request = request;
    switch ((int)request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        return send_file(call, &reply, tl_reflection_file(r, request->file_by_filename));
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        return send_file(call, &reply, tl_reflection_symbol(r, request->file_containing_symbol));
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        return send_error(call, &reply, TL_GRPC_NOT_FOUND, "there are no extensions");
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        return send_extensions(call, &reply, request->all_extension_numbers_of_type);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        return send_services(call, &reply);
    default:
        return send_error(call, &reply, TL_GRPC_INVALID_ARGUMENT, "the request asks for nothing");
    }
}

static int run_info(struct tl_call *call, const void *none)
{
    for (;;) {
        ProtobufCMessage *request;
        int rc = tl_call_recv(call, &request, -1);
        if (rc == TL_AGAIN && tl_call_draining(call))
            return tl_call_stop(call);
        if (rc == TL_AGAIN)
            continue;
        if (rc < 0)
            return rc == TL_EOF ? TL_OK : rc;
        rc = answer(call, (Request *)request);
        tl_call_free_request(request);
        if (rc < 0)
            return rc;
    }
}

const struct tl_method tl_reflection_methods[] = {
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
     &grpc__reflection__v1__server_reflection_request__descriptor, TL_BIDI, TL_ROLE_PUBLIC,
     run_info, TL_SHORT, TL_REACH_NONE},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
     &grpc__reflection__v1__server_reflection_request__descriptor, TL_BIDI, TL_ROLE_PUBLIC,
     run_info, TL_SHORT, TL_REACH_NONE},
    {NULL, NULL, 0, 0, NULL},
};
