/**
 * Measures the memory of a server's processes with nothing stored, with idle agents, and with many edges. In the total,
 * a page that several processes share counts once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { SeededStore } from '../edge/seed.ts'
import { type Place, startPosternServer } from '../postern.ts'
import { memoryOf, type ProcessMemory } from '../stage/proc.ts'
import type { Stages } from '../stage/stage.ts'
import { bringAgents } from '../tunnel/idle.ts'
import type { Packaged } from './packaged.ts'
import { processesOf, type ServerProcess } from './processes.ts'

/** How long the server is left alone before it is measured, in milliseconds. */
const REST_MS = 20_000

export interface MemoryOfProcess extends ServerProcess, ProcessMemory {}

export interface MemoryOptions {
  readonly stages: Stages
  readonly packaged: Packaged
  readonly nodeOptions: string
  readonly workers: number
  readonly store?: SeededStore
  readonly agents?: number
}

export async function measureMemory(options: MemoryOptions): Promise<MemoryOfProcess[]> {
  const { stages, packaged, nodeOptions, workers, store, agents = 0 } = options
  const stage = stages.open('memory')
  const crowd = stages.open('memory-agents')
  try {
    const place: Place = { stage, nodeOptions, ...packaged }
    const server = await startPosternServer(place, { workers, ...(store && { dataDir: store.dataDir }) })
    if (agents > 0) await bringAgents(crowd, server, agents)
    await pause(REST_MS)
    if (agents > 0 && crowd.programs.pids.length < 1) throw new Error('agents were lost while they should be idle')
    return processesOf(server.program).map((each) => ({ ...each, ...memoryOf(each.pid) }))
  } finally {
    await crowd.close()
    await stage.close()
  }
}
