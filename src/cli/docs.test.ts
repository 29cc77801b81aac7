import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { generatedPages, pageFile } from './docs.ts'

for (const { path, text } of generatedPages) {
  test(`${path} is what the code says; if not, run \`npm run docs\``, () => {
    assert.equal(readFileSync(pageFile(path), 'utf8'), text())
  })
}
