/** The registry of edge modules, in their order of execution. */
import { Refusal } from '../model/errors.ts'
import { backend } from './backend/index.ts'
import { basicAuth } from './basic_auth/index.ts'
import { circuitBreaker } from './circuit_breaker/index.ts'
import { compression } from './compression/index.ts'
import { ipRestriction } from './ip_restriction/index.ts'
import type { Module, ModuleConfig, Place } from './module.ts'
import { mutualTls } from './mutual_tls/index.ts'
import { oauth } from './oauth/index.ts'
import { oidc } from './oidc/index.ts'
import { policy } from './policy/index.ts'
import { hasLogins } from './policy/logins.ts'
import { requestHeaders } from './request_headers/index.ts'
import { responseHeaders } from './response_headers/index.ts'
import { saml } from './saml/index.ts'
import { tlsTermination } from './tls_termination/index.ts'
import { userAgentFilter } from './user_agent_filter/index.ts'
import { webhookVerification } from './webhook_verification/index.ts'
import { websocketTcpConverter } from './websocket_tcp_converter/index.ts'

/**
 * The order within one phase: connections and requests run down this list, responses come back up it. A phase
 * that comes earlier runs earlier whatever this list says: on TCP and TLS edges `ip_restriction` judges the connection
 * before any handshake.
 */
export const modules: readonly Module[] = [
  tlsTermination, // first: all that follows may need what TLS protects
  mutualTls, // part of the same handshake: no request exists before it
  responseHeaders, // last change before the visitor: no other module sees it, and it applies to answers of all
  compression, // on the way back after policy, whose rules see the response as the upstream sent it
  ipRestriction, // cheapest verdict, and it keeps strangers away from the login
  userAgentFilter, // still cheap, and a refused program should not be sent to log in
  webhookVerification, // needs the body, so after what needs less; before logins, as webhooks cannot log in
  basicAuth, // the login that needs no redirect; only endpoints of agents have it
  oauth, // before policy, so that no rule acts for an unknown visitor
  oidc, // as oauth: a route has at most one of the three enabled
  saml, // as oauth
  websocketTcpConverter, // after all guards: only visitors who may come in learn that it refuses plain requests
  policy, // sees the request as the visitor sent it
  circuitBreaker, // innermost verdict: counts what goes upstream and comes back, not answers of others
  requestHeaders, // last change before upstream: no other module sees it
  backend, // the end: gets what all others let through
]

/** The modules that attach to `place`, in order. */
export function modulesAt(place: Place): readonly Module[] {
  return modules.filter((module) => module.at[place] !== undefined)
}

/** The kinds of resource that modules can refer to. An edge depends on what its modules refer to. */
export function referredByModules(): ReadonlySet<string> {
  const kinds = modules.flatMap(({ at, reference, mentions }) => {
    // The keys of `at` are places; `Object.keys` types them as strings.
    const places = Object.keys(at) as Place[]
    return [...places.flatMap((place) => reference?.kinds(place) ?? []), ...(mentions?.kinds ?? [])]
  })
  return new Set(kinds)
}

type OpenModule = (module: Module, config: ModuleConfig) => ModuleConfig

/**
 * Throws `Refusal` when modules that are each valid cannot be combined; `configs` holds, by name, every module that
 * the edge or route would have, and `open` opens the secrets of one that must be read.
 */
export function moduleConflicts(
  place: Place,
  configs: ReadonlyMap<string, ModuleConfig>,
  open: OpenModule = (_module, config) => config,
): void {
  if (place === 'tls' && passesThrough(configs)) refuseBlind(configs, open)
  if (place === 'route') refuseSeveralLogins(configs, open)
}

/**
 * D33: where TLS passes through, no module can look inside the traffic. A guard that sees nothing would silently let
 * everything through.
 */
function refuseBlind(configs: ReadonlyMap<string, ModuleConfig>, open: OpenModule): void {
  const blind = modulesAt('tls').filter((module) => {
    const config = configs.get(module.name)
    return module !== tlsTermination && config?.enabled && module.needs(open(module, config)) !== 'bytes'
  })
  if (blind.length === 0) return
  const names = blind.map((module) => `\`${module.name}\``).join(', ')
  throw new Refusal(
    'MODULE_NEEDS_TERMINATION',
    `TLS passes through this edge, so it does not see the traffic that these modules need: ${names}; set \`tls_termination.terminate_at\` to \`edge\`, or disable or delete these modules`,
  )
}

/** D31: without `tls_termination`, TLS passes through, unless mutual TLS needs it to end here. */
function passesThrough(configs: ReadonlyMap<string, ModuleConfig>): boolean {
  const termination = configs.get(tlsTermination.name)
  if (termination?.enabled) return termination.terminate_at === 'upstream'
  return configs.get(mutualTls.name)?.enabled !== true
}

/** Whether a policy logs visitors in. A policy whose secrets cannot be opened serves nothing, so it does not. */
function logsIn(rules: ModuleConfig, open: OpenModule): boolean {
  try {
    return hasLogins(open(policy, rules))
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}

/** with two logins, a visitor would have to log in twice, and the upstream would get two users. */
function refuseSeveralLogins(configs: ReadonlyMap<string, ModuleConfig>, open: OpenModule): void {
  const logins = [oauth, oidc, saml].filter(({ name }) => configs.get(name)?.enabled)
  const [login] = logins
  const rules = configs.get(policy.name)
  if (login && rules?.enabled && logsIn(rules, open)) {
    throw new Refusal(
      'SEVERAL_LOGINS',
      `\`${login.name}\` is enabled on this route, and a rule of its \`policy\` logs visitors in too; keep one of them`,
    )
  }
  if (logins.length < 2) return
  const names = logins.map(({ name }) => `\`${name}\``).join(', ')
  throw new Refusal(
    'SEVERAL_LOGINS',
    `only one of \`oauth\`, \`oidc\` and \`saml\` may be enabled on a route, and these would be: ${names}; disable or delete all but one`,
  )
}
