/* SPDX-License-Identifier: MIT */
/*
 * Notifications to a service manager: ready, reloading, stopping, alive. Does nothing without one
 * ($NOTIFY_SOCKET is not set). Not thread-safe.
 *
 * Source: sd_notify(3), sd_watchdog_enabled(3).
 */
#ifndef TL_NOTIFY_H
#define TL_NOTIFY_H

#include <stdint.h>

/* Send lines such as "READY=1\nSTATUS=serving". An unreachable manager is not an error. */
void tl_notify(const char *lines);
/* Send "RELOADING=1" with the current time, as the manager requires. */
void tl_notify_reloading(void);
/* Interval for sending "WATCHDOG=1" in ms: half of the manager's timeout. 0: not requested. */
int64_t tl_notify_watchdog_ms(void);

#endif
