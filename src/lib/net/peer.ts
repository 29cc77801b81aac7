/** The other end of a connection that was just accepted. */
import type { Socket } from 'node:net'
import { plainAddress } from './ip-rules.ts'

/** Both ends of a connection, known before any byte is read. */
export interface Peer {
  /** IPv4-mapped addresses are written as IPv4. */
  readonly ip: string
  readonly port: number
  readonly serverIp: string
  readonly serverPort: number
  /** When the connection was accepted, in milliseconds since 1970. */
  readonly startedAt: number
  /** Whether a trusted hop handed the connection over. */
  readonly isThroughHop?: boolean
}

/** Undefined when the other end is gone. */
export function peerOf(socket: Socket, startedAt: number): Peer | undefined {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (remoteAddress === undefined || remotePort === undefined) return undefined
  return {
    ip: plainAddress(remoteAddress),
    port: remotePort,
    serverIp: plainAddress(localAddress ?? ''),
    serverPort: localPort ?? 0,
    startedAt,
  }
}
