/** Where a connection or request can go: the targets of a backend, in the order to try. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { DialFault, DialRequest } from '../../model/dial.ts'

/** Who is visiting and how, as the agent sees it. */
export type Visit = Pick<DialRequest, 'ip' | 'port' | 'proto' | 'edge' | 'passthroughTls' | 'requestId'>

/** A service that can be dialled. */
export interface DialTarget {
  readonly kind: 'dial'
  /** Identifies the service. */
  readonly key: string
  /**
   * Targets with the same reuse key reuse each other's connections. It begins with the key, which is the default. Built
   * with the target, not for each request.
   */
  readonly reuseKey?: string | undefined
  readonly httpVersion: 1 | 2
  /** The PROXY header that begins each connection; with one, a connection serves a single visitor's connection. */
  readonly proxyHeader: 0 | 1 | 2
  /** One of several that serve the same, so that another can be tried when this one closes without an answer. */
  readonly isPooled?: boolean
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

/** The backend of an edge or a route. */
export interface Backend {
  /** Targets for one connection or request; when one cannot be dialled, the next is tried. */
  targets(): Iterable<Target>
  /** Undefined when all targets are known; else resolves when they are. Never rejects. */
  found?(): Promise<unknown> | undefined
  /** Whether there is a target at the moment. */
  readonly isOnline: boolean
  /** Call it when the backend is no longer used. */
  release(): void
}
