import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { lockForServing } from '../../src/control-plane/store/serve-lock.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { eachStore, postgresUrl } from '../support/databases.ts'
import { startPlatform } from '../support/platform.ts'
import { posternHere } from '../support/postern-here.ts'
import { postern, serve } from '../support/server-process.ts'

const API_KEY = 'backup_test_api_key_of_the_first_admin'
const PASSPHRASE = 'correct horse battery staple'
const SECRET = 'the-client-secret-that-a-backup-carries'
const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BACKUP_PASSPHRASE: PASSPHRASE }

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-backup-'))
})
after(() => rm(folder, { recursive: true, force: true }))

interface Place {
  readonly dataDir: string
  readonly databaseUrl: string
}

const at = ({ dataDir, databaseUrl }: Place): string[] => ['--data-dir', dataDir, '--database-url', databaseUrl]

async function newPlace(kind: 'sqlite' | 'postgres'): Promise<Place> {
  const dataDir = await mkdtemp(join(folder, 'data-'))
  return { dataDir, databaseUrl: kind === 'sqlite' ? `sqlite:${join(dataDir, 'postern.db')}` : await postgresUrl() }
}

/** Data that every test expects to find again: something in each table, and a secret. */
async function furnish(api: ApiClient): Promise<{ path: string; route: Json }> {
  const backend = await api.create('/backends/tunnel_group', { labels: { app: 'one' } })
  const edge = await api.create('/edges/https', { hostports: ['backup.example.com:443'] })
  const oidc = { issuer: 'https://login.example.com', client_id: 'app', client_secret: SECRET }
  const body = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id }, oidc }
  const { id } = await api.create(`/edges/https/${edge.id}/routes`, body)
  const path = `/edges/https/${edge.id}/routes/${id}`
  return { path, route: withoutHost(await api.get(path)) }
}

/** `uri` begins with the address of the server, which differs between two starts. */
function withoutHost(value: Json): Json {
  return JSON.parse(JSON.stringify(value).replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, ''))
}

eachStore((store) => {
  // Processes that share a file lock it; those that share a PostgreSQL have only its connections, as one process has.
  const isFile = store.name === 'sqlite'
  const command = isFile ? postern : posternHere

  describe('a backup made during writes', () => {
    const file = (): string => join(folder, `of-${store.name}.backup`)
    /** The contents of the server before the backup began, and an id that was created after it. */
    let written: {
      readonly path: string
      readonly route: Json
      readonly inTurn: readonly Json[]
      readonly acknowledged: readonly string[]
      readonly after: string
    }
    before(async () => {
      const place = { dataDir: await mkdtemp(join(folder, 'data-')), databaseUrl: await store.url() }
      const server = await (isFile ? serve({ ...place, env }) : startPlatform({ ...place, env }))
      const api = new ApiClient(server.url, API_KEY)
      const { path, route } = await furnish(api)

      // Two edges are written alternately, so that at any moment the first is at most one write ahead of the second.
      const [first, second] = [await api.create('/edges/tcp', { metadata: '0' }), await api.create('/edges/tcp')]
      const made: string[] = []
      let isWriting = true
      const writing = (async () => {
        for (let n = 1; isWriting; n++) {
          await api.send('PATCH', `/edges/tcp/${first.id}`, { body: { metadata: String(n) } })
          await api.send('PATCH', `/edges/tcp/${second.id}`, { body: { metadata: String(n) } })
          made.push((await api.create('/ip_policies', { description: `policy ${n}` })).id)
        }
      })()
      while (made.length < 5) await new Promise(setImmediate)
      const acknowledged = [...made]
      const backup = await command(['backup', ...(isFile ? [] : ['--plain']), file(), ...at(place)], { env })
      isWriting = false
      await writing
      assert.equal(backup.code, 0, backup.err)
      assert.match(backup.err, isFile ? /^$/ : /^The file is not encrypted: [^\n]*\n$/)
      assert.match(backup.out, /1 {2}https_edge_route\n/)
      assert.equal((await stat(file())).mode & 0o777, 0o600)
      const after = (await api.create('/ip_policies', { description: 'made after the backup' })).id
      await server.stop()
      written = { path, route, inTurn: [first, second], acknowledged, after }
    })

    for (const target of ['sqlite', 'postgres'] as const) {
      test(`is consistent, and restores into ${target}`, async () => {
        const { path, route, inTurn, acknowledged, after } = written
        const restored = await newPlace(target)
        const restore = await (target === 'sqlite' ? command : posternHere)(['restore', file(), ...at(restored)], {
          env,
        })
        assert.deepEqual([restore.code, restore.err], [0, ''])
        assert.match(restore.out, /Restored into/)

        const again = await startPlatform(restored)
        const there = new ApiClient(again.url, API_KEY)
        assert.equal((await there.get('/api_keys')).keys.length, 1, 'the first user is that of the backup')
        assert.deepEqual(withoutHost(await there.get(path)), route)
        for (const id of acknowledged) await there.get(`/ip_policies/${id}`)
        assert.equal((await there.send('GET', `/ip_policies/${after}`)).status, 404)
        const [a, b] = await Promise.all(inTurn.map(({ id }) => there.get(`/edges/tcp/${id}`)))
        const ahead = Number(a.metadata) - Number(b.metadata)
        assert.ok(ahead === 0 || ahead === 1, `one edge is ${ahead} writes ahead of the other`)
        // Claims, which keep names unique, and references, which protect what is in use, were restored too.
        const taken = { hostports: ['backup.example.com:443'] }
        assert.equal((await there.send('POST', '/edges/https', { body: taken })).status, 409)
        assert.equal((await there.send('DELETE', `/backends/tunnel_group/${route.backend.backend.id}`)).status, 409)
        await again.stop()
      })
    }
  })
})

