/* SPDX-License-Identifier: MIT */
/*
 * What a service manager is told: ready, reloading, stopping, alive. Nothing happens where none
 * listens ($NOTIFY_SOCKET is not set). Not thread-safe.
 *
 * Source: sd_notify(3), sd_watchdog_enabled(3).
 */
#ifndef TL_NOTIFY_H
#define TL_NOTIFY_H

#include <stdint.h>

/* Lines such as "READY=1\nSTATUS=serving". A manager that cannot be reached is no failure. */
void tl_notify(const char *lines);
/* "RELOADING=1", with the moment, as the manager wants it. */
void tl_notify_reloading(void);
/* How often "WATCHDOG=1" is to be said, in ms: half of what the manager waits. 0: not at all. */
int64_t tl_notify_watchdog_ms(void);

#endif
