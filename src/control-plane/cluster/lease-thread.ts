/** The thread that keeps the lease of this node running (D56), over a connection of its own, while its process is busy. */
import { parentPort, workerData } from 'node:worker_threads'
import { keepRow } from '../store/postgres-lease.ts'

/** The start options of the thread. */
export interface LeaseThreadData {
  readonly url: string
  readonly nodeId: string
  readonly leaseMs: number
  readonly everyMs: number
  /** How long the process may be silent before it counts as hung, in milliseconds. */
  readonly patienceMs: number
}

const { url, nodeId, leaseMs, everyMs, patienceMs } = workerData as LeaseThreadData // sent by `LeaseKeeper`
const row = keepRow(url, { nodeId, leaseMs })
let heardAt = performance.now()
let isWriting = false

parentPort?.on('message', () => {
  heardAt = performance.now()
})
setInterval(() => void keep(), everyMs)

async function keep(): Promise<void> {
  if (isWriting || performance.now() - heardAt > patienceMs) return
  isWriting = true
  // The process itself reports a database that is away.
  await row.prolong().catch(() => {})
  isWriting = false
}
