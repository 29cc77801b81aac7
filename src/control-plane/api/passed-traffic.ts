/** The operations on exchanges. */

import type { UnpackedText } from '../../lib/bytes/unpacker.ts'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { readRfc3339 } from '../../lib/text/rfc3339.ts'
import { Refusal } from '../../model/errors.ts'
import type { ExchangeFilter, KeptMessage } from '../../model/exchange.ts'
import type { Fields } from '../resources/resource.ts'
import { curlOf } from '../traffic/exchange-curl.ts'
import { harOf } from '../traffic/exchange-har.ts'
import type { ExchangeStreams } from '../traffic/exchange-streams.ts'
import { type Exchanges, MASKED } from '../traffic/listed-exchanges.ts'
import { unpackedBody } from '../traffic/unpacked-body.ts'
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
    // One more than the limit shows whether there is a next page.
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
  if (route.action === 'har') return harOf(one, await unpackedBody(exchanges.unpacker, one.response))
  if (route.action === 'curl') return { command: curlOf(one) }
  const { request, response } = one
  return {
    ...exchanges.show(one.exchange, links),
    request: await messageOf(exchanges, request),
    response: await messageOf(exchanges, response),
  }
}

export function filterOf(filters: NonNullable<Page['filters']>): ExchangeFilter {
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
