/** For tests: an OpenID Connect provider behind `fetch` whose every answer can be made wrong. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, type JWK, type JWTPayload, SignJWT } from 'jose'
import { type Fetch, type FetchAnswer, FetchFault, type FetchRequest } from '../../../lib/http/outbound-fetch.ts'

export const ISSUER = 'https://id.example.com'
export const CLIENT = { client_id: 'app', client_secret: 'hush-hush' }

interface SigningKey {
  readonly key: KeyObject
  readonly jwk: JWK
  readonly alg: string
}

export async function newKey(alg = 'RS256'): Promise<SigningKey> {
  const { privateKey, publicKey } = alg.startsWith('ES')
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwk = await exportJWK(publicKey)
  return {
    key: createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    alg,
    jwk: { ...jwk, kid: await calculateJwkThumbprint(jwk), alg, use: 'sig' },
  }
}

/** A code that waits to be exchanged. */
interface Grant {
  readonly redirectUri: string
  readonly challenge: string
  readonly nonce: string
}

export class TestProvider {
  readonly asked: string[] = []
  keys: SigningKey[]
  isDown = false
  /** What userinfo answers. */
  userinfo: Record<string, unknown> | undefined
  metadata: Record<string, unknown> = {}
  /** Claims of the next tokens, over the good ones; undefined leaves one out. */
  claims: Record<string, unknown> = {}
  /** Makes the ID token; undefined for none. */
  idToken: (claims: JWTPayload) => Promise<string | undefined> = (claims) => this.sign(claims)
  /** Another answer to the exchange of a code. */
  tokenAnswer: { readonly status: number; readonly body: string; readonly type?: string } | undefined
  lastTokenRequest: FetchRequest | undefined
  readonly #grants = new Map<string, Grant>()

  constructor(key: SigningKey) {
    this.keys = [key]
  }

  readonly fetch: Fetch = async (url, request = {}) => {
    const { pathname } = new URL(url)
    this.asked.push(pathname)
    if (this.isDown) throw new FetchFault('unreachable', 'id.example.com cannot be asked')
    if (pathname === '/.well-known/openid-configuration') return json(this.#document())
    if (pathname === '/jwks') return json({ keys: this.keys.map(({ jwk }) => jwk) })
    if (pathname === '/userinfo') return json(this.userinfo)
    if (pathname === '/token') return this.#exchange(request)
    return json({}, 404)
  }

  /** The user logs in; returns where the browser is sent back to. */
  authorize(location: string, { code = randomUUID() }: { code?: string } = {}): string {
    const { searchParams: asked, origin, pathname } = new URL(location)
    if (`${origin}${pathname}` !== `${ISSUER}/auth`) throw new Error(`the visitor was sent to ${origin}${pathname}`)
    const redirectUri = asked.get('redirect_uri') ?? ''
    const challenge = asked.get('code_challenge') ?? ''
    this.#grants.set(code, { redirectUri, challenge, nonce: asked.get('nonce') ?? '' })
    const back = new URL(redirectUri)
    back.searchParams.set('code', code)
    back.searchParams.set('state', asked.get('state') ?? '')
    return `${back.pathname}${back.search}`
  }

  sign(claims: JWTPayload, { key, alg, jwk }: SigningKey = this.key, header: object = {}): Promise<string> {
    return new SignJWT(claims)
      .setProtectedHeader({ alg, ...(jwk.kid !== undefined && { kid: jwk.kid }), ...header })
      .sign(key)
  }

  get key(): SigningKey {
    const [key] = this.keys
    if (!key) throw new Error('a provider without keys signs nothing')
    return key
  }

  #document(): object {
    return {
      issuer: ISSUER,
      authorization_endpoint: `${ISSUER}/auth`,
      token_endpoint: `${ISSUER}/token`,
      jwks_uri: `${ISSUER}/jwks`,
      ...(this.userinfo && { userinfo_endpoint: `${ISSUER}/userinfo` }),
      response_types_supported: ['code'],
      id_token_signing_alg_values_supported: ['RS256', 'ES256'],
      ...this.metadata,
    }
  }

  async #exchange(request: FetchRequest): Promise<FetchAnswer> {
    this.lastTokenRequest = request
    if (this.tokenAnswer) {
      const { status, body, type = 'application/json' } = this.tokenAnswer
      return { status, headers: new Headers({ 'content-type': type }), body: Buffer.from(body) }
    }
    const form = new URLSearchParams(String(request.body))
    const code = form.get('code') ?? ''
    const grant = this.#grants.get(code)
    this.#grants.delete(code)
    const digest = await crypto.subtle.digest('SHA-256', Buffer.from(form.get('code_verifier') ?? ''))
    const isProved = grant?.challenge === Buffer.from(digest).toString('base64url')
    if (!grant || !isProved || grant.redirectUri !== form.get('redirect_uri'))
      return json({ error: 'invalid_grant' }, 400)
    const now = Math.floor(Date.now() / 1000)
    const good = { iss: ISSUER, aud: CLIENT.client_id, sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.com' }
    const claims = { ...good, nonce: grant.nonce, iat: now, exp: now + 300, ...this.claims }
    // JSON leaves out what is undefined.
    const idToken = await this.idToken(JSON.parse(JSON.stringify(claims)) as JWTPayload)
    return json({
      access_token: 'access-1',
      token_type: 'Bearer',
      expires_in: 300,
      ...(idToken !== undefined && { id_token: idToken }),
    })
  }
}

function json(body: unknown, status = 200): FetchAnswer {
  return {
    status,
    headers: new Headers({ 'content-type': 'application/json' }),
    body: Buffer.from(JSON.stringify(body)),
  }
}
