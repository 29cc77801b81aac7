import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeKeyFile } from '../../lib/secrets/seal.ts'
import { createAuthority } from '../../lib/x509/certificate-authority.ts'
import { checkServerFiles } from './data-files.ts'

function filesIn(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-doctor-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const at = (name: string) => join(folder, name)
  return { caFile: at('ca.pem'), keyFile: at('secret.key'), databaseFile: at('postern.db') }
}

const seen = (files: Parameters<typeof checkServerFiles>[0]) => {
  const { findings, authority } = checkServerFiles(files)
  return { states: findings.map(({ check, state }) => `${check}: ${state}`), authority, findings }
}

test('usable files, and files that do not exist yet', (t) => {
  const files = filesIn(t)
  assert.deepEqual(seen(files).states, [])
  const { certPem } = createAuthority()
  writeFileSync(files.caFile, certPem)
  makeKeyFile(files.keyFile)
  writeFileSync(files.databaseFile, 'SQLite format 3\0 and pages')
  const { states, authority } = seen(files)
  assert.deepEqual(states, ['ca.pem: well', 'key file: well', 'database file: well'])
  assert.equal(authority, certPem)
  assert.equal(seen({ ...files, databaseFile: undefined }).states.length, 2)
})

const damages: readonly [what: string, damage: (path: string) => void][] = [
  ['empty', (path) => writeFileSync(path, '')],
  ['damaged', (path) => writeFileSync(path, '-----BEGIN CERTIFICATE-----\nMIIBszCCAVmg\n-----END CERTIFICATE-----\n')],
  ['a giant', (path) => writeFileSync(path, Buffer.alloc(4 * 1024 * 1024))],
  ['a folder', (path) => mkdirSync(path)],
  ['a link to itself', (path) => symlinkSync(path, path)],
]
for (const [what, damage] of damages) {
  test(`a file that is ${what} is reported, with what to do`, (t) => {
    const files = filesIn(t)
    for (const path of Object.values(files)) damage(path)
    const { states, authority, findings } = seen(files)
    assert.deepEqual(states, ['ca.pem: to do', 'key file: to do', 'database file: to do'])
    assert.equal(authority, undefined)
    for (const { about, next } of findings) assert.ok(about.length > 20 && next.length > 10, about)
  })
}
