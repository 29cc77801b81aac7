import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { readName } from '../../model/hostport.ts'
import { adjectives, nouns, randomName } from './random-names.ts'

test('a random name is two words and four hex digits under the domain', () => {
  assert.equal(
    randomName('example.test', () => Uint8Array.of(0, 0, 0, 1, 0x0a, 0xff)),
    'able-alder-0aff.example.test',
  )
  for (let i = 0; i < 100; i++) {
    const name = randomName('example.test', randomBytes)
    assert.match(name, /^[a-z]+-[a-z]+-[0-9a-f]{4}\.example\.test$/)
    assert.equal(readName(name), name)
  }
})

test('no word is listed twice, and each fits into a name', () => {
  for (const words of [adjectives, nouns]) {
    assert.equal(new Set(words).size, words.length)
    assert.ok(words.length >= 100)
    for (const word of words) assert.match(word, /^[a-z]{2,10}$/)
  }
})

test('ten thousand random names hardly ever collide', () => {
  const names = new Set(Array.from({ length: 10_000 }, () => randomName('d', randomBytes)))
  assert.ok(names.size > 9_990, String(names.size))
})
