/** Tells visitors of the plain listener that there is no room for them, where they can read it: 503 with `Retry-After` (D68). */
import type { Socket } from 'node:net'
import { visitorErrors } from '../model/visitor-errors.ts'
import { closeWith } from './peek.ts'

/** How many may be told at once. Others are closed without a word, or telling would be a way around the cap. */
const MAX_AT_ONCE = 64

/** How long a visitor may take to ask for something, in milliseconds. */
const REQUEST_MS = 1000

const { text, status, ngrok } = visitorErrors.SERVER_BUSY
const body = `${text}\nERR_SERVER_BUSY\n`
const answer = Buffer.from(
  [
    `HTTP/1.1 ${status} Service Unavailable`,
    'content-type: text/plain; charset=utf-8',
    `content-length: ${body.length}`,
    'cache-control: no-store',
    'postern-error-code: ERR_SERVER_BUSY',
    `ngrok-error-code: ERR_NGROK_${ngrok}`,
    'retry-after: 1',
    'connection: close',
    '',
    body,
  ].join('\r\n'),
)

/** Gives what takes connections that are too many. */
export function httpRefusals({ maxAtOnce = MAX_AT_ONCE } = {}): (socket: Socket) => void {
  let count = 0
  return (socket) => {
    if (count >= maxAtOnce || socket.destroyed) {
      socket.destroy()
      return
    }
    count++
    const overdue = setTimeout(() => socket.destroy(), REQUEST_MS)
    socket.once('close', () => {
      count--
      clearTimeout(overdue)
    })
    // An answer before the request would be taken for a broken connection.
    socket.once('data', () => {
      clearTimeout(overdue)
      closeWith(socket, answer)
    })
    // Reading a PROXY header has paused it.
    socket.resume()
  }
}
