/** The visits that visitors repeat, by kind: a step is one request or one echo, and reports how it went. */
import { Agent as PlainAgent, request as requestPlain } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { request as requestSecure, Agent as SecureAgent } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export interface Place {
  /** Where a request goes; the name need not be in DNS. */
  readonly url: string
  /** PEM; omitted for a URL without TLS. */
  readonly ca?: string
}

/** Why a step failed. */
export class StepFailure extends Error {
  override readonly name = 'StepFailure'
  /** The local ports of the connections used. */
  readonly ports: readonly number[]

  constructor(why: string, ports: readonly (number | undefined)[]) {
    super(why)
    this.ports = ports.filter((port) => port !== undefined)
  }
}

export interface Visit {
  /** Rejects with `StepFailure`. Resolves with whether it was repeated, as any HTTP client does (RFC 9110 §9.2.2). */
  step(): Promise<{ readonly isRepeated: boolean }>
  close(): void
}

export interface ApiCall {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly key: string
  readonly body?: () => string
  readonly answered?: (text: string) => void
}

/** How long a response may take, in milliseconds. */
const ANSWER_MS = 10_000

const once = { isRepeated: false } as const

/** HTTP/1.1 requests, on one kept connection or each on its own. */
export function http1({ url, ca }: Place, { isKept, call }: { isKept: boolean; call?: ApiCall }): Visit {
  const { host, hostname, port, protocol } = new URL(url)
  const isSecure = protocol === 'https:'
  const keeping = { keepAlive: true, maxSockets: 1 }
  const agent = isKept && (isSecure ? new SecureAgent(keeping) : new PlainAgent(keeping))
  const to = {
    ...{ host: '127.0.0.1', port, agent, ...(isSecure && { ca, servername: hostname }) },
    ...{ method: call?.method ?? 'GET', path: call?.path ?? '/' },
    headers: {
      host,
      ...(call && { authorization: `Bearer ${call.key}`, 'service-version': '2', 'content-type': 'application/json' }),
    },
  }
  const ask = (body: string | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const asking = isSecure ? requestSecure(to) : requestPlain(to)
      let localPort: number | undefined
      let hasAnswer = false
      const fail = (error: Error & { readonly code?: string }): void => {
        asking.destroy()
        const isUnread = asking.reusedSocket && !hasAnswer && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
        reject(Object.assign(new StepFailure(error.message, [localPort]), { isUnread }))
      }
      const timer = setTimeout(() => fail(new Error(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS)
      asking.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => (localPort = socket.localPort))
        else localPort = socket.localPort
      })
      asking.on('close', () => clearTimeout(timer)).on('error', fail)
      asking.on('response', (response) => {
        hasAnswer = true
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => (text += part))
        response.on('error', fail).on('end', () => {
          const { statusCode = 0, headers } = response
          if (statusCode >= 300) return fail(new Error(`${statusCode} ${String(headers['postern-error-code'] ?? '')}`))
          call?.answered?.(text)
          resolve()
        })
      })
      asking.end(body)
    })
  return {
    async step() {
      const body = call?.body?.()
      try {
        await ask(body)
        return once
      } catch (error) {
        // The connection was closed while the request was on its way, so the server has not read it.
        const isUnread = error instanceof StepFailure && 'isUnread' in error && error.isUnread === true
        if (!isUnread || call?.method === 'POST') throw error
        await ask(body)
        return { isRepeated: true }
      }
    },
    close() {
      if (agent) agent.destroy()
    },
  }
}

