/** Opens one TCP listener the way all public ones are: half-open connections, no delay, and no error that ends the process. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '../lib/clock.ts'
import type { Descriptors } from '../lib/files/descriptors.ts'
import type { Logger } from '../lib/log/log.ts'
import type { ConnectionCaps } from '../lib/net/connection-caps.ts'
import { type ListenOn, listenOn, listenText } from '../lib/net/listen-on.ts'
import { type Peer, peerOf } from '../lib/net/peer.ts'
import { visitorSockets } from '../lib/net/socket-options.ts'
import { type MeetVisitor, meetVisitors } from '../lib/net/trusted-hop.ts'

export interface ListenerOptions {
  readonly on: ListenOn
  /** What it throws ends that connection and nothing else. */
  readonly onConnection: (socket: Socket, visitor: Peer) => void
  /** Finds out who is visiting; by default, whoever connects. */
  readonly meet?: MeetVisitor | undefined
  /** The limit on connections; none by default. */
  readonly caps?: Pick<ConnectionCaps, 'accept' | 'admit'> | undefined
  /** Takes a connection over the limit; by default it is closed. */
  readonly onTooMany?: ((socket: Socket) => void) | undefined
  readonly descriptors?: Descriptors | undefined
  readonly log: Logger
  readonly now: Clock
}

/** Why a port cannot be opened; `code` is that of the system, such as `EADDRINUSE`. */
export class ListenFault extends Error {
  readonly reason: 'in_use' | 'forbidden' | 'unavailable'
  readonly code: string

  /** `place` is where it would have listened, in words. */
  constructor(place: string, cause: NodeJS.ErrnoException) {
    const code = cause.code ?? ''
    const reason = reasons.get(code) ?? 'unavailable'
    super(`${place} cannot be opened: ${sentences[reason]}`, { cause })
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

/** Gives the listener once it listens, or why it does not. */
export async function openListener(options: ListenerOptions): Promise<Server | ListenFault> {
  const { on, onConnection, descriptors, log, now, meet = meetVisitors([]), caps, onTooMany = close } = options
  const server = createServer(visitorSockets)
  server.on('connection', (socket) => {
    // `close` always follows an error, and everybody listens to that; but an unhandled error would end the process.
    socket.on('error', ignore)
    if (descriptors?.admits(socket, 'visitors') === false) return
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
        log.debug({ peer: peer.ip, port: peer.serverPort }, 'a trusted proxy did not say who is visiting')
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
      else log.error({ err, listener: listenText(on) }, 'a connection could not be accepted')
    })
    return server
  } catch (error) {
    return new ListenFault(listenText(on), error as NodeJS.ErrnoException) // of the system: nothing else rejects
  }
}

/** What listens, or the reason as an error: a listener of the operator's own choice must be had. */
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
