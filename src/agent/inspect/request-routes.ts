/** `/api/requests/http` of the local API: exchanges as the official agent shows them, and replays. */
import { OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { describeProblem } from '../config/config-error.ts'
import type { InspectedExchange } from './inspected-exchange.ts'
import { LocalRefusal, notFound, sendJson, sendList, sendNothing } from './local-answer.ts'
import { type LocalCall, limitOf, readBody } from './local-request.ts'
import { ReplayRefused, type RequestChanges, replay } from './replay.ts'
import { requestView } from './request-view.ts'
import { findTunnel } from './tunnel-routes.ts'

/** How many requests a list has by default. */
const USUAL = 50

export async function listRequests(call: LocalCall): Promise<void> {
  const { exchanges } = call.inspector
  await sendList(call.response, {
    before: '{"uri":"/api/requests/http","requests":[',
    items: listedExchanges(call, USUAL),
    view: (exchange) => requestView(exchange, exchanges.idOf(exchange)),
    after: ']}',
  })
}

/** The latest exchanges that the query asks for, of one tunnel or of all: `usual` of them unless it says how many. */
export function listedExchanges({ inspector, query }: LocalCall, usual: number): readonly InspectedExchange[] {
  const limit = limitOf(query, usual)
  return ofTunnel(inspector.exchanges.latest(), query.get('tunnel_name')).slice(0, limit)
}

function ofTunnel(all: readonly InspectedExchange[], name: string | null): readonly InspectedExchange[] {
  if (name === null || name === '') return all
  const plain = name.replace(/ \(https?\)$/, '')
  const isExact = all.some(({ origin }) => origin.tunnelName === name)
  return all.filter(({ origin }) => origin.tunnelName === (isExact ? name : plain))
}

/** The exchange that the path names; throws a `LocalRefusal` if there is none. */
export function namedExchange({ inspector, param, path }: LocalCall): InspectedExchange {
  const exchange = inspector.exchanges.find(param)
  if (!exchange) throw notFound(path)
  return exchange
}

export function getRequest(call: LocalCall): void {
  sendJson(call.response, 200, requestView(namedExchange(call), call.param))
}

export async function replayRequest(call: LocalCall): Promise<void> {
  const problems: Problem[] = []
  const reader = new OptionReader(await readBody(call.request), problems)
  const id = reader.word('id') ?? ''
  const tunnelName = reader.text('tunnel_name')
  if (id === '' && problems.length === 0) reader.fault('id', 'is missing')
  reader.finish()
  refuse(problems)
  const exchange = call.inspector.exchanges.find(id)
  if (!exchange) throw notFound(`${call.path}#${id.slice(0, 64)}`)
  await replayOf(exchange, call, { tunnelName, changes: {} })
  sendNothing(call.response)
}

interface ReplayOptions {
  /** Replaces the tunnel that the request came through. */
  readonly tunnelName: string | undefined
  readonly changes: RequestChanges
}

/** Replays an exchange; rejects with a `LocalRefusal` that says why it cannot. */
export async function replayOf(
  exchange: InspectedExchange,
  call: LocalCall,
  { tunnelName, changes }: ReplayOptions,
): Promise<InspectedExchange> {
  const name = tunnelName || exchange.origin.tunnelName
  const tunnel = findTunnel(call, name)
  if (!tunnel) throw new LocalRefusal(404, 'the tunnel no longer exists', { details: { tunnel_name: name } })
  try {
    return await replay({ exchanges: call.inspector.exchanges, exchange, tunnel, changes })
  } catch (error) {
    if (error instanceof ReplayRefused) throw new LocalRefusal(409, error.message)
    throw error
  }
}

export function refuse(problems: readonly Problem[]): void {
  if (problems.length === 0) return
  throw new LocalRefusal(400, problems.map((problem) => describeProblem(problem)).join('\n'))
}
