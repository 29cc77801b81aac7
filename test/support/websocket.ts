/** WebSocket with short messages: a service, and a visitor that can trust any CA, which Node's own client cannot. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { dialTls, type Trust } from './visitor.ts'

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const BINARY = 2

export class WebSocketVisitor {
  readonly #socket: TLSSocket
  #arrived: Buffer

  private constructor(socket: TLSSocket, rest: Buffer) {
    this.#socket = socket
    this.#arrived = rest
    socket.on('data', (bytes: Buffer) => {
      this.#arrived = Buffer.concat([this.#arrived, bytes])
    })
  }

  static async open(url: string, { ca }: Trust, path = '/'): Promise<WebSocketVisitor> {
    const socket = await dialTls(url, { ca })
    const key = randomBytes(16).toString('base64')
    const lines = [
      `GET ${path} HTTP/1.1`,
      `Host: ${new URL(url).host}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${key}`,
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    let head = Buffer.alloc(0)
    while (!head.includes('\r\n\r\n')) {
      const [bytes] = (await once(socket, 'data')) as [Buffer]
      head = Buffer.concat([head, bytes])
    }
    const end = head.indexOf('\r\n\r\n') + 4
    const text = head.subarray(0, end).toString()
    assert.match(text, /^HTTP\/1\.1 101 /)
    const [, accept] = /^sec-websocket-accept: (\S+)\r$/im.exec(text) ?? []
    assert.equal(accept, acceptOf(key))
    return new WebSocketVisitor(socket, head.subarray(end))
  }

  /** At most 125 bytes. */
  send(message: Buffer): void {
    const mask = randomBytes(4)
    const masked = message.map((byte, i) => byte ^ (mask[i % 4] ?? 0))
    this.#socket.write(Buffer.concat([Buffer.of(0x80 | BINARY, 0x80 | message.length), mask, masked]))
  }

  /** The next message, of at most 125 bytes. */
  async receive(): Promise<Buffer> {
    while (this.#arrived.length < 2 || this.#arrived.length < 2 + this.#length) await once(this.#socket, 'data')
    const message = this.#arrived.subarray(2, 2 + this.#length)
    this.#arrived = this.#arrived.subarray(2 + message.length)
    return message
  }

  close(): void {
    this.#socket.destroy()
  }

  get #length(): number {
    return (this.#arrived[1] ?? 0) & 0x7f
  }
}

/** Handles upgrades of an HTTP service: echoes each message. A message must arrive in one chunk. */
export function echoMessages({ headers }: IncomingMessage, socket: Duplex): void {
  const accept = acceptOf(headers['sec-websocket-key'] ?? '')
  const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept}`]
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
  socket.on('error', () => {})
  socket.on('data', (frame: Buffer) => {
    const mask = frame.subarray(2, 6)
    const message = frame.subarray(6).map((byte, i) => byte ^ (mask[i % 4] ?? 0))
    socket.write(Buffer.concat([Buffer.of(0x80 | BINARY, message.length), message]))
  })
  socket.on('end', () => socket.end())
}

function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}${GUID}`).digest('base64')
}
