/* SPDX-License-Identifier: MIT */
/*
 * Routes requests, checks them, runs handlers, and completes their responses. Whatever all routes
 * need (errors, ETag, gzip, security headers) is done here, so that no handler can forget it.
 */
#include "net/http.h"

#include "base/args.h"
#include "base/jsonout.h"
#include "base/spelling.h"
#include "base/utf8.h"
#include "net/address.h"
#include "net/gzip.h"
#include "net/headscan.h"
#include "net/httprange.h"
#include "net/netint.h"
#include "net/scope.h"
#include "net/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GZIP_FROM  860 /* smaller bodies fit into one packet anyway */
#define MAX_TARGET 8192

/* The page may only run its own script and style, and must not be framed. */
static const char content_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* ---- what handlers use ------------------------------------------------------------------ */

const char *tl_http_query(const struct tl_http_request *request, const char *name)
{
    return tl_fields_get(&request->query, name);
}

const char *tl_http_header(const struct tl_http_request *request, const char *name)
{
    return tl_fields_get(request->headers, name);
}

int tl_http_parse_number(const char *text, const char *what, uint64_t *out, struct tl_fail *fail)
{
    if (tl_number_parse(text, out) < 0)
        return tl_fail_set(fail, TL_USAGE,
                           "%.40s=%.40s is no number; write decimal or 0x… within 64 bits", what,
                           text);
    return TL_OK;
}

int tl_http_args(const struct tl_http_request *request, const struct tl_http_arg *args,
                 struct tl_fail *fail)
{
    for (; args->name; args++) {
        const char *const text = tl_http_query(request, args->name);
        uint64_t n;
        const int rc = text ? tl_http_parse_number(text, args->name, &n, fail) : TL_OK;
        if (rc < 0)
            return rc;
        if (text && args->kind == TL_HTTP_U64)
            *(uint64_t *)args->value = n;
        else if (text && args->kind == TL_HTTP_U32)
            *(uint32_t *)args->value = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        else if (text)
            *(bool *)args->value = n != 0;
    }
    return TL_OK;
}

bool tl_http_accepts(const struct tl_http_request *request, const char *type)
{
    return tl_list_has(tl_http_header(request, "accept"), type);
}

int tl_http_type(struct tl_http_response *response, const char *type)
{
    return tl_fields_add(&response->headers, "content-type", type);
}

/* The HTTP status of an enum tl_err. */
static int status_of(int err)
{
    switch (err) {
    case TL_OK:
        return 200;
    case TL_BAD:
    case TL_USAGE:
        return 400;
    case TL_DENIED:
        return 403;
    case TL_NOTFOUND:
        return 404;
    case TL_EXISTS:
        return 409;
    case TL_LIMIT:
        return 413;
    case TL_NOSPACE:
        return 507;
    case TL_UNSUPPORTED:
        return 501;
    case TL_UNREACHABLE:
    case TL_AGAIN:
    case TL_CANCELLED:
        return 503;
    default:
        return 500;
    }
}

/* ---- errors ----------------------------------------------------------------------------- */

static void let_go(struct tl_http_response *response)
{
    if (response->let_go)
        response->let_go(response->owner);
    response->let_go = NULL;
    response->fixed = (struct tl_bytes){0};
}

static void clear(struct tl_http_response *response)
{
    if (response->release)
        response->release(response->producer);
    response->produce = NULL;
    response->release = NULL;
    let_go(response);
    response->ranges = false;
    response->gzipped = false;
    response->compress = false;
    tl_buf_reset(&response->body);
    tl_fields_fini(&response->headers);
}

/* Both texts are UTF-8. Without memory the error is sent without a body. */
static void fail_with(struct tl_http_response *response, int status, const char *code,
                      const char *text)
{
    struct tl_buf body = {0};
    struct tl_jsonout json = {.out = &body};
    tl_jsonout_open(&json, '{');
    tl_jsonout_name(&json, "error");
    tl_jsonout_text(&json, text);
    tl_jsonout_name(&json, "code");
    tl_jsonout_text(&json, code);
    tl_jsonout_close(&json, '}');
    clear(response);
    response->status = status;
    (void)!tl_http_type(response, "application/json");
    (void)!tl_fields_add(&response->headers, "cache-control", "no-store");
    tl_buf_fini(&response->body);
    if (json.rc >= 0 && tl_buf_add(&body, "\n", 1) >= 0)
        response->body = body;
    else
        tl_buf_fini(&body);
}

