import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { notOverSsh } from './not-over-ssh.ts'

test('every row that plain ssh does not support is a row of the suite', () => {
  const files = readdirSync(import.meta.dirname).filter((file) => /(?<!not-over-ssh)\.test\.ts$/.test(file))
  const suite = files.map((file) => readFileSync(`${import.meta.dirname}/${file}`, 'utf8')).join('\n')
  for (const [row] of notOverSsh) assert.ok(suite.includes(row), `no row is called "${row}"`)
})
