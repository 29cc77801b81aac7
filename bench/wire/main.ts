/**
 * What does the mux cost? Compares one stream, many streams and short streams over a loopback connection, plain and TLS,
 * with the same bytes over the bare connection. Both ends are in this process, so its CPU time is that of a server and
 * an agent together.
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Mux } from '../../src/link/wire/mux.ts'
import { peerTraits, serverTraits } from '../../src/link/wire/mux-peer.ts'
import { streamTypes, typeHead } from '../../src/link/wire/stream-types.ts'
import { socketTransport } from '../../src/link/wire/transport.ts'
import { WireError } from '../../src/link/wire/wire-error.ts'
import type { WireStream } from '../../src/link/wire/wire-stream.ts'
import { connectPair, type Pair } from './pair.ts'

const CHUNK = Buffer.alloc(64 * 1024)
const MEGABYTE = 1e6
const GIGABYTE = 1e9

interface Sample {
  readonly perSecond: number
  readonly cpu: number
}

const classes: Record<string, { unit: string; cpuUnit: string; run: (pair: Pair, size: Size) => Promise<Sample> }> = {
  'bare connection': { unit: 'MB/s', cpuUnit: 's/GB', run: (pair, { bytes }) => bytesOver(pair, bytes, sendBare) },
  'one stream': { unit: 'MB/s', cpuUnit: 's/GB', run: (pair, { bytes }) => bytesOver(pair, bytes, sendStreams(1)) },
  '100 streams': { unit: 'MB/s', cpuUnit: 's/GB', run: (pair, { bytes }) => bytesOver(pair, bytes, sendStreams(100)) },
  'short streams': { unit: 'streams/s', cpuUnit: 's/100k', run: (pair, { streams }) => shortStreams(pair, streams) },
}

interface Size {
  readonly bytes: number
  readonly streams: number
}

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      megabytes: { type: 'string', default: '1000' },
      streams: { type: 'string', default: '50000' },
      rounds: { type: 'string', default: '5' },
    },
  })
  const size = { bytes: Number(values.megabytes) * MEGABYTE, streams: Number(values.streams) }
  console.log('| connection | what | speed | CPU, both ends |\n|---|---|---|---|')
  for (const secure of [false, true]) {
    const samples = new Map<string, Sample[]>()
    for (let round = 0; round < Number(values.rounds); round++) {
      // In turns, so that a slow moment of the machine does not hit only one of them.
      for (const [name, { run }] of Object.entries(classes)) {
        const pair = await connectPair({ secure })
        samples.set(name, [...(samples.get(name) ?? []), await run(pair, size)])
        pair.close()
      }
    }
    for (const [name, { unit, cpuUnit }] of Object.entries(classes)) {
      const all = samples.get(name) ?? []
      const [speed, cpu] = [median(all.map((s) => s.perSecond)), median(all.map((s) => s.cpu))]
      console.log(
        `| ${secure ? 'TLS' : 'plain'} | ${name} | ${speed.toFixed(0)} ${unit} | ${cpu.toFixed(2)} ${cpuUnit} |`,
      )
    }
  }
}

async function measured(work: () => Promise<void>): Promise<{ seconds: number; cpu: number }> {
  const [start, before] = [performance.now(), process.cpuUsage()]
  await work()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (performance.now() - start) / 1000, cpu: (user + system) / 1e6 }
}

async function bytesOver(
  pair: Pair,
  bytes: number,
  send: (pair: Pair, bytes: number) => Promise<void>,
): Promise<Sample> {
  const { seconds, cpu } = await measured(() => send(pair, bytes))
  return { perSecond: bytes / MEGABYTE / seconds, cpu: (cpu / bytes) * GIGABYTE }
}

async function sendBare({ near, far }: Pair, bytes: number): Promise<void> {
  far.resume()
  for (let sent = 0; sent < bytes; sent += CHUNK.length) if (!near.write(CHUNK)) await once(near, 'drain')
  near.end()
  await once(far, 'end')
}

function sessions({ near, far }: Pair, onStream: (stream: WireStream) => void): { server: Mux; agent: Mux } {
  const make = (role: 'server' | 'agent', socket: Pair['near']): Mux =>
    new Mux({ role, transport: socketTransport(socket), onStream, onClosed() {} })
  const both = { server: make('server', near), agent: make('agent', far) }
  both.server.adapt(peerTraits('ngrok-go/1'))
  both.agent.adapt(serverTraits())
  return both
}

function sendStreams(count: number) {
  return async (pair: Pair, bytes: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let open = count
    const { server } = sessions(pair, (stream) => {
      stream.attach({ data() {}, end: () => void (--open === 0 && resolve()), drain() {}, closed() {} })
    })
    for (let i = 0; i < count; i++) write(opened(server), bytes / count)
    await promise
  }
}

function write(stream: WireStream, bytes: number): void {
  let left = bytes
  const more = (): void => {
    let hasRoom = true
    while (left > 0 && hasRoom) {
      left -= CHUNK.length
      hasRoom = stream.write(CHUNK)
    }
    if (left <= 0) stream.end()
  }
  stream.attach({ data() {}, end() {}, drain: more, closed() {} })
  more()
}

/** Opens streams, 100 at a time; each sends 100 bytes, gets 1,000 bytes back, and closes both ends. */
async function shortStreams(pair: Pair, streams: number): Promise<Sample> {
  const [ask, answer] = [Buffer.concat([typeHead(streamTypes.proxy), Buffer.alloc(100)]), Buffer.alloc(1000)]
  const { promise, resolve } = Promise.withResolvers<void>()
  const { server } = sessions(pair, (stream) =>
    stream.attach({ data() {}, end: () => stream.end(answer), drain() {}, closed() {} }),
  )
  let [started, done] = [0, 0]
  const next = (): void => {
    if (started++ >= streams) return
    const stream = opened(server, ask)
    const closed = (): void => {
      if (++done === streams) resolve()
      else next()
    }
    stream.attach({ data() {}, end() {}, drain() {}, closed })
    stream.end()
  }
  const { seconds, cpu } = await measured(async () => {
    for (let i = 0; i < 100; i++) next()
    await promise
  })
  return { perSecond: streams / seconds, cpu: (cpu / streams) * 100_000 }
}

function opened(mux: Mux, first = typeHead(streamTypes.proxy)): WireStream {
  const stream = mux.open(first)
  if (stream instanceof WireError) throw stream
  return stream
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
