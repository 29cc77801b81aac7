/** The registry of edge modules, in their order of execution. */
import { Refusal } from '../model/errors.ts'
import { backend } from './backend/index.ts'
import { ipRestriction } from './ip_restriction/index.ts'
import type { Module, ModuleConfig, Place } from './module.ts'
import { mutualTls } from './mutual_tls/index.ts'
import { oidc } from './oidc/index.ts'
import { policy } from './policy/index.ts'
import { requestHeaders } from './request_headers/index.ts'
import { tlsTermination } from './tls_termination/index.ts'
import { userAgentFilter } from './user_agent_filter/index.ts'

/**
 * The order within one phase. A phase that comes earlier runs earlier whatever this list says: on TCP and TLS
 * edges `ip_restriction` judges the connection before any handshake.
 */
export const modules: readonly Module[] = [
  tlsTermination, // first: all that follows may need what TLS protects
  mutualTls, // part of the same handshake: no request exists before it
  ipRestriction, // cheapest verdict, and it keeps strangers away from the login
  userAgentFilter, // still cheap, and a refused program should not be sent to log in
  oidc, // before policy, so that no rule acts for a visitor who is not known
  policy, // sees the request as the visitor sent it
  requestHeaders, // last change before upstream: no other module sees it
  backend, // the end: takes what all others let through
]

/** The modules that attach to `place`, in order. */
export function modulesAt(place: Place): readonly Module[] {
  return modules.filter((module) => module.at[place] !== undefined)
}

/**
 * Throws `Refusal` when modules that are each valid cannot stand together; `configs` holds, by name, every module that
 * the edge or route would have. D33: with TLS passed through, no module can look inside the traffic, and one that was
 * silently blind would let traffic through unguarded.
 */
export function moduleConflicts(place: Place, configs: ReadonlyMap<string, ModuleConfig>): void {
  if (place !== 'tls' || !passesThrough(configs)) return
  const blind = modulesAt(place).filter((module) => {
    const config = configs.get(module.name)
    return module !== tlsTermination && config?.enabled && module.needs(config) !== 'bytes'
  })
  if (blind.length === 0) return
  const names = blind.map((module) => `\`${module.name}\``).join(', ')
  throw new Refusal(
    'MODULE_NEEDS_TERMINATION',
    `TLS passes through this edge, so it does not see the traffic that these modules need: ${names}; set \`tls_termination.terminate_at\` to \`edge\`, or disable or delete these modules`,
  )
}

/** D31: without a say of its own, TLS passes through, unless mutual TLS needs it to end here. */
function passesThrough(configs: ReadonlyMap<string, ModuleConfig>): boolean {
  const termination = configs.get(tlsTermination.name)
  if (termination?.enabled) return termination.terminate_at === 'upstream'
  return configs.get(mutualTls.name)?.enabled !== true
}
