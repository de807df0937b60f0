/* SPDX-License-Identifier: MIT */
/*
 * Looks labels up in their text: a line "key=value" for each, of which no two have one key. NULL is
 * no labels, too. Pure, thread-safe.
 */
#ifndef TL_BASE_LABELS_H
#define TL_BASE_LABELS_H

#include <stdbool.h>

/* The value of the label with this key, in `labels`: it ends with its line. NULL: there is none. */
const char *tl_label_value(const char *labels, const char *key);
/* Is this label, "key=value", among them? It may be a line of a text of labels, too. */
bool tl_label_is(const char *labels, const char *label);

#endif
