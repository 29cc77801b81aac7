/** Reads and shows the exchanges of all nodes for the API. */
import { Unpacker } from '../../lib/bytes/unpacker.ts'
import { inTime } from '../../lib/in-time.ts'
import { SharedTurns } from '../../lib/limits/shared-turns.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { Refusal } from '../../model/errors.ts'
import {
  type ExchangeFilter,
  type ExchangeQuery,
  endpointOf,
  type KeptMessage,
  type ReplayAsk,
  type SeenExchange,
  type WholeExchange,
} from '../../model/exchange.ts'
import { readExchangeId, tagOf } from '../../model/exchange-id.ts'
import { isSensitiveHeader } from '../../model/sensitive-headers.ts'
import { shared } from '../../model/shared.ts'
import type { Principal } from '../records/find-caller.ts'
import { exchanges } from '../resources/exchanges.ts'
import type { Fields } from '../resources/resource.ts'
import type { Links } from '../resources/resource-links.ts'
import { tunnels } from '../resources/tunnels.ts'
import { type AskExchanges, newest } from './node-exchanges.ts'

/** A node that can be asked about exchanges. */
export interface ExchangeNode {
  readonly id: string
  readonly ask: AskExchanges
}

interface ExchangesOptions {
  /** This node and all others that are online. */
  readonly nodes: () => readonly ExchangeNode[]
  readonly log: Logger
}

/** Replaces a masked value. */
export const MASKED = '[masked]'

/** How long a node may take before a list is answered without it, in milliseconds. */
const ASK_MS = 2500

/** Most replays that wait, and for how long, in milliseconds: longer than one that is under way may take. */
const MAX_WAITING = 256
const WAIT_MS = 15_000

export class Exchanges {
  /** For bodies that were sent compressed. */
  readonly unpacker = new Unpacker()
  readonly #options: ExchangesOptions
  readonly #replays = new SharedTurns({ atOnce: shared.replays.most, waiting: MAX_WAITING, waitMs: WAIT_MS })

  constructor(options: ExchangesOptions) {
    this.#options = options
  }

