/** The functions that expressions can call (listed in docs/policy.md); what is not in these tables is refused. */
import type { Phase } from './policy-phases.ts'
import type { Kind } from './policy-shape.ts'

export interface Func {
  /** Fewest and most arguments. */
  readonly args: readonly [number, number]
  /** The kinds that each operand may have, the value that a method is called on first. */
  readonly operands: readonly (readonly Kind[])[]
  readonly gives: Kind
  /** The phases in which it can be called; all when left out. */
  readonly phases?: readonly Phase[]
}

/** Called without a target: `size(x)`, and those with a namespace: `base64.encode(x)`. */
export const functions: Readonly<Record<string, Func>> = {
  size: alone('string|bytes|list|map -> int'),
  type: alone('any -> type'),
  dyn: alone('any -> any'),
  bool: alone('bool|string -> bool'),
  bytes: alone('bytes|string -> bytes'),
  double: alone('double|int|uint|string -> double'),
  duration: alone('duration|string|int -> duration'),
  int: alone('int|uint|double|string|timestamp|duration -> int'),
  matches: alone('string string -> bool'),
  string: alone('string|bool|int|uint|double|bytes|timestamp|duration -> string'),
  timestamp: alone('timestamp|string|int -> timestamp'),
  uint: alone('uint|int|double|string -> uint'),

  inCidrRange: alone('string string -> bool'),
  inCidrRanges: alone('string list -> bool'),
  isPrivateIp: alone('string -> bool'),

  hasReqHeader: http('string -> bool'),
  getReqHeader: http('string -> list'),
  hasReqCookie: http('string -> bool'),
  getReqCookie: http('string -> any'),
  hasQueryParam: http('string -> bool'),
  getQueryParam: http('string -> list'),
  hasResHeader: response('string -> bool'),
  getResHeader: response('string -> list'),
  hasResCookie: response('string -> bool'),
  getResCookie: response('string -> any'),

  'base64.decode': alone('string -> string'),
  'base64.encode': alone('string|bytes -> string'),
  decodeBase64: alone('string -> string'),
  encodeBase64: alone('string|bytes -> string'),
  'json.decode': alone('string -> any'),
  'json.encode': alone('any -> string'),
  decodeJson: alone('string -> any'),
  encodeJson: alone('any -> string'),
  isJson: alone('string -> bool'),
  'queryString.decode': alone('string -> map'),
  'queryString.encode': alone('map -> string'),
  isQueryString: alone('string -> bool'),
  'url.escape': alone('string -> string'),
  'url.parse': alone('string -> any'),
  'url.unescape': alone('string -> string'),
  isURL: alone('string -> bool'),
  'basic_auth.encode': alone('string string -> string'),
  'strings.quote': alone('string -> string'),
  'lists.range': alone('int -> list'),

  'hash.crc32': alone('string string? -> string'),
  'hash.md5': alone('string string? -> string'),
  'hash.sha1': alone('string string? -> string'),
  'hash.sha256': alone('string string? -> string'),
  'hash.sha512': alone('string string? -> string'),
  'rand.double': alone('-> double'),
  'rand.int': alone('int int -> int'),
}

/** Called on a value: `x.startsWith('a')`. */
export const methods: Readonly<Record<string, Func>> = {
  size: on('string|bytes|list|map -> int'),
  contains: on('string string -> bool'),
  endsWith: on('string string -> bool'),
  matches: on('string string -> bool'),
  startsWith: on('string string -> bool'),

  charAt: on('string int -> string'),
  format: on('string list -> string'),
  indexOf: on('string string int? -> int'),
  lastIndexOf: on('string string int? -> int'),
  lower: on('string -> string'),
  lowerAscii: on('string -> string'),
  replace: on('string string string int? -> string'),
  reverse: on('string|list -> any'),
  split: on('string string int? -> list'),
  substring: on('string int int? -> string'),
  trim: on('string -> string'),
  upper: on('string -> string'),
  upperAscii: on('string -> string'),

  distinct: on('list -> list'),
  flatten: on('list int? -> list'),
  join: on('list string? -> string'),
  slice: on('list int int -> list'),
  sort: on('list -> list'),

  getDate: on('timestamp string? -> int'),
  getDayOfMonth: on('timestamp string? -> int'),
  getDayOfWeek: on('timestamp string? -> int'),
  getDayOfYear: on('timestamp string? -> int'),
  getFullYear: on('timestamp string? -> int'),
  getHours: on('timestamp|duration string? -> int'),
  getMilliseconds: on('timestamp|duration string? -> int'),
  getMinutes: on('timestamp|duration string? -> int'),
  getMonth: on('timestamp string? -> int'),
  getSeconds: on('timestamp|duration string? -> int'),
}

/** The right form of each macro. The parser expands a macro in that form; in any other form it reaches us as a call. */
export const macros: Readonly<Record<string, string>> = {
  all: 'list.all(x, condition)',
  exists: 'list.exists(x, condition)',
  exists_one: 'list.exists_one(x, condition)',
  filter: 'list.filter(x, condition)',
  map: 'list.map(x, value)',
  has: 'has(value.field)',
}

/** Reads a signature such as `string int? -> bool`: the kinds of the operands, `?` for optional ones, and the result. */
function signature(text: string, targets: number): Func {
  const [before = '', gives = ''] = text.split('->').map((part) => part.trim())
  const operands = before.split(' ').filter((each) => each !== '')
  const fewest = operands.filter((each) => !each.endsWith('?')).length - targets
  return {
    args: [fewest, operands.length - targets],
    // The tables above name kinds only.
    operands: operands.map((each) => each.replace('?', '').split('|') as Kind[]),
    gives: gives as Kind,
  }
}

function alone(text: string): Func {
  return signature(text, 0)
}

function on(text: string): Func {
  return signature(text, 1)
}

function http(text: string): Func {
  return { ...alone(text), phases: ['request', 'response'] }
}

function response(text: string): Func {
  return { ...alone(text), phases: ['response'] }
}
