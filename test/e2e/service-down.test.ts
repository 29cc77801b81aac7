/** A service that is down: visitors get our page, whose id leads to the logs, and its owner sees the requests. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type AgentProcess, startAgent } from '../support/agent-process.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { nobody } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'

let platform: Platform
before(async () => {
  platform = await startPlatform()
})
after(() => platform.stop())

interface Line {
  readonly msg: string
  readonly request?: string
  readonly status?: number
  readonly fault?: string
  readonly tunnel?: string
  readonly reason?: string
}

/** The lines with the id of this request. */
function about(id: string, text: string): Line[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{'))
  return lines.map((line) => JSON.parse(line) as Line).filter(({ request }) => request === id)
}

async function loggedBy(agent: AgentProcess, id: string): Promise<Line | undefined> {
  await until('the agent has a line about it', async () => about(id, agent.out()).length > 0)
  return about(id, agent.out())[0]
}

describe('a service that is down', () => {
  for (const version of ['1.1', '2'] as const) {
    for (const app_protocol of ['http1', 'http2'] as const) {
      test(`is shown as our page over HTTP/${version}, whose request is in both logs (${app_protocol})`, async (t) => {
        const { port } = await nobody()
        const { agents: server, caFile, authtoken } = platform
        const domain = `down-${version === '2' ? 2 : 1}-${app_protocol}.example.com`
        const tunnels = { web: { addr: `127.0.0.1:${port}`, domain, app_protocol } }
        const agent = await startAgent(t, { server, caFile, authtoken, tunnels })
        const url = `https://${domain}:${platform.httpsPort}`
        for (const [method, accept] of [
          ['GET', 'text/html'],
          ['GET', 'application/json'],
          ['POST', '*/*'],
        ] as const) {
          const body = method === 'POST' ? Buffer.alloc(300_000, 'x') : undefined
          const asked = { version, method, headers: { accept }, path: '/secret?token=x', ...(body && { body }) }
          const answer = await visit(url, platform, asked)
          assert.deepEqual([answer.status, answer.headers['postern-error-code']], [502, 'ERR_UPSTREAM_UNREACHABLE'])
          const id = String(answer.headers['postern-request-id'])
          assert.match(id, /^[0-9a-f]{32}$/)
          assert.ok(answer.text.includes(id))
          for (const secret of ['127.0.0.1', String(port), 'localhost', 'token']) {
            assert.ok(!answer.text.includes(secret), `visitors do not see ${secret}`)
          }
          const own = await loggedBy(agent, id)
          assert.deepEqual([own?.msg, own?.tunnel], ['service does not answer', 'web'])
          assert.match(own?.reason ?? '', new RegExp(`nothing listens at .*127\\.0\\.0\\.1:${port}`))
          await until('the server has a line', async () => about(id, platform.log.join('')).length > 0)
          const [line] = about(id, platform.log.join(''))
          assert.deepEqual([line?.msg, line?.status, line?.fault], ['request', 502, 'ERR_UPSTREAM_UNREACHABLE'])
        }
      })
    }
  }
})

test('a request that is refused before routing has an id that is in the log too', async () => {
  const { status, headers, text } = await visit(`https://localhost:${platform.httpsPort}`, platform)
  assert.equal(status, 404)
  const id = String(headers['postern-request-id'])
  assert.ok(text.includes(`request ${id}\n`))
  await until('the server has a line', async () => about(id, platform.log.join('')).length > 0)
  assert.equal(about(id, platform.log.join(''))[0]?.fault, 'ERR_ENDPOINT_OFFLINE')
})
