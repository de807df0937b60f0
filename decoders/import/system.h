/* SPDX-License-Identifier: MIT */
/*
 * A setup from what a system says of itself: the trace units of a machine with Linux, as sysfs or
 * its device tree lists them. For captures that were taken outside perf, whose bytes do not
 * describe their sources.
 *
 * Not thread-safe. The only I/O is reading files. What is missing or assumed is passed to `warn`
 * (may be NULL), a sentence without its full stop.
 */
#ifndef TL_IMPORT_SYSTEM_H
#define TL_IMPORT_SYSTEM_H

#include "base/say.h"
#include "setup/setup.h"

/* Where Linux has its CoreSight devices. */
#define TL_SYSFS_CORESIGHT "/sys/bus/coresight/devices"

/*
 * Add a source for each CoreSight trace unit (ETMv3, PTM, ETMv4, ETE, STM) that sysfs describes,
 * and set the format, unless the setup has one. `path` is a folder: TL_SYSFS_CORESIGHT, a copy of
 * it or of one of the folders above it; or a file with lines "FILE:VALUE", as `grep -r . FOLDER`
 * prints them. Cores get their names by `regs/identification/midr_el1` of the CPUs, or a file
 * `cpuinfo`.
 *
 * Returns TL_BAD: no trace unit, or two with one trace ID; TL_IO, TL_NOMEM.
 *
 * Source: Linux, Documentation/ABI/testing/sysfs-bus-coresight-devices-*.
 */
TL_MUST_USE int tl_sysfs_read(struct tl_setup *setup, const char *path, tl_say_sink *warn,
                              void *context, struct tl_fail *fail);

/*
 * The same from a device tree: a flattened one (.dtb, /sys/firmware/fdt). It has no registers: they
 * are left to the defaults of docs/setup.md, and trace IDs are those that Linux gives. Returns as
 * tl_sysfs_read().
 *
 * Source: Devicetree Specification 0.4, chapter 5; Linux, bindings arm,coresight-*.
 */
TL_MUST_USE int tl_devicetree_read(struct tl_setup *setup, const char *path, tl_say_sink *warn,
                                   void *context, struct tl_fail *fail);

/* Trace ID that Linux prefers for the trace unit of a CPU, as far as there are so many. */
static inline uint16_t tl_system_trace_id(uint64_t cpu)
{
    return (uint16_t)(0x10 + 2 * cpu);
}

#endif
