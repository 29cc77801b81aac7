/** What all login modules do to traffic; they differ only in their provider. */
import { readCookies } from '../../lib/http/cookies.ts'
import { type HeaderName, headerName } from '../../lib/http/header-name.ts'
import { toHeaderValue } from '../../lib/http/http-header.ts'
import type { Login } from '../../model/logins.ts'
import type { PathUse, Phases, RequestContext, RequestVerdict, Reserved, ReservedRequest } from '../phases.ts'
import { pathOfRoute, Slot } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { routeOfState } from './attempt.ts'
import { localPath } from './local-path.ts'
import { hiddenCookies } from './login-cookies.ts'
import { loginFlow } from './login-flow.ts'
import type { LoginConfig } from './login-form.ts'
import type { LoginProvider, ProviderPage } from './login-provider.ts'
import { readLoginConfig, scopeId } from './login-settings.ts'
import { type Standing, standingAt } from './login-validity.ts'
import { storeDown } from './store-down.ts'

/** D52 */
const loginPaths: readonly string[] = ['/postern/login', '/auth/authn']
const logoutPaths: readonly string[] = ['/postern/logout', '/auth/logout']

/** The longest token that is passed to an upstream, in characters: services accept some 8 KiB of headers in all. */
const MAX_TOKEN_LENGTH = 4096

type IdentityHeader = readonly [HeaderName, string]

/** The phases of a login, and what distinguishes the logins of a route. */
export interface LoginPhases extends Required<Pick<Phases, 'reserves' | 'hidesCookies' | 'request' | 'upstream'>> {
  /** Whether a request for a reserved path names this login. */
  readonly isNamed: (ctx: RequestContext) => boolean
  /** The login that let a request in. */
  readonly loginOf: (ctx: RequestContext) => Login | undefined
}

