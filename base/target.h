/* SPDX-License-Identifier: MIT */
/*
 * Compiler targets for functions that need a level of base/cpu.h. For one function, put
 * TL_TARGET(TL_AVX2_TARGET) before it; for several, enclose them in TL_TARGET_BEGIN …
 * TL_TARGET_END.
 */
#ifndef TL_BASE_TARGET_H
#define TL_BASE_TARGET_H

#define TL_SSE42_TARGET "sse4.2,popcnt"
#define TL_AVX2_TARGET  "avx2,bmi,bmi2,lzcnt,popcnt"

#define TL_TARGET(features) __attribute__((target(features)))
#define TL_PRAGMA(text)     _Pragma(#text)
#if defined(__clang__)
#define TL_TARGET_BEGIN(features)                                                                  \
    TL_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TL_TARGET_END TL_PRAGMA(clang attribute pop)
#else
#define TL_TARGET_BEGIN(features) TL_PRAGMA(GCC push_options) TL_PRAGMA(GCC target(features))
#define TL_TARGET_END             TL_PRAGMA(GCC pop_options)
#endif

#endif
