/** Reads a visitor's address from the PROXY header that a trusted hop, such as a load balancer, sends first. */
import type { Socket } from 'node:net'
import { compileIpRules, plainAddress } from './ip-rules.ts'
import type { Peer } from './peer.ts'
import { ProxyHeaderReader } from './proxy-protocol.ts'
import { limitTime } from './time-limit.ts'

/** How long a hop may take to send its header, in milliseconds. */
const HEADER_TIMEOUT_MS = 3000

/**
 * Calls `done` once with the visitor: immediately with the peer itself if that is not a hop. After a header the socket
 * is paused, with all of the visitor's own bytes still to be read. `done` gets undefined when the hop sent no valid
 * header or is gone. It is not called for a socket that was closed here instead.
 */
export type MeetVisitor = (socket: Socket, peer: Peer, done: (visitor: Peer | undefined) => void) => void

/** For hops in `networks`, in CIDR form. A hop without a header is refused: its own address does not name the visitor. */
export function meetVisitors(networks: readonly string[]): MeetVisitor {
  if (networks.length === 0) return (_socket, peer, done) => done(peer)
  const isHop = compileIpRules(networks.map((network) => ({ action: 'allow', network })))
  return (socket, peer, done) => {
    if (isHop(peer.ip)) readHeader(socket, peer, done)
    else done(peer)
  }
}

function readHeader(socket: Socket, peer: Peer, done: (visitor: Peer | undefined) => void): void {
  const reader = new ProxyHeaderReader()
  const finish = (visitor: Peer | undefined, rest?: Buffer): void => {
    cancel()
    socket.off('data', onData)
    socket.off('end', onGone)
    socket.off('close', onGone)
    socket.pause()
    if (rest && rest.length > 0) socket.unshift(rest)
    done(visitor)
  }
  const onData = (chunk: Buffer): void => {
    const read = reader.push(chunk)
    if (read === undefined) return
    if (read instanceof Error) finish(undefined)
    // Without ends the hop connects on its own behalf, as for a health check.
    else {
      const ends = read.ends && { ...read.ends, ip: plainAddress(read.ends.ip) }
      finish({ ...peer, ...ends, isThroughHop: true }, read.rest)
    }
  }
  const onGone = (): void => finish(undefined)
  const cancel = limitTime(HEADER_TIMEOUT_MS, () => finish(undefined))
  socket.on('data', onData)
  socket.on('end', onGone)
  socket.on('close', onGone)
}

/** Like `meet`, but closes a visitor that is not admitted at once; for listeners that cannot send a refusal yet. */
export function meetAdmitted(meet: MeetVisitor, admits: (visitor: Peer) => boolean): MeetVisitor {
  return (socket, peer, done) =>
    meet(socket, peer, (visitor) => {
      if (visitor && !admits(visitor)) socket.destroy()
      else done(visitor)
    })
}
