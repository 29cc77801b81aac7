import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonAnswer } from './json-answer.ts'

async function written(value: unknown): Promise<string> {
  const { bytes, body } = await jsonAnswer(value)
  const chunks: Buffer[] = []
  if (typeof body === 'string') chunks.push(Buffer.from(body))
  else for await (const chunk of body) chunks.push(chunk as Buffer)
  const whole = Buffer.concat(chunks)
  assert.equal(whole.length, bytes)
  return whole.toString('utf8')
}

test('every answer is written as JSON.stringify writes it', async () => {
  const answer = fc.dictionary(fc.string(), fc.oneof(fc.jsonValue({ maxDepth: 4 }), fc.constant(undefined)))
  await fc.assert(
    fc.asyncProperty(answer, async (value) => assert.equal(await written(value), JSON.stringify(value))),
    { numRuns: 500 },
  )
})

test('a long list is written whole, in pieces', async () => {
  const items = Array.from({ length: 50 }, (_, i) => ({
    id: i,
    text: 'é'.repeat(20_000),
    routes: [{ a: 1 }, { b: null }],
  }))
  const value = { items, uri: 'x', next_page_uri: null }
  assert.equal(await written(value), JSON.stringify(value))
  assert.notEqual(typeof (await jsonAnswer(value)).body, 'string')
})
