/* SPDX-License-Identifier: MIT */
/*
 * Elements of an XML file, one after the other: tags, one attribute, and texts as they stand there.
 * No entities, no namespaces, no checks of what a schema would allow. Plain data; not thread-safe.
 */
#ifndef TL_IMAGE_XML_H
#define TL_IMAGE_XML_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

enum { TL_XML_DEPTH = 16, TL_XML_TAG = 24, TL_XML_WORD = 96 };

struct tl_xml {
    const char *p, *end;                 /* what is left of the file */
    char tags[TL_XML_DEPTH][TL_XML_TAG]; /* of the elements that are open; long ones are cut off */
    size_t depth;
    struct tl_bytes text;       /* between this tag and the one before */
    struct tl_bytes attributes; /* of an element that begins */
    bool ends;                  /* the element that began ends with the same tag */
};

enum tl_xml_event { TL_XML_BEGIN = 1, TL_XML_END };

/* The next begin or end of an element, whose tag is tags[depth - 1], or at its end tags[depth].
 * TL_EOF: all elements have ended, as has the file; TL_BAD: it is damaged, or too deep. */
TL_MUST_USE int tl_xml_next(struct tl_xml *xml);

/* The value of an attribute of the element that begins, as it stands there; n == 0: none. */
struct tl_bytes tl_xml_attribute(const struct tl_xml *xml, const char *name);

/* The word that a text is: letters, digits, and what stands in names of array elements; "" if it is
 * none, or too long. And the number, "0x40" or "64"; false: it is none. */
void tl_xml_word(char out[static TL_XML_WORD], struct tl_bytes text);
bool tl_xml_number(uint64_t *out, struct tl_bytes text);

#endif
