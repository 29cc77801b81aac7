/**
 * Keeps pages of other sites out of the local API, which has no password. A browser says on whose behalf it sends: `Host`
 * reveals a name that was pointed here (DNS rebinding), `Origin` and `Sec-Fetch-Site` the page that sends a request.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'

interface ForeignOptions {
  /** Whether the request is for the document of the page, which is the same for everybody. */
  readonly isPage?: boolean
}

/** Why the request is refused; undefined if it is not. `listens` is the host of the listener. */
export function foreignRequest(
  headers: IncomingHttpHeaders,
  listens: string,
  { isPage = false }: ForeignOptions = {},
): string | undefined {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  if (!isOwnHost(host, listens)) return 'the Host header must be the address of the agent, such as localhost:4040'
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
    return 'pages of other origins may not use this API'
  }
  // A page of the same site but another port is another origin too.
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  return isForeign && !(isPage && isLink(headers)) ? 'pages of other sites may not use this API' : undefined
}

/** Whether the user follows a link, in a window and not in a frame. */
function isLink({ 'sec-fetch-mode': mode, 'sec-fetch-dest': goal }: IncomingHttpHeaders): boolean {
  return mode === 'navigate' && goal === 'document'
}

function isOwnHost(host: string, listens: string): boolean {
  const [, name = ''] = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?$/i.exec(host) ?? []
  const bare = name.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (bare === 'localhost' || bare === '::1' || /^127(?:\.\d{1,3}){3}$/.test(bare)) return true
  if (bare === '') return false
  // A listener at all addresses accepts any IP address: unlike a name, an address cannot be pointed here by others.
  if (listens === '0.0.0.0' || listens === '::') return isIP(bare) !== 0
  return bare === listens.toLowerCase()
}
