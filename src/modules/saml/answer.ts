/** Reads what an identity provider posts: a response with one signed assertion. */
import { BadInput } from '../../lib/shape/bad-input.ts'
import { childrenOf, everyElement, isNamed, onlyChild } from './elements.ts'
import { signedAssertion } from './signed-xml.ts'
import { readXml, type XmlElement } from './xml.ts'
import { ASSERTION, PROTOCOL, SIGNATURE, signing, status } from './xml-names.ts'

export interface SamlAnswer {
  /** Fields of the response around the assertion. They are usually not signed, so they can only be a reason to refuse. */
  readonly destination: string | undefined
  readonly inResponseTo: string | undefined
  readonly issuer: string | undefined
  readonly assertion: Assertion
}

/** A signed assertion as data, with times and names as they are written. */
export type Assertion = Readonly<ReturnType<typeof readAssertion>>

export interface AnswerFault {
  readonly fault: 'unreadable' | 'encrypted' | 'unsigned' | 'ambiguous' | 'denied' | 'failed' | 'busy'
  /** For the log; it quotes only names that SAML defines. */
  readonly reason: string
}

/**
 * `base64` is the form field; `certificates` are in PEM. Runs on a separate thread, since the library takes a millisecond
 * for each KiB.
 */
export async function readAnswer(base64: string, certificates: readonly string[]): Promise<SamlAnswer | AnswerFault> {
  try {
    const xml = readText(base64)
    const response = readXml(xml)
    // Before the library verifies the signature, the document must have a shape in which the signed part is certainly the
    // part that is read. Attacks that move signed elements (signature wrapping) all need a second assertion, a duplicate id
    // or a misplaced signature.
    const fault = shapeFault(response) ?? statusFault(response) ?? signatureShapeFault(response)
    if (fault) return fault
    const signed = await signedAssertion(xml, certificates)
    if (signed === undefined) return unsignedFault('no key of the identity provider verifies the signature')
    return {
      destination: response.attributes.get('Destination'),
      inResponseTo: response.attributes.get('InResponseTo'),
      issuer: onlyChild(response, ASSERTION, 'Issuer')?.text.trim(),
      assertion: readAssertion(readXml(signed)),
    }
  } catch (error) {
    if (error instanceof BadInput) return { fault: 'unreadable', reason: error.message }
    throw error
  }
}

/** Throws `BadInput` unless it is base64 of UTF-8, and for parts of XML that SAML does not use. */
export function readText(base64: string): string {
  const text = base64.replace(/[\r\n\t ]+/g, '')
  const bytes = Buffer.from(text, 'base64')
  // Decoders ignore unknown characters and missing padding.
  if (text === '' || bytes.toString('base64') !== text) throw new BadInput('it is not base64')
  let xml: string
  try {
    xml = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new BadInput('it is not UTF-8')
  }
  // A comment inside a name splits it for some parsers, but does not change the signature.
  if (xml.includes('<!')) throw new BadInput('comments, CDATA sections and DTDs are not allowed')
  return xml
}

/** There must be one assertion, directly in the response, nothing encrypted, and no duplicate id. */
function shapeFault(response: XmlElement): AnswerFault | undefined {
  if (!isNamed(response, PROTOCOL, 'Response')) return { fault: 'unreadable', reason: 'it is not a SAML 2.0 response' }
  const ids = new Set<string>()
  let assertions = 0
  for (const { element, parent } of everyElement(response)) {
    const { namespace, name, attributes } = element
    if (name.startsWith('Encrypted')) return { fault: 'encrypted', reason: `it holds an ${name}` }
    // Compared without the namespace, since some parsers ignore it.
    if (name === 'Assertion') {
      assertions += 1
      if (namespace !== ASSERTION || parent !== response) return unsignedFault('an assertion is in the wrong place')
    }
    if (name === 'Response' && element !== response) return unsignedFault('there is a response inside the response')
    if (name === 'Object' && namespace === SIGNATURE) return unsignedFault('a signature holds an object')
    for (const [attribute, value] of attributes) {
      if (!/^(?:\{.*\})?id$/i.test(attribute)) continue
      if (ids.has(value)) return unsignedFault('two elements have the same id')
      ids.add(value)
    }
  }
  if (assertions > 1) return { fault: 'ambiguous', reason: `it holds ${assertions} assertions` }
  const [assertion] = childrenOf(response, ASSERTION, 'Assertion')
  const conditions = assertion ? childrenOf(assertion, ASSERTION, 'Conditions') : []
  return conditions.length > 1 ? { fault: 'ambiguous', reason: 'it has several sets of conditions' } : undefined
}

/** Whether the provider says that somebody logged in. */
function statusFault(response: XmlElement): AnswerFault | undefined {
  const top = onlyChild(response, PROTOCOL, 'Status')
  const code = top && onlyChild(top, PROTOCOL, 'StatusCode')
  const said = code?.attributes.get('Value')
  if (said === status.success) {
    const has = childrenOf(response, ASSERTION, 'Assertion').length === 1
    return has ? undefined : { fault: 'ambiguous', reason: 'it holds no assertion' }
  }
  const inner = code && onlyChild(code, PROTOCOL, 'StatusCode')?.attributes.get('Value')
  const isDenied = [said, inner].some((each) => each === status.authnFailed || each === status.requestDenied)
  const last = (inner ?? said ?? '').split(':').at(-1) ?? ''
  const word = /^[A-Za-z]{1,40}$/.test(last) ? last : 'no status'
  return { fault: isDenied ? 'denied' : 'failed', reason: `the identity provider answered ${word}` }
}

