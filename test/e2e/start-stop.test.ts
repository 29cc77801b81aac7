/** How the real program starts and stops, and its messages when it cannot. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { ApiClient } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { startPlatform } from '../support/platform.ts'
import { posternHere, refusedHere } from '../support/postern-here.ts'
import {
  type Ended,
  postern,
  type ServeOptions,
  type ServerProcess,
  serve,
  serveArgs,
} from '../support/server-process.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-start-'))
after(() => rmSync(root, { recursive: true, force: true }))
/** A folder that the server itself is to create. */
const newDataDir = () => join(mkdtempSync(join(root, 'run-')), 'data')

/** The credentials that the first start printed. */
function credentials(out: string): { apiKey: string; authtoken: string } {
  const [, apiKey = ''] = /^ +Admin API key +(\S+)$/m.exec(out) ?? []
  const [, authtoken = ''] = /^ +Agent authtoken +(\S+)$/m.exec(out) ?? []
  return { apiKey, authtoken }
}

/** Starts a server that cannot start; returns the line that it prints. */
async function refusal(options: ServeOptions, { code = 1 }: { code?: number } = {}): Promise<string> {
  return lineOf(await postern(serveArgs(options), options), code)
}

/** The same without a program of its own. */
async function refusalHere(options: ServeOptions, { code = 1 }: { code?: number } = {}): Promise<string> {
  return lineOf(await refusedHere(options), code)
}

function lineOf({ code, out, err }: Pick<Ended, 'code' | 'out' | 'err'>, wanted: number): string {
  assert.equal(code, wanted, err)
  assert.match(err, /^error: [^\n]+\n(\(Did you mean [^\n]+\?\)\n)?$/, 'one line, and perhaps a hint')
  assert.doesNotMatch(out, /Listening/)
  return err
}

/** Asserts that it exited with 0 and printed no warnings or errors. */
function assertClean({ code, err }: Pick<Ended, 'code' | 'err'>): void {
  const complaints = err.split('\n').filter((line) => line !== '' && !line.startsWith('{"level":"info"'))
  assert.deepEqual({ code, complaints }, { code: 0, complaints: [] })
}

/** Asserts that only the owner can read the server's files; called while it runs, when there are most files. */
function assertPrivate({ dataDir, databaseUrl }: { dataDir: string; databaseUrl: string }): void {
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
  const database = databaseUrl.startsWith('sqlite:') ? databaseUrl.slice('sqlite:'.length) : undefined
  assert.equal(mode(dataDir), '700')
  for (const file of [join(dataDir, 'secret.key'), ...(database ? [database, `${database}-wal`] : [])]) {
    assert.equal(mode(file), '600', file)
  }
}

/** Where other nodes connect, as the server prints it. */
async function clusterAddress(server: ServerProcess): Promise<string | undefined> {
  const printed = /^Other nodes: (\S+), this node is/m
  await server.says(printed)
  return printed.exec(server.out())?.[1]
}

