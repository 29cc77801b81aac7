/** CEL by its specification: every case is checked and evaluated like an expression in a policy. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Budget } from '../../src/modules/policy/engine/budget.ts'
import { BadExpression } from '../../src/modules/policy/engine/cel.ts'
import { Evaluator } from '../../src/modules/policy/engine/evaluator.ts'
import { checkExpression } from '../../src/modules/policy/engine/expression.ts'
import { Moment } from '../../src/modules/policy/engine/moment.ts'
import { equals } from '../../src/modules/policy/engine/operators.ts'
import { parseHere } from '../../src/modules/policy/engine/parsed.ts'
import { ownLists, type Site } from '../../src/modules/policy/engine/policy-phases.ts'
import { celCases } from './cel-cases.ts'

const site: Site = { place: 'tcp', phase: 'connect', lists: ownLists }
const peer = { ip: '192.0.2.1', port: 1, serverIp: '192.0.2.2', serverPort: 443, startedAt: 0 }
const connection = { peer, edgeId: 'e', serverName: undefined, tls: undefined }
const evaluator = new Evaluator()
const { cel } = evaluator

type Outcome = { readonly value: ReturnType<ReturnType<Evaluator['compile']>> } | { readonly error: string }

function outcomeOf(text: string): Outcome {
  try {
    checkExpression(text, site, { condition: false })
  } catch (error) {
    if (!(error instanceof BadExpression)) throw error
    return { error: error.message }
  }
  const run = evaluator.compile(text, site, new Set(), { parsed: parseHere(text) })
  try {
    return { value: run(new Moment({ connection, now: 0, region: '' })) }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

/** Equal and of the same type, since CEL itself treats 1 and 1.0 as equal. */
function isSame(a: Outcome, b: Outcome): boolean {
  if ('error' in a || 'error' in b) return false
  if (Number.isNaN(a.value) || Number.isNaN(b.value)) return Object.is(a.value, b.value)
  return cel.celType(a.value).name === cel.celType(b.value).name && equals(cel, a.value, b.value, new Budget())
}

for (const [part, cases] of Object.entries(celCases)) {
  describe(part, () => {
    for (const [expression, expected] of cases) {
      test(`${expression} is ${expected}`, () => {
        const found = outcomeOf(expression)
        const shown = 'error' in found ? found.error : evaluator.text(found.value, new Budget())
        if (expected === 'error') assert.ok('error' in found, `gives ${shown}`)
        else assert.ok(isSame(found, outcomeOf(expected)), `gives ${shown}`)
      })
    }
  })
}
