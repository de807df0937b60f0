/* SPDX-License-Identifier: MIT */
/*
 * Whether names are shown mangled. A setting of the thread, as cancellation is: names are formatted
 * deep inside of queries that have no other use for it.
 */
#include "base/spelling.h"

static _Thread_local bool mangled_names;

bool tl_spelling_set_mangled(bool mangled)
{
    const bool before = mangled_names;
    mangled_names = mangled;
    return before;
}

bool tl_spelling_is_mangled(void)
{
    return mangled_names;
}
