/* SPDX-License-Identifier: MIT */
#include "net/body.h"

#include "net/http.h"
#include "net/scope.h"

void tl_body_expect(struct tl_net *net, const char *method, const char *target,
                    const struct tl_fields *headers, const struct tl_caller *caller,
                    struct tl_body *body)
{
    const struct tl_route *const route = tl_http_route(net, method, target);
    if (!route || !route->body_max)
        return;
    struct tl_scope *scope;
    const char *why;
    const unsigned roles = tl_net_roles(net, headers, caller, true, &scope, &why);
    tl_scope_put(scope);
    if ((roles & route->role) == route->role && tl_net_knows_host(net, headers) &&
        tl_http_same_origin(headers)) {
        body->most = route->body_max;
        body->class_ = tl_role_class(route->role);
    }
}

bool tl_body_add(struct tl_net *net, struct tl_body *body, const uint8_t *p, size_t n)
{
    if (!body->most || body->error)
        return false;
    if (n > body->most - body->data.n)
        body->error = TL_LIMIT;
    else if (!tl_net_hold(net, body->class_, n))
        body->error = TL_NOMEM;
    else
        body->held += n;
    if (!body->error)
        body->error = tl_buf_add(&body->data, p, n);
    return !body->error;
}

void tl_body_fini(struct tl_net *net, struct tl_body *body)
{
    tl_net_release(net, body->class_, body->held);
    body->held = 0;
    tl_buf_fini(&body->data);
}
