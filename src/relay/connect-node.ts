/** Connects to another node, and makes sure that it is the one. */
import { connect, type TLSSocket } from 'node:tls'
import { type NodeIdentity, type NodePlane, verifiedPeer } from './node-identity.ts'

/** Where a node's door listens, for other nodes. */
export interface NodeAddress {
  readonly host: string
  readonly port: number
}

export interface ConnectNodeOptions {
  readonly identity: Pick<NodeIdentity, 'linkTls'>
  readonly nodeId: string
  readonly address: NodeAddress
  /** How long to connect and shake hands may take together, in milliseconds. */
  readonly withinMs: number
  readonly signal: AbortSignal
}

/** A connection to whichever plane of the node the system chose; rejects when there is none. */
export function connectNode({
  identity,
  nodeId,
  address: { host, port },
  withinMs,
  signal,
}: ConnectNodeOptions): Promise<{ readonly socket: TLSSocket; readonly peer: NodePlane }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ socket: TLSSocket; peer: NodePlane }>()
  const socket = connect({ ...identity.linkTls, host, port })
  const timer = setTimeout(() => fail(new Error(`no connection in ${withinMs} ms`)), withinMs)
  const fail = (error: Error): void => {
    reject(error)
    socket.destroy()
  }
  const abort = (): void => fail(new Error('it is no longer wanted'))
  signal.addEventListener('abort', abort, { once: true })
  // An error after the handshake is for whoever took the socket; without a listener it would end the process.
  socket.on('error', fail)
  socket.once('close', () => fail(new Error('the connection was closed')))
  socket.once('secureConnect', () => {
    const peer = verifiedPeer(socket)
    if (peer instanceof Error) fail(peer)
    else if (peer.nodeId !== nodeId) fail(new Error(`the node ${peer.nodeId} is there instead`))
    else resolve({ socket, peer })
  })
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  })
}
