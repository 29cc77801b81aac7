/** Limits a process to a share of a core, through Linux control groups, which the user must be able to create. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stage } from '../stage/stage.ts'

/** The period of the limit, in microseconds: long enough for a process to run at full speed for a while. */
const PERIOD_US = 100_000

/** How long the last process of a group may outlive the program that started it, in milliseconds. */
const GONE_MS = 5000
const LOOK_MS = 20

/** The folder of each version of control groups, and how to write a limit there. */
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

/** Limits a process, with all its threads, to this many percent of one core until the stage is closed. */
export function limitCpu(stage: Stage, pid: number, percent: number): void {
  const version = versions.find(({ root }) => existsSync(join(root, 'cgroup.procs')))
  if (!version) throw new Error('cannot limit the CPU time of workers: this system has no control groups')
  const folder = join(version.root, `postern-bench-${pid}`)
  try {
    mkdirSync(folder)
    stage.onClose(() => removeGroup(folder))
    version.limit(folder, Math.round((PERIOD_US * percent) / 100))
    writeFileSync(join(folder, 'cgroup.procs'), String(pid))
  } catch (cause) {
    throw new Error(`cannot limit the CPU time of workers; run as root: ${String(cause)}`, { cause })
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
