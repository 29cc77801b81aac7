/** On what it was measured: a figure without its machine means nothing. */
import { spawnSync } from 'node:child_process'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import manifest from '../package.json' with { type: 'json' }

const VERSION_MS = 5000

/** More of the cores than this in use is too much. */
const BUSY_SHARE = 0.25

export interface Machine {
  readonly cores: number
  readonly model: string
  readonly memoryGib: number
  readonly kernel: string
  /** Processes that wanted a core in the last minute, before anything was started. */
  readonly load: number
  readonly versions: Readonly<Record<string, string>>
}

export function describeMachine(commands: Readonly<Record<string, readonly string[]>>): Machine {
  const versions = Object.entries(commands).map(([name, [command = '', ...args]]) => [name, firstLine(command, args)])
  return {
    cores: availableParallelism(),
    model: cpus()[0]?.model.trim() ?? '',
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    kernel: `Linux ${release()}`,
    load: loadavg()[0] ?? 0,
    versions: { Postern: manifest.version, Node: process.versions.node, ...Object.fromEntries(versions) },
  }
}

export function machineLines({ cores, model, memoryGib, kernel, versions }: Machine): string[] {
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return [`${cores} cores (${model}), ${memoryGib} GiB, ${kernel}`, programs.join('; ')]
}

/** Whether so much was going on before anything began that the figures are not to be trusted. */
export function isBusy({ load, cores }: Machine): boolean {
  return load > cores * BUSY_SHARE
}

/** Where programs print their version, and how they then end, differs; the number in the first line does not. */
function firstLine(command: string, args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: VERSION_MS })
  const [line = ''] = `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n')
  return /\d[\w.]*\.[\w.-]+/.exec(line)?.[0] ?? line
}
