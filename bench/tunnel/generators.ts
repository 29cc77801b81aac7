/** Load generators other than wrk: iperf3, and a visitor that does not read. */
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

/** How long until all buffers on the way to a visitor that does not read are full, in milliseconds, at most. */
const FILL_MS = 1000

/** More bytes than a stream that was cut off can have left in buffers. */
const MORE_THAN_BUFFERS = 8 * 1024 * 1024

/** One TCP stream, to the upstream or, in reverse, from it; the amount is in bytes that arrived. */
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
  // The form in which iperf3 prints what the receiving end counted.
  const { end, error } = JSON.parse(json) as IperfOutput
  const { bytes = 0, seconds = 0 } = end?.sum_received ?? {}
  if (!(bytes > 0 && seconds > 0)) throw new Error(`iperf3 got nothing through: ${error ?? 'it gave no reason'}`)
  return { amount: bytes, seconds }
}

/**
 * Waits until a connection gets through to the upstream's port, where no iperf3 server listens yet. Connections of
 * earlier tries have then arrived as well; an iperf3 server would take one of them for its test.
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
  if (heard !== GREETING) throw new Error(`the tunnel delivered ${JSON.stringify(heard)} instead of the greeting`)
}

/**
 * Runs `work` beside a visitor that requests a large answer and does not read it. Afterwards the visitor continues, to
 * show that its stream was stalled and not cut off.
 */
export async function besideStalled<T>(entrance: Entrance, path: string, work: () => Promise<T>): Promise<T> {
  const { host, port, hostHeader = host } = entrance
  const socket = connect({ host, port })
  // Noticed below, when the stream is read on.
  socket.on('error', () => {})
  try {
    await once(socket, 'connect')
    // Without a `data` listener the socket reads only what fits its buffer.
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
