/** What a data plane remembers of its traffic, and how it answers the control plane's calls for it. */
import type { Clock } from '../../lib/clock.ts'
import { publicAuthority } from '../../lib/net/public-authority.ts'
import type { RunningCapture } from '../../model/capture.ts'
import type {
  ExchangeNews,
  ExchangeQuery,
  KeptMessage,
  ReplayAsk,
  SeenExchange,
  WholeExchange,
} from '../../model/exchange.ts'
import { tagOf } from '../../model/exchange-id.ts'
import type { AccessRecord } from './access-record.ts'
import { messagesOf } from './captured-parts.ts'
import { ExchangeLog } from './exchange-log.ts'
import { RunningCaptures } from './running-captures.ts'

interface PlaneExchangesOptions {
  /** Memory for everything, in bytes. */
  readonly bytes: number
  readonly nodeId: string
  readonly planeId: string
  readonly now: Clock
  /** The session of a tunnel that is online. */
  readonly sessionOf: (tunnelId: string) => string | undefined
  readonly publicPorts: () => Readonly<Record<SeenExchange['scheme'], number>>
}

interface Repeats {
  repeat(found: WholeExchange, ask: ReplayAsk): Promise<string>
}

/** The part of the memory that is for heads and bodies; the rest is for exchanges. */
const CAPTURED_PART = 3 / 4

export class PlaneExchanges {
  /** For the proxy. */
  readonly captures: RunningCaptures
  readonly #log: ExchangeLog
  readonly #publicPorts: PlaneExchangesOptions['publicPorts']

  constructor({ bytes, nodeId, planeId, now, sessionOf, publicPorts }: PlaneExchangesOptions) {
    this.#publicPorts = publicPorts
    const tags = { nodeTag: tagOf(nodeId), planeTag: tagOf(planeId) }
    this.captures = new RunningCaptures({ bytes: Math.ceil(bytes * CAPTURED_PART), now })
    this.#log = new ExchangeLog({ bytes: Math.floor(bytes * (1 - CAPTURED_PART)), tags, sessionOf })
  }

  /** Called for every request when it is over. */
  note(record: AccessRecord): void {
    this.#log.note(record)
    record.replay?.noted(this.#log.lastId)
  }

  /** The calls of the control plane. */
  readonly calls = {
    exchanges: (query: ExchangeQuery): Promise<readonly SeenExchange[]> => this.#log.page(query),
    exchange: ({ id }: { readonly id: string }): Promise<WholeExchange | undefined> => this.#whole(id),
    newExchanges: ({ from, limit }: { readonly from?: number | undefined; readonly limit: number }): ExchangeNews => {
      const { next } = this.#log
      const exchanges = from === undefined ? [] : this.#log.since(from, limit)
      return { next, exchanges, missed: Math.max(0, next - (from ?? next) - exchanges.length) }
    },
    captures: (running: readonly RunningCapture[]): void => this.captures.use(running),
  }

  /** Has an exchange repeated; undefined when it is not known. */
  async repeat(ask: ReplayAsk, replays: Repeats): Promise<string | undefined> {
    const found = await this.#whole(ask.id)
    return found && replays.repeat(found, ask)
  }

  async #whole(id: string): Promise<WholeExchange | undefined> {
    const found = this.#log.find(id)
    if (!found) return undefined
    const { exchange, lastPart } = found
    const parts = lastPart < 0 ? undefined : await this.captures.parts.read(lastPart)
    const messages = parts && messagesOf(parts, exchange, found)
    const { scheme, host } = exchange
    const authority = sentHost(messages?.request) ?? publicAuthority(scheme, host, this.#publicPorts()[scheme])
    return { exchange, authority, ...messages }
  }
}

function sentHost(request: KeptMessage | undefined): string | undefined {
  return request?.headers.find(({ name }) => name.toLowerCase() === 'host')?.value
}
