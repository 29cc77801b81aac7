/** How long a server takes to start with stored edges: until an agent can connect, and until everything is served. */
import { median } from '../measure.ts'
import { greetAsAgent, isReady, launchPosternServer } from '../postern.ts'
import { retry } from '../stage/ports.ts'
import { cpuSeconds, residentBytes } from '../stage/proc.ts'
import { grouped } from '../table.ts'
import type { Scene } from './scene.ts'
import type { SeededStore } from './seed.ts'

/** D50: how soon agents must be let in, in milliseconds. */
const AGENTS_MS = 2000

/** The longest wait for a start, in milliseconds. */
const TOO_LONG_MS = 120_000

export interface Start {
  /** Milliseconds until an agent's TLS handshake was done. */
  readonly agentsMs: number
  /** Milliseconds until `/readyz` said that it is ready. */
  readonly readyMs: number
  readonly cpuSeconds: number
  /** Resident memory when ready, in bytes. */
  readonly memory: number
}

export interface StartResult extends Start {
  readonly name: string
  readonly isWithinBar: boolean
  readonly samples: readonly Start[]
}

export async function measureStart(
  scene: Scene,
  { rounds, progress }: { rounds: number; progress: (text: string) => void },
): Promise<StartResult[]> {
  const { few, many } = scene.options
  const sides = [
    { name: `${grouped(few)} edges`, store: await scene.fewEdges(), samples: [] as Start[] },
    { name: `${grouped(many)} edges`, store: await scene.manyEdges(), samples: [] as Start[] },
  ]
  // The first start does not count: it makes the authority and the first user, and fills the disk cache.
  for (let round = -1; round < rounds; round++) {
    for (const { name, store, samples } of round % 2 === 0 ? sides : sides.toReversed()) {
      const start = await startOnce(scene, store)
      if (round < 0) continue
      samples.push(start)
      progress(`start: ${name}: agents after ${start.agentsMs.toFixed(0)} ms, ready ${start.readyMs.toFixed(0)} ms`)
    }
  }
  return sides.map(({ name, samples }) => {
    const of = (figure: keyof Start): number => median(samples.map((sample) => sample[figure]))
    const agentsMs = of('agentsMs')
    return {
      name,
      agentsMs,
      readyMs: of('readyMs'),
      cpuSeconds: of('cpuSeconds'),
      memory: of('memory'),
      isWithinBar: agentsMs <= AGENTS_MS,
      samples,
    }
  })
}

async function startOnce(scene: Scene, { dataDir }: SeededStore): Promise<Start> {
  const stage = scene.open('start')
  try {
    const server = await launchPosternServer({ stage, nodeOptions: scene.options.nodeOptions }, { dataDir })
    const begun = performance.now()
    const since = async (work: () => Promise<unknown>): Promise<number> => {
      await retry(work, { timeoutMs: TOO_LONG_MS, isLost: () => server.program.hasEnded() })
      return performance.now() - begun
    }
    const [agentsMs, readyMs] = await Promise.all([
      since(() => greetAsAgent(server, TOO_LONG_MS)),
      since(() => isReady(server, TOO_LONG_MS)),
    ])
    const pids = [server.program.pid]
    return { agentsMs, readyMs, cpuSeconds: cpuSeconds(pids), memory: residentBytes(pids).now }
  } finally {
    await stage.close()
  }
}
