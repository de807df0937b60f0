/* SPDX-License-Identifier: MIT */
/*
 * Whether the pool takes new bytes: a refused operation says that it does not, and a probe says so
 * ahead of others, and when it does again. The probe is an object that is created and removed,
 * since a full pool refuses only what makes it grow.
 */
#include "rados/rados_int.h"
#include "store/reserve.h"

#include <errno.h>

#define PROBE    "probe"
#define PROBE_MS 5000 /* while nothing was refused; else with every call */

static bool is_refusal(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT || rc == -EPERM || rc == -EACCES;
}

void tl_rados_note_result(struct tl_rados *r, int rc)
{
    if (is_refusal(rc))
        atomic_store(&r->refusal, -rc);
}

static int remove_probe(struct tl_rados *r)
{
    const rados_write_op_t op = tl_librados.create_write_op();
    tl_librados.write_op_remove(op);
    return tl_rados_write(r, PROBE, op);
}

static int make_probe(struct tl_rados *r)
{
    const rados_write_op_t op = tl_librados.create_write_op();
    tl_librados.write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    tl_librados.write_op_write(op, PROBE, sizeof PROBE - 1, 0);
    return tl_rados_write(r, PROBE, op);
}

void tl_rados_keep_space(struct tl_backend *backend)
{
    struct tl_rados *const r = tl_rados_of(backend);
    const long long now = tl_monotonic_ms();
    if (backend->ops->usable(backend, NULL) < 0 ||
        (!atomic_load(&r->refusal) && now - atomic_load(&r->probed_ms) < PROBE_MS))
        return;
    atomic_store(&r->probed_ms, now);
    int rc = make_probe(r);
    if (rc == -EEXIST &&
        remove_probe(r) >= 0) /* of a process that was killed; or another server's */
        rc = make_probe(r);
    if (rc < 0)
        return; /* noted, if it was a refusal */
    atomic_store(&r->refusal, 0);
    (void)!remove_probe(r);
}

int tl_rados_writable(struct tl_backend *backend, struct tl_fail *fail)
{
    const int refusal = atomic_load(&tl_rados_of(backend)->refusal);
    if (refusal == ENOSPC || refusal == EDQUOT)
        return tl_fail_set(fail, TL_NOSPACE, "the pool is full%s%s",
                           refusal == EDQUOT ? ", by its quota" : "", TL_SPACE_ADVICE);
    return refusal ? tl_fail_set(fail, TL_IO, "the pool cannot be written: %s", strerror(refusal))
                   : TL_OK;
}
