/** The TCP ports that endpoints may have, and which of them to try when an agent leaves the choice to us. */
import type { RandomBytes } from './names.ts'

export interface PortRange {
  readonly from: number
  readonly to: number
}

export class TcpPorts {
  readonly range: PortRange
  readonly #random: RandomBytes
  readonly #used = new Set<number>()
  /** Given up, the longest ago first: whoever lost its connection will ask for its port again. */
  readonly #left = new Set<number>()

  constructor(range: PortRange, random: RandomBytes) {
    this.range = range
    this.#random = random
  }

  has(port: number): boolean {
    return port >= this.range.from && port <= this.range.to
  }

  use(port: number): void {
    this.#used.add(port)
    this.#left.delete(port)
  }

  leave(port: number): void {
    this.#used.delete(port)
    this.#left.delete(port)
    this.#left.add(port)
  }

  /** Ports to try, best first: those that nobody had, in random order, then those that were given up longest ago. */
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

/** The first number from `start` on with which steps through `size` places meet every one of them. */
function coprime(start: number, size: number): number {
  let step = (start % size) + 1
  while (divisor(step, size) !== 1) step++
  return step
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b)
}
