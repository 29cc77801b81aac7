/** The local API of an agent: its routes, and protection from other sites. */
import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { forgetExchanges, getExchange, listExchanges, replayExchange } from './exchange-routes.ts'
import { streamExchanges, streamFrames } from './exchange-stream.ts'
import { LocalRefusal, notFound, sendJson, sendRefusal } from './local-answer.ts'
import type { LocalCall, LocalParts } from './local-request.ts'
import { getRequest, listRequests, replayRequest } from './request-routes.ts'
import { getStatus, getTunnel, listTunnels, startTunnel, stopTunnel } from './tunnel-routes.ts'

interface LocalRoute {
  readonly path: RegExp
  readonly methods: Readonly<Record<string, (call: LocalCall) => void | Promise<void>>>
}

/** Matched without a trailing slash; `stream` must come before ids. */
const routes: readonly LocalRoute[] = [
  { path: /^\/api$/, methods: { GET: ({ response }) => sendJson(response, 200, root) } },
  { path: /^\/api\/status$/, methods: { GET: getStatus } },
  { path: /^\/api\/tunnels$/, methods: { GET: listTunnels, POST: startTunnel } },
  { path: /^\/api\/tunnels\/([^/]+)$/, methods: { GET: getTunnel, DELETE: stopTunnel } },
  {
    path: /^\/api\/requests\/http$/,
    methods: { GET: listRequests, POST: replayRequest, DELETE: forgetExchanges },
  },
  { path: /^\/api\/requests\/http\/([^/]+)$/, methods: { GET: getRequest } },
  { path: /^\/api\/exchanges$/, methods: { GET: listExchanges, DELETE: forgetExchanges } },
  { path: /^\/api\/exchanges\/stream$/, methods: { GET: streamExchanges } },
  { path: /^\/api\/exchanges\/([^/]+)$/, methods: { GET: getExchange } },
  { path: /^\/api\/exchanges\/([^/]+)\/replay$/, methods: { POST: replayExchange } },
  { path: /^\/api\/exchanges\/([^/]+)\/stream$/, methods: { GET: streamFrames } },
]

const root = {
  uri: '/api',
  status_uri: '/api/status',
  tunnels_uri: '/api/tunnels',
  requests_uri: '/api/requests/http',
  exchanges_uri: '/api/exchanges',
}

/** A file of the page, as it is sent. */
export interface InspectorFile {
  readonly type: string
  readonly bytes: Buffer
  /** Its content security policy. */
  readonly policy: string
}

/** The page: the file at a path, if there is one. */
export type InspectorPage = (path: string) => InspectorFile | undefined

interface LocalApiOptions extends LocalParts {
  /** The host that the listener was given. */
  readonly host: string
  readonly page: InspectorPage
}

/** For all responses: other sites, frames and caches must not get them. */
const headers = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  // A page that links here gets no reference to the window.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
} as const

export function localApi({ host, page, ...parts }: LocalApiOptions): RequestListener {
  return (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    response.on('error', () => {})
    answer(request, response).catch((error: unknown) => answerFailure(error, request, response))
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, path = '/', search = ''] = /^([^?#]*)(?:\?([^#]*))?/.exec(request.url ?? '/') ?? []
    const foreign = foreignRequest(request.headers, host, { isPage: path === '/' })
    if (foreign !== undefined) throw new LocalRefusal(403, foreign)
    const { method = 'GET' } = request
    const plain = path.length > 1 ? path.replace(/\/$/, '') : path
    const file = page(plain)
    if (file) return sendFile(response, method, file)
    const found = routes.find((route) => route.path.test(plain))
    if (!found) throw notFound(path)
    const handler = Object.hasOwn(found.methods, method) ? found.methods[method] : undefined
    if (!handler) {
      response.setHeader('Allow', Object.keys(found.methods).join(', '))
      throw new LocalRefusal(405, `${plain} accepts only ${Object.keys(found.methods).join(', ')}`)
    }
    const param = decodeParam(found.path.exec(plain)?.[1] ?? '', path)
    await handler({ ...parts, request, response, path, query: new URLSearchParams(search), param })
  }
}

function sendFile(response: ServerResponse, method: string, { type, bytes, policy }: InspectorFile): void {
  if (method !== 'GET' && method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD')
    throw new LocalRefusal(405, 'this page is read-only')
  }
  response.setHeader('Content-Security-Policy', policy)
  response.writeHead(200, { 'Content-Type': type, 'Content-Length': bytes.length })
  response.end(method === 'HEAD' ? undefined : bytes)
}

function decodeParam(param: string, path: string): string {
  try {
    return decodeURIComponent(param)
  } catch {
    throw notFound(path)
  }
}

function answerFailure(error: unknown, request: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  // The rest of a body is not read.
  if (!request.complete) response.setHeader('Connection', 'close')
  if (error instanceof LocalRefusal) sendRefusal(response, error)
  else {
    process.emitWarning(error instanceof Error ? error : String(error))
    sendRefusal(response, new LocalRefusal(500, 'the agent failed to handle the request; see its output'))
  }
}

interface ForeignOptions {
  /** Whether the request is for the document of the page, which is the same for everybody. */
  readonly isPage?: boolean
}

/**
 * Keeps pages of other sites out of the local API, which has no password. A browser says on whose behalf it sends: `Host`
 * reveals a name that was pointed here (DNS rebinding), `Origin` and `Sec-Fetch-Site` the page that sends a request. Why the
 * request is refused; undefined if it is not. `listens` is the host of the listener.
 */
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
