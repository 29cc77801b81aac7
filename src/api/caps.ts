/** The caps of the API's door (D68): what is one too many is answered once, by 503, and closed. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionCaps } from '../lib/connection-caps.ts'

/** How many connections over the cap may be told so at once; others are closed without a word. */
const MAX_TOLD = 64

/** How long such a connection may take to ask for something, in milliseconds. */
const TOLD_MS = 1000

/** Counts the connections of `server`; gives whether a request may be served. */
export function capConnections(server: Server, caps: ConnectionCaps): (request: IncomingMessage) => boolean {
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
  return ({ socket }) => !tooMany.has(socket) && mayAsk.get(socket)?.() !== false
}
