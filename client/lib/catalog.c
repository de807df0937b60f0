/* SPDX-License-Identifier: MIT */
/*
 * Lists and manages traces. Lists are requested page by page, and waiting for a trace asks less
 * often the longer it takes.
 */
#include "ask.h"
#include "base/members.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two looks at whether a trace is sealed: a sixteenth of the time waited so far, so that
 * looking neither delays the answer by more than that nor burdens the server. */
enum { WAIT_PART = 16, WAIT_MIN_MS = 5, WAIT_MAX_MS = 250, WAIT_AWAY_MS = 30000 };

void tracelake_trace_free(struct tracelake_trace *trace)
{
    if (!trace)
        return;
    tl_client_trace_fini(trace);
    free(trace);
}

void tracelake_list_free(struct tracelake_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->n; i++)
        tl_client_trace_fini(&list->traces[i]);
    free(list->traces);
    free(list);
}

static int nomem(struct tracelake_error *error)
{
    return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}

static int add_page(struct tracelake_list *list, const Tracelake__V1__ListTracesReply *reply)
{
    const size_t n = list->n + reply->n_traces;
    struct tracelake_trace *const traces = realloc(list->traces, (n + 1) * sizeof *traces);
    if (!traces)
        return TRACELAKE_NOMEM;
    list->traces = traces;
    list->revision = reply->revision;
    for (size_t i = 0; i < reply->n_traces; i++) {
        const int result = tl_client_trace(&traces[list->n], reply->traces[i]);
        if (result < 0)
            return result;
        list->n++;
    }
    return TRACELAKE_OK;
}

/*
 * Request the page with `*token` (owned, and replaced by the next one's), and append it to the
 * list.
 */
