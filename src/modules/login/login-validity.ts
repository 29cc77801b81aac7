/** Finds out whether a visitor is logged in. */
import { readCookies } from '../../lib/http/cookies.ts'
import type { Login, LoginScope } from '../../model/logins.ts'
import type { Peer, Refuse, RequestContext } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { isFault, type LoginProvider } from './login-provider.ts'
import { type LoginSettings, scopeId } from './login-settings.ts'
import { secretForm } from './session-secret.ts'
import { storeDown } from './store-down.ts'

/** How many session cookies are tried. A browser has one, unless somebody set another for a parent domain. */
const MAX_COOKIES = 3

/** How often a visitor's activity is noted, in milliseconds: the precision of the inactivity timeout. */
const SEEN_EVERY_MS = 1000

export type Standing = { readonly login: Login } | Refuse | undefined

type Held = { readonly loginScope: LoginScope; readonly login: Login }

/** The cookies of a request, and the places that they name. */
interface Shown {
  readonly cookie: string
  readonly host: string
  readonly routeId: string
  readonly scopes: readonly LoginScope[]
}

/** Undefined: not logged in. Runs for every request, so it usually costs one digest and no wait. */
export function standingAt(
  { cookies, inactivityMs, maximumMs, scope }: LoginSettings,
  provider: LoginProvider,
  { sessions, now, log, dryRun }: Pick<ModuleTools, 'sessions' | 'now' | 'log' | 'dryRun'>,
): (ctx: RequestContext) => Standing | Promise<Standing> {
  if (dryRun?.login) {
    const times = { createdAt: now(), checkedAt: now(), lastSeenAt: now() }
    const login: Login = { identity: provider.identity, user: dryRun.login, kept: {}, ...times }
    return () => ({ login })
  }
  /** Running checks by secret and host, so that many requests of one browser ask the provider once. */
  const checks = new Map<string, Promise<Standing>>()

  const stillHolds = (login: Login | undefined): login is Login =>
    login !== undefined &&
    login.identity === provider.identity &&
    (inactivityMs === 0 || now() - login.lastSeenAt <= inactivityMs) &&
    (maximumMs === 0 || now() - login.createdAt <= maximumMs)

  const isDue = ({ kept, checkedAt }: Login): boolean =>
    kept.rules !== provider.rules || (provider.checkEveryMs > 0 && now() - checkedAt >= provider.checkEveryMs)

  const judge = ({ loginScope, login }: Held): Standing | Promise<Standing> => {
    if (provider.check && isDue(login)) return checkOnce(loginScope, login)
    if (login.kept.isRefused) return { refuse: 'LOGIN_NOT_ALLOWED' }
    if (now() - login.lastSeenAt >= SEEN_EVERY_MS) sessions.seen(loginScope, now())
    return { login }
  }

  const checkOnce = (loginScope: LoginScope, login: Login): Promise<Standing> => {
    const key = `${loginScope.secret} ${loginScope.host}`
    const check = checks.get(key) ?? askProvider(loginScope, login).finally(() => checks.delete(key))
    checks.set(key, check)
    return check
  }

  const askProvider = async (loginScope: LoginScope, login: Login): Promise<Standing> => {
    const outcome = await provider.check?.(login)
    const times = { checkedAt: now(), lastSeenAt: now() }
    if (outcome === undefined) return undefined
    if (!isFault(outcome)) {
      const renewed = { ...login, ...times, user: outcome.user, kept: { ...outcome.kept, rules: provider.rules } }
      await sessions.renew(loginScope, renewed)
      return { login: renewed }
    }
    const { fault, reason } = outcome
    log.info(
      { edge: loginScope.edgeId, route: loginScope.routeId, provider: provider.name, reason },
      'login ended by a check',
    )
    if (fault === 'log_in_again') return undefined
    if (fault === 'LOGIN_NOT_ALLOWED') {
      // Stored, so that the provider is not asked again with each request of this visitor.
      const kept = { ...login.kept, rules: provider.rules, isRefused: 'yes' }
      await sessions.renew(loginScope, { ...login, ...times, kept })
    }
    return { refuse: fault }
  }

  const lookAt = (scopes: readonly LoginScope[], from: number): Standing | Promise<Standing> => {
    for (let i = from; i < scopes.length; i++) {
      const loginScope = scopes[i] as LoginScope // i < places.length
      const login = sessions.find(loginScope)
      if (login instanceof Promise) {
        return login.then((found) => (stillHolds(found) ? judge({ loginScope, login: found }) : lookAt(scopes, i + 1)))
      }
      if (stillHolds(login)) return judge({ loginScope, login })
    }
    return undefined
  }

  /** The last cookies of each connection: browsers send the same ones with every request. */
  const shown = new WeakMap<Peer, Shown>()

  const scopesOf = (ctx: RequestContext): readonly LoginScope[] => {
    const { headers, host, peer, routeId } = ctx
    const cookie = headers.count('cookie') === 1 ? headers.get('cookie') : undefined
    const known = cookie === undefined ? undefined : shown.get(peer)
    if (known && known.cookie === cookie && known.host === host && known.routeId === routeId) return known.scopes
    const scopes = shownSecrets(ctx, cookies.session).map((secret) => scopeOf(ctx, secret, scope))
    if (cookie !== undefined) shown.set(peer, { cookie, host, routeId, scopes })
    return scopes
  }

  return (ctx) => {
    const found = lookAt(scopesOf(ctx), 0)
    return found instanceof Promise ? found.catch((error: unknown) => storeDown(error)) : found
  }
}

export function shownSecrets({ headers }: Pick<RequestContext, 'headers'>, name: string): string[] {
  const secrets: string[] = []
  for (const [, value] of readCookies(headers, (each) => each === name)) {
    if (secrets.length < MAX_COOKIES && secretForm.test(value)) secrets.push(value)
  }
  return secrets
}

export function scopeOf(
  { host, edgeId, routeId }: RequestContext,
  secret: string,
  scope: string | undefined,
): LoginScope {
  return { secret, host, edgeId, routeId: scopeId(routeId, scope) }
}
