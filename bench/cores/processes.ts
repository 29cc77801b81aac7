/** The processes of a running server, by role. */
import { argumentsOf, treeOf } from '../stage/proc.ts'
import type { Program } from '../stage/programs.ts'

export interface ServerProcess {
  readonly pid: number
  readonly role: 'server' | 'supervisor' | 'control' | 'worker'
}

/** One process with the role `server`, or a supervisor with its children. */
export function processesOf({ pid }: Pick<Program, 'pid'>): ServerProcess[] {
  const children = treeOf([pid]).filter((each) => each.pid !== pid)
  if (children.length === 0) return [{ pid, role: 'server' }]
  return [
    { pid, role: 'supervisor' },
    ...children.map((each): ServerProcess => {
      const isWorker = argumentsOf(each.pid).includes('run-worker')
      return { pid: each.pid, role: isWorker ? 'worker' : 'control' }
    }),
  ]
}

export function workersOf(program: Pick<Program, 'pid'>): number[] {
  return processesOf(program).flatMap(({ pid, role }) => (role === 'worker' ? [pid] : []))
}
