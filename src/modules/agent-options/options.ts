/** Turns the options of an agent's bind into settings of modules. */

import { NEVER_HERE, patternPrice } from '../../lib/patterns/pattern-price.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { refusals } from '../../model/agent-errors.ts'
import { type AgentModules, BindRefusal } from '../../model/endpoint.ts'
import { errors, Refusal } from '../../model/errors.ts'
import { headerPrice } from '../../model/header-rules.ts'
import type { BasicAuthSettings } from '../basic_auth/form.ts'
import { certificatePrice } from '../certificate-price.ts'
import { ENTRY_PRICE } from '../oauth/providers.ts'
import { readHeaders } from './header-options.ts'
import { readOAuth, readOidc, refuseTwoLogins } from './login-options.ts'
import { readPolicy, refuseBlindPolicy } from './policy-options.ts'
import { readCertificate, readClientAuthorities } from './tls-options.ts'
import {
  type BindProto,
  isEmpty,
  readCircuitBreaker,
  readCredentials,
  readNetworks,
  readPair,
  readSwitch,
  readUserAgents,
  readWebhook,
} from './values.ts'

interface AgentOption {
  /** As agents spell it in `Opts`, where names may be in any case. */
  readonly name: string
  readonly module: string
  /** Where the module attaches, by protocol; a bind of another that sets the option is refused. */
  readonly at: Partial<Record<BindProto, keyof AgentModules>>
  /** The settings of the module, or undefined when nothing is asked for; throws `BindRefusal`, `BadValue` or `Refusal`. */
  readonly read: (value: unknown, name: string, proto: BindProto) => unknown
}

const web = { http: 'route', https: 'route' } as const

/**
 * All options with which an agent may guard or change traffic. Names, addresses and what the agent does itself are read
 * elsewhere.
 */
const options: readonly AgentOption[] = [
  { name: 'IPRestriction', module: 'ip_restriction', at: { ...web, tcp: 'edge', tls: 'edge' }, read: readNetworks },
  { name: 'MutualTLSCA', module: 'mutual_tls', at: { https: 'edge' }, read: readClientAuthorities },
  { name: 'MutualTLSAtEdge', module: 'mutual_tls', at: { tls: 'edge' }, read: readClientAuthorities },
  { name: 'TLSTermination', module: 'tls_termination', at: { tls: 'edge' }, read: readCertificate },
  { name: 'Auth', module: 'basic_auth', at: web, read: readPair },
  { name: 'BasicAuth', module: 'basic_auth', at: web, read: readCredentials },
  { name: 'UserAgentFilter', module: 'user_agent_filter', at: web, read: readUserAgents },
  { name: 'WebhookVerification', module: 'webhook_verification', at: web, read: readWebhook },
  { name: 'CircuitBreaker', module: 'circuit_breaker', at: web, read: readCircuitBreaker },
  { name: 'Compression', module: 'compression', at: web, read: readSwitch },
  { name: 'WebsocketTCPConverter', module: 'websocket_tcp_converter', at: web, read: readSwitch },
  { name: 'RequestHeaders', module: 'request_headers', at: web, read: readHeaders('request') },
  { name: 'ResponseHeaders', module: 'response_headers', at: web, read: readHeaders('response') },
  // Only with TLS: browsers refuse the cookies of a login over plain HTTP.
  { name: 'OAuth', module: 'oauth', at: { https: 'route' }, read: readOAuth },
  { name: 'OIDC', module: 'oidc', at: { https: 'route' }, read: readOidc },
  { name: 'Policy', module: 'policy', at: { ...web, tcp: 'edge', tls: 'edge' }, read: readPolicy },
  { name: 'TrafficPolicy', module: 'policy', at: { ...web, tcp: 'edge', tls: 'edge' }, read: readPolicy },
]

/** What `agentModules` costs, in the unit of `patternPrice`. */
export function bindPrice(opts: Readonly<Record<string, unknown>>): number {
  const all = Object.entries(opts)
  let price = all.length * VALUE_PRICE
  for (const [key, value] of all) {
    // A policy is never cheap to read, so it is not even measured here.
    if (policies.has(key.toLowerCase()) && !isEmpty(value)) return NEVER_HERE
    const priceOf = prices.get(key.toLowerCase())
    for (const text of texts(value)) price += VALUE_PRICE + (priceOf?.(text) ?? 0)
  }
  return price
}

