/**
 * An identity provider as logins see it: a signed request by the redirect binding, and an answer by the POST binding.
 *
 * The answer is posted from the provider's site, and browsers send no cookie along that is `SameSite=Lax`, as ours are: at
 * that moment nobody knows which browser it is. So the POST checks the answer, seals what it says about the user, and sends
 * the browser on to the same address by a 303 that has it in its query. That is a GET at the top of a tab, with cookies,
 * and ends the attempt as the callbacks of other providers do: in the browser that it began in, and in no other. Nothing
 * is kept on the server between the two, so they may come to two nodes; and no script is needed.
 */
import { createHash, randomUUID } from 'node:crypto'
import { ATTEMPT_MS, openState, routeOfState } from '../login/attempt.ts'
import { localPath } from '../login/local-path.ts'
import { isFault, type LoggedIn, type LoginFault, type LoginProvider, type LoginVisit } from '../login/provider.ts'
import { openText, sealText } from '../login/sealed-text.ts'
import { pathOfRoute, type RequestContext, type RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { addressesBeside, addressesOf, paths } from './addresses.ts'
import { type Expected, judgeAnswer, MAX_HOLDS_MS } from './assertion.ts'
import { asBusy, asDown, asLoginFault } from './faults.ts'
import { identityProvider, type MetadataSource } from './identity-provider.ts'
import { logoutPages } from './logout.ts'
import { loginRequestUrl } from './messages.ts'
import { ownMetadata } from './own-metadata.ts'
import { onwards, xmlPage } from './responses.ts'
import { readForm } from './sent-form.ts'

export interface SamlClient extends MetadataSource {
  readonly forcesAuthn: boolean
  readonly allowsUnsolicited: boolean
  /** Empty: everybody. */
  readonly authorizedGroups: readonly string[]
  readonly nameIdFormat: string
}

/** How long a browser may take from the POST to the GET after it, in milliseconds. */
const ANSWER_MS = 2 * 60_000

/** How long it is remembered that an answer to a request was used, in milliseconds: longer than its attempt lasts. */
const USED_MS = ATTEMPT_MS + 2 * ANSWER_MS

/** What a POST found out, on its way to the GET. */
interface Sealed {
  readonly id: string
  readonly at: number
  readonly user: LoggedIn['user']
}

export function samlProvider(client: SamlClient, tools: ModuleTools): LoginProvider {
  const { forcesAuthn, allowsUnsolicited, authorizedGroups, nameIdFormat } = client
  const { now, sealer, counters, requestKey, samlDocuments } = tools
  const provider = identityProvider(client, tools)
  const owner = randomUUID()

  /** Whether nobody came with `id` before. */
  const isFirst = async (id: string, windowMs: number): Promise<boolean> =>
    (await counters.take(`saml ${id}`, { capacity: 1, windowMs })).isAllowed

  /** Who an answer says has logged in, when all of it is right. */
  const judged = async (answer: string, expected: Omit<Expected, 'idpEntityId'>): Promise<Sealed | LoginFault> => {
    const idp = await provider().catch(asDown)
    if (isFault(idp)) return idp
    const read = await samlDocuments.answer(owner, answer, idp.certificates).catch(asBusy)
    if ('fault' in read) return asLoginFault(read)
    const told = judgeAnswer(read, { ...expected, idpEntityId: idp.entityId }, now())
    if (isFault(told)) return told
    const windowMs = expected.requestId === undefined ? MAX_HOLDS_MS + USED_MS : USED_MS
    if (!(await isFirst(`${expected.acs} ${told.assertionId}`, windowMs))) {
      return { fault: 'LOGIN_ANSWER_REPEATED', reason: 'the assertion was used before' }
    }
    if (authorizedGroups.length > 0 && !authorizedGroups.some((group) => told.groups.has(group))) {
      return { fault: 'LOGIN_NOT_ALLOWED', reason: 'the user is in none of the authorized groups' }
    }
    return { id: told.assertionId, at: now(), user: told.user }
  }

  /** What was sealed for `context`, when it is fresh and comes for the first time. */
  const unsealed = async (text: string, context: string): Promise<LoggedIn | LoginFault> => {
    const opened = openText(sealer, text, context)
    if (opened === undefined)
      return { fault: 'LOGIN_STATE_INVALID', reason: 'the answer was not sealed for this login' }
    const { id, at, user } = JSON.parse(opened) as Sealed // nobody else seals for this context
    if (now() - at > ANSWER_MS) return { fault: 'LOGIN_STATE_EXPIRED', reason: 'the answer was sealed too long ago' }
    if (!(await isFirst(`sealed ${id}`, USED_MS))) {
      return { fault: 'LOGIN_ANSWER_REPEATED', reason: 'the sealed answer was used before' }
    }
    return { user, kept: {} }
  }

  /** The POST of an identity provider. */
  const receive = async (ctx: RequestContext, { refuse }: LoginVisit): Promise<RequestVerdict> => {
    const form = await readForm(ctx, ['SAMLResponse', 'RelayState'])
    if ('verdict' in form) return form.verdict
    const answer = form.get('SAMLResponse') ?? ''
    const relayState = form.get('RelayState') ?? ''
    const isOurs = routeOfState(relayState) === ctx.routeId
    if (!isOurs && !allowsUnsolicited) {
      return { refuse: relayState === '' ? 'LOGIN_STATE_MISSING' : 'LOGIN_STATE_INVALID' }
    }
    return isOurs
      ? receiveSolicited(ctx, answer, relayState, refuse)
      : receiveUnsolicited(ctx, answer, relayState, refuse)
  }

  const receiveSolicited = async (
    ctx: RequestContext,
    answer: string,
    state: string,
    refuse: LoginVisit['refuse'],
  ): Promise<RequestVerdict> => {
    const opened = openState(sealer, ctx, state)
    if (!opened) return { refuse: 'LOGIN_STATE_INVALID' }
    if (now() - opened.startedAt > ATTEMPT_MS) return { refuse: 'LOGIN_STATE_EXPIRED' }
    if (opened.host !== ctx.host) return { refuse: 'LOGIN_WRONG_HOST' }
    const outcome = await judged(answer, {
      ...addressesOf(ctx),
      requestId: requestIdOf(state),
      provedSince: forcesAuthn ? opened.startedAt : undefined,
    })
    if (isFault(outcome)) return refuse(outcome)
    const sealed = sealText(sealer, JSON.stringify(outcome), solicitedContext(state))
    return onwards(
      `${pathOfRoute(paths.acs, ctx.routeId)}?${new URLSearchParams({ state, answer: sealed }).toString()}`,
    )
  }

  const receiveUnsolicited = async (
    ctx: RequestContext,
    answer: string,
    relayState: string,
    refuse: LoginVisit['refuse'],
  ): Promise<RequestVerdict> => {
    const to = targetOf(relayState, ctx.host)
    if (to === undefined) return { refuse: 'LOGIN_TARGET_REFUSED' }
    const outcome = await judged(answer, {
      ...addressesOf(ctx),
      requestId: undefined,
      provedSince: forcesAuthn ? now() - ATTEMPT_MS : undefined,
    })
    if (isFault(outcome)) return refuse(outcome)
    const sealed = sealText(sealer, JSON.stringify(outcome), unsolicitedContext(ctx, to))
    return onwards(
      `${pathOfRoute(paths.unsolicited, ctx.routeId)}?${new URLSearchParams({ to, answer: sealed }).toString()}`,
    )
  }

  /** The module was changed since: sealed answers of a login that it would not take any more are none. */
  const admitUnsolicited = async (ctx: RequestContext, { refuse, admit }: LoginVisit): Promise<RequestVerdict> => {
    const params = new URLSearchParams(ctx.query)
    const to = localPath(params.get('to') ?? '')
    if (to === undefined || !allowsUnsolicited) return { refuse: 'LOGIN_STATE_MISSING' }
    const outcome = await unsealed(params.get('answer') ?? '', unsolicitedContext(ctx, to))
    return isFault(outcome) ? refuse(outcome) : admit(outcome, to)
  }

  const identity = digest(['saml', client.idp_metadata_url || writtenEntityId(client.idp_metadata), nameIdFormat])
  const rules = authorizedGroups.length > 0 ? digest(authorizedGroups) : ''

  function solicitedContext(state: string): string {
    return `saml answer\0${identity}\0${rules}\0${state}`
  }

  function unsolicitedContext({ edgeId, routeId, host }: RequestContext, to: string): string {
    return `saml unsolicited\0${identity}\0${rules}\0${edgeId}\0${routeId}\0${host}\0${to}`
  }

  return {
    name: 'saml',
    clientId: '',
    identity,
    rules,
    checkEveryMs: 0,
    callbackPaths: [paths.acs],
    variables: ({ id }) => [['saml.subject', id]],
    pages: [
      { path: paths.acs, methods: ['POST'], answer: receive },
      { path: paths.unsolicited, methods: ['GET'], answer: admitUnsolicited },
      {
        path: paths.metadata,
        methods: ['GET', 'HEAD'],
        async answer(ctx) {
          const { certificate } = await requestKey()
          return xmlPage(ownMetadata({ addresses: addressesOf(ctx), certificate, nameIdFormat }))
        },
      },
      ...logoutPages({ provider, owner, isFirst }, tools),
    ],

    async begin({ state, redirectUri, isForced }) {
      const idp = await provider().catch(asDown)
      if (isFault(idp)) return idp
      const addresses = addressesBeside(redirectUri)
      const sending = { to: idp.loginUrl, addresses, requestKey: await requestKey(), relayState: state, now: now() }
      const request = { id: requestIdOf(state), nameIdFormat, isForced: isForced || forcesAuthn }
      return { location: await loginRequestUrl(sending, request), kept: {} }
    },

    finish({ state, params }) {
      return unsealed(params.get('answer') ?? '', solicitedContext(state))
    },

    /** An identity provider cannot be asked about a user; it is asked to log the visitor in once more. */
    check: () => Promise.resolve({ fault: 'log_in_again', reason: 'the authorized groups changed' }),
  }
}

/** Made of the relay state, so that the POST, which has no cookie, knows it again. */
function requestIdOf(state: string): string {
  return `_${createHash('sha256').update(state).digest('hex').slice(0, 40)}`
}

/** Where a login goes that began at the provider: a path, or a URL of the host that it was posted to. */
function targetOf(relayState: string, host: string): string | undefined {
  const path = localPath(relayState)
  if (path !== undefined) return path
  const url = /^https:\/\/[^\s\\]+$/i.test(relayState) ? URL.parse(relayState) : null
  if (!url || url.hostname !== host || url.username !== '' || url.password !== '') return undefined
  return localPath(url.pathname + url.search)
}

/** For a digest alone: whether it is the right one is found out when the document is read. */
function writtenEntityId(metadata: string): string {
  return /\sentityID\s*=\s*(["'])(.*?)\1/s.exec(metadata)?.[2] ?? ''
}

function digest(parts: unknown): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}
