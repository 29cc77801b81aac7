/** The test of hostile expressions, for the short and the long run. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DocumentsFuzz, type Effect } from './documents.ts'
import { seeded } from './hostile-documents.ts'
import { hostileExpression } from './hostile-expressions.ts'
import { serveExpression } from './policy-expressions.ts'

/** The most processor time that one turn may take, in milliseconds. */
const LONGEST_TURN_MS = 20
/** How often an expression that took longer is served again. */
const REPEATS = 4

export interface ExpressionsRun {
  readonly seed: number
  readonly expressions: number
  /** How many seconds to run instead; 0 for no time limit. */
  readonly seconds: number
  /** Whether to report how the expressions ended and which were the most expensive. */
  readonly isTalkative: boolean
}

export function fuzzExpressions({ seed, expressions, seconds, isTalkative }: ExpressionsRun): void {
  let fuzz: DocumentsFuzz
  before(async () => {
    ;({ fuzz } = await DocumentsFuzz.start())
  })
  after(() => fuzz.close())

  test(`hostile expressions (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
    const random = seeded(seed)
    const effects: Effect[] = []
    const again: Effect[][] = []
    const until = seconds > 0 ? performance.now() + seconds * 1000 : 0
    let number = 0
    do {
      const expression = hostileExpression(random)
      const effect = await serveExpression(fuzz, expression, ++number)
      effects.push(effect)
      if (effect.cpuMs > LONGEST_TURN_MS) {
        const repeated: Effect[] = []
        for (let i = 0; i < REPEATS; i++) repeated.push(await serveExpression(fuzz, expression, ++number))
        again.push(repeated)
      }
    } while (until > 0 ? performance.now() < until : effects.length < expressions)
    const counts = Map.groupBy(effects, ({ outcome }) => outcome)
    if (isTalkative) for (const line of summary(counts, effects)) t.diagnostic(line)
    assert.ok(counts.has('served 200'), 'all were refused: the expressions no longer fit')
    const slow = again.filter((repeated) => repeated.every(({ cpuMs }) => cpuMs > LONGEST_TURN_MS))
    assert.deepEqual(
      slow.map(([first]) => `${first?.cpuMs} ms: ${first?.document}`),
      [],
    )
  })
}

function summary(counts: ReadonlyMap<string, readonly Effect[]>, effects: readonly Effect[]): string[] {
  const dearest = effects.toSorted((a, b) => b.cpuMs - a.cpuMs).slice(0, 10)
  return [
    [...counts].map(([outcome, all]) => `${outcome.trim()}: ${all.length}`).join(', '),
    ...dearest.map(({ cpuMs, document }) => `${cpuMs.toFixed(1)} ms: ${document}`),
  ]
}