/** Signatures must be in the response or the assertion, at most one in each, and sign the element that they are in. */
function signatureShapeFault(response: XmlElement): AnswerFault | undefined {
  const [assertion] = childrenOf(response, ASSERTION, 'Assertion')
  const holders = [response, assertion]
  let count = 0
  for (const { element, parent } of everyElement(response)) {
    if (element.name !== 'Signature') continue
    count += 1
    if (element.namespace !== SIGNATURE || !parent || !holders.includes(parent)) {
      return unsignedFault('a signature is in the wrong place')
    }
    if (childrenOf(parent, SIGNATURE, 'Signature').length > 1) return unsignedFault('an element has two signatures')
    const reason = signatureFault(element, parent)
    if (reason !== undefined) return unsignedFault(reason)
  }
  return count === 0 ? unsignedFault('it has no signature') : undefined
}

/** Why a signature over the element that holds it is refused, even if it verifies. */
export function signatureFault(signature: XmlElement, holder: XmlElement): string | undefined {
  const info = onlyChild(signature, SIGNATURE, 'SignedInfo')
  const reference = info && onlyChild(info, SIGNATURE, 'Reference')
  if (!info || !reference) return 'a signature does not sign exactly one element'
  const id = holder.attributes.get('ID') ?? ''
  if (id === '' || reference.attributes.get('URI') !== `#${id}`) return 'a signature signs another element'
  const methods = [
    [info, 'CanonicalizationMethod', signing.canonicalization],
    [info, 'SignatureMethod', signing.signature],
    [reference, 'DigestMethod', signing.digest],
  ] as const
  for (const [element, name, allowed] of methods) {
    if (!allowed.has(onlyChild(element, SIGNATURE, name)?.attributes.get('Algorithm') ?? '')) {
      return `a signature has a ${name} that is not accepted, such as one with SHA-1`
    }
  }
  const transforms = onlyChild(reference, SIGNATURE, 'Transforms')?.children ?? []
  const areKnown = transforms.every(
    (each) => isNamed(each, SIGNATURE, 'Transform') && signing.transform.has(each.attributes.get('Algorithm') ?? ''),
  )
  return transforms.length === 2 && areKnown ? undefined : 'a signature has transforms that are not accepted'
}

function unsignedFault(reason: string): AnswerFault {
  return { fault: 'unsigned', reason }
}

function readAssertion(element: XmlElement) {
  const subjects = childrenOf(element, ASSERTION, 'Subject')
  return {
    id: element.attributes.get('ID') ?? '',
    issuer: onlyChild(element, ASSERTION, 'Issuer')?.text.trim() ?? '',
    nameIds: subjects.flatMap((each) => childrenOf(each, ASSERTION, 'NameID')).map(({ text }) => text.trim()),
    confirmations: subjects.flatMap((each) => childrenOf(each, ASSERTION, 'SubjectConfirmation')).map(readConfirmation),
    conditions: childrenOf(element, ASSERTION, 'Conditions').map(readConditions),
    statements: childrenOf(element, ASSERTION, 'AuthnStatement').map(({ attributes }) => ({
      sessionIndex: attributes.get('SessionIndex'),
      authnInstant: attributes.get('AuthnInstant'),
      sessionNotOnOrAfter: attributes.get('SessionNotOnOrAfter'),
    })),
    attributes: childrenOf(element, ASSERTION, 'AttributeStatement')
      .flatMap((each) => childrenOf(each, ASSERTION, 'Attribute'))
      .map((each) => ({
        name: each.attributes.get('Name') ?? '',
        values: childrenOf(each, ASSERTION, 'AttributeValue').map(({ text }) => text.trim()),
      })),
  }
}

function readConfirmation(element: XmlElement) {
  const data = onlyChild(element, ASSERTION, 'SubjectConfirmationData')?.attributes
  return {
    method: element.attributes.get('Method') ?? '',
    recipient: data?.get('Recipient'),
    inResponseTo: data?.get('InResponseTo'),
    notBefore: data?.get('NotBefore'),
    notOnOrAfter: data?.get('NotOnOrAfter'),
  }
}

/** Conditions that we know. Only the last needs a check: answers are accepted once, and the second binds others. */
const known: ReadonlySet<string> = new Set(['OneTimeUse', 'ProxyRestriction', 'AudienceRestriction'])

function readConditions(element: XmlElement) {
  return {
    notBefore: element.attributes.get('NotBefore'),
    notOnOrAfter: element.attributes.get('NotOnOrAfter'),
    /** The audiences of each restriction; all restrictions must be met. */
    audiences: childrenOf(element, ASSERTION, 'AudienceRestriction').map((each) =>
      childrenOf(each, ASSERTION, 'Audience').map(({ text }) => text.trim()),
    ),
    /** Whether it sets a condition that we do not know. */
    hasOthers: element.children.some(({ namespace, name }) => namespace !== ASSERTION || !known.has(name)),
  }
}
