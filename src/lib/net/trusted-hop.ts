/** Learns who is really visiting when a trusted hop, such as a load balancer, stands in front: it begins with a PROXY header. */
import type { Socket } from 'node:net'
import { compileIpRules, plainAddress } from './ip-rules.ts'
import type { Peer } from './peer.ts'
import { ProxyHeaderReader } from './proxy-protocol.ts'

/** How long a hop may take to say who is visiting, in milliseconds. */
const HEADER_TIMEOUT_MS = 3000

/**
 * Calls `done` once: with the visitor, the socket being paused with every byte of the visitor's own still in it, or with
 * undefined, when the hop did not say who it is, or is gone. Who is not a hop is the visitor, at once. It is not called for a socket
 * that was closed instead.
 */
export type MeetVisitor = (socket: Socket, peer: Peer, done: (visitor: Peer | undefined) => void) => void

/** For hops within `networks`, in CIDR form. A hop that sends no header is not let in: its own address says nothing. */
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
    clearTimeout(timer)
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
    // Without ends the hop speaks for itself, as it does when it looks whether we are well.
    else finish(read.ends ? { ...peer, ...read.ends, ip: plainAddress(read.ends.ip) } : peer, read.rest)
  }
  const onGone = (): void => finish(undefined)
  const timer = setTimeout(() => finish(undefined), HEADER_TIMEOUT_MS)
  socket.on('data', onData)
  socket.on('end', onGone)
  socket.on('close', onGone)
}

/** As `meet`, for listeners where nothing can be said to a visitor yet: one that is not admitted is closed at once. */
export function meetAdmitted(meet: MeetVisitor, admits: (visitor: Peer) => boolean): MeetVisitor {
  return (socket, peer, done) =>
    meet(socket, peer, (visitor) => {
      if (visitor && !admits(visitor)) socket.destroy()
      else done(visitor)
    })
}
