/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of the served interfaces: files, services, messages and their symbols, from the
 * compiled-in descriptor set. Immutable once created: thread-safe.
 *
 * Source: google/protobuf/descriptor.proto.
 */
#ifndef TL_RPC_REFLECTION_H
#define TL_RPC_REFLECTION_H

#include "base/bytes.h"
#include "base/err.h"

struct tl_reflection;

TL_MUST_USE int tl_reflection_new(struct tl_reflection **out, struct tl_fail *fail);
void tl_reflection_free(struct tl_reflection *reflection);

/*
 * Index of the file with this name, or of the one that declares the symbol ("package.Type.field"…),
 * or -1.
 */
int tl_reflection_file(const struct tl_reflection *reflection, const char *name);
int tl_reflection_symbol(const struct tl_reflection *reflection, const char *symbol);

/*
 * Indices of a file and everything that it imports, the file first, each once; returns the number
 * written to `out`, at most `max`.
 */
size_t tl_reflection_imports(const struct tl_reflection *reflection, int file, int *out,
                             size_t max);
/* The file's serialized FileDescriptorProto. */
struct tl_bytes tl_reflection_bytes(const struct tl_reflection *reflection, int file);

/* Full name of the i-th service, NULL after the last. */
const char *tl_reflection_service(const struct tl_reflection *reflection, size_t i);
/* Is it the full name of a message? */
bool tl_reflection_is_message(const struct tl_reflection *reflection, const char *name);

#endif
