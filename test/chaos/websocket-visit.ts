/** A visitor that keeps a WebSocket open and sends short messages, each of which must come back. */
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { connected, EchoSocket, type Place, StepFailure, type Visit } from './visits.ts'

const BINARY_FRAME = 0x82
const MASKED = 0x80

/** How long the response to an upgrade may take, in milliseconds. */
const UPGRADE_MS = 10_000

/** `onClosed` is called when the other end closes the WebSocket while it is idle. */
export function webSocket(place: Place, onClosed: (port: number) => void): Visit {
  let kept: EchoSocket | undefined
  let count = 0
  return {
    async step() {
      kept ??= await open(place, (port) => {
        kept = undefined
        onClosed(port)
      })
      const message = Buffer.from(`message ${++count}`)
      const mask = randomBytes(4)
      const masked = message.map((byte, i) => byte ^ (mask[i % 4] ?? 0))
      const sent = Buffer.concat([Buffer.of(BINARY_FRAME, MASKED | message.length), mask, masked])
      try {
        await kept.echo(sent, Buffer.concat([Buffer.of(BINARY_FRAME, message.length), message]))
        return { isRepeated: false }
      } catch (error) {
        kept = undefined
        throw error
      }
    },
    close: () => kept?.close(),
  }
}

async function open({ url, ca }: Place, onClosed: (port: number) => void): Promise<EchoSocket> {
  const { host, hostname, port } = new URL(url)
  const socket = connectTls({ host: '127.0.0.1', port: Number(port), servername: hostname, ca })
  await connected(socket, 'secureConnect')
  const lines = ['GET /echo HTTP/1.1', `Host: ${host}`, 'Connection: Upgrade', 'Upgrade: websocket']
  const own = ['Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`]
  socket.write(`${[...lines, ...own].join('\r\n')}\r\n\r\n`)
  const head = await headOf(socket)
  if (head.startsWith('HTTP/1.1 101 ')) return EchoSocket.over(socket, onClosed)
  const { localPort } = socket
  socket.on('error', () => {}).destroy()
  throw new StepFailure(`upgrade: ${head.slice(0, head.indexOf('\r\n'))}`, [localPort])
}

function headOf(socket: Socket): Promise<string> {
  // A closed socket no longer has its local port.
  const { localPort } = socket
  return new Promise((resolve, reject) => {
    let text = ''
    const settled = (): void => {
      clearTimeout(timer)
      socket.off('error', failed).off('close', closed).off('data', take)
    }
    const failed = ({ message }: Error): void => {
      settled()
      socket.on('error', () => {}).destroy()
      reject(new StepFailure(`upgrade: ${message}`, [localPort]))
    }
    const closed = (): void => failed(new Error('closed'))
    const take = (bytes: Buffer): void => {
      text += bytes.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      settled()
      resolve(text)
    }
    const timer = setTimeout(() => failed(new Error(`no answer within ${UPGRADE_MS} ms`)), UPGRADE_MS)
    socket.on('error', failed).on('close', closed).on('data', take)
  })
}
