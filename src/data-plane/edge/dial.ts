/** Where a connection or request can go: the targets of a backend, in the order to try. */

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { socketStream } from '../../lib/bytes/socket-stream.ts'
import { type Ends, proxyHeaderOf } from '../../lib/net/proxy-protocol.ts'
import { DialFault, type DialReason, type DialRequest } from '../../model/dial.ts'
import type { BackendPlan } from '../../model/edge-config.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'

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
  /** Whether other targets serve the same: one of them can be tried when this target closes without an answer. */
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

/** Opens a connection for `visit` that begins with the PROXY header its target wants. Never rejects. */
export async function dialTarget(target: DialTarget, visit: Visit, ends: Ends): Promise<ByteStream | DialFault> {
  const stream = await target.open(visit)
  if (!(stream instanceof DialFault) && target.proxyHeader !== 0) stream.write(proxyHeaderOf(target.proxyHeader, ends))
  return stream
}

const codes: Readonly<Record<DialReason, VisitorErrorCode | undefined>> = {
  offline: undefined,
  busy: 'BACKEND_BUSY',
  timeout: 'UPSTREAM_TIMEOUT',
  refused: 'UPSTREAM_UNREACHABLE',
  unreachable: 'NODE_UNREACHABLE',
}

/**
 * The error for the visitor when no other target can be dialled either. Undefined for a target that is offline: a busy or
 * unreachable target, tried before or after, explains more.
 */
export function dialCode({ reason }: DialFault): VisitorErrorCode | undefined {
  return codes[reason]
}

export interface Dialling {
  readonly targets: Iterable<Target>
  readonly visit: Visit
  readonly ends: Ends
  /** The error when there is no target, or none that is online. */
  readonly offline: VisitorErrorCode
}

/**
 * Dials the targets of a backend in turn, for raw bytes: TCP and TLS edges, and modules that bridge protocols. Returns the
 * first that can be dialled, or why there is none. Never rejects.
 */
export async function dialFirst({
  targets,
  visit,
  ends,
  offline,
}: Dialling): Promise<{ readonly stream: ByteStream; readonly key: string } | VisitorErrorCode> {
  let code = offline
  for (const target of targets) {
    // a fixed response has no meaning where bytes are carried.
    if (target.kind === 'fixed') continue
    const stream = await dialTarget(target, visit, ends)
    if (!(stream instanceof DialFault)) return { stream, key: target.key }
    code = dialCode(stream) ?? code
  }
  return code
}

type StaticPlan = Pick<Extract<BackendPlan, { kind: 'static' }>, 'host' | 'port' | 'tls'>

/** How long a service may take to accept a connection, in milliseconds. */
const DIAL_TIMEOUT_MS = 10_000

/**
 * with TLS the name is sent as SNI and the certificate is not verified, as agents do with their services. Never
 * rejects.
 */
export function dialStatic({ host, port, tls }: StaticPlan): Promise<ByteStream | DialFault> {
  return new Promise((resolve) => {
    const to = { host, port, allowHalfOpen: true }
    const socket = tls
      ? connectTls({ ...to, rejectUnauthorized: false, ...(isIP(host) === 0 && { servername: host }) })
      : connectTcp(to)
    const finish = (result: ByteStream | DialFault): void => {
      clearTimeout(timer)
      socket.off('error', failed)
      if (result instanceof DialFault) {
        socket.on('error', () => {})
        socket.destroy()
      }
      resolve(result)
    }
    const failed = (cause: Error): void =>
      finish(new DialFault('refused', `${host}:${port} cannot be reached`, { cause }))
    const timer = setTimeout(
      () => finish(new DialFault('timeout', `${host}:${port} did not accept in ${DIAL_TIMEOUT_MS} ms`)),
      DIAL_TIMEOUT_MS,
    )
    socket.once('error', failed)
    socket.once(tls ? 'secureConnect' : 'connect', () => finish(toStream(socket)))
  })
}

function toStream(socket: Socket): ByteStream {
  socket.setNoDelay(true)
  return socketStream(socket, { outlivesFailedWrite: true })
}