static int ask_page(struct tracelake *lake, struct tracelake_list *list, char **token,
                    struct tracelake_error *error)
{
    Tracelake__V1__ListTracesRequest request = TRACELAKE__V1__LIST_TRACES_REQUEST__INIT;
    Tracelake__V1__ListTracesReply *reply;
    request.page_token = *token;
    int result = tl_ask_once(lake, "/tracelake.v1.Catalog/ListTraces", 0, &request.base,
                             &tracelake__v1__list_traces_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    result = add_page(list, reply);
    free(*token);
    /* An empty page ends the list, whatever its token: otherwise this could loop forever. */
    *token = strdup(reply->n_traces ? reply->next_page_token : "");
    tracelake__v1__list_traces_reply__free_unpacked(reply, NULL);
    return result < 0 || !*token ? nomem(error) : result;
}

int tracelake_list_traces(struct tracelake *lake, struct tracelake_list **out,
                          struct tracelake_error *error)
{
    struct tracelake_list *const list = calloc(1, sizeof *list);
    char *token = strdup("");
    int result = list && token ? TRACELAKE_OK : nomem(error);
    do
        if (result >= 0)
            result = ask_page(lake, list, &token, error);
    while (result >= 0 && *token);
    free(token);
    if (result < 0)
        tracelake_list_free(list);
    else
        *out = list;
    return result;
}

/* A call that returns a Trace. `out` may be NULL. */
static int ask_trace(struct tracelake *lake, const char *method, const ProtobufCMessage *request,
                     struct tracelake_trace **out, struct tracelake_error *error)
{
    Tracelake__V1__Trace *reply;
    int result =
        tl_ask_once(lake, method, 0, request, &tracelake__v1__trace__descriptor, &reply, error);
    if (result < 0)
        return result;
    if (out) {
        struct tracelake_trace *trace = calloc(1, sizeof *trace);
        result = trace ? tl_client_trace(trace, reply) : TRACELAKE_NOMEM;
        if (result < 0)
            free(trace);
        else
            *out = trace;
    }
    tracelake__v1__trace__free_unpacked(reply, NULL);
    return result < 0 ? nomem(error) : TRACELAKE_OK;
}

int tracelake_get_trace(struct tracelake *lake, const char *trace, struct tracelake_trace **out,
                        struct tracelake_error *error)
{
    Tracelake__V1__GetTraceRequest request = TRACELAKE__V1__GET_TRACE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    return ask_trace(lake, "/tracelake.v1.Catalog/GetTrace", &request.base, out, error);
}

int tracelake_wait_sealed(struct tracelake *lake, const char *trace, struct tracelake_trace **out,
                          struct tracelake_error *error)
{
    const int64_t begin = tl_monotonic_ms();
    int64_t seen = begin;
    for (;;) {
        struct tracelake_trace *now;
        int result = tracelake_get_trace(lake, trace, &now, error);
        if (result == TRACELAKE_OK) {
            seen = tl_monotonic_ms();
            if (now->state != TRACELAKE_DECODING) {
                *out = now;
                return TRACELAKE_OK;
            }
            tracelake_trace_free(now);
        } else if (result != TRACELAKE_UNREACHABLE || tl_monotonic_ms() - seen > WAIT_AWAY_MS) {
            return result;
        }
        int64_t ms = (tl_monotonic_ms() - begin) / WAIT_PART;
        ms = ms < WAIT_MIN_MS ? WAIT_MIN_MS : ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
        result = tl_wire_sleep((int)ms, lake->wake_fd, error);
        if (result < 0)
            return result;
    }
}

int tracelake_seal(struct tracelake *lake, const char *trace, struct tracelake_trace **out,
                   struct tracelake_error *error)
{
    Tracelake__V1__SealRequest request = TRACELAKE__V1__SEAL_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    return ask_trace(lake, "/tracelake.v1.Catalog/Seal", &request.base, out, error);
}

int tracelake_delete(struct tracelake *lake, const char *trace, struct tracelake_error *error)
{
    Tracelake__V1__DeleteTraceRequest request = TRACELAKE__V1__DELETE_TRACE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    return tl_ask_done(lake, "/tracelake.v1.Catalog/DeleteTrace", &request.base,
                       &tracelake__v1__delete_trace_reply__descriptor, error);
}

#define AT_ONCE 4096 /* traces per request */

/* The first error of `n`, or OK. */
static int first_error(const struct tracelake_error *errors, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (errors[i].code != TRACELAKE_OK)
            return errors[i].code;
    return TRACELAKE_OK;
}

static void note_refusals(const Tracelake__V1__DeleteTraceReply *reply, const char *const *traces,
                          size_t n, struct tracelake_error *errors)
{
    for (size_t k = 0; k < reply->n_refused; k++) {
        const Tracelake__V1__Refusal *const r = reply->refused[k];
        size_t i = 0;
        while (i < n && (errors[i].code != TRACELAKE_OK || strcmp(traces[i], r->trace) != 0))
            i++;
        if (i < n)
            (void)!tl_client_refused(&errors[i], r->code, r->message, "DeleteTrace");
    }
}

static int delete_some(struct tracelake *lake, const char *const *traces, size_t n,
                       struct tracelake_error *errors)
{
    Tracelake__V1__DeleteTraceRequest request = TRACELAKE__V1__DELETE_TRACE_REQUEST__INIT;
    Tracelake__V1__DeleteTraceReply *reply;
    request.trace = tl_ask_text(traces[0]);
    request.n_more = n - 1;
    request.more = (char **)(uintptr_t)(traces + 1);
    int result = tl_ask_once(lake, "/tracelake.v1.Catalog/DeleteTrace", 0, &request.base,
                             &tracelake__v1__delete_trace_reply__descriptor, &reply, &errors[0]);
    if (result < 0) {
        for (size_t i = 1; i < n; i++)
            errors[i] = errors[0];
        return result;
    }
    const bool old = reply->removed == 0 && reply->n_refused == 0;
    note_refusals(reply, traces, n, errors);
    tracelake__v1__delete_trace_reply__free_unpacked(reply, NULL);
    /* An older server, which ignores the others, has removed only the first one. */
    for (size_t i = 1; i < n && old; i++)
        (void)!tracelake_delete(lake, traces[i], &errors[i]);
    return first_error(errors, n);
}

int tracelake_delete_all(struct tracelake *lake, const char *const *traces, size_t n,
                         struct tracelake_error *errors)
{
    memset(errors, 0, n * sizeof *errors);
    for (size_t at = 0; at < n;) {
        const size_t some = n - at < AT_ONCE ? n - at : AT_ONCE;
        if (some == 1)
            (void)!tracelake_delete(lake, traces[at], &errors[at]);
        else
            (void)!delete_some(lake, traces + at, some, errors + at);
        at += some;
    }
    return first_error(errors, n);
}

int tracelake_set_labels(struct tracelake *lake, const char *trace,
                         const struct tracelake_label *labels, size_t n,
                         struct tracelake_trace **out, struct tracelake_error *error)
{
    Tracelake__V1__SetLabelsRequest request = TRACELAKE__V1__SET_LABELS_REQUEST__INIT;
    Tracelake__V1__SetLabelsRequest__LabelsEntry *entries = calloc(n + 1, sizeof *entries);
    Tracelake__V1__SetLabelsRequest__LabelsEntry **list = calloc(n + 1, sizeof *list);
    int result = TRACELAKE_NOMEM;
    if (entries && list) {
        for (size_t i = 0; i < n; i++) {
            tracelake__v1__set_labels_request__labels_entry__init(&entries[i]);
            entries[i].key = tl_ask_text(labels[i].key);
            entries[i].value = tl_ask_text(labels[i].value);
            list[i] = &entries[i];
        }
        request.trace = tl_ask_text(trace);
        request.n_labels = n;
        request.labels = list;
        result = ask_trace(lake, "/tracelake.v1.Catalog/SetLabels", &request.base, out, error);
    } else {
        nomem(error);
    }
    free(entries);
    free(list);
    return result;
}

int tracelake_redecode(struct tracelake *lake, const char *trace, const char *setup,
                       struct tracelake_trace **out, struct tracelake_error *error)
{
    Tracelake__V1__RedecodeRequest request = TRACELAKE__V1__REDECODE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.setup = tl_ask_text(setup);
    return ask_trace(lake, "/tracelake.v1.Catalog/Redecode", &request.base, out, error);
}

int tracelake_redecode_back(struct tracelake *lake, const char *trace, struct tracelake_trace **out,
                            struct tracelake_error *error)
{
    Tracelake__V1__RedecodeRequest request = TRACELAKE__V1__REDECODE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.back = true;
    return ask_trace(lake, "/tracelake.v1.Catalog/Redecode", &request.base, out, error);
}

int tracelake_verify(struct tracelake *lake, const char *trace, bool repair, uint32_t *findings,
                     char **report, struct tracelake_error *error)
{
    Tracelake__V1__VerifyRequest request = TRACELAKE__V1__VERIFY_REQUEST__INIT;
    Tracelake__V1__VerifyReply *reply;
    request.trace = tl_ask_text(trace);
    request.repair = repair;
    /* The server reads every byte of the trace before it answers: no time limit. */
    const int result = tl_ask_once(lake, "/tracelake.v1.Catalog/Verify", -1, &request.base,
                                   &tracelake__v1__verify_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    *findings = reply->findings;
    *report = strdup(reply->report);
    tracelake__v1__verify_reply__free_unpacked(reply, NULL);
    return *report ? TRACELAKE_OK : nomem(error);
}

/* ---- retention --------------------------------------------------------------------------- */

static int copy_rules(const Tracelake__V1__ListRetentionReply *reply,
                      struct tracelake_retention **rules, size_t *n)
{
    *rules = calloc(reply->n_rules + 1, sizeof **rules);
    *n = reply->n_rules;
    for (size_t i = 0; *rules && i < reply->n_rules; i++) {
        const Tracelake__V1__RetentionRule *const from = reply->rules[i];
        struct tracelake_retention *const to = &(*rules)[i];
        snprintf(to->scope, sizeof to->scope, "%s", from->scope);
        TL_COPY_MEMBERS(to, from, raw_age_s, raw_bytes, decoded_age_s, decoded_bytes);
    }
    return *rules ? TRACELAKE_OK : TRACELAKE_NOMEM;
}

int tracelake_list_retention(struct tracelake *lake, struct tracelake_retention **rules, size_t *n,
                             struct tracelake_error *error)
{
    const Tracelake__V1__ListRetentionRequest request = TRACELAKE__V1__LIST_RETENTION_REQUEST__INIT;
    Tracelake__V1__ListRetentionReply *reply;
    int result = tl_ask_once(lake, "/tracelake.v1.Catalog/ListRetention", 0, &request.base,
                             &tracelake__v1__list_retention_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    result = copy_rules(reply, rules, n);
    tracelake__v1__list_retention_reply__free_unpacked(reply, NULL);
    return result < 0 ? nomem(error) : TRACELAKE_OK;
}

static Tracelake__V1__RetentionRule rule_message(const struct tracelake_retention *rule)
{
    Tracelake__V1__RetentionRule message = TRACELAKE__V1__RETENTION_RULE__INIT;
    message.scope = tl_ask_text(rule->scope);
    TL_COPY_MEMBERS(&message, rule, raw_age_s, raw_bytes, decoded_age_s, decoded_bytes);
    return message;
}

static int copy_victims(const Tracelake__V1__PlanRetentionReply *reply,
                        struct tracelake_victim **victims, size_t *n)
{
    *victims = calloc(reply->n_victims + 1, sizeof **victims);
    *n = reply->n_victims;
    for (size_t i = 0; *victims && i < *n; i++) {
        const Tracelake__V1__RetentionVictim *const from = reply->victims[i];
        struct tracelake_victim *const to = &(*victims)[i];
        snprintf(to->trace, sizeof to->trace, "%s", from->trace);
        snprintf(to->what, sizeof to->what, "%s", from->what);
        snprintf(to->scope, sizeof to->scope, "%s", from->scope);
        TL_COPY_MEMBERS(to, from, by_age, age_s, limit, bytes);
    }
    return *victims ? TRACELAKE_OK : TRACELAKE_NOMEM;
}

int tracelake_plan_retention(struct tracelake *lake, const struct tracelake_retention *rule,
                             struct tracelake_victim **victims, size_t *n, bool *paused,
                             struct tracelake_error *error)
{
    Tracelake__V1__PlanRetentionRequest request = TRACELAKE__V1__PLAN_RETENTION_REQUEST__INIT;
    Tracelake__V1__RetentionRule message = TRACELAKE__V1__RETENTION_RULE__INIT;
    Tracelake__V1__PlanRetentionReply *reply;
    if (rule) {
        message = rule_message(rule);
        request.rule = &message;
    }
    int result = tl_ask_once(lake, "/tracelake.v1.Catalog/PlanRetention", 0, &request.base,
                             &tracelake__v1__plan_retention_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    *paused = reply->paused;
    result = copy_victims(reply, victims, n);
    tracelake__v1__plan_retention_reply__free_unpacked(reply, NULL);
    return result < 0 ? nomem(error) : TRACELAKE_OK;
}

int tracelake_set_retention(struct tracelake *lake, const struct tracelake_retention *rule,
                            bool remove, struct tracelake_error *error)
{
    Tracelake__V1__SetRetentionRequest request = TRACELAKE__V1__SET_RETENTION_REQUEST__INIT;
    Tracelake__V1__RetentionRule message = rule_message(rule);
    request.rule = &message;
    request.remove = remove;
    return tl_ask_done(lake, "/tracelake.v1.Catalog/SetRetention", &request.base,
                       &tracelake__v1__list_retention_reply__descriptor, error);
}
