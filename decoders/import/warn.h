/* SPDX-License-Identifier: MIT */
/* Reports of what an importer leaves out. Thread-safe as the callee. */
#ifndef TL_IMPORT_WARN_H
#define TL_IMPORT_WARN_H

#include "base/err.h"

/* Call `warn` (may be NULL) with the text, of which 4 KiB are kept. */
void tl_import_warn(void (*warn)(void *context, const char *text), void *context,
                    const char *format, ...) TL_PRINTF(3, 4);

#endif
