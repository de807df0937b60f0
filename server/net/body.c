/* SPDX-License-Identifier: MIT */
/*
 * Keeps a request's body within the limits of its route, its client and the server. Bytes are
 * counted as they arrive, so that an announced length costs nothing.
 */
#include "net/body.h"

#include "net/http.h"

void tl_body_expect(struct tl_net *net, const char *method, const char *target,
                    const struct tl_fields *headers, unsigned roles, struct tl_account *account,
                    struct tl_body *body)
{
    const struct tl_route *const route = tl_http_route(net, method, target);
    if (!route || !route->body_max)
        return;
    const unsigned needs = tl_role_needs(route->role);
    if ((roles & needs) == needs && tl_net_knows_host(net, headers) &&
        tl_http_same_origin(headers)) {
        body->most = route->body_max;
        body->use = TL_USE_INBOUND + tl_role_class(route->role);
        body->account = account;
    }
}

/* What the buffer takes is counted, not only what is in it. */
static int hold(struct tl_body *body, size_t n)
{
    const size_t before = body->data.cap;
    if (n <= before - body->data.n)
        return TL_OK;
    const size_t grown = body->data.n + n > 2 * before ? body->data.n + n : 2 * before;
    if (!tl_account_take(body->account, body->use, grown - before))
        return TL_NOMEM;
    body->held += grown - before;
    return tl_buf_reserve(&body->data, grown - body->data.n);
}

bool tl_body_add(struct tl_body *body, const uint8_t *p, size_t n)
{
    if (!body->most || body->error)
        return false;
    body->error = n > body->most - body->data.n ? TL_LIMIT : hold(body, n);
    if (!body->error)
        body->error = tl_buf_add(&body->data, p, n);
    return !body->error;
}

void tl_body_fini(struct tl_body *body)
{
    if (body->held)
        tl_account_release(body->account, body->use, body->held);
    body->held = 0;
    tl_buf_fini(&body->data);
}
