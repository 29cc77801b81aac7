/** For tests: a browser that visits one route with a login, keeps its cookies, and follows no redirects. */
import { cookieRemover } from '../../../lib/http/cookies.ts'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { type Phases, pathOfRoute, type RequestContext, type RequestVerdict } from '../../phases.ts'
import { request } from '../../testing/test-request.ts'

export interface Visit {
  readonly path?: string
  readonly method?: string
  readonly host?: string
  readonly edgeId?: string
  readonly routeId?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string
  /** Whether another site made the browser post this: cookies that are `SameSite=Lax` are not sent. */
  readonly isCrossSite?: boolean
}

export interface Page {
  /** 200 when it reached the service. */
  readonly status: number
  /** The code of an error page. */
  readonly code: string | undefined
  readonly location: string
  readonly headers: HeaderList
  /** The request as the service saw it; undefined when it got none. */
  readonly upstream: HeaderList | undefined
  readonly ctx: RequestContext
}

export class TestBrowser {
  readonly cookies = new Map<string, string>()
  readonly #phases: Phases

  constructor(phases: Phases, cookies: ReadonlyMap<string, string> = new Map()) {
    this.#phases = phases
    for (const [name, value] of cookies) this.cookies.set(name, value)
  }

  async visit({
    path = '/',
    headers = {},
    host = 'app.example.com',
    isCrossSite = false,
    ...about
  }: Visit = {}): Promise<Page> {
    const [bare = '', query = ''] = path.split(/\?(.*)/s)
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const { routeId = 'edghtsrt_1' } = about
    const isReserved = (this.#phases.reserves ?? []).some((each) => pathOfRoute(each.path, routeId) === bare)
    const ctx = request({
      ...about,
      host,
      authority: host,
      target: path,
      path: bare,
      query,
      reservedPath: isReserved ? bare : undefined,
      headers: { ...(cookie !== '' && !isCrossSite && { cookie }), ...headers },
    })
    const verdict = await this.#phases.request?.(ctx)
    const page = pageOf(verdict, ctx)
    for (const value of page.headers.all('set-cookie')) this.#keep(value)
    if (verdict !== undefined) return page
    const upstream = ctx.headers.clone()
    cookieRemover(this.#phases.hidesCookies ?? [])(upstream)
    this.#phases.upstream?.({ headers: upstream }, ctx)
    return { ...page, upstream }
  }

  #keep(setCookie: string): void {
    const [pair = '', ...attributes] = setCookie.split('; ')
    const name = pair.slice(0, pair.indexOf('='))
    if (attributes.includes('Max-Age=0')) this.cookies.delete(name)
    else this.cookies.set(name, pair.slice(name.length + 1))
  }
}

function pageOf(verdict: RequestVerdict, ctx: RequestContext): Page {
  const made = (status: number, code: string | undefined, pairs: readonly (readonly [string, string])[]): Page => {
    const headers = HeaderList.of(pairs)
    return { status, code, location: headers.get('location') ?? '', headers, upstream: undefined, ctx }
  }
  if (verdict === undefined) return made(200, undefined, [])
  if ('refuse' in verdict) return made(0, verdict.refuse, verdict.headers ?? [])
  if ('respond' in verdict) return made(verdict.respond.status, undefined, verdict.respond.headers)
  throw new Error('a login closes no connection')
}
