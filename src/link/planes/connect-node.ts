/** Connects to another node and verifies that it is the right one. */
import { connect, type TLSSocket } from 'node:tls'
import { AnotherNode, type NodeIdentity, type NodePlane, verifiedPeer } from './node-identity.ts'
import type { OtherNode } from './plane-calls.ts'

export interface ConnectNodeOptions {
  readonly identity: Pick<NodeIdentity, 'linkTls'>
  readonly nodeId: string
  readonly address: OtherNode['address']
  /** How long connecting and the handshake may take together, in milliseconds. */
  readonly withinMs: number
  readonly signal: AbortSignal
}

/** Connects to whichever plane of the node the system chooses; rejects when that fails. */
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
  const abort = (): void => fail(new Error('the connection is no longer needed'))
  signal.addEventListener('abort', abort, { once: true })
  // An error after the handshake is the business of whoever took the socket; without this listener it would end the process.
  socket.on('error', fail)
  socket.once('close', () => fail(new Error('the connection was closed')))
  socket.once('secureConnect', () => {
    const peer = verifiedPeer(socket)
    if (peer instanceof Error) fail(peer)
    else if (peer.nodeId !== nodeId) fail(new AnotherNode(peer.nodeId))
    else resolve({ socket, peer })
  })
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  })
}