static void fail_as(struct tl_http_response *response, int rc)
{
    struct tl_fail *const fail = &response->fail;
    char text[sizeof fail->text + 48];
    if (!fail->text[0])
        snprintf(text, sizeof text, "%s", tl_err_name(rc));
    else if (fail->offset != TL_NO_OFFSET)
        snprintf(text, sizeof text, "offset %llu: %s", (unsigned long long)fail->offset,
                 fail->text);
    else
        snprintf(text, sizeof text, "%s", fail->text);
    tl_utf8_clean(text); /* it may quote the request */
    /* A handler knows which limit it is. */
    const int status = response->status == 429 ? 429 : status_of(rc);
    fail_with(response, status, tl_err_name(rc), text);
    if (status == 429)
        (void)!tl_fields_add(&response->headers, "retry-after", "1");
}

/* ---- routing ---------------------------------------------------------------------------- */

/*
 * Match the percent-encoded path `path`; `part` receives the encoded parts, as offset and length. A
 * slash inside a part can only be written %2F.
 */
struct span {
    const char *p;
    size_t n;
};

static bool match(const char *pattern, struct span path, struct span *part, size_t *n_parts)
{
    const char *p = path.p;
    const char *const end = path.p + path.n;
    *n_parts = 0;
    while (*pattern) {
        if (*pattern != '{') {
            if (p == end || *p++ != *pattern++)
                return false;
            continue;
        }
        const bool rest = pattern[1] == '*';
        const char *const begin = p;
        while (p < end && (rest || *p != '/'))
            p++;
        if (*n_parts == TL_HTTP_PARTS || (p == begin && !rest))
            return false;
        part[(*n_parts)++] = (struct span){begin, (size_t)(p - begin)};
        pattern = strchr(pattern, '}') + 1;
    }
    return p == end;
}

static const char *const verbs[] = {"GET", "PUT", "POST", "DELETE"};

static bool verb_is(const struct tl_route *route, const char *method)
{
    return !strcmp(method, verbs[route->verb]) ||
           (route->verb == TL_GET && !strcmp(method, "HEAD"));
}

static const struct tl_route *find_route(const struct tl_app *app, const char *method,
                                         struct span path, struct span *part, size_t *n_parts)
{
    for (size_t i = 0; i < app->n_routes; i++)
        if (verb_is(&app->routes[i], method) && match(app->routes[i].pattern, path, part, n_parts))
            return &app->routes[i];
    return NULL;
}

/* No route of the path has this verb: list those that exist, if any. */
static void fail_without_route(const struct tl_app *app, struct span path,
                               struct tl_http_response *response)
{
    char allowed[48] = "";
    char text[160];
    for (size_t i = 0; i < app->n_routes; i++) {
        struct span part[TL_HTTP_PARTS];
        size_t n_parts;
        const struct tl_route *const route = &app->routes[i];
        if (strstr(allowed, verbs[route->verb]) || !match(route->pattern, path, part, &n_parts))
            continue;
        const size_t n = strlen(allowed);
        snprintf(allowed + n, sizeof allowed - n, "%s%s", n ? ", " : "",
                 route->verb == TL_GET ? "GET, HEAD" : verbs[route->verb]);
    }
    if (!*allowed) {
        fail_with(response, 404, "not found",
                  "there is nothing here; docs/http.md lists the paths");
        return;
    }
    snprintf(text, sizeof text,
             "only %s are served here; docs/http.md lists what changes something", allowed);
    fail_with(response, 405, "bad request", text);
    (void)!tl_fields_add(&response->headers, "allow", allowed);
}

/* Source: W3C Fetch Metadata Request Headers, 2.4; RFC 6454, 7. */
bool tl_http_same_origin(const struct tl_fields *headers)
{
    const char *const site = tl_fields_get(headers, "sec-fetch-site");
    if (site)
        return !strcmp(site, "same-origin") || !strcmp(site, "none");
    const char *const origin = tl_fields_get(headers, "origin");
    if (!origin)
        return true; /* not a browser */
    const char *host = tl_fields_get(headers, ":authority");
    if (!host)
        host = tl_fields_get(headers, "host");
    const char *const name = strstr(origin, "://");
    return name && host && !strcasecmp(name + 3, host);
}

