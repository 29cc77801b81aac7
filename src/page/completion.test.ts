import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PolicyWord } from './api-outline.ts'
import { complete, completionAt } from './completion.ts'

const words: readonly PolicyWord[] = [
  { word: 'deny', what: 'action' },
  { word: 'rate-limit', what: 'action' },
  { word: 'req', what: 'variable' },
  { word: 'req.url', what: 'variable' },
  { word: 'req.url.path', what: 'variable' },
  { word: 'size', what: 'function' },
  { word: '.startsWith', what: 'function' },
]

/** `|` is the caret. */
const cases: [what: string, written: string, offers: string[], first?: string][] = [
  ['actions after `type:`', 'actions:\n  - type: |', ['deny', 'rate-limit'], 'actions:\n  - type: deny|'],
  ['actions in JSON', '{"type": "ra|"}', ['rate-limit'], '{"type": "rate-limit|"}'],
  ['variables that were begun', 'expressions:\n  - r|', ['req', 'req.url', 'req.url.path'], 'expressions:\n  - req|'],
  ['fields, then methods', '"req.url.|"', ['req.url.path', '.startsWith'], '"req.url.path|"'],
  ['methods of anything', 'req.url.path.st|', ['.startsWith'], 'req.url.path.startsWith(|'],
  ['functions', 'si| > 1', ['size'], 'size(| > 1'],
  ['nothing where nothing was begun', 'expressions: |', []],
  ['nothing for a whole word', 'type: deny|', []],
]

for (const [what, written, offers, first] of cases) {
  test(what, () => {
    const text = written.replace('|', '')
    const completion = completionAt(text, written.indexOf('|'), words)
    assert.deepEqual(
      completion.offers.map(({ word }) => word),
      offers,
    )
    const [offer] = completion.offers
    if (!offer) return
    const taken = complete(text, completion, offer)
    assert.equal(`${taken.text.slice(0, taken.caret)}|${taken.text.slice(taken.caret)}`, first)
  })
}
