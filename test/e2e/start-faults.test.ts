/** Unusable data folders, files and settings: the server says so in one line, at once, and exits. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { refusedHere } from '../support/postern-here.ts'
import { type Ended, postern, type ServeOptions, serve, serveArgs } from '../support/server-process.ts'
import { smallDisk } from '../support/small-disk.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-faults-'))
after(() => rmSync(root, { recursive: true, force: true }))
const newFolder = () => mkdtempSync(join(root, 'run-'))

/** How long a start may take, in milliseconds; then it is killed, and fails the test by its exit code. */
const GIVE_UP_MS = 60_000

/** What the program prints, which then ends with `code`. */
async function refusal(options: ServeOptions, code = 1): Promise<string> {
  const ended = await postern(serveArgs(options), { signal: AbortSignal.timeout(GIVE_UP_MS) })
  return lineOf(ended, code)
}

function lineOf(ended: Pick<Ended, 'code' | 'err'>, code: number): string {
  assert.equal(ended.code, code, ended.err)
  assert.match(ended.err, /^error: [^\n]+\n$/, 'one line')
  return ended.err
}

function file(name: string, text = ''): string {
  const path = join(newFolder(), name)
  writeFileSync(path, text)
  return path
}

function newerDatabase(): string {
  const path = join(newFolder(), 'postern.db')
  const db = new DatabaseSync(path)
  db.exec('create table kysely_migration (name text primary key, timestamp text)')
  db.exec(`insert into kysely_migration values ('9999_future', '')`)
  db.close()
  return path
}

function pipe(): string {
  const path = join(newFolder(), 'pipe')
  assert.equal(spawnSync('mkfifo', [path]).status, 0)
  return path
}

const places: readonly [name: string, options: () => ServeOptions, says: RegExp, code?: number][] = [
  ['a data folder below /proc', () => ({ dataDir: '/proc/x' }), /no folder can be created at \/proc\/x; .*--data-dir/],
  ['one deep below /proc', () => ({ dataDir: '/proc/x/y/z' }), /no folder can be created at \/proc\/x; .*--data-dir/],
  ['a data folder that is a file', () => ({ dataDir: file('data') }), /data.* is not a folder; .*--data-dir/],
  ['one below a file', () => ({ dataDir: join(file('file'), 'data') }), /file\/data is not a folder; .*--data-dir/],
  ['a device as data folder', () => ({ dataDir: '/dev/null' }), /\/dev\/null.* is not a folder/],
  [
    'a folder as database file',
    () => ({ dataDir: newFolder(), databaseUrl: `sqlite:${newFolder()}` }),
    /run-\w+ is a folder where a file should be; .*--database-url/,
  ],
  [
    'a database that a newer version migrated',
    () => ({ dataDir: newFolder(), databaseUrl: `sqlite:${newerDatabase()}` }),
    /^error: Postern cannot start: the database was last used by a newer version of Postern: [^:]* 9999_future; run that/,
  ],
  [
    'a key file below /proc',
    () => ({ dataDir: newFolder(), flags: { 'key-file': '/proc/x/secret.key' } }),
    /no folder can be created at \/proc\/x; .*--key-file/,
  ],
  [
    'a folder as key file',
    () => ({ dataDir: newFolder(), flags: { 'key-file': newFolder() } }),
    /is a folder where a file should be; .*--key-file/,
  ],
  [
    'an endless key file',
    () => ({ dataDir: newFolder(), flags: { 'key-file': '/dev/zero' } }),
    /\/dev\/zero is not a key file; .*--key-file/,
  ],
  [
    'a pipe without writer as key file',
    () => ({ dataDir: newFolder(), flags: { 'key-file': pipe() } }),
    /pipe is not a key file/,
  ],
  ['a folder as settings', () => ({ dataDir: newFolder(), flags: { config: newFolder() } }), /it is a folder/, 2],
  ['a pipe as settings', () => ({ dataDir: newFolder(), flags: { config: pipe() } }), /without a writer/, 2],
  ['endless settings', () => ({ dataDir: newFolder(), flags: { config: '/dev/zero' } }), /more than 1048576 bytes/, 2],
  ['settings below a file', () => ({ dataDir: newFolder(), flags: { config: '/dev/null/x' } }), /no such file/, 2],
]
/** The program itself is started where a mistake would make it wait for ever, once for each exit code. */
const ends = ['a pipe without writer as key file', 'a pipe as settings']

for (const [name, options, says, code = 1] of places) {
  test(`${name} is reported at once`, async () => {
    const line = ends.includes(name) ? refusal(options(), code) : refusedHere(options()).then((it) => lineOf(it, code))
    assert.match(await line, says)
  })
}

test('a full disk is reported with the file and what to do, and a start works once there is space', async (t) => {
  const disk = smallDisk(t, 2)
  if (typeof disk === 'string') return t.skip(disk)
  const dataDir = join(disk.path, 'data')
  mkdirSync(dataDir)
  disk.fill()
  assert.match(await refusal({ dataDir }), /the disk of .*postern\.db.* is full; free some space/)
  disk.free()
  const server = await serve({ dataDir })
  assert.equal((await server.stop()).code, 0)
  // A database that exists already.
  disk.fill()
  const { bavail } = statfsSync(disk.path)
  assert.equal(bavail, 0)
  assert.match(lineOf(await refusedHere({ dataDir }), 1), /the disk of .*postern\.db.* is full; free some space/)
})
