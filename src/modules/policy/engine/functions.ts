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
  size: oneArgument('string|bytes|list|map -> int'),
  type: oneArgument('any -> type'),
  dyn: oneArgument('any -> any'),
  bool: oneArgument('bool|string -> bool'),
  bytes: oneArgument('bytes|string -> bytes'),
  double: oneArgument('double|int|uint|string -> double'),
  duration: oneArgument('duration|string|int -> duration'),
  int: oneArgument('int|uint|double|string|timestamp|duration -> int'),
  matches: oneArgument('string string -> bool'),
  string: oneArgument('string|bool|int|uint|double|bytes|timestamp|duration -> string'),
  timestamp: oneArgument('timestamp|string|int -> timestamp'),
  uint: oneArgument('uint|int|double|string -> uint'),

  inCidrRange: oneArgument('string string -> bool'),
  inCidrRanges: oneArgument('string list -> bool'),
  isPrivateIp: oneArgument('string -> bool'),

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

  'base64.decode': oneArgument('string -> string'),
  'base64.encode': oneArgument('string|bytes -> string'),
  decodeBase64: oneArgument('string -> string'),
  encodeBase64: oneArgument('string|bytes -> string'),
  'json.decode': oneArgument('string -> any'),
  'json.encode': oneArgument('any -> string'),
  decodeJson: oneArgument('string -> any'),
  encodeJson: oneArgument('any -> string'),
  isJson: oneArgument('string -> bool'),
  'queryString.decode': oneArgument('string -> map'),
  'queryString.encode': oneArgument('map -> string'),
  isQueryString: oneArgument('string -> bool'),
  'url.escape': oneArgument('string -> string'),
  'url.parse': oneArgument('string -> any'),
  'url.unescape': oneArgument('string -> string'),
  isURL: oneArgument('string -> bool'),
  'basic_auth.encode': oneArgument('string string -> string'),
  'strings.quote': oneArgument('string -> string'),
  'lists.range': oneArgument('int -> list'),

  'hash.crc32': oneArgument('string string? -> string'),
  'hash.md5': oneArgument('string string? -> string'),
  'hash.sha1': oneArgument('string string? -> string'),
  'hash.sha256': oneArgument('string string? -> string'),
  'hash.sha512': oneArgument('string string? -> string'),
  'rand.double': oneArgument('-> double'),
  'rand.int': oneArgument('int int -> int'),
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

function oneArgument(text: string): Func {
  return signature(text, 0)
}

function on(text: string): Func {
  return signature(text, 1)
}

function http(text: string): Func {
  return { ...oneArgument(text), phases: ['request', 'response'] }
}

function response(text: string): Func {
  return { ...oneArgument(text), phases: ['response'] }
}
