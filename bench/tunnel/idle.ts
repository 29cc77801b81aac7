/** Measures what idle agents cost the server: memory before and after they connect, and CPU while they stay. */
import { fileURLToPath } from 'node:url'
import { AUTHTOKEN, type PosternServer, startPosternServer } from '../postern.ts'
import { cpuSeconds, residentBytes } from '../stage/proc.ts'
import type { Stage, Stages } from '../stage/stage.ts'
import type { Ground } from './contenders/contender.ts'

/** The highest peak memory allowed for the server, in bytes. */
const MEMORY_BAR = 1024 ** 3

/** How long the server is left alone before it is measured, in milliseconds: two heartbeats of every agent. */
const REST_MS = 20_000

/** How long one agent may take to come online, in milliseconds; the first of them takes longer. */
const CONNECT_MS = 40
const FIRST_MS = 30_000

const program = fileURLToPath(new URL('./idle-agents.ts', import.meta.url))

export interface IdleResult {
  readonly agents: number
  readonly bytesPerAgent: number
  /** Resident memory of the server in bytes: without agents, with all of them, and at its peak. */
  readonly before: number
  readonly after: number
  readonly peak: number
  /** Share of one core that the server uses while they are connected. */
  readonly cores: number
  readonly isWithinBar: boolean
}

export interface IdleOptions {
  readonly stages: Stages
  readonly agents: number
  readonly ground: Omit<Ground, 'stage'>
}

export async function measureIdle({ stages, agents, ground }: IdleOptions): Promise<IdleResult> {
  const stage = stages.open('idle')
  const crowd = stages.open('idle-agents')
  try {
    const server = await startPosternServer({ ...ground, stage })
    const pids = [server.program.pid]
    // The first agent makes the server load code for agents, which must not count as their memory.
    await bringAgents(crowd, server, 1)
    await rest()
    const before = residentBytes(pids).now
    await bringAgents(crowd, server, agents - 1)
    const cpuBefore = cpuSeconds(pids)
    await rest()
    const cores = (cpuSeconds(pids) - cpuBefore) / (REST_MS / 1000)
    const { now: after, peak } = residentBytes(pids)
    if (crowd.programs.pids.length < 2) throw new Error('agents were lost while they should have been idle')
    const bytesPerAgent = (after - before) / (agents - 1)
    return { agents, bytesPerAgent, before, after, peak, cores, isWithinBar: peak <= MEMORY_BAR }
  } finally {
    await crowd.close()
    await stage.close()
  }
}

/** Starts a process with this many idle agents; resolves when all are online. */
export async function bringAgents(crowd: Stage, { agentAddress }: PosternServer, count: number): Promise<void> {
  const [host = '', port = ''] = agentAddress.split(':')
  const args = [program, String(count), host, port]
  const started = crowd.programs.start(process.execPath, args, { env: { BENCH_AUTHTOKEN: AUTHTOKEN } })
  await started.says(/^ready$/m, { timeoutMs: FIRST_MS + count * CONNECT_MS })
}

function rest(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, REST_MS))
}
