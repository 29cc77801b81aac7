/** Single logout, by either binding: ends logins when the identity provider says so. */
import { redirect } from '../login/local-path.ts'
import { digestOf, isFault, type LoginVisit, type ProviderPage } from '../login/login-provider.ts'
import type { RequestContext, RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import type { AcsParts } from './acs.ts'
import { addressesOf, paths } from './addresses.ts'
import { timeOf } from './assertion.ts'
import type { SentLogout } from './logout-request.ts'
import { logoutAnswerUrl } from './messages.ts'
import { asBusy, asDown, asLoginFault } from './saml-faults.ts'
import { readForm, readSignedQuery } from './sent-form.ts'

/** How old a request may be, in milliseconds. */
const REQUEST_MS = 10 * 60_000

/** The longest relay state that is sent back, in characters; SAML bindings §3.4.3 allows 80. */
const MAX_RELAY_STATE = 1024

/**
 * How long a used request is remembered, in milliseconds. Its time may be ahead of ours by as much as it may be behind, and
 * the clock of another node may differ.
 */
const USED_MS = 3 * REQUEST_MS

/** A signed request names a user, whose logins at this route end in all browsers; so the request needs no cookies. */
export function logoutPages(
  { provider, sharerOf }: Pick<AcsParts, 'provider' | 'sharerOf'>,
  { now, samlDocuments, requestKey }: ModuleTools,
): readonly ProviderPage[] {
  const receive = async (
    ctx: RequestContext,
    { refuse, endUser }: LoginVisit,
    { relayState, ...sent }: SentLogout & { readonly relayState: string },
  ): Promise<RequestVerdict> => {
    const idp = await provider().catch(asDown)
    if (isFault(idp)) return refuse(idp)
    const read = await samlDocuments.logoutRequest(sharerOf(ctx), sent, idp.certificates).catch(asBusy)
    if ('fault' in read) return refuse(asLoginFault(read))
    const { id, nameId, issuer, destination, issueInstant, notOnOrAfter } = read
    const addresses = addressesOf(ctx)
    if (issuer !== idp.entityId || (destination !== undefined && destination !== addresses.logout)) {
      return refuse({ fault: 'LOGIN_ANSWER_ELSEWHERE', reason: 'a logout request has another issuer or destination' })
    }
    const isOver = notOnOrAfter !== undefined && !(timeOf(notOnOrAfter) > now())
    if (isOver || !(Math.abs(timeOf(issueInstant) - now()) <= REQUEST_MS)) {
      return refuse({ fault: 'LOGIN_ANSWER_OUTDATED', reason: 'a logout request is expired or not yet valid' })
    }
    // Marked and carried out in one step: the identity provider may never send another.
    const asked = { key: digestOf(['saml', 'logout', addresses.logout, id]), untilMs: now() + USED_MS }
    if (!(await endUser(nameId, asked))) {
      return refuse({ fault: 'LOGIN_ANSWER_REPEATED', reason: 'a logout request was used before' })
    }
    if (idp.logoutUrl === undefined) return redirect(303, '/')
    const sending = {
      to: idp.logoutUrl,
      addresses,
      requestKey: await requestKey(),
      relayState: relayState.slice(0, MAX_RELAY_STATE),
      now: now(),
    }
    return redirect(303, await logoutAnswerUrl(sending, id))
  }

  return [
    {
      path: paths.logout,
      methods: ['GET'],
      async answer(ctx, visit) {
        const sent = readSignedQuery(ctx.query)
        return sent ? receive(ctx, visit, sent) : { refuse: 'LOGIN_ANSWER_UNSIGNED' }
      },
    },
    {
      path: paths.logout,
      methods: ['POST'],
      async answer(ctx, visit) {
        const form = await readForm(ctx, ['SAMLRequest', 'RelayState'])
        if ('verdict' in form) return form.verdict
        const [request = '', relayState = ''] = [form.get('SAMLRequest'), form.get('RelayState')]
        return receive(ctx, visit, { binding: 'post', request, relayState })
      },
    },
  ]
}
