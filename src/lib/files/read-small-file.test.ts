import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { makeFolder } from './make-folder.ts'
import { readSmallFile, readSmallFileAsync } from './read-small-file.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-files-'))
after(() => rmSync(root, { recursive: true }))

test('reads a file up to the limit, and an empty one', async () => {
  const file = join(root, 'file')
  for (const text of ['', 'é'.repeat(50_000)]) {
    writeFileSync(file, text)
    assert.equal(readSmallFile(file, 100_000), text)
    assert.equal(await readSmallFileAsync(file, 100_000), text)
  }
  assert.throws(() => readSmallFile(file, 99_999), { code: 'EFBIG', path: file })
  await assert.rejects(readSmallFileAsync(file, 99_999), { code: 'EFBIG', path: file })
})

test('reads what another program writes into a pipe', () => {
  const pipe = join(root, 'written')
  assert.equal(spawnSync('mkfifo', [pipe]).status, 0)
  // The writer stays for a while: unread words are lost when the last holder of the pipe closes it.
  const writer = spawn('sh', ['-c', 'exec 3<>"$0"; echo words >&3; echo ready; sleep 2', pipe])
  return new Promise<void>((resolve) => {
    writer.stdout.once('data', () => {
      assert.equal(readSmallFile(pipe, 100), 'words\n')
      resolve()
    })
  })
})

const faults: readonly [name: string, path: () => string, code: string, codeAsync?: string][] = [
  ['a folder', () => root, 'EISDIR'],
  ['a file that never ends', () => '/dev/zero', 'EFBIG', 'EINVAL'],
  ['nothing', () => join(root, 'none'), 'ENOENT'],
  [
    'a pipe that nobody writes to',
    () => {
      const pipe = join(root, 'silent')
      spawnSync('mkfifo', [pipe])
      return pipe
    },
    'ETIMEDOUT',
    'EINVAL',
  ],
]
for (const [name, path, code, codeAsync = code] of faults) {
  test(`${name} is an error at once`, async () => {
    assert.throws(() => readSmallFile(path(), 1000), { code })
    await assert.rejects(readSmallFileAsync(path(), 1000), { code: codeAsync })
  })
}

test('makes a folder with its parents, and leaves an existing one alone', () => {
  const folder = join(root, 'a', 'b', 'c')
  for (let i = 0; i < 2; i++) makeFolder(folder)
  writeFileSync(join(folder, 'file'), '')
  assert.throws(() => makeFolder(join(folder, 'file')), { code: 'EEXIST' })
  assert.throws(() => makeFolder(join(folder, 'file', 'more')), { code: 'ENOTDIR' })
})

test('a folder that cannot be made is an error at once', () => {
  assert.throws(() => makeFolder('/proc/postern'), { code: 'ENOENT', path: '/proc/postern' })
  assert.throws(() => makeFolder('/proc/postern/data'), { code: 'ENOENT', path: '/proc/postern' })
})
