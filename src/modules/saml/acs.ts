/** The page to which an identity provider posts its answers, and how a login continues from there. */
import { createHash, randomUUID } from 'node:crypto'
import { ATTEMPT_MS, openState, routeOfState } from '../login/attempt.ts'
import { localPath, redirect } from '../login/local-path.ts'
import {
  digestOf,
  isFault,
  type LoggedIn,
  type LoginFault,
  type LoginVisit,
  type ProviderPage,
} from '../login/login-provider.ts'
import { openJson, sealJson } from '../login/sealed-text.ts'
import { pathOfRoute, type Refuse, type RequestContext, type RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { addressesOf, paths } from './addresses.ts'
import { type Expected, judgeAnswer, MAX_HOLDS_MS } from './assertion.ts'
import type { SamlSettings } from './form.ts'
import type { IdentityProvider } from './metadata.ts'
import type { Sharer } from './saml-documents.ts'
import { asBusy, asDown, asLoginFault } from './saml-faults.ts'
import { readForm } from './sent-form.ts'

/** How long a browser may take from the POST to the GET after it, in milliseconds. */
const ANSWER_MS = 2 * 60_000

/**
 * How long we remember that the answer to a request was used, in milliseconds: longer than its attempt lasts, also
 * by the clock of another node.
 */
const USED_MS = ATTEMPT_MS + 2 * ANSWER_MS

/** What the answer in a POST must be, and where the GET after it goes. */
interface Way {
  readonly expected: Pick<Expected, 'requestId' | 'provedSince'>
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly context: string
}

/** What the POST learned, sealed for the GET. */
interface Sealed extends Pick<LoggedIn, 'user' | 'endsAt'> {
  /** Random, so that it can be accepted only once. */
  readonly id: string
  readonly at: number
}

export interface AcsParts {
  readonly provider: () => Promise<IdentityProvider>
  readonly sharerOf: (ctx: RequestContext) => Sharer
  /** Part of the context of seals: when the module changes, older sealed answers become useless. */
  readonly seal: string
}

/**
 * The POST comes from the provider's site, so browsers leave out our cookies, which are `SameSite=Lax`, and we cannot tell
 * which browser it is. So the POST only checks the answer, seals what it says about the user, and redirects (303) to the
 * same path with the sealed text in the query. That is a top-level GET, with cookies. The GET ends the attempt like the
 * callbacks of other providers: in the browser in which it began, and in no other.
 *
 * Between the two requests the server stores only that the answer was used. So they may reach different nodes, and no script
 * is needed.
 */
export function assertionConsumer(settings: SamlSettings, { provider, sharerOf, seal }: AcsParts, tools: ModuleTools) {
  const { force_authn: forcesAuthn, allow_idp_initiated: allowsUnsolicited, authorized_groups } = settings
  const { now, sealer, sessions, samlDocuments } = tools

  /** Whether something is used for the first time; it is remembered for this long, in milliseconds. */
  const isFirst = (key: string, rememberedMs: number): Promise<boolean> =>
    sessions.useAnswer({ key, untilMs: now() + rememberedMs })

  /** The user that an answer names, if all of the answer is valid. */
  const judge = async (
    ctx: RequestContext,
    answer: string,
    expected: Way['expected'],
  ): Promise<Sealed | LoginFault> => {
    const addresses = addressesOf(ctx)
    const idp = await provider().catch(asDown)
    if (isFault(idp)) return idp
    const read = await samlDocuments.answer(sharerOf(ctx), answer, idp.certificates).catch(asBusy)
    if ('fault' in read) return asLoginFault(read)
    const login = judgeAnswer(read, { ...expected, ...addresses, idpEntityId: idp.entityId }, now())
    if (isFault(login)) return login
    const rememberedMs = expected.requestId === undefined ? MAX_HOLDS_MS + USED_MS : USED_MS
    if (!(await isFirst(digestOf(['saml', 'assertion', addresses.acs, login.assertionId]), rememberedMs))) {
      return { fault: 'LOGIN_ANSWER_REPEATED', reason: 'the assertion was used before' }
    }
    if (authorized_groups.length > 0 && !authorized_groups.some((group) => login.groups.has(group))) {
      return { fault: 'LOGIN_NOT_ALLOWED', reason: 'the user is in none of the authorized groups' }
    }
    return { id: randomUUID(), at: now(), user: login.user, endsAt: login.endsAt }
  }

  /** Opens what was sealed for `context`, if it is fresh and was not used before. */
  const unsealLogin = async (text: string, context: string): Promise<LoggedIn | LoginFault> => {
    const opened = openJson<Sealed>(sealer, text, context) // only this file seals for this context
    if (opened === undefined)
      return { fault: 'LOGIN_STATE_INVALID', reason: 'the answer was not sealed for this login' }
    const { id, at, user, endsAt } = opened
    if (now() - at > ANSWER_MS) return { fault: 'LOGIN_STATE_EXPIRED', reason: 'the answer was sealed too long ago' }
    if (!(await isFirst(digestOf(['saml', 'sealed', id]), USED_MS))) {
      return { fault: 'LOGIN_ANSWER_REPEATED', reason: 'the sealed answer was used before' }
    }
    return { user, kept: {}, endsAt }
  }

  /** The POST of an identity provider. */
  const receive = async (ctx: RequestContext, { refuse }: LoginVisit): Promise<RequestVerdict> => {
    const form = await readForm(ctx, ['SAMLResponse', 'RelayState'])
    if ('verdict' in form) return form.verdict
    const relayState = form.get('RelayState') ?? ''
    const isOurs = routeOfState(relayState) === ctx.routeId
    if (!isOurs && !allowsUnsolicited) {
      return { refuse: relayState === '' ? 'LOGIN_STATE_MISSING' : 'LOGIN_STATE_INVALID' }
    }
    const way = isOurs ? solicited(ctx, relayState) : unsolicited(ctx, relayState)
    if ('refuse' in way) return way
    const outcome = await judge(ctx, form.get('SAMLResponse') ?? '', way.expected)
    if (isFault(outcome)) return refuse(outcome)
    const query = new URLSearchParams({ ...way.query, answer: sealJson(sealer, outcome, way.context) })
    return redirect(303, `${pathOfRoute(way.path, ctx.routeId)}?${query.toString()}`)
  }

  /** What an answer to a request of ours must be, and where its login continues. */
  const solicited = (ctx: RequestContext, state: string): Refuse | Way => {
    const opened = openState(sealer, ctx, state)
    if (!opened) return { refuse: 'LOGIN_STATE_INVALID' }
    if (now() - opened.startedAt > ATTEMPT_MS) return { refuse: 'LOGIN_STATE_EXPIRED' }
    if (opened.host !== ctx.host) return { refuse: 'LOGIN_WRONG_HOST' }
    const provedSince = forcesAuthn ? opened.startedAt : undefined
    const expected = { requestId: requestIdOf(state), provedSince }
    return { expected, path: paths.acs, query: { state }, context: solicitedContext(state) }
  }

  /** The same for a login that began at the identity provider. */
  const unsolicited = (ctx: RequestContext, relayState: string): Refuse | Way => {
    const to = targetOf(relayState, ctx.host)
    if (to === undefined) return { refuse: 'LOGIN_TARGET_REFUSED' }
    const expected = { requestId: undefined, provedSince: forcesAuthn ? now() - ATTEMPT_MS : undefined }
    return { expected, path: paths.unsolicited, query: { to }, context: unsolicitedContext(ctx, to) }
  }

  /** The GET after an unsolicited POST. The setting is checked again, since it may have changed in between. */
  const admitUnsolicited = async (ctx: RequestContext, { refuse, admit }: LoginVisit): Promise<RequestVerdict> => {
    const params = new URLSearchParams(ctx.query)
    const to = localPath(params.get('to') ?? '')
    if (to === undefined || !allowsUnsolicited) return { refuse: 'LOGIN_STATE_MISSING' }
    const outcome = await unsealLogin(params.get('answer') ?? '', unsolicitedContext(ctx, to))
    return isFault(outcome) ? refuse(outcome) : admit(outcome, to)
  }

  const solicitedContext = (state: string): string => `saml answer\0${seal}\0${state}`

  const unsolicitedContext = ({ edgeId, routeId, host }: RequestContext, to: string): string =>
    `saml unsolicited\0${seal}\0${edgeId}\0${routeId}\0${host}\0${to}`

  const pages: readonly ProviderPage[] = [
    { path: paths.acs, methods: ['POST'], answer: receive },
    { path: paths.unsolicited, methods: ['GET'], answer: admitUnsolicited },
  ]
  /** Ends the attempt of `state` with the sealed answer in the query of the GET. */
  const finish = (answer: string, state: string) => unsealLogin(answer, solicitedContext(state))
  return { pages, finish }
}

/** Derived from the relay state, so that the POST, which has no cookies, can compute it again. */
export function requestIdOf(state: string): string {
  return `_${createHash('sha256').update(state).digest('hex').slice(0, 40)}`
}

/** The page to show after a login that began at the provider: a path, or a URL of the host that got the POST. */
function targetOf(relayState: string, host: string): string | undefined {
  const path = localPath(relayState)
  if (path !== undefined) return path
  const url = /^https:\/\/[^\s\\]+$/i.test(relayState) ? URL.parse(relayState) : null
  if (!url || url.hostname !== host || url.username !== '' || url.password !== '') return undefined
  return localPath(url.pathname + url.search)
}
