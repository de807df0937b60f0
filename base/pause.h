/* SPDX-License-Identifier: MIT */
/* CPU hint for spin-wait loops. Header only. */
#ifndef TL_BASE_PAUSE_H
#define TL_BASE_PAUSE_H

static inline void tl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
