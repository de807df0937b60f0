/* SPDX-License-Identifier: MIT */
/*
 * tracelake.v1.Catalog: lists, watches and changes traces. Lists are sent in several messages, as
 * many rows as fit into each.
 */
#include "base/members.h"
#include "lake_ingest.h"
#include "lake_upkeep.h"
#include "rpc/convert.h"
#include "rpc/lookups_service.h"
#include "rpc/notes.h"
#include "rpc/rpcint.h"
#include "rpc/scoped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_OUT "There are more findings than one reply holds.\n"

static int no_trace(struct tl_call *call, int rc, const char *trace)
{
    struct tl_fail *const fail = tl_call_fail(call);
    return fail->text[0] ? rc
                         : tl_fail_set(fail, rc, "trace \"%.63s\": %s", trace, tl_err_name(rc));
}

#define PAGE 1024 /* rows read per message */

/* Send rows from `*next` on, as many as fit into one message. */
static int send_page(struct tl_call *call, struct tl_trace_list *list, size_t *next, bool more)
{
    Tracelake__V1__ListTracesReply reply;
    int rc = tl_traces_pb(list, next, 0, more, &reply);
    if (rc == TL_OK) {
        rc = tl_call_send(call, &reply.base);
        tl_traces_pb_free(&reply);
    }
    return rc;
}

static int run_list(struct tl_call *call, const void *message)
{
    const Tracelake__V1__ListTracesRequest *const request = message;
    const char *const token = request->page_token;
    const size_t most = request->page_size && request->page_size < PAGE ? request->page_size : PAGE;
    struct tl_trace_place place;
    struct tl_trace_list list = {0};
    if (*token && tl_place_read(token, &place) < 0)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "\"%.80s\" is no page token", token);
    int rc = tl_scoped_page(tl_call_rpc(call)->lake, tl_call_scope(call), *token ? &place : NULL,
                            most, &list);
    if (rc >= 0)
        rc = send_page(call, &list, &(size_t){0}, rc > 0);
    tl_trace_list_free(&list);
    return rc;
}

static int send_trace(struct tl_call *call, const char *trace)
{
    struct tl_trace_list list = {0};
    Tracelake__V1__ListTracesReply reply;
    int rc = tl_lake_trace(tl_call_rpc(call)->lake, trace, &list);
    if (rc < 0)
        return no_trace(call, rc, trace);
    rc = tl_traces_pb(&list, &(size_t){0}, 1, false, &reply);
    if (rc == TL_OK) {
        rc = reply.n_traces ? tl_call_send(call, &reply.traces[0]->base) : TL_NOTFOUND;
        tl_traces_pb_free(&reply);
    }
    tl_trace_list_free(&list);
    return rc;
}

static int run_get(struct tl_call *call, const void *message)
{
    const Tracelake__V1__GetTraceRequest *const request = message;
    return send_trace(call, request->trace);
}

/* ---- watching --------------------------------------------------------------------------- */

struct watch {
    struct tl_call *call;
    const Tracelake__V1__WatchTracesRequest *request;
    uint64_t sent; /* revision; if `begun` */
    bool begun;
};

/* Send the state if it differs from the last one sent. */
static int send_state(void *context)
{
    struct watch *const w = context;
    struct tl_call *const call = w->call;
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    const uint32_t limit = w->request->limit;
    const char *const trace = w->request->trace;
    struct tl_trace_list list = {0};
    int rc = TL_OK;
    if (!*trace && w->begun && !tl_has_news(lake, w->sent))
        return TL_OK;
    if (!*trace)
        rc = limit ? tl_scoped_page(lake, tl_call_scope(call), NULL, limit, &list)
                   : tl_scoped_traces(lake, tl_call_scope(call), &list);
    else
        rc = tl_scoped_covers(lake, tl_call_scope(call), trace, tl_call_fail(call));
    if (rc >= 0 && *trace)
        rc = tl_lake_trace(lake, trace, &list);
    if (rc < 0) {
        tl_trace_list_free(&list);
        return no_trace(call, rc, trace);
    }
    const bool more = rc > 0;
    rc = TL_OK;
    const uint64_t revision = *trace && list.n ? list.rows[0].revision : list.revision;
    if (!w->begun || revision != w->sent) {
        w->begun = true;
        w->sent = revision;
        size_t next = 0;
        do
            rc = send_page(call, &list, &next, more);
        while (rc == TL_OK && next < list.n);
    }
    tl_trace_list_free(&list);
    return rc;
}

static int run_watch(struct tl_call *call, const void *message)
{
    struct watch watch = {.call = call, .request = message};
    if (watch.request->limit > TL_PAGE_MAX)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "limit is at most %d", TL_PAGE_MAX);
    return tl_on_changes(call, send_state, &watch);
}

