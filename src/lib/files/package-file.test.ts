/** The root of a package is found from any depth. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { packageFile } from './package-file.ts'

test('a file is found from code at any depth', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'postern-package-'))
  t.after(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'dist', 'lib', 'files'), { recursive: true })
  writeFileSync(join(root, 'package.json'), '{}')
  for (const module of ['dist/main.js', 'dist/lib/files/package-file.js']) {
    assert.equal(packageFile('built/page', pathToFileURL(join(root, module)).href), join(root, 'built/page'))
  }
})

test('the package of these sources is the clone', () => {
  assert.equal(packageFile('package.json'), join(import.meta.dirname, '../../../package.json'))
})

test('code outside of any package is told so', () => {
  assert.throws(() => packageFile('docs', pathToFileURL('/code.js').href), {
    message: 'no package.json above /code.js',
  })
})
