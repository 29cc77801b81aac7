import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadPattern } from '../../../lib/patterns/pattern.ts'
import { BudgetSpent } from './budget.ts'
import { Moment } from './moment.ts'
import { compileReplace } from './replace-pattern.ts'
import type { Template } from './template.ts'

const peer = { ip: '192.0.2.1', port: 1, serverIp: '192.0.2.2', serverPort: 443, startedAt: 0 }
const connection = { peer, edgeId: 'edghts_1', serverName: 'a.test', tls: undefined }
const moment = (): Moment => new Moment({ connection, now: 0, region: 'local' })
const fixed = (text: string): Template => ({ text: () => text, value: () => text })
const url = (length: number): string => `https://a.test/${'a'.repeat(length)}`

test('replaces what a pattern matches; a common pattern uses little of the budget', () => {
  const now = moment()
  const whole = now.budget.left
  assert.equal(
    compileReplace('/v1/(.*)', undefined, fixed('/v2/$1'))('https://a.test/v1/x', now),
    'https://a.test/v2/x',
  )
  assert.ok(now.budget.left > whole * 0.9)
})

test('a pattern that would take too long on a long URL spends the budget before the search begins', () => {
  const replace = compileReplace('(a?){450}', undefined, fixed(''))
  assert.throws(() => replace(url(400), moment()), BudgetSpent)
})

test('compiling a pattern from traffic is charged, and a large one is refused', () => {
  const dear = moment()
  const whole = dear.budget.left
  assert.equal(compileReplace('${x}', fixed('a+'), fixed('b'))(url(3), dear), 'https://b.test/b')
  assert.ok(dear.budget.left < whole - 50_000)
  for (const pattern of ['(a?){450}', '(', 'a'.repeat(2000)]) {
    const replace = compileReplace('${x}', fixed(pattern), fixed('b'))
    assert.throws(() => replace(url(3), moment()), /^Error: a pattern that came with traffic cannot be compiled$/)
  }
})

test('a pattern that takes long to compile is refused', () => {
  assert.throws(() => compileReplace('(\\pL){50}', undefined, fixed('')), BadPattern)
})