/* ---- changing --------------------------------------------------------------------------- */

#define DELETE_MAX 4096 /* traces per request */

/* Traces to be deleted, and the failures. */
struct deletion {
    const char **names;
    size_t n;
    Tracelake__V1__Refusal *refusals, **refused;
    size_t n_refused;
};

static void deletion_fini(struct deletion *d)
{
    for (size_t i = 0; i < d->n_refused; i++)
        free(d->refusals[i].message);
    free(d->names);
    free(d->refusals);
    free(d->refused);
}

static int deletion_init(struct deletion *d, size_t n)
{
    *d = (struct deletion){.names = calloc(n, sizeof *d->names),
                           .refusals = calloc(n, sizeof *d->refusals),
                           .refused = calloc(n, sizeof *d->refused)};
    return d->names && d->refusals && d->refused ? TL_OK : TL_NOMEM;
}

static void refuse(struct deletion *d, const char *trace, int code, const char *text)
{
    Tracelake__V1__Refusal *const r = d->refused[d->n_refused] = &d->refusals[d->n_refused];
    tracelake__v1__refusal__init(r);
    r->trace = (char *)(uintptr_t)trace;
    r->code = (int32_t)tl_grpc_status_of(code);
    r->message = strdup(text); /* NULL: omitted by protobuf-c */
    d->n_refused++;
}

static void refused(void *context, size_t i, int code, const struct tl_fail *fail)
{
    struct deletion *const d = context;
    refuse(d, d->names[i], code, fail->text[0] ? fail->text : tl_err_name(code));
}

/* The token may not include all of them. */
static void add_names(struct tl_call *call, const Tracelake__V1__DeleteTraceRequest *request,
                      struct deletion *d)
{
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    const struct tl_scope *const scope = tl_call_scope(call);
    for (size_t i = 0; i <= request->n_more; i++) {
        const char *const name = i == 0 ? request->trace : request->more[i - 1];
        struct tl_fail fail = {0};
        const int rc = tl_scoped_covers(lake, scope, name, &fail);
        if (rc < 0)
            refuse(d, name, rc, fail.text);
        else
            d->names[d->n++] = name;
    }
}

static int delete_all(struct tl_call *call, const Tracelake__V1__DeleteTraceRequest *request)
{
    Tracelake__V1__DeleteTraceReply reply = TRACELAKE__V1__DELETE_TRACE_REPLY__INIT;
    struct deletion d;
    if (request->n_more >= DELETE_MAX)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "more than %d traces at once", DELETE_MAX);
    int rc = deletion_init(&d, request->n_more + 1);
    if (rc == TL_OK) {
        add_names(call, request, &d);
        reply.removed = tl_lake_delete_all(tl_call_rpc(call)->lake, d.names, d.n, refused, &d);
        reply.n_refused = d.n_refused;
        reply.refused = d.refused;
        rc = tl_call_send(call, &reply.base);
    }
    deletion_fini(&d);
    return rc;
}

static int run_delete(struct tl_call *call, const void *message)
{
    const Tracelake__V1__DeleteTraceRequest *const request = message;
    if (request->n_more > 0)
        return delete_all(call, request);
    const int rc = tl_lake_delete(tl_call_rpc(call)->lake, request->trace, tl_call_fail(call));
    if (rc < 0)
        return no_trace(call, rc, request->trace);
    Tracelake__V1__DeleteTraceReply reply = TRACELAKE__V1__DELETE_TRACE_REPLY__INIT;
    reply.removed = 1;
    return tl_call_send(call, &reply.base);
}

static int add_label(struct tl_buf *out, const char *key, const char *value, struct tl_fail *fail)
{
    if (!*key || strpbrk(key, "=\n") || strchr(value, '\n'))
        return tl_fail_set(fail, TL_USAGE, "a label is key=value on one line, and has a key");
    return tl_buf_printf(out, "%s=%s\n", key, value);
}

static int run_set_labels(struct tl_call *call, const void *message)
{
    const Tracelake__V1__SetLabelsRequest *const request = message;
    struct tl_buf text = {0};
    int rc = TL_OK;
    for (size_t i = 0; i < request->n_labels && rc == TL_OK; i++)
        rc = add_label(&text, request->labels[i]->key, request->labels[i]->value,
                       tl_call_fail(call));
    if (rc == TL_OK)
        rc = tl_buf_add(&text, "", 1);
    if (rc == TL_OK)
        rc = tl_lake_set_labels(tl_call_rpc(call)->lake, request->trace, (char *)text.p,
                                tl_call_fail(call));
    tl_buf_fini(&text);
    return rc < 0 ? no_trace(call, rc, request->trace) : send_trace(call, request->trace);
}

