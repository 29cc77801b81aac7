/** Sends hostile documents to a server that measures its own turns: through the API, as binds, and stored at start. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TestAgent } from '../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { ask } from '../e2e/edges/visitor.ts'
import { ApiClient } from '../support/api-client.ts'
import type { Turn } from '../support/turn-probe.ts'
import type { HostileDocument } from './hostile-documents.ts'
import type { Given, ProbeNews } from './probed-server.ts'

/** What a document did. */
export interface Effect extends Turn {
  readonly document: string
  readonly outcome: string
}

const entry = fileURLToPath(new URL('./probed-server.ts', import.meta.url))

export class DocumentsFuzz {
  readonly #dataDir: string
  #child: ChildProcess | undefined
  #api = new ApiClient('http://127.0.0.1', null)
  #agent: TestAgent | undefined
  #edgeEntry = { httpsPort: 0, ca: '' }
  #routes = 0
  /** Names of edges that are served. */
  readonly names: string[] = []
  #edgePath = ''
  #route = ''
  readonly outcomes = new Map<string, number>()

  private constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  static async start(): Promise<{ fuzz: DocumentsFuzz; atStart: Turn }> {
    const fuzz = new DocumentsFuzz(await mkdtemp(join(tmpdir(), 'postern-documents-')))
    const atStart = await fuzz.#startServer()
    await fuzz.#newEdge()
    // Warms up code and threads, so that later turns measure only the documents.
    await fuzz.send({
      what: 'warm',
      to: 'route',
      at: 'policy',
      body: { inbound: [{ expressions: ['true'], actions: [{ type: 'deny' }] }] },
    })
    await fuzz.longest()
    return { fuzz, atStart }
  }

  /** Sends a document; returns the longest turn that it caused. */
  async send(document: HostileDocument): Promise<Effect> {
    const outcome = await this.#deliver(document)
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
    const turn = await this.longest()
    const about = [
      document.to,
      document.at,
      document.to === 'bind' ? Object.keys(document.body as object)[0] : '',
    ].join(' ')
    return { ...turn, document: `${document.what} (${about.trim()})`, outcome }
  }

  /** The longest turn since the last call. */
  async longest(): Promise<Turn> {
    this.#child?.send('longest')
    return (await this.#nextReport()).longest
  }

  /** The address of the last edge. */
  get edgeEntry(): { readonly name: string; readonly port: number; readonly ca: string } {
    return { name: this.names.at(-1) ?? '', port: this.#edgeEntry.httpsPort, ca: this.#edgeEntry.ca }
  }

  /** Restarts the server with what is stored, and visits every edge; returns the longest turn of each. */
  async restart(): Promise<{ atStart: Turn; visits: readonly Effect[] }> {
    await this.#stopServer()
    const atStart = await this.#startServer()
    const visits: Effect[] = []
    for (const name of this.names) {
      const { status } = await ask({ name, port: this.#edgeEntry.httpsPort, ca: this.#edgeEntry.ca }, {})
      visits.push({ ...(await this.longest()), document: `the first visit of ${name}`, outcome: String(status) })
    }
    return { atStart, visits }
  }

  async close(): Promise<void> {
    await this.#stopServer()
    await rm(this.#dataDir, { recursive: true, force: true })
  }

  async #deliver({ to, at, body }: HostileDocument): Promise<string> {
    if (to === 'bind') {
      const agent = await this.#connected()
      // A refused bind leaves nothing at the agent; a served one is removed.
      const bound = await agent.bind({ opts: body as Record<string, unknown> }).catch((error: Error) => error)
      if (bound instanceof Error) return `bind: ${bound.message.slice(0, 40)}`
      if ('ngrok' in bound) return `bind ${bound.ngrok}`
      await agent.unbind(bound.id)
      return 'bind served'
    }
    if (to === 'raw') {
      const { status, body: answer } = await this.#api.send('POST', `/${at}`, { body: String(body) })
      return `${status} ${answer?.error_code ?? ''}`
    }
    if (to === 'edge') {
      const match = `/r${++this.#routes}`
      const sent = { match_type: 'path_prefix', match, ...(body as object) }
      const { status, body: answer } = await this.#api.send('POST', `${this.#edgePath}/routes`, { body: sent })
      // After some expensive routes, a new edge is created for the next ones.
      if (status === 201 && this.#routes % 5 === 0) await this.#newEdge()
      return `${status} ${answer?.error_code ?? ''}`
    }
    const { status, body: answer } = await this.#api.send('PUT', `${this.#route}/${at}`, { body })
    return `${status} ${answer?.error_code ?? ''}`
  }

  async #newEdge(): Promise<void> {
    const name = `d${this.names.length}.edge.test`
    const edge = await this.#api.create('/edges/https', { hostports: [`${name}:443`] })
    this.#edgePath = `/edges/https/${edge.id}`
    const route = await this.#api.create(`${this.#edgePath}/routes`, { match_type: 'path_prefix', match: '/' })
    this.#route = `${this.#edgePath}/routes/${route.id}`
    this.names.push(name)
  }

  async #connected(): Promise<TestAgent> {
    if (this.#agent) return this.#agent
    const agent = new TestAgent({ port: this.#ports.agents, isTalkative: false })
    await agent.authenticate({ authtoken: new Secret(this.#ports.authtoken) })
    void agent.closed.then(() => {
      this.#agent = undefined
    })
    this.#agent = agent
    return agent
  }

  #ports = { agents: 0, authtoken: '' }

  async #startServer(): Promise<Turn> {
    const given: Given = { dataDir: this.#dataDir, tcpPorts: '20000-20009' }
    this.#child = fork(entry, [JSON.stringify(given)], { execArgv: [] })
    const report = await this.#nextReport()
    if (!('ready' in report)) throw new Error('the server sent something else first')
    this.#api = new ApiClient(report.ready.url, report.apiKey)
    this.#edgeEntry = report.ready
    this.#ports = { agents: Number(report.ready.agents.split(':').at(-1)), authtoken: report.authtoken }
    return report.longest
  }

  async #stopServer(): Promise<void> {
    this.#agent?.mux.close()
    this.#agent = undefined
    const child = this.#child
    if (!child || child.exitCode !== null) return
    const exited = once(child, 'exit')
    child.send('stop')
    await exited
  }

  async #nextReport(): Promise<ProbeNews> {
    const child = this.#child
    if (!child) throw new Error('there is no server')
    const answered = new AbortController()
    const gone = once(child, 'exit', { signal: answered.signal }).then(([code]) => {
      throw new Error(`the server ended with ${code}`)
    })
    const message = once(child, 'message', { signal: answered.signal })
    try {
      const [report] = (await Promise.race([message, gone])) as [ProbeNews]
      return report
    } finally {
      gone.catch(() => {})
      message.catch(() => {})
      answered.abort()
    }
  }
}
