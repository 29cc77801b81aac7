/** The names of the server itself, from its settings: for its own certificates, and for those that it orders. */
import { isIP } from 'node:net'
import { readNames } from '../../model/hostport.ts'
import type { Settings } from './read-settings.ts'

type AgentNames = Pick<Settings, 'domain' | 'agentNames' | 'agentAddress'>
type ApiNames = Pick<Settings, 'apiUrl' | 'apiListen' | 'domain'>
type KeptNames = Pick<Settings, 'apiUrl' | 'apiTls' | 'apiListen'> & AgentNames
type OrderedNames = Pick<Settings, 'apiTls' | 'apiUrl' | 'agentCertificate' | 'agentNames' | 'agentAddress'>

/** Wildcard addresses, by which nobody can reach the machine. */
const everywhere: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Names and addresses by which callers reach the API, for a certificate of the server's own authority. Each once. */
export function namesOfApi({ apiUrl, apiListen, domain }: ApiNames): string[] {
  const listened = everywhere.has(apiListen.host) ? [] : [apiListen.host]
  return [...new Set(['localhost', '127.0.0.1', '::1', domain, ...hostsOf(apiUrl), ...listened])]
}

/**
 * Names and addresses by which agents reach the server: the usual ones, and those that the operator adds with `--agent-names`
 * and `--agent-address`. Each once.
 */
export function namesForAgents({ domain, agentNames, agentAddress }: AgentNames): string[] {
  const ofNode = agentAddress ? [agentAddress.host.toLowerCase()] : []
  return [...new Set(['localhost', '127.0.0.1', '::1', domain, `connect.${domain}`, ...agentNames, ...ofNode])]
}

/** All names and addresses that are the server's own: nobody may have them for something else. */
export function reachedBy(settings: ApiNames & AgentNames): ReadonlySet<string> {
  return new Set([...namesOfApi(settings), ...namesForAgents(settings)].map((name) => name.toLowerCase()))
}

/**
 * Names by which callers and agents reach the server, which no edge, endpoint or reservation may have (D105). `localhost` is
 * not among them, since it is all that many machines have.
 */
export function keptNames({ apiUrl, apiTls, apiListen, domain, agentNames, agentAddress }: KeptNames): Set<string> {
  const ofApi = [...hostsOf(apiUrl), ...(apiTls ? [apiListen.host] : [])]
  const ofAgents = [`connect.${domain}`, ...agentNames, ...(agentAddress ? [agentAddress.host] : [])]
  return new Set(readNames([...ofApi, ...ofAgents]).filter((name) => name !== 'localhost' && isIP(name) === 0))
}

/** Names for which the server orders certificates, if it does. */
export function ownNames({ apiTls, apiUrl, agentCertificate, agentNames, agentAddress }: OrderedNames): string[] {
  const ofApi = apiTls ? hostsOf(apiUrl) : []
  const ofAgents = agentCertificate === 'public' ? [...agentNames, ...(agentAddress ? [agentAddress.host] : [])] : []
  const names = [...ofApi, ...ofAgents].filter((host) => isIP(host) === 0)
  return [...new Set(names.map((name) => name.toLowerCase()))]
}

/** The host of a URL, if there is one: a name, or an address without brackets. */
function hostsOf(url: string | null): string[] {
  return url === null ? [] : [new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')]
}