export function compileLogin(config: LoginConfig, provider: LoginProvider, tools: ModuleTools): LoginPhases {
  const settings = readLoginConfig(config)
  const { cookies, passesOptions, scope } = settings
  const visitorLogin = new Slot<Login>()
  const standing = standingAt(settings, provider, tools)
  const flow = loginFlow(settings, provider, tools)
  /** The headers that tell the upstream about a login: the same for all its requests. */
  const identities = new WeakMap<Login, readonly IdentityHeader[]>()
  const headersFor = (login: Login): readonly IdentityHeader[] => {
    const known = identities.get(login) ?? identityOf(login)
    identities.set(login, known)
    return known
  }

  const decide = (ctx: RequestContext, found: Standing): RequestVerdict | Promise<RequestVerdict> => {
    const isIn = found !== undefined && 'login' in found
    ctx.found.set('oauth.decision', isIn ? 'allow' : 'block')
    ctx.found.set('oauth.app_client_id', provider.clientId)
    if (!isIn) return found ?? flow.begin(ctx, ctx.target, false)
    const { user } = found.login
    ctx.found.set('oauth.user.id', user.id)
    ctx.found.set('oauth.user.name', user.name)
    ctx.found.set('oauth.user.email', user.email)
    for (const [name, value] of provider.variables?.(user) ?? []) ctx.found.set(name, value)
    visitorLogin.set(ctx, found.login)
    return undefined
  }

  const pages = provider.pages ?? []

  const answerPage = async (page: ProviderPage, ctx: RequestContext): Promise<RequestVerdict> => {
    try {
      return await page.answer(ctx, flow.visit(ctx))
    } catch (error) {
      return storeDown(error)
    }
  }

  /** The answer to a request for one of the login's own paths. */
  const answer = (ctx: RequestContext, path: string): RequestVerdict | Promise<RequestVerdict> => {
    const isHere = (template: string): boolean => pathOfRoute(template, ctx.routeId) === path
    const here = pages.filter((page) => isHere(page.path))
    const page = here.find(({ methods }) => methods.includes(ctx.method))
    if (page) return answerPage(page, ctx)
    const isLogout = logoutPaths.includes(path)
    const isPageAlone = here.length > 0 && !provider.callbackPaths.some(isHere)
    const methods = isPageAlone ? [] : isLogout ? ['GET', 'POST'] : ['GET']
    if (!methods.includes(ctx.method)) return wrongMethod([...methods, ...here.flatMap((each) => each.methods)])
    if (isLogout) return flow.end(ctx)
    return loginPaths.includes(path) ? flow.begin(ctx, wantedPath(ctx.query), true) : flow.finish(ctx)
  }

  /** The state names the login that it was made for. */
  const isOwnState = (query: string, routeId: string): boolean =>
    routeOfState(new URLSearchParams(query).get('state') ?? '') === scopeId(routeId, scope)
  const useOfCallback = ({ query, routeId }: ReservedRequest): PathUse => (isOwnState(query, routeId) ? 'own' : 'spare')

  const useOfLogin = ({ query, serves }: ReservedRequest): PathUse => {
    const named = new URLSearchParams(query).get('auth_id')
    if (named !== null && scope !== undefined) return named === scope ? 'own' : 'none'
    return serves(wantedPath(query).replace(/[?#].*$/, '')) ? 'own' : 'spare'
  }

  const useOfLogout = ({ headers }: ReservedRequest): PathUse =>
    readCookies(headers, (name) => name === cookies.session).length > 0 ? 'own' : 'spare'

  const reserves: readonly Reserved[] = [
    ...provider.callbackPaths.map((path) => ({ path, pathUse: useOfCallback })),
    ...loginPaths.map((path) => ({ path, pathUse: useOfLogin })),
    ...logoutPaths.map((path) => ({ path, pathUse: useOfLogout })),
    ...pages.map(({ path }) => ({ path, pathUse: () => 'own' as const })),
  ]
  const isOwn = (path: string, { routeId }: RequestContext): boolean =>
    reserves.some((each) => pathOfRoute(each.path, routeId) === path)

  return {
    reserves,
    hidesCookies: hiddenCookies(cookies),
    loginOf: (ctx) => visitorLogin.of(ctx),
    isNamed: ({ query, routeId, reservedPath }) =>
      loginPaths.includes(reservedPath ?? '')
        ? new URLSearchParams(query).get('auth_id') === scope
        : isOwnState(query, routeId),
    request(ctx) {
      const { reservedPath } = ctx
      if (reservedPath !== undefined && isOwn(reservedPath, ctx)) return answer(ctx, reservedPath)
      if (passesOptions && ctx.method === 'OPTIONS') return undefined
      const found = standing(ctx)
      return found instanceof Promise ? found.then((settled) => decide(ctx, settled)) : decide(ctx, found)
    },
    upstream({ headers }, ctx) {
      const login = visitorLogin.of(ctx)
      if (!login) return
      for (const [name, value] of headersFor(login)) headers.setChecked(name, value)
    },
  }
}

/** D52: a path, never a URL. */
function wantedPath(query: string): string {
  return localPath(new URLSearchParams(query).get('to') ?? '/') ?? '/'
}

function wrongMethod(methods: readonly string[]): RequestVerdict {
  const headers = [
    ['Allow', methods.join(', ')],
    ['Cache-Control', 'no-store'],
  ] as const
  return { respond: { status: 405, headers, body: '' } }
}

/** The headers for the upstream. Headers of these names that visitors send were removed before, in any spelling (D42b). */
function identityOf({ user, kept }: Login): IdentityHeader[] {
  const { accessToken = '', refreshToken = '' } = kept
  const all = [
    ['postern-auth-user-id', user.id],
    ['postern-auth-user-name', user.name],
    ['postern-auth-user-email', user.email],
    ['postern-auth-oauth-access-token', accessToken],
    ['postern-auth-oauth-refresh-token', refreshToken],
    ...Object.entries(kept).filter(([name]) => name.startsWith('postern-auth-')),
  ] as const
  return all
    .filter(([, value]) => value !== '' && value.length <= MAX_TOKEN_LENGTH)
    .map(([name, value]) => [headerName(name), toHeaderValue(value)])
}