/** HTTP/2 requests, on one kept connection or each on its own. */
export function http2({ url, ca }: Place, { isKept }: { isKept: boolean }): Visit {
  const { host, hostname, port } = new URL(url)
  let session: ClientHttp2Session | undefined
  let localPort: number | undefined
  const open = (): ClientHttp2Session => {
    const socket = connectTls({
      host: '127.0.0.1',
      port: Number(port),
      ca,
      servername: hostname,
      ALPNProtocols: ['h2'],
    })
    localPort = undefined
    socket.once('connect', () => {
      localPort = socket.localPort
    })
    const opened = connectHttp2(`https://127.0.0.1:${port}`, { createConnection: () => socket })
    opened.on('error', () => {})
    const forget = (): void => {
      if (session === opened) session = undefined
    }
    opened.on('goaway', forget).on('close', forget)
    return opened
  }
  const ask = (over: ClientHttp2Session): Promise<void> =>
    new Promise((resolve, reject) => {
      const stream = over.request({ ':path': '/', ':authority': host })
      let status = 0
      const timer = setTimeout(() => stream.destroy(new Error(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS)
      let why = 'the connection was closed'
      stream.on('error', (error) => (why = error.message))
      stream.on('response', (headers) => (status = Number(headers[':status'])))
      stream.on('end', () => (why = String(status)))
      stream.on('close', () => {
        clearTimeout(timer)
        if (status === 200 && why === '200') return resolve()
        const isUnread = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM
        reject(Object.assign(new StepFailure(why, [localPort]), { isUnread }))
      })
      stream.resume()
    })
  return {
    async step() {
      const isOld = session !== undefined
      session ??= open()
      const over = session
      try {
        await ask(over)
        return once
      } catch (error) {
        over.close()
        if (session === over) session = undefined
        const isUnread = error instanceof StepFailure && 'isUnread' in error && error.isUnread === true
        if (!isOld || !isUnread) throw error
        session = open()
        await ask(session)
        return { isRepeated: true }
      } finally {
        if (!isKept) {
          session?.close()
          session = undefined
        }
      }
    },
    close: () => session?.destroy(),
  }
}

/** Echoes over TCP, on one kept connection or each on its own. */
export function tcp(url: string, { isKept, onClosed }: { isKept: boolean; onClosed: (port: number) => void }): Visit {
  const port = Number(new URL(url).port)
  let kept: EchoSocket | undefined
  let count = 0
  return {
    async step() {
      kept ??= EchoSocket.over(await connected(connectTcp({ port, host: '127.0.0.1' })), (byPort) => {
        kept = undefined
        onClosed(byPort)
      })
      const socket = kept
      try {
        await socket.echo(Buffer.from(`word ${++count}`))
        return once
      } catch (error) {
        kept = undefined
        throw error
      } finally {
        if (!isKept) {
          socket.close()
          kept = undefined
        }
      }
    },
    close: () => kept?.close(),
  }
}

/** A connection whose other end echoes. */
export class EchoSocket {
  readonly #socket: Socket
  readonly #port: number
  #wanted: Buffer | undefined
  #arrived: Buffer = Buffer.alloc(0)
  #settle: ((why?: string) => void) | undefined
  #isOurs = false

  private constructor(socket: Socket, onClosed: (port: number) => void) {
    this.#socket = socket
    this.#port = socket.localPort ?? 0
    const over = (why: string) => () => {
      const settle = this.#settle
      socket.destroy()
      if (this.#isOurs) return
      this.#isOurs = true
      if (settle) settle(why)
      else onClosed(this.#port)
    }
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('error', (error) => over(error.message)())
    socket.on('end', over('ended'))
    socket.on('close', over('closed'))
  }

  /** `onClosed` is called when the other end closes the connection while it is idle. */
  static over(socket: Socket, onClosed: (port: number) => void): EchoSocket {
    return new EchoSocket(socket, onClosed)
  }

  /** Sends `bytes`; resolves when `back` has come. */
  echo(bytes: Buffer, back: Buffer = bytes): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#settle?.(`no echo within ${ANSWER_MS} ms`), ANSWER_MS)
      this.#wanted = back
      this.#settle = (why) => {
        clearTimeout(timer)
        this.#settle = undefined
        this.#arrived = Buffer.alloc(0)
        if (why === undefined) return resolve()
        this.close()
        reject(new StepFailure(`cut with an echo on its way: ${why}`, [this.#port]))
      }
      if (this.#socket.destroyed) this.#settle('closed')
      else this.#socket.write(bytes)
    })
  }

  close(): void {
    this.#isOurs = true
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    this.#arrived = this.#arrived.length === 0 ? bytes : Buffer.concat([this.#arrived, bytes])
    const wanted = this.#wanted
    if (!wanted || this.#arrived.length < wanted.length) return
    this.#settle?.(this.#arrived.equals(wanted) ? undefined : 'other bytes came back')
  }
}

/** Resolves with the socket on `event`; rejects with `StepFailure`. */
export async function connected(socket: Socket, event = 'connect'): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(new Error(`not connected within ${ANSWER_MS} ms`)), ANSWER_MS)
    // A closed socket no longer has its local port.
    let localPort: number | undefined
    socket.once('connect', () => {
      localPort = socket.localPort
    })
    const settled = (): void => {
      clearTimeout(timer)
      socket.off('error', fail).off('close', closed).off(event, done)
    }
    const fail = (error: Error): void => {
      settled()
      socket.on('error', () => {}).destroy()
      reject(new StepFailure(error.message, [localPort]))
    }
    const closed = (): void => fail(new Error('closed before it was connected'))
    const done = (): void => {
      settled()
      resolve(socket)
    }
    socket.on('error', fail).on('close', closed).on(event, done)
  })
}
