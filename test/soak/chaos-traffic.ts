/** Traffic during faults: requests on kept connections, a stream, and writes whose acknowledgements are kept. */
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiClient } from '../support/api-client.ts'
import { dialTcp } from '../support/visitor.ts'

export interface Counts {
  /** Answers over connections that were open before. */
  requests: number
  /** Round trips of the stream. */
  echoes: number
  /** Writes that were acknowledged, and those that were refused or got no answer. */
  writes: number
  refused: number
  /** Requests and streams that were cut while that was allowed. */
  cut: number
}

export interface TrafficOptions {
  readonly url: string
  readonly ca: string
  readonly tcpUrl: string
  readonly apiUrl: string
  readonly apiKey: string
}

/** Connections that requests go over. */
const CONNECTIONS = 4

/** Pause between two steps of one loop, in milliseconds: the load here are faults, not traffic. */
const PACE_MS = 10

export class Traffic {
  readonly counts: Counts = { requests: 0, echoes: 0, writes: 0, refused: 0, cut: 0 }
  /** Whether agents may take the server for dead: then streams are cut and dialled again. */
  mayBeCut = false
  /** Events that must never happen. */
  readonly faults: string[] = []
  /** Statuses of refused writes; 0 where no answer came. */
  readonly refusals = new Set<number>()
  /** The acknowledged writes, by id. */
  readonly acknowledged = new Map<string, string>()
  readonly #options: TrafficOptions
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  #stream: Socket | undefined
  #onWord: (word: string) => void = () => {}
  #isStopped = false
  #loops: Promise<unknown>[] = []

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    await this.#dial()
    this.#loops = [
      ...Array.from({ length: CONNECTIONS }, () => this.#loop(() => this.#request())),
      this.#loop(() => this.#echo()),
      this.#loop(() => this.#write()),
    ]
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stream?.destroy()
    this.#agent.destroy()
    await Promise.all(this.#loops)
  }

  async #loop(step: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      await step()
      await delay(PACE_MS)
    }
  }

  async #dial(): Promise<void> {
    this.#stream = await dialTcp(this.#options.tcpUrl)
    this.#stream.on('data', (chunk) => this.#onWord(String(chunk)))
    this.#stream.once('close', () => {
      this.#fault('the stream was closed')
      this.#onWord('')
    })
  }

  #fault(what: string): void {
    if (this.#isStopped) return
    if (this.mayBeCut) this.counts.cut++
    else this.faults.push(what)
  }

  async #request(): Promise<void> {
    const { url, ca } = this.#options
    const { host, hostname, port } = new URL(url)
    // Long, so that a log without a reader fills up.
    const path = `/${'x'.repeat(2500)}`
    const to = { host: '127.0.0.1', port, servername: hostname, ca, agent: this.#agent, path, headers: { host } }
    const asking = request(to)
    const hasAnswered = once(asking, 'response').then(async ([response]) => {
      const ended = once(response, 'end')
      response.resume()
      await ended
      if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`)
    })
    asking.end()
    try {
      await hasAnswered
      this.counts.requests++
      if (!asking.reusedSocket && this.counts.requests > CONNECTIONS) this.#fault('a request needed a new connection')
    } catch (error) {
      this.#fault(`a request failed: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  async #echo(): Promise<void> {
    const stream = this.#stream
    if (!stream || stream.destroyed) {
      if (this.mayBeCut) await this.#dial().catch(() => {})
      return
    }
    const word = `word ${this.counts.echoes}`
    const heard = new Promise<string>((resolve) => {
      this.#onWord = resolve
    })
    stream.write(word)
    if ((await heard) === word) this.counts.echoes++
    else this.#fault('the stream did not give back what was sent')
  }

  async #write(): Promise<void> {
    const api = new ApiClient(this.#options.apiUrl, this.#options.apiKey)
    const description = `write ${this.counts.writes + this.counts.refused}`
    const answer = await api.send('POST', '/ip_policies', { body: { description } }).catch(() => undefined)
    if (this.#isStopped) return
    if (answer?.status === 201) {
      this.acknowledged.set(answer.body.id, description)
      this.counts.writes++
    } else {
      this.refusals.add(answer?.status ?? 0)
      this.counts.refused++
    }
  }
}
