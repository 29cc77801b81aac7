/** Time and timers as an agent uses them, so that tests can turn the clock. */

export interface Timers {
  /** Milliseconds since 1970: the one clock that goes on while the machine sleeps. */
  now(): number
  /** Calls `run` once, after `ms` milliseconds of waking time; gives back how to prevent it. */
  after(ms: number, run: () => void): () => void
}

export const systemTimers: Timers = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
