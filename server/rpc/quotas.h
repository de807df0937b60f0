/* SPDX-License-Identifier: MIT */
/*
 * Keeps pushes within the quotas of their rig and of their token (net/quota.h). What a rig has are
 * its traces; what the holder of a token has are the traces that the token's scope covers. Both
 * are counted in the lake now and then, and in between what is pushed is added. Thread-safe.
 */
#ifndef TL_RPC_QUOTAS_H
#define TL_RPC_QUOTAS_H

#include "base/buf.h"
#include "net/quota.h"
#include "net/scope.h"

#include <pthread.h>

struct tl_lake;

/* The quota of each rig that matches a glob. */
struct tl_quota_rule {
    char rig[64];
    struct tl_quota quota;
};

/* Read "rig=GLOB,bytes=200G,traces=1000,rate=50M". TL_USAGE, described in `fail`. */
TL_MUST_USE int tl_quota_rule_parse(struct tl_quota_rule *out, const char *text,
                                    struct tl_fail *fail);

struct tl_meter; /* of a rig or of a token's holder */

struct tl_quotas {
    pthread_mutex_t lock; /* guards the rest */
    struct tl_quota_rule *rules;
    size_t n_rules;
    struct tl_meter *meters;
};

void tl_quotas_init(struct tl_quotas *quotas);
void tl_quotas_fini(struct tl_quotas *quotas);
/* Replace the rules by a copy; the first one that matches a rig counts. TL_NOMEM. */
TL_MUST_USE int tl_quotas_set(struct tl_quotas *quotas, const struct tl_quota_rule *rules,
                              size_t n);

/* A push. Zero-initialised: without quotas. */
struct tl_quota_push {
    struct tl_meter *of[2]; /* of the rig, of the token's holder; NULL: none */
};

/*
 * Begin a push of this rig to `trace` ("": a new one) with a token of this holder and scope (both
 * may be NULL). TL_LIMIT: a quota is used up, described in `fail`; TL_NOMEM.
 */
TL_MUST_USE int tl_quota_begin(struct tl_quotas *quotas, struct tl_lake *lake, const char *rig,
                               const char *trace, struct tl_holder *holder, struct tl_scope *scope,
                               struct tl_quota_push *out, struct tl_fail *fail);
/* May it add `n` bytes? TL_LIMIT, as above. Then they are counted. */
TL_MUST_USE int tl_quota_grow(struct tl_quota_push *push, struct tl_lake *lake, uint64_t n,
                              struct tl_fail *fail);
/* For how many ms it should pause after `n` bytes, to keep to the rate. */
int64_t tl_quota_pause_ms(struct tl_quota_push *push, uint64_t n);
/* May it send now at all, without a pause? TL_LIMIT. */
TL_MUST_USE int tl_quota_now(struct tl_quota_push *push, struct tl_fail *fail);

/* Append Prometheus text. TL_NOMEM. */
TL_MUST_USE int tl_quotas_metrics(struct tl_quotas *quotas, struct tl_buf *out);

#endif
