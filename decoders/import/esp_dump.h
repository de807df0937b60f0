/* SPDX-License-Identifier: MIT */
/*
 * Core dumps of Espressif's RISC-V chips with the trace of each core: as an ELF file, with the
 * header that flash memory has in front of it, or as text of a serial port. Stateless, thread-safe;
 * the only I/O is reading the file.
 *
 * Source: ESP-IDF, component esp_riscv_trace; esp-coredump.
 */
#ifndef TL_IMPORT_ESP_DUMP_H
#define TL_IMPORT_ESP_DUMP_H

#include "import/bundle.h"

/* Does the file begin like one of these, or like another file of these chips' traces? */
bool tl_esp_dump_is(const char *path);

/*
 * Read a dump: one capture per core, named "core0" and so on, with its setup; what is left out is
 * reported to the request's `warn`. Returns TL_BAD, TL_UNSUPPORTED or TL_IO with a text, if nothing
 * is left.
 */
TL_MUST_USE int tl_esp_dump_read(struct tl_bundle *out, const struct tl_bundle_request *request,
                                 struct tl_fail *fail);

#endif
