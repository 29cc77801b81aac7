/** The caps of the API's listener (D68): a connection over the cap gets one 503 and is closed. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'

/** How many connections over the cap may wait for their 503 at once; further ones are closed at once. */
const MAX_WAITING = 64

/** How long such a connection may take to send its request, in milliseconds. */
const WAITING_MS = 1000

/** Headers of the answer to a refused request. */
type RefusalHeaders = Readonly<Record<string, string>>

/** Counts the connections of `server`. The result gives the headers for a request over a cap, and undefined for others. */
export function capConnections(
  server: Server,
  caps: ConnectionCaps,
): (request: IncomingMessage) => RefusalHeaders | undefined {
  const mayRequest = new WeakMap<Socket, (() => boolean) | undefined>()
  const tooMany = new WeakSet<Socket>()
  let waiting = 0
  // Must run before Node's own listener, which begins to read.
  server.prependListener('connection', (socket: Socket) => {
    const ip = socket.remoteAddress ?? ''
    if (caps.accept(socket) && caps.admit(socket, ip)) {
      mayRequest.set(socket, caps.requestsOf(ip))
      return
    }
    socket.on('error', () => {})
    if (waiting >= MAX_WAITING) {
      socket.destroy()
      return
    }
    waiting++
    tooMany.add(socket)
    const overdue = setTimeout(() => socket.destroy(), WAITING_MS)
    socket.once('close', () => {
      waiting--
      clearTimeout(overdue)
    })
  })
  return ({ socket }) => {
    if (tooMany.has(socket)) return { 'retry-after': '1', connection: 'close' }
    return mayRequest.get(socket)?.() === false ? { 'retry-after': '1' } : undefined
  }
}
