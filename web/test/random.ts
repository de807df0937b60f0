// SPDX-License-Identifier: MIT
// Seeded numbers for property tests. TL_SEED repeats a run.

export function generator(): { random: () => number; seed: number } {
  const seed = Number(process.env.TL_SEED ?? Date.now() % 2 ** 31);
  let state = seed >>> 0;
  const random = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return { random, seed };
}
