/* SPDX-License-Identifier: MIT */
/*
 * The table of logs that models and simulated cores write. All of them are read from the first byte
 * to the last, so from a pipe as well.
 */
#include "import/models.h"

#include "base/args.h"
#include "import/drmemtrace.h"
#include "import/rtl_log.h"
#include "import/spike.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct tl_model {
    const char *name;
    const char *option; /* a number: which of several to take; NULL: there is one */
    bool (*is)(const char *first, size_t n);
    int (*read)(struct tl_buf *out, struct tl_model_input *in, struct tl_fail *fail);
};

static const struct tl_model models[] = {
    {"spike", "core", tl_spike_is, tl_spike_read},
    {"rtl", NULL, tl_rtl_log_is, tl_rtl_log_read},
    {"drmemtrace", "thread", tl_drmemtrace_is, tl_drmemtrace_read},
};

const struct tl_model *tl_model_of(const char *format)
{
    const size_t n = format ? strcspn(format, ",") : 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strlen(models[i].name) == n && memcmp(models[i].name, format, n) == 0)
            return &models[i];
    return NULL;
}

const struct tl_model *tl_model_like(struct tl_bytes first)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (models[i].is((const char *)first.p, first.n))
            return &models[i];
    return NULL;
}

const char *tl_model_name(const struct tl_model *model)
{
    return model->name;
}

/* "NAME" or "NAME,OPTION=N". */
static int take_option(const struct tl_model *model, const char *format, uint64_t *number,
                       struct tl_fail *fail)
{
    const char *p = format + strlen(model->name);
    *number = 0;
    if (!*p)
        return TL_OK;
    const size_t n = model->option ? strlen(model->option) : 0;
    if (n && strncmp(++p, model->option, n) == 0 && p[n] == '=' &&
        tl_number_parse(p + n + 1, number) >= 0)
        return TL_OK;
    return tl_fail_set(fail, TL_USAGE, "--format %.40s: only %s%s goes with %s", format,
                       n ? model->option : "nothing", n ? "=N" : "", model->name);
}

int tl_model_read(const struct tl_model *model, struct tl_buf *out, const char *format,
                  const char *path, struct tl_model_input *in, struct tl_fail *fail)
{
    const int rc = take_option(model, format, &in->number, fail);
    if (rc < 0)
        return rc;
    in->from = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!in->from)
        return tl_fail_set(fail, TL_IO, "cannot be read: %s", strerror(errno));
    int result = model->read(out, in, fail);
    if (ferror(in->from))
        result = tl_fail_set(fail, TL_IO, "cannot be read: %s", strerror(errno));
    if (in->from != stdin)
        fclose(in->from);
    return result;
}
