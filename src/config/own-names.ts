/** The names of the server itself, as its settings have them: which its certificates hold, and which it orders some for. */
import { isIP } from 'node:net'
import type { Settings } from './read.ts'

type NameSettings = Pick<Settings, 'apiTls' | 'apiUrl' | 'apiListen' | 'domain'>

/** Addresses that are every address of a machine, and so no name of it. */
const everywhere: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Names and addresses by which callers reach the API, for a certificate of the server's own authority. Each once. */
export function namesOfApi({ apiUrl, apiListen, domain }: NameSettings): string[] {
  const listened = everywhere.has(apiListen.host) ? [] : [apiListen.host]
  return [...new Set(['localhost', '127.0.0.1', '::1', domain, ...hostsOf(apiUrl), ...listened])]
}

/** Names for which an authority is asked, where the server orders certificates. */
export function ownNames({ apiTls, apiUrl }: NameSettings): string[] {
  return apiTls ? hostsOf(apiUrl).filter((host) => isIP(host) === 0) : []
}

/** The host of a URL, if there is one: a name, or an address without brackets. */
function hostsOf(url: string | null): string[] {
  return url === null ? [] : [new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')]
}
