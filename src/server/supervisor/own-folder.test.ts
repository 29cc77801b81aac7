import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeOwnFolder } from './own-folder.ts'

function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'own-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function notAFolder(t: TestContext): string {
  const file = join(scratch(t), 'file')
  writeFileSync(file, '')
  return file
}

test('the folder is among temporary files, and private', (t) => {
  const tmp = scratch(t)
  const [first, second] = [makeOwnFolder('/nowhere', [tmp]), makeOwnFolder('/nowhere', [tmp])]
  assert.notEqual(first, second)
  assert.equal(dirname(first), tmp)
  assert.equal(statSync(first).mode & 0o777, 0o700)
})

test('where temporary files cannot be written, the folder is in the data directory', (t) => {
  const dataDir = join(scratch(t), 'data')
  const folder = makeOwnFolder(dataDir, [notAFolder(t)])
  assert.equal(dirname(folder), dataDir)
  assert.ok(existsSync(folder))
})

test('paths that are too long for sockets are skipped', (t) => {
  const tmp = scratch(t)
  assert.equal(dirname(makeOwnFolder('/nowhere', [join(tmp, 'd'.repeat(90)), tmp])), tmp)
  assert.throws(() => makeOwnFolder(join(tmp, 'd'.repeat(90)), []), /too long/)
})

test('an error of the system says why there is no folder', (t) => {
  const file = notAFolder(t)
  assert.throws(() => makeOwnFolder(join(file, 'data'), [file]), { code: 'ENOTDIR' })
})
