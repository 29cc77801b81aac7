/** `/api/requests/http` of the local API: exchanges as the official agent shows them, and replays. */
import type { ServerResponse } from 'node:http'
import { OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { describeProblem } from '../config/config-error.ts'
import type { InspectedExchange } from './inspected-exchange.ts'
import { LocalRefusal, notFound, sendJson, sendList, sendNothing } from './local-answer.ts'
import { type LocalRequest, limitOf, readBody } from './local-request.ts'
import { ReplayRefused, type RequestChanges, replay } from './replay.ts'
import { requestView } from './request-view.ts'
import { findTunnel, type LocalParts } from './tunnel-routes.ts'

/** How many requests a list has by default, and at most. */
const USUAL = 50
const MOST = 500

export async function listRequests({ inspector }: LocalParts, { query }: LocalRequest, response: ServerResponse) {
  const limit = limitOf(query, { usual: USUAL, most: MOST })
  const { exchanges } = inspector
  const found = ofTunnel(exchanges.latest(), query.get('tunnel_name')).slice(0, limit)
  await sendList(response, {
    before: '{"uri":"/api/requests/http","requests":[',
    items: found,
    view: (exchange) => requestView(exchange, exchanges.idOf(exchange)),
    after: ']}',
  })
}

/** The exchanges of one tunnel, or all. */
export function ofTunnel(all: readonly InspectedExchange[], name: string | null): readonly InspectedExchange[] {
  if (name === null || name === '') return all
  const plain = name.replace(/ \(https?\)$/, '')
  const isExact = all.some(({ origin }) => origin.tunnelName === name)
  return all.filter(({ origin }) => origin.tunnelName === (isExact ? name : plain))
}

export function getRequest(
  { inspector }: LocalParts,
  { params: [id = ''], path }: LocalRequest,
  response: ServerResponse,
) {
  const exchange = inspector.exchanges.find(id)
  if (!exchange) throw notFound(path)
  sendJson(response, 200, requestView(exchange, id))
}

export function forgetRequests({ inspector }: LocalParts, _asked: LocalRequest, response: ServerResponse): void {
  inspector.exchanges.clear()
  sendNothing(response)
}

export async function replayRequest(parts: LocalParts, { request, path }: LocalRequest, response: ServerResponse) {
  const problems: Problem[] = []
  const reader = new OptionReader(await readBody(request), problems)
  const id = reader.word('id')
  const tunnelName = reader.text('tunnel_name')
  if (id === undefined && problems.length === 0) reader.fault('id', 'is missing')
  reader.finish()
  refuse(problems)
  await replayById(parts, { id: id ?? '', path, tunnelName, changes: {} })
  sendNothing(response)
}

interface ReplayById {
  readonly id: string
  readonly path: string
  /** Replaces the tunnel that the request came through. */
  readonly tunnelName: string | undefined
  readonly changes: RequestChanges
}

/** Replays an exchange; rejects with a `LocalRefusal` that says why it cannot. */
export async function replayById(
  parts: LocalParts,
  { id, path, tunnelName, changes }: ReplayById,
): Promise<InspectedExchange> {
  const { exchanges } = parts.inspector
  const exchange = exchanges.find(id)
  if (!exchange) throw notFound(`${path}#${id.slice(0, 64)}`)
  const name = tunnelName || exchange.origin.tunnelName
  const tunnel = findTunnel(parts, name)
  if (!tunnel) throw new LocalRefusal(404, 'the tunnel no longer exists', { details: { tunnel_name: name } })
  try {
    return await replay({ exchanges, exchange, tunnel, changes })
  } catch (error) {
    if (error instanceof ReplayRefused) throw new LocalRefusal(409, error.message)
    throw error
  }
}

export function refuse(problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const err = problems.map((problem) => describeProblem(problem)).join('\n')
  throw new LocalRefusal(400, err)
}
