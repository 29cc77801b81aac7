/** The functions that expressions can call (edge semantics §4.5); what is not in these tables is refused. */
import type { Phase } from './phases.ts'
import type { Kind } from './shape.ts'

export interface Func {
  /** Fewest and most arguments. */
  readonly args: readonly [number, number]
  readonly gives: Kind
  /** Phases that have what it reads; all of them when left out. */
  readonly phases?: readonly Phase[]
}

/** Called alone: `size(x)`; those with a dot too: `base64.encode(x)`. */
export const functions: Readonly<Record<string, Func>> = {
  size: takes(1, 'number'),
  type: takes(1, 'value'),
  dyn: takes(1, 'any'),
  bool: takes(1, 'bool'),
  bytes: takes(1, 'value'),
  double: takes(1, 'number'),
  duration: takes(1, 'value'),
  int: takes(1, 'number'),
  matches: takes(2, 'bool'),
  string: takes(1, 'string'),
  timestamp: takes(1, 'timestamp'),
  uint: takes(1, 'number'),

  inCidrRange: takes(2, 'bool'),
  inCidrRanges: takes(2, 'bool'),
  isPrivateIp: takes(1, 'bool'),

  hasReqHeader: http(1, 'bool'),
  getReqHeader: http(1, 'list'),
  hasReqCookie: http(1, 'bool'),
  getReqCookie: http(1, 'any'),
  hasQueryParam: http(1, 'bool'),
  getQueryParam: http(1, 'list'),
  hasResHeader: response(1, 'bool'),
  getResHeader: response(1, 'list'),
  hasResCookie: response(1, 'bool'),
  getResCookie: response(1, 'any'),

  'base64.decode': takes(1, 'value'),
  'base64.encode': takes(1, 'string'),
  decodeBase64: takes(1, 'value'),
  encodeBase64: takes(1, 'string'),
  'json.decode': takes(1, 'any'),
  'json.encode': takes(1, 'string'),
  decodeJson: takes(1, 'any'),
  encodeJson: takes(1, 'string'),
  isJson: takes(1, 'bool'),
  'queryString.decode': takes(1, 'map'),
  'queryString.encode': takes(1, 'string'),
  isQueryString: takes(1, 'bool'),
  'url.escape': takes(1, 'string'),
  'url.parse': takes(1, 'any'),
  'url.unescape': takes(1, 'string'),
  isURL: takes(1, 'bool'),
  'basic_auth.encode': takes(2, 'string'),
  'strings.quote': takes(1, 'string'),
  'lists.range': takes(1, 'list'),

  'hash.crc32': takes([1, 2], 'string'),
  'hash.md5': takes([1, 2], 'string'),
  'hash.sha1': takes([1, 2], 'string'),
  'hash.sha256': takes([1, 2], 'string'),
  'hash.sha512': takes([1, 2], 'string'),
  'rand.double': takes(0, 'number'),
  'rand.int': takes(2, 'number'),
}

/** Called on a value: `x.startsWith('a')`. */
export const methods: Readonly<Record<string, Func>> = {
  size: takes(0, 'number'),
  contains: takes(1, 'bool'),
  endsWith: takes(1, 'bool'),
  matches: takes(1, 'bool'),
  startsWith: takes(1, 'bool'),

  charAt: takes(1, 'string'),
  format: takes(1, 'string'),
  indexOf: takes([1, 2], 'number'),
  lastIndexOf: takes([1, 2], 'number'),
  lower: takes(0, 'string'),
  lowerAscii: takes(0, 'string'),
  replace: takes([2, 3], 'string'),
  reverse: takes(0, 'value'),
  split: takes([1, 2], 'list'),
  substring: takes([1, 2], 'string'),
  trim: takes(0, 'string'),
  upper: takes(0, 'string'),
  upperAscii: takes(0, 'string'),

  distinct: takes(0, 'list'),
  flatten: takes([0, 1], 'list'),
  join: takes([0, 1], 'string'),
  slice: takes(2, 'list'),
  sort: takes(0, 'list'),

  getDate: takes([0, 1], 'number'),
  getDayOfMonth: takes([0, 1], 'number'),
  getDayOfWeek: takes([0, 1], 'number'),
  getDayOfYear: takes([0, 1], 'number'),
  getFullYear: takes([0, 1], 'number'),
  getHours: takes([0, 1], 'number'),
  getMilliseconds: takes([0, 1], 'number'),
  getMinutes: takes([0, 1], 'number'),
  getMonth: takes([0, 1], 'number'),
  getSeconds: takes([0, 1], 'number'),
}

/** How those that bind a variable or test a field are written; the parser expands them when they are. */
export const macros: Readonly<Record<string, string>> = {
  all: 'list.all(x, condition)',
  exists: 'list.exists(x, condition)',
  exists_one: 'list.exists_one(x, condition)',
  filter: 'list.filter(x, condition)',
  map: 'list.map(x, value)',
  has: 'has(value.field)',
}

function takes(args: number | readonly [number, number], gives: Kind): Func {
  return { args: typeof args === 'number' ? [args, args] : args, gives }
}

function http(args: number, gives: Kind): Func {
  return { ...takes(args, gives), phases: ['request', 'response'] }
}

function response(args: number, gives: Kind): Func {
  return { ...takes(args, gives), phases: ['response'] }
}
