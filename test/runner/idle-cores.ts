/** How many cores of the machine have nothing to do. */
import { availableParallelism, type CpuInfo, cpus } from 'node:os'

/** Returns a function for the mean since the last call, of the cores that this process may use. */
export function watchIdleCores(read: () => CpuInfo[] = cpus, own = availableParallelism()): () => number {
  let before = sum(read())
  return () => {
    const now = sum(read())
    const [busy, all] = [now.busy - before.busy, now.all - before.all]
    before = now
    // Others may use the cores that are not ours, or ours: with more cores than we may use, ours count as used first.
    return all > 0 ? own - (busy / all) * now.cores : 0
  }
}

function sum(infos: readonly CpuInfo[]) {
  const all = infos.flatMap(({ times }) => Object.values(times)).reduce((a, b) => a + b, 0)
  const idle = infos.reduce((a, { times }) => a + times.idle, 0)
  return { busy: all - idle, all, cores: infos.length }
}
