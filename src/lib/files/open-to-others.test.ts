import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { isOpenToOthers } from './open-to-others.ts'

test('a file that others can read is open, unless it is a secret of a container', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-open-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'secret.key')
  assert.equal(isOpenToOthers(path), false)
  writeFileSync(path, '')
  for (const [mode, isOpen] of [
    [0o600, false],
    [0o640, false],
    [0o444, true],
    [0o601, true],
  ] as const) {
    chmodSync(path, mode)
    assert.equal(isOpenToOthers(path), isOpen, mode.toString(8))
  }
  chmodSync(path, 0o444)
  assert.equal(isOpenToOthers(path, `${folder}/`), false)
})
