/** The functions of expressions that read the request, the response and the visitor's address: see docs/policy.md. */
import { isIP } from 'node:net'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { compileIpRules } from '../../../lib/net/ip-rules.ts'
import { isPublicAddress } from '../../../lib/net/public-address.ts'
import { BadInput } from '../../../lib/shape/bad-input.ts'
import { cookiesOf, setCookiesOf } from './cookie-values.ts'
import { Fault, type Frame, type Impl, type Impls } from './evaluation-frame.ts'
import { queryParameters } from './http-values.ts'
import { itemsOf } from './operators.ts'
import { requestHeader } from './request-headers.ts'

/** The cost of reading a header, and a character of cookies or of a query. */
const HEADER_NANOS = 20
const CALL_NANOS = 2000
const CHARACTER_NANOS = 40
/** The cost of comparing an address with a network, and of reading the network. */
const NETWORK_NANOS = 1500
const NEW_NETWORK_NANOS = 30_000
const ADDRESS_NANOS = 5000

type Network = (ip: string) => boolean

/** The most networks that are remembered. */
const MAX_NETWORKS = 1000
/** No network is written with more characters than this. */
const MAX_NETWORK = 64

/** Remembers the networks that expressions named, so that each is parsed once. */
export class Networks {
  readonly #known = new Map<string, Network>()

  /** a network that cannot be parsed holds no address. */
  holds(ip: string, network: string, { budget }: Frame): boolean {
    const known = this.#known.get(network)
    budget.charge(known ? NETWORK_NANOS : NEW_NETWORK_NANOS)
    return (known ?? this.#read(network))(ip)
  }

  #read(network: string): Network {
    if (network.length > MAX_NETWORK) return noAddress
    const made = compile(network)
    const [oldest] = this.#known.keys()
    if (this.#known.size >= MAX_NETWORKS && oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(network, made)
    return made
  }
}

const noAddress: Network = () => false

function compile(network: string): Network {
  try {
    return compileIpRules([{ action: 'allow', network }])
  } catch (error) {
    if (error instanceof BadInput) return noAddress
    throw error
  }
}

type Headers = (frame: Frame) => HeaderList | undefined
const ofRequest: Headers = ({ moment }) => moment.headers
const ofResponse: Headers = ({ moment }) => moment.response?.headers

const noResponse = new Fault('there is no response')

function header(headers: Headers, read: (values: readonly string[]) => unknown): Impl {
  return (frame, name) => {
    if (typeof name !== 'string') return undefined
    const list = headers(frame)
    if (!list) return noResponse
    frame.budget.charge(list.size * HEADER_NANOS + name.length)
    const key = name.toLowerCase()
    return read(headers === ofRequest ? requestHeader(frame.moment, key) : list.all(key))
  }
}

/** Charges for reading cookies. */
export function payCookies({ budget }: Frame, list: HeaderList, line: string): void {
  budget.charge(CALL_NANOS + list.size * HEADER_NANOS)
  for (let i = 0; i < list.size; i++) {
    if (list.nameAt(i).key === line) budget.charge(CALL_NANOS + list.valueAt(i).length * CHARACTER_NANOS)
  }
}

type Cookies = ReturnType<typeof cookiesOf>

function cookie(
  headers: Headers,
  line: string,
  all: typeof cookiesOf,
  read: (found: Cookies, name: string) => unknown,
): Impl {
  return (frame, name) => {
    if (typeof name !== 'string') return undefined
    const list = headers(frame)
    if (!list) return noResponse
    payCookies(frame, list, line)
    return read(all(list), name)
  }
}

const firstCookie = (found: Cookies, name: string): unknown =>
  found.get(name)?.[0] ?? new Fault('there is no such cookie')

export function payQuery({ budget }: Frame, query: string): void {
  budget.charge(CALL_NANOS + query.length * CHARACTER_NANOS)
}

function parameter(read: (found: ReturnType<typeof queryParameters>, name: string) => unknown): Impl {
  return (frame, name) => {
    if (typeof name !== 'string') return undefined
    const { request } = frame.moment
    if (!request) return new Fault('there is no request')
    payQuery(frame, request.query)
    return read(queryParameters(request.query), name)
  }
}

export function requestFunctions(networks: Networks): Impls {
  return {
    'inCidrRange/2': (frame, ip, cidr) =>
      typeof ip === 'string' && typeof cidr === 'string' ? networks.holds(ip, cidr, frame) : undefined,
    'inCidrRanges/2': (frame, ip, cidrs) => {
      if (typeof ip !== 'string' || !frame.library.cel.isCelList(cidrs)) return undefined
      const all = itemsOf(cidrs, frame.budget)
      if (!all.every((cidr) => typeof cidr === 'string')) return new Fault('networks are strings')
      return all.some((cidr) => networks.holds(ip, cidr, frame))
    },
    'isPrivateIp/1': ({ budget }, ip) => {
      if (typeof ip !== 'string') return undefined
      budget.charge(ADDRESS_NANOS)
      return isIP(ip) !== 0 && !isPublicAddress(ip)
    },
    'hasReqHeader/1': header(ofRequest, (values) => values.length > 0),
    'getReqHeader/1': header(ofRequest, (values) => [...values]),
    'hasResHeader/1': header(ofResponse, (values) => values.length > 0),
    'getResHeader/1': header(ofResponse, (values) => [...values]),
    'hasReqCookie/1': cookie(ofRequest, 'cookie', cookiesOf, (found, name) => found.has(name)),
    'getReqCookie/1': cookie(ofRequest, 'cookie', cookiesOf, firstCookie),
    'hasResCookie/1': cookie(ofResponse, 'set-cookie', setCookiesOf, (found, name) => found.has(name)),
    'getResCookie/1': cookie(ofResponse, 'set-cookie', setCookiesOf, firstCookie),
    'hasQueryParam/1': parameter((found, name) => found.has(name)),
    'getQueryParam/1': parameter((found, name) => [...(found.get(name) ?? [])]),
  }
}
