/** The operations on what traffic left behind: exchanges. */

import { curlOf } from '../control/exchange-curl.ts'
import { harOf } from '../control/exchange-har.ts'
import type { ExchangeStreams } from '../control/exchange-streams.ts'
import { type Exchanges, MASKED } from '../control/exchanges.ts'
import { BadInput } from '../lib/shape/bad-input.ts'
import { readRfc3339 } from '../lib/text/rfc3339.ts'
import { Refusal } from '../model/errors.ts'
import type { ExchangeFilter, KeptMessage, WholeExchange } from '../model/exchange.ts'
import type { Fields } from '../resources/resource.ts'
import type { CheckedCall } from './checked-call.ts'
import { missing, pageOf } from './list-page.ts'
import type { Page } from './query.ts'

export interface PassedTraffic {
  readonly exchanges: Exchanges
  readonly exchangeStreams: ExchangeStreams
}

export async function whatPassed({ exchanges }: Pick<PassedTraffic, 'exchanges'>, call: CheckedCall): Promise<unknown> {
  const { route, principal, target, page, links } = call
  if (route.action === 'list') {
    // One more than the limit tells whether there is a next page.
    const { limit, beforeId, filters = {} } = page
    const found = await exchanges.page(principal, { filter: filterOf(filters), beforeId, limit: limit + 1 })
    const shown = found.map((exchange) => exchanges.show(exchange, links))
    return pageOf(shown, route.resource, page, links)
  }
  const one =
    route.action === 'replay'
      ? await exchanges.replay(principal, target.id, call.body)
      : await exchanges.one(principal, target.id)
  if (!one) throw missing(route.resource)
  if (route.action === 'har') return harOf(one)
  if (route.action === 'curl') return { command: curlOf(one) }
  return wholeOf(one, exchanges.show(one.exchange, links))
}

export function filterOf(filters: NonNullable<Page['filters']>): ExchangeFilter {
  const { edge_id, endpoint_id, tunnel_id, method, path, status, since } = filters
  if (edge_id !== undefined && endpoint_id !== undefined) {
    throw new Refusal('INVALID_VALUE', '`endpoint_id` stands beside `edge_id`; an exchange has one of them')
  }
  return {
    edgeId: edge_id ?? endpoint_id,
    tunnelId: tunnel_id,
    method,
    path,
    status: status === undefined ? undefined : Number(status),
    since: since === undefined ? undefined : timeOf(since),
  }
}

function timeOf(since: string): number {
  try {
    return readRfc3339(since)
  } catch (error) {
    if (error instanceof BadInput) throw new Refusal('INVALID_VALUE', `\`since\` ${error.message}`, { field: 'since' })
    throw error
  }
}

function wholeOf({ request, response }: WholeExchange, shown: Fields): Fields {
  return { ...shown, request: messageOf(request), response: messageOf(response) }
}

function messageOf(message: KeptMessage | undefined): Fields | null {
  if (!message) return null
  const { headers, body } = message
  return {
    headers: headers.map(({ name, value, isMasked }) => ({ name, value: isMasked ? MASKED : value })),
    body: body ?? null,
  }
}
