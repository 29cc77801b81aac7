/** The checks of the sources: types, lint and format. A check that passes prints a line, and one that fails all it says. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { text } from 'node:stream/consumers'

export interface CheckSettings {
  readonly signal: AbortSignal
  readonly print: (text: string) => void
}

/** Each gets one core, since the other work beside it needs some too; on one core they also need less time in all. */
const ONE_CORE = { GOMAXPROCS: '1', RAYON_NUM_THREADS: '1' }

/** The commands, the slowest first. Types depend on all files; the others look only at these files, if there are any. */
export function checkCommands(files: readonly string[] = []): string[] {
  const left = files.filter((file) => existsSync(file))
  const types = ['tsc', 'tsc --project src/page']
  if (files.length === 0) return [...types, 'oxlint --type-aware --deny-warnings', 'biome check --error-on-warnings .']
  const linted = left.filter((file) => /\.[jt]sx?$/.test(file))
  const lint = linted.length === 0 ? [] : [`oxlint --type-aware --deny-warnings ${linted.join(' ')}`]
  const format = `biome check --error-on-warnings --no-errors-on-unmatched ${left.join(' ')}`
  return [...types, ...lint, ...(left.length === 0 ? [] : [format])]
}

/** True if it passes. */
export async function runCheck(command: string, { signal, print }: CheckSettings): Promise<boolean> {
  const started = performance.now()
  // In a process group of its own, since the tools start processes of their own.
  const child = spawn(`${command} 2>&1`, {
    shell: true,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...ONE_CORE, PATH: `${resolve('node_modules/.bin')}${delimiter}${process.env.PATH}` },
  })
  const stop = () => child.pid && process.kill(-child.pid, 'SIGKILL')
  signal.addEventListener('abort', stop)
  const [[code], output] = await Promise.all([once(child, 'exit'), text(child.stdout)])
  signal.removeEventListener('abort', stop)
  if (signal.aborted) return false
  const took = `${((performance.now() - started) / 1000).toFixed(0)} s`
  print(code === 0 ? `# ok: ${command} (${took})\n` : `${output}✖ failed: ${command} (${took})\n`)
  return code === 0
}
