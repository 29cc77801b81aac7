/** The clock and timers of an agent, which tests can replace. */

export interface Timers {
  /** Milliseconds since 1970. Unlike timers, this clock goes on while the machine sleeps. */
  now(): number
  /** Calls `run` once, after `ms` milliseconds in which the machine is awake; returns a function that cancels. */
  after(ms: number, run: () => void): () => void
}

export const systemTimers: Timers = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
