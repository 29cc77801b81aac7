import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readSources } from '../../test/support/sources.ts'
import { errors } from '../model/errors.ts'
import { visitorErrors } from '../model/visitor-errors.ts'
import { cookieNames } from '../modules/login/login-cookies.ts'
import { generatedPages, pageFile } from './docs-command.ts'

for (const { path, text } of generatedPages) {
  test(`${path} is up to date; if not, run \`npm run docs\``, () => {
    assert.equal(readFileSync(pageFile(path), 'utf8'), text())
  })
}

test('docs/errors.md has a row for each code of the API and for each that visitors see, with its status', () => {
  const page = readFileSync(pageFile('docs/errors.md'), 'utf8')
  const [ofApi = '', , ofVisitors = ''] = page.split(/\n## What (?:agents are told|visitors see)\n/)
  const rows = (part: string) => part.matchAll(/^\| `ERR_(\w+)` \| (\d+) \| \d+ \| [A-Z`].+ \|$/gm)
  const told = (part: string) =>
    Object.fromEntries(Array.from(rows(part), ([, code, status]) => [code, Number(status)]))
  const known = (table: Readonly<Record<string, { readonly status: number }>>) =>
    Object.fromEntries(Object.entries(table).map(([code, { status }]) => [code, status]))
  assert.deepEqual(told(ofApi), known(errors))
  assert.deepEqual(told(ofVisitors), known(visitorErrors))
})

test('docs/errors.md has every number that agents are refused with, and no other', () => {
  const page = readFileSync(pageFile('docs/errors.md'), 'utf8')
  const told = new Set(Array.from(page.matchAll(/^\| `ERR_NGROK_(\d+)` \|/gm), ([, number]) => Number(number)))
  const given = new Set(agentNumbers())
  // Errors that options share with the API are in the table of the API.
  const missing = [...given].filter((number) => !told.has(number))
  const unused = [...told].filter((number) => !given.has(number))
  assert.ok(given.size > 60 && given.has(105) && given.has(327) && given.has(1118))
  assert.deepEqual({ missing, unused }, { missing: [], unused: [] })
})

/** Every number in the code that refuses agents and binds: in a call, a constant or a table. */
function agentNumbers(): number[] {
  const isRoom =
    /^src\/(data-plane\/(tunnel|ssh|edge\/agent-endpoints)|modules\/agent-options|control-plane\/records\/check-documents)\b/
  const refuses = /\b(BindRefusal|BadOption)\b/
  const files = [...readSources('src')].filter(
    ([file, text]) => isRoom.test(file) && refuses.test(text) && !/\/testing\/|\.test\.ts$/.test(file),
  )
  const places = [
    /\b(?:refuse|BadOption|BindRefusal)\(\s*(\d{3,4}),/g,
    /^const (?!M(?:AX|IN)_)[A-Z_]+(?<!_MS) = (\d{3,4})$/gm,
    /^ {2}\[.*, (\d{3,4})\],$/gm,
    /^ {2}'--[a-z-]+': (\d{3,4}),$/gm,
    /\b(?:pair|name|many|long): (\d{3,4})\b/g,
    /\? (\d{3,4}) : MALFORMED_BIND\b/g,
  ]
  return files.flatMap(([, text]) => places.flatMap((place) => Array.from(text.matchAll(place), ([, n]) => Number(n))))
}

test('the docs use the real names of the login cookies', () => {
  const { session, nonce } = cookieNames('<prefix>')
  for (const path of ['docs/decisions.md', 'docs/logins.md']) {
    const text = readFileSync(pageFile(path), 'utf8')
    for (const name of [session, `${nonce}<id>`]) assert.ok(text.includes(`\`${name}\``), `${path} lacks ${name}`)
    const told = Array.from(text.matchAll(/`([^`]*(?:session|nonce)[^`]*)`/g), ([, name = '']) => name)
    for (const name of told.filter((each) => /^<prefix>|^postern\./.test(each))) assert.fail(`${path} has ${name}`)
  }
})
