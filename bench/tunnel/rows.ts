/** The rows: each is a kind of load, the contenders that carry it, and the one that they are compared with. */

import { awaitAnswer } from '../entrance.ts'
import type { Load } from '../measure.ts'
import { BULK_BYTES, paths, SMALL_BYTES, startUpstream } from '../nginx.ts'
import { requests, type Unit } from '../result.ts'
import type { Stage } from '../stage/stage.ts'
import { runWrk } from '../wrk.ts'
import type { Contender, Running } from './contenders/contender.ts'
import { httpContenders, tcpContenders } from './contenders/index.ts'
import { openssh } from './contenders/openssh.ts'
import { awaitGreeting, besideStalled, runIperf } from './generators.ts'
import { startIperf } from './iperf.ts'

const KEPT_ALIVE = 64
const OTHERS = 99

const MEGABYTE = 1e6
const GIGABYTE = 1e9

const bytes: Unit = { speed: 'MB/s', speedPer: MEGABYTE, cpu: 's/GB', cpuPer: GIGABYTE }

/** What a row uses while it runs. */
export interface Scene {
  /** For the upstream and the generators. */
  readonly stage: Stage
  readonly upstreamPort: number
  readonly path: (program: string) => string
}

/** One load that every contender of a row gets. */
export interface Variant {
  /** Added to the name of the contender; `''` when there is only one variant. */
  readonly name: string
  readonly run: (scene: Scene, running: Running, seconds: number) => Promise<Load>
}

export interface Row {
  readonly name: string
  readonly title: string
  readonly unit: Unit
  /** The programs of the generators and the upstream. */
  readonly needs: readonly string[]
  readonly contenders: readonly Contender[]
  readonly startUpstream: (scene: Scene) => Promise<void>
  /** Waits until the upstream can be reached through the tunnel. */
  readonly check: (scene: Scene, running: Running) => Promise<void>
  readonly variants: readonly Variant[]
  /** Results are compared with this contender, or with the contender's own first variant. */
  readonly against: Contender | 'itself'
  /** What the ratio of Postern must reach. */
  readonly bar: number
}

const iperf = (name: string, title: string, reverse: boolean): Row => ({
  name,
  title,
  unit: bytes,
  needs: ['iperf3'],
  contenders: tcpContenders,
  // Every sample starts its own upstream.
  startUpstream: async () => {},
  check: ({ upstreamPort }, running) => awaitGreeting(running, upstreamPort),
  variants: [
    {
      name: '',
      async run({ stage, upstreamPort, path }, entrance, seconds) {
        const iperf3 = path('iperf3')
        const server = await startIperf(stage, { iperf3, port: upstreamPort })
        try {
          return await runIperf(stage.programs, { iperf3, entrance, seconds, reverse })
        } finally {
          await server.end()
        }
      },
    },
  ],
  against: openssh,
  bar: 1,
})

const nginx = {
  needs: ['wrk', 'nginx'],
  startUpstream: ({ stage, upstreamPort, path }: Scene) =>
    startUpstream(stage, { nginx: path('nginx'), port: upstreamPort }),
  check: (_: Scene, running: Running) => awaitAnswer(running, paths.small, SMALL_BYTES),
}

const small: Variant = {
  name: '',
  run: ({ stage, path }, entrance, seconds) =>
    runWrk(stage.programs, { wrk: path('wrk'), entrance, path: paths.small, connections: KEPT_ALIVE, seconds }),
}

const bulk: Variant['run'] = async ({ stage, path }, entrance, seconds) => {
  const options = { wrk: path('wrk'), entrance, path: paths.bulk, connections: OTHERS, seconds }
  const load = await runWrk(stage.programs, options)
  return { ...load, amount: load.amount * BULK_BYTES }
}

export const rows: readonly Row[] = [
  iperf('up', 'one TCP stream, visitor to upstream', false),
  iperf('down', 'one TCP stream, upstream to visitor', true),
  {
    ...nginx,
    name: 'tcp-requests',
    title: `requests of ${SMALL_BYTES} bytes on ${KEPT_ALIVE} kept-alive connections, TCP tunnel`,
    unit: requests,
    contenders: tcpContenders,
    variants: [small],
    against: openssh,
    bar: 1,
  },
  {
    ...nginx,
    name: 'http-requests',
    title: `requests of ${SMALL_BYTES} bytes on ${KEPT_ALIVE} kept-alive connections, HTTP endpoint`,
    unit: requests,
    contenders: httpContenders,
    variants: [small],
    against: openssh,
    bar: 0.7,
  },
  {
    ...nginx,
    name: 'stalled',
    title: `${OTHERS} streams of ${BULK_BYTES / 1024} KiB answers, alone and beside one that is not read, TCP tunnel`,
    unit: bytes,
    contenders: tcpContenders,
    variants: [
      { name: 'alone', run: bulk },
      {
        name: 'beside a stalled one',
        run: (scene, running, seconds) => besideStalled(running, paths.endless, () => bulk(scene, running, seconds)),
      },
    ],
    against: 'itself',
    bar: 0.9,
  },
]
