import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { makeSshHostKey } from './ssh-host-key.ts'
import { readSshPublicKey } from './ssh-public-key.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-host-key-'))
after(() => rmSync(folder, { recursive: true }))

test('the public line is a valid public key', () => {
  const { publicLine } = makeSshHostKey()
  assert.equal(readSshPublicKey(publicLine).type, 'ssh-ed25519')
})

test('two host keys differ', () => {
  assert.notEqual(makeSshHostKey().publicLine, makeSshHostKey().publicLine)
})

const hasKeygen = spawnSync('ssh-keygen', ['-?']).error === undefined
test('ssh-keygen reads the private text and finds the same public key', {
  skip: !hasKeygen && 'ssh-keygen is not on PATH',
}, () => {
  const { publicLine, privateText } = makeSshHostKey()
  const file = join(folder, 'key')
  writeFileSync(file, privateText, { mode: 0o600 })
  const { stdout, stderr } = spawnSync('ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' })
  assert.equal(stdout.trim(), publicLine, stderr)
})
