/** Reads a signed logout request of an identity provider, by either binding. */
import { createPublicKey, verify } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { type AnswerFault, readText, signatureFault } from './answer.ts'
import { childrenOf, everyElement, isNamed, onlyChild } from './elements.ts'
import { isSignedRequest } from './signed-xml.ts'
import { readXml, type XmlElement } from './xml.ts'
import { ASSERTION, PROTOCOL, SIGNATURE } from './xml-names.ts'

export interface LogoutRequest {
  readonly id: string
  readonly issuer: string
  readonly nameId: string
  readonly destination: string | undefined
  readonly issueInstant: string | undefined
  readonly notOnOrAfter: string | undefined
}

/** A logout request as it was received. */
export type SentLogout =
  | { readonly binding: 'post'; readonly request: string }
  | {
      readonly binding: 'redirect'
      readonly request: string
      /** The signed part of the query (SAML bindings §3.4.4.1), exactly as it was sent. */
      readonly signed: string
      readonly algorithm: string
      readonly signature: string
    }

/** The largest request after inflating, in bytes; real ones have a few hundred. */
const MAX_INFLATED = 64 * 1024

const digests: Readonly<Record<string, string>> = {
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256': 'sha256',
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512': 'sha512',
}

/** Runs on the same threads as `readAnswer`. */
export async function readLogoutRequest(
  sent: SentLogout,
  certificates: readonly string[],
): Promise<LogoutRequest | AnswerFault> {
  try {
    const xml = sent.binding === 'post' ? readText(sent.request) : readText(inflate(sent.request))
    const root = readXml(xml)
    if (!isNamed(root, PROTOCOL, 'LogoutRequest')) return { fault: 'unreadable', reason: 'it is not a logout request' }
    const fault = sent.binding === 'post' ? postFault(root) : redirectFault(sent, certificates)
    if (fault !== undefined) return { fault: 'unsigned', reason: fault }
    if (sent.binding === 'post' && !(await isSignedRequest(xml, certificates))) {
      return { fault: 'unsigned', reason: 'no key of the identity provider verifies the signature' }
    }
    const nameId = onlyChild(root, ASSERTION, 'NameID')?.text.trim() ?? ''
    if (nameId === '') return { fault: 'ambiguous', reason: 'it does not name one user' }
    return {
      id: root.attributes.get('ID') ?? '',
      issuer: onlyChild(root, ASSERTION, 'Issuer')?.text.trim() ?? '',
      nameId,
      destination: root.attributes.get('Destination'),
      issueInstant: root.attributes.get('IssueInstant'),
      notOnOrAfter: root.attributes.get('NotOnOrAfter'),
    }
  } catch (error) {
    if (error instanceof BadInput) return { fault: 'unreadable', reason: error.message }
    throw error
  }
}

/** Inflates the content of base64, and returns base64 again. */
function inflate(base64: string): string {
  try {
    return inflateRawSync(Buffer.from(base64, 'base64'), { maxOutputLength: MAX_INFLATED }).toString('base64')
  } catch {
    throw new BadInput('it cannot be inflated, or exceeds 64 KiB')
  }
}

/** The document must have exactly one signature, that of its root. */
function postFault(root: XmlElement): string | undefined {
  const [signature] = childrenOf(root, SIGNATURE, 'Signature')
  if (!signature) return 'it has no signature'
  const names = [...everyElement(root)].map(({ element }) => element.name)
  if (names.filter((name) => name === 'Signature').length > 1 || names.includes('Object')) {
    return 'a signature is in the wrong place'
  }
  const ids = [...everyElement(root)].flatMap(({ element }) =>
    [...element.attributes].filter(([name]) => /^(?:\{.*\})?id$/i.test(name)).map(([, value]) => value),
  )
  if (new Set(ids).size < ids.length) return 'two elements have the same id'
  return signatureFault(signature, root)
}

function redirectFault(
  { signed, algorithm, signature }: Extract<SentLogout, { binding: 'redirect' }>,
  certificates: readonly string[],
): string | undefined {
  const digest = Object.hasOwn(digests, algorithm) ? digests[algorithm] : undefined
  if (digest === undefined) return 'the signature method is not accepted; SHA-1, for one, is not'
  const bytes = Buffer.from(signature, 'base64')
  const isRight = certificates.some((each) => verify(digest, Buffer.from(signed), createPublicKey(each), bytes))
  return isRight ? undefined : 'no key of the identity provider verifies the signature'
}
