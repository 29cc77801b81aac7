/** Checks that a signed assertion is about a login here and now, and reads the user. */

import type { LoginFault } from '../login/login-provider.ts'
import type { Assertion, SamlAnswer } from './answer.ts'
import { readGroups, readPerson } from './attributes.ts'
import { BEARER } from './xml-names.ts'

/** How far the clock of the identity provider may be off, in milliseconds. */
const TOLERANCE_MS = 60_000

/** The longest validity of an unsolicited assertion, in milliseconds: for that long we must remember that it was used. */
export const MAX_HOLDS_MS = 24 * 3_600_000

export interface Expected {
  readonly idpEntityId: string
  readonly entityId: string
  readonly acs: string
  /** Undefined when there was no request: the login began at the identity provider. */
  readonly requestId: string | undefined
  /** The user must have given credentials after this time; undefined: at any time. */
  readonly provedSince: number | undefined
}

/** The login that an assertion describes, or why it lets nobody in. */
export function judgeAnswer(answer: SamlAnswer, expected: Expected, now: number): ReturnType<typeof loginOf> {
  const { assertion } = answer
  return (
    addressFault(answer, expected) ??
    confirmationFault(assertion, expected, now) ??
    conditionsFault(assertion, expected, now) ??
    statementFault(assertion, expected, now) ??
    loginOf(assertion)
  )
}

function addressFault(
  { destination, inResponseTo, issuer, assertion }: SamlAnswer,
  { idpEntityId, acs, requestId }: Expected,
): LoginFault | undefined {
  if (assertion.issuer !== idpEntityId) return misaddressed('the issuer is not the identity provider')
  if (issuer !== undefined && issuer !== idpEntityId) return misaddressed('the issuer is not the identity provider')
  if (destination !== undefined && destination !== acs) return misaddressed('the destination is another address')
  if (inResponseTo !== undefined && inResponseTo !== requestId) return misaddressed('it answers another request')
  return undefined
}

/** SAML profiles §4.1.4.3: the assertion must be meant for this URL and this request, and be valid now. */
function confirmationFault(
  { confirmations }: Assertion,
  { acs, requestId }: Expected,
  now: number,
): LoginFault | undefined {
  const bearers = confirmations.filter(({ method }) => method === BEARER)
  const [here] = bearers.filter(({ recipient }) => recipient === acs)
  if (!here)
    return misaddressed(bearers.length === 0 ? 'it has no bearer confirmation' : 'the recipient is another address')
  const ours = bearers.filter(({ recipient, inResponseTo }) => recipient === acs && inResponseTo === requestId)
  if (ours.length === 0) return misaddressed('it answers another request')
  const holding = ours.filter(
    ({ notBefore, notOnOrAfter }) => notOnOrAfter !== undefined && isNow({ notBefore, notOnOrAfter }, now),
  )
  if (holding.length === 0) return outdatedFault('the confirmation is expired or not yet valid')
  // The answer to a request of ours cannot outlive that request.
  const isTooLong = holding.some(({ notOnOrAfter }) => timeOf(notOnOrAfter) > now + MAX_HOLDS_MS)
  return requestId === undefined && isTooLong
    ? outdatedFault('the confirmation is valid for longer than a day')
    : undefined
}

function conditionsFault(
  { conditions: [conditions, another] }: Assertion,
  { entityId }: Expected,
  now: number,
): LoginFault | undefined {
  if (!conditions || another) return ambiguousFault('it has no conditions, or several')
  if (conditions.hasOthers) return ambiguousFault('it has a condition of an unknown kind')
  if (!isNow(conditions, now)) return outdatedFault('it is expired or not yet valid')
  const { audiences } = conditions
  const isForUs = audiences.length > 0 && audiences.every((each) => each.includes(entityId))
  return isForUs ? undefined : misaddressed('the audience is another one')
}

function statementFault(
  { statements: [statement, another] }: Assertion,
  { provedSince }: Expected,
  now: number,
): LoginFault | undefined {
  if (!statement || another) return ambiguousFault('it has no authentication statement, or several')
  const { sessionNotOnOrAfter, authnInstant } = statement
  if (!isNow({ notBefore: undefined, notOnOrAfter: sessionNotOnOrAfter }, now)) {
    return outdatedFault('the session at the identity provider is over')
  }
  if (provedSince === undefined) return undefined
  const proved = timeOf(authnInstant)
  // An identity provider may ignore our demand for credentials, or the user may have removed it from the request.
  if (Number.isNaN(proved) || proved < provedSince - TOLERANCE_MS) {
    return outdatedFault('the user was not asked for credentials again')
  }
  return undefined
}

function loginOf(assertion: Assertion) {
  const { id, nameIds, attributes, statements } = assertion
  const until = statements[0]?.sessionNotOnOrAfter
  const [nameId, another] = nameIds
  if (nameId === undefined || another !== undefined) return ambiguousFault('it has no name of the user, or several')
  const user = readPerson(nameId, attributes)
  if (!user || id === '') return ambiguousFault('the name of the user cannot be used')
  // SAML core §2.7.2: when the session at the identity provider ends, ours must end too.
  const endsAt = until === undefined ? undefined : timeOf(until) + TOLERANCE_MS
  return { assertionId: id, user, groups: readGroups(attributes), endsAt }
}

/** False for a time that cannot be read. */
function isNow(
  { notBefore, notOnOrAfter }: { notBefore: string | undefined; notOnOrAfter: string | undefined },
  now: number,
): boolean {
  const from = notBefore === undefined ? now : timeOf(notBefore)
  const to = notOnOrAfter === undefined ? Number.POSITIVE_INFINITY : timeOf(notOnOrAfter)
  return from <= now + TOLERANCE_MS && now - TOLERANCE_MS < to
}

/** SAML core §1.3.3: in UTC. */
export function timeOf(text: string | undefined): number {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(text ?? '') ? Date.parse(text ?? '') : Number.NaN
}

function misaddressed(reason: string): LoginFault {
  return { fault: 'LOGIN_ANSWER_ELSEWHERE', reason }
}

function outdatedFault(reason: string): LoginFault {
  return { fault: 'LOGIN_ANSWER_OUTDATED', reason }
}

function ambiguousFault(reason: string): LoginFault {
  return { fault: 'LOGIN_ANSWER_AMBIGUOUS', reason }
}
