/** What puts load on a tunnel besides wrk: iperf3, and one visitor who does not read. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Entrance } from '../entrance.ts'
import type { Load } from '../measure.ts'
import { LOOPBACK, retry } from '../stage/ports.ts'
import type { Programs } from '../stage/programs.ts'

/** How much longer than the test itself a generator may run, in milliseconds. */
const GRACE_MS = 20_000

/** How long a tunnel may take to answer its first request, in milliseconds. */
const FIRST_ANSWER_MS = 15_000
const ANSWER_MS = 5000

const GREETING = 'hello'

/** How long it takes at most until every buffer on the way to somebody who does not read is full, in milliseconds. */
const FILL_MS = 1000

/** More than a stream that was cut off can have left in buffers behind it, in bytes. */
const MORE_THAN_BUFFERS = 8 * 1024 * 1024

/** One TCP stream, to the upstream or, in reverse, from it; the amount is bytes that arrived. */
export async function runIperf(
  programs: Programs,
  { iperf3, entrance, seconds, reverse }: { iperf3: string; entrance: Entrance; seconds: number; reverse: boolean },
): Promise<Load> {
  const { host, port } = entrance
  const args = ['-c', host, '-p', String(port), '-t', String(seconds), '-J', ...(reverse ? ['-R'] : [])]
  return parseIperf(await programs.run(iperf3, args, { timeoutMs: seconds * 1000 + GRACE_MS }))
}

interface IperfOutput {
  readonly end?: { readonly sum_received?: { readonly bytes: number; readonly seconds: number } }
  readonly error?: string
}

export function parseIperf(json: string): Load {
  // As iperf3 writes it: what the receiving end counted.
  const { end, error } = JSON.parse(json) as IperfOutput
  const { bytes = 0, seconds = 0 } = end?.sum_received ?? {}
  if (!(bytes > 0 && seconds > 0)) throw new Error(`iperf3 got nothing through: ${error ?? 'and did not say why'}`)
  return { amount: bytes, seconds }
}

/**
 * Waits until a connection gets through to the port of the upstream, where nobody listens yet. What was on its way from
 * earlier tries is then through as well; an iperf3 server would take it for its test.
 */
export async function awaitGreeting(entrance: Entrance, upstreamPort: number): Promise<void> {
  const greeter = createServer((socket) =>
    socket
      .on('error', () => {})
      .resume()
      .end(GREETING),
  )
  greeter.listen(upstreamPort, LOOPBACK)
  await once(greeter, 'listening')
  try {
    await retry(() => hear(entrance), { timeoutMs: FIRST_ANSWER_MS })
  } finally {
    greeter.close()
  }
}

async function hear({ host, port }: Entrance): Promise<void> {
  const socket = connect({ host, port, timeout: ANSWER_MS })
  socket.on('timeout', () => socket.destroy())
  let heard = ''
  for await (const chunk of socket) heard += chunk
  if (heard !== GREETING) throw new Error(`through the tunnel came ${JSON.stringify(heard)}`)
}

/**
 * A visitor who asks for much and reads nothing while `work` runs. Then it reads on, since a stream that was cut off
 * would hold up nobody either.
 */
export async function besideStalled<T>(entrance: Entrance, path: string, work: () => Promise<T>): Promise<T> {
  const { host, port, hostHeader = host } = entrance
  const socket = connect({ host, port })
  // Seen when it is read on.
  socket.on('error', () => {})
  try {
    await once(socket, 'connect')
    // Without a listener for data nothing is read but what fits the buffer of the socket.
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostHeader}\r\n\r\n`)
    await new Promise((resolve) => setTimeout(resolve, FILL_MS))
    const result = await work()
    await readOn(socket)
    return result
  } finally {
    socket.destroy()
  }
}

async function readOn(socket: Socket): Promise<void> {
  const timer = setTimeout(() => socket.destroy(), ANSWER_MS)
  let bytes = 0
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length
    if (bytes > MORE_THAN_BUFFERS) break
  }
  clearTimeout(timer)
  if (bytes <= MORE_THAN_BUFFERS) throw new Error(`the stalled stream was cut off after ${bytes} bytes`)
}
