/** For tests: an identity provider built on samlify, which shares no SAML code with us, and whose answers can be made wrong. */
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { inflateRawSync } from 'node:zlib'
import { makeRequestKey, type RequestKey } from '../request-key.ts'

/** The parts of samlify in use. Its own types need those of browsers, which conflict with ours. */
interface Samlify {
  setSchemaValidator(validator: { validate(xml: string): Promise<string> }): void
  ServiceProvider(settings: object): object
  IdentityProvider(settings: object): {
    getMetadata(): string
    parseLoginRequest(
      sp: object,
      binding: 'redirect',
      request: object,
    ): Promise<{ extract: { request: { id: string; assertionConsumerServiceUrl: string }; issuer: string } }>
    createLoginResponse(
      sp: object,
      request: object,
      binding: 'post',
      user: object,
      options: object,
    ): Promise<{ context: string }>
    createLogoutRequest(
      sp: object,
      binding: 'redirect' | 'post',
      user: object,
      relayState?: string,
    ): { context: string }
  }
}

const samlify = createRequire(import.meta.url)('samlify') as Samlify

// It needs a validator and brings none; it reads only our own messages here.
samlify.setSchemaValidator({ validate: () => Promise.resolve('unchecked') })

export const IDP = 'https://idp.example.com/metadata'
export const RSA_SHA256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256'
export const RSA_SHA1 = 'http://www.w3.org/2000/09/xmldsig#rsa-sha1'

/** What a route asked for. */
export interface Asked {
  readonly requestId: string
  readonly relayState: string
  readonly acs: string
  readonly entityId: string
  readonly xml: string
}

/** What an answer says; times are offsets from now, in seconds. */
export interface Facts {
  readonly issuer: string
  readonly inResponseTo: string | undefined
  readonly destination: string
  readonly recipient: string
  readonly audience: string
  readonly nameId: string
  readonly notBefore: number
  readonly notOnOrAfter: number
  readonly confirmedUntil: number
  readonly authnInstant: number
  readonly statements: number
  /** The end of the session at the provider; undefined for none. */
  readonly sessionUntil: number | undefined
  readonly attributes: Readonly<Record<string, readonly string[]>>
  readonly status: string
  readonly assertionId: string
  /** XML, after the subject. */
  readonly more: string
}

export interface Signing {
  readonly signs?: 'assertion' | 'response' | 'both'
  readonly algorithm?: string
  readonly by?: RequestKey
}

export class TestIdp {
  readonly key: RequestKey
  readonly loginUrl: string
  readonly metadata: string

  constructor(key: RequestKey, loginUrl = 'https://idp.example.com/sso?tenant=1') {
    this.key = key
    this.loginUrl = loginUrl
    this.metadata = this.#entity({}).getMetadata()
  }

  static async make(loginUrl?: string): Promise<TestIdp> {
    return new TestIdp(await makeRequestKey(Date.now()), loginUrl)
  }

  /** Has samlify read a request and verify it by the metadata of the route. */
  async read(location: string, routeMetadata: string): Promise<Asked> {
    const url = new URL(location)
    const query = Object.fromEntries(url.searchParams)
    const { SAMLRequest = '', RelayState = '', SigAlg = '' } = query
    const octetString = Object.entries({ SAMLRequest, RelayState, SigAlg })
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join('&')
    const sp = samlify.ServiceProvider({ metadata: routeMetadata })
    const { extract } = await this.#entity({}).parseLoginRequest(sp, 'redirect', { query, octetString })
    const { id, assertionConsumerServiceUrl } = extract.request
    return {
      requestId: id,
      relayState: RelayState,
      acs: assertionConsumerServiceUrl,
      entityId: extract.issuer,
      xml: inflateRawSync(Buffer.from(SAMLRequest, 'base64')).toString(),
    }
  }

