/** The steps of a login: to the provider, back from it, and logout (R-3.11, D51, D52). */
import { readCookies } from '../../lib/http/cookies.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import { pathOfRoute, type Refuse, type RequestContext, type Respond } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { ATTEMPT_MS, type AttemptScope, newAttemptId, openCookie, openState, sealCookie, sealState } from './attempt.ts'
import { localPath, redirect, uriOf } from './local-path.ts'
import { expireCookie, setCookie } from './login-cookies.ts'
import { isFault, type LoggedIn, type LoginFault, type LoginProvider, type LoginVisit } from './login-provider.ts'
import { type LoginSettings, scopeId } from './login-settings.ts'
import { scopeOf, shownSecrets } from './login-validity.ts'
import { sessionSecrets } from './session-secret.ts'
import { storeDown } from './store-down.ts'

/** How many attempts a browser may have open. Each has a cookie, and a page may send many requests before a login. */
const MAX_ATTEMPTS = 5

/** The longest `Max-Age` of a session cookie, in seconds: RFC 6265bis lets browsers cut it to 400 days. */
const MAX_AGE_SECONDS = 400 * 86_400

/** The form that an error code of a provider must have to be logged. */
const errorForm = /^[\w.-]{1,64}$/

type Pair = readonly [string, string]