static int run_redecode(struct tl_call *call, const void *message)
{
    const Tracelake__V1__RedecodeRequest *const request = message;
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    struct tl_fail *const fail = tl_call_fail(call);
    if (request->back && *request->setup)
        return tl_fail_set(fail, TL_USAGE, "say either a setup or back");
    const int rc = request->back ? tl_lake_redecode_back(lake, request->trace, fail)
                                 : tl_lake_redecode(lake, request->trace,
                                                    *request->setup ? request->setup : NULL, fail);
    return rc < 0 ? no_trace(call, rc, request->trace) : send_trace(call, request->trace);
}

static int run_seal(struct tl_call *call, const void *message)
{
    const Tracelake__V1__SealRequest *const request = message;
    const int rc = tl_lake_seal(tl_call_rpc(call)->lake, request->trace, tl_call_fail(call));
    return rc < 0 ? no_trace(call, rc, request->trace) : send_trace(call, request->trace);
}

/* Limit the report to what fits into a reply, in whole lines. */
static int end_report(struct tl_buf *report)
{
    size_t n = report->n;
    if (n <= TL_REPLY_BYTES)
        return tl_buf_add(report, "", 1);
    n = TL_REPLY_BYTES;
    while (n > 0 && report->p[n - 1] != '\n')
        n--;
    report->n = n;
    return tl_buf_add(report, LEFT_OUT, sizeof LEFT_OUT);
}

static int run_verify(struct tl_call *call, const void *message)
{
    const Tracelake__V1__VerifyRequest *const request = message;
    Tracelake__V1__VerifyReply reply = TRACELAKE__V1__VERIFY_REPLY__INIT;
    struct tl_buf report = {0};
    if (request->repair && !tl_call_may(call, TL_ROLE_ADMIN))
        return tl_fail_set(tl_call_fail(call), TL_DENIED, "to repair needs the role admin");
    int rc = tl_lake_verify(tl_call_rpc(call)->lake, request->trace, request->repair, &report,
                            tl_call_fail(call));
    if (rc >= 0) {
        reply.findings = (uint32_t)rc;
        rc = end_report(&report);
    } else {
        rc = no_trace(call, rc, request->trace);
    }
    if (rc == TL_OK) {
        reply.report = (char *)report.p;
        rc = tl_call_send(call, &reply.base);
    }
    tl_buf_fini(&report);
    return rc;
}

/* ---- retention -------------------------------------------------------------------------- */

/* Texts are borrowed from the row. */
static void fill_rule(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_retention_row *const from = row;
    Tracelake__V1__RetentionRule *const rule = message;
    (void)reply; /* has the row */
    rule->scope = (char *)(uintptr_t)from->scope;
    TL_COPY_MEMBERS(rule, &from->rule, raw_age_s, raw_bytes, decoded_age_s, decoded_bytes);
}

static int answer_retention(const struct tl_asker *asker, const void *request,
                            struct tl_reply *reply, struct tl_fail *fail)
{
    Tracelake__V1__ListRetentionReply *const m =
        tl_reply_begin(reply, &tracelake__v1__list_retention_reply__descriptor);
    struct tl_retention_row *rows = NULL;
    size_t n = 0;
    const int rc = m ? tl_lake_retention(asker->lake, &rows, &n) : TL_NOMEM;
    (void)request;
    (void)fail;
    tl_reply_keep(reply, rows);
    if (rc >= 0 && !reply->failed)
        TL_REPLY_ROWS(reply, m, rules, retention_rule, rows, n, fill_rule);
    return tl_reply_done(reply, rc);
}

static int run_list_retention(struct tl_call *call, const void *message)
{
    return tl_call_answer(call, message, answer_retention);
}

static int run_set_retention(struct tl_call *call, const void *message)
{
    const Tracelake__V1__SetRetentionRequest *const request = message;
    const Tracelake__V1__RetentionRule *const rule = request->rule;
    if (!rule)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "say which rule");
    const struct tl_retention limits = {rule->raw_age_s, rule->raw_bytes, rule->decoded_age_s,
                                        rule->decoded_bytes};
    const int rc = tl_lake_set_retention(tl_call_rpc(call)->lake, rule->scope,
                                         request->remove ? NULL : &limits, tl_call_fail(call));
    return rc < 0 ? rc : run_list_retention(call, message);
}

struct plan {
    struct tl_reply *reply;
    Tracelake__V1__RetentionVictim **victims;
    size_t n, cap;
};

