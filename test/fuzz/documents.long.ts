/**
 * Hostile documents against one server, for `npm run fuzz`: 1,000 of them, or as many as fit into
 * `POSTERN_FUZZ_SECONDS`, then a restart with what they stored. No turn of the event loop may take over 20 ms of
 * processor time.
 *
 * The system counts processor time in ticks of some milliseconds, and on a virtual machine that of its neighbours too.
 * So a document that seems to take long is sent again: its own cost is the same each time. Documents that took long
 * only once are reported.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { Turn } from '../support/turn-probe.ts'
import { DocumentsFuzz, type Effect } from './documents.ts'
import { hostileDocuments, seeded } from './hostile-documents.ts'

const DOCUMENTS = 1000
/** The most processor time that one turn may take, in milliseconds. */
const LONGEST_TURN_MS = 20
/** How often a document that took longer is sent again. */
const REPEATS = 4

const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))
const seconds = Number(process.env.POSTERN_FUZZ_SECONDS ?? 0)

let fuzz: DocumentsFuzz
let onNothing: Turn
before(async () => {
  ;({ fuzz, atStart: onNothing } = await DocumentsFuzz.start())
})
after(() => fuzz.close())

const shown = ({ document, outcome, cpuMs, wallMs, collectorMs }: Effect): string =>
  `${cpuMs.toFixed(1)} ms (${wallMs.toFixed(1)} by the clock, ${collectorMs.toFixed(1)} for the collector): ${document} -> ${outcome}`

function longest(effects: readonly Effect[]): readonly Effect[] {
  return [...effects].sort((a, b) => b.cpuMs - a.cpuMs).slice(0, 10)
}

test(`hostile documents (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
  const effects: Effect[] = []
  const once: Effect[] = []
  const again: Effect[] = []
  const until = seconds > 0 ? performance.now() + seconds * 1000 : 0
  for (const document of hostileDocuments(seeded(seed))) {
    const effect = await fuzz.send(document)
    effects.push(effect)
    if (effect.cpuMs > LONGEST_TURN_MS) {
      once.push(effect)
      for (let i = 0; i < REPEATS; i++) again.push(await fuzz.send(document))
    }
    if (until > 0 ? performance.now() > until : effects.length >= DOCUMENTS) break
  }
  t.diagnostic(
    `${effects.length} documents; ${[...fuzz.outcomes].map(([what, count]) => `${what.trim()}: ${count}`).join(', ')}`,
  )
  for (const each of longest(effects)) t.diagnostic(shown(each))
  for (const each of once) t.diagnostic(`sent again: ${shown(each)}`)
  for (const each of again) t.diagnostic(`again: ${shown(each)}`)
  assert.deepEqual(again.filter(({ cpuMs }) => cpuMs > LONGEST_TURN_MS).map(shown), [])
})

test(`a restart with what they stored, and the first visitors (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
  const { atStart, visits } = await fuzz.restart()
  t.diagnostic(
    `longest turn of a start on nothing ${onNothing.cpuMs.toFixed(1)} ms, on what was left ${atStart.cpuMs.toFixed(1)} ms`,
  )
  for (const each of longest(visits)) t.diagnostic(shown(each))
  assert.deepEqual(visits.filter(({ cpuMs }) => cpuMs > LONGEST_TURN_MS).map(shown), [])
})
