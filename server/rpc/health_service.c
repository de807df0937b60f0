/* SPDX-License-Identifier: MIT */
/*
 * grpc.health.v1.Health. It reports SERVING until the server stops, so that a load balancer sends
 * no new calls to one that ends.
 */
#include "rpc/reflection.h"
#include "rpc/rpcint.h"

#include "grpc/health/v1/health.pb-c.h"

#include <string.h>

#define SERVING         GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING     GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
#define SERVICE_UNKNOWN GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

static bool known(struct tl_call *call, const char *service)
{
    const struct tl_reflection *const r = tl_call_rpc(call)->reflection;
    const char *name;
    if (!*service)
        return true;
    for (size_t i = 0; (name = tl_reflection_service(r, i)); i++)
        if (!strcmp(name, service))
            return true;
    return false;
}

static int send_status(struct tl_call *call, int status)
{
    Grpc__Health__V1__HealthCheckResponse reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    reply.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    return tl_call_send(call, &reply.base);
}

static int run_check(struct tl_call *call, const void *message)
{
    const Grpc__Health__V1__HealthCheckRequest *const request = message;
    if (!known(call, request->service))
        return tl_fail_set(tl_call_fail(call), TL_NOTFOUND, "no service \"%.80s\"",
                           request->service);
    return send_status(call, tl_call_draining(call) ? NOT_SERVING : SERVING);
}

static int run_watch(struct tl_call *call, const void *message)
{
    const Grpc__Health__V1__HealthCheckRequest *const request = message;
    const bool is_known = known(call, request->service);
    int rc = send_status(call, is_known ? SERVING : SERVICE_UNKNOWN);
    while (rc == TL_OK && !tl_call_draining(call))
        rc = tl_call_wait(call, -1);
    if (rc == TL_OK && is_known)
        rc = send_status(call, NOT_SERVING);
    return rc == TL_OK ? tl_call_stop(call) : rc;
}

const struct tl_method tl_health_methods[] = {
    {"/grpc.health.v1.Health/Check", &grpc__health__v1__health_check_request__descriptor, TL_UNARY,
     TL_ROLE_HEALTH, run_check, TL_SHORT, TL_REACH_NONE, true},
    {"/grpc.health.v1.Health/Watch", &grpc__health__v1__health_check_request__descriptor,
     TL_SERVER_STREAM, TL_ROLE_HEALTH, run_watch, TL_SHORT, TL_REACH_NONE},
    {NULL, NULL, 0, 0, NULL},
};
