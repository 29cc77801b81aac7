/** What many share: each row of src/model/shared.ts has a user, and a test in which one owner attacks it. */
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { basename } from 'node:path'
import { test } from 'node:test'
import { shared } from '../src/model/shared.ts'
import { readSources } from './support/sources.ts'

const keys = Object.keys(shared)

test('each row is attacked by a test of its name, and each test is of a row', () => {
  const tests = globSync('test/e2e/shares/*.test.ts').map((file) => basename(file, '.test.ts'))
  assert.deepEqual(tests.toSorted(), keys.map(kebabCase).toSorted())
})

test('each bound is read from the table where it holds', () => {
  const product = [...readSources('src')].filter(([file]) => !/\.test\.tsx?$|\/testing\//.test(file))
  const isRead = (key: string): boolean =>
    product.some(([, text]) => new RegExp(`\\bshared\\.${key}\\.most\\b`).test(text)) || isElsewhere(key)
  // The number is that of the part that holds it, which stands below the table.
  const table = product.find(([file]) => file === 'src/model/shared.ts')?.[1] ?? ''
  const isElsewhere = (key: string): boolean => new RegExp(`\\b${key}: \\{[^}]*\\bmost: [a-z]\\w+\\.`).test(table)
  assert.deepEqual(
    keys.filter((key) => !isRead(key)),
    [],
  )
})

function kebabCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