describe('the program', () => {
  eachStore((store) => {
    // Processes that share a file lock it; those that share a PostgreSQL have only its connections, as one process has.
    const command = store.name === 'sqlite' ? postern : posternHere

    test('starts without configuration, serves, keeps its files private, shows its credentials once, and ends on SIGTERM', async () => {
      const options = { dataDir: newDataDir(), databaseUrl: await store.url() }
      const first = await serve(options)
      assert.deepEqual(await (await fetch(`${first.url}/healthz`)).json(), { status: 'ok' })
      const ready = await fetch(`${first.url}/readyz`)
      assert.equal(ready.status, 200)
      const { addresses } = (await ready.json()) as { addresses: Record<string, string> }
      const { agents, ssh, https, http } = first
      const [api, metrics] = [new URL(first.url).host, new URL(first.metricsUrl).host]
      const others = store.name === 'postgres' ? { cluster: await clusterAddress(first) } : {}
      assert.deepEqual(addresses, { api, metrics, agents, ssh, https, http, ...others })
      assert.doesNotMatch(JSON.stringify(addresses), /:0"/)
      assert.equal((await fetch(`${first.metricsUrl}/metrics`)).status, 200)
      const { apiKey, authtoken } = credentials(first.out())
      assert.match(apiKey, /^\w{55,}$/)
      assert.match(authtoken, /^\w{55,}$/)
      const { keys } = await new ApiClient(first.url, apiKey).get('/api_keys')
      assert.equal(keys.length, 1)
      assert.equal((await new ApiClient(first.url, authtoken).send('GET', '/api_keys')).status, 401)
      assertPrivate(options)
      assertClean(await first.stop())

      const second = await startPlatform(options)
      await new ApiClient(second.url, apiKey).get('/api_keys')
      assert.equal(second.adminId, '', 'it makes no further credentials')
      await second.stop()
    })

    test('`postern admin` creates users and keys without a key, whether the server runs or not', async () => {
      const options = { dataDir: newDataDir(), databaseUrl: await store.url() }
      const place = ['--data-dir', options.dataDir, '--database-url', options.databaseUrl]
      const admin = async (run: typeof command, ...args: string[]) => {
        const ended = await run(['admin', ...args, '--json', ...place])
        assertClean(ended)
        return JSON.parse(ended.out)
      }
      const keyOf = async (name: string, run: typeof command) => {
        const user = await admin(run, 'create-user', '--name', name, '--role', 'admin')
        return admin(run, 'create-key', '--owner', user.id)
      }
      const early = await keyOf('Early', command)
      const server = await (store.name === 'sqlite' ? serve(options) : startPlatform(options))
      const late = await keyOf('Late', posternHere)
      for (const { id, token } of [early, late]) {
        assert.equal((await new ApiClient(server.url, token).get(`/api_keys/${id}`)).id, id)
      }
      const users = await admin(posternHere, 'list-users')
      assert.deepEqual(users.map(({ name }: { name: string }) => name).sort(), ['Early', 'Late', 'admin'])
      const nobody = await command(['admin', 'create-key', '--owner', 'usr_none', ...place])
      assert.equal(nobody.code, 1)
      assert.match(nobody.err, /^error: [^\n]*no user or bot[^\n]*\n$/)
      const ended = await server.stop()
      if (ended) assertClean(ended)
    })

    test('commands that run at the same time on an empty database all succeed', async () => {
      const place = ['--data-dir', newDataDir(), '--database-url', await store.url()]
      const made = await Promise.all(
        ['a', 'b', 'c'].map((name) => command(['admin', 'create-user', '--name', name, ...place])),
      )
      for (const ended of made) assertClean(ended)
      const { out } = await posternHere(['admin', 'list-users', '--json', ...place])
      assert.equal(JSON.parse(out).length, 3)
    })
  })

  test('a second server on one SQLite folder is refused, commands are not, and a killed server leaves no lock, nor shows its credentials again', async () => {
    const dataDir = newDataDir()
    const first = await serve({ dataDir })
    const { apiKey, authtoken } = credentials(first.out())
    const line = await refusal({ dataDir })
    assert.ok(line.includes(dataDir), line)
    assert.match(line, /another server, process \d+, uses the SQLite database .*--data-dir/)
    const link = join(mkdtempSync(join(root, 'link-')), 'same')
    symlinkSync(dataDir, link)
    assert.match(await refusalHere({ dataDir: link }), /another server/, 'by whatever name')
    const elsewhere = { dataDir: newDataDir(), databaseUrl: `sqlite:${join(dataDir, 'postern.db')}` }
    assert.match(await refusalHere(elsewhere), /another server/, 'the database counts, not the folder of the key')
    const { out } = await posternHere(['admin', 'list-users', '--json', '--data-dir', dataDir])
    assert.equal(JSON.parse(out).length, 1)
    await new ApiClient(first.url, apiKey).get('/api_keys')

    first.kill('SIGKILL')
    await first.ended
    const again = await serve({ dataDir })
    await new ApiClient(again.url, apiKey).get('/api_keys')
    const ended = await again.stop()
    assertClean(ended)
    assert.doesNotMatch(ended.out, /API key|authtoken|first start/i)
    for (const secret of [apiKey, authtoken]) assert.ok(!ended.out.includes(secret))
  })

  for (const variable of ['POSTERN_BOOTSTRAP_API_KEY', 'POSTERN_BOOTSTRAP_AUTHTOKEN']) {
    test(`a short ${variable} is refused before anything is created`, async () => {
      const dataDir = newDataDir()
      const line = await refusalHere({ dataDir, env: { [variable]: 'short_secret' } }, { code: 2 })
      assert.match(line, new RegExp(`${variable}.*32`))
      assert.ok(!line.includes('short_secret'))
      assert.ok(!existsSync(dataDir))
    })
  }

  test('preset credentials are not printed; a request under way at shutdown is answered, and nothing new is accepted', async () => {
    const apiKey = `preset_api_key_${randomBytes(12).toString('hex')}`
    const authtoken = `preset_authtoken_${randomBytes(12).toString('hex')}`
    const env = { POSTERN_BOOTSTRAP_API_KEY: apiKey, POSTERN_BOOTSTRAP_AUTHTOKEN: authtoken }
    const dataDir = newDataDir()
    const server = await serve({ dataDir, env, flags: { 'drain-timeout': '10m' } })
    const { credentials: made } = await new ApiClient(server.url, apiKey).get('/credentials')
    assert.equal(made.length, 1)
    const slow = await slowCreate(server.url, apiKey)
    server.kill('SIGTERM')
    await server.says(/server stopping/)
    await assert.rejects(fetch(`${server.url}/healthz`), 'it accepts nothing new')
    const answer = await slow.finish()
    assert.equal(answer.status, 201, answer.body)
    assert.equal(answer.connection, 'close', 'the caller is told to close it, so it does not stay idle')
    const ended = await server.ended
    assertClean(ended)
    for (const secret of [apiKey, authtoken]) assert.ok(!ended.out.includes(secret) && !ended.err.includes(secret))

    const again = await startPlatform({ dataDir })
    const { id } = JSON.parse(answer.body)
    assert.equal((await new ApiClient(again.url, apiKey).get(`/ip_policies/${id}`)).description, 'slow')
    await again.stop()
  })

  test('a request that outlasts the drain time does not delay the exit', async () => {
    const server = await serve({ dataDir: newDataDir(), flags: { 'drain-timeout': '100ms' } })
    const slow = await slowCreate(server.url, credentials(server.out()).apiKey)
    assertClean(await server.stop())
    await assert.rejects(slow.finish())
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`a second signal ends it at once: ${signal}`, async () => {
      const server = await serve({ dataDir: newDataDir(), flags: { 'drain-timeout': '10m' } })
      const slow = await slowCreate(server.url, credentials(server.out()).apiKey)
      server.kill('SIGTERM')
      await server.says(/server stopping/)
      server.kill(signal)
      assert.equal((await server.ended).code, 1)
      await assert.rejects(slow.finish())
    })
  }

  test('a taken port is reported, and the next start still counts as the first', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const dataDir = newDataDir()
    for (const flag of ['api-listen', 'metrics-listen', 'agent-listen', 'ssh-listen', 'https-listen', 'http-listen']) {
      const refused = flag === 'http-listen' ? refusal : refusalHere
      const line = await refused({ dataDir, flags: { [flag]: `127.0.0.1:${port}` } })
      assert.match(line, new RegExp(`127\\.0\\.0\\.1:${port} is in use .*--${flag}`))
    }
    other.close()
    const server = await startPlatform({ dataDir })
    assert.notEqual(server.adminId, '', 'it made the first credentials')
    await server.admin.get('/api_keys')
    await server.stop()
  })

  const misspelt: readonly [name: string, options: Partial<ServeOptions>, says: RegExp][] = [
    ['flag', { flags: { 'data-dri': '/x' } }, /data-dri[\s\S]*--data-dir/],
    ['variable', { env: { POSTERN_API_LISTNE: '127.0.0.1:0' } }, /POSTERN_API_LISTNE.*POSTERN_API_LISTEN/],
  ]
  for (const [name, options, says] of misspelt) {
    test(`an unknown ${name} is refused with the nearest known one`, async () => {
      assert.match(await refusal({ dataDir: newDataDir(), ...options }, { code: 2 }), says)
    })
  }

  test('a PostgreSQL that does not answer is reported', async () => {
    const line = await refusalHere({ dataDir: newDataDir(), databaseUrl: 'postgres://u:hunter2@127.0.0.1:1/db' })
    assert.match(line, /nothing is listening at the address of the database.*--database-url/)
    assert.ok(!line.includes('hunter2'))
  })

  test('a key file that is missing, damaged or of another database is reported, and the right one still works', async () => {
    const options = { dataDir: newDataDir() }
    await (await startPlatform(options)).stop()
    const file = join(options.dataDir, 'secret.key')
    const right = readFileSync(file)
    rmSync(file)
    assert.match(await refusalHere(options), /secret\.key is missing.*restore it from a backup.*--key-file/)
    assert.ok(!existsSync(file), 'no new one is created')
    for (const wrong of ['', 'not a key\n', randomBytes(31).toString('base64')]) {
      writeFileSync(file, wrong)
      assert.match(await refusalHere(options), /secret\.key is not a key file/)
    }
    writeFileSync(file, randomBytes(32).toString('base64'))
    assert.match(await refusalHere(options), /secret\.key is not the one that seals this database/)
    writeFileSync(file, right)
    await (await startPlatform(options)).stop()
  })

  test('runs under an older Node on PATH', async (t) => {
    const node = olderNode()
    if (node === undefined) {
      t.skip('no older Node on this machine')
      return
    }
    const server = await serve({ dataDir: newDataDir(), node })
    await new ApiClient(server.url, credentials(server.out()).apiKey).get('/api_keys')
    assertClean(await server.stop())
  })
})