static int add_victim(void *context, const struct tl_retention_victim *from)
{
    struct plan *const plan = context;
    if (tl_grow(&plan->victims, &plan->cap, plan->n + 1, sizeof *plan->victims) < 0)
        return TL_NOMEM;
    Tracelake__V1__RetentionVictim *const v =
        tl_reply_new(plan->reply, &tracelake__v1__retention_victim__descriptor);
    if (!v)
        return TL_NOMEM;
    plan->victims[plan->n++] = v;
    v->trace = tl_reply_text(plan->reply, from->trace);
    v->what = tl_reply_text(plan->reply, from->what);
    v->scope = tl_reply_text(plan->reply, from->scope);
    TL_COPY_MEMBERS(v, from, by_age, age_s, limit, bytes);
    return tl_reply_done(plan->reply, TL_OK);
}

static int answer_plan(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                       struct tl_fail *fail)
{
    const Tracelake__V1__RetentionRule *const rule =
        ((const Tracelake__V1__PlanRetentionRequest *)request)->rule;
    Tracelake__V1__PlanRetentionReply *const m =
        tl_reply_begin(reply, &tracelake__v1__plan_retention_reply__descriptor);
    struct tl_retention_row tried = {0};
    struct plan plan = {.reply = reply};
    bool paused = false;
    if (!m)
        return TL_NOMEM;
    if (rule) {
        if (strlen(rule->scope) >= sizeof tried.scope)
            return tl_fail_set(fail, TL_USAGE, "the scope is too long");
        snprintf(tried.scope, sizeof tried.scope, "%s", rule->scope);
        tried.rule = (struct tl_retention){rule->raw_age_s, rule->raw_bytes, rule->decoded_age_s,
                                           rule->decoded_bytes};
    }
    const int rc =
        tl_lake_plan_retention(asker->lake, rule ? &tried : NULL, add_victim, &plan, &paused, fail);
    tl_reply_keep(reply, plan.victims);
    m->victims = plan.victims;
    m->n_victims = plan.n;
    m->paused = paused;
    return tl_reply_done(reply, rc);
}

static int run_plan_retention(struct tl_call *call, const void *message)
{
    return tl_call_answer(call, message, answer_plan);
}

const struct tl_method tl_catalog_methods[] = {
    {"/tracelake.v1.Catalog/ListTraces", &tracelake__v1__list_traces_request__descriptor, TL_UNARY,
     TL_ROLE_READ, run_list, TL_SHORT, TL_REACH_OWN},
    {"/tracelake.v1.Catalog/GetTrace", &tracelake__v1__get_trace_request__descriptor, TL_UNARY,
     TL_ROLE_READ, run_get},
    {"/tracelake.v1.Catalog/WatchTraces", &tracelake__v1__watch_traces_request__descriptor,
     TL_SERVER_STREAM, TL_ROLE_READ, run_watch, TL_LASTING, TL_REACH_OWN},
    {"/tracelake.v1.Catalog/DeleteTrace", &tracelake__v1__delete_trace_request__descriptor,
     TL_UNARY, TL_ROLE_ADMIN, run_delete},
    {"/tracelake.v1.Catalog/SetLabels", &tracelake__v1__set_labels_request__descriptor, TL_UNARY,
     TL_ROLE_PUSH, run_set_labels},
    {"/tracelake.v1.Catalog/Redecode", &tracelake__v1__redecode_request__descriptor, TL_UNARY,
     TL_ROLE_PUSH, run_redecode},
    {"/tracelake.v1.Catalog/Seal", &tracelake__v1__seal_request__descriptor, TL_UNARY, TL_ROLE_PUSH,
     run_seal},
    {"/tracelake.v1.Catalog/Verify", &tracelake__v1__verify_request__descriptor, TL_UNARY,
     TL_ROLE_READ, run_verify, TL_LONG},
    {"/tracelake.v1.Catalog/ListNotes", &tracelake__v1__list_notes_request__descriptor, TL_UNARY,
     TL_ROLE_READ, tl_run_list_notes},
    {"/tracelake.v1.Catalog/PutNote", &tracelake__v1__put_note_request__descriptor, TL_UNARY,
     TL_ROLE_PUSH, tl_run_put_note},
    {"/tracelake.v1.Catalog/DeleteNote", &tracelake__v1__delete_note_request__descriptor, TL_UNARY,
     TL_ROLE_PUSH, tl_run_delete_note},
    {"/tracelake.v1.Catalog/ListRetention", &tracelake__v1__list_retention_request__descriptor,
     TL_UNARY, TL_ROLE_READ, run_list_retention, TL_SHORT, TL_REACH_ALL},
    {"/tracelake.v1.Catalog/PlanRetention", &tracelake__v1__plan_retention_request__descriptor,
     TL_UNARY, TL_ROLE_READ, run_plan_retention, TL_LONG, TL_REACH_ALL},
    {"/tracelake.v1.Catalog/SetRetention", &tracelake__v1__set_retention_request__descriptor,
     TL_UNARY, TL_ROLE_ADMIN, run_set_retention, TL_SHORT, TL_REACH_ALL},
    {NULL, NULL, 0, 0, NULL},
};
