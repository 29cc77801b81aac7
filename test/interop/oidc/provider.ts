/** A certified OpenID Connect provider on this machine, whose users log in without a prompt, or by a form. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Provider, { type Configuration, type JWK } from 'oidc-provider'
import type { Owner } from '../../support/upstream.ts'

export const CLIENT_ID = 'postern-test'

export interface RealProvider {
  readonly issuer: string
  readonly clientSecret: string
  /** The user who logs in next; undefined if the user cancels. */
  user: string | undefined
  /** Whether the browser gets a form for the name, in place of `user`. */
  hasForm: boolean
  /** Paths that were requested. */
  readonly asked: string[]
}

/** `redirectUris` are those of its only client. */
export async function realProvider(owner: Owner, redirectUris: string[]): Promise<RealProvider> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  owner.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on a port
  const clientSecret = randomBytes(24).toString('base64url')
  const provider = new Provider(issuer, configuration(clientSecret, redirectUris))
  const made: RealProvider = { issuer, clientSecret, user: 'ada', hasForm: false, asked: [] }
  const serve = provider.callback()
  server.on('request', (request, response) => {
    made.asked.push(request.url?.split('?')[0] ?? '')
    if (!request.url?.startsWith('/interaction/')) void serve(request, response)
    else if (made.hasForm) void fillIn(provider, request, response)
    else void interact(provider, made.user, request, response)
  })
  return made
}

const form = '<!doctype html><title>Log in</title><form method="post"><input name="user"><button>Log in</button></form>'

async function fillIn(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'text/html' }).end(form)
    return
  }
  const user = new URLSearchParams(await text(request)).get('user') ?? undefined
  await interact(provider, user, request, response)
}

async function interact(
  provider: Provider,
  user: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const outcome = user === undefined ? { error: 'access_denied' } : { login: { accountId: user } }
  await provider.interactionFinished(request, response, outcome, { mergeWithLastSubmission: false })
}

function configuration(clientSecret: string, redirectUris: string[]): Configuration {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  // The cast is safe: a new RSA key exports as this form.
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' } as JWK
  return {
    clients: [{ client_id: CLIENT_ID, client_secret: clientSecret, redirect_uris: redirectUris }],
    jwks: { keys: [jwk] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'] },
    // In seconds.
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600 },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    // Users who log in have consented.
    async loadExistingGrant({ oidc }) {
      const { client, session, params, provider } = oidc
      const grant = new provider.Grant({ clientId: client?.clientId ?? '', accountId: session?.accountId ?? '' })
      grant.addOIDCScope(typeof params?.scope === 'string' ? params.scope : 'openid')
      await grant.save()
      return grant
    },
    findAccount: (_ctx, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        name: `${id} of the test`,
        email: `${id}@example.com`,
        email_verified: true,
        preferred_username: id,
      }),
    }),
  }
}
