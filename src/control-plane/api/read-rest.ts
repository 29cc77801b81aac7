/** Reads what a client still sends of a refused request before its connection is closed, so that it can read the answer. */
import type { IncomingMessage } from 'node:http'

/** How much is read after the answer to a request that is too large, in bytes, and for how long, in milliseconds. */
const REST_BYTES = 16 * 1024 * 1024
const REST_MS = 2000

/**
 * Makes Node close the connection after its answer in a way that lets a client read it that is still sending: many read only
 * when they have sent everything, and a connection that is closed over unread bytes is reset.
 */
export function readRest({ socket }: IncomingMessage): void {
  const begin = (): void => {
    // The parser would take what follows for requests.
    socket.removeAllListeners('data')
    let left = REST_BYTES
    socket.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) socket.destroy()
    })
  }
  const linger = (): void => {
    const timer = setTimeout(() => socket.destroy(), REST_MS).unref()
    socket.once('close', () => clearTimeout(timer)).end()
    // Only as long as its parser listens does a socket of Node's server read again.
    if (socket.isPaused()) socket.once('resume', begin).resume()
    else begin()
  }
  // What Node calls after an answer that says `Connection: close`.
  Object.assign(socket, { destroySoon: linger })
}
