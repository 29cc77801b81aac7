/** Answers questions about the exchanges at the data planes of this node, from its API and from other nodes. */
import { BadValue, check } from '../../lib/shape/check.ts'
import { closedObject } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import type { ExchangeAsk, ExchangeNews, ExchangeQuery, SeenExchange, WholeExchange } from '../../model/exchange.ts'
import { readExchangeId, tagOf } from '../../model/exchange-id.ts'
import type { AttachedPlanes } from '../mirrors/attached-planes.ts'
import { replayForm } from '../resources/exchanges.ts'

/** The answer to each kind of question. */
export interface ExchangeAnswers {
  page: readonly SeenExchange[]
  one: WholeExchange | null
  /** The id of the new exchange. */
  replay: string | null
  /** By data plane. */
  news: Readonly<Record<string, ExchangeNews>>
}

type ExchangeKind = ExchangeAsk['kind']

/** Asks a node, this one or another. */
export type AskExchanges = <Kind extends ExchangeKind>(
  ask: Extract<ExchangeAsk, { readonly kind: Kind }>,
) => Promise<ExchangeAnswers[Kind]>

/** Asks the data planes of this node. */
export function exchangesHere(
  planes: Pick<AttachedPlanes, 'askEach' | 'ready'>,
): (ask: ExchangeAsk) => Promise<unknown> {
  return async (ask) => {
    switch (ask.kind) {
      case 'page': {
        const pages = await planes.askEach('exchanges', ask.query)
        return newest(
          pages.flatMap(({ answer }) => answer),
          ask.query,
        )
      }
      case 'one': {
        const tag = readExchangeId(ask.id)?.planeTag
        const found = await planes.askEach('exchange', { id: ask.id }, { isAsked: (id) => tagOf(id) === tag })
        return found.find(({ answer }) => answer !== undefined)?.answer ?? null
      }
      case 'news': {
        const limit = Math.ceil(MAX_NEWS / Math.max(1, planes.ready.length))
        const from = (planeId: string): number | undefined => ask.seen[planeId] ?? (ask.isFirst ? undefined : 0)
        const looks = planes.ready.map(async (planeId) => {
          const look = { from: from(planeId), limit }
          return planes.askEach('newExchanges', look, { isAsked: (id) => id === planeId })
        })
        const news = (await Promise.all(looks)).flat()
        return Object.fromEntries(news.map(({ planeId, answer }) => [planeId, answer]))
      }
      case 'replay': {
        const tag = readExchangeId(ask.id)?.planeTag
        const options = { isAsked: (id: string) => tagOf(id) === tag, withinMs: REPLAY_MS }
        const found = await planes.askEach('replay', ask, options)
        return found.find(({ answer }) => answer !== undefined)?.answer ?? null
      }
    }
  }
}

/** Most exchanges that a node returns in one poll: as many as fit into one call between nodes. */
const MAX_NEWS = 100

/** How long a data plane may take to repeat an exchange, in milliseconds: longer than the service may take. */
const REPLAY_MS = 11_000

/** The newest of several pages. */
export function newest(all: readonly SeenExchange[], { limit }: Pick<ExchangeQuery, 'limit'>): SeenExchange[] {
  return all.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
}

const text = (maxBytes: number) => Type.String({ maxBytes })
const optional = (maxBytes: number) => Type.Optional(text(maxBytes))

/** Most exchanges on a page: one more than a caller may ask for. */
const MAX_PAGE = 101

const asks = {
  page: closedObject({
    kind: text(16),
    query: closedObject({
      filter: closedObject({
        edgeId: optional(64),
        tunnelId: optional(64),
        method: optional(64),
        path: optional(4096),
        status: Type.Optional(Type.Integer()),
        since: Type.Optional(Type.Number()),
        ownerId: optional(64),
      }),
      beforeId: optional(64),
      limit: Type.Integer({ minimum: 1, maximum: MAX_PAGE }),
    }),
  }),
  one: closedObject({ kind: text(16), id: text(64) }),
  replay: closedObject({
    kind: text(16),
    id: text(64),
    mayUseSecrets: Type.Boolean(),
    ...replayForm.properties,
    body: Type.Optional(Type.String()),
    callerIp: optional(64),
  }),
  news: closedObject({
    kind: text(16),
    seen: Type.Unsafe({ type: 'object', additionalProperties: { type: 'number' }, maxProperties: 1024 }),
    isFirst: Type.Boolean(),
  }),
} satisfies Record<ExchangeKind, unknown>

/** Checks a question of another node; throws `BadValue`. */
export function readAsk(value: unknown): ExchangeAsk {
  const kind = typeof value === 'object' && value !== null && 'kind' in value ? value.kind : undefined
  if (!isKind(kind)) throw new BadValue('kind', 'value', 'unknown kind of question; the node may run an older version')
  return check(asks[kind], value) as unknown as ExchangeAsk // the schema of its kind
}

function isKind(kind: unknown): kind is ExchangeKind {
  return typeof kind === 'string' && Object.hasOwn(asks, kind)
}
