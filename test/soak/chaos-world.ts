/** One node under traffic: a real server and agent, an edge and a TCP endpoint, and what must hold after a fault. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startAgent } from '../support/agent-process.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { metric } from '../support/metrics.ts'
import { type ServeOptions, type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { type Counts, Traffic } from './chaos-traffic.ts'

/** How long anything may take to come, or to come back, in milliseconds. */
const PATIENCE_MS = 90_000

const API_KEY = 'chaos_test_api_key_of_the_first_admin'
const AUTHTOKEN = 'chaos_test_authtoken_of_the_first_user'

export interface ChaosTest extends Owner {
  readonly name: string
  diagnostic(line: string): void
}

export class ChaosWorld {
  readonly server: ServerProcess
  readonly traffic: Traffic
  readonly #options: ServeOptions
  readonly #test: ChaosTest

  private constructor(test: ChaosTest, parts: { server: ServerProcess; traffic: Traffic; options: ServeOptions }) {
    this.#test = test
    this.server = parts.server
    this.traffic = parts.traffic
    this.#options = parts.options
  }

  static async start(test: ChaosTest, given: Partial<ServeOptions> = {}): Promise<ChaosWorld> {
    const folder = mkdtempSync(join(tmpdir(), 'postern-chaos-'))
    test.after(() => rmSync(folder, { recursive: true, force: true }))
    const options: ServeOptions = {
      dataDir: join(folder, 'data'),
      ...given,
      env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN, ...given.env },
    }
    const server = await serve(options)
    test.after(async () => {
      server.kill('SIGCONT')
      server.kill('SIGKILL')
      await server.ended
    })
    const port = server.https.slice(server.https.lastIndexOf(':') + 1)
    const api = new ApiClient(server.url, API_KEY)
    const backend = await api.create('/backends/tunnel_group', { labels: { app: 'chaos' } })
    const edge = await api.create('/edges/https', { hostports: [`chaos.localhost:${port}`] })
    const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
    await api.create(`/edges/https/${edge.id}/routes`, route)

    const [web, echo] = [await httpUpstream(test), await tcpUpstream(test)]
    const caFile = join(options.dataDir, 'ca.pem')
    await startAgent(test, {
      server: server.agents,
      caFile,
      authtoken: AUTHTOKEN,
      tunnels: { web: { addr: web.port, labels: { app: 'chaos' } }, echo: { proto: 'tcp', addr: echo.port } },
    })
    const tcpUrl = await until('the TCP endpoint', async () => {
      const { tunnels } = await api.get('/tunnels')
      return tunnels.length === 2 && tunnels.find(({ proto }: Json) => proto === 'tcp')?.public_url
    })
    const ca = readFileSync(caFile, 'utf8')
    const url = `https://chaos.localhost:${port}`
    const traffic = new Traffic({ url, ca, tcpUrl, apiUrl: server.url, apiKey: API_KEY })
    await traffic.start()
    test.after(() => traffic.stop())
    const world = new ChaosWorld(test, { server, traffic, options })
    await world.flows({ requests: 50, echoes: 20, writes: 20 })
    return world
  }

  get api(): ApiClient {
    return new ApiClient(this.server.url, API_KEY)
  }

  lostLines(): Promise<number> {
    return metric(this.server.metricsUrl, 'postern_log_lines_lost_total')
  }

  /** Waits until each count has grown by so much; what the traffic must never see fails at once. */
  async flows(more: Partial<Counts>): Promise<void> {
    const start = { ...this.traffic.counts }
    const wanted = Object.entries(more) as [keyof Counts, number][]
    const missing = () => wanted.filter(([name, count]) => this.traffic.counts[name] < start[name] + count)
    const look = () => {
      this.#assertUnharmed()
      return missing().length === 0
    }
    await until(`${JSON.stringify(more)} more, after ${JSON.stringify(start)}`, look, { limitMs: PATIENCE_MS })
  }

  /** Asserts after the fault that all traffic flows again, and no acknowledged write is lost, even after a crash. */
  async assertWhole(): Promise<void> {
    await this.flows({ requests: 100, echoes: 50, writes: 20 })
    const { counts, acknowledged, refusals } = this.traffic
    await this.traffic.stop()
    this.#assertUnharmed()
    await this.#assertKept(this.api)
    this.server.kill('SIGKILL')
    await this.server.ended
    const { files: _, ...options } = this.#options
    const again = await serve(options)
    this.#test.after(() => again.kill('SIGKILL'))
    await this.#assertKept(new ApiClient(again.url, API_KEY))
    assert.equal((await again.stop()).code, 0)
    const statuses = refusals.size > 0 ? ` with ${[...refusals].join(', ')}` : ''
    process.stdout.write(
      `chaos: ${this.#test.name}: ${counts.requests} requests, ${counts.echoes} echoes, ` +
        `${acknowledged.size} writes kept, ${counts.refused} refused${statuses}, ${counts.cut} cut\n`,
    )
  }

  #assertUnharmed(): void {
    assert.deepEqual(this.traffic.faults, [])
    assert.equal(this.server.child.exitCode, null, 'the server runs')
  }

  async #assertKept(api: ApiClient): Promise<void> {
    const found = new Map<string, string>()
    for (let next: string | null = '/ip_policies?limit=100'; next !== null; ) {
      const page: { ip_policies: { id: string; description: string }[]; next_page_uri: string | null } =
        await api.get(next)
      for (const { id, description } of page.ip_policies) found.set(id, description)
      next = page.next_page_uri
    }
    for (const [id, description] of this.traffic.acknowledged) assert.equal(found.get(id), description, id)
  }
}
