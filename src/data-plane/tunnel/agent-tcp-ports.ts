/** The TCP ports for endpoints, and the order in which to try them when the server may choose. */
import type { RandomBytes } from './random-names.ts'

export interface AgentPortRange {
  readonly from: number
  readonly to: number
}

export class AgentTcpPorts {
  readonly range: AgentPortRange
  readonly #random: RandomBytes
  /** Number of tunnels by port; several when they are in a pool. */
  readonly #used = new Map<number, number>()
  /** Released ports, oldest first: an agent that lost its connection will ask for its port again. */
  readonly #left = new Set<number>()

  constructor(range: AgentPortRange, random: RandomBytes) {
    this.range = range
    this.#random = random
  }

  has(port: number): boolean {
    return port >= this.range.from && port <= this.range.to
  }

  use(port: number): void {
    this.#used.set(port, (this.#used.get(port) ?? 0) + 1)
    this.#left.delete(port)
  }

  leave(port: number): void {
    const others = (this.#used.get(port) ?? 1) - 1
    if (others > 0) {
      this.#used.set(port, others)
      return
    }
    this.#used.delete(port)
    this.#left.delete(port)
    this.#left.add(port)
  }

  /** Ports to try, best first: unused ones in random order, then released ones, oldest first. */
  *choices(): Generator<number> {
    const { from, to } = this.range
    const size = to - from + 1
    const [a = 0, b = 0, c = 0, d = 0] = this.#random(4)
    const step = coprime((a << 8) | b, size)
    let offset = ((c << 8) | d) % size
    for (let i = 0; i < size; i++) {
      const port = from + offset
      offset = (offset + step) % size
      if (!this.#used.has(port) && !this.#left.has(port)) yield port
    }
    yield* [...this.#left]
  }
}

/** The first step size from `start` on that visits all of `size` slots. */
function coprime(start: number, size: number): number {
  let step = (start % size) + 1
  while (divisor(step, size) !== 1) step++
  return step
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b)
}
