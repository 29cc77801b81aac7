/**
 * Ends a login when the identity provider says so: single logout through the browser, by either binding. What is ended are
 * the logins of the browser that comes with the request, when it is logged in as the user that the request names.
 */

import { isFault, type LoginVisit, type ProviderPage } from '../login/provider.ts'
import { openText, sealText } from '../login/sealed-text.ts'
import { pathOfRoute, type RequestContext, type RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { addressesOf, paths } from './addresses.ts'
import { timeOf } from './assertion.ts'
import { asBusy, asDown, asLoginFault } from './faults.ts'
import type { LogoutRequest, SentLogout } from './logout-request.ts'
import { logoutAnswerUrl } from './messages.ts'
import type { IdentityProvider } from './metadata.ts'
import { onwards } from './responses.ts'
import { readForm, readSignedQuery } from './sent-form.ts'

/** How old a request may be, and how long it is remembered that it was used, in milliseconds. */
const REQUEST_MS = 10 * 60_000

/** Longest relay state that is given back, in characters; SAML bindings §3.4.3 allows 80. */
const MAX_RELAY_STATE = 1024

export interface LogoutParts {
  readonly provider: () => Promise<IdentityProvider>
  /** Whose work it is to read a document that a visitor sent. */
  readonly ownerOf: (ctx: RequestContext) => string
  /** Whether nobody came with `id` before. */
  readonly isFirst: (id: string, windowMs: number) => Promise<boolean>
}

/** What a checked request says, on its way from a POST, which has no cookies, to a GET. */
interface Wanted {
  readonly id: string
  readonly nameId: string
  readonly relayState: string
}

export function logoutPages({ provider, ownerOf, isFirst }: LogoutParts, tools: ModuleTools): readonly ProviderPage[] {
  const { now, sealer, samlDocuments, requestKey } = tools

  const contextOf = ({ edgeId, routeId, host }: RequestContext): string => `saml logout\0${edgeId}\0${routeId}\0${host}`

  /** Checks a request; `go` is what is done about one that is right. */
  const receive = async (
    ctx: RequestContext,
    visit: LoginVisit,
    sent: SentLogout & { readonly relayState: string },
    go: (wanted: Wanted) => Promise<RequestVerdict>,
  ): Promise<RequestVerdict> => {
    const idp = await provider().catch(asDown)
    if (isFault(idp)) return visit.refuse(idp)
    const { relayState, ...request } = sent
    const read = await samlDocuments.logoutRequest(ownerOf(ctx), request, idp.certificates).catch(asBusy)
    if ('fault' in read) return visit.refuse(asLoginFault(read))
    const { id, nameId, issuer, destination, issueInstant, notOnOrAfter }: LogoutRequest = read
    if (issuer !== idp.entityId || (destination !== undefined && destination !== addressesOf(ctx).logout)) {
      return visit.refuse({ fault: 'LOGIN_ANSWER_ELSEWHERE', reason: 'a logout request is of or for another' })
    }
    const isOver = notOnOrAfter !== undefined && !(timeOf(notOnOrAfter) > now())
    if (isOver || !(Math.abs(timeOf(issueInstant) - now()) <= REQUEST_MS)) {
      return visit.refuse({ fault: 'LOGIN_ANSWER_OUTDATED', reason: 'a logout request does not hold now' })
    }
    if (!(await isFirst(`logout ${addressesOf(ctx).logout} ${id}`, 2 * REQUEST_MS))) {
      return visit.refuse({ fault: 'LOGIN_ANSWER_REPEATED', reason: 'a logout request was used before' })
    }
    return go({ id, nameId, relayState: relayState.slice(0, MAX_RELAY_STATE) })
  }

  /** In the browser, with its cookies. */
  const end = async (ctx: RequestContext, visit: LoginVisit, wanted: Wanted): Promise<RequestVerdict> => {
    const login = await visit.login()
    const isOther = login !== undefined && login.user.id !== wanted.nameId
    const headers = login === undefined || isOther ? [] : await visit.end()
    const idp = await provider().catch(asDown)
    if (isFault(idp)) return visit.refuse(idp)
    const { logoutUrl } = idp
    if (logoutUrl === undefined) return onwards('/', headers)
    const { id: requestId, relayState } = wanted
    const own = { addresses: addressesOf(ctx), requestKey: await requestKey() }
    const sending = { to: logoutUrl, ...own, relayState, now: now() }
    return onwards(await logoutAnswerUrl(sending, { requestId, isDone: !isOther }), headers)
  }

  return [
    {
      path: paths.logout,
      methods: ['POST'],
      async answer(ctx, visit) {
        const form = await readForm(ctx, ['SAMLRequest', 'RelayState'])
        if ('verdict' in form) return form.verdict
        const [request = '', relayState = ''] = [form.get('SAMLRequest'), form.get('RelayState')]
        return receive(ctx, visit, { binding: 'post', request, relayState }, async (wanted) => {
          const sealed = sealText(sealer, JSON.stringify({ ...wanted, at: now() }), contextOf(ctx))
          return onwards(
            `${pathOfRoute(paths.logout, ctx.routeId)}?${new URLSearchParams({ request: sealed }).toString()}`,
          )
        })
      },
    },
    {
      path: paths.logout,
      methods: ['GET'],
      async answer(ctx, visit) {
        const sealed = new URLSearchParams(ctx.query).get('request')
        if (sealed === null) {
          const sent = readSignedQuery(ctx.query)
          if (!sent) return { refuse: 'LOGIN_ANSWER_UNSIGNED' }
          return receive(ctx, visit, sent, (wanted) => end(ctx, visit, wanted))
        }
        const opened = openText(sealer, sealed, contextOf(ctx))
        if (opened === undefined) return { refuse: 'LOGIN_STATE_INVALID' }
        const { at, ...wanted } = JSON.parse(opened) as Wanted & { at: number } // nobody else seals for this context
        return now() - at > REQUEST_MS ? { refuse: 'LOGIN_STATE_EXPIRED' } : end(ctx, visit, wanted)
      },
    },
  ]
}