export function loginFlow(
  { cookies, maximumMs, scope }: LoginSettings,
  provider: LoginProvider,
  { sealer, sessions, now, log }: Pick<ModuleTools, 'sealer' | 'sessions' | 'now' | 'log'>,
) {
  const [callbackPath] = provider.callbackPaths
  const secrets = sessionSecrets(sealer)
  const attemptScope = ({ edgeId, routeId }: RequestContext): AttemptScope => ({
    edgeId,
    routeId: scopeId(routeId, scope),
  })

  const refuse = ({ edgeId, routeId }: RequestContext, { fault, reason }: LoginFault, headers: Pair[] = []): Refuse => {
    const code: VisitorErrorCode = fault === 'log_in_again' ? 'LOGIN_CODE_REFUSED' : fault
    log.info({ edge: edgeId, route: routeId, provider: provider.name, code, reason }, 'a login failed')
    return { refuse: code, headers }
  }

  return {
    /** Sends the visitor to the provider, and afterwards to `to`, a path of this host. */
    async begin(ctx: RequestContext, to: string, isForced: boolean): Promise<Respond | Refuse> {
      const id = newAttemptId(now())
      const state = sealState(sealer, attemptScope(ctx), { id, host: ctx.host, startedAt: now() })
      const beginning = await provider.begin({
        state,
        redirectUri: uriOf(ctx, pathOfRoute(callbackPath, ctx.routeId)),
        isForced,
      })
      if (isFault(beginning)) return refuse(ctx, beginning)
      const { location, kept } = beginning
      const { identity } = provider
      const cookie = sealCookie(sealer, attemptScope(ctx), id, { identity, to: localPath(to) ?? '/', kept })
      const open = readCookies(ctx.headers, (name) => name.startsWith(cookies.nonce)).map(([name]) => name)
      // The ids sort by their time.
      const surplus = [...new Set(open)].sort().slice(0, -(MAX_ATTEMPTS - 1))
      return redirect(302, location, [
        setCookie(cookies.nonce + id, cookie, ATTEMPT_MS / 1000),
        ...surplus.filter(isCookieName).slice(0, 50).map(expireCookie),
      ])
    },

    /** Handles the return from the provider. */
    async finish(ctx: RequestContext): Promise<Respond | Refuse> {
      const params = new URLSearchParams(ctx.query)
      const [state, ...more] = params.getAll('state')
      if (state === undefined || state === '' || more.length > 0) return { refuse: 'LOGIN_STATE_MISSING' }
      const opened = openState(sealer, attemptScope(ctx), state)
      if (!opened) return { refuse: 'LOGIN_STATE_INVALID' }
      const { id, host, startedAt } = opened
      if (now() - startedAt > ATTEMPT_MS) return { refuse: 'LOGIN_STATE_EXPIRED' }
      if (host !== ctx.host) return { refuse: 'LOGIN_WRONG_HOST' }
      const name = cookies.nonce + id
      const [cookie, ...others] = readCookies(ctx.headers, (each) => each === name)
      const attempt = cookie && others.length === 0 ? openCookie(sealer, attemptScope(ctx), id, cookie[1]) : undefined
      // From here on the attempt is over, however it ends.
      const drop = expireCookie(name)
      if (!attempt) return { refuse: 'LOGIN_OTHER_BROWSER', headers: [drop] }
      if (attempt.identity !== provider.identity) return { refuse: 'LOGIN_STATE_INVALID', headers: [drop] }
      const error = params.get('error')
      if (error !== null) return refuse(ctx, providerError(error), [drop])
      const { to, kept } = attempt
      try {
        const outcome = await provider.finish({ redirectUri: uriOf(ctx, ctx.reservedPath ?? ''), state, params, kept })
        if (isFault(outcome)) return refuse(ctx, outcome, [drop])
        return redirect(302, to, [await remember(ctx, outcome), drop])
      } catch (error) {
        // The attempt cannot be repeated: the provider accepts its code once, and we its answer.
        return storeDown(error, [drop])
      }
    },

    /** Ends all logins of the browser on this host. */
    async end(ctx: RequestContext): Promise<Respond | Refuse> {
      try {
        for (const secret of shownSecrets(ctx, cookies.session)) await sessions.end({ secret, host: ctx.host })
      } catch (error) {
        // The cookie stays, so that the visitor can try again.
        return storeDown(error)
      }
      return redirect(302, '/', [expireCookie(cookies.session)])
    },

    /** What a page of the provider may do with logins. */
    visit: (ctx: RequestContext): LoginVisit => ({
      admit: async (outcome, to) => redirect(302, to, [await remember(ctx, outcome)]),
      endUser: (userId, asked) => {
        const { name, identity } = provider
        return sessions.endUser({ provider: name, identity, userId }, ctx.routeId, asked)
      },
      refuse: (fault) => refuse(ctx, fault),
    }),
  }

  /** Stores the login under a new secret, so that nobody who knew the old one can use it; returns the cookie for it. */
  async function remember(
    ctx: RequestContext,
    { user, kept, endsAt = Number.POSITIVE_INFINITY }: LoggedIn,
  ): Promise<Pair> {
    const at = now()
    const secret = secrets.make(ctx.host)
    const { identity, rules, name, url } = provider
    const login = { identity, user, kept: { ...kept, rules }, createdAt: at, checkedAt: at, lastSeenAt: at }
    const expiresAt = Math.min(endsAt, maximumMs > 0 ? at + maximumMs : Number.POSITIVE_INFINITY)
    const origin = {
      provider: name,
      providerUrl: url,
      ip: ctx.peer.ip,
      userAgent: ctx.headers.get('user-agent') ?? '',
      expiresAt: Number.isFinite(expiresAt) ? expiresAt : undefined,
    }
    await sessions.begin(scopeOf(ctx, secret, scope), login, origin, shownSecrets(ctx, cookies.session)[0])
    const seconds = maximumMs > 0 ? Math.min(maximumMs / 1000, MAX_AGE_SECONDS) : undefined
    return setCookie(cookies.session, secret, seconds)
  }
}

/** step 7: all errors of a provider look the same to visitors, except a refusal by the user. */
function providerError(error: string): LoginFault {
  const fault = error === 'access_denied' ? 'LOGIN_DENIED' : 'LOGIN_PROVIDER_ERROR'
  return { fault, reason: `the provider answered ${errorForm.test(error) ? error : 'with an error'}` }
}

/** Whether text that a browser sent as a cookie name can safely be sent back in `Set-Cookie`. */
function isCookieName(name: string): boolean {
  return /^[\w.-]{1,200}$/.test(name)
}
