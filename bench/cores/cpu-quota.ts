/** Limits what a process may use of a core, through control groups of Linux; only a user who may make some can. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stage } from '../stage/stage.ts'

/** In microseconds: long enough for a process to run at full speed for a while, as it does without a limit. */
const PERIOD_US = 100_000

/** How long the last process of a group may take to be gone after the program that had started it, in milliseconds. */
const GONE_MS = 5000
const LOOK_MS = 20

/** Where each version of control groups is, and how a limit is written there. */
const versions = [
  {
    root: '/sys/fs/cgroup/cpu',
    limit: (folder: string, quotaUs: number) => {
      writeFileSync(join(folder, 'cpu.cfs_period_us'), String(PERIOD_US))
      writeFileSync(join(folder, 'cpu.cfs_quota_us'), String(quotaUs))
    },
  },
  {
    root: '/sys/fs/cgroup',
    limit: (folder: string, quotaUs: number) => writeFileSync(join(folder, 'cpu.max'), `${quotaUs} ${PERIOD_US}`),
  },
]

/** Until the stage is closed, the process may use this many percent of one core, with all its threads. */
export function limitCpu(stage: Stage, pid: number, percent: number): void {
  const version = versions.find(({ root }) => existsSync(join(root, 'cgroup.procs')))
  if (!version) throw new Error('there are no control groups to limit the CPU time of workers with')
  const folder = join(version.root, `postern-bench-${pid}`)
  try {
    mkdirSync(folder)
    stage.onClose(() => removeGroup(folder))
    version.limit(folder, Math.round((PERIOD_US * percent) / 100))
    writeFileSync(join(folder, 'cgroup.procs'), String(pid))
  } catch (cause) {
    throw new Error(`the CPU time of workers cannot be limited here, as root can: ${String(cause)}`, { cause })
  }
}

/** Only an empty group can be removed. Waits without the event loop, since a bench that is about to exit has none. */
function removeGroup(folder: string): void {
  const clock = new Int32Array(new SharedArrayBuffer(4))
  for (const deadline = performance.now() + GONE_MS; ; Atomics.wait(clock, 0, 0, LOOK_MS)) {
    try {
      rmdirSync(folder)
      return
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
  }
}
