/**
 * `npm run soak -- test/soak/traffic.long.ts`: ten minutes of mixed traffic, after which the server holds what it held
 * before. POSTERN_SOAK_SECONDS shortens it, POSTERN_SOAK_SEED repeats a run.
 *
 * The first measurement comes after a fifth of the time, at least a minute, of the same traffic: caches, pools and the
 * heap first grow to the size they need. Two idle minutes precede both, in which kept connections are closed.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { actors, type Dice } from './actors.ts'
import { buildStage, pause, type Stage } from './stage.ts'
import { type Holdings, startWatched } from './watched-server.ts'

const SECONDS = Number(process.env.POSTERN_SOAK_SECONDS ?? 600)
const SEED = Number(process.env.POSTERN_SOAK_SEED ?? randomInt(2 ** 31))

/** How long the server is idle before memory is measured, in seconds: longer than any unused connection is kept. */
const IDLE_SECONDS = Number(process.env.POSTERN_SOAK_IDLE_SECONDS ?? 120)

/** How many rounds of one actor run at once. */
const PLAYERS = 3

/** How much more may be held at the end than at the start, as a fraction. */
const MAY_GROW = 0.15

/** How many rows the table of memory over time has. */
const ROWS = 20

test('ten minutes of mixed traffic leave nothing behind', async (t) => {
  say(`seed ${SEED}, ${SECONDS} s of traffic; POSTERN_SOAK_SEED=${SEED} repeats it`)
  const watched = await startWatched(t)
  const stage = await buildStage(t, watched)
  const began = performance.now()
  const row = tableOf(began)

  await play(stage, { seconds: Math.max(60, SECONDS / 5), onRow: row })
  await pause(IDLE_SECONDS * 1000)
  const start = await watched.holdings({ collects: true })
  row('start', start)

  const counts = await play(stage, { seconds: SECONDS, onRow: row })
  row('traffic', await watched.holdings({ collects: false }))
  await pause(IDLE_SECONDS * 1000)
  const end = await watched.holdings({ collects: true })
  row('end', end)

  for (const [name, { rounds, faults, last }] of counts)
    say(`${name}: ${rounds} rounds, ${faults} faults${last === undefined ? '' : `, the last: ${last}`}`)
  for (const connection of end.connections) say(`still connected: ${connection}`)
  for (const socket of end.sockets) say(`still open: ${socket}`)
  const findings = compare(start, end)
  for (const [name, { rounds, faults }] of counts) {
    if (rounds === 0 || faults * 2 > rounds) findings.push(`${name}: ${faults} of ${rounds} rounds failed`)
  }
  assert.deepEqual(findings, [])
})

type Counts = Map<string, { rounds: number; faults: number; last: string | undefined }>

/** Runs all actors for `seconds`, and waits for the last round of each. */
async function play(
  stage: Stage,
  { seconds, onRow }: { seconds: number; onRow: (what: string, held: Holdings) => void },
): Promise<Counts> {
  const stop = new AbortController()
  const { signal } = stop
  const counts: Counts = new Map()
  const playing = Object.entries(actors).flatMap(([name, act]) => {
    const count = { rounds: 0, faults: 0, last: undefined as string | undefined }
    counts.set(name, count)
    return Array.from({ length: PLAYERS }, async (_, player) => {
      const dice = diceOf(`${SEED} ${name} ${player}`)
      while (!signal.aborted) {
        count.rounds++
        await act({ stage, dice, signal }).catch((error: unknown) => {
          count.faults++
          count.last = String(error)
        })
        await pause(5, signal)
      }
    })
  })
  const until = performance.now() + seconds * 1000
  while (performance.now() < until) {
    await pause(Math.min((SECONDS * 1000) / ROWS, until - performance.now()))
    onRow('traffic', await stage.watched.holdings({ collects: false }))
  }
  stop.abort()
  await Promise.all(playing)
  return counts
}

/** Describes what has grown too much; empty when all is as before. */
function compare(start: Holdings, end: Holdings): string[] {
  const findings: string[] = []
  say(`of RSS the program's own: ${mib(start.anonymous)} at the start, ${mib(end.anonymous)} at the end`)
  for (const name of ['rss', 'heapUsed'] as const) {
    const grown = end[name] / start[name] - 1
    const words = `${name}: ${mib(start[name])} at the start, ${mib(end[name])} at the end (${(100 * grown).toFixed(1)} %)`
    say(words)
    if (grown > MAY_GROW) findings.push(`${words}, of which ${100 * MAY_GROW} % are allowed`)
  }
  for (const name of ['descriptors', 'resources'] as const) {
    const kinds = new Set([...Object.keys(start[name]), ...Object.keys(end[name])])
    for (const kind of kinds) {
      const [before, after] = [start[name][kind] ?? 0, end[name][kind] ?? 0]
      if (before !== after) findings.push(`${name}: ${kind} was ${before} and is ${after}`)
    }
  }
  return findings
}

function tableOf(began: number): (what: string, held: Holdings) => void {
  say(
    ['     s', 'what    ', '     RSS', ' its own', '    heap', 'external', ' buffers', 'sockets', 'handles'].join('  '),
  )
  return (what, { rss, anonymous, heapUsed, external, arrayBuffers, descriptors, resources }) => {
    const seconds = ((performance.now() - began) / 1000).toFixed(0).padStart(6)
    const memory = [rss, anonymous, heapUsed, external, arrayBuffers].map((bytes) => mib(bytes).padStart(8))
    const handles = Object.values(resources).reduce((sum, each) => sum + each, 0)
    const counts = [descriptors.socket ?? 0, handles].map((count) => String(count).padStart(7))
    say([seconds, what.padEnd(8), ...memory, ...counts].join('  '))
  }
}

function mib(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} M`
}

function say(line: string): void {
  process.stdout.write(`# ${line}\n`)
}

/** A small random generator (mulberry32), so that a seed repeats a run. */
function diceOf(seed: string): Dice {
  let state = 0
  for (const char of seed) state = (Math.imul(state, 31) + (char.codePointAt(0) ?? 0)) | 0
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides
  }
}
