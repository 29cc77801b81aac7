/** `/api/exchanges` of the local API, for the agent's page: in the shape of the server's `/exchanges`. */
import { isMap, OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { exchangeItem, wholeExchange } from './exchange-view.ts'
import type { HeadField } from './http-head.ts'
import { sendJson, sendNothing } from './local-answer.ts'
import { type LocalCall, readBody } from './local-request.ts'
import type { RequestChanges } from './replay.ts'
import { listedExchanges, namedExchange, refuse, replayOf } from './request-routes.ts'

/** How many exchanges a list has by default. */
const USUAL = 100

/** The most fields that a changed request may have, and their longest line, in characters. */
const MAX_FIELDS = 200
const FIELD_CHARACTERS = 16 * 1024

export function listExchanges(call: LocalCall): void {
  const { exchanges, leftOut } = call.inspector
  const items = listedExchanges(call, USUAL).map((exchange) => exchangeItem(exchange, exchanges.idOf(exchange)))
  sendJson(call.response, 200, { exchanges: items, uri: '/api/exchanges', next_page_uri: null, left_out: leftOut })
}

export async function getExchange(call: LocalCall): Promise<void> {
  const { inspector, param: id, response } = call
  sendJson(response, 200, await wholeExchange(namedExchange(call), id, inspector.unpacker))
}

export function forgetExchanges({ inspector, response }: LocalCall): void {
  inspector.exchanges.clear()
  sendNothing(response)
}

export async function replayExchange(call: LocalCall): Promise<void> {
  namedExchange(call)
  const problems: Problem[] = []
  const reader = new OptionReader(await readBody(call.request), problems)
  const tunnelName = reader.text('tunnel_name')
  const changes = readChanges(reader)
  reader.finish()
  refuse(problems)
  // It may have been dropped while the body was read.
  const sent = await replayOf(namedExchange(call), call, { tunnelName, changes })
  sendJson(call.response, 201, exchangeItem(sent, call.inspector.exchanges.idOf(sent)))
}

/** No value may break out of the line of the request that it is written to. */
function readChanges(reader: OptionReader): RequestChanges {
  return {
    method: reader.parsed('method', (text) => matching(text, /^[!#$%&'*+.^_`|~\w-]{1,32}$/, 'must be a method')),
    path: reader.parsed('path', (text) =>
      matching(text, /^[/*][!-~\u0080-\uffff]{0,16383}$/, 'must begin with `/` and contain no spaces'),
    ),
    headers: readFields(reader),
    body: readContent(reader),
  }
}

function readFields(reader: OptionReader): readonly HeadField[] | undefined {
  const given = reader.given('headers')
  if (given === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(given) ? given : []
  const fields = list.filter((each) => isField(each))
  if (Array.isArray(given) && fields.length === list.length && list.length <= MAX_FIELDS) return fields
  return reader.fault('headers', `must be a list of at most ${MAX_FIELDS} objects with \`name\` and \`value\``)
}

function isField(value: unknown): value is HeadField {
  if (!isMap(value) || Object.keys(value).length !== 2) return false
  const { name, value: content } = value
  const isName = typeof name === 'string' && /^[!#$%&'*+.^_`|~\w-]{1,256}$/.test(name)
  return isName && typeof content === 'string' && content.length <= FIELD_CHARACTERS && !/[\0\r\n]/.test(content)
}

/** Text, or `{ "encoding": "base64", "content": … }`. */
function readContent(reader: OptionReader): Buffer | undefined {
  const given = reader.given('body')
  if (given === undefined) return undefined
  if (typeof given === 'string') return Buffer.from(given)
  if (isMap(given) && typeof given.content === 'string') {
    if (given.encoding === 'text') return Buffer.from(given.content)
    if (given.encoding === 'base64' && /^[A-Za-z0-9+/]*={0,2}$/.test(given.content)) {
      return Buffer.from(given.content, 'base64')
    }
  }
  return reader.fault('body', 'must be text, or an object with `encoding` (`text` or `base64`) and `content`')
}

function matching(text: string, form: RegExp, fault: string): string {
  if (form.test(text)) return text
  throw new Error(fault)
}
