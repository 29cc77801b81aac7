/** Measures the resources that a server uses, and reports leaks after a run. */
import { type Children, descriptorsOf, residentMib } from './children.ts'
import type { World } from './world.ts'

export interface Footprint {
  /** Of the supervisor, the control process and the workers together. */
  readonly processes: number
  readonly descriptors: { readonly supervisor: number; readonly control: number; readonly workers: number }
  readonly residentMib: { readonly supervisor: number; readonly control: number; readonly workers: number }
  readonly unixSockets: number
}

/** How many more descriptors than before are not yet a leak: pools fill up with use. */
const SPARE = { supervisor: 2, control: 10, workers: 40 }

export function footprint(world: Pick<World, 'supervisor' | 'unixSockets'>, { control, workers }: Children): Footprint {
  const { supervisor } = world
  const of = (measure: (pid: number) => number) => ({
    supervisor: Math.round(measure(supervisor)),
    control: Math.round(measure(control)),
    workers: Math.round(workers.reduce((sum, pid) => sum + measure(pid), 0)),
  })
  return {
    processes: workers.length + 2,
    descriptors: of(descriptorsOf),
    residentMib: of(residentMib),
    unixSockets: world.unixSockets().length,
  }
}

/** Describes resources in use that were not in use before. */
export function leftovers({ before, after }: { readonly before: Footprint; readonly after: Footprint }): string[] {
  const faults: string[] = []
  for (const role of ['supervisor', 'control', 'workers'] as const) {
    const [was, is] = [before.descriptors[role], after.descriptors[role]]
    if (is > was + SPARE[role]) faults.push(`descriptors of ${role}: ${was} before, ${is} after`)
  }
  if (after.processes !== before.processes)
    faults.push(`processes: ${before.processes} before, ${after.processes} after`)
  if (after.unixSockets !== before.unixSockets) {
    faults.push(`Unix sockets in the server's folder: ${before.unixSockets} before, ${after.unixSockets} after`)
  }
  return faults
}
