import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { readKeyText } from '../../lib/secrets/seal.ts'
import { openStore, type Store } from '../store/store.ts'
import { BadBackup, inspectBackup, makeBackup, readBackup } from './backup-format.ts'
import { KEY_ID } from './sealing.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const MARK = 'postern-backup 1 plain\n'
/** More rows than are read or written at a time, each with a child that sorts before it. */
const PAIRS = 700

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

const inspect = (bytes: Uint8Array) => inspectBackup(once(bytes), undefined)

describe('a backup', () => {
  let folder: string
  let whole: Buffer
  let store: Store
  const opened: Store[] = []
  const openAt = async (name: string): Promise<Store> => {
    const each = await openStore(`sqlite:${join(folder, name)}`)
    opened.push(each)
    return each
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postern-backup-'))
    store = await openAt('a.db')
    const keyFile = join(folder, 'secret.key')
    await writeFile(keyFile, `${KEY}\n`)
    await store.write(async (writer) => {
      await writer.setMeta(KEY_ID, readKeyText(KEY, 'the key').keyId)
      const createdAt = '2026-01-01T00:00:00Z'
      for (let n = 0; n < PAIRS; n++) {
        // As when the clocks of two nodes disagree: the parent sorts after its child.
        const parentId = `z_${n}`
        await writer.insert({ id: parentId, kind: 'edge', parentId: null, ownerId: null, createdAt, fields: { n } })
        await writer.insert({ id: `a_${n}`, kind: 'route', parentId, ownerId: parentId, createdAt, fields: {} })
        await writer.putModule(parentId, 'policy', { text: 'ünïcode\n"quoted"' })
        await writer.setClaims(parentId, 'hostport', [`${n}.example.com`], true)
        await writer.setReferences(`a_${n}`, 'backend', [parentId], true)
        await writer.logins.useAnswer({ key: `answer ${n}`, expires_at: 1_800_000_000_000 + n })
      }
    })
    const pieces: Uint8Array[] = []
    await makeBackup({ store, keyFile, version: '1.2.3', now: () => 0, passphrase: undefined }, async (bytes) => {
      for await (const piece of bytes) pieces.push(piece)
    })
    whole = Buffer.concat(pieces)
  })
  after(async () => {
    for (const each of opened) await each.close()
    await rm(folder, { recursive: true, force: true })
  })

  test('tells what it holds', async () => {
    const { version, createdAt, database, rows, kinds, key } = await inspect(whole)
    assert.deepEqual(
      { version, createdAt, database },
      { version: '1.2.3', createdAt: '1970-01-01T00:00:00.000Z', database: 'sqlite' },
    )
    assert.deepEqual(Object.fromEntries(kinds), { edge: PAIRS, route: PAIRS })
    assert.deepEqual([rows, key], [PAIRS * 6 + 1, KEY])
  })

  test('fills another store with the same rows, whatever the order of their references', async () => {
    const target = await openAt('b.db')
    await target.fill(readBackup(once(whole), undefined))
    const rowsOf = (each: Store) => each.snapshot(all)
    assert.deepEqual(await rowsOf(target), await rowsOf(store))
    const again = (expires_at: number) =>
      target.write(({ logins }) => logins.useAnswer({ key: 'answer 0', expires_at }))
    assert.equal(await again(1_900_000_000_000), false, 'an answer that was used before the backup is refused')
    const gone = await target.write(({ logins }) => logins.removeAnswers(1_800_000_000_001, 10))
    assert.deepEqual(gone.toSorted(), ['answer 0', 'answer 1'], 'and forgotten in its time')
    await assert.rejects(target.fill(readBackup(once(whole), undefined)), /not empty/)
  })

  test('is refused when it is cut short anywhere', async () => {
    for (let length = 0; length < whole.length; length += 501) {
      await assert.rejects(inspect(whole.subarray(0, length)), BadBackup, `${length} of ${whole.length} bytes`)
    }
  })

  test('that fails half-way leaves the store empty', async () => {
    const target = await openAt('c.db')
    const lines = gunzipSync(whole.subarray(MARK.length)).toString().split('\n')
    const short = Buffer.concat([Buffer.from(MARK), gzipSync(lines.slice(0, -2).join('\n').concat('\n'))])
    await assert.rejects(target.fill(readBackup(once(short), undefined)), /cut short/)
    assert.equal(await target.isEmpty(), true)
  })

  const hostile: Record<string, (lines: string[]) => string[]> = {
    'an unknown table': ([head = '', ...rest]) => [head, '["sqlite_master","a","b"]', ...rest],
    'a row with too few values': ([head = '', ...rest]) => [head, '["meta","a"]', ...rest],
    'a row with a number': ([head = '', ...rest]) => [head, '["meta","a",1]', ...rest],
    'a time that is no number': ([head = '', ...rest]) => [head, '["used_answers","a","soon"]', ...rest],
    'a null where none may be': ([head = '', ...rest]) => [head, '["meta","a",null]', ...rest],
    'rows that were taken out': (lines) => lines.toSpliced(3, 1),
    'rows after the end': (lines) => [...lines, '["meta","a","b"]'],
    'no JSON': ([head = '', ...rest]) => [head, '{', ...rest],
    'a header of another kind': ([, ...rest]) => ['{"backup":2}', ...rest],
    'another key': ([head = '', ...rest]) => [head.replace(KEY, Buffer.alloc(32, 8).toString('base64')), ...rest],
  }
  for (const [name, change] of Object.entries(hostile)) {
    test(`with ${name} is refused`, async () => {
      const lines = gunzipSync(whole.subarray(MARK.length)).toString().trimEnd().split('\n')
      const packed = gzipSync(`${change(lines).join('\n')}\n`)
      await assert.rejects(inspect(Buffer.concat([Buffer.from(MARK), packed])), BadBackup)
    })
  }

  test('with a line that never ends is refused before it fills the memory', async () => {
    const packed = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x61))
    await assert.rejects(inspect(Buffer.concat([Buffer.from(MARK), packed])), /too long/)
  })

  test('of a newer format is refused as such, and another file as no backup', async () => {
    await assert.rejects(inspect(Buffer.from('postern-backup 2 sealed\n')), /newer Postern/)
    await assert.rejects(inspect(Buffer.from('SQLite format 3')), /not a backup/)
  })
})