/* Decoded copies of path and parts, in one allocation that begins with the path. */
static int keep_path(struct tl_http_request *request, struct span path, const struct span *part,
                     size_t n_parts)
{
    size_t total = path.n + 1;
    for (size_t i = 0; i < n_parts; i++)
        total += part[i].n + 1;
    char *at = request->path = malloc(total);
    if (!at)
        return TL_NOMEM;
    memcpy(at, path.p, path.n);
    if (tl_percent_decode(at, path.n, false) < 0)
        return TL_BAD;
    at += path.n + 1;
    for (size_t i = 0; i < n_parts; i++) {
        memcpy(at, part[i].p, part[i].n);
        if (tl_percent_decode(at, part[i].n, false) < 0)
            return TL_BAD;
        request->part[i] = at;
        at += part[i].n + 1;
    }
    request->n_parts = n_parts;
    return TL_OK;
}

/* ---- before and after the handler ------------------------------------------------------- */

/* Is `tag` in an If-None-Match list? Weak comparison, as required by RFC 9110, 13.1.2. */
static bool tag_listed(const char *list, const char *tag)
{
    if (!strncmp(tag, "W/", 2))
        tag += 2;
    const size_t n = strlen(tag);
    while (list && *list) {
        list += strspn(list, " \t,");
        if (*list == '*')
            return true;
        if (!strncmp(list, "W/", 2))
            list += 2;
        if (!strncmp(list, tag, n) && strchr(" \t,", list[n]))
            return true;
        list += strcspn(list, ",");
    }
    return false;
}

/*
 * A response that may be sent gzip'd or plain has the same tag for both, so it must be weak: a
 * strong one means identical bytes. Source: RFC 9110, 8.8.3.3.
 */
static void weaken_tag(struct tl_http_response *response)
{
    struct tl_fields headers = {0};
    const char *const tag = tl_fields_get(&response->headers, "etag");
    if (!tag || !strncmp(tag, "W/", 2) || !(response->gzipped || response->compress))
        return;
    for (size_t i = 0; i < response->headers.n; i++) {
        const char *const name = tl_fields_name(&response->headers, i);
        const char *const value = tl_fields_value(&response->headers, i);
        (void)!tl_fields_addf(&headers, name, strcmp(name, "etag") ? "%s" : "W/%s", value);
    }
    tl_fields_fini(&response->headers);
    response->headers = headers;
}

static void not_modified(struct tl_http_response *response)
{
    struct tl_fields kept = {0};
    static const char *const keep[] = {"etag", "cache-control", "vary"};
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        const char *const value = tl_fields_get(&response->headers, keep[i]);
        if (value)
            (void)!tl_fields_add(&kept, keep[i], value);
    }
    clear(response);
    response->headers = kept;
    response->status = 304;
}

static void gzip_body(const struct tl_http_request *request, struct tl_http_response *response)
{
    const bool wanted = tl_list_has(tl_http_header(request, "accept-encoding"), "gzip");
    struct tl_buf out = {0};
    if (response->gzipped) {
        (void)!tl_fields_add(&response->headers, "vary", "accept-encoding");
        if (wanted) {
            (void)!tl_fields_add(&response->headers, "content-encoding", "gzip");
            return;
        }
        const struct tl_bytes in = response->body.n
                                       ? (struct tl_bytes){response->body.p, response->body.n}
                                       : response->fixed;
        if (tl_gunzip(in, 64u << 20, &out) < 0) {
            tl_buf_fini(&out);
            fail_with(response, 500, "internal", "the stored gzip is damaged");
            return;
        }
        let_go(response);
    } else {
        if (!response->compress || response->body.n < GZIP_FROM)
            return;
        (void)!tl_fields_add(&response->headers, "vary", "accept-encoding");
        const struct tl_bytes in = {response->body.p, response->body.n};
        if (!wanted || tl_gzip(in, 1, &out) < 0) {
            tl_buf_fini(&out);
            return;
        }
        (void)!tl_fields_add(&response->headers, "content-encoding", "gzip");
    }
    tl_buf_fini(&response->body);
    response->body = out;
}

