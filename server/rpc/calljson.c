/* SPDX-License-Identifier: MIT */
/* JSON of calls and call trees. docs/http.md says what it is. */
#include "rpc/webjson.h"

static bool add_time(cJSON *o, const struct tl_call_info *c)
{
    return !c->has_time || (tl_webjson_u64(o, "time_from", c->time_from) &&
                            tl_webjson_u64(o, "time_to", c->time_to));
}

/* Of all calls of the function. */
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
    if (ok && c->kind == TL_CALL_EXCEPTION)
        ok = tl_webjson_u64(o, "exception", c->exception);
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
    bool ok = tl_webjson_u64(o, "insns", p->insns) &&
              (!p->has_time || tl_webjson_u64(o, "time", p->time)) &&
              cJSON_AddBoolToObject(o, "truncated", p->truncated);
    cJSON *const nodes = cJSON_AddArrayToObject(o, "nodes");
    for (size_t i = 0; ok && i < p->n_nodes; i++)
        ok = tl_webjson_add_row(nodes, node(&p->nodes[i]));
    cJSON *const functions = cJSON_AddArrayToObject(o, "functions");
    for (size_t i = 0; ok && i < p->n_functions; i++)
        ok = tl_webjson_add_row(functions, function(&p->functions[i]));
    return tl_webjson_complete(o, ok && functions);
}
