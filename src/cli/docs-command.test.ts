import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readSources } from '../../test/support/sources.ts'
import { packageFile } from '../lib/files/package-file.ts'
import { agentErrors } from '../model/agent-errors.ts'
import { errors } from '../model/errors.ts'
import { visitorErrors } from '../model/visitor-errors.ts'
import { cookieNames } from '../modules/login/login-cookies.ts'
import { generatedPages } from './docs-command.ts'

for (const { path, text } of generatedPages) {
  test(`${path} is up to date; if not, run \`npm run docs\``, () => {
    assert.equal(readFileSync(packageFile(path), 'utf8'), text())
  })
}

test('docs/errors.md has a row for each code of the API and for each that visitors see, with its status', () => {
  const page = readFileSync(packageFile('docs/errors.md'), 'utf8')
  const [ofApi = '', , ofVisitors = ''] = page.split(/\n## What (?:agents are told|visitors see)\n/)
  const rows = (part: string) => part.matchAll(/^\| `ERR_(\w+)` \| (\d+) \| \d+ \| [A-Z`].+ \|$/gm)
  const found = (part: string) =>
    Object.fromEntries(Array.from(rows(part), ([, code, status]) => [code, Number(status)]))
  const known = (table: Readonly<Record<string, { readonly status: number }>>) =>
    Object.fromEntries(Object.entries(table).map(([code, { status }]) => [code, status]))
  assert.deepEqual(found(ofApi), known(errors))
  assert.deepEqual(found(ofVisitors), known(visitorErrors))
})

test('docs/errors.md has every number that agents are refused with, and no other', () => {
  const page = readFileSync(packageFile('docs/errors.md'), 'utf8')
  const found = new Set(Array.from(page.matchAll(/^\| `ERR_NGROK_(\d+)` \|/gm), ([, number]) => Number(number)))
  const given = new Set(agentNumbers())
  // Errors that options share with the API are in the table of the API.
  const missing = [...given].filter((number) => !found.has(number))
  const unused = [...found].filter((number) => !given.has(number))
  assert.ok(given.size > 60 && given.has(105) && given.has(327) && given.has(1118))
  assert.deepEqual({ missing, unused }, { missing: [], unused: [] })
})

/** Every number that the code refuses agents and binds with: by the name of a sentence, or by itself. */
function agentNumbers(): number[] {
  const files = [...readSources('src')].filter(([file]) => !/\/testing\/|\.test\.ts$/.test(file))
  const used = (place: RegExp) => files.flatMap(([, text]) => Array.from(text.matchAll(place), ([, name = '']) => name))
  const names = new Set(used(/\brefusals\.(\w+)/g))
  const ofNames = Object.entries(agentErrors).flatMap(([number, { says }]) =>
    Object.keys(says).flatMap((name) => (names.delete(name) ? [Number(number)] : [])),
  )
  return [...ofNames, ...used(/\bBindRefusal\(\s*(\d{3,4}),/g).map(Number)]
}

test('the docs use the real names of the login cookies', () => {
  const { session, nonce } = cookieNames('<prefix>')
  for (const path of ['docs/decisions.md', 'docs/logins.md']) {
    const text = readFileSync(packageFile(path), 'utf8')
    for (const name of [session, `${nonce}<id>`]) assert.ok(text.includes(`\`${name}\``), `${path} lacks ${name}`)
    const found = Array.from(text.matchAll(/`([^`]*(?:session|nonce)[^`]*)`/g), ([, name = '']) => name)
    for (const name of found.filter((each) => /^<prefix>|^postern\./.test(each))) assert.fail(`${path} has ${name}`)
  }
})
