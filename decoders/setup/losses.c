/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes places at which a connection was lost. When that was is kept as the text that is
 * told of it, so that a capture which is handed on tells the same as before.
 */
#include "setup/losses.h"

#include "base/args.h"
#include "setup/setup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void tl_loss_when(char out[static TL_LOSS_WHEN], uint64_t before, uint64_t behind)
{
    const time_t seconds = (time_t)(before / 1000000000);
    const uint64_t ms = behind / 1000000 - before / 1000000;
    struct tm utc;
    char when[24];
    if (before == 0 || behind < before || !gmtime_r(&seconds, &utc) ||
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        snprintf(out, TL_LOSS_WHEN, "-");
        return;
    }
    snprintf(out, TL_LOSS_WHEN, "%s.%03uZ %u.%03u s", when, (unsigned)(before / 1000000 % 1000),
             (unsigned)(ms / 1000), (unsigned)(ms % 1000));
}

int tl_setup_add_loss(struct tl_setup *setup, const char *text)
{
    struct tl_setup_loss loss = {.when = "-"};
    char number[24];
    const size_t digits = strcspn(text, " ");
    const char *const when = text + digits + strspn(text + digits, " ");
    const struct tl_setup_loss *const last =
        setup->n_losses ? &setup->losses[setup->n_losses - 1] : NULL;
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    if (digits >= sizeof number || tl_number_parse(number, &loss.offset) < 0 ||
        loss.offset <= (last ? last->offset : 0) || strlen(when) >= sizeof loss.when)
        return TL_BAD;
    for (const char *p = when; *p; p++)
        if (!isprint((unsigned char)*p))
            return TL_BAD;
    if (*when)
        snprintf(loss.when, sizeof loss.when, "%s", when);
    if (tl_grow(&setup->losses, &setup->cap_losses, setup->n_losses + 1, sizeof loss) < 0)
        return TL_NOMEM;
    setup->losses[setup->n_losses++] = loss;
    return TL_OK;
}
