import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { withoutNative } from './without-native.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'postern-ssh2-')))
after(() => rmSync(folder, { recursive: true }))

test('native ciphers of the library are not loaded even if they exist', () => {
  const built = join(folder, 'lib/protocol/crypto/build/Release')
  mkdirSync(built, { recursive: true })
  writeFileSync(join(built, 'sshcrypto.node'), 'no program')
  // As the library does.
  const load = (): unknown =>
    createRequire(join(folder, 'lib/protocol/crypto.js'))('./crypto/build/Release/sshcrypto.node')
  assert.throws(load, { code: 'ERR_DLOPEN_FAILED' })
  withoutNative(folder)
  assert.deepEqual(load(), {})
})

test('the library looks for them at the path that is replaced', () => {
  const source = createRequire(import.meta.url).resolve('ssh2/lib/protocol/crypto.js')
  const text = readFileSync(source, 'utf8')
  assert.ok(text.includes("binding = require('./crypto/build/Release/sshcrypto.node');"))
})
