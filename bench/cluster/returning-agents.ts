/**
 * Many agents in one process, which continue at another node when theirs is gone, like our real agents: each has a
 * standby connection there, its cookie, and the token for its address. Each answers its visitors. Writes all URLs to a
 * file and prints `ready`; prints `back` when all are online again.
 *
 * Arguments: how many, a file for the URLs, the port of their node, and that of the other. The authtoken is in BENCH_AUTHTOKEN.
 */
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { retryDelay } from '../../src/agent/backoff.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import type { Mux } from '../../src/link/wire/mux.ts'
import { readProxyHeader } from '../../src/link/wire/proxy-header.ts'
import type { WireStream } from '../../src/link/wire/wire-stream.ts'
import { begin, type Former, goOnline, type LightAgent, standBy } from '../tunnel/light-agent.ts'

/** Concurrent TLS handshakes: if all ran at once, one process would be too late for most of them. */
const AT_ONCE = 64

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')

const [count = '', urlFile = '', ownPort = '', otherPort = ''] = process.argv.slice(2)
const authtoken = new Secret(process.env.BENCH_AUTHTOKEN ?? '')

process.once('SIGTERM', () => process.exit(0))

let shaking = 0
const turns: (() => void)[] = []
let back = 0

class ReturningAgent {
  readonly #number: number
  #former: Former | undefined
  #standby: Mux | undefined

  constructor(number: number) {
    this.#number = number
  }

  get url(): string {
    return this.#former?.url ?? ''
  }

  /** Goes online; from then on, it comes back whenever its connection is lost. */
  async start(): Promise<void> {
    this.#former = await goOnline(this.#at(Number(ownPort)))
  }

  async standBy(): Promise<void> {
    this.#standby = await standBy(this.#returning())
  }

  async #comeBack(): Promise<void> {
    for (let failures = 0; ; failures++) {
      const standby = this.#standby
      this.#standby = undefined
      if (!standby) await pause(retryDelay({ failures, isRefused: false, random: Math.random }))
      try {
        this.#former = standby ? await begin(standby, this.#returning()) : await goOnline(this.#returning())
      } catch (error) {
        console.error(error instanceof Error ? error.message : String(error))
        continue
      }
      if (++back === Number(count)) console.log('back')
      return
    }
  }

  /** The same agent with its former session, at the other node. */
  #returning(): LightAgent & { readonly former: Former } {
    if (!this.#former) throw new Error('the agent was never online')
    return { ...this.#at(Number(otherPort)), former: this.#former }
  }

  #at(port: number): LightAgent {
    return {
      ...{ host: '127.0.0.1', port, authtoken, inTurn, scheme: 'http', onVisitor: answerVisitor },
      // Each from its own address, like real agents, since the server counts by source.
      localAddress: `127.1.${this.#number >> 8}.${this.#number & 255 || 1}`,
      // A connection lost before the agent is online rejects instead, and the loss of a standby ends nothing.
      onLost: () => {
        if (port === Number(ownPort) && this.#former) void this.#comeBack()
      },
    }
  }
}

const agents = Array.from({ length: Number(count) }, (_, number) => new ReturningAgent(number))
await Promise.all(agents.map((agent) => agent.start()))
await Promise.all(agents.map((agent) => agent.standBy()))
writeFileSync(urlFile, JSON.stringify(agents.map(({ url }) => url)))
console.log('ready')

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (shaking === AT_ONCE) await new Promise<void>((resolve) => turns.push(resolve))
  else shaking++
  try {
    return await work()
  } finally {
    const next = turns.shift()
    if (next) next()
    else shaking--
  }
}

function answerVisitor(stream: WireStream): void {
  readProxyHeader(stream, () =>
    stream.attach({
      data: () => {
        stream.end(ANSWER)
        // There is only one request on each connection.
        stream.attach({ data() {}, end() {}, drain() {}, closed() {} })
      },
      end() {},
      drain() {},
      closed() {},
    }),
  )
}
