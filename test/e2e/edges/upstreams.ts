/** Services behind edges that record what reached them; they close with the test or suite that owns them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { httpUpstream, type Owner, tcpUpstream, type Upstream } from '../../support/upstream.ts'

/** A request as it reached a service. */
export interface Seen {
  readonly method: string
  readonly url: string
  /** Every value of a header, in the order of the lines. */
  all(name: string): string[]
  /** The values joined; undefined when the header is missing. */
  get(name: string): string | undefined
  readonly names: readonly string[]
}

export interface Recorder extends Upstream {
  readonly seen: Seen[]
  /** The last request; throws when there is none. */
  readonly last: Seen
}

/** HTTP/1.1; without a listener it answers `hello`. */
export async function recorder(
  owner: Owner,
  listener: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end('hello'),
): Promise<Recorder> {
  const seen: Seen[] = []
  const upstream = await httpUpstream(owner, (request, response) => {
    seen.push(seenOf(request))
    listener(request, response)
  })
  return {
    ...upstream,
    seen,
    get last() {
      const last = seen.at(-1)
      if (!last) throw new Error('nothing reached the service')
      return last
    },
  }
}

function seenOf({ method = '', url = '', rawHeaders }: IncomingMessage): Seen {
  const lines = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1] ?? '']] : []))
  const all = (name: string): string[] => lines.filter(([key]) => key === name).map(([, value]) => value ?? '')
  return {
    method,
    url,
    all,
    get: (name) => all(name)[0] && all(name).join(', '),
    names: lines.map(([name]) => name ?? ''),
  }
}

export interface Listener extends Upstream {
  /** All bytes of each connection, in the order in which the connections came. */
  readonly received: Buffer[]
  readonly sockets: Socket[]
}

/** Plain TCP that records what it receives; without `onSocket` it sends nothing. */
export async function listener(owner: Owner, onSocket: (socket: Socket) => void = () => {}): Promise<Listener> {
  const received: Buffer[] = []
  const sockets: Socket[] = []
  const upstream = await tcpUpstream(owner, (socket) => {
    const at = sockets.push(socket) - 1
    received[at] = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      received[at] = Buffer.concat([received[at] ?? Buffer.alloc(0), chunk])
    })
    onSocket(socket)
  })
  return { ...upstream, received, sockets }
}

/** A port that neither accepts nor refuses connections: dialling it waits. */
export async function blackHole(owner: Owner): Promise<Upstream> {
  const program = `
    const server = require('node:net').createServer()
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port))`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  owner.after(() => child.kill('SIGKILL'))
  const [printed] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(printed)
  // A stopped process accepts nothing, nor does the system once the queue is full.
  child.kill('SIGSTOP')
  const waiting = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  owner.after(() => {
    for (const socket of waiting) socket.destroy()
  })
  await Promise.all(waiting.slice(0, 2).map((socket) => once(socket, 'connect')))
  return { port, address: `127.0.0.1:${port}` }
}

/** Plain TCP that echoes what it receives in capitals. */
export function shouts(owner: Owner): Promise<Listener> {
  return listener(owner, (socket) => {
    socket.on('data', (chunk) => socket.write(chunk.toString('latin1').toUpperCase()))
    socket.on('end', () => socket.end())
  })
}

/** Whether a service of `shouts` still answers on a connection. */
export async function isAlive(socket: Socket): Promise<boolean> {
  if (socket.destroyed || !socket.writable) return false
  const heard = new AbortController()
  const { signal } = heard
  socket.write('ping')
  try {
    const over = once(socket, 'close', { signal }).then(() => [''])
    const [said] = await Promise.race([once(socket, 'data', { signal }), over])
    return String(said) === 'PING'
  } catch {
    return false
  } finally {
    heard.abort()
  }
}

/** Rejects after `ms` milliseconds. */
export function timeout(ms: number, what: string): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`after ${ms} ms: ${what}`)), ms).unref())
}
