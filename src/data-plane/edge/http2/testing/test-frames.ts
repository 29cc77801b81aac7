/** For tests: a visitor that speaks HTTP/2 in handmade frames, including ones that no library would send. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export const frameTypes = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flags = { endStream: 1, ack: 1, endHeaders: 4 } as const

interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export function frame(type: number, flag: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flag
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** RFC 7541 §6.2.2: literals that are not indexed, not compressed. */
function headerBlock(pairs: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(pairs.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([length(bytes.length), bytes])
}

/** RFC 7541 §5.1, with a prefix of seven bits. */
function length(value: number): Buffer {
  if (value < 127) return Buffer.from([value])
  const bytes = [127]
  let rest = value - 127
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  return Buffer.from([...bytes, rest])
}

/** The minimum of a request. */
export const usual: readonly (readonly [string, string])[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/'],
  [':authority', 'a.test'],
]

/** The minimum of a request for a WebSocket. */
export const extended: typeof usual = [
  [':method', 'CONNECT'],
  ...usual.filter(([name]) => name !== ':method'),
  [':protocol', 'websocket'],
]

export class RawVisitor {
  readonly socket: Socket
  readonly frames: Frame[] = []
  isClosed = false
  #held = Buffer.alloc(0)
  #waiting: (() => void)[] = []

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('close', () => {
      this.isClosed = true
      this.#wake()
    })
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(frame(frameTypes.settings, 0, 0))
  }

  static async connect(port: number): Promise<RawVisitor> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new RawVisitor(socket)
  }

  /** Sends a request; an open one may be followed by data. */
  ask(stream: number, pairs: readonly (readonly [string, string])[] = usual, { isOpen = false } = {}): void {
    const flag = flags.endHeaders | (isOpen ? 0 : flags.endStream)
    this.socket.write(frame(frameTypes.headers, flag, stream, headerBlock(pairs)))
  }

  send(type: keyof typeof frameTypes, flag: number, stream: number, payload?: Buffer): void {
    this.socket.write(frame(frameTypes[type], flag, stream, payload))
  }

  reset(stream: number, code: number): void {
    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(code)
    this.send('reset', 0, stream, payload)
  }

  /** The first frame of this type on this stream; undefined when the connection closes without one. */
  async frame(type: keyof typeof frameTypes, stream: number): Promise<Frame | undefined> {
    for (;;) {
      const found = this.frames.find((each) => each.type === frameTypes[type] && each.stream === stream)
      if (found || this.isClosed) return found
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /** How the visitor was answered: by a status, or by a reset with its code. */
  async answer(stream: number): Promise<string> {
    for (;;) {
      const found = this.frames.find(
        (each) => each.stream === stream && (each.type === frameTypes.headers || each.type === frameTypes.reset),
      )
      if (found)
        return found.type === frameTypes.reset ? `reset ${found.payload.readUInt32BE()}` : statusOf(found.payload)
      if (this.isClosed) return 'closed'
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  async closed(): Promise<void> {
    while (!this.isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  #take(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk])
    while (this.#held.length >= 9) {
      const end = 9 + this.#held.readUIntBE(0, 3)
      if (this.#held.length < end) break
      const [type = 0, flag = 0] = this.#held.subarray(3, 5)
      const stream = this.#held.readUInt32BE(5)
      this.frames.push({ type, flags: flag, stream, payload: Buffer.from(this.#held.subarray(9, end)) })
      this.#held = this.#held.subarray(end)
      if (type === frameTypes.settings && flag === 0) this.send('settings', flags.ack, 0)
    }
    this.#wake()
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }
}

/** RFC 7541 Appendix A: the statuses that have an index come as one byte; others as a literal of it. */
function statusOf(payload: Buffer): string {
  const indexed = ['200', '204', '206', '304', '400', '404', '500'][(payload[0] ?? 0) - 0x88]
  if (indexed !== undefined) return indexed
  const isHuffman = ((payload[1] ?? 0) & 0x80) !== 0
  if (!isHuffman) return payload.toString('latin1', 2, 5)
  return `another status (${payload.subarray(0, 4).toString('hex')})`
}
