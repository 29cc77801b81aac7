/** Reads the hello of a connection and leaves every byte in it; turns away clients that send none. */
import type { Socket } from 'node:net'
import { readBorrowed, stopLending } from '../../lib/bytes/borrowed-reads.ts'
import { keepBytes } from '../../lib/bytes/byte-stream.ts'
import { limitTime } from '../../lib/net/time-limit.ts'
import { type ClientHello, type HelloFault, HelloReader } from './client-hello.ts'

export type ClientHelloFault = HelloFault | 'no_name' | 'timeout' | 'closed'

/** How long a hello may take from accept to its last byte, in milliseconds. */
const HELLO_TIMEOUT_MS = 3000

/** How long a visitor that is turned away has to read why, in milliseconds; closing at once could discard it. */
const LINGER_MS = 1000

/**
 * Calls `done` exactly once. With a hello, the socket does not flow and still holds all bytes: TLS or a relay that takes the
 * socket over within the call sees each byte once. With a fault, the socket must go to `turnAway`.
 */
export function readClientHello(
  socket: Socket,
  done: (result: ClientHello | ClientHelloFault) => void,
  { timeoutMs = HELLO_TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
): void {
  const reader = new HelloReader()
  const finish = (result: ClientHello | ClientHelloFault): void => {
    callOff()
    stopReading()
    socket.off('end', onClosed)
    socket.off('close', onClosed)
    if (typeof result !== 'string') socket.unshift(reader.bytes)
    done(result)
  }
  const take = (chunk: Buffer): boolean => {
    const result = reader.push(keepBytes(chunk))
    if (result) finish(typeof result !== 'string' && result.serverName === '' ? 'no_name' : result)
    return true
  }
  const onClosed = (): void => finish('closed')
  const callOff = limitTime(timeoutMs, () => finish('timeout'))
  socket.on('end', onClosed)
  socket.on('close', onClosed)
  const stopReading = readInto(socket, take)
}

/** Returns a function that stops it. Stream events, which cost a tenth of a handshake, are only the fallback. */
function readInto(socket: Socket, take: (chunk: Buffer) => boolean): () => void {
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null
    if (chunk) take(chunk)
  }
  // Bytes may already be waiting after a PROXY header.
  if (socket.readableLength === 0 && readBorrowed(socket, take)) return () => stopLending(socket)
  socket.on('readable', onReadable)
  return () => socket.off('readable', onReadable)
}

/** Tells the visitor why, if it can understand that, and closes. */
export function turnAway(socket: Socket, fault: ClientHelloFault): void {
  const answer = answers[fault]
  if (answer) closeWith(socket, answer)
  else socket.destroy()
}

/** Sends a last message and closes in a way that lets it arrive. */
export function closeWith(socket: Socket, words: Buffer): void {
  if (socket.destroyed) return
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
  // Discards further bytes: unread ones would turn the close into a reset.
  socket.resume()
  socket.end(words)
}

/** A fatal alert in an unencrypted record (RFC 8446 §6), by default as before a version is negotiated. */
export function alertRecord(description: number, minorVersion = 1): Buffer {
  return Buffer.from([21, 3, minorVersion, 0, 2, 2, description])
}

export const alert = { badCertificate: 42, decodeError: 50, internalError: 80, unrecognizedName: 112 } as const

const httpText = 'This port speaks TLS; use https:// instead of http://.\n'

const answers: Readonly<Record<ClientHelloFault, Buffer | undefined>> = {
  // without a name there is no edge to choose.
  no_name: alertRecord(alert.unrecognizedName),
  bad_name: alertRecord(alert.unrecognizedName),
  malformed: alertRecord(alert.decodeError),
  too_large: alertRecord(alert.decodeError),
  plain_http: Buffer.from(
    [
      'HTTP/1.1 400 Bad Request',
      'content-type: text/plain; charset=utf-8',
      `content-length: ${httpText.length}`,
      'connection: close',
      '',
      httpText,
    ].join('\r\n'),
  ),
  not_tls: undefined,
  timeout: undefined,
  closed: undefined,
}
