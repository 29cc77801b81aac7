/** Third-party tools accept the API document: redocly's linter, openapi-typescript, and a client with its types. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import type { Json } from '../../support/api-client.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { fetchDocument, operationsOf } from './document.ts'
import './older-compiler.ts'

// Loaded after its compiler is set.
const { default: openapiTS, astToString } = await import('openapi-typescript')

const run = promisify(execFile)

let platform: Platform
let document: Json
let folder: string
before(async () => {
  platform = await startPlatform()
  document = await fetchDocument(platform.url)
  folder = await mkdtemp(join(tmpdir(), 'postern-openapi-'))
  await symlink(resolve('node_modules'), join(folder, 'node_modules'))
  await copyFile(join(import.meta.dirname, 'calls.mjs'), join(folder, 'calls.mjs'))
  await writeFile(join(folder, 'schema.d.ts'), astToString(await openapiTS(structuredClone(document))))
})
after(async () => {
  await platform.stop()
  await rm(folder, { recursive: true, force: true })
})

test('redocly finds no problems in it, but does find one that is put in', async () => {
  assert.deepEqual(await problemsOf(document), [])
  const broken = structuredClone(document)
  broken.paths['/api_keys'].post.requestBody.content['application/json'].schema.maxBytes = 1
  broken.paths['/api_keys'].post.requestBody.content['application/json'].example = { description: 1 }
  assert.deepEqual(await problemsOf(broken), ['no-invalid-media-type-examples', 'struct'])
})

test('titles have no backticks, and descriptions have them in pairs', () => {
  for (const { operation } of operationsOf(document)) assert.doesNotMatch(operation.summary, /`/)
  const descriptions = [...JSON.stringify(document).matchAll(/"description":("(?:[^"\\]|\\.)*")/g)]
  assert.ok(descriptions.length > 0)
  for (const [, text = '""'] of descriptions) assert.equal(JSON.parse(text).split('`').length % 2, 1, text)
})

test('a program written with its types compiles and works', async () => {
  assert.equal(await compilerSays('calls.mjs'), '')
  const { callEverything } = await import(pathToFileURL(join(folder, 'calls.mjs')).href)
  const { next, restrictedTo, ...rest } = await callEverything(platform.url, platform.apiKey)
  assert.deepEqual(rest, {
    action: 'allow',
    label: 'shop',
    description: 'another',
    listed: ['another'],
    missing: 'ERR_NOT_FOUND',
    deleted: 204,
  })
  assert.equal(next, null)
  assert.match(String(restrictedTo), /^ipp_/)
})

const mistakes: [what: string, from: string, to: string][] = [
  ['a missing required field', "cidr: '192.0.2.0/24', ", ''],
  ['an unknown word', "action: 'allow', ip", "action: 'perhaps', ip"],
  ['null for a required field', "cidr: '192.0.2.0/24'", 'cidr: null'],
  ['an unknown path', "'/backends/tunnel_group'", "'/backends/tunnel_groups'"],
  ['an unknown field of an answer', 'rule.data.action', 'rule.data.actions'],
]
for (const [what, from, to] of mistakes) {
  test(`its types catch ${what}`, async () => {
    const program = await readFile(join(folder, 'calls.mjs'), 'utf8')
    assert.ok(program.includes(from))
    await writeFile(join(folder, 'mistaken.mjs'), program.replace(from, to))
    assert.match(await compilerSays('mistaken.mjs'), /mistaken\.mjs.*error TS/)
  })
}

/** The rules that the document breaks, by name. */
async function problemsOf(given: Json): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintFromString({ source: JSON.stringify(given), absoluteRef: 'openapi.json', config })
  return [...new Set(problems.map(({ ruleId }) => ruleId))].sort()
}

/** The compiler's errors in a file of the folder; empty if it is correct. */
async function compilerSays(file: string): Promise<string> {
  const options = ['--noEmit', '--allowJs', '--checkJs', '--strict', '--skipLibCheck', '--target', 'es2024']
  const modules = ['--module', 'nodenext', '--lib', 'es2024,dom,dom.iterable', '--types', 'node']
  const tsc = resolve('node_modules/typescript/bin/tsc')
  try {
    await run(process.execPath, [tsc, ...options, ...modules, file, 'schema.d.ts'], { cwd: folder })
    return ''
  } catch (error) {
    return String((error as { stdout?: string }).stdout)
  }
}
