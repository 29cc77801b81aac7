/** The registry of modules' forms: what the API stores for each, and which of them can be combined. */
import { Refusal } from '../model/errors.ts'
import { backend } from './backend/form.ts'
import { basicAuth } from './basic_auth/form.ts'
import { circuitBreaker } from './circuit_breaker/form.ts'
import { compression } from './compression/form.ts'
import { ipRestriction } from './ip_restriction/form.ts'
import type { Module, ModuleConfig, Place } from './module.ts'
import { mutualTls } from './mutual_tls/form.ts'
import { oauth } from './oauth/form.ts'
import { oidc } from './oidc/form.ts'
import { hasLogins, policy } from './policy/form.ts'
import { requestHeaders } from './request_headers/form.ts'
import { responseHeaders } from './response_headers/form.ts'
import { saml } from './saml/form.ts'
import { tlsTermination } from './tls_termination/form.ts'
import { userAgentFilter } from './user_agent_filter/form.ts'
import { webhookVerification } from './webhook_verification/form.ts'
import { websocketTcpConverter } from './websocket_tcp_converter/form.ts'

/** In the order in which they act, which is that of `traffic.ts`; answers of the API have them in this order too. */
export const modules: readonly Module[] = [
  tlsTermination,
  mutualTls,
  responseHeaders,
  compression,
  ipRestriction,
  userAgentFilter,
  webhookVerification,
  basicAuth,
  oauth,
  oidc,
  saml,
  websocketTcpConverter,
  policy,
  circuitBreaker,
  requestHeaders,
  backend,
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
 * Throws `Refusal` when modules that are each valid cannot be combined. `configs` holds, by name, every module that the edge
 * or route would have; `open` opens the secrets of one that must be read.
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
