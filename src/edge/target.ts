/** Where one connection or request can go: what a backend offers, in the order in which it is to be tried. */
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { DialFault, DialRequest } from '../model/dial.ts'

/** Who is visiting and how, as the agent is told. */
export type Visit = Pick<DialRequest, 'ip' | 'port' | 'proto' | 'edge' | 'passthroughTls' | 'requestId'>

/** A service that can be dialled. */
export interface DialTarget {
  readonly kind: 'dial'
  /** The same for the same service: connections to it may be kept and used again. */
  readonly key: string
  readonly httpVersion: 1 | 2
  /** Which PROXY header begins each connection; with one, a connection serves a single visitor's connection. */
  readonly proxyHeader: 0 | 1 | 2
  /** Never rejects. */
  open(visit: Visit): Promise<ByteStream | DialFault>
}

/** A response that is always the same. */
export interface FixedTarget {
  readonly kind: 'fixed'
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer
}

export type Target = DialTarget | FixedTarget

/** What stands behind an edge or a route. */
export interface Backend {
  /** Targets for one connection or request; the next one is asked for when the one before could not be dialled. */
  targets(): Iterable<Target>
  /** Whether there is one at this moment. */
  readonly isOnline: boolean
  /** Nothing asks it any more. */
  release(): void
}
