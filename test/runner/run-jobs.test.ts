/** Jobs start in order: one for each core, and more while cores are idle. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Crew, runJobs } from './run-jobs.ts'

/** Runs eight jobs that end when this many have begun, or when no more begin; returns how many ran at once. */
async function mostAtOnce(crew: Partial<Crew>): Promise<number> {
  let [running, most] = [0, 0]
  const started: number[] = []
  const jobs = Array.from({ length: 8 }, (_, index) => async () => {
    started.push(index)
    most = Math.max(most, ++running)
    for (let looks = 0; looks < 20 && running < 8; looks++) await new Promise((resolve) => setTimeout(resolve, 1))
    running--
  })
  const whole: Crew = { least: 2, most: 5, idleCores: () => 0, lookMs: 1, ...crew }
  await runJobs(jobs, whole, new AbortController().signal)
  assert.deepEqual(started, [0, 1, 2, 3, 4, 5, 6, 7])
  return most
}

test('no more than one for each core run while the cores are busy', async () => {
  assert.equal(await mostAtOnce({ idleCores: () => 0.1 }), 2)
})

test('more run while cores are idle, up to a limit', async () => {
  assert.equal(await mostAtOnce({ idleCores: () => 1 }), 5)
})

test('no job starts once the run is interrupted', async () => {
  const interrupted = new AbortController()
  const started: string[] = []
  const job = (name: string) => async () => {
    started.push(name)
    interrupted.abort()
  }
  const crew: Crew = { least: 1, most: 1, idleCores: () => 0, lookMs: 1 }
  await runJobs([job('first'), job('second')], crew, interrupted.signal)
  assert.deepEqual(started, ['first'])
})