describe('two servers on one PostgreSQL', () => {
  eachStore((store) => {
    if (store.name === 'sqlite') return

    type Start = (options: { databaseUrl: string; flags: Record<string, string> }) => Promise<{
      readonly url: string
      /** Empty when it shows none. */
      readonly apiKey: string
      readonly stop: () => Promise<void>
    }>
    const starts: Readonly<Record<string, Start>> = {
      'two processes': async (options) => {
        const server = await serve({ dataDir: newDataDir(), ...options })
        const { apiKey } = credentials(server.out())
        return { url: server.url, apiKey, stop: async () => assertClean(await server.stop()) }
      },
      'one process': async (options) => {
        const server = await startPlatform({ dataDir: newDataDir(), ...options })
        const { url, adminId, apiKey } = server
        return { url, apiKey: adminId === '' ? '' : apiKey, stop: () => server.stop() }
      },
    }
    for (const [where, start] of Object.entries(starts)) {
      test(`that start at the same moment in ${where} on an empty database create one set of credentials and serve the same data`, async () => {
        const databaseUrl = await store.url()
        const flags = { 'key-file': join(newDataDir(), 'shared.key') }
        const [one, two] = await Promise.all([0, 1].map(() => start({ databaseUrl, flags })))
        assert.ok(one && two)
        const firsts = [one, two].map(({ apiKey }) => apiKey).filter((key) => key !== '')
        assert.equal(firsts.length, 1, 'exactly one shows credentials')
        const [here, there] = [one, two].map(({ url }) => new ApiClient(url, firsts[0] ?? ''))
        assert.ok(here && there)

        const policy = await here.create('/ip_policies', { description: 'shared' })
        assert.equal((await there.get(`/ip_policies/${policy.id}`)).description, 'shared')
        await there.update(`/ip_policies/${policy.id}`, { description: 'changed' })
        assert.equal((await here.get(`/ip_policies/${policy.id}`)).description, 'changed')

        const { id, token } = await here.create('/api_keys')
        const clients = [one, two].map(({ url }) => new ApiClient(url, token))
        for (const client of clients) await client.get('/api_keys')
        await there.delete(`/api_keys/${id}`)
        for (const client of clients) assert.equal((await client.send('GET', '/api_keys')).status, 401)
        await Promise.all([one.stop(), two.stop()])
      })
    }

    test('with different key files: the second refuses to start', async () => {
      const databaseUrl = await store.url()
      const first = await startPlatform({ databaseUrl })
      const line = await refusalHere({ dataDir: newDataDir(), databaseUrl })
      assert.match(line, /not the one that seals this database|is missing/)
      await first.stop()
    })

    test('with different key files, at the same moment: one of them refuses to start', async () => {
      const databaseUrl = await store.url()
      const tries = await Promise.allSettled([0, 1].map(() => serve({ dataDir: newDataDir(), databaseUrl })))
      const running = tries.filter((each) => each.status === 'fulfilled')
      assert.equal(running.length, 1)
      for (const { value } of running) await value.stop()
    })
  })
})

/** Sends half of a POST, and waits until the server has begun to read it. */
async function slowCreate(url: string, apiKey: string) {
  const body = JSON.stringify({ description: 'slow' })
  const sending = request(`${url}/ip_policies`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'service-version': '2',
      'content-type': 'application/json',
      'content-length': body.length,
      connection: 'keep-alive',
      expect: '100-continue',
    },
  })
  const answered = once(sending, 'response')
  // A rejection is seen again by the caller of `finish`.
  answered.catch(() => {})
  sending.flushHeaders()
  await once(sending, 'continue')
  sending.write(body.slice(0, 5))
  return {
    async finish() {
      sending.end(body.slice(5))
      const [response] = await answered
      const { statusCode, headers } = response as IncomingMessage
      return { status: statusCode, connection: headers.connection, body: await text(response) }
    },
  }
}

/** An older Node on this machine, if there is one: npm and the test runner put theirs first on PATH. */
function olderNode(): string | undefined {
  const candidates = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'))
  return candidates.find((node) => {
    if (!existsSync(node)) return false
    const major = Number(/^v(\d+)/.exec(spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout)?.[1])
    return major >= 14 && major < 24
  })
}