/* "http://host/path" means "/path" to a server. Source: RFC 9112, section 3.2.2. */
static const char *origin_form(const char *target)
{
    const char *const host = !strncasecmp(target, "http://", 7)    ? target + 7
                             : !strncasecmp(target, "https://", 8) ? target + 8
                                                                   : NULL;
    if (!host)
        return target;
    const char *const path = host + strcspn(host, "/?#");
    return *path == '/' ? path : "/";
}

const struct tl_route *tl_http_route(const struct tl_net *net, const char *method,
                                     const char *target)
{
    struct span part[TL_HTTP_PARTS];
    size_t n_parts;
    target = origin_form(target);
    const struct span path = {target, strcspn(target, "?#")};
    return find_route(&net->app, method, path, part, &n_parts);
}

enum tl_effort tl_http_effort(const struct tl_net *net, const char *method, const char *target,
                              unsigned *role)
{
    const struct tl_route *const route = tl_http_route(net, method, target);
    *role = route ? route->role : TL_ROLE_PUBLIC;
    return route ? route->effort : TL_SHORT;
}

/* Is it a browser that opens a page, without a token? */
static bool is_visit(const struct tl_http_request *request)
{
    return !strcmp(request->method, "GET") && !tl_http_header(request, "authorization") &&
           tl_list_has(tl_http_header(request, "accept"), "text/html");
}

/* Redirect to the page that asks for a token, and then returns. Relative, since a proxy may have
 * put the server below a path. */