const policies: ReadonlySet<string> = new Set(['policy', 'trafficpolicy'])

/** The price of any option, and of any text in one: some 2 µs. */
const VALUE_PRICE = 1

const prices: ReadonlyMap<string, (text: string) => number> = new Map([
  ['useragentfilter', patternPrice],
  ['mutualtlsca', certificatePrice],
  ['mutualtlsatedge', certificatePrice],
  ['tlstermination', certificatePrice],
  ['requestheaders', headerPrice],
  ['responseheaders', headerPrice],
  ['oauth', () => ENTRY_PRICE],
  ['oidc', () => ENTRY_PRICE],
])

/** The texts in a value, down to the depth at which options have any. */
function* texts(value: unknown, depth = 0): Generator<string> {
  if (typeof value === 'string') yield value
  else if (typeof value === 'object' && value !== null && depth < 3) {
    for (const each of Object.values(value)) yield* texts(each, depth + 1)
  }
}

/** The modules that a bind asks for. An option that cannot be served exactly as it was given is refused, never dropped. */
export function agentModules(proto: BindProto, opts: Readonly<Record<string, unknown>>): AgentModules | BindRefusal {
  const found = { edge: {} as Record<string, unknown>, route: {} as Record<string, unknown> }
  const byName = Map.groupBy(Object.entries(opts), ([key]) => key.toLowerCase())
  const problems: BindRefusal[] = []
  for (const option of options) {
    try {
      const settings = readOption(option, proto, givenOnce(byName.get(option.name.toLowerCase()) ?? [], option.name))
      if (settings === undefined) continue
      const modules = found[option.at[proto] ?? 'edge']
      modules[option.module] = joinSettings(option.module, modules[option.module], settings)
    } catch (error) {
      problems.push(asRefusal(error))
    }
  }
  try {
    if (proto === 'tls') refuseBlindPolicy(found.edge)
    refuseTwoLogins(found.route)
  } catch (error) {
    problems.push(asRefusal(error))
  }
  const [first] = problems
  return first ? new BindRefusal(first.ngrok, problems.map(({ message }) => message).join('; ')) : found
}

function readOption({ name, at, read }: AgentOption, proto: BindProto, value: unknown): unknown {
  if (value === undefined) return undefined
  if (at[proto] !== undefined) return read(value, name, proto)
  if (isEmpty(value)) return undefined
  const others = Object.keys(at).join(', ')
  throw refusals.badOption(`\`${name}\` works on these kinds of endpoints only: ${others}; this one is ${proto}`)
}

/** Merges the settings of two options for one module: agents have two ways to give credentials. */
function joinSettings(module: string, before: unknown, settings: unknown): unknown {
  if (before === undefined) return settings
  if (module === 'policy') throw refusals.badOption('`Policy` and `TrafficPolicy` are both given; keep one')
  // Besides `policy`, only `basic_auth` has two options for one protocol.
  const [first, second] = [before as BasicAuthSettings, settings as BasicAuthSettings]
  return { credentials: [...first.credentials, ...second.credentials] }
}

function asRefusal(error: unknown): BindRefusal {
  if (error instanceof BindRefusal) return error
  if (error instanceof BadValue) return refusals.badOption(error.message)
  if (error instanceof Refusal) return new BindRefusal(errors[error.code].ngrok, error.message)
  throw error
}

/** The value of an option, whatever the case of its name; undefined when it is missing or empty. */
function givenOnce(spelled: readonly (readonly [string, unknown])[], name: string): unknown {
  const values = spelled.map(([, value]) => value).filter((value) => !noValue.has(value))
  // We do not choose one: the other might be the guard that the user meant.
  if (values.length > 1) throw refusals.badOption(`\`${name}\` is given twice, in different spellings; keep one`)
  return values[0]
}

const noValue: ReadonlySet<unknown> = new Set([undefined, null, '', false])
