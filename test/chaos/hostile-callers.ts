/** Two API callers in a separate process: one sends hostile documents, the other lists all edges. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { hostileDocuments, seeded } from '../fuzz/hostile-documents.ts'
import { type Answer, ApiClient } from '../support/api-client.ts'
import { dearDocuments, dearPatterns } from '../support/dear-documents.ts'
import type { Owner } from '../support/upstream.ts'

export interface CallersOptions {
  readonly api: { readonly url: string; readonly key: string }
}

export interface CallersReport {
  /** Number of documents by status; 0 is no response. */
  readonly documents: Readonly<Record<string, number>>
  readonly pages: number
  /** Edges in the longest list. */
  readonly listed: number
  /** Errors of pages that failed. */
  readonly pageFailures: readonly string[]
  /** Responses of 500 and above, except that the server is busy. */
  readonly broken: readonly string[]
}

export interface Callers {
  stop(): Promise<CallersReport>
}

const PAGE = 100

/** The pause after a failed call, in milliseconds. */
const FAILED_MS = 100

/** How many generated documents are sent between two rounds of the fixed ones. */
const GENERATED = 20

export function startCallers(owner: Owner, options: CallersOptions): Callers {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'advanced' })
  owner.after(() => child.kill('SIGKILL'))
  // Real callers run on other machines, and take no processor time from the server.
  setPriority(child.pid ?? 0, constants.priority.PRIORITY_LOW)
  child.send(options)
  return {
    async stop() {
      child.send('stop')
      const [report] = (await once(child, 'message')) as [CallersReport] // sent below
      child.disconnect()
      return report
    },
  }
}

class RunningCallers {
  readonly #api: ApiClient
  readonly #documents = new Map<string, number>()
  readonly #pageFailures: string[] = []
  readonly #broken: string[] = []
  #pages = 0
  #listed = 0
  #isOver = false

  constructor({ api }: CallersOptions) {
    this.#api = new ApiClient(api.url, api.key)
  }

  async run(): Promise<void> {
    await Promise.all([this.#sendDocuments(), this.#listEdges()])
  }

  stop(): void {
    this.#isOver = true
  }

  report(): CallersReport {
    return {
      documents: Object.fromEntries(this.#documents),
      pages: this.#pages,
      listed: this.#listed,
      pageFailures: this.#pageFailures,
      broken: this.#broken,
    }
  }

  async #sendDocuments(): Promise<void> {
    const edge = await this.#api.create('/edges/https', { hostports: ['hostile.chaos.test:443'] })
    const routes = `/edges/https/${edge.id}/routes`
    const route = await this.#api.create(routes, { match_type: 'path_prefix', match: '/' })
    const put = (at: string, body: unknown) => this.#send('PUT', `${routes}/${route.id}/${at}`, body)
    const generated = hostileDocuments(seeded(1))
    while (!this.#isOver) {
      for (const [at, body] of Object.values(dearDocuments)) await put(at, body)
      await put('user_agent_filter', { deny: dearPatterns })
      await this.#send('POST', '/edges/https', `{"hostports":[${'1,'.repeat(500_000)}1]}`)
      await this.#send('POST', '/edges/https', JSON.stringify({ [`${'k'.repeat(500_000)}!`]: 1 }))
      await put('traffic_policy', { value: '- a\n'.repeat(8000) })
      for (let i = 0; i < GENERATED && !this.#isOver; i++) {
        const { value } = generated.next()
        if (value?.to === 'route') await put(value.at, value.body)
        else if (value?.to === 'raw') await this.#send('POST', `/${value.at}`, String(value.body))
      }
    }
  }

  async #send(method: string, path: string, body: unknown): Promise<void> {
    if (this.#isOver) return
    const answer = await this.#api.send(method, path, { body }).catch(() => undefined)
    const status = answer?.status ?? 0
    this.#documents.set(String(status), (this.#documents.get(String(status)) ?? 0) + 1)
    if (status >= 500 && status !== 503) this.#broken.push(`${method} ${path}: ${answer?.text.slice(0, 200)}`)
    if (!answer) await new Promise((resolve) => setTimeout(resolve, FAILED_MS))
  }

  async #listEdges(): Promise<void> {
    while (!this.#isOver) {
      let count = 0
      for (let next: string | null = `/edges/https?limit=${PAGE}`; next !== null && !this.#isOver; ) {
        const answer: Answer | Error = await this.#api.send('GET', next).catch((error: Error) => error)
        if (answer instanceof Error || answer.status !== 200) {
          this.#pageFailures.push(
            answer instanceof Error ? answer.message : `${answer.status} ${answer.text.slice(0, 100)}`,
          )
          await new Promise((resolve) => setTimeout(resolve, FAILED_MS))
          continue
        }
        this.#pages++
        count += answer.body.https_edges.length
        next = answer.body.next_page_uri
      }
      this.#listed = Math.max(this.#listed, count)
    }
  }
}

function run(): void {
  let callers: RunningCallers | undefined
  let running: Promise<void> | undefined
  process.on('disconnect', () => process.exit())
  process.on('message', (received) => {
    if (received !== 'stop') {
      callers = new RunningCallers(received as CallersOptions) // sent above
      running = callers.run()
      return
    }
    callers?.stop()
    void running?.then(() => process.send?.(callers?.report()))
  })
}

if (import.meta.main) run()