static void send_to_login(struct tl_http_response *response, const char *target)
{
    static const char kept[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "-._~/";
    struct tl_buf where = {0};
    int rc = TL_OK;
    for (const char *p = target + 1; *p && *p != '?' && rc >= 0; p++)
        if (*p == '/')
            rc = tl_buf_add(&where, "../", 3);
    if (rc >= 0)
        rc = tl_buf_add(&where, "login?next=", 11);
    for (const char *p = target + 1; *p && rc >= 0; p++)
        rc = strchr(kept, *p) ? tl_buf_add(&where, p, 1)
                              : tl_buf_printf(&where, "%%%02X", (unsigned char)*p);
    if (rc >= 0)
        rc = tl_buf_add(&where, "", 1);
    fail_with(response, rc < 0 ? 500 : 303, "not allowed", "a token is needed");
    if (rc >= 0)
        (void)!tl_fields_add(&response->headers, "location", (const char *)where.p);
    tl_buf_fini(&where);
}

static void refuse_role(struct tl_net *net, const struct tl_http_request *request,
                        const struct tl_route *route, const char *target,
                        struct tl_http_response *response)
{
    const bool known = request->roles != 0;
    const char *const why = known ? "the token does not allow this" : request->denial;
    if (why)
        tl_net_denied(net, request->caller, route->pattern, why);
    if (known) {
        fail_with(response, 403, "not allowed", why);
        return;
    }
    if (is_visit(request)) {
        send_to_login(response, target);
        return;
    }
    fail_with(response, 401, "not allowed",
              why ? why : "a token is needed: Authorization: Bearer …, or /login in a browser");
    (void)!tl_fields_add(&response->headers, "www-authenticate", "Bearer realm=\"tracelake\"");
}

/* Does the route take this argument? */
static bool takes(const struct tl_route *route, const char *name)
{
    const struct tl_route_arg *arg = route->takes;
    while (arg->name && strcmp(arg->name, name) != 0)
        arg++;
    return arg->name && *name != '{';
}

/* An argument that it does not take would be an answer to another question. */
static int refuse_argument(const struct tl_route *route, const char *name, struct tl_fail *fail)
{
    char there[160] = "";
    for (const struct tl_route_arg *arg = route->takes; arg->name; arg++) {
        const size_t n = strlen(there);
        const bool again = arg > route->takes && !strcmp(arg->name, arg[-1].name);
        if (*arg->name != '{' && !again)
            snprintf(there + n, sizeof there - n, "%s%s", n ? ", " : "", arg->name);
    }
    return tl_fail_set(fail, TL_USAGE, "\"%.40s\" is no argument here; %s%s", name,
                       *there ? "there are " : "there are none", there);
}

/* What forbids running the handler: the token's scope, the body, an argument that it does not take.
 */
static int check_request(const struct tl_net *net, const struct tl_http_request *request,
                         const struct tl_route *route, struct tl_fail *fail)
{
    if (request->scope && route->reach == TL_REACH_TRACE) {
        const int rc = net->app.covers(net->app.context, request->scope, request->part[0], fail);
        if (rc < 0)
            return rc;
    }
    if (request->body_error == TL_LIMIT)
        return tl_fail_set(fail, TL_LIMIT, "the body is longer than %u bytes",
                           (unsigned)route->body_max);
    if (request->body_error < 0)
        return tl_fail_set(fail, TL_AGAIN, "too much is being sent; try again later");
    for (size_t i = 0; route->takes && i < request->query.n; i++)
        if (!takes(route, tl_fields_name(&request->query, i)))
            return refuse_argument(route, tl_fields_name(&request->query, i), fail);
    return TL_OK;
}

/* False: it cannot be answered without blocking. */
static bool run_route(struct tl_net *net, struct tl_http_request *request, const char *target,
                      struct tl_http_response *response)
{
    const size_t path_n = strcspn(target, "?#");
    const struct span path = {target, path_n};
    struct span part[TL_HTTP_PARTS];
    size_t n_parts = 0;
    if (target[0] != '/' || strlen(target) > MAX_TARGET) {
        fail_with(response, target[0] == '/' ? 414 : 400, "bad request",
                  "the request target is no path of at most 8 KiB");
        return true;
    }
    const struct tl_route *const route =
        find_route(&net->app, request->method, path, part, &n_parts);
    /* Denials are logged, which takes time. */
    if (request->at_once &&
        (!route || !route->run_at_once || request->scope ||
         (request->roles & tl_role_needs(route->role)) != tl_role_needs(route->role)))
        return false;
    if ((!route || tl_role_needs(route->role)) && !tl_net_knows_host(net, request->headers)) {
        fail_with(response, 421, "bad request", tl_foreign_host);
        return true;
    }
    if (!route) {
        fail_without_route(&net->app, path, response);
        return true;
    }
    if (route->verb != TL_GET && !tl_http_same_origin(request->headers)) {
        fail_with(response, 403, "not allowed", "a page of another site asked for this");
        return true;
    }
    if ((request->roles & tl_role_needs(route->role)) != tl_role_needs(route->role)) {
        refuse_role(net, request, route, target, response);
        return true;
    }
    const char *const query = target[path_n] == '?' ? target + path_n + 1 : "";
    if (tl_query_parse(&request->query, query, strcspn(query, "#")) < 0 ||
        keep_path(request, path, part, n_parts) < 0) {
        fail_with(response, 400, "bad request", "the path or query is not well percent-encoded");
        return true;
    }
    if (request->scope && route->reach == TL_REACH_ALL) {
        fail_with(response, 403, "not allowed", "the token is not for all traces");
        return true;
    }
    response->fail.offset = TL_NO_OFFSET;
    const int64_t begin = tl_monotonic_ns();
    int rc = check_request(net, request, route, &response->fail);
    const bool spelled = tl_spelling_set_mangled(tl_names_mangled(request->headers));
    request->route = route;
    if (rc == TL_OK)
        rc = (request->at_once ? route->run_at_once : route->run)(request, response);
    tl_spelling_set_mangled(spelled);
    if (request->at_once && rc == TL_AGAIN)
        return false;
    tl_histogram_add(&net->route_times[route - net->app.routes],
                     (uint64_t)(tl_monotonic_ns() - begin));
    if (rc < 0)
        fail_as(response, rc);
    return true;
}

int tl_http_login(struct tl_http_request *request, struct tl_http_response *response)
{
    response->status = 204;
    const int rc = tl_net_login(request->net, tl_http_header(request, "authorization"),
                                request->tls, &response->headers);
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

int tl_http_logout(struct tl_http_request *request, struct tl_http_response *response)
{
    response->status = 204;
    const int rc = tl_net_logout(request->net, request->tls, &response->headers);
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

static void count(struct tl_net *net, int status)
{
    const int class = status / 100;
    if (class >= 0 && class < 6)
        atomic_fetch_add_explicit(&net->stats.http_class[class], 1, memory_order_relaxed);
}

void tl_http_refuse(struct tl_net *net, struct tl_http_response *response, int status)
{
    fail_with(response, status, "bad request", tl_head_advice(status));
    (void)!tl_fields_add(&response->headers, "x-content-type-options", "nosniff");
    count(net, status);
}

void tl_http_refuse_for(struct tl_net *net, struct tl_http_response *response, const char *why)
{
    fail_with(response, 429, "limit", why);
    (void)!tl_fields_add(&response->headers, "retry-after", "1");
    (void)!tl_fields_add(&response->headers, "x-content-type-options", "nosniff");
    count(net, 429);
}

void tl_http_refuse_share(struct tl_net *net, struct tl_http_response *response,
                          const struct tl_account *account, unsigned use, const char *what)
{
    char why[256];
    tl_http_refuse_for(net, response, tl_account_say(account, use, what, why, sizeof why));
}

static void cut_range(const struct tl_http_request *request, struct tl_http_response *response)
{
    uint64_t total;
    const int rc = tl_http_range(request, response, &total);
    if (rc == TL_LIMIT) {
        fail_with(response, 416, "bad request", "the range is beyond the end");
        (void)!tl_fields_addf(&response->headers, "content-range", "bytes */%llu",
                              (unsigned long long)total);
    } else if (rc < 0) {
        fail_as(response, rc);
    }
}

static bool is_page(const char *type)
{
    return type && !strncmp(type, "text/html", 9);
}

/* Complete any answer, whoever gave it. */
static void complete(struct tl_net *net, struct tl_http_request *request,
                     struct tl_http_response *response)
{
    if (!response->status)
        response->status = 200;
    weaken_tag(response);
    const char *const tag = tl_fields_get(&response->headers, "etag");
    if (response->status == 200 && tag && !response->produce &&
        tag_listed(tl_http_header(request, "if-none-match"), tag))
        not_modified(response);
    if (!response->produce && response->status != 304)
        gzip_body(request, response);
    if (response->status == 200 && response->ranges)
        cut_range(request, response);
    if (is_page(tl_fields_get(&response->headers, "content-type"))) {
        (void)!tl_fields_add(&response->headers, "content-security-policy", content_policy);
        (void)!tl_fields_add(&response->headers, "referrer-policy", "no-referrer");
        (void)!tl_fields_add(&response->headers, "cross-origin-opener-policy", "same-origin");
    }
    (void)!tl_fields_add(&response->headers, "x-content-type-options", "nosniff");
    (void)!tl_fields_add(&response->headers, "cross-origin-resource-policy", "same-origin");
    count(net, response->status);
}

static bool run(struct tl_net *net, struct tl_http_request *request, const char *target,
                struct tl_http_response *response)
{
    request->net = net;
    request->context = net->app.context;
    if (!run_route(net, request, origin_form(target), response))
        return false;
    complete(net, request, response);
    return true;
}

void tl_http_run(struct tl_net *net, struct tl_http_request *request, const char *target,
                 struct tl_http_response *response)
{
    request->at_once = false;
    run(net, request, target, response);
}

bool tl_http_run_at_once(struct tl_net *net, struct tl_http_request *request, const char *target,
                         struct tl_http_response *response)
{
    request->at_once = true;
    if (run(net, request, target, response))
        return true;
    free(request->path);
    request->path = NULL;
    tl_fields_fini(&request->query);
    clear(response);
    response->fail = (struct tl_fail){0};
    return false;
}

void tl_http_request_fini(struct tl_http_request *request)
{
    tl_scope_put(request->scope);
    free(request->path);
    tl_fields_fini(&request->query);
}

void tl_http_response_fini(struct tl_http_response *response)
{
    if (response->release)
        response->release(response->producer);
    response->release = NULL;
    let_go(response);
    tl_buf_fini(&response->body);
    tl_fields_fini(&response->headers);
}
