/** Faults of nodes, of their database and of the connections between them; each is healed in the end. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../fuzz/hostile-documents.ts'
import type { FaultKind, FaultSpan } from './nodes-verdict.ts'
import type { NodesWorld, RestartedNode } from './nodes-world.ts'

interface FaultForm {
  /** How often it happens, relative to others. */
  readonly weight: number
  /** Whether it affects one node only. */
  readonly isOfNode: boolean
  /** Whether a node could not start during it. */
  readonly isOfDatabase?: boolean
  run(at: { world: NodesWorld; node: RestartedNode; lastsMs: number; struck: () => void }): Promise<void>
}

export const faultForms: Readonly<Record<FaultKind, FaultForm>> = {
  kill: {
    weight: 4,
    isOfNode: true,
    async run({ node, lastsMs, struck }) {
      node.close()
      for (const pid of node.processes()) signal(pid, 'SIGKILL')
      await node.running.server.ended
      struck()
      await pause(lastsMs)
      await node.start()
    },
  },
  stop: {
    weight: 3,
    isOfNode: true,
    async run({ node, lastsMs, struck }) {
      // A balancer notices that the node is not ready before it stops.
      node.close()
      struck()
      const { code } = await node.running.server.stop()
      if (code !== 0) throw new Error(`${node.name} ended with ${code} when it was asked to stop`)
      await pause(lastsMs)
      await node.start()
    },
  },
  freeze: {
    weight: 4,
    isOfNode: true,
    async run({ node, lastsMs, struck }) {
      const pids = node.processes()
      for (const pid of pids) signal(pid, 'SIGSTOP')
      struck()
      await pause(lastsMs)
      for (const pid of pids) signal(pid, 'SIGCONT')
    },
  },
  cut: {
    weight: 3,
    isOfNode: true,
    async run({ node, lastsMs, struck }) {
      await node.fromNodes.shut()
      struck()
      await pause(lastsMs)
      await node.fromNodes.open()
    },
  },
  silence: {
    weight: 3,
    isOfNode: true,
    async run({ node, lastsMs, struck }) {
      node.fromNodes.hush()
      struck()
      await pause(lastsMs)
      node.fromNodes.speak()
    },
  },
  'database cut': {
    weight: 2,
    isOfNode: true,
    isOfDatabase: true,
    async run({ node, lastsMs, struck }) {
      await node.toDatabase.shut()
      struck()
      await pause(lastsMs)
      await node.toDatabase.open()
    },
  },
  'database silent': {
    weight: 2,
    isOfNode: true,
    isOfDatabase: true,
    async run({ node, lastsMs, struck }) {
      node.toDatabase.hush()
      struck()
      await pause(lastsMs)
      node.toDatabase.speak()
    },
  },
  'database restarted': {
    weight: 2,
    isOfNode: false,
    isOfDatabase: true,
    async run({ world, lastsMs, struck }) {
      struck()
      await world.postgres.restart(lastsMs % 2 === 0 ? 'fast' : 'immediate')
    },
  },
}

/** How long a fault lasts, in milliseconds. */
const LASTS_MS = { least: 1000, most: 15_000 }

/** One in this many faults begins during another one. */
const DOUBLE_EVERY = 4

/** The longest time by which the second fault follows the first, in milliseconds. */
const DOUBLE_AFTER_MS = 2000

export interface PlannedFault {
  readonly kind: FaultKind
  /** Index of the node, from 0. */
  readonly node: number
  readonly lastsMs: number
  readonly afterMs: number
}

/** One fault, or two at once. */
export function planFaults(random: Random, nodes: number): readonly PlannedFault[] {
  const first = { ...planOne(random, nodes), afterMs: 0 }
  if (random(DOUBLE_EVERY) > 0) return [first]
  const second = { ...planOne(random, nodes), afterMs: random(DOUBLE_AFTER_MS) }
  return isPossible(first, second) ? [first, second] : [first]
}

function planOne(random: Random, nodes: number): Omit<PlannedFault, 'afterMs'> {
  const kinds = (Object.keys(faultForms) as FaultKind[]).flatMap(
    (
      kind, // its keys are its type
    ) => Array.from({ length: faultForms[kind].weight }, () => kind),
  )
  const kind = kinds[random(kinds.length)] ?? 'kill'
  return { kind, node: random(nodes), lastsMs: LASTS_MS.least + random(LASTS_MS.most - LASTS_MS.least) }
}

/** A node can have only one fault at a time, and cannot start without the database. */
function isPossible(first: PlannedFault, second: PlannedFault): boolean {
  const [a, b] = [faultForms[first.kind], faultForms[second.kind]]
  const isStart = (kind: FaultKind): boolean => kind === 'kill' || kind === 'stop'
  if (a.isOfNode && b.isOfNode && first.node === second.node) return false
  if (a.isOfDatabase && b.isOfDatabase) return false
  return !(
    (isStart(first.kind) && second.kind === 'database restarted') ||
    (isStart(second.kind) && first.kind === 'database restarted')
  )
}

/** Causes a fault; resolves when it is healed. */
export async function strike(world: NodesWorld, planned: PlannedFault): Promise<FaultSpan> {
  const { kind, lastsMs, afterMs } = planned
  const node = world.nodes[planned.node]
  if (!node) throw new Error(`there is no node ${planned.node}`)
  await pause(afterMs)
  const from = Date.now()
  let struck = from
  await faultForms[kind].run({ world, node, lastsMs, struck: () => (struck = Date.now()) })
  return { kind, node: faultForms[kind].isOfNode ? node.name : undefined, from, struck, until: Date.now() }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has already ended.
  }
}
