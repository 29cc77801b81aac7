/** The operations on exchanges. */
import type { UnpackedText, Unpacker } from '../../lib/bytes/unpacker.ts'
import { readRfc3339 } from '../../lib/text/rfc3339.ts'
import { Refusal } from '../../model/errors.ts'
import type { ExchangeFilter, KeptMessage, WholeExchange } from '../../model/exchange.ts'
import type { Fields } from '../resources/resource.ts'
import { readOr } from '../resources/resource-fields.ts'
import { curlOf } from '../traffic/exchange-curl.ts'
import { harOf } from '../traffic/exchange-har.ts'
import type { ExchangeStreams } from '../traffic/exchange-streams.ts'
import { type Exchanges, MASKED } from '../traffic/listed-exchanges.ts'
import type { CheckedCall } from './checked-call.ts'
import { exchangeStream } from './exchange-events.ts'
import { oneMore, pageOf, there } from './list-page.ts'
import type { Page } from './query.ts'

export interface ExchangeSources {
  readonly exchanges: Exchanges
  readonly exchangeStreams: ExchangeStreams
}

export const exchangeOperations = {
  async list_exchanges({ exchanges }: ExchangeSources, { route: { resource }, principal, page, links }: CheckedCall) {
    const { limit, beforeId, filters = {} } = oneMore(page)
    const found = await exchanges.page(principal, { filter: filterOf(filters), beforeId, limit })
    const shown = found.map((exchange) => exchanges.show(exchange, links))
    return pageOf(shown, resource, page, links)
  },
  async get_exchange(sources: ExchangeSources, call: CheckedCall) {
    return whole(sources, call, await one(sources, call))
  },
  async replay_exchange(sources: ExchangeSources, call: CheckedCall) {
    const { route, principal, target, body, ip } = call
    const made = await sources.exchanges.replay(principal, target.id, body, ip)
    return whole(sources, call, there(route.resource, made))
  },
  async get_exchange_har(sources: ExchangeSources, call: CheckedCall) {
    const found = await one(sources, call)
    return harOf(found, await unpackedBody(sources.exchanges.unpacker, found.response))
  },
  async get_exchange_curl(sources: ExchangeSources, call: CheckedCall) {
    return { command: curlOf(await one(sources, call)) }
  },
  async stream_exchanges({ exchangeStreams: streams, exchanges }: ExchangeSources, call: CheckedCall) {
    const { principal, recognise, links, page } = call
    return exchangeStream({ streams, exchanges, links, filter: filterOf(page.filters ?? {}), principal, recognise })
  },
}

async function one({ exchanges }: ExchangeSources, call: CheckedCall): Promise<WholeExchange> {
  const found = there(call.route.resource, await exchanges.one(call.principal, call.target.id))
  // Even a small body may take megabytes when it is unpacked.
  if (found.request?.body ?? found.response?.body) await call.turn()
  return found
}

/** Shows an exchange with its messages. */
async function whole({ exchanges }: ExchangeSources, { links }: CheckedCall, found: WholeExchange): Promise<Fields> {
  const { exchange, request, response } = found
  return {
    ...exchanges.show(exchange, links),
    request: await messageOf(exchanges, request),
    response: await messageOf(exchanges, response),
  }
}

function filterOf(filters: NonNullable<Page['filters']>): ExchangeFilter {
  const { edge_id, endpoint_id, tunnel_id, method, path, status, since } = filters
  if (edge_id !== undefined && endpoint_id !== undefined) {
    throw new Refusal('INVALID_VALUE', '`endpoint_id` cannot be combined with `edge_id`; name one of them')
  }
  return {
    edgeId: edge_id ?? endpoint_id,
    tunnelId: tunnel_id,
    method,
    path,
    status: status === undefined ? undefined : Number(status),
    since: since === undefined ? undefined : readOr('INVALID_VALUE', 'since', '', () => readRfc3339(since)),
  }
}

async function messageOf({ unpacker }: Exchanges, message: KeptMessage | undefined): Promise<Fields | null> {
  if (!message) return null
  const { headers, body } = message
  const unpacked = await unpackedBody(unpacker, message)
  return {
    headers: headers.map(({ name, value, isMasked }) => ({ name, value: isMasked ? MASKED : value })),
    body: body ? { ...body, unpacked: unpacked ? unpackedFields(unpacked) : null } : null,
  }
}

function unpackedFields({ coding, size, isCut, content }: UnpackedText): Fields {
  return { coding, size, is_cut: isCut, content }
}

/**
 * The kept body of a message, decompressed as its headers say. Undefined for a body that was not kept, is not compressed, or
 * is not text.
 */
async function unpackedBody(unpacker: Unpacker, message: KeptMessage | undefined): Promise<UnpackedText | undefined> {
  if (!message?.body) return undefined
  const { headers, body } = message
  const codings = headers.filter(({ name }) => name.toLowerCase() === 'content-encoding').map(({ value }) => value)
  if (codings.length === 0) return undefined
  return unpacker.text(Buffer.from(body.content, body.encoding === 'text' ? 'utf8' : 'base64'), codings.join(','))
}
