/** Answers visitors of the plain listener that are over the limit: 503 with `Retry-After` (D68). */
import type { Socket } from 'node:net'
import { visitorErrors } from '../../model/visitor-errors.ts'
import { closeWith } from './read-client-hello.ts'

/**
 * How many are answered at once. Others are closed without an answer; otherwise answering would be a way around the
 * limit.
 */
const MAX_AT_ONCE = 64

/** How long a visitor may take to send its request, in milliseconds. */
const REQUEST_MS = 1000

const { text, status, ngrok } = visitorErrors.SERVER_BUSY
const body = `${text}\nERR_SERVER_BUSY\n`
const unnumbered = answerWith()
const numbered = answerWith(`ngrok-error-code: ERR_NGROK_${ngrok}`)

function answerWith(...more: readonly string[]): Buffer {
  return Buffer.from(
    [
      `HTTP/1.1 ${status} Service Unavailable`,
      'content-type: text/plain; charset=utf-8',
      `content-length: ${body.length}`,
      'cache-control: no-store',
      'postern-error-code: ERR_SERVER_BUSY',
      ...more,
      'retry-after: 1',
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  )
}

export interface HttpRefusalsOptions {
  readonly maxAtOnce?: number
  /** Whether answers carry ngrok's error number too; called for each. */
  readonly ngrokErrorHeader: () => boolean
}

/** A handler for connections over the limit. */
export function httpRefusals({
  maxAtOnce = MAX_AT_ONCE,
  ngrokErrorHeader,
}: HttpRefusalsOptions): (socket: Socket) => void {
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
    // Clients treat an answer that precedes their request as a broken connection.
    socket.once('data', () => {
      clearTimeout(overdue)
      closeWith(socket, ngrokErrorHeader() ? numbered : unnumbered)
    })
    // Reading a PROXY header paused the socket.
    socket.resume()
  }
}
