/** How many workers a server has by default: one for each core, as far as memory allows. */
import { availableParallelism, totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'

export const MAX_WORKERS = 64

/** What the supervisor and the control process need, and what a worker needs, with some traffic, in bytes. */
const BASE_BYTES = 256 * 1024 ** 2
const WORKER_BYTES = 192 * 1024 ** 2

interface Machine {
  readonly cores: number
  /** How much this process and its children may use together, in bytes. */
  readonly memory: number
}

/** 0, which means one process for everything, if there is too little memory for several. */
export function autoWorkers({ cores, memory }: Machine = thisMachine()): number {
  const affordable = Math.floor((memory - BASE_BYTES) / WORKER_BYTES)
  return Math.max(0, Math.min(cores, affordable, MAX_WORKERS))
}

function thisMachine(): Machine {
  // 0 or an absurdly large number if nothing constrains it.
  const constrained = constrainedMemory()
  const total = totalmem()
  return { cores: availableParallelism(), memory: constrained > 0 && constrained < total ? constrained : total }
}
