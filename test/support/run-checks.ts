/** Runs the steps of `npm run check` in parallel, and prints the output of failed ones only. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { text } from 'node:stream/consumers'

/** True when every step passed. */
export async function runChecks(signal: AbortSignal): Promise<boolean> {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: { check: string } }
  const steps = scripts.check.split('&&').map((step) => step.trim())
  const passed = await Promise.all(steps.map((step) => runStep(step, signal)))
  return passed.every(Boolean)
}

async function runStep(step: string, signal: AbortSignal): Promise<boolean> {
  const started = performance.now()
  // In a separate process group, since the tools start processes of their own.
  const child = spawn(`${step} 2>&1`, {
    shell: true,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PATH: `${resolve('node_modules/.bin')}${delimiter}${process.env.PATH}` },
  })
  const stop = () => child.pid && process.kill(-child.pid, 'SIGKILL')
  signal.addEventListener('abort', stop)
  const [[code], output] = await Promise.all([once(child, 'exit'), text(child.stdout)])
  signal.removeEventListener('abort', stop)
  if (signal.aborted) return false

  const took = `${((performance.now() - started) / 1000).toFixed(1)} s`
  console.log(code === 0 ? `# ok: ${step} (${took})` : `# failed: ${step} (${took})\n${output}`)
  return code === 0
}
