/** Who is at the other end of a connection that was just accepted. */
import type { Socket } from 'node:net'
import { plainAddress } from '../lib/ip-rules.ts'
import type { Peer } from '../modules/phases.ts'

/** Undefined when the other end is gone already. */
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
