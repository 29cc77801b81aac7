/** For tests: two transports joined in memory with a session over each; nothing moves until the test says so. */

import { Mux, type MuxOptions } from '../mux.ts'
import type { Transport, TransportEvents } from '../transport.ts'
import type { WireError } from '../wire-error.ts'
import type { WireStream } from '../wire-stream.ts'

export type Side = 'server' | 'agent'

/** With this many bytes under way, a transport asks its writer to wait. */
const HIGH_BYTES = 64 * 1024

/** One direction of a link. */
class Pipe {
  events: TransportEvents | undefined
  sender: TransportEvents | undefined
  isEnded = false
  #bytes: Buffer = Buffer.alloc(0)
  #waits = false
  /** Everything that was ever written. */
  readonly log: Buffer[] = []

  get length(): number {
    return this.#bytes.length
  }

  write(bytes: Buffer): boolean {
    this.log.push(Buffer.from(bytes))
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    this.#waits = this.#bytes.length >= HIGH_BYTES
    return !this.#waits
  }

  /** Moves at most `max` bytes, in one chunk. */
  deliver(max: number): void {
    const chunk = this.#bytes.subarray(0, max)
    this.#bytes = this.#bytes.subarray(chunk.length)
    if (chunk.length > 0) this.#lend(Buffer.from(chunk))
    if (this.isEnded && this.#bytes.length === 0) this.events?.closed(undefined)
    else if (this.#waits && this.#bytes.length < HIGH_BYTES) {
      this.#waits = false
      this.sender?.drain()
    }
  }

  /** Overwrites the bytes after the call, so that tests fail when lent bytes are kept. */
  #lend(chunk: Buffer): void {
    this.events?.data(chunk)
    chunk.fill(0xdb)
  }
}

class Link {
  readonly pipes = { server: new Pipe(), agent: new Pipe() }

  /** The transport of one side; `pipes[side]` carries what that side writes. */
  transport(side: Side): Transport {
    const out = this.pipes[side]
    const back = this.pipes[side === 'server' ? 'agent' : 'server']
    return {
      open(events) {
        back.events = events
        out.sender = events
      },
      write(bytes, sent) {
        const hasRoom = out.write(bytes)
        sent?.()
        return hasRoom
      },
      end() {
        out.isEnded = true
      },
      destroy() {
        out.isEnded = true
      },
    }
  }
}

/** Two sessions over a link; `accepted` holds what each side was asked to serve. */
export class Ends {
  readonly link = new Link()
  readonly server: Mux
  readonly agent: Mux
  readonly accepted: Record<Side, { stream: WireStream; type: number }[]> = { server: [], agent: [] }
  readonly closed: Record<Side, (WireError | undefined)[]> = { server: [], agent: [] }
  readonly #tasks: Record<Side, (() => void)[]> = { server: [], agent: [] }
  timeMs = 0

  constructor(options: { server?: Partial<MuxOptions>; agent?: Partial<MuxOptions> } = {}) {
    this.server = this.#mux('server', options.server)
    this.agent = this.#mux('agent', options.agent)
  }

  mux(side: Side): Mux {
    return this[side]
  }

  /** The end of a turn of the event loop on one side. */
  turn(side: Side): void {
    for (const task of this.#tasks[side].splice(0)) task()
  }

  /** Runs turns and delivers bytes until nothing is left. */
  settle(chunkBytes = Number.POSITIVE_INFINITY): void {
    const { server, agent } = this.link.pipes
    do {
      this.turn('server')
      this.turn('agent')
      server.deliver(chunkBytes)
      agent.deliver(chunkBytes)
    } while (server.length + agent.length + this.#tasks.server.length + this.#tasks.agent.length > 0)
  }

  #mux(role: Side, options: Partial<MuxOptions> = {}): Mux {
    return new Mux({
      role,
      transport: this.link.transport(role),
      onStream: (stream, type) => this.accepted[role].push({ stream, type }),
      onClosed: (error) => this.closed[role].push(error),
      schedule: (run) => this.#tasks[role].push(run),
      now: () => this.timeMs,
      ...options,
    })
  }
}

/** A sink that records all it gets. */
export class Heard {
  readonly chunks: Buffer[] = []
  ends = 0
  drains = 0
  readonly closes: (WireError | undefined)[] = []

  get bytes(): Buffer {
    return Buffer.concat(this.chunks)
  }

  data(chunk: Buffer): void {
    // Not copied: the bytes must stay right for as long as they are kept.
    this.chunks.push(chunk)
  }

  end(): void {
    this.ends++
  }

  drain(): void {
    this.drains++
  }

  closed(error: WireError | undefined): void {
    this.closes.push(error)
  }
}
