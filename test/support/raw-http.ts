/** Sends raw HTTP/1.1 over a socket, for requests that no client library would send. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Json } from './api-client.ts'

export interface RawAnswer {
  readonly status: number
  /** By lower-case name, in the order of arrival. */
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly text: string
  /** The parsed body; undefined when it is not JSON. */
  readonly body: Json
}

/** Joins the lines of a head, such as `['GET / HTTP/1.1', 'Host: x']`, with CRLF. */
export function head(lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** Sends `bytes` on a new connection and returns the first answer. */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<RawAnswer> {
  const connection = await RawConnection.open(url)
  try {
    return await connection.exchange(bytes)
  } finally {
    connection.close()
  }
}

export class RawConnection {
  readonly #socket: Socket
  #arrived = Buffer.alloc(0)
  #ended = false

  private constructor(socket: Socket) {
    this.#socket = socket
    // The server may reset the connection after its answer. If there was no answer, waiting for it fails anyway.
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      this.#arrived = Buffer.concat([this.#arrived, bytes])
    })
    socket.on('close', () => {
      this.#ended = true
    })
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    await once(socket, 'connect')
    return new RawConnection(socket)
  }

  get isOpen(): boolean {
    return !this.#ended
  }

  /** Sends `bytes` and returns the next answer; `bodiless` for the answer to HEAD. */
  async exchange(bytes: string | Buffer, { bodiless = false } = {}): Promise<RawAnswer> {
    this.#socket.write(bytes)
    const end = await this.#until(() => this.#arrived.indexOf('\r\n\r\n'))
    const [first = '', ...lines] = this.#arrived.subarray(0, end).toString('latin1').split('\r\n')
    const headers = Map.groupBy(lines, (line) => line.slice(0, line.indexOf(':')).toLowerCase())
    const values = new Map(
      [...headers].map(([name, all]) => [name, all.map((line) => line.slice(name.length + 1).trim())]),
    )
    const length = bodiless ? 0 : Number(values.get('content-length')?.[0] ?? 0)
    const total = end + 4 + length
    await this.#until(() => (this.#arrived.length >= total ? 0 : -1))
    const text = this.#arrived.subarray(end + 4, total).toString()
    this.#arrived = this.#arrived.subarray(total)
    return { status: Number(first.split(' ')[1]), headers: values, text, body: parsed(text) }
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Waits until `found` returns a position in the bytes that arrived. */
  async #until(found: () => number): Promise<number> {
    for (;;) {
      const at = found()
      if (at >= 0) return at
      if (this.#ended) throw new Error(`the connection ended after ${JSON.stringify(this.#arrived.toString())}`)
      await new Promise((resolve) => {
        this.#socket.once('data', resolve)
        this.#socket.once('close', resolve)
      })
    }
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
