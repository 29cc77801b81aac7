/** An attacker who can write the database but lacks the key: sealed values can be opened only in their own place. */
import assert from 'node:assert/strict'
import { createCipheriv, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readKeyFile } from '../../src/lib/secrets/seal.ts'
import { tlsPair } from '../conformance/tls-pair.ts'
import { changeDatabase, queryDatabase } from '../support/change-database.ts'
import { databaseContents } from '../support/database-contents.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'
import { ask } from './edges/visitor.ts'

const login = (secret: string) => ({ issuer: 'https://login.example.com', client_id: 'app', client_secret: secret })

interface Place {
  readonly edgeId: string
  readonly routeId: string
  readonly path: string
}

/** A route whose login has this secret. */
async function routeWith({ admin }: Platform, secret: string): Promise<Place> {
  const { id: edgeId } = await admin.create('/edges/https')
  const body = { match_type: 'path_prefix', match: '/', oidc: login(secret) }
  const { id: routeId } = await admin.create(`/edges/https/${edgeId}/routes`, body)
  return { edgeId, routeId, path: `/edges/https/${edgeId}/routes/${routeId}` }
}

eachStore((store) => {
  /** Data that outlives a server. */
  async function lasting(t: TestContext): Promise<Required<Pick<PlatformOptions, 'dataDir' | 'databaseUrl'>>> {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-sealed-'))
    t.after(() => rm(dataDir, { recursive: true }))
    return { dataDir, databaseUrl: await store.url() }
  }

  /** `stop` may be called twice. */
  async function start(t: TestContext, options: PlatformOptions): Promise<Platform> {
    const platform = await startPlatform(options)
    t.after(() => platform.stop())
    return platform
  }

  /** A module, as stored. */
  async function configOf({ databaseUrl }: { databaseUrl: string }, { routeId }: Place): Promise<string> {
    const [row] = await queryDatabase(databaseUrl, `SELECT config FROM modules WHERE host_id = '${routeId}'`)
    return String(row?.config)
  }

  const setConfig = ({ routeId }: Place, config: string): string =>
    `UPDATE modules SET config = '${config}' WHERE host_id = '${routeId}'`

  test('secrets that were swapped between two routes in the database are refused, not used', async (t) => {
    const data = await lasting(t)
    const platform = await start(t, data)
    const [mine, theirs] = [await routeWith(platform, 'mine'), await routeWith(platform, 'theirs')]
    const [a, b] = [await configOf(data, mine), await configOf(data, theirs)]
    await changeDatabase(data.databaseUrl, [setConfig(mine, b), setConfig(theirs, a)])
    for (const { path, routeId } of [mine, theirs]) {
      const refused = await platform.admin.refused('ERR_SECRET_UNREADABLE', 'GET', `${path}/oidc`)
      assert.match(refused.msg, new RegExp(`modules/${routeId}/oidc/client_secret.*changed or moved`))
      assert.doesNotMatch(refused.msg, /mine|theirs|sealed/)
    }
    // Once it is set again, it works.
    await platform.admin.put(`${mine.path}/oidc`, login('mine'))
    assert.equal((await platform.admin.get(`${mine.path}/oidc`)).client_secret, 'mine')
  })

  test('a route whose webhook secret was swapped in the database lets nothing pass', async (t) => {
    const data = await lasting(t)
    const before = await start(t, data)
    const { id: backend_id } = await before.admin.create('/backends/http_response', { body: 'behind the guard' })
    const routes: string[] = []
    for (const [name, secret] of [
      ['mine.test', 'hush'],
      ['theirs.test', 'hush-hush'],
    ] as const) {
      const { id } = await before.admin.create('/edges/https', { hostports: [`${name}:443`] })
      const route = await before.admin.create(`/edges/https/${id}/routes`, {
        match_type: 'path_prefix',
        match: '/',
        backend: { backend_id },
        webhook_verification: { provider: 'github', secret },
      })
      routes.push(route.id)
    }
    await before.stop()
    const stored = await Promise.all(
      routes.map((id) =>
        queryDatabase(
          data.databaseUrl,
          `SELECT config FROM modules WHERE host_id = '${id}' AND module = 'webhook_verification'`,
        ),
      ),
    )
    const [a, b] = stored.map(([row]) => String(row?.config))
    await changeDatabase(
      data.databaseUrl,
      [b, a].map(
        (config, i) =>
          `UPDATE modules SET config = '${config}' WHERE host_id = '${routes[i]}' AND module = 'webhook_verification'`,
      ),
    )
    const after = await start(t, data)
    const answer = await ask({ name: 'mine.test', port: after.httpsPort, ca: after.ca }, { method: 'POST', body: 'x' })
    assert.deepEqual([answer.status, answer.code], [503, 'ERR_MODULE_UNAVAILABLE'])
    assert.ok(after.log.some((line) => line.includes('route is broken and refuses traffic')))
    assert.ok(!after.log.some((line) => line.includes('hush')))
  })

  test('a secret that was moved to another field, module or table is refused', async (t) => {
    const data = await lasting(t)
    const platform = await start(t, data)
    const { admin } = platform
    const route = await routeWith(platform, 'mine')
    await admin.put(`${route.path}/webhook_verification`, { provider: 'github', secret: 'hush' })
    const certificate = await admin.create('/tls_certificates', tlsPair)
    const sealed = /sealed:2:[^"]+/.exec(await configOf(data, route))?.[0] ?? ''
    assert.notEqual(sealed, '')
    const hook = JSON.stringify({ enabled: true, provider: 'github', secret: sealed })
    await changeDatabase(data.databaseUrl, [
      `UPDATE modules SET config = '${hook}' WHERE host_id = '${route.routeId}' AND module = 'webhook_verification'`,
    ])
    await admin.refused('ERR_SECRET_UNREADABLE', 'GET', `${route.path}/webhook_verification`)
    const [row] = await queryDatabase(data.databaseUrl, `SELECT fields FROM resources WHERE id = '${certificate.id}'`)
    const moved = String(row?.fields).replace(/sealed:2:[^"]+/, sealed)
    await changeDatabase(data.databaseUrl, [
      `UPDATE resources SET fields = '${moved.replaceAll("'", "''")}' WHERE id = '${certificate.id}'`,
    ])
    await admin.refused('ERR_SECRET_UNREADABLE', 'GET', `/tls_certificates/${certificate.id}`)
  })

  test('the key of the authority cannot be replaced by another sealed value', async (t) => {
    const data = await lasting(t)
    const platform = await start(t, data)
    const sealed = /sealed:2:[^"]+/.exec(await configOf(data, await routeWith(platform, 'mine')))?.[0] ?? ''
    await platform.stop()
    const [row] = await queryDatabase(data.databaseUrl, "SELECT value FROM meta WHERE key = 'certificate_authority'")
    const value = String(row?.value).replace(/sealed:2:[^"]+/, sealed)
    await changeDatabase(data.databaseUrl, [`UPDATE meta SET value = '${value}' WHERE key = 'certificate_authority'`])
    await assert.rejects(startPlatform(data), /key of the certificate authority.*restore the database/)
  })

  test('a database of an earlier version is resealed at start, and then refuses old values', async (t) => {
    const data = await lasting(t)
    const before = await start(t, data)
    const [mine, theirs] = [await routeWith(before, 'mine'), await routeWith(before, 'theirs')]
    await before.stop()
    const key = Buffer.from((await readFile(join(data.dataDir, 'secret.key'), 'utf8')).trim(), 'base64')
    const old = (place: Place, secret: string) =>
      JSON.stringify({ ...opened(place), client_secret: firstForm(key, secret) })
    const stored = new Map([
      [mine, JSON.parse(await configOf(data, mine)) as object],
      [theirs, JSON.parse(await configOf(data, theirs)) as object],
    ])
    const opened = (place: Place): object => stored.get(place) ?? {}
    await toFirstForm(data, key)
    await changeDatabase(data.databaseUrl, [
      setConfig(mine, old(mine, '"mine"')),
      setConfig(theirs, old(theirs, '"theirs"')),
    ])
    assert.doesNotMatch(await configOf(data, mine), /sealed:2:/)

    const after = await start(t, data)
    assert.equal((await after.admin.get(`${mine.path}/oidc`)).client_secret, 'mine')
    assert.equal((await after.admin.get(`${theirs.path}/oidc`)).client_secret, 'theirs')
    assert.match(await configOf(data, mine), /sealed:2:/)
    // A value that was sealed before, under the same key.
    await changeDatabase(data.databaseUrl, [setConfig(mine, old(mine, '"theirs"'))])
    await after.admin.refused('ERR_SECRET_UNREADABLE', 'GET', `${mine.path}/oidc`)
    await after.stop()
    const again = await start(t, data)
    await again.admin.refused('ERR_SECRET_UNREADABLE', 'GET', `${mine.path}/oidc`)
    await again.stop()
    // Removing the mark that everything was resealed does not help either.
    await changeDatabase(data.databaseUrl, ["DELETE FROM meta WHERE key = 'sealed_form'"])
    await assert.rejects(startPlatform(data), /somebody changed the database/)
    assert.match(await databaseContents(data.databaseUrl), /sealed:2:/)
  })
})

/** Seals as the first version did, without a place. */
function firstForm(key: Buffer, text: string): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `sealed:1:${sealed.toString('base64')}`
}

/** Turns a database, except for its modules, into that of an earlier version. */
async function toFirstForm(
  { databaseUrl, dataDir }: { databaseUrl: string; dataDir: string },
  key: Buffer,
): Promise<void> {
  const [row] = await queryDatabase(databaseUrl, "SELECT value FROM meta WHERE key = 'certificate_authority'")
  const authority = JSON.parse(String(row?.value)) as { cert: string; key: string }
  const sealer = readKeyFile(join(dataDir, 'secret.key'))
  const pem = sealer.open(authority.key, 'meta/certificate_authority/key')
  const value = JSON.stringify({ ...authority, key: firstForm(key, pem) })
  await changeDatabase(databaseUrl, [
    "DELETE FROM meta WHERE key = 'sealed_form'",
    // That version did not have SSH.
    "DELETE FROM meta WHERE key = 'ssh_host_key'",
    `UPDATE meta SET value = '${value}' WHERE key = 'certificate_authority'`,
  ])
}
