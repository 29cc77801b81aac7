/** Describes the machine of a run: a figure without its machine means nothing. */
import { spawnSync } from 'node:child_process'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import manifest from '../package.json' with { type: 'json' }

const VERSION_MS = 5000

/** With a larger share of the cores in use, the machine is too busy. */
const BUSY_SHARE = 0.25

export interface Machine {
  readonly cores: number
  readonly model: string
  readonly memoryGib: number
  readonly kernel: string
  /** The load average of the last minute, before anything was started. */
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

/** Whether the machine was too busy before the run for its figures to be trusted. */
export function isBusy({ load, cores }: Machine): boolean {
  return load > cores * BUSY_SHARE
}

/** The version number in the first line of output, on stdout or stderr, whatever the exit status. */
function firstLine(command: string, args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: VERSION_MS })
  const [line = ''] = `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n')
  return /\d[\w.]*\.[\w.-]+/.exec(line)?.[0] ?? line
}
