/* SPDX-License-Identifier: MIT */
/* JSON of calls, call trees and comparisons, described in docs/http.md. */
#include "rpc/webjson.h"

static bool add_time(cJSON *o, const struct tl_call_info *c)
{
    return !c->has_time ||
           (tl_webjson_u64(o, "time_from", c->time_from) &&
            tl_webjson_u64(o, "time_to", c->time_to) &&
            cJSON_AddBoolToObject(o, "time_unit_ns", c->time_unit_ns) &&
            tl_webjson_u64(o, "time_least", c->time_least) &&
            (c->time_most == UINT64_MAX || tl_webjson_u64(o, "time_most", c->time_most)));
}

/* Totals of all calls of the function. */
static bool add_all(cJSON *o, const struct tl_call_info *c)
{
    cJSON *const all = cJSON_AddObjectToObject(o, "all");
    const bool numbers = tl_webjson_u64(all, "calls", c->calls) &&
                         tl_webjson_u64(all, "finished", c->finished) &&
                         tl_webjson_u64(all, "total", c->total) &&
                         tl_webjson_u64(all, "min", c->min) && tl_webjson_u64(all, "max", c->max);
    return numbers && (c->finished == 0 || tl_webjson_u64(all, "longest", c->longest)) &&
           (!c->has_previous || tl_webjson_u64(all, "previous", c->previous)) &&
           (!c->has_next || tl_webjson_u64(all, "next", c->next));
}

cJSON *tl_webjson_call(const struct tl_call_info *c)
{
    static const char *const kinds[] = {"root", "call", "tail", "exception"};
    cJSON *const o = cJSON_CreateObject();
    bool ok = tl_webjson_text(o, "name", c->name) && tl_webjson_text(o, "kind", kinds[c->kind]) &&
              tl_webjson_u64(o, "depth", c->depth) && tl_webjson_u64(o, "deepest", c->deepest) &&
              tl_webjson_address(o, "pc", c->pc) && tl_webjson_u64(o, "from", c->from) &&
              tl_webjson_u64(o, "to", c->to) && tl_webjson_u64(o, "insns", c->to - c->from) &&
              tl_webjson_u64(o, "self", c->self) && cJSON_AddBoolToObject(o, "ended", c->ended) &&
              add_time(o, c);
    if (ok && c->kind == TL_CALL_EXCEPTION && c->exception >= 0)
        ok = tl_webjson_u64(o, "exception", (uint64_t)c->exception);
    if (ok && c->kind == TL_CALL_EXCEPTION && c->interrupt)
        ok = cJSON_AddTrueToObject(o, "interrupt") != NULL;
    if (ok && c->return_pc)
        ok = tl_webjson_address(o, "return_pc", c->return_pc);
    if (ok && c->depth > 0)
        ok = tl_webjson_text(o, "caller", c->caller) &&
             tl_webjson_u64(o, "caller_from", c->caller_from);
    if (ok && c->kind != TL_CALL_ROOT && *c->name)
        ok = tl_webjson_u64(o, "number", c->number);
    if (ok && *c->name)
        ok = add_all(o, c);
    return tl_webjson_complete(o, ok);
}

static cJSON *node(const struct tl_profile_node *n)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_u64(o, "depth", n->depth) && tl_webjson_text(o, "name", n->name) &&
               tl_webjson_u64(o, "total", n->total) && tl_webjson_u64(o, "self", n->self) &&
               tl_webjson_u64(o, "calls", n->calls));
}

static cJSON *function(const struct tl_profile_function *f)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_text(o, "name", f->name) && tl_webjson_address(o, "pc", f->pc) &&
               tl_webjson_u64(o, "self", f->self) && tl_webjson_u64(o, "total", f->total) &&
               tl_webjson_u64(o, "calls", f->calls) && tl_webjson_u64(o, "finished", f->finished) &&
               tl_webjson_u64(o, "length", f->length) && tl_webjson_u64(o, "min", f->min) &&
               tl_webjson_u64(o, "max", f->max));
}

