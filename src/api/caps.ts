/** The caps of the API's door (D68): what is one too many is answered once, by 503, and closed. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionCaps } from '../lib/net/connection-caps.ts'

/** How many connections over the cap may be told so at once; others are closed without a word. */
const MAX_TOLD = 64

/** How long such a connection may take to ask for something, in milliseconds. */
const TOLD_MS = 1000

/** What an answer to a request that is refused says beside its body. */
export type RefusalHeaders = Readonly<Record<string, string>>

/** Counts the connections of `server`; gives what is said of a request that is one too many, undefined of one that is not. */
export function capConnections(
  server: Server,
  caps: ConnectionCaps,
): (request: IncomingMessage) => RefusalHeaders | undefined {
  const mayAsk = new WeakMap<Socket, (() => boolean) | undefined>()
  const tooMany = new WeakSet<Socket>()
  let told = 0
  // Before Node's own listener, which begins to read.
  server.prependListener('connection', (socket: Socket) => {
    const ip = socket.remoteAddress ?? ''
    if (caps.accept(socket) && caps.admit(socket, ip)) {
      mayAsk.set(socket, caps.requestsOf(ip))
      return
    }
    socket.on('error', () => {})
    if (told >= MAX_TOLD) {
      socket.destroy()
      return
    }
    told++
    tooMany.add(socket)
    const overdue = setTimeout(() => socket.destroy(), TOLD_MS)
    socket.once('close', () => {
      told--
      clearTimeout(overdue)
    })
  })
  return ({ socket }) => {
    if (tooMany.has(socket)) return { 'retry-after': '1', connection: 'close' }
    return mayAsk.get(socket)?.() === false ? { 'retry-after': '1' } : undefined
  }
}
