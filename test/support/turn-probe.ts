/** Measures the turns of this thread's event loop: how long each keeps all others waiting. */

export interface Turn {
  /** Processor time of this thread in one turn, in milliseconds: what the turn itself is to blame for. */
  readonly cpuMs: number
  /** The same by the clock: more, where the machine has other things to do. */
  readonly wallMs: number
}

/** Between two ticks lies one turn, or several that are shorter than this together, in milliseconds. */
const TICK_MS = 1

export class TurnProbe {
  readonly #timer: NodeJS.Timeout
  #cpu = process.threadCpuUsage()
  #at = performance.now()
  #longest: Turn = { cpuMs: 0, wallMs: 0 }

  constructor() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /** The longest turn since the last call. */
  take(): Turn {
    this.#tick()
    const longest = this.#longest
    this.#longest = { cpuMs: 0, wallMs: 0 }
    return longest
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    const { user, system } = process.threadCpuUsage(this.#cpu)
    this.#cpu = process.threadCpuUsage()
    const now = performance.now()
    // The clock that counts processor time may tick coarsely; a turn never takes more of it than the wall shows.
    const wallMs = now - this.#at
    const cpuMs = Math.min((user + system) / 1000, wallMs)
    this.#at = now
    if (cpuMs > this.#longest.cpuMs) this.#longest = { cpuMs, wallMs }
  }
}