describe('a backup', () => {
  let place: Place
  const sealed = (): string => join(folder, 'sealed.backup')
  const plain = (): string => join(folder, 'plain.backup')
  before(async () => {
    place = await newPlace('sqlite')
    const server = await startPlatform({ ...place, env })
    await furnish(new ApiClient(server.url, API_KEY))
    await server.stop()
    for (const args of [[sealed()], ['--plain', plain()]]) {
      const { code, err } = await posternHere(['backup', ...args, ...at(place)], { env })
      assert.equal(code, 0, err)
    }
  })

  test('reveals nothing, and cannot be used without its passphrase', async () => {
    const bytes = await readFile(sealed())
    for (const secret of [SECRET, 'backup.example.com', await key(place)]) assert.ok(!bytes.includes(secret))
    const target = await newPlace('sqlite')
    const wrong = { POSTERN_BACKUP_PASSPHRASE: 'another passphrase' }
    const { code, err } = await posternHere(['restore', sealed(), ...at(target)], { env: wrong })
    assert.equal(code, 1)
    assert.match(err, /the passphrase is wrong, or the file is damaged/)
    assert.deepEqual(await readdir(target.dataDir), [])
  })

  test('that is truncated or damaged restores nothing', async () => {
    const whole = await readFile(plain())
    const damaged = Buffer.from(await readFile(sealed()))
    damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 1
    const cases = [whole.subarray(0, whole.length >> 1), damaged]
    for (const [i, bytes] of cases.entries()) {
      const file = join(folder, `broken-${i}`)
      await writeFile(file, bytes)
      const target = await newPlace('sqlite')
      const { code, err } = await posternHere(['restore', file, ...at(target)], { env })
      assert.equal(code, 1)
      assert.match(err, /^error: \S+ cannot be restored: .*(damaged|cut short).*\n$/)
      assert.deepEqual(await readdir(target.dataDir), [])
    }
  })

  test('is not restored over existing data', async () => {
    const { code, err } = await posternHere(['restore', plain(), ...at(place)])
    assert.equal(code, 1)
    assert.match(err, /the database is not empty/)
    const other = await newPlace('sqlite')
    await writeFile(join(other.dataDir, 'secret.key'), `${Buffer.alloc(32).toString('base64')}\n`)
    const second = await posternHere(['restore', plain(), ...at(other)])
    assert.match(second.err, /there is already a key file at/)
    assert.deepEqual(await readdir(other.dataDir), ['secret.key'])
  })

  test('is not restored where a server is starting, and leaves the folder as it was', async () => {
    const target = await newPlace('sqlite')
    // A server takes the lock before it opens the database.
    const release = lockForServing(target.databaseUrl)
    const before = await readdir(target.dataDir)
    const refused = await posternHere(['restore', plain(), ...at(target)])
    assert.equal(refused.code, 1)
    assert.match(refused.err, /nothing was restored: another server, process \d+, uses the SQLite database/)
    assert.deepEqual(await readdir(target.dataDir), before)
    release()
    assert.equal((await posternHere(['restore', plain(), ...at(target)])).code, 0)
  })

  test('that cannot be stored leaves the folder as it was', async () => {
    const target = await newPlace('sqlite')
    const inTheWay = join(target.dataDir, 'file')
    await writeFile(inTheWay, '')
    const { code } = await posternHere(['restore', plain(), ...at(target), '--key-file', join(inTheWay, 'secret.key')])
    assert.equal(code, 1)
    assert.deepEqual(await readdir(target.dataDir), ['file'])
  })

  test('can be restored again after a restore that was killed', async () => {
    const target = await newPlace('sqlite')
    // The key is written first; a kill may leave the key alone.
    await writeFile(join(target.dataDir, 'secret.key'), `${await key(place)}\n`)
    const { code, err } = await posternHere(['restore', plain(), ...at(target)])
    assert.equal(code, 0, err)
  })

  test('is described by --check, which writes nothing', async () => {
    const target = await newPlace('sqlite')
    const { code, out } = await posternHere(['restore', '--check', plain(), ...at(target)])
    assert.equal(code, 0)
    assert.match(out, /^Created \S+ by Postern \S+ on SQLite; it holds the key and \d+ rows:\n/)
    assert.match(out, / 1 {2}https_edge\n/)
    assert.deepEqual(await readdir(target.dataDir), [])
  })

  test('replaces an existing file only with --force, and leaves no partial file', async () => {
    const before = await readFile(plain())
    const { code, err } = await posternHere(['backup', '--plain', plain(), ...at(place)])
    assert.equal(code, 1)
    assert.match(err, /there is already a file/)
    assert.deepEqual(await readFile(plain()), before)
    const forced = await posternHere(['backup', '--plain', '--force', plain(), ...at(place)])
    assert.equal(forced.code, 0, forced.err)
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.endsWith('.part')),
      [],
    )
  })

  test('is refused for a missing database, and with a wrong key', async () => {
    const nowhere = await newPlace('sqlite')
    const missing = await posternHere(['backup', '--plain', join(folder, 'x'), '--data-dir', nowhere.dataDir])
    assert.match(missing.err, /there is no database at/)
    assert.deepEqual(await readdir(nowhere.dataDir), [])
    const otherKey = join(folder, 'other.key')
    await writeFile(otherKey, `${Buffer.alloc(32).toString('base64')}\n`)
    const mixed = await posternHere(['backup', '--plain', join(folder, 'x'), ...at(place), '--key-file', otherKey])
    assert.match(mixed.err, /not the one of the database/)
    assert.ok(!(await readdir(folder)).includes('x'))
  })

  test('and other commands change the tables of an older version only when they are asked to', async () => {
    const older = await newPlace('sqlite')
    await (await startPlatform(older)).stop()
    const database = join(older.dataDir, 'postern.db')
    const db = new DatabaseSync(database)
    // As a version left it that did not know the last migration.
    db.exec(`drop table acme_accounts; drop table managed_names; drop table acme_orders; drop table acme_challenges;
      delete from kysely_migration where name = '0005_certificates'`)
    db.close()
    const before = await readFile(database)
    const backup = ['backup', '--plain', join(folder, 'older'), ...at(older)]
    const users = ['admin', 'list-users', ...at(older)]
    for (const args of [backup, users]) {
      const { code, err } = await posternHere(args)
      assert.equal(code, 1)
      assert.match(err, /older version of Postern: .*\(0005_certificates\).* repeat this one with --migrate\n$/)
    }
    const restore = await posternHere(['restore', plain(), ...at(older), '--key-file', join(older.dataDir, 'new.key')])
    assert.match(restore.err, /the database is not empty: an older version of Postern made it/)
    assert.deepEqual(await readFile(database), before)
    assert.equal((await posternHere([...users, '--migrate'])).code, 0)
    const made = await posternHere(backup)
    assert.equal(made.code, 0, made.err)
  })

  test('needs a passphrase that is long enough', async () => {
    const short = await posternHere(['backup', join(folder, 'x'), ...at(place)], {
      env: { POSTERN_BACKUP_PASSPHRASE: 'short' },
    })
    assert.equal(short.code, 2)
    assert.match(short.err, /too short/)
    const none = await posternHere(['backup', join(folder, 'x'), ...at(place)])
    assert.equal(none.code, 2)
    assert.match(none.err, /POSTERN_BACKUP_PASSPHRASE.*--passphrase-file.*--plain/)
  })

  test('takes its passphrase from a file', async () => {
    const passphraseFile = join(folder, 'passphrase')
    await writeFile(passphraseFile, `${PASSPHRASE}\n`)
    const target = await newPlace('sqlite')
    const { code, err } = await posternHere(['restore', sealed(), '--passphrase-file', passphraseFile, ...at(target)])
    assert.equal(code, 0, err)
  })
})

async function key({ dataDir }: Place): Promise<string> {
  return (await readFile(join(dataDir, 'secret.key'), 'utf8')).trim()
}
