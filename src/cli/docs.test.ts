import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { errors } from '../model/errors.ts'
import { visitorErrors } from '../model/visitor-errors.ts'
import { cookieNames } from '../modules/login/cookies.ts'
import { generatedPages, pageFile } from './docs.ts'

for (const { path, text } of generatedPages) {
  test(`${path} is what the code says; if not, run \`npm run docs\``, () => {
    assert.equal(readFileSync(pageFile(path), 'utf8'), text())
  })
}

test('docs/errors.md has a row for each code of the API and for each that visitors see, with its status', () => {
  const [ofApi = '', ofVisitors = ''] = readFileSync(pageFile('docs/errors.md'), 'utf8').split(
    '\n## What visitors see\n',
  )
  const rows = (part: string) => part.matchAll(/^\| `ERR_(\w+)` \| (\d+) \| [A-Z`].+ \|$/gm)
  const told = (part: string) =>
    Object.fromEntries(Array.from(rows(part), ([, code, status]) => [code, Number(status)]))
  const known = (table: Readonly<Record<string, { readonly status: number }>>) =>
    Object.fromEntries(Object.entries(table).map(([code, { status }]) => [code, status]))
  assert.deepEqual(told(ofApi), known(errors))
  assert.deepEqual(told(ofVisitors), known(visitorErrors))
})

test('the cookies of logins are called in the docs what they are called', () => {
  const { session, nonce } = cookieNames('<prefix>')
  for (const path of ['docs/decisions.md', 'docs/logins.md']) {
    const text = readFileSync(pageFile(path), 'utf8')
    for (const name of [session, `${nonce}<id>`]) assert.ok(text.includes(`\`${name}\``), `${path} lacks ${name}`)
    const told = Array.from(text.matchAll(/`([^`]*(?:session|nonce)[^`]*)`/g), ([, name = '']) => name)
    for (const name of told.filter((each) => /^<prefix>|^postern\./.test(each))) assert.fail(`${path} has ${name}`)
  }
})
