/**
 * How long each test file takes, by which a run orders and groups them: `test/weights.json`.
 *
 * `npm test -- --weigh` measures it anew. Only the order of a run depends on it, so it need not be exact.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { FileCost } from './costs.ts'

export type SecondsOf = (file: string) => number

type Weights = Readonly<Record<string, number>>

const WEIGHTS = 'test/weights.json'

/** Files that take less than this are not listed. */
const LEAST_SECONDS = 1

/** Of a file that is not listed: most are much shorter than the limit, and a new one is not known yet. */
const UNLISTED_SECONDS = 0.3

export function readWeights(): SecondsOf {
  const weights = read()
  return (file) => weights[file] ?? UNLISTED_SECONDS
}

/** Keeps what is known of files that did not run and still exist. */
export function writeWeights(costs: readonly FileCost[]): void {
  const measured = new Map(costs.map(({ file, wall }) => [file, Math.round(wall)]))
  const others = Object.entries(read()).filter(([file]) => !measured.has(file) && existsSync(file.replace(/ .*/, '')))
  const listed = [...others, ...measured]
    .filter(([, seconds]) => seconds >= LEAST_SECONDS)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(WEIGHTS, `${JSON.stringify(Object.fromEntries(listed), null, 2)}\n`)
}

function read(): Weights {
  return existsSync(WEIGHTS) ? (JSON.parse(readFileSync(WEIGHTS, 'utf8')) as Weights) : {}
}
