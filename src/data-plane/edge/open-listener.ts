/** Opens a public TCP listener: half-open connections, no delay, and no error that ends the process. */

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { type ListenOn, listenOn, listenText } from '../../lib/net/listen-on.ts'
import { type Peer, peerOf } from '../../lib/net/peer.ts'
import { visitorSockets } from '../../lib/net/socket-options.ts'
import { meetVisitors } from '../../lib/net/trusted-hop.ts'
import type { PlaneContext } from '../../model/plane-context.ts'

/** What listeners for visitors share. */
export interface VisitorListening
  extends Pick<PlaneContext, 'log' | 'meet' | 'caps' | 'descriptors'>,
    Partial<Pick<PlaneContext, 'now'>> {
  /** When descriptors run short: closes an idle connection in favour of one from `ip`, if there is one. */
  readonly giveWay?: (ip: string) => boolean
}

interface ListenerOptions extends VisitorListening {
  readonly on: ListenOn
  /** An error thrown here ends that connection and no other. */
  readonly onConnection: (socket: Socket, visitor: Peer) => void
  /** Takes a connection over the limit; by default it is closed. */
  readonly onTooMany?: ((socket: Socket) => void) | undefined
}

/** Why a port cannot be opened; `code` is that of the system, such as `EADDRINUSE`. */
export class ListenFault extends Error {
  readonly reason: 'in_use' | 'forbidden' | 'unavailable'
  readonly code: string

  /** `place` is where it would have listened, in words. */
  constructor(listenAddress: string, cause: NodeJS.ErrnoException) {
    const code = cause.code ?? ''
    const reason = reasons.get(code) ?? 'unavailable'
    super(`${listenAddress} cannot be opened: ${sentences[reason]}`, { cause })
    this.name = 'ListenFault'
    this.reason = reason
    this.code = code
  }
}

const reasons: ReadonlyMap<string, ListenFault['reason']> = new Map([
  ['EADDRINUSE', 'in_use'],
  ['EACCES', 'forbidden'],
  ['EPERM', 'forbidden'],
])

const sentences: Readonly<Record<ListenFault['reason'], string>> = {
  in_use: 'another program listens on it',
  forbidden: 'the system does not allow it',
  unavailable: 'the system refuses it',
}

/** Resolves with the server once it listens, or with the fault. */
export async function openListener(options: ListenerOptions): Promise<Server | ListenFault> {
  const {
    on,
    onConnection,
    descriptors,
    giveWay,
    log,
    now = Date.now,
    meet = meetVisitors([]),
    caps,
    onTooMany = close,
  } = options
  const server = createServer(visitorSockets)
  server.on('connection', (socket) => {
    // `close` follows every error and is handled elsewhere; but an `error` without a listener would end the process.
    socket.on('error', ignore)
    if (descriptors?.admits(socket, 'visitors', giveWay) === false) return
    const peer = peerOf(socket, now())
    if (!peer) {
      socket.destroy()
      return
    }
    if (caps?.accept(socket) === false) {
      onTooMany(socket)
      return
    }
    meet(socket, peer, (visitor) => {
      if (!visitor) {
        socket.destroy()
        log.debug({ peer: peer.ip, port: peer.serverPort }, 'trusted proxy did not send the address of a visitor')
        return
      }
      if (caps?.admit(socket, visitor.ip) === false) {
        onTooMany(socket)
        return
      }
      try {
        onConnection(socket, visitor)
      } catch (err) {
        log.error({ err, port: socket.localPort }, 'connection handler failed')
        socket.destroy()
      }
    })
  })
  try {
    await listenOn(server, on, (err) => {
      if (descriptors) descriptors.failed(err, listenText(on))
      else log.error({ err, listener: listenText(on) }, 'cannot accept a connection')
    })
    return server
  } catch (error) {
    return new ListenFault(listenText(on), error as NodeJS.ErrnoException) // nothing but system errors rejects
  }
}

/** Returns what listens, or throws the fault: a listener that the operator configured is required. */
export function listening<T>(outcome: T | ListenFault): T {
  if (outcome instanceof ListenFault) throw outcome
  return outcome
}

export function boundTo(server: Server): AddressInfo {
  return server.address() as AddressInfo // a server on a host and port has an address of this form
}

function ignore(): void {}

function close(socket: Socket): void {
  socket.destroy()
}