  /** The latest exchanges that `principal` may see, newest first. A node that does not answer is left out. */
  async page(principal: Principal, { filter, ...page }: ExchangeQuery): Promise<SeenExchange[]> {
    const query = { ...page, filter: { ...filter, ...ownOnly(principal) } }
    const pages = this.#options.nodes().map(async ({ id, ask }) => {
      try {
        return await inTime(ask({ kind: 'page', query }), ASK_MS, () => new Error(`no answer in ${ASK_MS} ms`))
      } catch (err) {
        this.#options.log.debug({ err, node: id }, 'cannot fetch exchanges from a node')
        return []
      }
    })
    return newest((await Promise.all(pages)).flat(), page)
  }

  /** One exchange, if `principal` may see it. */
  async one(principal: Principal, id: string): Promise<WholeExchange | undefined> {
    const found = await this.nodeOf(id)?.ask({ kind: 'one', id })
    if (!found || !maySee(principal, found.exchange)) return undefined
    return principal.role === 'admin' ? found : maskedFor(found)
  }

  /** Repeats an exchange and returns the new one. `body` has passed `replayForm`; `ip` is the caller's. Rejects with `Refusal`. */
  async replay(principal: Principal, id: string, body: Fields, ip: string): Promise<WholeExchange | undefined> {
    const node = this.nodeOf(id)
    if (!node || !(await this.one(principal, id))) return undefined
    const mayUseSecrets = principal.role === 'admin'
    // Nodes of an older version do not know `callerIp`. They refuse it, and so every change.
    const changes = Object.keys(body).length > 0 ? { ...changesOf(body), callerIp: ip } : {}
    const made = await this.#inTurn(principal, () => node.ask({ ...changes, kind: 'replay', id, mayUseSecrets }))
    if (made === null) return undefined
    this.#options.log.info({ exchange: id, replay: made, by: principal.id }, 'exchange replayed')
    return this.one(principal, made)
  }

  async #inTurn<T>({ id: owner }: Principal, replay: () => Promise<T>): Promise<T> {
    if (!(await this.#replays.take(owner))) {
      const msg = 'too many requests are being repeated; try again'
      throw new Refusal('SERVER_BUSY', msg, { headers: { 'retry-after': '5' } })
    }
    try {
      return await replay()
    } finally {
      this.#replays.over(owner)
    }
  }

  /** The node that has an exchange, if it is online. */
  nodeOf(id: string): ExchangeNode | undefined {
    const tag = readExchangeId(id)?.nodeTag
    return this.#options.nodes().find((node) => tagOf(node.id) === tag)
  }

  /** Shows an exchange; `node` is the id of the node that has it. */
  show(exchange: SeenExchange, links: Links): Fields {
    const { timings, edgeId, target } = exchange
    const endpointId = endpointOf(exchange)
    return {
      id: exchange.id,
      uri: links.one(exchanges, exchange.id, null),
      started_at: new Date(exchange.startedAt).toISOString(),
      method: exchange.method,
      host: exchange.host,
      path: exchange.path,
      status: exchange.status === 0 ? null : exchange.status,
      error_code: exchange.fault === undefined ? null : `ERR_${exchange.fault}`,
      duration_ms: exchange.durationMs,
      timings: {
        modules_ms: timings.modules ?? null,
        dial_ms: timings.dial ?? null,
        wait_ms: timings.wait ?? null,
        receive_ms: timings.receive ?? null,
      },
      request_bytes: exchange.bytesIn,
      response_bytes: exchange.bytesOut,
      protocol: `HTTP/${exchange.version}`,
      scheme: exchange.scheme,
      client_ip: exchange.ip,
      edge_id: endpointId === undefined ? (edgeId ?? null) : null,
      route_id: endpointId === undefined ? (exchange.routeId ?? null) : null,
      endpoint_id: endpointId ?? null,
      tunnel_id: target?.startsWith(tunnels.prefix) ? target : null,
      tunnel_session_id: exchange.sessionId ?? null,
      decided: exchange.decided,
      is_cut: exchange.isCut,
      capture_id: exchange.captureId ?? null,
      replay_of: exchange.replayOf ?? null,
      node: this.nodeOf(exchange.id)?.id ?? '',
    }
  }
}

/** The changes as nodes expect them: the body as base64, and no masked values. */
function changesOf(body: Fields): Pick<ReplayAsk, 'method' | 'path' | 'headers' | 'body'> {
  const { body: given, headers, ...rest } = body as ReplayChanges
  for (const [i, { name, value }] of (headers ?? []).entries()) {
    if (value !== MASKED || !isSensitiveHeader(name)) continue
    const msg = `\`headers[${i}].value\` is masked; write its value, or leave the header out`
    throw new Refusal('INVALID_VALUE', msg, { field: `headers[${i}].value` })
  }
  if (!given) return { ...rest, headers }
  const bytes = Buffer.from(given.content, given.encoding === 'base64' ? 'base64' : 'utf8')
  return { ...rest, headers, body: bytes.toString('base64') }
}

/** The form of a replay. */
interface ReplayChanges extends Pick<ReplayAsk, 'method' | 'path' | 'headers'> {
  readonly body?: { readonly encoding: 'text' | 'base64'; readonly content: string }
}

/** A member sees exchanges of edges, which belong to the account (D24), and of endpoints of its own agents. */
function ownOnly({ role, id }: Principal): Pick<ExchangeFilter, 'ownerId'> {
  return role === 'admin' ? {} : { ownerId: id }
}

export function maySee({ role, id }: Principal, { edgeId, ownerId }: SeenExchange): boolean {
  return role === 'admin' || (edgeId !== undefined && (ownerId === undefined || ownerId === id))
}

/** Secrets stay masked for members, even those that an admin chose to keep. */
function maskedFor(whole: WholeExchange): WholeExchange {
  const maskMessage = (message: KeptMessage | undefined): KeptMessage | undefined =>
    message && {
      ...message,
      headers: message.headers.map((header) =>
        isSensitiveHeader(header.name) ? { ...header, value: '', isMasked: true } : header,
      ),
    }
  return { ...whole, request: maskMessage(whole.request), response: maskMessage(whole.response) }
}
