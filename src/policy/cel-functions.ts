/** The functions of expressions that the evaluator does not bring along (edge semantics §4.5). */
import { createHash, hash, randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import { crc32 } from 'node:zlib'
import type { CelFunc, CelInput, CelList, CelValue } from '@bufbuild/cel'
import { BadInput } from '../lib/bad-input.ts'
import type { HeaderList } from '../lib/header-list.ts'
import { compileIpRules } from '../lib/ip-rules.ts'
import { isPublicAddress } from '../lib/public-address.ts'
import { plainValue, textOf } from './cel-values.ts'
import { cookiesOf, setCookiesOf } from './cookies.ts'
import { queryParameters } from './http-values.ts'
import type { Moment } from './moment.ts'
import type { Cel } from './tree.ts'

/** What functions reach of the run that calls them. */
export interface Running {
  readonly moment: () => Moment
  readonly charge: (steps: number) => void
  readonly matches: (text: string, pattern: string) => boolean
}

/** What lists and texts may grow to; the budget ends most of them before. */
const MAX_ITEMS = 10_000
const MAX_TEXT = 256 * 1024
/** Items of a list that are copied in one step. */
const COPIED_A_STEP = 64
/** What it costs to take a text apart, and characters of it that cost one step more. */
const PARSE_STEPS = 4
const PARSED_A_STEP = 16
/** What it costs to read a network and compare it with an address. */
const NETWORK_STEPS = 20

export function ownFunctions(cel: Cel, running: Running): CelFunc[] {
  const { celFunc, celMethod, CelScalar } = cel
  const { DYN, STRING, INT, BOOL, DOUBLE } = CelScalar
  const LIST = cel.listType(DYN)
  type Impl = (...args: CelValue[]) => CelInput

  const func = (name: string, count: number, run: Impl): CelFunc =>
    celFunc(
      name,
      Array.from({ length: count }, () => DYN),
      DYN,
      run as never,
    )
  const method = (name: string, count: number, run: Impl): CelFunc =>
    celMethod(
      name,
      DYN,
      Array.from({ length: count }, () => DYN),
      DYN,
      function (this: CelValue, ...args: CelValue[]) {
        return run(this, ...args)
      },
    )
  const list = (value: CelValue | undefined): CelList => {
    if (value !== undefined && cel.isCelList(value)) return value
    throw new Error('a list is needed here')
  }
  const text = (value: CelValue | undefined): string => {
    if (typeof value === 'string') return value
    throw new Error('a string is needed here')
  }
  const bounded = (value: string): string => {
    if (value.length > MAX_TEXT) throw new Error('a text has become too long')
    return value
  }
  const both = (names: readonly string[], count: number, run: Impl): CelFunc[] =>
    names.map((name) => func(name, count, run))
  const request = (): NonNullable<Moment['request']> => {
    const { request: own } = running.moment()
    if (!own) throw new Error('there is no request')
    return own
  }
  const response = (): NonNullable<Moment['response']> => {
    const { response: own } = running.moment()
    if (!own) throw new Error('there is no response')
    return own
  }
  const cookie = (found: ReturnType<typeof cookiesOf>, name: string): CelInput => {
    const [first] = found.get(name) ?? []
    if (!first) throw new Error('there is no such cookie')
    return first as CelInput
  }
  /** The items of lists that grew: loops make theirs longer one by one, and must not walk it each time. */
  const grown = new WeakMap<CelList, CelValue[]>()
  const longer = (first: CelList, second: CelList): CelList => {
    running.charge((first.size + second.size) / COPIED_A_STEP)
    const items = (grown.get(first) ?? Array.from(first)).concat(grown.get(second) ?? Array.from(second))
    const list = cel.celList(items)
    grown.set(list, items)
    return list
  }
  const cookies = (headers: HeaderList): ReturnType<typeof cookiesOf> => {
    running.charge(PARSE_STEPS + (headers.get('cookie') ?? '').length / PARSED_A_STEP)
    return cookiesOf(headers)
  }
  const query = (text: string): ReturnType<typeof queryParameters> => {
    running.charge(PARSE_STEPS + text.length / PARSED_A_STEP)
    return queryParameters(text)
  }
  const hashes = ['md5', 'sha1', 'sha256', 'sha512'].flatMap((algorithm) => [
    func(`hash.${algorithm}`, 1, (value) => hash(algorithm, text(value), 'hex')),
    func(`hash.${algorithm}`, 2, (value, form) => createHash(algorithm).update(text(value)).digest(encoding(form))),
  ])
  const crc = (value: CelValue | undefined): Buffer => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(crc32(text(value)))
    return bytes
  }

  return [
    // Those of the library that grow without measure, or cost the square of what they are given.
    celFunc('_+_', [STRING, STRING], STRING, (a, b) => bounded(a + b)),
    celFunc('_+_', [LIST, LIST], LIST, (a, b) => longer(a, b)),
    celMethod('matches', STRING, [STRING], BOOL, function (this: string, pattern) {
      return running.matches(this, pattern)
    }),
    celFunc('matches', [STRING, STRING], BOOL, (value, pattern) => running.matches(value, pattern)),
    celMethod('replace', STRING, [STRING, STRING], STRING, function (this: string, from, to) {
      return bounded(replaceSome(this, from, to, Number.POSITIVE_INFINITY, running.charge))
    }),
    celMethod('replace', STRING, [STRING, STRING, INT], STRING, function (this: string, from, to, most) {
      const count = most < 0n ? Number.POSITIVE_INFINITY : Number(most)
      return bounded(replaceSome(this, from, to, count, running.charge))
    }),
    method('lower', 0, (value) => text(value).toLowerCase()),
    method('upper', 0, (value) => text(value).toUpperCase()),
    method('reverse', 0, (value) =>
      typeof value === 'string' ? Array.from(value).reverse().join('') : Array.from(list(value)).reverse(),
    ),
    method('distinct', 0, (value) => {
      // By their texts: to compare each with each would cost the square.
      const seen = new Map(Array.from(list(value), (item) => [`${typeof item} ${textOf(cel, item)}`, item]))
      return [...seen.values()]
    }),
    method('flatten', 0, (value) => flatten(cel, list(value), 1)),
    method('flatten', 1, (value, depth) => flatten(cel, list(value), Math.min(Number(depth), 8))),
    method('slice', 2, (value, from, to) => {
      const [start, end] = [Number(from), Number(to)]
      const { size } = list(value)
      if (!(start >= 0 && start <= end && end <= size)) throw new Error('a slice must lie within its list')
      return Array.from(list(value)).slice(start, end)
    }),
    method('sort', 0, (value) => Array.from(list(value)).sort(compare)),
    func('lists.range', 1, (count) => {
      const length = Number(count)
      if (!(length >= 0 && length <= MAX_ITEMS)) throw new Error(`a range has 0 to ${MAX_ITEMS} numbers`)
      running.charge(length / 4)
      return Array.from({ length }, (_, i) => BigInt(i))
    }),

    func('inCidrRange', 2, (ip, cidr) => isWithin(text(ip), [text(cidr)], running.charge)),
    func('inCidrRanges', 2, (ip, cidrs) => isWithin(text(ip), Array.from(list(cidrs), text), running.charge)),
    func('isPrivateIp', 1, (ip) => isIP(text(ip)) !== 0 && !isPublicAddress(text(ip))),

    func('hasReqHeader', 1, (name) => running.moment().headers.has(text(name).toLowerCase())),
    func('getReqHeader', 1, (name) => running.moment().headers.all(text(name).toLowerCase())),
    func('hasReqCookie', 1, (name) => cookies(running.moment().headers).has(text(name))),
    func('getReqCookie', 1, (name) => cookie(cookies(running.moment().headers), text(name))),
    func('hasQueryParam', 1, (name) => query(request().query).has(text(name))),
    func('getQueryParam', 1, (name) => [...(query(request().query).get(text(name)) ?? [])]),
    func('hasResHeader', 1, (name) => response().headers.has(text(name).toLowerCase())),
    func('getResHeader', 1, (name) => response().headers.all(text(name).toLowerCase())),
    func('hasResCookie', 1, (name) => setCookiesOf(response().headers).has(text(name))),
    func('getResCookie', 1, (name) => cookie(setCookiesOf(response().headers), text(name))),

    ...both(['base64.encode', 'encodeBase64'], 1, (value) =>
      Buffer.from(value instanceof Uint8Array ? value : text(value)).toString('base64'),
    ),
    ...both(['base64.decode', 'decodeBase64'], 1, (value) => Buffer.from(text(value), 'base64').toString('utf8')),
    ...both(['json.encode', 'encodeJson'], 1, (value = null) => bounded(JSON.stringify(plainValue(cel, value)))),
    ...both(['json.decode', 'decodeJson'], 1, (value) => {
      running.charge(text(value).length)
      return JSON.parse(text(value)) as CelInput
    }),
    func('isJson', 1, (value) => {
      running.charge(text(value).length)
      return isParsed(() => JSON.parse(text(value)))
    }),
    func('queryString.decode', 1, (value) => new Map(query(text(value)))),
    func('queryString.encode', 1, (value = null) => {
      const fields = plainValue(cel, value) as Readonly<Record<string, unknown>>
      const pairs = Object.entries(fields).flatMap(([name, each]) => [each].flat().map((one) => [name, String(one)]))
      return new URLSearchParams(pairs as [string, string][]).toString()
    }),
    func('isQueryString', 1, (value) => /^[^\s#?]*$/.test(text(value)) && text(value).includes('=')),
    func('url.escape', 1, (value) => bounded(encodeURIComponent(text(value)))),
    func('url.unescape', 1, (value) => decodeURIComponent(text(value))),
    func('url.parse', 1, (value) => {
      const { protocol, host, hostname, port, pathname, search, hash: fragment } = new URL(text(value))
      return {
        scheme: protocol.slice(0, -1),
        authority: host,
        host: hostname,
        port,
        path: pathname,
        query: search.slice(1),
        fragment: fragment.slice(1),
      }
    }),
    func('isURL', 1, (value) => URL.canParse(text(value))),
    func('basic_auth.encode', 2, (user, password) => Buffer.from(`${text(user)}:${text(password)}`).toString('base64')),

    ...hashes,
    func('hash.crc32', 1, (value) => crc(value).toString('hex')),
    func('hash.crc32', 2, (value, form) => crc(value).toString(encoding(form))),
    celFunc('rand.double', [], DOUBLE, () => Math.random()),
    celFunc('rand.int', [INT, INT], INT, (least, most) => {
      const [low, high] = [Number(least), Number(most)]
      if (!(low < high && high - low < 2 ** 47)) throw new Error('a random number needs a range that is not empty')
      return BigInt(randomInt(low, high))
    }),
  ]
}

function encoding(form: CelValue | undefined): 'hex' | 'base64' {
  if (form === 'hex' || form === 'base64') return form
  throw new Error('a digest is written as `hex` or `base64`')
}

/** Replaces from left to right, in one pass. */
function replaceSome(text: string, from: string, to: string, most: number, charge: (steps: number) => void): string {
  const pieces: string[] = []
  let at = 0
  for (let count = 0; count < most; count++) {
    const found = text.indexOf(from, from === '' && count > 0 ? at + 1 : at)
    if (found < 0 || (from === '' && at >= text.length && count > 0)) break
    charge(0.25 + to.length / 64)
    pieces.push(text.slice(at, found), to)
    at = found + from.length
  }
  pieces.push(text.slice(at))
  return pieces.join('')
}

function flatten(cel: Cel, list: Iterable<CelValue>, depth: number): CelValue[] {
  return Array.from(list).flatMap((item) => (depth > 0 && cel.isCelList(item) ? flatten(cel, item, depth - 1) : [item]))
}

function compare(a: CelValue, b: CelValue): number {
  if (typeof a !== typeof b || a === null || b === null || (typeof a === 'object' && typeof b === 'object')) {
    throw new Error('only numbers or strings of one kind can be sorted')
  }
  return a < b ? -1 : a > b ? 1 : 0
}

/** networks that cannot be read are left out. */
function isWithin(ip: string, cidrs: readonly string[], charge: (steps: number) => void): boolean {
  return cidrs.some((network) => {
    charge(NETWORK_STEPS)
    try {
      return compileIpRules([{ action: 'allow', network }])(ip)
    } catch (error) {
      if (error instanceof BadInput) return false
      throw error
    }
  })
}

function isParsed(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch {
    return false
  }
}
