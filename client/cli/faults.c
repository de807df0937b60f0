/* SPDX-License-Identifier: MIT */
/*
 * Keeps few of any number of faults. They are ordered by offset as they arrive, because streams are
 * decoded one after the other.
 */
#include "cli/faults.h"

#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static bool is_before(const struct tl_fault *a, const struct tl_fault *b)
{
    if (a->offset != b->offset)
        return a->offset < b->offset;
    return b->stream && (!a->stream || a->stream->index < b->stream->index);
}

/* Is a fault of this reason among the first `n`? */
static bool has_reason(const struct tl_fault *v, unsigned n, const char *reason)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(v[i].reason, reason) == 0)
            return true;
    return false;
}

void tl_faults_add(struct tl_faults *f, const struct tl_decode_loss *loss)
{
    struct tl_fault fault = {loss->stream, loss->offset, loss->bytes, ""};
    unsigned at = f->n < TL_FAULTS_SHOWN ? f->n : TL_FAULTS_SHOWN;
    snprintf(fault.reason, sizeof fault.reason, "%s", loss->reason);
    f->lost += loss->bytes;
    for (f->n++; at > 0 && is_before(&fault, &f->shown[at - 1]); at--)
        if (at < TL_FAULTS_SHOWN)
            f->shown[at] = f->shown[at - 1];
    if (at < TL_FAULTS_SHOWN)
        f->shown[at] = fault;
    if (f->n_reasons < TL_FAULT_REASONS && !has_reason(f->reasons, f->n_reasons, fault.reason))
        f->reasons[f->n_reasons++] = fault;
}

static void show(const struct tl_fault *fault, const char *name)
{
    tl_cli_warn(name, "offset 0x%llx: %s%s%s, %llu bytes not decoded",
                (unsigned long long)fault->offset, fault->stream ? fault->stream->name : "",
                fault->stream ? ": " : "", fault->reason, (unsigned long long)fault->bytes);
}

void tl_faults_show(const struct tl_faults *f, const char *name)
{
    const unsigned n = f->n < TL_FAULTS_SHOWN ? f->n : TL_FAULTS_SHOWN;
    for (unsigned i = 0; i < n; i++)
        show(&f->shown[i], name);
    for (unsigned i = 0; i < f->n_reasons; i++)
        if (!has_reason(f->shown, n, f->reasons[i].reason))
            show(&f->reasons[i], name);
}
