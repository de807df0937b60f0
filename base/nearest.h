/* SPDX-License-Identifier: MIT */
/* The known name that a misspelt one may have meant. Stateless, thread-safe. */
#ifndef TL_BASE_NEAREST_H
#define TL_BASE_NEAREST_H

enum { TL_NEAREST_ROOM = 64 }; /* of a name with its NUL; longer ones are like no other */

/* Edit distance without regard to case; neighbours that change places count as one edit. */
unsigned tl_name_distance(const char *a, const char *b);
/* The least distance at which a name is no longer taken for a misspelt `name`: a third of its
 * letters may differ. */
unsigned tl_name_too_far(const char *name);

#endif
