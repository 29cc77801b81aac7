/** A server of several processes switches to what is on disk while it serves. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from '../../src/agent/library.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { posternHere } from '../support/postern-here.ts'
import { postern, type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'

const API_KEY = 'test_api_key_of_the_first_admin_0001'
const AUTHTOKEN = 'test_authtoken_of_the_first_admin_01'
const folder = mkdtempSync(join(tmpdir(), 'postern-upgrade-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Pause between two visits of one visitor, in milliseconds: the processor time of visitors delays the upgrade. */
const BETWEEN_MS = 20

/** Names that visitors ask for: one that an edge serves by itself, and one of an agent. */
const EDGE = 'edge.example.test'
const AGENT = 'agent.example.test'

/** Visits a name, one request after the other, on a kept connection or on new ones, until it is stopped. */
function visitor(name: string, port: number, { isKept }: { readonly isKept: boolean }) {
  const agent = new Agent({ keepAlive: isKept, maxSockets: 1, rejectUnauthorized: false })
  const outcome = { served: 0, failed: [] as string[] }
  let isStopped = false
  const visit = (): Promise<void> =>
    new Promise((resolve) => {
      const options = { host: '127.0.0.1', port, servername: name, agent, path: '/' }
      const sent = httpsRequest({ ...options, headers: { host: name } }, (answer) => {
        answer.resume().once('end', () => {
          if (answer.statusCode === 200) outcome.served++
          else outcome.failed.push(String(answer.statusCode))
          resolve()
        })
      })
      sent.once('error', (error: NodeJS.ErrnoException) => {
        // The connection was closed while the request was on its way, so any HTTP/1.1 client would retry it.
        if (!(isKept && sent.reusedSocket && error.code === 'ECONNRESET')) outcome.failed.push(error.message)
        resolve()
      })
      sent.end()
    })
  const done = (async () => {
    while (!isStopped) {
      await visit()
      await pause(BETWEEN_MS)
    }
    agent.destroy()
  })()
  return {
    outcome,
    async stop() {
      isStopped = true
      await done
      return outcome
    },
  }
}

/** Resolves when new connections, which go to the workers in turn, are answered many times in a row. */
async function inForce(port: number): Promise<void> {
  for (;;) {
    const first = visitor(EDGE, port, { isKept: false })
    while (first.outcome.served + first.outcome.failed.length < 40) await pause(BETWEEN_MS)
    const { failed } = await first.stop()
    if (failed.length === 0) return
  }
}

/** How many lines report that an upgrade was done, or that it failed. */
function upgrades(text: string): { done: number; failed: number } {
  const count = (words: string) => text.split(words).length - 1
  return { done: count('upgrade done'), failed: count('upgrade failed') }
}

describe('an upgrade', () => {
  const start = async (t: TestContext, name: string, flags: Record<string, string>) => {
    const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN }
    const server = await serve({ dataDir: join(folder, name), env, flags })
    t.after(() => server.kill('SIGKILL'))
    const lines = { text: '' }
    server.child.stderr?.on('data', (text: string) => {
      lines.text += text
    })
    return { server, lines }
  }
  const ordered = async (server: ServerProcess, lines: { text: string }): Promise<void> => {
    const before = upgrades(lines.text)
    server.kill('SIGUSR2')
    for (;;) {
      const now = upgrades(lines.text)
      if (now.done + now.failed > before.done + before.failed) return
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  /** The old processes do not wait for the end of the drain time. */
  const oldOnesEnded = (lines: { text: string }, count: number) =>
    until('the old processes have ended', () => lines.text.split('before the upgrade have ended').length > count)

  test('takes over under traffic, by signal or command, keeps agents online, and changes nothing if it cannot start', async (t) => {
    const config = join(folder, 'postern.yml')
    writeFileSync(config, 'log_level: info\n')
    // Longer than the test: waiting for the whole drain time would make it fail.
    const { server, lines } = await start(t, 'a', { workers: '2', config, 'drain-timeout': '10m' })
    const api = new ApiClient(server.url, API_KEY)
    const port = Number(server.https.split(':').at(-1))
    const backend = await api.create('/backends/http_response', { status_code: 200, body: 'fine', headers: {} })
    const edge = await api.create('/edges/https', { hostports: [`${EDGE}:${port}`] })
    await api.create(`/edges/https/${edge.id}/routes`, {
      match: '/',
      match_type: 'path_prefix',
      backend: { enabled: true, backend_id: backend.id },
    })
    const service = await httpUpstream(t, (_request, response) => void response.end('fine'))
    const events: string[] = []
    const agent = await connect({
      server: server.agents,
      authtoken: AUTHTOKEN,
      ca: readFileSync(join(folder, 'a', 'ca.pem'), 'utf8'),
      onEvent: ({ type }) => events.push(type),
    })
    t.after(() => agent.close())
    const { url } = await agent.forward({ addr: service.port, domain: AGENT })
    const [before] = (await api.get('/tunnel_sessions')).tunnel_sessions
    // The API answers a moment before every worker serves the change.
    await inForce(port)
    const visitors = [EDGE, AGENT].flatMap((name) => [true, false].map((isKept) => visitor(name, port, { isKept })))
    t.after(() => Promise.all(visitors.map((each) => each.stop())))

    await ordered(server, lines)
    assert.deepEqual(upgrades(lines.text), { done: 1, failed: 0 }, lines.text)
    await oldOnesEnded(lines, 1)
    // Stored data is there, and new writes come into force: the new control process serves.
    assert.equal((await api.get('/edges/https')).https_edges.length, 1)

    writeFileSync(config, 'log_level: shouting\n')
    await ordered(server, lines)
    assert.deepEqual(upgrades(lines.text), { done: 1, failed: 1 })
    assert.match(lines.text, /log-level/)

    const command = () => posternHere(['upgrade', '--data-dir', join(folder, 'a')])
    writeFileSync(config, 'regoin: here\n')
    const refused = await command()
    assert.equal(refused.code, 1)
    assert.match(refused.err, /^error: nothing has changed: .*regoin/)

    writeFileSync(config, 'log_level: info\nworkers: 1\n')
    const done = await postern(['upgrade', '--data-dir', join(folder, 'a')])
    assert.match(done.out, /^Restarted version \S+\. The old processes finish what is open\.$/m)
    assert.equal(done.code, 0, done.err)
    assert.match(done.err, /^Starting .*\nHanding over .*\nPreparing .*\n$/)
    await oldOnesEnded(lines, 2)
    await api.update(`/edges/https/${edge.id}`, { description: 'after' })

    for (const each of visitors) {
      const { served, failed } = await each.stop()
      assert.deepEqual(failed, [])
      assert.ok(served > 0)
    }
    const { tunnel_sessions: sessions } = await api.get('/tunnel_sessions')
    assert.deepEqual(sessions, [before])
    assert.deepEqual(
      (await api.get('/tunnels')).tunnels.map((each: Json) => each.public_url),
      [url],
    )
    assert.deepEqual(events, ['online'])
    await agent.close()
    const { code } = await server.stop()
    assert.equal(code, 0)
    const late = await command()
    assert.equal(late.code, 1)
    assert.match(late.err, /no server is listening at/)
  })

  test('of a server with one process is refused, and the server goes on', async (t) => {
    const { server } = await start(t, 'b', { workers: '0' })
    server.kill('SIGUSR2')
    await server.says(/cannot be upgraded while it runs/)
    assert.equal((await new ApiClient(server.url, API_KEY).get('/edges/https')).https_edges.length, 0)
    assert.equal((await server.stop()).code, 0)
  })
})
