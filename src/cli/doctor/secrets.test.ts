import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openSealer } from '../../control-plane/records/sealing.ts'
import { openStore } from '../../control-plane/store/store.ts'
import { makeKeyFile } from '../../lib/secrets/seal.ts'
import type { Finding } from './finding.ts'
import { checkAccess, checkDatabase } from './secrets.ts'

async function filesIn(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-doctor-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [database, keyFile] = [join(folder, 'postern.db'), join(folder, 'secret.key')]
  const store = await openStore(`sqlite:${database}`)
  await openSealer(store, keyFile)
  return { folder, database, keyFile, url: `sqlite:${database}`, store }
}

async function finding(url: string, keyFile: string): Promise<Finding> {
  const [first, ...more] = await checkDatabase(url, keyFile, new Set())
  assert.ok(first && more.length === 0)
  return first
}

test('a key file or a data folder that others can read is reported', async (t) => {
  const { folder, keyFile, store } = await filesIn(t)
  await store.close()
  assert.deepEqual(checkAccess([keyFile, folder, join(folder, 'missing')]), [])
  chmodSync(keyFile, 0o644)
  chmodSync(folder, 0o755)
  const findings = checkAccess([keyFile, folder])
  assert.deepEqual(
    findings.map(({ state, next }) => [state, next]),
    [keyFile, folder].map((path) => ['to do', `run \`chmod o= ${path}\``]),
  )
})

test('a foreign key file is reported, while a server runs and after; nothing is written', async (t) => {
  const { folder, keyFile, url, store } = await filesIn(t)
  const other = join(folder, 'other.key')
  makeKeyFile(other)
  const states = async () => [(await finding(url, keyFile)).state, (await finding(url, other)).about]
  const expected = ['well', `${other} is the key of another database: no secret can be read with it`]
  assert.deepEqual(await states(), expected)
  await store.close()
  const before = readdirSync(folder)
  assert.deepEqual(await states(), expected)
  assert.deepEqual(readdirSync(folder), before)
})

test('damage inside of a database is reported', async (t) => {
  const { database, keyFile, url, store } = await filesIn(t)
  await store.close()
  const bytes = readFileSync(database)
  // Every page but the first, with which a database begins.
  writeFileSync(database, bytes.fill(0x55, 4096))
  const { check, state, about } = await finding(url, keyFile)
  assert.deepEqual([check, state], ['database contents', 'to do'])
  assert.match(about, /^the database is damaged: /)
})
