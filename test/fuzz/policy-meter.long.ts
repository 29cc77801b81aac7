/**
 * Requests to hostile policies against their meters, for `npm run fuzz`: 400 policies, or as many as fit into
 * `POSTERN_FUZZ_SECONDS`. Each runs through the rules of the engine in a process of its own, and takes a fixed time and so much
 * for each step of its meter; one that takes over four times as much does work that nobody pays for.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { FACTOR, fitLine, MeterFuzz, outliers, overcharged, ratioTo } from './policy-meter.ts'
import type { Measured } from './policy-meter-process.ts'

const POLICIES = 400
/** How many outliers are looked into. */
const MOST_SHOWN = 10

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))
const seconds = Number(process.env.POSTERN_FUZZ_SECONDS ?? 0)

test(`CPU time of requests against their meters (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
  const fuzz = new MeterFuzz()
  t.after(() => fuzz.close())
  const all: Measured[] = []
  const until = performance.now() + seconds * 1000
  for (let next = seed; seconds > 0 ? performance.now() < until : all.length < POLICIES; next++) {
    const measured = await fuzz.measure({ seed: next })
    if (measured) all.push(measured)
  }
  const line = fitLine(all)
  const ratios = all.map((each) => ratioTo(line, each)).toSorted((a, b) => a - b)
  const at = (part: number): string => (ratios[Math.floor(part * (ratios.length - 1))] ?? 0).toFixed(2)
  const { fixedMicros, microsAStep } = line
  t.diagnostic(`${fixedMicros.toFixed(0)} µs + ${(microsAStep * 1000).toFixed(2)} ns a step, of ${all.length} requests`)
  t.diagnostic(
    `CPU time against the line: lowest ${at(0)}, p5 ${at(0.05)}, p50 ${at(0.5)}, p95 ${at(0.95)}, highest ${at(1)}`,
  )
  t.diagnostic(`${overcharged(all, line).length} are charged for over ${FACTOR} times of what they cost`)
  const found: string[] = []
  for (const first of outliers(all, line)) {
    // Again in a fresh process: others may have used the machine.
    fuzz.close()
    const again = await fuzz.measure({ seed: first.seed })
    if (!again || outliers([again], line).length === 0) continue
    const cause = found.length < MOST_SHOWN ? await fuzz.causeOf(again, line) : ''
    found.push(`seed ${again.seed}: ${ratioTo(line, again).toFixed(1)} times the line; ${cause}`)
  }
  assert.deepEqual(found, [])
})
