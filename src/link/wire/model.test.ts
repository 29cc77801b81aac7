import { test } from 'node:test'
import fc from 'fast-check'
import { checkHostile, hostileRun } from './testing/test-hostile.ts'
import { checkModel, modelRun } from './testing/test-model.ts'

test('whatever two ends do and however slow the link, every byte arrives once, in order, within bounds', () => {
  fc.assert(fc.property(modelRun, checkModel), { numRuns: 300 })
})

test('whatever a peer sends, it causes no exception, uses no more memory than its windows, and is closed once', () => {
  fc.assert(fc.property(hostileRun, checkHostile), { numRuns: 150 })
})