  /** A signed answer, as XML. */
  async answer(asked: Omit<Asked, 'xml'>, changed: Partial<Facts> = {}, signing: Signing = {}): Promise<string> {
    const context = responseXml({ ...goodFacts(asked), ...changed })
    const { signs = 'assertion' } = signing
    const sp = samlify.ServiceProvider({
      entityID: asked.entityId,
      wantAssertionsSigned: signs !== 'response',
      wantMessageSigned: signs !== 'assertion',
      assertionConsumerService: [{ Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST', Location: asked.acs }],
    })
    const made = await this.#entity(signing).createLoginResponse(
      sp,
      {},
      'post',
      {},
      {
        customTagReplacement: () => ({ id: randomUUID(), context }),
      },
    )
    return Buffer.from(made.context, 'base64').toString()
  }

  /** The query of a signed request to log a user out, by the redirect binding. */
  logoutQuery(logoutUrl: string, user: { readonly logoutNameID: string }, relayState = ''): string {
    const sp = samlify.ServiceProvider({
      entityID: 'unused',
      wantLogoutRequestSigned: true,
      singleLogoutService: [{ Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect', Location: logoutUrl }],
    })
    const { context } = this.#entity({}).createLogoutRequest(sp, 'redirect', user, relayState)
    return new URL(context).search.slice(1)
  }

  /** The form field of a signed request to log a user out, by the POST binding. */
  logoutForm(logoutUrl: string, user: { readonly logoutNameID: string }): string {
    const sp = samlify.ServiceProvider({
      entityID: 'unused',
      wantLogoutRequestSigned: true,
      singleLogoutService: [{ Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST', Location: logoutUrl }],
    })
    return this.#entity({}).createLogoutRequest(sp, 'post', user).context
  }

  #entity({ algorithm = RSA_SHA256, by = this.key }: Signing) {
    return samlify.IdentityProvider({
      entityID: IDP,
      privateKey: by.key.reveal(),
      signingCert: by.certificate,
      requestSignatureAlgorithm: algorithm,
      wantAuthnRequestsSigned: true,
      singleSignOnService: [
        {
          Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect',
          Location: this.loginUrl.replaceAll('&', '&amp;'),
        },
      ],
      singleLogoutService: [
        { Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect', Location: 'https://idp.example.com/slo' },
      ],
    })
  }
}

export function goodFacts({ requestId, acs, entityId }: Pick<Asked, 'requestId' | 'acs' | 'entityId'>): Facts {
  return {
    issuer: IDP,
    inResponseTo: requestId,
    destination: acs,
    recipient: acs,
    audience: entityId,
    nameId: 'ada',
    notBefore: -10,
    notOnOrAfter: 300,
    confirmedUntil: 300,
    authnInstant: 0,
    statements: 1,
    sessionUntil: undefined,
    attributes: { email: ['ada@example.com'], displayName: ['Ada Lovelace'], groups: ['engineers', 'admins'] },
    status: 'urn:oasis:names:tc:SAML:2.0:status:Success',
    assertionId: `_${randomUUID()}`,
    more: '',
  }
}

const at = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString()

export function responseXml(facts: Facts): string {
  const reply = facts.inResponseTo === undefined ? '' : ` InResponseTo="${facts.inResponseTo}"`
  const attributes = Object.entries(facts.attributes).map(
    ([name, values]) =>
      `<saml:Attribute Name="${name}">${values.map((value) => `<saml:AttributeValue>${value}</saml:AttributeValue>`).join('')}</saml:Attribute>`,
  )
  const until = facts.sessionUntil === undefined ? '' : ` SessionNotOnOrAfter="${at(facts.sessionUntil)}"`
  const statement = `<saml:AuthnStatement AuthnInstant="${at(facts.authnInstant)}" SessionIndex="s1"${until}><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`
  return [
    `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_${randomUUID()}" Version="2.0" IssueInstant="${at(0)}" Destination="${facts.destination}"${reply}>`,
    `<saml:Issuer>${facts.issuer}</saml:Issuer>`,
    `<samlp:Status><samlp:StatusCode Value="${facts.status}"/></samlp:Status>`,
    `<saml:Assertion ID="${facts.assertionId}" Version="2.0" IssueInstant="${at(0)}">`,
    `<saml:Issuer>${facts.issuer}</saml:Issuer>`,
    `<saml:Subject><saml:NameID>${facts.nameId}</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">`,
    `<saml:SubjectConfirmationData NotOnOrAfter="${at(facts.confirmedUntil)}" Recipient="${facts.recipient}"${reply}/></saml:SubjectConfirmation></saml:Subject>`,
    `<saml:Conditions NotBefore="${at(facts.notBefore)}" NotOnOrAfter="${at(facts.notOnOrAfter)}"><saml:AudienceRestriction><saml:Audience>${facts.audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>`,
    statement.repeat(facts.statements),
    `<saml:AttributeStatement>${attributes.join('')}</saml:AttributeStatement>`,
    facts.more,
    '</saml:Assertion></samlp:Response>',
  ].join('')
}