cJSON *tl_webjson_profile(const struct tl_profile *p)
{
    cJSON *const o = cJSON_CreateObject();
    const bool by_time = p->weight == TL_WEIGHT_TIME;
    bool ok = (!by_time || tl_webjson_text(o, "weight", "time")) &&
              tl_webjson_u64(o, by_time ? "ran" : "insns", p->insns) &&
              (!p->has_time || tl_webjson_u64(o, "time", p->time)) &&
              cJSON_AddBoolToObject(o, "truncated", p->truncated) &&
              (!p->sampled ||
               (cJSON_AddTrueToObject(o, "sampled") && tl_webjson_u64(o, "asleep", p->asleep)));
    cJSON *const nodes = cJSON_AddArrayToObject(o, "nodes");
    for (size_t i = 0; ok && i < p->n_nodes; i++)
        ok = tl_webjson_add_row(nodes, node(&p->nodes[i]));
    cJSON *const functions = cJSON_AddArrayToObject(o, "functions");
    for (size_t i = 0; ok && i < p->n_functions; i++)
        ok = tl_webjson_add_row(functions, function(&p->functions[i]));
    return tl_webjson_complete(o, ok && functions);
}

/* ---- two runs compared ---------------------------------------------------------------------- */

static bool add_side(cJSON *o, const char *name, const struct tl_compare_side *side, uint64_t from,
                     uint64_t to)
{
    cJSON *const one = cJSON_AddObjectToObject(o, name);
    return tl_webjson_text(one, "trace", side->trace) &&
           tl_webjson_text(one, "stream", side->stream) && tl_webjson_u64(one, "from", from) &&
           tl_webjson_u64(one, "to", to);
}

static cJSON *hunk(const struct tl_compare_hunk *h)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_u64(o, "a_from", h->a_from) && tl_webjson_u64(o, "a_to", h->a_to) &&
               tl_webjson_u64(o, "b_from", h->b_from) && tl_webjson_u64(o, "b_to", h->b_to));
}

static cJSON *difference(const struct tl_compare_function *f)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_text(o, "name", f->name) && tl_webjson_u64(o, "self_a", f->self_a) &&
               tl_webjson_u64(o, "self_b", f->self_b) && tl_webjson_u64(o, "calls_a", f->calls_a) &&
               tl_webjson_u64(o, "calls_b", f->calls_b) &&
               tl_webjson_u64(o, "total_a", f->total_a) &&
               tl_webjson_u64(o, "total_b", f->total_b));
}

static bool add_stack(cJSON *o, const char *name, const char *const *names, size_t n)
{
    cJSON *const stack = cJSON_AddArrayToObject(o, name);
    bool ok = stack != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        cJSON *const one = cJSON_CreateObject();
        ok = tl_webjson_add_row(stack,
                                tl_webjson_complete(one, tl_webjson_text(one, "name", names[i])));
    }
    return ok;
}

cJSON *tl_webjson_compare(const struct tl_compare_request *r, const struct tl_compare *c)
{
    cJSON *const o = cJSON_CreateObject();
    bool ok = add_side(o, "a", &r->a, c->a_from, c->a_to) &&
              add_side(o, "b", &r->b, c->b_from, c->b_to) &&
              tl_webjson_u64(o, "total", c->total_hunks) &&
              tl_webjson_u64(o, "only_a", c->only_a) && tl_webjson_u64(o, "only_b", c->only_b) &&
              cJSON_AddBoolToObject(o, "lost", c->lost) &&
              add_stack(o, "stack_a", c->stack_a, c->n_stack_a) &&
              add_stack(o, "stack_b", c->stack_b, c->n_stack_b);
    cJSON *const hunks = cJSON_AddArrayToObject(o, "hunks");
    for (size_t i = 0; ok && i < c->n_hunks; i++)
        ok = tl_webjson_add_row(hunks, hunk(&c->hunks[i]));
    cJSON *const functions = cJSON_AddArrayToObject(o, "functions");
    for (size_t i = 0; ok && i < c->n_functions; i++)
        ok = tl_webjson_add_row(functions, difference(&c->functions[i]));
    return tl_webjson_complete(o, ok && functions);
}
